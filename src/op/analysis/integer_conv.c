/* integer_conv: a convolution of decoded 8-bit integers with one scale, by a constant filter of 8-bit integers with one scale or one per
 * output channel. Its sums are integer sums, scaled. */
#include "op/analysis/analysis.h"
#include "op/op.h"

static bool has_one(const struct value *v)
{
    for (int d = 0; d < v->type.rank; d++)
        if (!dim_equals(v->type.dim[d], 1))
            return false;
    return true;
}

const struct node *op_byte_decoder(const struct value *v)
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

/* One element, or one for each of n channels. */
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
    bool zero = node_operand(d, 2);
    return (axis == 0 || axis == -w->rank || has_one(d->in[1])) && fits_channels(d->in[1], channels) &&
        (!zero || fits_channels(d->in[2], channels));
}

bool op_integer_conv(const struct node *n)
{
    if (!op_is_onnx(n, "Conv") || n->nin < 2 || !n->in[0] || !n->in[1])
        return false;
    const struct node *x = op_byte_decoder(n->in[0]), *w = op_byte_decoder(n->in[1]);
    int64_t group = attr_int(n, "group");
    return x && has_one(x->in[1]) && is_filter(w) && x->out[0]->type.rank == w->out[0]->type.rank && group >= 1 &&
        w->in[0]->constant->dim[0] % group == 0;
}
