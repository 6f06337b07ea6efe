/* quantize: QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear, MatMulInteger.
 *
 * A scale and a zero point belong to the tensor, to an index of one axis, or to a block of block_size indices of it. They follow the
 * splits of the tensor: an axis in blocks is (c !l), and the scale has c of them. If the last block is not full the axis is never split. */
#include "ir/operands.h"
#include "op/infer/infer.h"
#include "op/rule/rule.h"
#include "op/table/table.h"

enum { X = IN_QuantizeLinear_x, SCALE = IN_QuantizeLinear_y_scale, ZERO = IN_QuantizeLinear_y_zero_point }; /* for both ops */

/* ---- scales ------------------------------------------------------------------------------------------------------------------------ */

/* axis -1: one scale for all; block 0: one per index of the axis. */
struct quantize_grain {
    int axis;
    int64_t block;
};

static struct quantize_grain quantize_grain(const struct graph *g, const struct node *node)
{
    const struct type *x = op_operand(g, node, X), *scale = op_operand(g, node, SCALE);
    struct quantize_grain grain = {-1, attr_int(node, "block_size")};
    if (grain.block < 0)
        fail("%s: block_size is %lld, expected 0 or more", node_where(g, node), (long long)grain.block);
    if (grain.block > 0 || (scale->rank == 1 && !dim_equals(scale->dim[0], 1)))
        grain.axis = op_axis(g, node, attr_int(node, "axis"), x->rank);
    return grain;
}

static const struct dim *quantized_blocks(struct graph *g, const struct dim *size, int64_t block)
{
    return dim_div(g->alg, dim_add(g->alg, size, dim_int(g->alg, block - 1)), dim_int(g->alg, block));
}

static void check_quantize_scale(struct graph *g, const struct node *node, int i, const struct quantize_grain *grain)
{
    const struct type *x = op_operand(g, node, X), *t = op_operand(g, node, i);
    static const char what[] = "the scale or zero point and the tensor";
    op_need_rank(g, node, i, grain->block ? x->rank : grain->axis >= 0, grain->block ? x->rank : 1);
    if (t->rank == 1 && !grain->block)
        op_same_dim(g, node, t->dim[0], grain->axis >= 0 ? x->dim[grain->axis] : dim_int(g->alg, 1), what);
    for (int d = 0; grain->block && d < x->rank; d++)
        op_same_dim(g, node, t->dim[d], d == grain->axis ? quantized_blocks(g, x->dim[d], grain->block) : x->dim[d], what);
}

static bool is_quantized(enum dtype t)
{
    bool power = t == DT_F8E8M0;
    return (dtype_is_integer(t) && dtype_bits(t) <= 16) || (dtype_is_small_float(t) && !power);
}

static void infer_scaled(struct graph *g, struct node *node, enum dtype result)
{
    struct quantize_grain grain = quantize_grain(g, node);
    check_quantize_scale(g, node, SCALE, &grain);
    if (node_operand(node, ZERO))
        check_quantize_scale(g, node, ZERO, &grain);
    op_result(g, node, 0, result, op_operand(g, node, X)->rank, op_operand(g, node, X)->dim);
}

static void refuse_type(const struct graph *g, const struct node *node, enum dtype t)
{
    fail("%s: %s is no quantised type that tpc handles (integers of 2 to 16 bits, floats of 4 and 8)", node_where(g, node), dtype_name(t));
}

void infer_quantize(struct graph *g, struct node *node)
{
    int64_t given = attr_int(node, "output_dtype");
    enum dtype to = node_operand(node, ZERO) ? op_operand(g, node, ZERO)->dtype : given ? (enum dtype)given : DT_U8;
    if (!is_quantized(to))
        refuse_type(g, node, to);
    infer_scaled(g, node, to);
}

void infer_dequantize(struct graph *g, struct node *node)
{
    enum dtype from = op_operand(g, node, X)->dtype;
    int64_t given = attr_int(node, "output_dtype");
    enum dtype to = given ? (enum dtype)given : op_operand(g, node, SCALE)->dtype;
    if (!is_quantized(from) && from != DT_I32)
        refuse_type(g, node, from);
    if (node_operand(node, ZERO))
        op_same_dtype(g, node, X, ZERO);
    if (!dtype_is_float(to))
        fail("%s: the result would be %s, expected a float", node_where(g, node), dtype_name(to));
    infer_scaled(g, node, to);
}

void infer_dynamicquantize(struct graph *g, struct node *node)
{
    const struct type *x = op_operand(g, node, X);
    op_result(g, node, 0, DT_U8, x->rank, x->dim);
    op_result(g, node, 1, DT_F32, 0, NULL);
    op_result(g, node, 2, DT_U8, 0, NULL);
}

/* ---- rules ------------------------------------------------------------------------------------------------------------------------- */

/* Factors of the blocked axis in x and in the scale. */
static void put_blocks(struct graph *g, struct rule *r, const struct node *node, const struct quantize_grain *grain)
{
    const struct dim *size = node->in[X]->type.dim[grain->axis], *block = dim_int(g->alg, grain->block),
                     *blocks = dim_quotient(g->alg, size, block);
    int c = rule_factor(g, r, "c", blocks ? blocks : quantized_blocks(g, size, grain->block), blocks ? 0 : FACTOR_REPLICATED), l = -1;
    if (blocks)
        l = rule_factor(g, r, "l", block, FACTOR_REPLICATED);
    else
        l = rule_factor(g, r, "k", size, FACTOR_REPLICATED);
    for (int i = SCALE; i < node->nin; i++)
        rule_put(g, &r->in[i], grain->axis, 0, c);
    for (int i = 0; i < 2; i++) {
        struct rule_operand *operand = i ? &r->out[0] : &r->in[X];
        if (blocks)
            rule_put(g, operand, grain->axis, 0, c);
        rule_put(g, operand, grain->axis, 0, l);
    }
}

struct rule *rule_quantize(struct graph *g, const struct node *node)
{
    struct rule *r = rule_new(g, node);
    struct quantize_grain grain = quantize_grain(g, node);
    for (int d = 0; d < node->in[X]->type.rank; d++) {
        if (d == grain.axis && grain.block) {
            put_blocks(g, r, node, &grain);
            continue;
        }
        int f = rule_numbered(g, r, "d", d, node->in[X]->type.dim[d], 0);
        rule_put(g, &r->in[X], d, 0, f);
        rule_put(g, &r->out[0], d, 0, f);
        for (int i = SCALE; i < node->nin; i++)
            if (grain.block || d == grain.axis)
                rule_put(g, &r->in[i], grain.block ? d : 0, 0, f);
    }
    return r;
}

struct rule *rule_dequantize(struct graph *g, const struct node *node)
{
    struct rule *r = rule_quantize(g, node);
    rule_linear(r, 1u << SCALE);
    return r;
}

/* ---- MatMulInteger ------------------------------------------------------------------------------------------------------------------ */

enum { A = IN_MatMulInteger_A, B = IN_MatMulInteger_B, A_ZERO = IN_MatMulInteger_a_zero_point, B_ZERO = IN_MatMulInteger_b_zero_point };

/* A zero point per row of A or per column of B, in the forms that numpy broadcasts: [m], [.., m, 1]; [n], [.., 1, n]. */
static int zero_dim(const struct graph *g, const struct node *node, int i)
{
    const struct type *t = op_operand(g, node, i);
    int d = t->rank == 1 ? 0 : t->rank - (i == A_ZERO ? 2 : 1);
    for (int k = 0; k < t->rank; k++)
        if (k != d && !dim_equals(t->dim[k], 1))
            fail("%s: zero point '%s' is %s, expected one for each row of A or column of B", node_where(g, node), node->in[i]->name,
                 type_str(g->arena, t));
    return t->rank == 0 || dim_equals(t->dim[d], 1) ? -1 : d;
}

static void check_zero(struct graph *g, struct node *node, int i)
{
    const struct type *t = &node->in[i - A_ZERO]->type;
    int d = node_operand(node, i) ? zero_dim(g, node, i) : -1;
    if (node_operand(node, i))
        op_same_dtype(g, node, i - A_ZERO, i);
    if (d >= 0)
        op_same_dim(g, node, op_operand(g, node, i)->dim[d], t->dim[t->rank - (i == A_ZERO ? 2 : 1)], "a zero point and its operand");
}

void infer_matmulinteger(struct graph *g, struct node *node)
{
    op_need_rank(g, node, A, 2, MAX_RANK);
    op_need_rank(g, node, B, 2, 2);
    struct type out = *op_operand(g, node, A);
    for (int i = A; i <= B; i++)
        if (!dtype_is_byte(op_operand(g, node, i)->dtype))
            fail("%s: operand '%s' is %s, expected u8 or i8", node_where(g, node), node->in[i]->name, dtype_name(node->in[i]->type.dtype));
    op_same_dim(g, node, out.dim[out.rank - 1], node->in[B]->type.dim[0], "the contracted dimensions");
    check_zero(g, node, A_ZERO);
    check_zero(g, node, B_ZERO);
    out.dim[out.rank - 1] = node->in[B]->type.dim[1];
    op_result(g, node, 0, DT_I32, out.rank, out.dim);
}

struct rule *rule_matmulinteger(struct graph *g, const struct node *node)
{
    struct rule *r = rule_new(g, node);
    const struct type *a = &node->in[A]->type;
    int last = a->rank - 1, f = -1, k = rule_factor(g, r, "k", a->dim[last], FACTOR_CONTRACTED);
    int n = rule_factor(g, r, "n", node->in[B]->type.dim[1], 0);
    r->factor[k].red = RED_SUM;
    for (int d = 0; d < last; d++)
        f = rule_same_dim(g, r, "b", d, a->dim[d], 0);
    rule_put(g, &r->in[A], last, 0, k);
    rule_put(g, &r->in[B], 0, 0, k);
    rule_put(g, &r->in[B], 1, 0, n);
    rule_put(g, &r->out[0], last, 0, n);
    for (int i = A_ZERO; i <= B_ZERO; i++) {
        int d = node_operand(node, i) ? zero_dim(g, node, i) : -1;
        if (d >= 0)
            rule_put(g, &r->in[i], d, 0, i == A_ZERO ? f : n);
    }
    return r;
}
