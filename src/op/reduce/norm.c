/* norm: normalisations over the trailing dimensions: (a.. h..)(h..)(h..) -> (a.. h..), statistics (a.. 1..). A residual sum may be part of
 * the op (Skip...): its operands and its extra result have the factors of X. */
#include "op/infer/infer.h"
#include "op/lower/lower.h"
#include "op/rule/rule.h"
#include "op/table/table.h"

static int norm_axis(const struct graph *g, const struct node *node, int rank)
{
    return op_axis(g, node, attr_int(node, "axis"), rank);
}

/* Scale and bias broadcast to the normalised dimensions and must not be larger. */
static void check_norm_scale(struct graph *g, const struct node *node, int i, const struct type *x)
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
        check_norm_scale(g, node, i, x);
    /* With mixed precision the result has the type of the scale. */
    enum dtype dtype = node_operand(node, 1) ? op_operand(g, node, 1)->dtype : x->dtype;
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
    if (node_result(node, 1))
        fail("%s: the output mean is not computed by a norm without a mean", node_where(g, node));
    const struct type *x = op_operand(g, node, 0);
    for (int i = 1; i < node->nin; i++)
        check_norm_scale(g, node, i, x);
    op_same_dtype(g, node, 0, 1);
    op_result(g, node, 0, x->dtype, x->rank, x->dim);
    infer_statistics(g, node, 1, x, x->rank - 1);
    op_result(g, node, 3, x->dtype, x->rank, x->dim);
}

/* The gradient of X, and addends of the gradient of the scale, which is their sum over the rows. */
void infer_normgrad(struct graph *g, struct node *node)
{
    op_need_rank(g, node, 0, 1, MAX_RANK);
    const struct type *x = op_operand(g, node, 0), *dy = op_operand(g, node, 2);
    norm_axis(g, node, x->rank);
    check_norm_scale(g, node, 1, x);
    op_need_rank(g, node, 2, x->rank, x->rank);
    op_same_dtype(g, node, 0, 1);
    op_same_dtype(g, node, 0, 2);
    for (int d = 0; d < x->rank; d++)
        op_same_dim(g, node, x->dim[d], dy->dim[d], "X and the gradient of the norm");
    for (int i = 0; i < 2; i++)
        op_result(g, node, i, x->dtype, x->rank, x->dim);
}

/* ---- rules --------------------------------------------------------------------------------------------------------------------------- */

/* The dimensions from the axis on are normalised. */
uint32_t over_normalised(struct graph *g, const struct node *node)
{
    return ~UINT32_C(0) << norm_axis(g, node, node->in[0]->type.rank);
}

/* ---- over split dimensions: moments are summed over the ranks, in float64, in one reduction -------------------------- */

struct norm_sizes {
    struct value *x, *scale, *bias;
    int axis;
    bool centred;
    int inverse;
}; /* inverse: the result that is 1 / deviation */

/* The sum and the sum of squares in one value, so that they are reduced together; sets *mean only if it is needed. */
static struct value *mean_square(struct lowering *l, const struct norm_sizes *n, struct value *wide, struct value **mean)
{
    int rank = wide->type.rank;
    struct value *count = lower_extent(l, "count", &wide->type, n->axis, rank, DT_F64);
    struct value *squares = lower_reduce(l, "ReduceSum", "squares", lower_binary(l, "Mul", "square", wide, wide), n->axis, rank);
    if (!mean)
        return lower_binary(l, "Div", "mean_square", squares, count);
    struct value *both[2] = {lower_reduce(l, "ReduceSum", "sum", wide, n->axis, rank), squares}, *moment[2];
    lower_together(l, rank - 1, 2, both, moment);
    *mean = lower_binary(l, "Div", "mean", moment[0], count);
    return lower_binary(l, "Div", "mean_square", moment[1], count);
}

static void lower_norm(struct lowering *l, const struct norm_sizes *n)
{
    const struct node *node = l->node;
    struct value *x = lower_float(l, "wide", n->x), *wide = lower_cast(l, "double", x, DT_F64), *mean = NULL;
    struct value *variance = mean_square(l, n, wide, n->centred ? &mean : NULL);
    if (mean) {
        struct value *square = lower_binary(l, "Mul", "square_of_mean", mean, mean);
        variance = lower_binary(l, "Max", "variance", lower_binary(l, "Sub", "difference", variance, square),
                                lower_scalar(l, "none", DT_F64, 0));
        mean = lower_cast(l, "mean.narrow", mean, x->type.dtype);
        x = lower_binary(l, "Sub", "centred", x, mean);
    }
    struct value *around = lower_binary(l, "Add", "guarded", variance, lower_scalar(l, "epsilon", DT_F64, attr_float(node, "epsilon")));
    struct value *inverse = lower_unary(l, "Reciprocal", "inverse", lower_unary(l, "Sqrt", "deviation", around));
    inverse = lower_cast(l, "inverse.narrow", inverse, x->type.dtype);
    struct value *y = lower_binary(l, "Mul", "normal", x, inverse);
    if (n->scale)
        y = lower_binary(l, "Mul", "scaled", y, lower_cast(l, "scale", n->scale, x->type.dtype));
    if (n->bias)
        y = lower_binary(l, "Add", "biased", y, lower_cast(l, "bias", n->bias, x->type.dtype));
    lower_result(l, 0, lower_cast(l, "narrow", y, node->out[0]->type.dtype));
    if (mean && n->inverse - 1 < node->nout && node->out[n->inverse - 1])
        lower_result(l, n->inverse - 1, lower_cast(l, "mean.f32", mean, DT_F32));
    if (n->inverse < node->nout && node->out[n->inverse])
        lower_result(l, n->inverse, lower_cast(l, "inverse.f32", inverse, DT_F32));
}

void lower_layernorm(struct lowering *l)
{
    const struct node *node = l->node;
    struct norm_sizes n = {.x = node->in[0], .scale = node->in[1], .bias = node_operand(node, 2), .centred = true, .inverse = 2};
    n.axis = norm_axis(l->g, node, n.x->type.rank);
    lower_norm(l, &n);
}

void lower_rmsnorm(struct lowering *l)
{
    const struct node *node = l->node;
    struct norm_sizes n = {.x = node->in[0], .scale = node->in[1], .inverse = 1};
    n.axis = norm_axis(l->g, node, n.x->type.rank);
    lower_norm(l, &n);
}

void lower_skiprmsnorm(struct lowering *l)
{
    const struct node *node = l->node;
    struct value *sum = lower_binary(l, "Add", "skip", node->in[0], node->in[1]);
    if (node_operand(node, 3))
        sum = lower_binary(l, "Add", "sum", sum, node->in[3]);
    struct norm_sizes n = {.x = sum, .scale = node->in[2], .axis = sum->type.rank - 1, .inverse = 2};
    lower_norm(l, &n);
    if (node_result(node, 3))
        lower_result(l, 3, sum);
}
