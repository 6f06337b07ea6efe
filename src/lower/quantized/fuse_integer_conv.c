/* fuse_integer_conv: a convolution of decoded 8-bit integers with one scale, by a constant filter of 8-bit integers with one scale or one
 * per output channel, becomes an integer convolution:
 *
 *     Conv(DequantizeLinear(x), DequantizeLinear(w), bias)    IntegerConv: the scales are multiplied first; the sum is exact
 *
 * So a result differs by rounding from the sum of real numbers. A filter whose sums might not fit 32 bits stays unchanged. */
#include "ir/operands.h"
#include "kern/gemm/gemm.h"
#include "lower/lower.h"
#include "op/analysis/analysis.h"
#include "op/op.h"

#include <string.h>

enum { MADE = IN_IntegerConv_W_zero + 1 }; /* operands; fuse_conv adds the others */

bool fuse_integer_conv_is(const struct node *n)
{
    return op_integer_conv(n) &&
        constant_elements(op_byte_decoder(n->in[1])->in[0]->constant) / op_byte_decoder(n->in[1])->in[0]->constant->dim[0] <= BYTES_MOST;
}

struct value *fuse_integer_conv_codes(const struct node *n)
{
    return op_byte_decoder(n->in[0])->in[0];
}

/* The product of the constant scales; NULL: 1. */
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

struct node *fuse_integer_conv_node(struct graph *g, const struct node *n, struct value *x, struct value *bias)
{
    const struct node *dx = op_byte_decoder(n->in[0]), *dw = op_byte_decoder(n->in[1]);
    struct value *scale = dx->in[1], *in[MADE] = {x, dw->in[0], bias};
    in[IN_IntegerConv_factor] = factor_of(g, n, scale, dw->in[1]);
    in[IN_IntegerConv_X_scale] = scale->constant ? NULL : scale;
    in[IN_IntegerConv_X_zero] = node_operand(dx, 2);
    in[IN_IntegerConv_W_zero] = node_operand(dw, 2);
    return graph_node(g, op_find("tpc", "IntegerConv"), n->name, MADE, in, 1);
}
