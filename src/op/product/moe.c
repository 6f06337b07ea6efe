/* moe: mixtures of experts (com.microsoft): the router values of a row choose its k experts, whose results are added with the weights of
 * the choice. An expert is y = fc2 act(fc1 x), gated by fc3 x if present, or with fc1 holding both, interleaved or concatenated. Weights
 * are [experts, out, in], or [experts, in, out] with `transposed`; in QMoE few-bit integers along the last dimension, with a scale (and
 * maybe a zero point) per row or per block of one. */
#include "op/infer/infer.h"
#include "op/op.h"
#include "op/product/product.h"
#include "op/table/table.h"

#include <string.h>

static const char *const bits_attr[MATRICES] = {"fc1_expert_weight_bits", "fc2_expert_weight_bits", "fc3_expert_weight_bits"};

/* ---- attributes ------------------------------------------------------------------------------------------------------------------- */

static void read_gates(const struct graph *g, const struct node *node, struct moe_sizes *m)
{
    const char *type = attr_string(node, "activation_type");
    int64_t fusion = attr_int(node, "swiglu_fusion");
    bool swiglu = strcmp(type, "swiglu") == 0, gated = node_operand(node, moe_weight_at(m, FC3));
    if (!swiglu && strcmp(type, "relu") && strcmp(type, "gelu") && strcmp(type, "silu") && strcmp(type, "identity"))
        fail("%s: activation_type is '%s', expected relu, gelu, silu, swiglu or identity", node_where(g, node), type);
    if (fusion < 0 || fusion > 2)
        fail("%s: swiglu_fusion is %lld, expected 0, 1 or 2", node_where(g, node), (long long)fusion);
    m->gates = swiglu && fusion ? 2 : 1;
    m->interleaved = fusion == 1;
    if (swiglu && gated == (fusion != 0))
        fail("%s: swiglu_fusion is %lld and there is %s fc3, expected a gate in one place", node_where(g, node), (long long)fusion,
             gated ? "an" : "no");
}

static void read_bits(const struct graph *g, const struct node *node, struct moe_sizes *m)
{
    m->block = attr_is_set(node, "block_size") ? attr_int(node, "block_size") : 0;
    if (strcmp(attr_string(node, "quant_type"), "int") || attr_int(node, "weights_prepacked") > 0)
        fail("%s: quant_type is '%s' and weights_prepacked %lld, expected int and 0", node_where(g, node), attr_string(node, "quant_type"),
             (long long)attr_int(node, "weights_prepacked"));
    if (m->block && (m->block < 16 || m->block > 65536 || (m->block & (m->block - 1))))
        fail("%s: block_size is %lld, expected a power of two from 16 to 65536", node_where(g, node), (long long)m->block);
    for (int j = 0; j < MATRICES; j++) {
        m->bits[j] = attr_int(node, attr_is_set(node, bits_attr[j]) ? bits_attr[j] : "expert_weight_bits");
        if (m->bits[j] != 2 && m->bits[j] != 4 && m->bits[j] != 8)
            fail("%s: expert_weight_bits is %lld, expected 2, 4 or 8", node_where(g, node), (long long)m->bits[j]);
    }
}

/* n elements of this many bits, in bytes. */
static const struct dim *packed_size(struct graph *g, const struct dim *n, int64_t bits)
{
    return dim_div(g->alg, dim_add(g->alg, dim_mul(g->alg, n, dim_int(g->alg, bits)), dim_int(g->alg, 7)), dim_int(g->alg, 8));
}

struct moe_sizes moe_read(struct graph *g, const struct node *node)
{
    struct moe_sizes m = {.quantized = strcmp(node->op->name, "QMoE") == 0, .bits = {8, 8, 8}};
    if (m.quantized)
        read_bits(g, node, &m);
    read_gates(g, node, &m);
    op_need_rank(g, node, INPUT, 2, 3);
    op_need_rank(g, node, ROUTER, 2, 2);
    op_need_rank(g, node, moe_weight_at(&m, FC1), 3, 3);
    op_need_rank(g, node, moe_weight_at(&m, FC2), 3, 3);
    const struct type *x = op_operand(g, node, INPUT), *fc2 = op_operand(g, node, moe_weight_at(&m, FC2));
    m.rows = x->rank == 2 ? x->dim[0] : dim_mul(g->alg, x->dim[0], x->dim[1]);
    m.hidden = x->dim[x->rank - 1];
    m.transposed = op_is_tpc(node, "Experts") && attr_int(node, "transposed");
    m.experts = fc2->dim[0];
    m.result = fc2->dim[m.transposed ? 2 : 1];
    m.inner = dim_div(g->alg, dim_mul(g->alg, fc2->dim[m.transposed ? 1 : 2], dim_int(g->alg, 8)), dim_int(g->alg, m.bits[FC2]));
    if (attr_int(node, "k") < !node_operand(node, moe_mix_at(&m))) /* a rank may hold no expert */
        fail("%s: k is %lld, expected at least 1", node_where(g, node), (long long)attr_int(node, "k"));
    if (attr_int(node, "use_sparse_mixer"))
        fail("%s: use_sparse_mixer is set, which tpc does not know", node_where(g, node));
    return m;
}

/* ---- inference --------------------------------------------------------------------------------------------------------------------- */

static const struct dim *moe_rows(struct graph *g, const struct moe_sizes *m, int j)
{
    return j == FC2 ? m->result : j == FC1 ? dim_mul(g->alg, m->inner, dim_int(g->alg, m->gates)) : m->inner;
}

static const struct dim *moe_columns(const struct moe_sizes *m, int j)
{
    return j == FC2 ? m->inner : m->hidden;
}

static void check_moe_shape(struct graph *g, const struct node *node, int i, int rank, const struct dim *const *dim)
{
    op_need_rank(g, node, i, rank, rank);
    for (int d = 0; d < rank; d++)
        op_same_dim(g, node, node->in[i]->type.dim[d], dim[d],
                    arena_printf(g->arena, "dimension %d of '%s' and of the experts", d, node->in[i]->name));
}

static const struct dim *moe_blocks(struct graph *g, const struct moe_sizes *m, int j)
{
    return dim_div(g->alg, dim_add(g->alg, moe_columns(m, j), dim_int(g->alg, m->block - 1)), dim_int(g->alg, m->block));
}

static void check_bytes(const struct graph *g, const struct node *node, int i)
{
    if (op_operand(g, node, i)->dtype != DT_U8)
        fail("%s: operand '%s' is %s, expected u8", node_where(g, node), node->in[i]->name, dtype_name(node->in[i]->type.dtype));
}

static void check_scales(struct graph *g, const struct node *node, const struct moe_sizes *m, int j)
{
    const struct dim *rows = moe_rows(g, m, j), *blocks = m->block ? moe_blocks(g, m, j) : NULL;
    int scales = moe_scales_at(m, j), zeros = moe_zeros_at(j);
    if (!dtype_is_float(op_operand(g, node, scales)->dtype))
        fail("%s: the scales '%s' are %s, expected a float type", node_where(g, node), node->in[scales]->name,
             dtype_name(node->in[scales]->type.dtype));
    check_moe_shape(g, node, scales, m->block ? 3 : 2, (const struct dim *[]){m->experts, rows, blocks});
    if (!node_operand(node, zeros))
        return;
    check_bytes(g, node, zeros);
    check_moe_shape(g, node, zeros, m->block ? 3 : 2,
                    (const struct dim *[]){m->experts, m->block ? rows : packed_size(g, rows, m->bits[j]),
                                           m->block ? packed_size(g, blocks, m->bits[j]) : NULL});
}

static void check_matrix(struct graph *g, const struct node *node, const struct moe_sizes *m, int j)
{
    int w = moe_weight_at(m, j);
    if (j == FC3 && !node_operand(node, w))
        return;
    const struct dim *rows = moe_rows(g, m, j);
    if (m->quantized)
        check_bytes(g, node, w);
    else
        op_same_dtype(g, node, INPUT, w);
    const struct dim *columns = packed_size(g, moe_columns(m, j), m->quantized ? m->bits[j] : 8);
    check_moe_shape(g, node, w, 3, (const struct dim *[]){m->experts, m->transposed ? columns : rows, m->transposed ? rows : columns});
    if (m->quantized)
        check_scales(g, node, m, j);
    if (!node_operand(node, moe_bias_at(m, j)))
        return;
    op_same_dtype(g, node, INPUT, moe_bias_at(m, j));
    check_moe_shape(g, node, moe_bias_at(m, j), 2, (const struct dim *[]){m->experts, rows});
}

void infer_moe(struct graph *g, struct node *node)
{
    struct moe_sizes m = moe_read(g, node);
    int64_t experts;
    op_same_dtype(g, node, INPUT, ROUTER);
    check_moe_shape(g, node, ROUTER, 2, (const struct dim *[]){m.rows, m.experts});
    for (int j = 0; j < MATRICES; j++)
        check_matrix(g, node, &m, j);
    if (node_operand(node, moe_mix_at(&m)))
        check_moe_shape(g, node, moe_mix_at(&m), 2, (const struct dim *[]){m.rows, m.experts});
    else if (dim_is_int(m.experts, &experts) && experts < attr_int(node, "k"))
        fail("%s: k is %lld of %lld experts", node_where(g, node), (long long)attr_int(node, "k"), (long long)experts);
    struct type y = node->in[INPUT]->type;
    y.dim[y.rank - 1] = g->rank < 0 ? op_same_dim(g, node, m.result, m.hidden, "the width of the result and of the input") : m.result;
    op_result(g, node, 0, y.dtype, y.rank, y.dim);
}
