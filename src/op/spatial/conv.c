/* conv: convolution over any number of spatial dimensions: (b c h..)(m c k..) +(m) -> (b m h'..), and its transpose, whose weight is (c m
 * k..).
 *
 * Input channels are contracted, output channels are columns. With groups both are (group, channels of a group) and the attribute `group`
 * follows the split. Result positions may be split: a rank reads the elements of their windows, the outer ones from its neighbours. A 1 x 1
 * window is pointwise. */
#include "op/infer/infer.h"
#include "op/rule/rule.h"
#include "op/spatial/spatial.h"
#include "op/table/table.h"

#include <string.h>

static struct window window_of(const struct graph *g, const struct node *node)
{
    const struct type *w = op_operand(g, node, 1);
    int64_t kernel[MOST_SPATIAL];
    for (int i = 0; i < w->rank - 2; i++)
        if (!dim_is_int(w->dim[2 + i], &kernel[i]))
            fail("%s: the window of weight '%s' must have known positive sizes but it is %s", node_where(g, node), node->in[1]->name,
                 type_str(g->arena, w));
    return window_read(g, node, w->rank - 2, kernel);
}

void infer_conv(struct graph *g, struct node *node)
{
    op_need_rank(g, node, 0, 3, MAX_RANK);
    const struct type *x = op_operand(g, node, 0), *w = op_operand(g, node, 1);
    op_need_rank(g, node, 1, x->rank, x->rank);
    op_same_dtype(g, node, 0, 1);
    int64_t group = attr_int(node, "group");
    if (group < 0)
        fail("%s: attribute 'group' is %lld, expected a positive number", node_where(g, node), (long long)group);
    op_same_dim(g, node, x->dim[1], dim_mul(g->alg, w->dim[1], dim_int(g->alg, group)), "the channels of X and W");
    if (node_operand(node, 2)) {
        op_need_rank(g, node, 2, 1, 1);
        op_same_dim(g, node, op_operand(g, node, 2)->dim[0], w->dim[0], "the channels of B and W");
    }
    struct window win = window_of(g, node);
    const struct dim *out[MAX_RANK] = {x->dim[0], w->dim[0]};
    for (int i = 0; i < win.n; i++)
        out[2 + i] = window_result(g, node, &win, i, x->dim[2 + i]);
    op_result(g, node, 0, x->dtype, x->rank, out);
}

/* Sizes of the transpose: those from which a convolution with this window gives X's, as far as strides determine them. */
static const struct dim *transposed_size(struct graph *g, const struct node *node, const struct window *win, int i, const int64_t *given,
                                         const int64_t *more)
{
    struct alg *alg = g->alg;
    const char *mode = attr_string(node, "auto_pad");
    const struct dim *x = node->in[0]->type.dim[2 + i], *stride = dim_int(alg, win->stride[i]);
    if (given)
        return dim_int(alg, given[i]);
    if (strcmp(mode, "SAME_UPPER") == 0 || strcmp(mode, "SAME_LOWER") == 0)
        return dim_mul(alg, x, stride);
    int64_t pads = strcmp(mode, "VALID") == 0 ? 0 : win->pad[i] + win->pad[win->n + i];
    int64_t rest = (more ? more[i] : 0) + window_reach(win, i) - pads;
    return dim_add(alg, dim_mul(alg, dim_sub(alg, x, dim_int(alg, 1)), stride), dim_int(alg, rest));
}

/* An attribute with one size per spatial dimension; no entries if it is not given. */
static const int64_t *sizes_given(const struct graph *g, const struct node *node, const char *attr, int n)
{
    const int64_t *at = NULL;
    int count = attr_is_set(node, attr) ? attr_ints(g, node, attr, &at) : 0;
    if (count == 0)
        return NULL;
    at += count == n + 2 ? 2 : 0; /* older exporters: batch and channels first */
    if (count != n && count != n + 2)
        fail("%s: attribute '%s' has %d entries, expected %d", node_where(g, node), attr, count, n);
    for (int i = 0; i < n; i++)
        if (at[i] < 0 || at[i] > INT32_MAX)
            fail("%s: attribute '%s' has an entry %lld, which is out of range", node_where(g, node), attr, (long long)at[i]);
    return at;
}

void infer_convtranspose(struct graph *g, struct node *node)
{
    op_need_rank(g, node, 0, 3, MAX_RANK);
    const struct type *x = op_operand(g, node, 0), *w = op_operand(g, node, 1);
    op_need_rank(g, node, 1, x->rank, x->rank);
    op_same_dtype(g, node, 0, 1);
    op_same_dim(g, node, x->dim[1], w->dim[0], "the channels of X and W");
    int64_t group = attr_int(node, "group"), size, channels;
    if (group < 0)
        fail("%s: attribute 'group' is %lld, expected a positive number", node_where(g, node), (long long)group);
    if (group && dim_is_int(x->dim[1], &channels) && channels % group != 0)
        fail("%s: attribute 'group' is %lld, expected a divisor of the %lld channels of X", node_where(g, node), (long long)group,
             (long long)channels);
    const struct dim *out[MAX_RANK] = {x->dim[0], dim_mul(g->alg, w->dim[1], dim_int(g->alg, group))};
    if (node_operand(node, 2)) {
        op_need_rank(g, node, 2, 1, 1);
        op_same_dim(g, node, op_operand(g, node, 2)->dim[0], out[1], "the channels of B and W");
    }
    struct window win = window_of(g, node);
    const int64_t *given = sizes_given(g, node, "output_shape", win.n), *more = sizes_given(g, node, "output_padding", win.n);
    for (int i = 0; i < win.n; i++) {
        out[2 + i] = transposed_size(g, node, &win, i, given, more);
        if (dim_is_int(out[2 + i], &size) && size < 0)
            fail("%s: the pads take more than spatial dimension %d has, which leaves %lld", node_where(g, node), i, (long long)size);
    }
    op_result(g, node, 0, x->dtype, x->rank, out);
}

/* ---- rule --------------------------------------------------------------------------------------------------------------------------- */

/* The padding of the transpose in numbers, with output_shape and auto_pad resolved; false: sizes are unknown. */
static bool transposed_pads(const struct graph *g, const struct node *node, const struct window *win, int64_t *pads, int64_t *more)
{
    const char *mode = attr_string(node, "auto_pad");
    bool upper = strcmp(mode, "SAME_UPPER") == 0, same = upper || strcmp(mode, "SAME_LOWER") == 0;
    const int64_t *stated = sizes_given(g, node, "output_shape", win->n), *given = sizes_given(g, node, "output_padding", win->n);
    for (int i = 0; i < win->n; i++) {
        int64_t size = 1, result = win->stride[i], reach = window_reach(win, i);
        more[i] = given ? given[i] : 0;
        pads[i] = strcmp(mode, "VALID") == 0 ? 0 : win->pad[i];
        pads[win->n + i] = strcmp(mode, "VALID") == 0 ? 0 : win->pad[win->n + i];
        if (!stated && !same)
            continue;
        if (stated && (!dim_is_int(node->in[0]->type.dim[2 + i], &size) || !dim_is_int(node->out[0]->type.dim[2 + i], &result)))
            return false;
        int64_t total = (size - 1) * win->stride[i] + more[i] + reach - result;
        if (total < 0)
            return false;
        pads[i] = upper ? total / 2 : total - total / 2;
        pads[win->n + i] = total - pads[i];
    }
    return true;
}

/* A result element reads the operand elements whose windows cover it. If windows leave gaps, it is assumed to read one anyway. */
static bool transposed_slides(struct graph *g, const struct node *node, const struct window *win, int i, struct sliding *out)
{
    int64_t pads[2 * MOST_SPATIAL], more[MOST_SPATIAL], size, places, reach = window_reach(win, i);
    if (!transposed_pads(g, node, win, pads, more) || !dim_is_int(node->in[0]->type.dim[2 + i], &size) ||
        !dim_is_int(node->out[0]->type.dim[2 + i], &places) || places < 2 || size < 1)
        return false;
    reach = reach < win->stride[i] ? win->stride[i] : reach;
    *out = (struct sliding){
        .stride = 1, .reach = reach, .pad = reach - 1 - pads[i], .size = node->in[0]->type.dim[2 + i], .per = win->stride[i]};
    return out->pad >= 0;
}

void slide_conv(struct graph *g, struct node *node, const struct slide *s)
{
    struct window win = window_of(g, s->global);
    window_slide(g, node, &win, s);
}

/* The padding is the offset of the rank's first result element from where its first operand element contributes; output_padding adds what
 * its windows lack at the end. */
void slide_convtranspose(struct graph *g, struct node *node, const struct slide *s)
{
    struct window win = window_of(g, s->global);
    int i = s->dim - 2;
    int64_t pads[2 * MOST_SPATIAL], more[MOST_SPATIAL], reach = window_reach(&win, i);
    require(transposed_pads(g, s->global, &win, pads, more));
    int64_t before = pads[i] + s->windows.lo - s->elements.lo * win.stride[i];
    int64_t behind = (s->elements.hi - s->elements.lo - 1) * win.stride[i] + reach - before - (s->windows.hi - s->windows.lo);
    require(before >= 0);
    pads[i] = before;
    pads[win.n + i] = behind < 0 ? 0 : behind;
    more[i] = behind < 0 ? -behind : 0;
    attr_set_ints(g, node, "pads", 2 * win.n, pads);
    attr_set_ints(g, node, "output_padding", win.n, more);
    attr_set_string(node, "auto_pad", "NOTSET");
    node_attr(node, "output_shape")->set = false;
}

static void put_spatial(struct graph *g, const struct node *node, struct rule *r, bool transposed)
{
    struct window win = window_of(g, node);
    window_rule(g, node, r, &win, transposed ? transposed_slides : window_slides_over);
    for (int i = 0; i < win.n; i++)
        rule_put(g, &r->in[1], 2 + i, 0, rule_numbered(g, r, "k", i, node->in[1]->type.dim[2 + i], FACTOR_REPLICATED));
}

static void put_group(struct graph *g, struct rule *r, int group)
{
    rule_put(g, &r->in[0], 1, 0, group);
    rule_put(g, &r->in[1], 0, 0, group);
    rule_put(g, &r->out[0], 1, 0, group);
    r->size[r->nsize++] = (struct rule_size){.attr = "group", .part = {.n = 1, .factor = {group}}};
}

/* Batch b, groups g and channels c and m of a group; X is (b (g c) ..), W (first second ..) after the groups, Y (b (g m) ..). */
static struct rule *conv_rule(struct graph *g, const struct node *node, const struct dim *c_size, const struct dim *m_size, bool transposed)
{
    struct rule *r = rule_new(g, node);
    int64_t groups = attr_int(node, "group");
    bool bias = node_operand(node, 2);
    int b = rule_factor(g, r, "b", node->in[0]->type.dim[0], 0), group = -1;
    rule_put(g, &r->in[0], 0, 0, b);
    rule_put(g, &r->out[0], 0, 0, b);
    if (groups > 1)
        put_group(g, r, group = rule_factor(g, r, "g", dim_int(g->alg, groups), 0));
    int c = rule_factor(g, r, "c", c_size, FACTOR_CONTRACTED), m = rule_factor(g, r, "m", m_size, 0);
    r->factor[c].red = RED_SUM;
    if (group >= 0 && !transposed) { /* (g m): all channels of some groups, or some of one, like query heads */
        r->query_outer = group;
        r->query_inner = m;
    }
    rule_put(g, &r->in[0], 1, 0, c);
    rule_put(g, &r->in[1], 0, 0, transposed ? c : m);
    rule_put(g, &r->in[1], 1, 0, transposed ? m : c);
    rule_put(g, &r->out[0], 1, 0, m);
    put_spatial(g, node, r, transposed);
    if (bias) {
        rule_addend(r, 2);
        if (group >= 0)
            rule_put(g, &r->in[2], 0, 0, group);
        rule_put(g, &r->in[2], 0, 0, m);
    }
    rule_linear(r, bias ? 1 | 4 : 1);
    rule_linear(r, bias ? 2 | 4 : 2);
    return r;
}

static const struct dim *of_group(struct graph *g, const struct node *node, const struct dim *channels)
{
    int64_t groups = attr_int(node, "group");
    return groups > 0 ? dim_quotient(g->alg, channels, dim_int(g->alg, groups)) : NULL;
}

struct rule *rule_conv(struct graph *g, const struct node *node)
{
    const struct type *w = &node->in[1]->type;
    const struct dim *columns = of_group(g, node, w->dim[0]);
    return columns ? conv_rule(g, node, w->dim[1], columns, false) : NULL;
}

struct rule *rule_convtranspose(struct graph *g, const struct node *node)
{
    const struct type *w = &node->in[1]->type;
    const struct dim *rows = of_group(g, node, w->dim[0]);
    return rows ? conv_rule(g, node, rows, w->dim[1], true) : NULL;
}
