/* det: (b.. !n !m) -> (b..), the determinant of each matrix. */
#include "op/infer/infer.h"
#include "op/rule/rule.h"
#include "op/table/table.h"

void infer_det(struct graph *g, struct node *node)
{
    op_need_rank(g, node, 0, 2, MAX_RANK);
    const struct type *x = op_operand(g, node, 0);
    op_same_dim(g, node, x->dim[x->rank - 2], x->dim[x->rank - 1], "the rows and the columns of X");
    op_result(g, node, 0, x->dtype, x->rank - 2, x->dim);
}
