/* NonZero: the positions of what is not zero, one per column, [rank n]. Data decides n: an opaque symbol until the operand itself is known,
 * as it is in a constant and at run time. */
#include "op/op.h"
#include "op/table.h"

static bool is_known(const struct value *v)
{
    return v->constant && constant_present(v->constant) && !dtype_is_packed(v->constant->dtype);
}

static int64_t count_nonzero(const struct value *v)
{
    int64_t n = constant_elements(v->constant), count = 0;
    for (int64_t i = 0; i < n; i++)
        count += constant_float(v->constant, v->name, i) != 0;
    return count;
}

void infer_nonzero(struct graph *g, struct node *node)
{
    const struct type *x = op_operand(g, node, 0);
    const struct dim *dim[2] = {dim_int(g->alg, x->rank > 0 ? x->rank : 1)};
    dim[1] = is_known(node->in[0]) ? dim_int(g->alg, count_nonzero(node->in[0])) : op_unknown_dim(g, node, 0, 1);
    op_result(g, node, 0, DT_I64, 2, dim);
}
