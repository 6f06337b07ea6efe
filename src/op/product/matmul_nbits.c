/* matmul_nbits: few-bit weights in blocks along the contracted dimension (com.microsoft): row n of B is K values in blocks of block_size,
 * the last one padded; a block has a scale and maybe a zero point, and zero points of less than a byte share bytes along a row.
 *
 * MatMulNBitsGrad is the product with the rows of B: the gradient of A.
 *
 * Columns split anywhere. K splits between blocks and between bytes of zero points: its factors are c groups of p blocks whose zero points
 * fill a byte, and the l values of a block. If K is not a multiple of the group, or g_idx maps values to scales, K is never split. */
#include "ir/operands.h"
#include "op/backward/backward.h"
#include "op/infer/infer.h"
#include "op/rule/rule.h"
#include "op/table/table.h"

#include <string.h>

struct nbits_sizes {
    int64_t n, k, bits, block, blocks, zero_bytes;
};

static struct nbits_sizes nbits_read(const struct graph *g, const struct node *node)
{
    struct nbits_sizes b = {attr_int(node, "N"), attr_int(node, "K"), attr_int(node, "bits"), attr_int(node, "block_size"), 0, 0};
    if (b.bits != 2 && b.bits != 4 && b.bits != 8)
        fail("%s: bits is %lld, expected 2, 4 or 8", node_where(g, node), (long long)b.bits);
    if (b.block < 16 || b.block > 65536 || (b.block & (b.block - 1)))
        fail("%s: block_size is %lld, expected a power of two from 16 to 65536", node_where(g, node), (long long)b.block);
    if (b.n < 0 || b.k < 0 || b.k > INT64_MAX / 16)
        fail("%s: N and K are %lld and %lld, expected sizes", node_where(g, node), (long long)b.n, (long long)b.k);
    b.blocks = (b.k + b.block - 1) / b.block;
    b.zero_bytes = (b.blocks * b.bits + 7) / 8;
    return b;
}

static bool packed_zeros(const struct node *node)
{
    return node_operand(node, IN_MatMulNBits_zero_points) && node->in[IN_MatMulNBits_zero_points]->type.dtype == DT_U8;
}

/* ---- inference ------------------------------------------------------------------------------------------------------------------ */

static bool is_shape(const struct type *t, int rank, const int64_t *size)
{
    for (int d = 0; t->rank == rank && d < rank; d++)
        if (!dim_equals(t->dim[d], size[d]))
            return false;
    return t->rank == rank;
}

static void check_shape(const struct graph *g, const struct node *node, int i, int rank, const int64_t *size)
{
    const char *text = "";
    if (is_shape(op_operand(g, node, i), rank, size))
        return;
    for (int d = 0; d < rank; d++)
        text = arena_printf(g->arena, "%s%s%lld", text, d ? ", " : "", (long long)size[d]);
    fail("%s: operand '%s' is %s, expected [%s] by the attributes N, K, bits and block_size", node_where(g, node), node->in[i]->name,
         type_str(g->arena, &node->in[i]->type), text);
}

/* One row of `each` elements per column of the result; older exports concatenate the rows. */
static void check_nbits_rows(const struct graph *g, const struct node *node, int i, int64_t n, int64_t each)
{
    int64_t all;
    if (!i64_mul(n, each, &all))
        fail("%s: N and K are too large", node_where(g, node));
    if (!is_shape(op_operand(g, node, i), 1, &all))
        check_shape(g, node, i, 2, (int64_t[]){n, each});
}

static void check_dtype(const struct graph *g, const struct node *node, int i, enum dtype expected)
{
    enum dtype found = op_operand(g, node, i)->dtype;
    if (found != expected)
        fail("%s: operand '%s' is %s, expected %s", node_where(g, node), node->in[i]->name, dtype_name(found), dtype_name(expected));
}

static void infer_nbits(struct graph *g, struct node *node, bool turned)
{
    struct nbits_sizes b = nbits_read(g, node);
    op_need_rank(g, node, IN_MatMulNBits_A, 1, MAX_RANK);
    struct type out = *op_operand(g, node, IN_MatMulNBits_A);
    if (turned)
        op_same_dim(g, node, out.dim[out.rank - 1], dim_int(g->alg, b.n), "the last dimension of dY and attribute N");
    else
        op_same_dim(g, node, out.dim[out.rank - 1], dim_int(g->alg, b.k), "the last dimension of A and attribute K");
    check_dtype(g, node, IN_MatMulNBits_B, DT_U8);
    check_shape(g, node, IN_MatMulNBits_B, 3, (int64_t[]){b.n, b.blocks, b.block * b.bits / 8});
    op_same_dtype(g, node, IN_MatMulNBits_A, IN_MatMulNBits_scales);
    check_nbits_rows(g, node, IN_MatMulNBits_scales, b.n, b.blocks);
    if (node_operand(node, IN_MatMulNBits_zero_points) && !packed_zeros(node))
        op_same_dtype(g, node, IN_MatMulNBits_A, IN_MatMulNBits_zero_points);
    if (node_operand(node, IN_MatMulNBits_zero_points))
        check_nbits_rows(g, node, IN_MatMulNBits_zero_points, b.n, packed_zeros(node) ? b.zero_bytes : b.blocks);
    if (node_operand(node, IN_MatMulNBits_g_idx)) {
        check_dtype(g, node, IN_MatMulNBits_g_idx, DT_I32);
        check_shape(g, node, IN_MatMulNBits_g_idx, 1, &b.k);
    }
    if (node_operand(node, IN_MatMulNBits_bias)) {
        op_same_dtype(g, node, IN_MatMulNBits_A, IN_MatMulNBits_bias);
        check_shape(g, node, IN_MatMulNBits_bias, 1, &b.n);
    }
    out.dim[out.rank - 1] = dim_int(g->alg, turned ? b.k : b.n);
    op_result(g, node, 0, out.dtype, out.rank, out.dim);
}

INFER_IS(matmulnbits, infer_nbits(g, node, false))
INFER_IS(matmulnbitsgrad, infer_nbits(g, node, true))

/* ---- the rule ---------------------------------------------------------------------------------------------------------------------- */

/* Factors of K, outer to inner; those of B's blocks and of its zero points. */
struct columns {
    struct rule_part k, blocks, zeros;
};

static int nbits_factor(struct graph *g, struct rule *r, const char *name, int64_t size, unsigned flags)
{
    int f = rule_factor(g, r, name, dim_int(g->alg, size), flags);
    if (flags & FACTOR_CONTRACTED)
        r->factor[f].red = RED_SUM;
    return f;
}

static struct rule_part factors_part(int n, const int *f)
{
    struct rule_part p = {.n = n};
    for (int i = 0; i < n; i++)
        p.factor[i] = f[i];
    return p;
}

static struct columns replicated_columns(struct graph *g, struct rule *r, const struct node *node, const struct nbits_sizes *b,
                                         unsigned flags)
{
    int k = nbits_factor(g, r, "k", b->k, FACTOR_REPLICATED | flags), c = nbits_factor(g, r, "c", b->blocks, FACTOR_REPLICATED);
    int z = packed_zeros(node) ? nbits_factor(g, r, "z", b->zero_bytes, FACTOR_REPLICATED) : c;
    return (struct columns){factors_part(1, &k), factors_part(1, &c), factors_part(1, &z)};
}

static struct columns column_factors(struct graph *g, struct rule *r, const struct node *node, const struct nbits_sizes *b, unsigned flags)
{
    int64_t per = packed_zeros(node) ? 8 / b->bits : 1;
    if (node_operand(node, IN_MatMulNBits_g_idx) || b->k % (b->block * per))
        return replicated_columns(g, r, node, b, flags);
    int f[3], n = 0;
    f[n++] = nbits_factor(g, r, "c", b->blocks / per, flags);
    if (per > 1)
        f[n++] = nbits_factor(g, r, "p", per, FACTOR_REPLICATED | flags);
    f[n] = nbits_factor(g, r, "l", b->block, FACTOR_REPLICATED | flags);
    return (struct columns){factors_part(n + 1, f), factors_part(n, f), factors_part(packed_zeros(node) ? 1 : n, f)};
}

static void put_factors(struct graph *g, struct rule_operand *operand, int d, const struct rule_part *part)
{
    for (int i = 0; i < part->n; i++)
        rule_put(g, operand, d, 0, part->factor[i]);
}

/* Rows n of these blocks, in two dimensions or concatenated. */
static void put_nbits_rows(struct graph *g, struct rule_operand *operand, int n, const struct rule_part *part)
{
    rule_put(g, operand, 0, 0, n);
    put_factors(g, operand, operand->rank - 1, part);
}

static struct rule *nbits_rule(struct graph *g, const struct node *node, bool turned)
{
    struct nbits_sizes b = nbits_read(g, node);
    struct rule *r = rule_new(g, node);
    struct columns c = column_factors(g, r, node, &b, turned ? 0 : FACTOR_CONTRACTED);
    int n = nbits_factor(g, r, "n", b.n, turned ? FACTOR_CONTRACTED : 0), last = r->in[IN_MatMulNBits_A].rank - 1;
    for (int d = 0; d < last; d++)
        rule_same_dim(g, r, "b", d, node->in[IN_MatMulNBits_A]->type.dim[d], 0);
    put_factors(g, turned ? &r->out[0] : &r->in[IN_MatMulNBits_A], last, &c.k);
    rule_put(g, turned ? &r->in[IN_MatMulNBits_A] : &r->out[0], last, 0, n);
    put_nbits_rows(g, &r->in[IN_MatMulNBits_B], n, &(struct rule_part){0});
    put_factors(g, &r->in[IN_MatMulNBits_B], 1, &c.blocks);
    rule_put(g, &r->in[IN_MatMulNBits_B], 2, 0, nbits_factor(g, r, "o", b.block * b.bits / 8, FACTOR_REPLICATED));
    put_nbits_rows(g, &r->in[IN_MatMulNBits_scales], n, &c.blocks);
    if (node_operand(node, IN_MatMulNBits_zero_points))
        put_nbits_rows(g, &r->in[IN_MatMulNBits_zero_points], n, &c.zeros);
    if (node_operand(node, IN_MatMulNBits_g_idx))
        put_factors(g, &r->in[IN_MatMulNBits_g_idx], 0, &c.k);
    if (node_operand(node, IN_MatMulNBits_bias)) {
        rule_put(g, &r->in[IN_MatMulNBits_bias], 0, 0, n);
        rule_addend(r, IN_MatMulNBits_bias);
    }
    uint32_t added = node_operand(node, IN_MatMulNBits_bias) ? 1u << IN_MatMulNBits_bias : 0;
    rule_linear(r, 1u << IN_MatMulNBits_A | added);
    rule_linear(r, 1u << IN_MatMulNBits_scales | added);
    r->size[r->nsize++] = (struct rule_size){"K", c.k};
    r->size[r->nsize++] = (struct rule_size){"N", factors_part(1, &n)};
    return r;
}

RULE_IS(matmulnbits, nbits_rule(g, node, false))
RULE_IS(matmulnbitsgrad, nbits_rule(g, node, true))

/* ---- gradient ------------------------------------------------------------------------------------------------------------------------ */

/* Gradients of A and of the bias: the weight is not trained. */
void backward_matmulnbits(struct backward *b)
{
    const struct node *node = b->l.node;
    struct value *in[IN_MatMulNBits_bias] = {back_dy(b), node->in[IN_MatMulNBits_B], node->in[IN_MatMulNBits_scales],
                                             back_operand(b, IN_MatMulNBits_zero_points), back_operand(b, IN_MatMulNBits_g_idx)};
    if (back_wants(b, IN_MatMulNBits_scales) || back_wants(b, IN_MatMulNBits_zero_points))
        fail("%s: no gradient passes this node: quantised weights are not trained", node_where(b->l.g, node));
    if (back_wants(b, IN_MatMulNBits_bias))
        back_to(b, IN_MatMulNBits_bias, back_dy(b));
    if (!back_wants(b, IN_MatMulNBits_A))
        return;
    struct node *made = lower_node(&b->l, "tpc", "MatMulNBitsGrad", "MatMulNBitsGrad", IN_MatMulNBits_bias, in);
    attr_copy(made, node);
    op_infer(b->l.g, made);
    back_to(b, IN_MatMulNBits_A, made->out[0]);
}
