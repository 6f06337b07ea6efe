/* stage_weights: trained weights that several stages read. The one that makes the gradient trains it; gradients of other stages get there
 * as values that cross. */
#include "plan/stages/stages.h"

#include <string.h>

/* By value id: some node reads it. */
static const bool *read_in(struct arena *tmp, const struct graph *g)
{
    bool *read = NEWN(tmp, bool, g->values.n + 1);
    for (int i = 0; i < g->nodes.n; i++)
        for (int k = 0; k < g->nodes.at[i]->nin; k++)
            if (g->nodes.at[i]->in[k])
                read[g->nodes.at[i]->in[k]->id] = true;
    return read;
}

static void add_weight(struct arena *a, const struct stage_plan *p, const bool *const *read, int trains, const struct value *weight,
                       struct stage_weights *to)
{
    struct stage_weight w = {.name = weight->name, .trains = trains, .reads = NEWN(a, int, p->cut.stages)};
    for (int k = 0; k < p->cut.stages; k++) {
        const struct value *v = graph_find(p->made[k].source, weight->name);
        if (k != trains && v && read[k][v->id])
            w.reads[w.n++] = k;
    }
    if (w.n)
        VEC_PUSH(a, &to->list, w);
}

struct stage_weights stage_weights_find(struct arena *a, const struct stage_plan *p)
{
    struct arena *tmp = arena_new();
    struct stage_weights all = {{NULL, 0, 0}};
    const bool **read = NEWN(tmp, const bool *, p->cut.stages);
    for (int k = 0; k < p->cut.stages; k++)
        read[k] = read_in(tmp, p->made[k].source);
    for (int k = 0; k < p->cut.stages; k++)
        EACH (const struct trained, t, p->made[k].source->trained) {
            add_weight(a, p, read, k, t->weight, &all);
        }
    arena_free(tmp);
    return all;
}
