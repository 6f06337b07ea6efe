/* channel_norm_backward: gradients of norms over channels, through their definition by ordinary ops. */
#include "op/backward/backward.h"
#include "op/infer/infer.h"
#include "op/table/table.h"

/* One number per channel, broadcast to x. */
static struct value *by_channel(struct lowering *l, const char *part, int i)
{
    const struct node *node = l->node;
    return lower_unsqueeze(l, part, lower_float(l, part, node->in[i]), 1, node->in[0]->type.rank - 2);
}

static struct value *epsilon_more(struct lowering *l, struct value *x)
{
    struct value *epsilon = lower_scalar(l, "epsilon", DT_F32, attr_float(l->node, "epsilon"));
    return lower_binary(l, "Add", "around", x, lower_cast(l, "epsilon.wide", epsilon, x->type.dtype));
}

/* (x - mean) / deviation * scale + bias, with mean and variance broadcast to x; with their own sizes. */
static void normalise(struct lowering *l, struct value *x, struct value *mean, struct value *variance)
{
    const struct type *type = &l->node->out[0]->type;
    struct value *deviation = lower_unary(l, "Sqrt", "deviation", epsilon_more(l, variance));
    struct value *y = lower_binary(l, "Div", "normal", lower_binary(l, "Sub", "off", x, mean), deviation);
    if (y->type.rank != type->rank || y->type.dim[1] != type->dim[1]) {
        y = lower_reshape(l, "whole", y, type->rank, type->dim);
    }
    struct value *bias = by_channel(l, "bias", 2), *scale = by_channel(l, "scale", 1);
    y = lower_binary(l, "Add", "shifted", lower_binary(l, "Mul", "scaled", y, scale), bias);
    lower_result(l, 0, lower_cast(l, "narrow", y, type->dtype));
}

static void of_statistics(struct lowering *l)
{
    struct value *variance = by_channel(l, "variance", 4), *mean = by_channel(l, "mean", 3); /* in this order with every compiler */
    normalise(l, lower_float(l, "wide", l->node->in[0]), mean, variance);
}

BACK_IS(batchnorm, back_through(b, of_statistics))

static struct value *average(struct lowering *l, const char *part, struct value *x)
{
    return lower_reduce(l, "ReduceMean", part, x, 2, x->type.rank);
}

static void by_its_own(struct lowering *l, struct value *x)
{
    struct value *mean = average(l, "mean", x), *off = lower_binary(l, "Sub", "centred", x, mean);
    normalise(l, x, mean, average(l, "variance", lower_binary(l, "Mul", "square", off, off)));
}

static void of_instance(struct lowering *l)
{
    by_its_own(l, lower_float(l, "wide", l->node->in[0]));
}

BACK_IS(instancenorm, back_through(b, of_instance))

/* [b, groups * c, h..] as [b, groups, c, h..]. */
static void of_group(struct lowering *l)
{
    struct alg *alg = l->g->alg;
    struct value *x = lower_float(l, "wide", l->node->in[0]);
    struct type type = {.dtype = x->type.dtype, .rank = x->type.rank + 1, .dim = {x->type.dim[0]}};
    if (type.rank > MAX_RANK)
        fail("%s: no gradient passes this node: it takes more than %d dimensions", node_where(l->g, l->node), MAX_RANK);
    type.dim[1] = dim_int(alg, attr_int(l->node, "num_groups"));
    type.dim[2] = dim_quotient(alg, x->type.dim[1], type.dim[1]);
    for (int d = 2; d < x->type.rank; d++)
        type.dim[d + 1] = x->type.dim[d];
    by_its_own(l, lower_reshape(l, "groups", x, type.rank, type.dim));
}

BACK_IS(groupnorm, back_through(b, of_group))

/* x / (bias + alpha * mean of squares nearby) ^ beta; the mean is a pool along the channels, which are last. */
static void of_neighbours(struct lowering *l)
{
    const struct node *node = l->node;
    struct graph *g = l->g;
    struct value *x = lower_float(l, "wide", node->in[0]), *square = lower_binary(l, "Mul", "square", x, x);
    int64_t size = attr_int(node, "size"), pads[2] = {(size - 1) / 2, size - 1 - (size - 1) / 2};
    struct type rows = {.dtype = x->type.dtype, .rank = 3, .dim = {x->type.dim[0], x->type.dim[1], dim_int(g->alg, 1)}};
    for (int d = 2; d < x->type.rank; d++)
        rows.dim[2] = dim_mul(g->alg, rows.dim[2], x->type.dim[d]);
    const int64_t turned[] = {0, 2, 1};
    struct value *turn = lower_transpose(l, "channels_last", lower_reshape(l, "flat", square, rows.rank, rows.dim), turned);
    struct node *pool = lower_node(l, "", "AveragePool", "nearby", 1, &turn);
    attr_set_ints(g, pool, "kernel_shape", 1, &size);
    attr_set_ints(g, pool, "pads", 2, pads);
    attr_set_int(pool, "count_include_pad", 1);
    op_infer(g, pool);
    struct value *whole = lower_reshape(l, "whole", lower_transpose(l, "channels_first", pool->out[0], turned), x->type.rank, x->type.dim);
    struct value *alpha = lower_cast(l, "alpha", lower_scalar(l, "alpha", DT_F32, attr_float(node, "alpha")), x->type.dtype);
    struct value *bias = lower_cast(l, "bias", lower_scalar(l, "bias", DT_F32, attr_float(node, "bias")), x->type.dtype);
    struct value *beta = lower_cast(l, "beta", lower_scalar(l, "beta", DT_F32, attr_float(node, "beta")), x->type.dtype);
    struct value *under = lower_binary(l, "Add", "under", lower_binary(l, "Mul", "weighed", whole, alpha), bias);
    struct value *y = lower_binary(l, "Div", "normal", x, lower_binary(l, "Pow", "power", under, beta));
    lower_result(l, 0, lower_cast(l, "narrow", y, node->out[0]->type.dtype));
}

BACK_IS(lrn, back_through(b, of_neighbours))
