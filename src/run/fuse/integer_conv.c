/* A convolution of real numbers that are 8-bit integers with one scale, by a constant filter of 8-bit integers with one scale or one for
 * each output channel, is one of integers:
 *
 *     Conv(DequantizeLinear(x), DequantizeLinear(w), bias)    IntegerConv: the scales are multiplied first; the sum is exact
 *
 * So a result differs by rounding from the sum of real numbers. A filter whose sums might not fit 32 bits is left alone. */
#include "kern/gemm/gemm.h"
#include "op/op.h"
#include "run/fuse/fuse.h"

#include <string.h>

enum { FACTOR = 4, X_SCALE, X_ZERO, W_ZERO, OPERANDS };

static bool has_one(const struct value *v)
{
    for (int d = 0; d < v->type.rank; d++)
        if (!dim_equals(v->type.dim[d], 1))
            return false;
    return true;
}

static const struct node *decoder_of(const struct value *v)
{
    const struct node *d = v->producer && op_is_onnx(v->producer, "DequantizeLinear") ? v->producer : NULL;
    return d && dtype_is_byte(d->in[0]->type.dtype) && d->in[1]->type.dtype == DT_F32 && d->out[0]->type.dtype == DT_F32 &&
            !attr_int(d, "block_size")
        ? d
        : NULL;
}

static bool is_present(const struct value *v)
{
    return v->constant && constant_present(v->constant);
}

/* One, or one for each of n. */
static bool fits_channels(const struct value *v, int64_t n)
{
    return is_present(v) && (constant_elements(v->constant) == 1 || (v->constant->rank == 1 && v->constant->dim[0] == n));
}

static bool is_filter(const struct node *d)
{
    const struct constant *w = d && is_present(d->in[0]) ? d->in[0]->constant : NULL;
    if (!w || w->rank < 3 || w->rank > 5 || constant_elements(w) == 0)
        return false;
    int64_t channels = w->dim[0], axis = attr_int(d, "axis");
    bool zero = d->nin > 2 && d->in[2];
    return constant_elements(w) / channels <= BYTES_MOST && (axis == 0 || axis == -w->rank || has_one(d->in[1])) &&
        fits_channels(d->in[1], channels) && (!zero || fits_channels(d->in[2], channels));
}

bool integer_conv_is(const struct node *n)
{
    if (!op_is_onnx(n, "Conv") || n->nin < 2 || !n->in[0] || !n->in[1])
        return false;
    const struct node *x = decoder_of(n->in[0]), *w = decoder_of(n->in[1]);
    int64_t group = attr_int(n, "group");
    return x && has_one(x->in[1]) && is_filter(w) && x->out[0]->type.rank == w->out[0]->type.rank && group >= 1 &&
        w->in[0]->constant->dim[0] % group == 0;
}

struct value *integer_conv_codes(const struct node *n)
{
    return decoder_of(n->in[0])->in[0];
}

/* The constant scales, multiplied; NULL: 1. */
static struct value *factor_of(struct graph *g, const struct node *n, const struct value *x, const struct value *w)
{
    int64_t channels = constant_elements(w->constant);
    float *factor = NEWN(g->arena, float, channels);
    bool ones = true;
    for (int64_t c = 0; c < channels; c++) {
        factor[c] = (float)constant_float(w->constant, w->name, c) * (x->constant ? (float)constant_float(x->constant, x->name, 0) : 1);
        ones = ones && factor[c] >= 1 && factor[c] <= 1;
    }
    return ones ? NULL : graph_constant(g, arena_printf(g->arena, "%s/factor", n->name), DT_F32, 1, &channels, factor);
}

struct node *integer_conv_node(struct graph *g, const struct node *n, struct value *x, struct value *bias)
{
    const struct node *dx = decoder_of(n->in[0]), *dw = decoder_of(n->in[1]);
    struct value *scale = dx->in[1], *in[OPERANDS] = {x, dw->in[0], bias};
    in[FACTOR] = factor_of(g, n, scale, dw->in[1]);
    in[X_SCALE] = scale->constant ? NULL : scale;
    in[X_ZERO] = dx->nin > 2 ? dx->in[2] : NULL;
    in[W_ZERO] = dw->nin > 2 ? dw->in[2] : NULL;
    return graph_node(g, op_find("tpc", "IntegerConv"), n->name, OPERANDS, in, 1);
}
