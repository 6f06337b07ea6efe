/* What a collective moves, for reports. */
#include "op/op.h"
#include "plan/cost/cost.h"

int64_t cost_payload(struct alg *alg, const struct node *n, const struct bindings *dims, int ranks)
{
    const struct value *v = n->in[0];
    require(n->op && (n->op->flags & OP_COLLECTIVE) && v->placed);
    int64_t most = 0;
    for (int r = 0; r < ranks; r++) {
        struct type local = placement_local(alg, &v->type, v->place, r);
        int64_t bytes = (int64_t)dtype_size(local.dtype), size;
        for (int d = 0; d < local.rank; d++)
            if (!dim_eval(local.dim[d], dims, &size) || !i64_mul(bytes, size, &bytes))
                return 0;
        if (bytes > most)
            most = bytes;
    }
    return most;
}
