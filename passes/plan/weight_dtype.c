/* weight_dtype: sets the type in which each weight is stored (--weights).
 *
 * A weight is an f32 constant of 1 KiB or more and of 2 or more dimensions. Only products and lookups read it, as their first or second
 * operand, also through Transpose or Reshape. The graph still computes in f32. From here on the weight counts in its stored type; emit adds
 * a Cast after it. Trained adapters stay f32. Integer weights are handled in (src/plan/apply/quantize_weights.c). */
#include "passes/pass.h"
#include "plan/apply/apply.h"
#include "plan/facts/facts.h"
#include "plan/input/input.h"

/* Sets the type of all weights and returns the number of f32 ones. *other: a weight of another type. */
static int store_all(struct graph *g, enum dtype type, bool adapters, const struct value **other)
{
    struct arena *tmp = arena_new();
    const struct uses *uses = graph_uses(g, tmp);
    int found = 0;
    for (int i = 0; i < g->values.n; i++) {
        struct value *v = g->values.at[i];
        if (!weight_may_be_cast(uses, v) || (adapters && v->constant->trained))
            continue;
        if (v->constant->dtype != DT_F32) {
            *other = v;
            continue;
        }
        v->stored = type == DT_F32 ? DT_NONE : type;
        found++;
    }
    arena_free(tmp);
    return found;
}

void pass_weight_dtype(struct compile *c)
{
    enum dtype type = c->options ? c->options->weights : DT_NONE;
    const struct value *other = NULL;
    if (type == DT_NONE)
        return;
    bool few_bits = type == DT_I8 || type == DT_I4;
    int found = few_bits ? plan_quantize_weights(c->graph, dtype_bits(type)) : store_all(c->graph, type, c->options->lora.rank > 0, &other);
    if (type == DT_F32 && other)
        fail("%s: --weights f32: '%s' is %s, and f32 would only make it larger", c->options->model, other->name,
             dtype_name(other->constant->dtype));
    if (type != DT_F32 && !found)
        fail("%s: --weights %s: no product or lookup reads an f32 weight of 1 KiB or more and 2 or more dimensions", c->options->model,
             weight_type_name(type));
}
