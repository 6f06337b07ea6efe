/* byte_scale: QuantizeLinear and DequantizeLinear between f32 and bytes with one constant scale, and a constant zero point or none. */
#include "lower/lower.h"
#include "op/analysis/analysis.h"
#include "op/op.h"

#include <string.h>

static bool is_number(const struct value *v)
{
    return v->constant && constant_present(v->constant) && constant_elements(v->constant) == 1;
}

static bool has_one_scale(const struct node *n)
{
    return is_number(n->in[1]) && constant_float(n->in[1]->constant, n->in[1]->name, 0) > 0 &&
        (n->nin < 3 || !n->in[2] || is_number(n->in[2]));
}

bool byte_scale_encodes(const struct node *n)
{
    return op_is_onnx(n, "QuantizeLinear") && n->nin >= 2 && dtype_is_byte(n->out[0]->type.dtype) && n->in[0]->type.dtype == DT_F32 &&
        n->in[1]->type.dtype == DT_F32 && !attr_int(n, "block_size") && has_one_scale(n);
}

const struct node *byte_scale_decoder(const struct value *v)
{
    const struct node *n = op_byte_decoder(v);
    return n && has_one_scale(n) ? n : NULL;
}

struct byte_codes byte_scale_of(const struct node *n)
{
    const struct value *zero = node_operand(n, 2), *codes = op_is_onnx(n, "QuantizeLinear") ? n->out[0] : n->in[0];
    return (struct byte_codes){.scale = constant_float(n->in[1]->constant, n->in[1]->name, 0),
                               .zero = zero ? constant_float(zero->constant, zero->name, 0) : 0,
                               .least = codes->type.dtype == DT_I8 ? -128 : 0};
}

bool byte_scale_same(const struct node *a, const struct node *b)
{
    struct byte_codes x = byte_scale_of(a), y = byte_scale_of(b);
    return memcmp(&x, &y, sizeof x) == 0;
}
