/* conv_backward: the gradient of a convolution: of X the transposed convolution; of W a convolution of X by the result's gradient, in which
 * the batch is contracted and strides and dilations are swapped. For a transposed convolution, the reverse. */
#include "op/backward/backward.h"
#include "op/infer/infer.h"
#include "op/spatial/spatial.h"
#include "op/table/table.h"

#include <string.h>

static _Noreturn void fail_unknown(const struct backward *b)
{
    fail("%s: no gradient passes this node: the sizes over which its window slides must be numbers, which --dim sets",
         node_where(b->l.g, b->l.node));
}

/* Padding in numbers, with auto_pad resolved. */
static struct window window_of(const struct backward *b)
{
    const struct node *node = b->l.node;
    const struct type *w = &node->in[1]->type;
    int64_t kernel[MOST_SPATIAL], pads[2 * MOST_SPATIAL];
    for (int i = 0; i < w->rank - 2; i++)
        if (!dim_is_int(w->dim[2 + i], &kernel[i]))
            bug("a window of unknown size");
    struct window win = window_read(b->l.g, node, w->rank - 2, kernel);
    if (!window_pads(node, &win, pads))
        fail_unknown(b);
    memcpy(win.pad, pads, sizeof win.pad);
    return win;
}

/* Elements of X after the last window, which a transposed convolution must add. */
static void find_left_over(const struct backward *b, const struct window *win, int64_t *left)
{
    const struct node *node = b->l.node;
    struct alg *alg = b->l.g->alg;
    for (int i = 0; i < win->n; i++) {
        const struct dim *steps = dim_sub(alg, node->out[0]->type.dim[2 + i], dim_int(alg, 1));
        int64_t reach = window_reach(win, i) - win->pad[i] - win->pad[win->n + i];
        const struct dim *made = dim_add(alg, dim_mul(alg, steps, dim_int(alg, win->stride[i])), dim_int(alg, reach));
        if (!dim_is_int(dim_sub(alg, node->in[0]->type.dim[2 + i], made), &left[i]))
            fail_unknown(b);
    }
}

static void set_window(struct backward *b, struct node *node, const struct window *win, const int64_t *stride, const int64_t *dilation)
{
    attr_set_ints(b->l.g, node, "strides", win->n, stride);
    attr_set_ints(b->l.g, node, "dilations", win->n, dilation);
    attr_set_ints(b->l.g, node, "pads", 2 * win->n, win->pad);
    attr_set_int(node, "group", attr_int(b->l.node, "group"));
}

static struct value *gradient_of_x(struct backward *b, const struct window *win)
{
    int64_t left[MOST_SPATIAL];
    find_left_over(b, win, left);
    struct node *node = back_node(b, "ConvTranspose", 2, (struct value *[]){back_dy(b), b->l.node->in[1]});
    set_window(b, node, win, win->stride, win->dilation);
    attr_set_ints(b->l.g, node, "output_padding", win->n, left);
    return back_infer(b, node);
}

/* [N, G*C, D..] as [C, G*N, D..]. */
static struct value *channels_first(struct backward *b, struct value *x, int64_t groups)
{
    struct alg *alg = b->l.g->alg;
    struct type apart = x->type, joined = x->type;
    int perm[MAX_RANK] = {2, 1, 0}, rank = x->type.rank;
    if (rank + 1 > MAX_RANK)
        fail("%s: no gradient passes this node: it takes more than %d dimensions", node_where(b->l.g, b->l.node), MAX_RANK);
    apart.rank = rank + 1;
    apart.dim[1] = dim_int(alg, groups);
    apart.dim[2] = dim_quotient(alg, x->type.dim[1], apart.dim[1]);
    for (int d = 2; d < rank; d++) {
        apart.dim[d + 1] = x->type.dim[d];
        perm[d + 1] = d + 1;
    }
    joined.dim[0] = apart.dim[2];
    joined.dim[1] = dim_mul(alg, apart.dim[1], x->type.dim[0]);
    return back_reshape(b, back_transpose(b, back_reshape(b, x, &apart), perm), &joined);
}

static struct value *exchanged(struct backward *b, struct value *x)
{
    int perm[MAX_RANK] = {1, 0};
    for (int d = 2; d < x->type.rank; d++)
        perm[d] = d;
    return back_transpose(b, x, perm);
}

/* Removes the positions of W that the elements after the last window produce. */
static struct value *cut_to(struct backward *b, struct value *x, const struct type *w)
{
    struct alg *alg = b->l.g->alg;
    const struct dim *start[MAX_RANK], *stop[MAX_RANK], *axis[MAX_RANK], *step[MAX_RANK];
    int n = w->rank - 2;
    struct node *node = back_node(b, "Slice", 1, &x);
    for (int i = 0; i < n; i++) {
        start[i] = dim_int(alg, 0);
        stop[i] = w->dim[2 + i];
        axis[i] = dim_int(alg, 2 + i);
        step[i] = dim_int(alg, 1);
    }
    attr_set_dims(b->l.g, node, "starts", n, start);
    attr_set_dims(b->l.g, node, "ends", n, stop);
    attr_set_dims(b->l.g, node, "axes", n, axis);
    attr_set_dims(b->l.g, node, "steps", n, step);
    return back_infer(b, node);
}

/* The gradient of W for the convolution from x to y, from x and y's gradient; windows slide over positions of y. */
static struct value *gradient_of_w(struct backward *b, const struct window *win, struct value *x, struct value *y)
{
    for (int i = 0; i < win->n; i++)
        if (!dim_is_int(y->type.dim[2 + i], NULL))
            fail_unknown(b);
    x = channels_first(b, x, attr_int(b->l.node, "group"));
    struct node *node = back_node(b, "Conv", 2, (struct value *[]){x, exchanged(b, y)});
    set_window(b, node, win, win->dilation, win->stride);
    return exchanged(b, cut_to(b, back_infer(b, node), &b->l.node->in[1]->type));
}

static void back_to_bias(struct backward *b)
{
    struct value *g = back_dy(b);
    if (back_wants(b, 2))
        back_to(b, 2, back_sum(b, back_sum(b, g, 2, g->type.rank, false), 0, 1, false));
}

void backward_conv(struct backward *b)
{
    struct window win = window_of(b);
    if (back_wants(b, 0))
        back_to(b, 0, gradient_of_x(b, &win));
    if (back_wants(b, 1))
        back_to(b, 1, gradient_of_w(b, &win, b->l.node->in[0], back_dy(b)));
    back_to_bias(b);
}

/* A transposed convolution is the gradient of a convolution from Y to X: that convolution is the gradient of X. */
void backward_convtranspose(struct backward *b)
{
    const struct node *node = b->l.node;
    const char *mode = attr_string(node, "auto_pad");
    if (attr_is_set(node, "output_shape") || strncmp(mode, "SAME", 4) == 0)
        fail("%s: no gradient passes this node: the gradient of auto_pad and output_shape is not supported", node_where(b->l.g, node));
    struct window win = window_of(b);
    if (back_wants(b, 0)) {
        struct node *conv = back_node(b, "Conv", 2, (struct value *[]){back_dy(b), node->in[1]});
        set_window(b, conv, &win, win.stride, win.dilation);
        back_to(b, 0, back_infer(b, conv));
    }
    if (back_wants(b, 1))
        back_to(b, 1, gradient_of_w(b, &win, back_dy(b), node->in[0]));
    back_to_bias(b);
}
