/* pool: pooling: (b c y[..]..) -> (b c y..); channels are independent, and result positions split as in a convolution. Averages are linear.
 * LRN uses neighbouring channels: (b !c h..) -> (b !c h..). */
#include "op/infer/infer.h"
#include "op/lower/lower.h"
#include "op/rule/rule.h"
#include "op/spatial/spatial.h"
#include "op/table/table.h"

#include <string.h>

static struct window pool_window(const struct graph *g, const struct node *node)
{
    int spatial = node->in[0]->type.rank - 2;
    const int64_t *kernel = NULL;
    int n = attr_is_set(node, "kernel_shape") ? attr_ints(g, node, "kernel_shape", &kernel) : 0;
    if (n != spatial)
        fail("%s: attribute 'kernel_shape' has %d entries, expected %d", node_where(g, node), n, spatial);
    struct window win = window_read(g, node, n, kernel);
    win.partial = attr_int(node, "ceil_mode") != 0;
    return win;
}

void infer_pool(struct graph *g, struct node *node)
{
    op_need_rank(g, node, 0, 3, MAX_RANK);
    const struct type *x = op_operand(g, node, 0);
    const struct dim *dim[MAX_RANK] = {x->dim[0], x->dim[1]};
    struct window win = pool_window(g, node);
    for (int i = 0; i < win.n; i++)
        dim[2 + i] = window_result(g, node, &win, i, x->dim[2 + i]);
    op_result(g, node, 0, x->dtype, x->rank, dim);
    op_result(g, node, 1, DT_I64, x->rank, dim);
}

void infer_globalpool(struct graph *g, struct node *node)
{
    op_need_rank(g, node, 0, 3, MAX_RANK);
    const struct type *x = op_operand(g, node, 0);
    const struct dim *dim[MAX_RANK];
    for (int d = 0; d < x->rank; d++)
        dim[d] = d < 2 ? x->dim[d] : dim_int(g->alg, 1);
    op_result(g, node, 0, x->dtype, x->rank, dim);
}

/* False if padding counts and the last window exceeds it: only the whole operand determines its count. */
static bool windows_split(const struct node *node)
{
    bool average = strcmp(node->optype, "AveragePool") == 0;
    return node->nout == 1 && !(average && attr_int(node, "ceil_mode") && attr_int(node, "count_include_pad"));
}

/* If sizes are symbols, the padding of a window precedes the rank's elements as zeros: allowed only if an average counts them. */
static bool pool_slides(struct graph *g, const struct node *node, const struct window *win, int i, struct sliding *out)
{
    int64_t pads[2 * MOST_SPATIAL];
    bool average = strcmp(node->optype, "AveragePool") == 0;
    if (!windows_split(node) || !window_slides_over(g, node, win, i, out))
        return false;
    return !average || dim_is_int(out->size, NULL) || attr_int(node, "count_include_pad") ||
        (window_pads(node, win, pads) && pads[i] == 0 && pads[win->n + i] == 0);
}

struct rule *rule_pool(struct graph *g, const struct node *node)
{
    struct rule *r = rule_new(g, node);
    struct window win = pool_window(g, node);
    for (int d = 0; d < 2; d++)
        rule_same_dim(g, r, "a", d, node->in[0]->type.dim[d], 0);
    window_rule(g, node, r, &win, pool_slides);
    return r;
}

void slide_pool(struct graph *g, struct node *node, const struct slide *s)
{
    struct window win = pool_window(g, s->global);
    window_slide(g, node, &win, s);
}

/* Positions count the elements of the whole tensor: if they are needed, the pool runs replicated. */
struct rule *rule_maxpool(struct graph *g, const struct node *node)
{
    if (node_result(node, 1))
        return NULL;
    struct rule *r = rule_pool(g, node);
    r->extremal = 1;
    r->extremum = RED_MAX;
    return r;
}

struct rule *rule_averagepool(struct graph *g, const struct node *node)
{
    struct rule *r = rule_pool(g, node);
    rule_linear(r, 1);
    return r;
}

/* The sum over ranks of each rank's sum, divided by the global count. */
void lower_globalaveragepool(struct lowering *l)
{
    struct value *x = lower_float(l, "wide", l->node->in[0]), *sum = lower_reduce(l, "ReduceSum", "sum", x, 2, x->type.rank);
    struct value *count = lower_extent(l, "count", &x->type, 2, x->type.rank, x->type.dtype);
    lower_result(l, 0, lower_cast(l, "narrow", lower_binary(l, "Div", "mean", sum, count), l->node->out[0]->type.dtype));
}

void infer_lrn(struct graph *g, struct node *node)
{
    op_need_rank(g, node, 0, 2, MAX_RANK);
    int64_t size = attr_is_set(node, "size") ? attr_int(node, "size") : 0;
    if (size < 1)
        fail("%s: attribute 'size' is %lld, expected a positive number", node_where(g, node), (long long)size);
    infer_same(g, node);
}

/* MaxPoolGrad: the result has the size of the pool's operand. */
void infer_maxpoolgrad(struct graph *g, struct node *node)
{
    op_need_rank(g, node, 0, 3, MAX_RANK);
    const struct type *x = op_operand(g, node, 0), *dy = op_operand(g, node, 1);
    op_need_rank(g, node, 1, x->rank, x->rank);
    op_same_dtype(g, node, 0, 1);
    struct window win = pool_window(g, node);
    for (int d = 0; d < x->rank; d++)
        op_same_dim(g, node, d < 2 ? x->dim[d] : window_result(g, node, &win, d - 2, x->dim[d]), dy->dim[d],
                    "the places of the windows and of their gradient");
    infer_same(g, node);
}
