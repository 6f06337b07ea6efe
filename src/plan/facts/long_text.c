/* long_text: finds given workloads that are longer than the configuration next to the model allows a text to be. */
#include "plan/facts/facts.h"
#include "plan/input/input.h"
#include "plan/plan.h"

/* The largest size of a kind; 0: none. */
static int64_t largest(const struct dim_roles *roles, enum symbol_kind kind, const struct bindings *dims)
{
    int64_t most = 0;
    EACH (const struct symbol_role, s, roles->symbols) {
        const int64_t *size = s->kind == kind ? bindings_get(dims, s->name) : NULL;
        most = size && *size > most ? *size : most;
    }
    return most;
}

void plan_note_long(struct graph *g, const struct options *o, struct plan *plan)
{
    struct arena *a = g->arena;
    const struct dim_roles *roles = dim_symbol_roles(a, g);
    if (!o->workload.n || !o->model)
        return;
    for (int w = 0; w < plan->workloads.n; w++) {
        const struct bindings *dims = &plan->workloads.at[w].dims;
        int64_t past = largest(roles, SYMBOL_PAST, dims), tokens, context = largest(roles, SYMBOL_CONTEXT, dims);
        const struct config_limit c = model_config_limit(a, path_dir(a, o->model), past ? CONFIG_DECODER : CONFIG_BOTH);
        if (!i64_add(past, largest(roles, SYMBOL_SEQUENCE, dims), &tokens) || tokens < context)
            tokens = context;
        if (c.tokens > 0 && tokens > c.tokens)
            VEC_PUSH(a, &plan->warnings,
                     arena_printf(a, "workload %d: a text of %lld tokens is longer than the model allows (%s)", w + 1, (long long)tokens,
                                  c.says));
    }
}
