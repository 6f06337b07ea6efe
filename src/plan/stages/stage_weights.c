/* stage_weights: trained weights that several stages read. The stage that makes the gradient trains the weight; other stages send it their
 * gradients as values that cross. */
#include "plan/stages/stages.h"

#include <string.h>

static void add_weight(struct arena *a, const struct stage_plan *p, struct uses *const *uses, int trains, const struct value *weight,
                       struct stage_weights *to)
{
    struct stage_weight w = {.name = weight->name, .trains = trains, .reads = NEWN(a, int, p->cut.stages)};
    for (int k = 0; k < p->cut.stages; k++) {
        const struct value *v = graph_find(p->made[k].source, weight->name);
        if (k != trains && v && uses[k][v->id].n > 0)
            w.reads[w.n++] = k;
    }
    if (w.n)
        VEC_PUSH(a, &to->list, w);
}

struct stage_weights stage_weights_find(struct arena *a, const struct stage_plan *p)
{
    struct arena *tmp = arena_new();
    struct stage_weights all = {{NULL, 0, 0}};
    struct uses **uses = NEWN(tmp, struct uses *, p->cut.stages);
    for (int k = 0; k < p->cut.stages; k++)
        uses[k] = graph_uses(p->made[k].source, tmp);
    for (int k = 0; k < p->cut.stages; k++)
        EACH (const struct trained, t, p->made[k].source->trained) {
            add_weight(a, p, uses, k, t->weight, &all);
        }
    arena_free(tmp);
    return all;
}
