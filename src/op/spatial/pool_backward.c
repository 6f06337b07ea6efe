/* pool_backward: gradients of pools. An average is linear, one dimension at a time: applied to an identity matrix, it gives each result
 * position's weight for each element. For a maximum, the first maximal element gets the whole gradient. */
#include "op/backward/backward.h"
#include "op/infer/infer.h"
#include "op/lower/lower.h"
#include "op/op.h"
#include "op/spatial/spatial.h"
#include "op/table/table.h"

#include <math.h>
#include <string.h>

/* From an attribute with one or two entries per spatial dimension: the entries of one dimension. */
static void take_entries(const struct backward *b, struct node *to, const char *name, int n, int at)
{
    const int64_t *all = NULL;
    int64_t own[2];
    int count = attr_is_set(b->l.node, name) ? attr_ints(b->l.g, b->l.node, name, &all) : 0;
    if (count != n && count != 2 * n)
        return;
    own[0] = all[at];
    own[1] = count == n ? 0 : all[n + at];
    attr_set_ints(b->l.g, to, name, count / n, own);
}

/* The average pool of an identity matrix along spatial dimension i: [elements, places]. */
static struct value *averages_along(struct backward *b, int i)
{
    static const char *const entries[] = {"kernel_shape", "strides", "dilations", "pads"};
    const struct node *node = b->l.node;
    const struct type *x = &node->in[0]->type;
    struct value *eye = lower_unsqueeze(&b->l, "batch", back_unit(b, x->dim[2 + i], x->dtype), 0, 1);
    struct node *pool = back_node(b, "AveragePool", 1, &eye);
    for (size_t k = 0; k < sizeof entries / sizeof *entries; k++)
        take_entries(b, pool, entries[k], x->rank - 2, i);
    attr_set_string(pool, "auto_pad", attr_string(node, "auto_pad"));
    attr_set_int(pool, "ceil_mode", attr_int(node, "ceil_mode"));
    attr_set_int(pool, "count_include_pad", attr_int(node, "count_include_pad"));
    return lower_squeeze(&b->l, "averages", back_infer(b, pool), 0);
}

void backward_averagepool(struct backward *b)
{
    struct value *g = back_dy(b);
    for (int i = 0; i < g->type.rank - 2; i++)
        g = back_along(b, g, 2 + i, averages_along(b, i));
    back_to(b, 0, g);
}

BACK_IS(globalaveragepool, back_through(b, lower_globalaveragepool))

static void greatest(struct lowering *l)
{
    lower_result(l, 0, lower_reduce(l, "ReduceMax", "greatest", l->node->in[0], 2, l->node->in[0]->type.rank));
}

BACK_IS(globalmaxpool, back_through(b, greatest))

void backward_maxpool(struct backward *b)
{
    const struct node *node = b->l.node;
    struct node *made = lower_node(&b->l, "tpc", "MaxPoolGrad", "MaxPoolGrad", 2, (struct value *[]){node->in[0], back_dy(b)});
    attr_copy(made, node);
    op_infer(b->l.g, made);
    back_to(b, 0, made->out[0]);
}

/* ---- norms of windows -------------------------------------------------------------------------------------------------------------- */

static struct value *number(struct lowering *l, const char *part, double x)
{
    return lower_scalar(l, part, DT_F32, x);
}

static struct value *powers(struct lowering *l)
{
    struct value *x = lower_unary(l, "Abs", "abs", lower_float(l, "wide", l->node->in[0]));
    return lower_binary(l, "Pow", "power", x, lower_cast(l, "p", number(l, "p", (double)attr_int(l->node, "p")), x->type.dtype));
}

static void set_root(struct lowering *l, struct value *sum)
{
    struct value *p = lower_cast(l, "inverse", number(l, "inverse", 1.0 / (double)attr_int(l->node, "p")), sum->type.dtype);
    lower_result(l, 0, lower_cast(l, "narrow", lower_binary(l, "Pow", "root", sum, p), l->node->out[0]->type.dtype));
}

static void global_norm(struct lowering *l)
{
    struct value *all = powers(l);
    set_root(l, lower_reduce(l, "ReduceSum", "sum", all, 2, all->type.rank));
}

BACK_IS(globallppool, back_through(b, global_norm))

/* An average that counts all elements of a window, times their number, is their sum. */
static void window_norm(struct lowering *l)
{
    const struct node *node = l->node;
    struct value *all = powers(l);
    struct node *pool = lower_node(l, "", "AveragePool", "average", 1, &all);
    const int64_t *kernel;
    double places = 1;
    int n = attr_ints(l->g, node, "kernel_shape", &kernel);
    for (int i = 0; i < n; i++)
        places *= (double)kernel[i];
    attr_copy(pool, node);
    attr_set_int(pool, "count_include_pad", 1);
    op_infer(l->g, pool);
    struct value *count = lower_cast(l, "places", number(l, "places", places), all->type.dtype);
    set_root(l, lower_binary(l, "Mul", "sum", pool->out[0], count));
}

void backward_lppool(struct backward *b)
{
    if (attr_int(b->l.node, "ceil_mode"))
        fail("%s: no gradient passes this node: the gradient of ceil_mode is not supported", node_where(b->l.g, b->l.node));
    back_through(b, window_norm);
}
