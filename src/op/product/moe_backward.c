/* moe_backward: gradients of mixtures of experts, by ordinary ops: every row goes through all experts, weighted by its router, with weight
 * zero for experts that it did not choose. Few-bit weights are decoded first; they are not trained themselves. */
#include "op/backward/backward.h"
#include "op/infer/infer.h"
#include "op/op.h"
#include "op/product/product.h"
#include "op/table/table.h"

#include <string.h>

enum { BYTE = 8 };

static struct value *number(struct lowering *l, const char *part, double x)
{
    return lower_scalar(l, part, DT_F32, x);
}

/* ---- few-bit weights ----------------------------------------------------------------------------------------------------------- */

static struct value *byte(struct lowering *l, double x)
{
    return lower_cast(l, "byte", lower_scalar(l, "byte.wide", DT_I64, x), DT_U8);
}

/* The first n elements of the last dimension, of `bits` bits each, lowest first; as floats. */
static struct value *unpacked(struct lowering *l, struct value *q, int64_t bits, const struct dim *n)
{
    struct alg *alg = l->g->alg;
    int per = (int)(BYTE / bits), last = q->type.rank - 1;
    struct value *part[BYTE];
    const struct dim *dim[MAX_RANK], *size[2];
    for (int j = 0; j < per; j++) {
        struct node *shift = lower_node(l, "", "BitShift", "shift", 2, (struct value *[]){q, byte(l, (double)(j * bits))});
        attr_set_string(shift, "direction", "RIGHT");
        op_infer(l->g, shift);
        struct value *own = lower_binary(l, "BitwiseAnd", "bits", shift->out[0], byte(l, (double)((1 << bits) - 1)));
        part[j] = lower_unsqueeze(l, "number", lower_cast(l, "float", own, DT_F32), last + 1, 1);
    }
    memcpy(dim, q->type.dim, sizeof dim);
    dim[last] = dim_mul(alg, dim[last], dim_int(alg, per));
    struct value *all = lower_reshape(l, "numbers", per > 1 ? lower_concat(l, "together", per, part, last + 1) : part[0], last + 1, dim);
    size[0] = n;
    size[1] = dim_sub(alg, dim[last], n);
    return dim_equals(size[1], 0) ? all : lower_split(l, "cut", all, last, 2, size)->out[0];
}

/* (q - zero) * scale, by rows or their blocks. */
static struct value *decoded(struct lowering *l, const struct moe_sizes *m, int j, const struct dim *columns)
{
    const struct node *node = l->node;
    struct alg *alg = l->g->alg;
    struct value *q = unpacked(l, node->in[moe_weight_at(m, j)], m->bits[j], columns), *zero, *scale = node->in[moe_scales_at(m, j)];
    const struct dim *rows = q->type.dim[1], *block = dim_int(alg, m->block), *blocks = m->block ? dim_quotient(alg, columns, block) : NULL;
    const struct dim *apart[4] = {m->experts, rows, blocks, block}, *joined[3] = {m->experts, rows, columns};
    if (m->block && !blocks)
        fail("%s: no gradient passes this node: the gradient of blocks that rows do not fill is not supported", node_where(l->g, node));
    q = m->block ? lower_reshape(l, "blocks", q, 4, apart) : q;
    scale = lower_unsqueeze(l, "scale", lower_cast(l, "scale.wide", scale, DT_F32), scale->type.rank, 1);
    if (node_operand(node, moe_zeros_at(j))) {
        zero = unpacked(l, node->in[moe_zeros_at(j)], m->bits[j], m->block ? blocks : rows);
        zero = lower_unsqueeze(l, "zero", zero, zero->type.rank, 1);
    } else {
        zero = number(l, "zero", (double)(1 << (m->bits[j] - 1)));
    }
    q = lower_binary(l, "Mul", "scaled", lower_binary(l, "Sub", "centred", q, zero), scale);
    return m->block ? lower_reshape(l, "rows", q, 3, joined) : q;
}

/* ---- all experts --------------------------------------------------------------------------------------------------------------------- */

/* [experts, rows, out] from x, [rows, in] or [experts, rows, in]. */
static struct value *product(struct lowering *l, const struct moe_sizes *m, int j, struct value *x)
{
    const struct node *node = l->node;
    const struct dim *columns = j == FC2 ? m->inner : m->hidden;
    struct value *w = m->quantized ? decoded(l, m, j, columns) : lower_float(l, "weight", node->in[moe_weight_at(m, j)]);
    struct value *turned = m->transposed ? w : lower_transpose(l, "turned", w, (int64_t[]){0, 2, 1});
    struct value *y = lower_binary(l, "MatMul", "product", x, turned);
    int bias = moe_bias_at(m, j);
    if (!node_operand(node, bias))
        return y;
    return lower_binary(l, "Add", "biased", y, lower_unsqueeze(l, "bias", lower_float(l, "bias.wide", node->in[bias]), 1, 1));
}

static struct value *activated(struct lowering *l, struct value *x)
{
    const char *type = attr_string(l->node, "activation_type");
    if (strcmp(type, "relu") == 0)
        return lower_unary(l, "Relu", "relu", x);
    if (strcmp(type, "silu") == 0)
        return lower_binary(l, "Mul", "silu", x, lower_unary(l, "Sigmoid", "sigmoid", x));
    if (strcmp(type, "gelu") != 0)
        return x;
    struct node *gelu = lower_node(l, "", "Gelu", "gelu", 1, &x);
    attr_set_string(gelu, "approximate", "tanh");
    op_infer(l->g, gelu);
    return gelu->out[0];
}

static struct value *swiglu(struct lowering *l, struct value *gate, struct value *value)
{
    const struct node *node = l->node;
    if (attr_is_set(node, "swiglu_limit")) {
        double limit = attr_float(node, "swiglu_limit");
        gate = lower_binary(l, "Min", "gate.limited", gate, number(l, "limit", limit));
        struct value *least = lower_binary(l, "Max", "value.least", value, number(l, "least", -limit));
        value = lower_binary(l, "Min", "value.limited", least, number(l, "limit", limit));
    }
    struct value *steep = lower_binary(l, "Mul", "steep", gate, number(l, "alpha", attr_float(node, "activation_alpha")));
    struct value *open = lower_binary(l, "Mul", "open", gate, lower_unary(l, "Sigmoid", "sigmoid", steep));
    return lower_binary(l, "Mul", "gated", open,
                        lower_binary(l, "Add", "more", value, number(l, "beta", attr_float(node, "activation_beta"))));
}

/* Gates and values of fc1, interleaved or concatenated. */
static struct value *both_gates(struct lowering *l, const struct moe_sizes *m, struct value *x, struct value **value)
{
    struct alg *alg = l->g->alg;
    const struct dim *two = dim_int(alg, 2),
                     *dim[4] = {m->experts, m->rows, m->interleaved ? m->inner : two, m->interleaved ? two : m->inner};
    int axis = m->interleaved ? 3 : 2;
    struct node *apart = lower_apart(l, "gates", lower_reshape(l, "pairs", x, 4, dim), axis, 2);
    *value = lower_squeeze(l, "value", apart->out[1], axis);
    return lower_squeeze(l, "gate", apart->out[0], axis);
}

static struct value *inner_values(struct lowering *l, const struct moe_sizes *m, struct value *x)
{
    struct value *gate = product(l, m, FC1, x), *value = NULL;
    if (m->gates == 2)
        gate = both_gates(l, m, gate, &value);
    else if (node_operand(l->node, moe_weight_at(m, FC3)))
        value = product(l, m, FC3, x);
    if (strcmp(attr_string(l->node, "activation_type"), "swiglu") == 0)
        return swiglu(l, gate, value);
    gate = activated(l, gate);
    return value ? lower_binary(l, "Mul", "gated", gate, value) : gate;
}

static void all_experts(struct lowering *l)
{
    const struct node *node = l->node;
    struct moe_sizes m = moe_read(l->g, node);
    const struct type *type = &node->out[0]->type;
    struct value *x = lower_reshape(l, "rows", lower_float(l, "wide", node->in[INPUT]), 2, (const struct dim *[]){m.rows, m.hidden});
    struct value *y = product(l, &m, FC2, inner_values(l, &m, x));
    struct value *counts = lower_transpose(l, "counts", lower_float(l, "mix", node->in[moe_mix_at(&m)]), (int64_t[]){1, 0});
    struct value *weighed = lower_binary(l, "Mul", "weighed", y, lower_unsqueeze(l, "count", counts, 2, 1));
    struct value *sum = lower_squeeze(l, "all", lower_reduce(l, "ReduceSum", "sum", weighed, 0, 1), 0);
    lower_result(l, 0, lower_cast(l, "narrow", lower_reshape(l, "whole", sum, type->rank, type->dim), type->dtype));
}

/* The choice is first converted to weights. */
void backward_moe(struct backward *b)
{
    struct moe_sizes m = moe_read(b->l.g, b->l.node);
    back_through(b, moe_takes_all(b->l.node, &m) ? all_experts : lower_moe);
}
