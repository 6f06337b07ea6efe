/* signal: Fourier transforms of a signal and of its frames, and the weights from frequencies to mel bands. Numbers are complex (a last
 * dimension of 2) or real (of 1). Transforms are linear; the transformed dimension is never split. */
#include "op/infer/infer.h"
#include "op/rule/rule.h"
#include "op/table/table.h"

/* A size as an operand or an attribute; NULL: unknown, or (given false) absent. */
static const struct dim *stated_size(struct graph *g, const struct node *node, int operand, const char *attr, bool *given)
{
    const struct dim *const *at = NULL;
    int n = op_size_operand(g, node, operand, attr, &at);
    *given = n != -2;
    if (n >= 0 && n != 1)
        fail("%s: operand %d has %d entries, expected 1", node_where(g, node), operand, n);
    return n == 1 ? at[0] : NULL;
}

static void check_numbers(struct graph *g, const struct node *node, const struct type *x, bool has_parts)
{
    int64_t parts;
    if (!dtype_is_float(x->dtype))
        fail("%s: the signal is %s, expected a float", node_where(g, node), dtype_name(x->dtype));
    if (!has_parts)
        return;
    if (!dim_is_int(x->dim[x->rank - 1], &parts) || (parts != 1 && parts != 2))
        fail("%s: the last dimension of the signal is %s, expected 1 or 2", node_where(g, node), dim_str(g->arena, x->dim[x->rank - 1]));
}

static const struct dim *half(struct graph *g, const struct dim *n)
{
    return dim_add(g->alg, dim_div(g->alg, n, dim_int(g->alg, 2)), dim_int(g->alg, 1));
}

/* ---- DFT ---- */

/* -1: data-dependent. */
static int dft_axis(struct graph *g, const struct node *node, int rank)
{
    bool given;
    int64_t axis = -2;
    const struct dim *stated = stated_size(g, node, 2, "axis", &given);
    if (given && (!stated || !dim_is_int(stated, &axis)))
        return -1;
    int at = op_axis(g, node, axis, rank);
    if (at == rank - 1)
        fail("%s: axis is the last dimension, which holds the parts of a complex number", node_where(g, node));
    return at;
}

void infer_dft(struct graph *g, struct node *node)
{
    op_need_rank(g, node, 0, 2, MAX_RANK);
    const struct type *x = op_operand(g, node, 0);
    const struct dim *dim[MAX_RANK], *one = dim_int(g->alg, 1), *two = dim_int(g->alg, 2);
    int axis = dft_axis(g, node, x->rank);
    bool onesided = attr_int(node, "onesided"), inverse = attr_int(node, "inverse"), given;
    const struct dim *n = stated_size(g, node, 1, "length", &given);
    check_numbers(g, node, x, true);
    for (int d = 0; d < x->rank; d++)
        dim[d] = axis < 0 && (given || onesided) ? op_unknown_dim(g, node, 0, d) : x->dim[d];
    if (!given && axis >= 0)
        n = onesided && inverse ? dim_mul(g->alg, two, dim_sub(g->alg, x->dim[axis], one)) : x->dim[axis];
    if (axis >= 0)
        dim[axis] = !n ? op_unknown_dim(g, node, 0, axis) : onesided && !inverse ? half(g, n) : n;
    dim[x->rank - 1] = onesided && inverse ? one : two;
    op_result(g, node, 0, x->dtype, x->rank, dim);
}

/* All dimensions except the axis and the last one are free; none if the axis is known only at run time. */
uint32_t over_transformed(struct graph *g, const struct node *node)
{
    int rank = node->in[0]->type.rank, axis = dft_axis(g, node, rank);
    return axis < 0 ? UINT32_MAX : UINT32_C(1) << axis | UINT32_C(1) << (rank - 1);
}

/* STFT: signal [batch, length, parts], or [batch, length] as torch writes it, window [frame] -> [batch, frames, frequencies, 2] */

static const struct dim *frame_length(struct graph *g, struct node *node, const struct type *x)
{
    bool given, window = node_operand(node, 2);
    const struct dim *n = stated_size(g, node, 3, "length", &given);
    if (window) {
        op_need_rank(g, node, 2, 1, 1);
        op_same_dtype(g, node, 0, 2);
        const struct dim *own = op_operand(g, node, 2)->dim[0];
        return n ? op_same_dim(g, node, n, own, "frame_length and the window") : own;
    }
    return given ? n : x->dim[1];
}

void infer_stft(struct graph *g, struct node *node)
{
    op_need_rank(g, node, 0, 2, 3);
    const struct type *x = op_operand(g, node, 0);
    bool given;
    int64_t step;
    const struct dim *length = frame_length(g, node, x), *hop = stated_size(g, node, 1, "step", &given), *frames = NULL;
    check_numbers(g, node, x, x->rank == 3);
    if (hop && dim_is_int(hop, &step)) {
        if (step < 1)
            fail("%s: frame_step is %lld, expected 1 or more", node_where(g, node), (long long)step);
        if (length)
            frames = dim_max(g->alg, dim_add(g->alg, dim_div(g->alg, dim_sub(g->alg, x->dim[1], length), hop), dim_int(g->alg, 1)),
                             dim_int(g->alg, 0));
    }
    const struct dim *bins = !length ? op_unknown_dim(g, node, 0, 2) : attr_int(node, "onesided") ? half(g, length) : length;
    frames = frames ? frames : op_unknown_dim(g, node, 0, 1);
    op_result(g, node, 0, x->dtype, 4, (const struct dim *[]){x->dim[0], frames, bins, dim_int(g->alg, 2)});
}

/* ---- MelWeightMatrix ---- */

void infer_melweightmatrix(struct graph *g, struct node *node)
{
    bool given;
    int64_t dtype = attr_int(node, "output_datatype");
    const struct dim *bands = stated_size(g, node, 0, "bands", &given), *length = stated_size(g, node, 1, "length", &given);
    if (dtype < 1 || dtype > INT8_MAX || !dtype_is_float((enum dtype)dtype))
        fail("%s: output_datatype is %lld, expected a float type", node_where(g, node), (long long)dtype);
    for (int i = 3; i < 5; i++)
        if (!dtype_is_float(op_operand(g, node, i)->dtype))
            fail("%s: operand %d is %s, expected a float", node_where(g, node), i, dtype_name(op_operand(g, node, i)->dtype));
    op_result(
        g, node, 0, (enum dtype)dtype, 2,
        (const struct dim *[]){length ? half(g, length) : op_unknown_dim(g, node, 0, 0), bands ? bands : op_unknown_dim(g, node, 0, 1)});
}
