/* reverse_sequence: ReverseSequence: reverses the first steps of each row of the batch; an operand gives their number. */
#include "op/infer/infer.h"
#include "op/rule/rule.h"
#include "op/table/table.h"

void infer_reversesequence(struct graph *g, struct node *node)
{
    op_need_rank(g, node, 0, 2, MAX_RANK);
    op_need_rank(g, node, 1, 1, 1);
    op_index_type(g, node, 1);
    const struct type *x = op_operand(g, node, 0);
    int64_t batch = attr_int(node, "batch_axis"), time = attr_int(node, "time_axis");
    if (batch < 0 || batch > 1 || time < 0 || time > 1 || batch == time)
        fail("%s: batch_axis is %lld and time_axis %lld, expected 0 and 1 or 1 and 0", node_where(g, node), (long long)batch,
             (long long)time);
    op_same_dim(g, node, op_operand(g, node, 1)->dim[0], x->dim[batch], "the batch and sequence_lens");
    op_result(g, node, 0, x->dtype, x->rank, x->dim);
}

uint32_t over_time(struct graph *g, const struct node *node)
{
    (void)g;
    return UINT32_C(1) << attr_int(node, "time_axis");
}
