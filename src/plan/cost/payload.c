/* payload: bytes that a collective moves, or a recurrent net whose hidden units are split, for reports. */
#include "op/op.h"
#include "op/recurrent/recurrent.h"
#include "plan/cost/cost.h"

#include <math.h>

static int64_t exchanged(struct alg *alg, const struct recurrent_exchange *x, const struct bindings *dims, int ranks)
{
    int64_t most = 0, units, bytes, times, rows;
    for (int r = 0; r < ranks; r++)
        if (dim_eval(split_extent(alg, x->units, r), dims, &units) && units > most)
            most = units;
    bool known = dim_eval(x->times, dims, &times) && dim_eval(x->rows, dims, &rows) && i64_mul(times, rows, &bytes);
    return known && i64_mul(bytes, most, &bytes) && i64_mul(bytes, sizeof(float), &bytes) ? bytes : 0;
}

/* The most bytes that one rank sends or receives to redistribute the value; -1: some rank holds several ranges. */
static int64_t redistributed(const struct value *v, struct placement to, const struct bindings *dims)
{
    struct arena *tmp = arena_new();
    double part = to.kind == PLACE_S ? split_moved(tmp, v->place.split, to.split, dims) : -1;
    int64_t bytes = (int64_t)dtype_size(v->type.dtype), size;
    arena_free(tmp);
    for (int d = 0; d < v->type.rank; d++)
        if (!dim_eval(v->type.dim[d], dims, &size) || !i64_mul(bytes, size, &bytes))
            return -1;
    return part < 0 ? -1 : llround(part * (double)bytes);
}

int64_t cost_payload(const struct graph *g, const struct node *n, const struct bindings *dims, int ranks)
{
    struct recurrent_exchange exchange;
    if (recurrent_exchanges(g, n, &exchange))
        return exchanged(g->alg, &exchange, dims, ranks);
    const struct value *v = n->in[0];
    require(n->op && (n->op->flags & OP_COLLECTIVE) && v->placed);
    int64_t most = op_is_tpc(n, "Redistribute") ? redistributed(v, n->out[0]->place, dims) : -1;
    if (most >= 0)
        return most;
    for (int r = 0; r < ranks; r++) {
        struct type local = placement_local(g->alg, &v->type, v->place, r);
        int64_t bytes = (int64_t)dtype_size(local.dtype), size;
        for (int d = 0; d < local.rank; d++)
            if (!dim_eval(local.dim[d], dims, &size) || !i64_mul(bytes, size, &bytes))
                return 0;
        if (bytes > most)
            most = bytes;
    }
    return most < 0 ? 0 : most;
}
