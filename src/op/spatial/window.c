/* window: windows that slide over spatial dimensions, for convolution and pooling: attributes, the number of windows, and rules. */
#include "op/spatial/spatial.h"

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

/* One more window for remaining elements, unless it would start after the end. */
static const struct dim *with_partial(struct alg *alg, const struct window *win, int i, const struct dim *extent, const struct dim *room)
{
    const struct dim *stride = dim_int(alg, win->stride[i]), *one = dim_int(alg, 1);
    const struct dim *up = dim_div(alg, dim_add(alg, room, dim_int(alg, win->stride[i] - 1)), stride);
    const struct dim *last = dim_div(alg, dim_add(alg, extent, dim_int(alg, win->pad[i] - 1)), stride);
    return dim_add(alg, dim_min(alg, up, last), one);
}

/* The border of each spatial dimension, in the form of pads; NULL: none. */
static const struct dim **border_of(const struct node *node, const struct window *win)
{
    const struct dim **border = NULL;
    for (int i = 0; i < node->nattr; i++)
        if (strcmp(node->attr[i].name, "border") == 0 && node->attr[i].set)
            require(attr_dims(node, "border", &border) == 2 * win->n);
    return border;
}

static const struct dim *with_border(struct alg *alg, const struct node *node, const struct window *win, int i, const struct dim *extent)
{
    const struct dim **border = border_of(node, win);
    return border ? dim_add(alg, extent, dim_add(alg, border[i], border[win->n + i])) : extent;
}

int64_t window_reach(const struct window *win, int i)
{
    return (win->kernel[i] - 1) * win->dilation[i] + 1;
}

const struct dim *window_result(struct graph *g, const struct node *node, const struct window *win, int i, const struct dim *extent)
{
    struct alg *alg = g->alg;
    const char *mode = attr_string(node, "auto_pad");
    const struct dim *stride = dim_int(alg, win->stride[i]), *one = dim_int(alg, 1);
    extent = with_border(alg, node, win, i, extent);
    if (strcmp(mode, "SAME_UPPER") == 0 || strcmp(mode, "SAME_LOWER") == 0)
        return dim_div(alg, dim_add(alg, extent, dim_int(alg, win->stride[i] - 1)), stride);
    int64_t pads = strcmp(mode, "VALID") == 0 ? 0 : win->pad[i] + win->pad[win->n + i], least;
    const struct dim *room = dim_add(alg, extent, dim_int(alg, pads - window_reach(win, i)));
    if (dim_is_int(room, &least) && least < 0 && !dim_equals(extent, 0))
        fail("%s: the window is larger than spatial dimension %d of '%s', %s", node_where(g, node), i, node->in[0]->name,
             type_str(g->arena, &node->in[0]->type));
    return win->partial ? with_partial(alg, win, i, extent, room) : dim_add(alg, dim_div(alg, room, stride), one);
}

/* ---- rules ---- */

/* The padding of auto_pad along spatial dimension i: what the last window lacks, with the smaller or larger half at the start. False: sizes
 * are unknown, and windows do not start at every element. */
static bool same_pads(const struct node *node, const struct window *win, int i, bool upper, int64_t *pads)
{
    int64_t size, places, lacks = window_reach(win, i) - 1;
    if (dim_is_int(node->in[0]->type.dim[2 + i], &size) && dim_is_int(node->out[0]->type.dim[2 + i], &places))
        lacks = (places - 1) * win->stride[i] + window_reach(win, i) - size;
    else if (win->stride[i] != 1)
        return false;
    lacks = lacks < 0 ? 0 : lacks;
    pads[i] = upper ? lacks / 2 : lacks - lacks / 2;
    pads[win->n + i] = lacks - pads[i];
    return true;
}

bool window_pads(const struct node *node, const struct window *win, int64_t *pads)
{
    const char *mode = attr_string(node, "auto_pad");
    bool upper = strcmp(mode, "SAME_UPPER") == 0, same = upper || strcmp(mode, "SAME_LOWER") == 0;
    for (int i = 0; i < 2 * win->n; i++)
        pads[i] = strcmp(mode, "VALID") == 0 ? 0 : win->pad[i];
    for (int i = 0; same && i < win->n; i++)
        if (!same_pads(node, win, i, upper, pads))
            return false;
    return true;
}

bool window_slides_over(struct graph *g, const struct node *node, const struct window *win, int i, struct sliding *out)
{
    const struct dim *from = node->in[0]->type.dim[2 + i], *to = node->out[0]->type.dim[2 + i];
    int64_t size, places, pads[2 * MOST_SPATIAL];
    (void)g;
    if (!window_pads(node, win, pads))
        return false;
    *out = (struct sliding){.stride = win->stride[i], .reach = window_reach(win, i), .pad = pads[i], .size = from, .per = 1};
    if (!dim_is_int(from, &size) && !dim_is_int(to, NULL))
        return !win->partial && !dim_has_data(from);
    if (!dim_is_int(from, &size) || !dim_is_int(to, &places) || places < 2)
        return false;
    int64_t rest = size + out->pad - ((places - 1) * out->stride + out->reach);
    return rest < out->stride && !(win->partial && rest > 0);
}

static bool is_pointwise(const struct node *node, const struct window *win, int i)
{
    return win->kernel[i] == 1 && win->stride[i] == 1 && win->pad[i] == 0 && win->pad[win->n + i] == 0 &&
        node->in[0]->type.dim[2 + i] == node->out[0]->type.dim[2 + i];
}

static void set_border(struct graph *g, struct node *node, const struct window *win, const struct slide *s)
{
    const struct dim *border[2 * MOST_SPATIAL];
    for (int i = 0; i < 2 * win->n; i++)
        border[i] = dim_int(g->alg, 0);
    border[s->dim - 2] = s->before;
    border[win->n + s->dim - 2] = s->behind;
    attr_set_dims(g, node, "border", 2 * win->n, border);
}

/* The elements beyond the ends that a rank's windows of numeric size read. */
static void padding_here(const struct slide *s, int64_t *before, int64_t *behind)
{
    int64_t size, from = s->windows.lo * s->by->stride - s->by->pad, to = (s->windows.hi - 1) * s->by->stride - s->by->pad + s->by->reach;
    require(dim_is_int(s->by->size, &size));
    *before = from < 0 ? -from : 0;
    *behind = to > size ? to - size : 0;
}

void window_slide(struct graph *g, struct node *node, const struct window *win, const struct slide *s)
{
    int64_t pads[2 * MOST_SPATIAL], before = 0, behind = 0;
    require(window_pads(s->global, win, pads));
    if (s->before)
        set_border(g, node, win, s);
    else
        padding_here(s, &before, &behind);
    pads[s->dim - 2] = before;
    pads[win->n + s->dim - 2] = behind;
    attr_set_ints(g, node, "pads", 2 * win->n, pads);
    attr_set_string(node, "auto_pad", "NOTSET");
}

void window_rule(struct graph *g, const struct node *node, struct rule *r, const struct window *win, window_slides *slides)
{
    for (int i = 0; i < win->n; i++) {
        const struct dim *in = node->in[0]->type.dim[2 + i], *out = node->out[0]->type.dim[2 + i];
        struct sliding by;
        if (is_pointwise(node, win, i)) {
            rule_same_dim(g, r, "h", 2 + i, in, 0);
        } else if (slides(g, node, win, i, &by)) {
            rule_slide(g, r, 2 + i, rule_numbered(g, r, "y", 2 + i, out, 0), &by);
        } else {
            rule_put(g, &r->in[0], 2 + i, 0, rule_numbered(g, r, "h", 2 + i, in, FACTOR_REPLICATED));
            rule_put(g, &r->out[0], 2 + i, 0, rule_numbered(g, r, "y", 2 + i, out, FACTOR_REPLICATED));
        }
    }
}
