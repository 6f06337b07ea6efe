/* recurrent_copy: the packed copies that recurrent nets keep of their weights. */
#include "op/analysis/analysis.h"
#include "op/op.h"

bool op_packs_recurrent(const struct node *n, const bool *constant)
{
    return n->op && (n->op->flags & OP_RECURS) && n->nin > 2 && n->in[1] && n->in[2] && op_is_load_time_constant(constant, n->in[1]) &&
        op_is_load_time_constant(constant, n->in[2]);
}

int64_t op_recurrent_copy(const struct type *weight)
{
    struct type copy = *weight;
    int64_t bytes;
    copy.dtype = DT_F32;
    return type_bytes(&copy, &bytes) ? bytes : 0;
}
