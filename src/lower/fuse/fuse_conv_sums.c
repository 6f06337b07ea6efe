/* fuse_conv_sums: merges sums of convolutions that read the same tensor in the same way into one, whose weight is the sum of theirs: for
 * nets trained with several branches, such as MobileOne and RepVGG. A smaller window is padded with zeros. Weights are added once, at load;
 * they are rounded then, so results may differ in their last bits. */
#include "lower/lower.h"
#include "op/infer/infer.h"
#include "op/op.h"
#include "op/spatial/spatial.h"

#include <string.h>

enum { MOST_AXES = 3 };

struct branch {
    struct node *conv;
    struct window win;
};

/* A convolution by constants with a single reader. */
static bool read_branch(struct graph *g, const struct uses *uses, int nuses, struct value *y, struct branch *b)
{
    struct node *n = y->producer;
    bool conv = op_is_onnx(n, "Conv") && graph_reads_once(uses, nuses, y) && strcmp(attr_string(n, "auto_pad"), "NOTSET") == 0;
    if (!conv || fuse_integer_conv_is(n))
        return false;
    for (int k = 1; k < n->nin; k++)
        if (n->in[k] && n->in[k]->type.dtype != DT_F32)
            return false;
    const struct type *w = &n->in[1]->type;
    int spatial = w->rank - 2;
    int64_t kernel[MOST_AXES];
    if (n->in[0]->type.dtype != DT_F32 || spatial < 1 || spatial > MOST_AXES)
        return false;
    for (int d = 0; d < spatial; d++)
        if (!dim_is_int(w->dim[d + 2], &kernel[d]))
            return false;
    *b = (struct branch){n, window_read(g, n, spatial, kernel)};
    return true;
}

/* Where the window of b starts in the window of a; false: b does not fit inside. */
static bool lies_within(const struct branch *a, const struct branch *b, int64_t *at)
{
    const struct type *v = &a->conv->in[1]->type, *w = &b->conv->in[1]->type;
    if (a->conv->in[0] != b->conv->in[0] || v->rank != w->rank || v->dim[0] != w->dim[0] || v->dim[1] != w->dim[1])
        return false;
    for (int d = 0; d < a->win.n; d++) {
        int64_t shift = a->win.pad[d] - b->win.pad[d];
        if (a->win.stride[d] != b->win.stride[d] || (a->win.dilation[d] != b->win.dilation[d] && b->win.kernel[d] > 1) ||
            shift % a->win.dilation[d])
            return false;
        at[d] = shift / a->win.dilation[d];
        if (at[d] < 0 || at[d] + b->win.kernel[d] > a->win.kernel[d])
            return false;
    }
    return true;
}

static struct value *computed(struct graph *g, struct node *n)
{
    node_output(g, n, 0, graph_value(g, n->name, NULL));
    struct value *y = n->out[0];
    op_infer(g, n);
    return op_evaluate_later(g, n) ? y : NULL;
}

/* w padded with zeros. */
static struct value *widened(struct graph *g, struct value *w, const struct branch *a, const struct branch *b, const int64_t *at)
{
    int64_t pads[2 * MAX_RANK] = {0}, n = 2 * (a->win.n + 2);
    bool same = true;
    for (int d = 0; d < a->win.n; d++) {
        pads[d + 2] = at[d];
        pads[n / 2 + d + 2] = a->win.kernel[d] - b->win.kernel[d] - at[d];
        same = same && a->win.kernel[d] == b->win.kernel[d];
    }
    if (same)
        return w;
    struct node *pad = graph_node(g, op_find("", "Pad"), arena_printf(g->arena, "%s/wide", w->name), 1, &w, 1);
    const struct dim *dims[2 * MAX_RANK];
    for (int i = 0; i < n; i++)
        dims[i] = dim_int(g->alg, pads[i]);
    attr_set_dims(g, pad, "pads", (int)n, dims);
    return computed(g, pad);
}

static struct value *added(struct graph *g, const char *name, struct value *a, struct value *b)
{
    if (!a || !b)
        return a ? a : b;
    struct value *sum = computed(g, graph_node(g, op_find("", "Add"), name, 2, (struct value *[]){a, b}, 1));
    if (sum)
        sum->form_of = a->form_of ? a->form_of : a;
    return sum;
}

/* The convolution that replaces both; NULL: they do not match. */
static struct node *sum_of(struct graph *g, const struct node *sum, const struct branch *a, const struct branch *b)
{
    int64_t at[MOST_AXES];
    if (!lies_within(a, b, at) || sum->out[0]->type.rank != a->win.n + 2)
        return NULL;
    struct value *w = widened(g, b->conv->in[1], a, b, at);
    w = w ? added(g, arena_printf(g->arena, "%s/weight", sum->name), a->conv->in[1], w) : NULL;
    struct value *bias = added(g, arena_printf(g->arena, "%s/bias", sum->name), node_operand(a->conv, 2), node_operand(b->conv, 2));
    if (!w || (!bias && (node_operand(a->conv, 2) || node_operand(b->conv, 2))))
        return NULL;
    struct node *made = graph_node_like(g, a->conv, sum->name, bias ? 3 : 2, (struct value *[]){a->conv->in[0], w, bias});
    node_output(g, made, 0, sum->out[0]);
    return made;
}

int fuse_conv_sums(struct graph *g)
{
    struct arena *tmp = arena_new();
    const struct uses *uses = graph_uses(g, tmp);
    int nuses = g->values.n, made = 0;
    for (int i = 0; i < g->nodes.n; i++) {
        struct node *n = g->nodes.at[i], *both = NULL;
        struct branch a, b;
        if (!op_is_onnx(n, "Add") || !n->in[0]->producer || !n->in[1]->producer || !read_branch(g, uses, nuses, n->in[0], &a) ||
            !read_branch(g, uses, nuses, n->in[1], &b))
            continue;
        both = sum_of(g, n, &a, &b);
        if (!both)
            both = sum_of(g, n, &b, &a);
        if (both)
            g->nodes.at[i] = both;
        made += both != NULL;
    }
    arena_free(tmp);
    graph_prune(g);
    return made;
}
