/* cut_weights: gives each rank its shard of each constant. A large weight stays a reference to the source tensor; its byte ranges are
 * copied when the files are written (src/plan/facts/weight_bytes.c). Small inline constants and inline integers are cut here, because
 * later passes and readers look into them. */
#include "passes/pass.h"
#include "plan/facts/facts.h"

#include <string.h>

static bool cut_now(const struct constant *c)
{
    return !c->source.path && (c->bytes < WEIGHT_BYTES || c->dtype == DT_I64);
}

static void *cut_bytes(struct arena *arena, struct value *v, int rank, int64_t bytes)
{
    const struct byte_range *range;
    int n = weight_ranges(arena, v->constant, v->place, rank, &range);
    const char *from = constant_data(v->constant, v->name);
    char *to = arena_alloc(arena, (size_t)bytes), *end = to;
    for (int i = 0; i < n; i++) {
        memcpy(end, from + range[i].offset, (size_t)range[i].bytes);
        end += range[i].bytes;
    }
    require(end - to == bytes);
    return to;
}

static void cut_constant(struct graph *g, struct value *v)
{
    struct constant *c = NEW(g->arena, struct constant);
    *c = *v->constant;
    c->bytes = weight_bytes(v);
    c->data = cut_bytes(g->arena, v, g->rank, c->bytes);
    c->origin = NULL;
    for (int d = 0; d < c->rank; d++)
        require(dim_is_int(v->type.dim[d], &c->dim[d]));
    v->constant = c;
    v->dims = NULL;
}

static void rank_weights(struct graph *g)
{
    for (int i = 0; i < g->values.n; i++) {
        struct value *v = g->values.at[i];
        if (!v->constant || v->place.kind == PLACE_R)
            continue;
        if (v->place.kind == PLACE_P)
            bug("constant '%s' is placed as partial", v->name);
        if (cut_now(v->constant))
            cut_constant(g, v);
    }
}

void pass_cut_weights(struct compile *c)
{
    for (int r = 0; r < c->graph->ranks; r++)
        if (c->rank_graphs[r])
            rank_weights(c->rank_graphs[r]);
}
