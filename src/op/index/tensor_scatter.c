/* tensor_scatter: TensorScatter: a cache with new entries written along one axis, (b a.. !n c..)(b a.. !m c..)(b) -> (b a.. !n c..). */
#include "op/infer/infer.h"
#include "op/rule/rule.h"
#include "op/table/table.h"

#include <string.h>

static int scatter_axis(const struct graph *g, const struct node *node)
{
    int axis = op_axis(g, node, attr_int(node, "axis"), op_operand(g, node, 0)->rank);
    if (axis == 0)
        fail("%s: attribute 'axis' names the batch dimension, expected another one", node_where(g, node));
    return axis;
}

void infer_tensorscatter(struct graph *g, struct node *node)
{
    op_need_rank(g, node, 0, 2, MAX_RANK);
    const struct type *past = op_operand(g, node, 0), *update = op_operand(g, node, 1);
    const char *mode = attr_string(node, "mode");
    int axis = scatter_axis(g, node);
    op_need_rank(g, node, 1, past->rank, past->rank);
    op_same_dtype(g, node, 0, 1);
    if (strcmp(mode, "linear") != 0 && strcmp(mode, "circular") != 0)
        fail("%s: attribute 'mode' is '%s', expected linear or circular", node_where(g, node), mode);
    for (int d = 0; d < past->rank; d++)
        if (d != axis)
            op_same_dim(g, node, past->dim[d], update->dim[d], "the dimensions of past_cache and update");
    if (node_operand(node, 2)) {
        op_index_type(g, node, 2);
        op_need_rank(g, node, 2, 1, 1);
        op_same_dim(g, node, past->dim[0], op_operand(g, node, 2)->dim[0], "the batch dimension and the write indices");
    }
    op_result(g, node, 0, past->dtype, past->rank, past->dim);
}

uint32_t over_scattered(struct graph *g, const struct node *node)
{
    return UINT32_C(1) << scatter_axis(g, node);
}
