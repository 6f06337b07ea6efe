/* canonical: the canonical form of one typed node: the content of size operands moves into the node.
 *
 * An operand marked @name in the row becomes the DIMS attribute name, @type is already in the output type. Either all of a node's size
 * operands are removed, or, if the content of one is unknown, none: such a node keeps them as data and stays replicated. Then values that
 * depend on the rank or on defaults are written out, so that later passes read one form. */
#include "op/canon/canon.h"
#include "op/infer/infer.h"
#include "op/op.h"
#include "op/shape/shape.h"
#include "op/spatial/spatial.h"

#include <string.h>

static const char *size_name(const struct node *node, int i)
{
    return i < node->op->nin && node->in[i] ? node->op->in[i].size : NULL;
}

static bool all_known(struct graph *g, const struct node *node)
{
    for (int i = 0; i < node->nin; i++)
        if (size_name(node, i) && !op_dims(g, node->in[i]))
            return false;
    return true;
}

static void fold_operands(struct graph *g, struct node *node)
{
    for (int i = 0; i < node->nin; i++) {
        const char *name = size_name(node, i);
        if (!name)
            continue;
        const struct dims_value *dims = node->in[i]->dims;
        if (strcmp(name, "@type") != 0)
            attr_set_dims(g, node, name + 1, dims->n, dims->at);
        node->in[i] = NULL;
    }
    while (node->nin > 0 && !node->in[node->nin - 1])
        node->nin--;
}

/* ---- axes, for all rows -------------------------------------------------------------------------------------------- */

static bool has_attr(const struct node *node, const char *name, enum attr_kind kind)
{
    const struct attr *a = attr_find(node, name);
    return a && a->set && a->kind == kind;
}

static void nonnegative_axis(const struct graph *g, struct node *node, const char *name, int rank)
{
    if (has_attr(node, name, ATTR_INT) && attr_int(node, name) < 0)
        attr_set_int(node, name, op_axis(g, node, attr_int(node, name), rank));
}

static void nonnegative_axes(struct graph *g, struct node *node, const char *name, int rank)
{
    const struct dim **at, *out[MAX_RANK];
    int64_t k;
    if (!has_attr(node, name, ATTR_DIMS))
        return;
    int n = attr_dims(node, name, &at);
    if (n > rank)
        fail("%s: %d axes are given for %d dimensions", node_where(g, node), n, rank);
    for (int i = 0; i < n; i++) {
        if (!dim_is_int(at[i], &k))
            return;
        out[i] = dim_int(g->alg, op_axis(g, node, k, rank));
    }
    attr_set_dims(g, node, name, n, out);
}

/* Axes of Unsqueeze and OneHot count in the result, as does the axis of Flatten beyond the last dimension; others count in the operand. */
static void write_axes(struct graph *g, struct node *node)
{
    const struct value *of = op_is_onnx(node, "Unsqueeze") || op_is_onnx(node, "OneHot") ? node->out[0]
        : node->nin > 0                                                                  ? node->in[0]
                                                                                         : NULL;
    if (!of)
        return;
    nonnegative_axes(g, node, "axes", of->type.rank);
    nonnegative_axes(g, node, "axis", of->type.rank);
    nonnegative_axis(g, node, "axis", of->type.rank);
}

/* ---- per op: defaults written out ------------------------------------------------------------------------------------------- */

/* Writes bounds counted from 0 and clamped. A reversed slice through index 0 ends at -(n + 1), which ONNX clamps to before 0. Bounds that
 * would change their meaning, because they may be -1 if the dimension is empty, stay unchanged. */
static void write_slice(struct graph *g, struct node *node)
{
    struct slice slice[MAX_RANK], again[MAX_RANK];
    const struct dim *axis[MAX_RANK], *step[MAX_RANK], **start, **stop;
    int n = op_slices(g, node, slice);
    require(attr_dims(node, "starts", &start) == n && attr_dims(node, "ends", &stop) == n);
    const struct dim *from[MAX_RANK], *to[MAX_RANK];
    for (int i = 0; i < n; i++) {
        const struct dim *size = node->in[0]->type.dim[slice[i].axis];
        from[i] = slice[i].start;
        to[i] = slice[i].stop && dim_equals(slice[i].stop, -1) ? dim_sub(g->alg, dim_int(g->alg, -1), size) : slice[i].stop;
        axis[i] = dim_int(g->alg, slice[i].axis);
        step[i] = dim_int(g->alg, slice[i].step);
    }
    attr_set_dims(g, node, "axes", n, axis);
    attr_set_dims(g, node, "steps", n, step);
    attr_set_dims(g, node, "starts", n, from);
    attr_set_dims(g, node, "ends", n, to);
    op_slices(g, node, again);
    for (int i = 0; i < n; i++)
        if (slice[i].start != again[i].start || slice[i].stop != again[i].stop || slice[i].size != again[i].size) {
            from[i] = start[i];
            to[i] = stop[i];
        }
    attr_set_dims(g, node, "starts", n, from);
    attr_set_dims(g, node, "ends", n, to);
}

static void write_split(struct graph *g, struct node *node)
{
    const struct dim **size = NEWN(g->arena, const struct dim *, node->nout);
    int axis = (int)attr_int(node, "axis");
    for (int i = 0; i < node->nout; i++) {
        if (!node->out[i])
            return;
        size[i] = node->out[i]->type.dim[axis];
    }
    attr_set_dims(g, node, "split", node->nout, size);
    node_attr(node, "num_outputs")->set = false;
}

static void write_perm(struct graph *g, struct node *node)
{
    int64_t perm[MAX_RANK];
    const int64_t *at = NULL;
    int rank = node->in[0]->type.rank;
    if (attr_is_set(node, "perm"))
        attr_ints(g, node, "perm", &at);
    for (int d = 0; d < rank; d++)
        perm[d] = at ? op_axis(g, node, at[d], rank) : rank - 1 - d;
    attr_set_ints(g, node, "perm", rank, perm);
}

static void write_squeezed(struct graph *g, struct node *node)
{
    const struct type *data = &node->in[0]->type;
    const struct dim *axis[MAX_RANK];
    int n = 0;
    if (attr_is_set(node, "axes"))
        return;
    for (int d = 0; d < data->rank; d++)
        if (dim_equals(data->dim[d], 1))
            axis[n++] = dim_int(g->alg, d);
    attr_set_dims(g, node, "axes", n, axis);
}

/* A slice with a bound of unknown sign keeps its operands. */
static bool slice_known(struct graph *g, const struct node *node)
{
    struct slice slice[MAX_RANK];
    int n = op_slices(g, node, slice);
    for (int i = 0; i < n; i++)
        if (!slice[i].start)
            return false;
    return n >= 0;
}

/* The type is known by now: becomes a Cast to it, without the second operand. */
static void write_castlike(struct graph *g, struct node *node)
{
    const struct node *cast = graph_node(g, op_find("", "Cast"), node->name, 1, node->in, 1);
    int64_t saturate = attr_int(node, "saturate");
    node->op = cast->op;
    node->optype = cast->optype;
    node->nin = 1;
    node->nattr = cast->nattr;
    node->attr = cast->attr;
    attr_set_int(node, "to", node->out[0]->type.dtype);
    attr_set_int(node, "saturate", saturate);
}

/* The caches determine the head size of a flat operand if no number of heads is given. */
static void write_rotary(struct node *node)
{
    const struct type *x = &node->in[0]->type, *cache = &node->in[1]->type;
    int64_t width, half;
    if (x->rank != 3 || attr_int(node, "num_heads") != 0 || attr_int(node, "rotary_embedding_dim") != 0)
        return;
    if (dim_is_int(x->dim[2], &width) && dim_is_int(cache->dim[cache->rank - 1], &half) && half > 0 && half < INT32_MAX)
        attr_set_int(node, "num_heads", width / (2 * half));
}

static void write_defaults(struct graph *g, struct node *node)
{
    if (op_is_onnx(node, "Slice"))
        write_slice(g, node);
    else if (op_is_onnx(node, "Split"))
        write_split(g, node);
    else if (op_is_onnx(node, "Transpose"))
        write_perm(g, node);
    else if (op_is_onnx(node, "Squeeze"))
        write_squeezed(g, node);
    else if (op_is_onnx(node, "RotaryEmbedding"))
        write_rotary(node);
    else if (op_is_onnx(node, "CastLike"))
        write_castlike(g, node);
    else if (op_is_onnx(node, "Resize"))
        resize_canonical(g, node);
    else if (op_is_onnx(node, "Reshape"))
        attr_set_int(node, "allowzero", 0); /* it concerned the removed operand */
}

/* Whether a size of the result follows only from the operands and the data together: a -1 of Reshape without an expression, or a size of
 * Expand that yields to a data-dependent one unless that is 1. */
static bool target_open(struct graph *g, const struct node *node)
{
    if (!op_is_onnx(node, "Reshape") && !op_is_onnx(node, "Expand"))
        return false;
    const struct type *out = &node->out[0]->type;
    for (int d = 0; d < out->rank; d++)
        if (dim_has_data(out->dim[d]) && out->dim[d] == op_unknown_dim(g, node, 0, d))
            return true;
    return false;
}

void canon_node(struct graph *g, struct node *node)
{
    if (!node->op || !all_known(g, node) || (op_is_onnx(node, "Slice") && !slice_known(g, node)) || target_open(g, node))
        return;
    fold_operands(g, node);
    write_axes(g, node);
    write_defaults(g, node);
}
