/* Pooling: (b c !h..) -> (b c !h'..); each channel on its own, spatial dimensions never split. Averages are linear. LRN looks at
 * neighbouring channels: (b !c h..) -> (b !c h..). */
#include "op/infer/infer.h"
#include "op/product/product.h"
#include "op/rule/rule.h"
#include "op/table/table.h"

void infer_pool(struct graph *g, struct node *node)
{
    op_need_rank(g, node, 0, 3, MAX_RANK);
    const struct type *x = op_operand(g, node, 0);
    const struct dim *dim[MAX_RANK] = {x->dim[0], x->dim[1]};
    const int64_t *kernel = NULL;
    int n = attr_is_set(node, "kernel_shape") ? attr_ints(g, node, "kernel_shape", &kernel) : 0;
    if (n != x->rank - 2)
        fail("%s: attribute 'kernel_shape' has %d entries, expected %d", node_where(g, node), n, x->rank - 2);
    struct window win = window_read(g, node, n, kernel);
    win.partial = attr_int(node, "ceil_mode") != 0;
    for (int i = 0; i < n; i++)
        dim[2 + i] = window_result(g, node, &win, i, x->dim[2 + i]);
    op_result(g, node, 0, x->dtype, x->rank, dim);
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

struct rule *rule_pool(struct graph *g, const struct node *node)
{
    struct rule *r = rule_new(g, node);
    const struct type *x = &node->in[0]->type, *y = &node->out[0]->type;
    for (int d = 0; d < x->rank; d++) {
        int f = rule_numbered(g, r, d < 2 ? "a" : "h", d, x->dim[d], d < 2 ? 0 : FACTOR_REPLICATED), to = f;
        if (d >= 2)
            to = dim_equals(y->dim[d], 1) ? -1 : rule_numbered(g, r, "y", d, y->dim[d], FACTOR_REPLICATED);
        rule_put(g, &r->in[0], d, 0, f);
        if (to >= 0)
            rule_put(g, &r->out[0], d, 0, to);
    }
    return r;
}

struct rule *rule_maxpool(struct graph *g, const struct node *node)
{
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

void infer_lrn(struct graph *g, struct node *node)
{
    op_need_rank(g, node, 0, 2, MAX_RANK);
    int64_t size = attr_is_set(node, "size") ? attr_int(node, "size") : 0;
    if (size < 1)
        fail("%s: attribute 'size' is %lld, expected a positive number", node_where(g, node), (long long)size);
    infer_same(g, node);
}

struct rule *rule_lrn(struct graph *g, const struct node *node)
{
    return rule_parse(g, node, "(b !c h..) -> (b !c h..)");
}
