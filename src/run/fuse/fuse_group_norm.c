/* A norm of groups, as exporters write it out, becomes the operator, which works with the channels last, too:
 *
 *   Reshape(InstanceNormalization(Reshape(x, [batch, groups, ..]), scale, bias), [sizes of x])
 *
 * Groups are neighbouring channels, so the bytes of both forms are the same, and so are the sums. */
#include "op/op.h"
#include "run/fuse/fuse.h"

/* One number for each group as one for each of its channels; NULL: it is no such constant. */
static struct value *per_channel(struct graph *g, struct value *v, int64_t groups, int64_t channels)
{
    if (!v || !v->constant || v->constant->dtype != DT_F32 || v->constant->rank != 1 || v->constant->dim[0] != groups ||
        !constant_present(v->constant))
        return NULL;
    float *to = NEWN(g->arena, float, channels);
    for (int64_t c = 0; c < channels; c++)
        to[c] = (float)constant_float(v->constant, v->name, c / (channels / groups));
    return graph_constant(g, arena_printf(g->arena, "%s/channels", v->name), DT_F32, 1, &channels, to);
}

/* The norm that the Reshape is the last node of; NULL: it is none. */
static struct node *group_norm(struct graph *g, const struct node *last)
{
    struct node *norm = op_is_onnx(last, "Reshape") && last->in[0] ? op_made_by(last->in[0], "InstanceNormalization") : NULL;
    struct node *first = norm && norm->nin == 3 && norm->in[0] ? op_made_by(norm->in[0], "Reshape") : NULL;
    if (!first || !first->in[0])
        return NULL;
    const struct type *x = &first->in[0]->type, *grouped = &norm->in[0]->type;
    int64_t groups, channels;
    if (x->dtype != DT_F32 || x->rank < 3 || grouped->rank < 3 || !type_eq(x, &last->out[0]->type) || x->dim[0] != grouped->dim[0] ||
        !dim_is_int(x->dim[1], &channels) || !dim_is_int(grouped->dim[1], &groups) || groups < 1 || channels % groups != 0)
        return NULL;
    struct value *in[3] = {first->in[0], per_channel(g, norm->in[1], groups, channels), per_channel(g, norm->in[2], groups, channels)};
    if (!in[1] || !in[2])
        return NULL;
    struct node *made = graph_node(g, op_find("", "GroupNormalization"), norm->name, 3, in, 1);
    attr_set_int(made, "num_groups", groups);
    attr_set_float(made, "epsilon", attr_float(norm, "epsilon"));
    return made;
}

int fuse_group_norms(struct graph *g)
{
    int found = 0;
    for (int i = 0; i < g->nodes.n; i++) {
        struct node *n = g->nodes.at[i], *made = n->nin > 0 && n->nout == 1 ? group_norm(g, n) : NULL;
        if (!made)
            continue;
        node_output(g, made, 0, n->out[0]);
        g->nodes.at[i] = made;
        found++;
    }
    graph_prune(g);
    return found;
}
