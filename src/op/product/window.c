/* Windows that slide over spatial dimensions, of convolution and pooling: attributes and the number of places a window has. */
#include "op/product/product.h"

#include <string.h>

/* An attribute of n numbers of at least `least`, or all of them `otherwise`. */
static void window_attr(const struct graph *g, const struct node *node, const char *name, int n, int64_t least, int64_t otherwise,
                        int64_t *out)
{
    const int64_t *at = NULL;
    int count = attr_is_set(node, name) ? attr_ints(g, node, name, &at) : 0;
    if (count != 0 && count != n)
        fail("%s: attribute '%s' has %d entries, expected %d", node_where(g, node), name, count, n);
    for (int i = 0; i < n; i++) {
        out[i] = count ? at[i] : otherwise;
        if (out[i] < least || out[i] > INT32_MAX)
            fail("%s: attribute '%s' has an entry %lld, which is out of range", node_where(g, node), name, (long long)out[i]);
    }
}

struct window window_read(const struct graph *g, const struct node *node, int n, const int64_t *kernel)
{
    struct window win = {.n = n};
    for (int i = 0; i < n; i++) {
        win.kernel[i] = kernel[i];
        if (kernel[i] < 1 || kernel[i] > INT32_MAX)
            fail("%s: the window has size %lld along spatial dimension %d, expected a positive number", node_where(g, node),
                 (long long)kernel[i], i);
    }
    window_attr(g, node, "strides", n, 1, 1, win.stride);
    window_attr(g, node, "dilations", n, 1, 1, win.dilation);
    window_attr(g, node, "pads", 2 * n, 0, 0, win.pad);
    return win;
}

/* One place more for what is left over, unless that window would begin behind the end. */
static const struct dim *with_partial(struct alg *alg, const struct window *win, int i, const struct dim *extent, const struct dim *room)
{
    const struct dim *stride = dim_int(alg, win->stride[i]), *one = dim_int(alg, 1);
    const struct dim *up = dim_div(alg, dim_add(alg, room, dim_int(alg, win->stride[i] - 1)), stride);
    const struct dim *last = dim_div(alg, dim_add(alg, extent, dim_int(alg, win->pad[i] - 1)), stride);
    return dim_add(alg, dim_min(alg, up, last), one);
}

const struct dim *window_result(struct graph *g, const struct node *node, const struct window *win, int i, const struct dim *extent)
{
    struct alg *alg = g->alg;
    const char *mode = attr_string(node, "auto_pad");
    const struct dim *stride = dim_int(alg, win->stride[i]), *one = dim_int(alg, 1);
    if (strcmp(mode, "SAME_UPPER") == 0 || strcmp(mode, "SAME_LOWER") == 0)
        return dim_div(alg, dim_add(alg, extent, dim_int(alg, win->stride[i] - 1)), stride);
    int64_t pads = strcmp(mode, "VALID") == 0 ? 0 : win->pad[i] + win->pad[win->n + i], least;
    const struct dim *room = dim_add(alg, extent, dim_int(alg, pads - (win->kernel[i] - 1) * win->dilation[i] - 1));
    if (dim_is_int(room, &least) && least < 0 && !dim_equals(extent, 0))
        fail("%s: the window is larger than spatial dimension %d of '%s', %s", node_where(g, node), i, node->in[0]->name,
             type_str(g->arena, &node->in[0]->type));
    return win->partial ? with_partial(alg, win, i, extent, room) : dim_add(alg, dim_div(alg, room, stride), one);
}
