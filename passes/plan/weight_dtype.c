/* weight_dtype: the type in which each weight is stored, where --weights says so.
 *
 * A weight is an f32 constant of 1 KiB or more and 2 or more dimensions that only products and lookups read, as their first or second
 * operand, also through ops that only move elements. The graph still computes in f32: from here on the weight counts and is written in its
 * type, and a Cast is put behind it when the files are written. */
#include "passes/pass.h"
#include "plan/facts/facts.h"

/* Returns how many weights are f32, and one that is not. */
static int store_all(struct graph *g, enum dtype type, const struct value **other)
{
    struct arena *tmp = arena_new();
    const struct uses *uses = graph_uses(g, tmp);
    int found = 0;
    for (int i = 0; i < g->values.n; i++) {
        struct value *v = g->values.at[i];
        if (!weight_may_be_cast(uses, v))
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
    int found = store_all(c->graph, type, &other);
    if (type == DT_F32 && other)
        fail("%s: --weights f32: '%s' is %s, and f32 would only be larger", c->options->model, other->name,
             dtype_name(other->constant->dtype));
    if (type != DT_F32 && !found)
        fail("%s: --weights %s: no product or lookup reads an f32 weight of 1 KiB or more and 2 or more dimensions", c->options->model,
             dtype_name(type));
}
