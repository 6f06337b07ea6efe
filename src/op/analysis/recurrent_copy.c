/* recurrent_copy: what recurrent nets keep of their weights beside these. */
#include "op/analysis/analysis.h"
#include "op/op.h"

bool op_packs_recurrent(const struct node *n, const bool *settled)
{
    return n->op && (n->op->flags & OP_RECURS) && n->nin > 2 && n->in[1] && n->in[2] && op_is_settled(settled, n->in[1]) &&
        op_is_settled(settled, n->in[2]);
}

int64_t op_recurrent_copy(const struct type *weight)
{
    int64_t n = 1, k, bytes;
    for (int d = 0; d < weight->rank; d++)
        if (!dim_is_int(weight->dim[d], &k) || k < 0 || !i64_mul(n, k, &n))
            return 0;
    return i64_mul(n, (int64_t)sizeof(float), &bytes) ? bytes : 0;
}
