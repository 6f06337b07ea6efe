/* select: ops that select elements, whose results have a data-dependent dimension: Compress, Unique, NonMaxSuppression. The kernel computes
 * their number once the operands are known. The selection depends on all elements, so only other dimensions may be split. */
#include "kern/index/index.h"
#include "op/infer/infer.h"
#include "op/rule/rule.h"
#include "op/table/table.h"

#include <string.h>

/* ---- Compress --------------------------------------------------------------------------------------------------------------------- */

void infer_compress(struct graph *g, struct node *node)
{
    const struct type *x = op_operand(g, node, 0), *condition = op_operand(g, node, 1);
    const struct dim *dim[MAX_RANK];
    bool flat = !attr_is_set(node, "axis");
    int axis = flat ? 0 : op_axis(g, node, attr_int(node, "axis"), x->rank);
    op_need_rank(g, node, 1, 1, 1);
    if (condition->dtype != DT_BOOL)
        fail("%s: the condition '%s' is %s, expected bool", node_where(g, node), node->in[1]->name, dtype_name(condition->dtype));
    memcpy(dim, x->dim, sizeof dim);
    dim[axis] = op_counted_dim(g, node, axis, 2, index_compressed);
    op_result(g, node, 0, x->dtype, flat ? 1 : x->rank, dim);
}

/* ---- Unique ----------------------------------------------------------------------------------------------------------------------- */

void infer_unique(struct graph *g, struct node *node)
{
    const struct type *x = op_operand(g, node, 0);
    const struct dim *dim[MAX_RANK], *all = dim_int(g->alg, 1);
    bool flat = !attr_is_set(node, "axis");
    int axis = flat ? 0 : op_axis(g, node, attr_int(node, "axis"), x->rank);
    for (int d = 0; d < x->rank; d++)
        all = dim_mul(g->alg, all, x->dim[d]);
    memcpy(dim, x->dim, sizeof dim);
    dim[axis] = op_counted_dim(g, node, axis, 1, index_distinct);
    op_result(g, node, 0, x->dtype, flat ? 1 : x->rank, dim);
    const struct dim *which = flat ? all : x->dim[axis];
    op_result(g, node, 1, DT_I64, 1, &dim[axis]);
    op_result(g, node, 2, DT_I64, 1, &which);
    op_result(g, node, 3, DT_I64, 1, &dim[axis]);
}

/* ---- NonMaxSuppression ------------------------------------------------------------------------------------------------------------ */

void infer_nonmaxsuppression(struct graph *g, struct node *node)
{
    op_need_rank(g, node, 0, 3, 3);
    op_need_rank(g, node, 1, 3, 3);
    const struct type *boxes = op_operand(g, node, 0), *scores = op_operand(g, node, 1);
    op_same_dim(g, node, boxes->dim[0], scores->dim[0], "the images of boxes and scores");
    op_same_dim(g, node, boxes->dim[1], scores->dim[2], "the numbers of boxes and of scores");
    op_same_dim(g, node, boxes->dim[2], dim_int(g->alg, 4), "the numbers of a box and 4");
    op_result(g, node, 0, DT_I64, 2, (const struct dim *[]){op_counted_dim(g, node, 0, UINT32_MAX, index_selected), dim_int(g->alg, 3)});
}
