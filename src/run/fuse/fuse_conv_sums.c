/* Sums of convolutions that read the same tensor in the same way are one, whose weight is the sum of theirs: nets that are trained with
 * several branches, as MobileOne and RepVGG. A smaller window counts as one with zeros around it. Weights are added once, as the model is
 * loaded; they are rounded then, so results may differ in their last bits. */
#include "op/infer/infer.h"
#include "op/op.h"
#include "run/fuse/fuse.h"

#include <string.h>

enum { MOST_AXES = 3 };

struct branch {
    struct node *conv;
    int spatial;
    int64_t kernel[MOST_AXES], stride[MOST_AXES], dilation[MOST_AXES], before[MOST_AXES];
};

static void read_axes(struct graph *g, const struct node *n, const char *name, int count, int64_t otherwise, int64_t *to)
{
    const int64_t *given;
    int found = attr_is_set(n, name) ? attr_ints(g, n, name, &given) : 0;
    for (int d = 0; d < count; d++)
        to[d] = d < found ? given[d] : otherwise;
}

/* A convolution by constants that only one node reads. */
static bool read_branch(struct graph *g, const struct uses *uses, int nuses, struct value *y, struct branch *b)
{
    struct node *n = y->producer;
    bool conv = op_is_onnx(n, "Conv") && y->id < nuses && uses[y->id].n == 1 && strcmp(attr_string(n, "auto_pad"), "NOTSET") == 0;
    if (!conv || fuse_integer_conv_is(n))
        return false;
    for (int k = 1; k < n->nin; k++)
        if (n->in[k] && (!n->in[k]->constant || n->in[k]->type.dtype != DT_F32))
            return false;
    const struct type *w = &n->in[1]->type;
    *b = (struct branch){.conv = n, .spatial = w->rank - 2};
    if (n->in[0]->type.dtype != DT_F32 || b->spatial < 1 || b->spatial > MOST_AXES)
        return false;
    for (int d = 0; d < b->spatial; d++)
        if (!dim_is_int(w->dim[d + 2], &b->kernel[d]))
            return false;
    read_axes(g, n, "strides", b->spatial, 1, b->stride);
    read_axes(g, n, "dilations", b->spatial, 1, b->dilation);
    read_axes(g, n, "pads", b->spatial, 0, b->before);
    return true;
}

/* Where the window of b begins in that of a; false: it does not lie there. */
static bool lies_within(const struct branch *a, const struct branch *b, int64_t *at)
{
    const struct type *v = &a->conv->in[1]->type, *w = &b->conv->in[1]->type;
    if (a->conv->in[0] != b->conv->in[0] || attr_int(a->conv, "group") != attr_int(b->conv, "group") || v->rank != w->rank ||
        v->dim[0] != w->dim[0] || v->dim[1] != w->dim[1])
        return false;
    for (int d = 0; d < a->spatial; d++) {
        int64_t shift = a->before[d] - b->before[d];
        if (a->stride[d] != b->stride[d] || (a->dilation[d] != b->dilation[d] && b->kernel[d] > 1) || shift % a->dilation[d])
            return false;
        at[d] = shift / a->dilation[d];
        if (at[d] < 0 || at[d] + b->kernel[d] > a->kernel[d])
            return false;
    }
    return true;
}

static struct value *computed(struct graph *g, struct node *n)
{
    struct type untyped = {.dtype = DT_NONE};
    node_output(g, n, 0, graph_value(g, n->name, &untyped));
    struct value *y = n->out[0];
    op_infer(g, n);
    return op_evaluate_later(g, n) ? y : NULL;
}

/* w with zeros around it. */
static struct value *widened(struct graph *g, struct value *w, const struct branch *a, const struct branch *b, const int64_t *at)
{
    int64_t pads[2 * MAX_RANK] = {0}, n = 2 * (a->spatial + 2);
    bool same = true;
    for (int d = 0; d < a->spatial; d++) {
        pads[d + 2] = at[d];
        pads[n / 2 + d + 2] = a->kernel[d] - b->kernel[d] - at[d];
        same = same && a->kernel[d] == b->kernel[d];
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
    return computed(g, graph_node(g, op_find("", "Add"), name, 2, (struct value *[]){a, b}, 1));
}

static struct value *bias_of(const struct node *n)
{
    return n->nin > 2 ? n->in[2] : NULL;
}

/* The convolution of both; NULL: there is none. */
static struct node *sum_of(struct graph *g, const struct node *sum, const struct branch *a, const struct branch *b)
{
    int64_t at[MOST_AXES];
    if (!lies_within(a, b, at) || sum->out[0]->type.rank != a->spatial + 2)
        return NULL;
    struct value *w = widened(g, b->conv->in[1], a, b, at);
    w = w ? added(g, arena_printf(g->arena, "%s/weight", sum->name), a->conv->in[1], w) : NULL;
    struct value *bias = added(g, arena_printf(g->arena, "%s/bias", sum->name), bias_of(a->conv), bias_of(b->conv));
    if (!w || (!bias && (bias_of(a->conv) || bias_of(b->conv))))
        return NULL;
    struct node *made = graph_node(g, a->conv->op, sum->name, bias ? 3 : 2, (struct value *[]){a->conv->in[0], w, bias}, 1);
    memcpy(made->attr, a->conv->attr, (size_t)made->nattr * sizeof *made->attr);
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
