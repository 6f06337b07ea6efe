/* Normalisations over the trailing dimensions: (a.. !h..)(!h..)(!h..) -> (a.. !h..), statistics (a.. 1..). A residual sum may be part of
 * the op (Skip...): its operands and its extra result have the factors of X. */
#include "op/op.h"
#include "op/table.h"

static int norm_axis(const struct graph *g, const struct node *node, int rank)
{
    return op_axis(g, node, attr_int(node, "axis"), rank);
}

/* Scale and bias are broadcast to the normalised dimensions and must not be larger. */
static void check_scale(struct graph *g, const struct node *node, int i, const struct type *x)
{
    if (i >= node->nin || !node->in[i])
        return;
    const struct type *scale = op_operand(g, node, i);
    op_need_rank(g, node, i, 0, x->rank);
    for (int d = 0; d < scale->rank; d++)
        if (!dim_equals(scale->dim[d], 1))
            op_same_dim(g, node, x->dim[x->rank - scale->rank + d], scale->dim[d], "the scale or bias and X");
}

/* The statistics have X's dimensions before the axis, then ones. */
static void infer_statistics(struct graph *g, struct node *node, int first, const struct type *x, int axis)
{
    const struct dim *dim[MAX_RANK];
    for (int d = 0; d < x->rank; d++)
        dim[d] = d < axis ? x->dim[d] : dim_int(g->alg, 1);
    for (int i = first; i < node->nout && i < first + 2; i++)
        op_result(g, node, i, DT_F32, x->rank, dim);
}

void infer_layernorm(struct graph *g, struct node *node)
{
    op_need_rank(g, node, 0, 1, MAX_RANK);
    const struct type *x = op_operand(g, node, 0);
    int axis = norm_axis(g, node, x->rank);
    for (int i = 1; i < node->nin; i++)
        check_scale(g, node, i, x);
    /* With mixed precision the result has the type of the scale. */
    enum dtype dtype = node->nin > 1 && node->in[1] ? op_operand(g, node, 1)->dtype : x->dtype;
    op_result(g, node, 0, dtype, x->rank, x->dim);
    infer_statistics(g, node, 1, x, axis);
}

void infer_rmsnorm(struct graph *g, struct node *node)
{
    infer_layernorm(g, node);
}

/* The skip operand has X's shape; its batch dimension may be 1 or missing. */
void infer_skiprmsnorm(struct graph *g, struct node *node)
{
    op_need_rank(g, node, 0, 2, 3);
    const struct type *x = op_operand(g, node, 0);
    for (int i = 1; i < node->nin; i++)
        check_scale(g, node, i, x);
    op_same_dtype(g, node, 0, 1);
    op_result(g, node, 0, x->dtype, x->rank, x->dim);
    infer_statistics(g, node, 1, x, x->rank - 1);
    op_result(g, node, 3, x->dtype, x->rank, x->dim);
}

/* ---- rules --------------------------------------------------------------------------------------------------------------------------- */

static struct rule *norm_rule(struct graph *g, const struct node *node, int axis, int *factor)
{
    struct rule *r = rule_new(g, node);
    const struct type *x = &node->in[0]->type;
    for (int d = 0; d < x->rank; d++) {
        char name[12];
        snprintf(name, sizeof name, "%c%d", d < axis ? 'a' : 'h', d);
        factor[d] = rule_factor(g, r, name, x->dim[d], d < axis ? 0 : FACTOR_WHOLE);
        rule_put(g, &r->in[0], d, 0, factor[d]);
    }
    for (int i = 1; i < node->nin; i++)
        if (node->in[i])
            rule_broadcast(g, r, &r->in[i], &node->in[i]->type, x->rank, factor);
    for (int i = 0; i < node->nout; i++)
        if (node->out[i])
            rule_broadcast(g, r, &r->out[i], &node->out[i]->type, x->rank, factor);
    return r;
}

struct rule *rule_layernorm(struct graph *g, const struct node *node)
{
    int factor[MAX_RANK];
    return norm_rule(g, node, norm_axis(g, node, node->in[0]->type.rank), factor);
}

struct rule *rule_skiprmsnorm(struct graph *g, const struct node *node)
{
    int factor[MAX_RANK];
    return norm_rule(g, node, node->in[0]->type.rank - 1, factor);
}
