/* shape_backward: gradients of ops that move elements: each goes back to the source of its element. */
#include "op/backward/backward.h"
#include "op/infer/infer.h"
#include "op/op.h"
#include "op/shape/shape.h"
#include "op/table/table.h"

#include <string.h>

static const struct type *operand_type(const struct backward *b)
{
    return &b->l.node->in[0]->type;
}

static int axis_of(const struct backward *b)
{
    return op_axis(b->l.g, b->l.node, attr_int(b->l.node, "axis"), operand_type(b)->rank);
}

/* For Identity, Reshape, Flatten, Squeeze, Unsqueeze. */
BACK_IS(reshape, back_to(b, 0, back_reshape(b, back_dy(b), operand_type(b))))
BACK_IS(expand, back_to(b, 0, back_dy(b)))

void backward_transpose(struct backward *b)
{
    const struct node *node = b->l.node;
    const int64_t *perm = NULL;
    int rank = operand_type(b)->rank, back[MAX_RANK];
    if (attr_is_set(node, "perm"))
        attr_ints(b->l.g, node, "perm", &perm);
    for (int d = 0; d < rank; d++)
        back[perm ? op_axis(b->l.g, node, perm[d], rank) : rank - 1 - d] = d;
    back_to(b, 0, back_transpose(b, back_dy(b), back));
}

/* ---- parts of a dimension ------------------------------------------------------------------------------------------------------- */

void backward_concat(struct backward *b)
{
    const struct node *node = b->l.node;
    int axis = axis_of(b);
    const struct dim **size = NEWN(b->l.g->arena, const struct dim *, node->nin);
    for (int i = 0; i < node->nin; i++)
        size[i] = node->in[i]->type.dim[axis];
    if (node->nin == 1) {
        back_to(b, 0, back_dy(b));
        return;
    }
    struct node *parts = lower_split(&b->l, "Split", back_dy(b), axis, node->nin, size);
    for (int i = 0; i < node->nin; i++)
        back_to(b, i, parts->out[i]);
}

/* Unused parts are zero. */
void backward_split(struct backward *b)
{
    const struct node *node = b->l.node;
    struct value **part = NEWN(b->l.g->arena, struct value *, node->nout);
    const struct dim *left = operand_type(b)->dim[axis_of(b)];
    for (int i = 0; i < node->nout; i++)
        left = node->out[i] ? dim_sub(b->l.g->alg, left, node->out[i]->type.dim[axis_of(b)]) : left;
    for (int i = 0; i < node->nout; i++) {
        struct type type = *operand_type(b);
        type.dim[axis_of(b)] = node->out[i] ? node->out[i]->type.dim[axis_of(b)] : left;
        part[i] = node->out[i] && b->dy[i] ? b->dy[i] : back_zeros(b, &type);
    }
    back_to(b, 0, node->nout == 1 ? part[0] : lower_concat(&b->l, "Concat", node->nout, part, axis_of(b)));
}

/* before[d], after[d]: padding to add to dimension d, or to cut off. */
static struct value *padded(struct backward *b, struct value *x, const struct dim *const *before, const struct dim *const *after)
{
    const struct dim *pads[2 * MAX_RANK];
    int rank = x->type.rank;
    struct node *pad = lower_node(&b->l, "", "Pad", "Pad", 1, &x);
    memcpy(pads, before, sizeof *pads * (size_t)rank);
    memcpy(pads + rank, after, sizeof *pads * (size_t)rank);
    attr_set_dims(b->l.g, pad, "pads", 2 * rank, pads);
    op_infer(b->l.g, pad);
    return pad->out[0];
}

/* Elements that a step skips are zero: spreads g by the step, with zeros in between. */
static struct value *spread(struct backward *b, struct value *g, const struct slice *s)
{
    struct alg *alg = b->l.g->alg;
    int perm[MAX_RANK], back[MAX_RANK], rank = g->type.rank;
    struct type whole = *operand_type(b), moved = whole;
    for (int d = 0; d < rank; d++)
        perm[d] = d == 0 ? s->axis : d <= s->axis ? d - 1 : d;
    for (int d = 0; d < rank; d++) {
        back[perm[d]] = d;
        moved.dim[d] = perm[d] == s->axis ? whole.dim[s->axis] : g->type.dim[perm[d]];
    }
    struct value *at = lower_progression(&b->l, lower_count(&b->l, "at", s->size), s->start, dim_int(alg, s->step));
    struct value *in[3] = {back_zeros(b, &moved), lower_unsqueeze(&b->l, "row", at, 1, 1), back_transpose(b, g, perm)};
    return back_transpose(b, lower_node(&b->l, "", "ScatterND", "ScatterND", 3, in)->out[0], back);
}

/* Data-dependent bounds are applied to the indices of all elements: each kept element's gradient is scattered to its index. The kept sizes
 * are the result's, so their symbols are, too. */
static struct value *scattered(struct backward *b, struct value *g)
{
    const struct node *node = b->l.node;
    struct alg *alg = b->l.g->alg;
    const struct type *x = operand_type(b);
    const struct dim *all = dim_int(alg, 1), *kept = all;
    for (int d = 0; d < x->rank; d++) {
        all = dim_mul(alg, all, x->dim[d]);
        kept = dim_mul(alg, kept, g->type.dim[d]);
    }
    struct value **in = NEWN(b->l.g->arena, struct value *, node->nin);
    memcpy(in, node->in, sizeof *in * (size_t)node->nin);
    in[0] = back_reshape(b, lower_count(&b->l, "at", all), x);
    struct node *cut = lower_copy(&b->l, "kept", node->nin, in);
    cut->out[0]->first_name = node->out[0]->first_name;
    struct value *at = back_infer(b, cut);
    const struct type flat = {.rank = 1, .dim = {all}}, column = {.rank = 2, .dim = {kept, dim_int(alg, 1)}},
                      row = {.rank = 1, .dim = {kept}};
    struct type zeros = flat;
    zeros.dtype = g->type.dtype;
    struct value *to[3] = {back_zeros(b, &zeros), back_reshape(b, at, &column), back_reshape(b, g, &row)};
    return back_reshape(b, lower_node(&b->l, "", "ScatterND", "ScatterND", 3, to)->out[0], x);
}

static bool bounds_known(int n, const struct slice *slice)
{
    for (int i = 0; i < n; i++)
        if (!slice[i].start)
            return false;
    return n >= 0;
}

void backward_slice(struct backward *b)
{
    struct alg *alg = b->l.g->alg;
    struct slice slice[MAX_RANK];
    int n = op_slices(b->l.g, b->l.node, slice);
    const struct type *x = operand_type(b);
    const struct dim *before[MAX_RANK], *after[MAX_RANK];
    struct value *g = back_dy(b);
    bool pads = false;
    if (!bounds_known(n, slice)) {
        back_to(b, 0, scattered(b, g));
        return;
    }
    for (int d = 0; d < x->rank; d++)
        before[d] = after[d] = dim_int(alg, 0);
    for (int i = 0; i < n; i++) {
        if (slice[i].step != 1) {
            g = spread(b, g, &slice[i]);
            continue;
        }
        before[slice[i].axis] = slice[i].start;
        after[slice[i].axis] = dim_sub(alg, x->dim[slice[i].axis], dim_add(alg, slice[i].start, slice[i].size));
        pads = true;
    }
    back_to(b, 0, pads ? padded(b, g, before, after) : g);
}

/* Padding of zeros is cut off. */
static const char *unpadded(const struct backward *b, int pads)
{
    if (strcmp(attr_string(b->l.node, "mode"), "constant") != 0)
        return "its mode is not constant";
    if (pads < 1)
        return "its pads are known only when it runs";
    return back_wants(b, 2) ? "its constant is trained" : NULL;
}

void backward_pad(struct backward *b)
{
    struct alg *alg = b->l.g->alg;
    const struct node *node = b->l.node;
    int rank = operand_type(b)->rank;
    const struct dim *const *pads, *const *axes = NULL, *before[MAX_RANK], *after[MAX_RANK];
    int n = op_size_operand(b->l.g, node, 1, "pads", &pads) / 2, chosen = op_size_operand(b->l.g, node, 3, "axes", &axes);
    const char *why = unpadded(b, n);
    if (why)
        fail("%s: no gradient passes this node: %s", node_where(b->l.g, node), why);
    for (int d = 0; d < rank; d++)
        before[d] = after[d] = dim_int(alg, 0);
    for (int i = 0; i < n; i++) {
        int d = chosen >= 0 ? op_axis(b->l.g, node, axes[i]->k, rank) : i;
        before[d] = dim_neg(alg, pads[i]);
        after[d] = dim_neg(alg, pads[n + i]);
    }
    back_to(b, 0, padded(b, back_dy(b), before, after));
}

/* ---- copies ------------------------------------------------------------------------------------------------------------------------ */

/* The result's dimension is copies of the operand's: n times the whole, or with `each` each index n times. Returns their sum. */
static struct value *sum_of_copies(struct backward *b, struct value *g, int axis, const struct dim *n, const struct dim *size, bool each)
{
    struct type apart = {.rank = g->type.rank + 1};
    if (dim_equals(n, 1))
        return g;
    if (apart.rank > MAX_RANK)
        fail("%s: no gradient passes this node: it takes more than %d dimensions", node_where(b->l.g, b->l.node), MAX_RANK);
    for (int d = 0; d < apart.rank; d++)
        apart.dim[d] = d <= axis ? g->type.dim[d] : g->type.dim[d - 1];
    apart.dim[axis] = each ? size : n;
    apart.dim[axis + 1] = each ? n : size;
    int summed = each ? axis + 1 : axis;
    return back_sum(b, back_reshape(b, g, &apart), summed, summed + 1, false);
}

void backward_repeat(struct backward *b)
{
    const struct dim *n = dim_int(b->l.g->alg, attr_int(b->l.node, "repeats"));
    back_to(b, 0, sum_of_copies(b, back_dy(b), axis_of(b), n, operand_type(b)->dim[axis_of(b)], true));
}

void backward_tile(struct backward *b)
{
    const struct dim **times;
    struct value *g = back_dy(b);
    int n = attr_dims(b->l.node, "repeats", &times);
    for (int d = 0; d < n; d++)
        g = sum_of_copies(b, g, d, times[d], operand_type(b)->dim[d], false);
    back_to(b, 0, g);
}

/* ---- others ------------------------------------------------------------------------------------------------------------------------ */

/* The op on the gradient, with the node's attributes. */
static struct node *again(struct backward *b, const char *op)
{
    const struct node *node = b->l.node;
    struct value *dy = back_dy(b);
    struct node *made = graph_node(b->l.g, op_find("", op), arena_printf(b->l.g->arena, "%s/%s", b->l.name, op), 1, &dy, 1);
    attr_copy(made, node);
    node_output(b->l.g, made, 0, graph_value(b->l.g, made->name, operand_type(b)));
    op_infer(b->l.g, made);
    VEC_PUSH(b->l.g->arena, &b->l.nodes, made);
    return made;
}

BACK_IS(trilu, back_to(b, 0, again(b, "Trilu")->out[0]))
BACK_IS(depthtospace, back_to(b, 0, again(b, "SpaceToDepth")->out[0]))
BACK_IS(spacetodepth, back_to(b, 0, again(b, "DepthToSpace")->out[0]))
