/* empty: finds values without elements in a workload with assumed sizes: an input that is too short for the windows of its convolutions.
 * Values that are empty because a size may be 0, as a past length, or because of data, are intended. */
#include "op/analysis/analysis.h"
#include "plan/facts/facts.h"
#include "plan/plan.h"

/* The sizes known: every symbol belongs to an input and is above zero. */
struct known {
    const struct name_index *of_inputs;
    const struct bindings *dims;
    bool all;
};

static void note_known(void *known, const struct dim *symbol)
{
    struct known *k = known;
    const int64_t *size = bindings_get(k->dims, symbol->name);
    k->all = k->all && name_index_find(k->of_inputs, symbol->name) >= 0 && size && *size > 0;
}

static bool is_empty(const struct type *t, const struct name_index *of_inputs, const struct bindings *dims)
{
    int64_t size;
    for (int d = 0; d < t->rank; d++) {
        struct known k = {of_inputs, dims, t->dim[d]->kind != DIM_INT};
        dim_each_symbol(t->dim[d], note_known, &k);
        if (k.all && dim_eval(t->dim[d], dims, &size) && size <= 0)
            return true;
    }
    return false;
}

/* The first node of a graph with an empty result; NULL: none. */
static const struct node *first_empty(const struct graph *g, const struct name_index *of_inputs, const struct bindings *dims)
{
    for (int i = 0; i < g->nodes.n; i++)
        for (int k = 0; k < g->nodes.at[i]->nout; k++)
            if (g->nodes.at[i]->out[k] && is_empty(&g->nodes.at[i]->out[k]->type, of_inputs, dims))
                return g->nodes.at[i];
    return NULL;
}

void plan_note_empty(struct graph *g, struct plan *plan)
{
    const struct name_index of_inputs = symbol_of_inputs(g->arena, g);
    for (int w = 0; w < plan->workloads.n; w++) {
        const struct workload *at = &plan->workloads.at[w];
        const struct node *n = at->assumed ? first_empty(g, &of_inputs, &at->dims) : NULL;
        if (n)
            VEC_PUSH(g->arena, &plan->warnings,
                     arena_printf(g->arena, "workload %d: node '%s' (%s) has an empty result at these sizes (--workload gives others)",
                                  w + 1, n->name, n->optype));
    }
}
