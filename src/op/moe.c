/* Mixtures of experts (com.microsoft): every row goes through the k experts that its router values choose, and their results are added with
 * the weights of the choice. An expert is y = fc2 act(fc1 x), gated by fc3 x where there is one or where fc1 holds both, in turn or one
 * behind the other. Weights are [experts, out, in]; those of QMoE integers of a few bits along the last dimension, with a scale (and maybe a
 * zero point) for a row or for each block of one.
 *
 * The inner width splits: columns of fc1 and fc3, rows of fc2, and the result is a sum. In QMoE it is c groups of u, so that no byte and no
 * block is cut. */
#include "op/op.h"
#include "op/table.h"

#include <string.h>

enum { INPUT, ROUTER, FIRST_WEIGHT, FC1 = 0, FC2 = 1, FC3 = 2, MATRICES = 3 };
static const char *const bits_attr[MATRICES] = {"fc1_expert_weight_bits", "fc2_expert_weight_bits", "fc3_expert_weight_bits"};

struct moe {
    bool quantized;
    int gates;                         /* 2: fc1 holds gate and value; 1: not */
    bool interleaved;                  /* gate and value in turn */
    int64_t bits[MATRICES], block;     /* block 0: one scale per row */
    const struct dim *rows, *experts, *hidden, *inner, *result;
};

/* Where operands stand. */
static int weight_at(const struct moe *m, int j) { return FIRST_WEIGHT + j * (m->quantized ? 3 : 2); }
static int scales_at(const struct moe *m, int j) { return weight_at(m, j) + 1; }
static int bias_at(const struct moe *m, int j) { return weight_at(m, j) + (m->quantized ? 2 : 1); }
static int zeros_at(int j) { return 11 + j; }
static int mix_at(const struct moe *m) { return m->quantized ? 14 : 8; }

static bool has(const struct node *node, int i)
{
    return i < node->nin && node->in[i];
}

/* ---- attributes ------------------------------------------------------------------------------------------------------------------- */

static void read_gates(const struct graph *g, const struct node *node, struct moe *m)
{
    const char *type = attr_string(node, "activation_type");
    int64_t fusion = attr_int(node, "swiglu_fusion");
    bool swiglu = strcmp(type, "swiglu") == 0, gated = has(node, weight_at(m, FC3));
    if (!swiglu && strcmp(type, "relu") && strcmp(type, "gelu") && strcmp(type, "silu") && strcmp(type, "identity"))
        fail("%s: activation_type is '%s', expected relu, gelu, silu, swiglu or identity", node_where(g, node), type);
    if (fusion < 0 || fusion > 2)
        fail("%s: swiglu_fusion is %lld, expected 0, 1 or 2", node_where(g, node), (long long)fusion);
    m->gates = swiglu && fusion ? 2 : 1;
    m->interleaved = fusion == 1;
    if (swiglu && gated == (fusion != 0))
        fail("%s: swiglu_fusion is %lld and there is %s fc3, expected a gate in one place", node_where(g, node), (long long)fusion, gated ? "an" : "no");
}

static void read_bits(const struct graph *g, const struct node *node, struct moe *m)
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

/* n numbers of so many bits, in bytes. */
static const struct dim *packed(struct graph *g, const struct dim *n, int64_t bits)
{
    return dim_div(g->alg, dim_add(g->alg, dim_mul(g->alg, n, dim_int(g->alg, bits)), dim_int(g->alg, 7)), dim_int(g->alg, 8));
}

static struct moe moe_read(struct graph *g, const struct node *node)
{
    struct moe m = {.quantized = strcmp(node->op->name, "QMoE") == 0, .bits = {8, 8, 8}};
    if (m.quantized)
        read_bits(g, node, &m);
    read_gates(g, node, &m);
    op_need_rank(g, node, INPUT, 2, 3);
    op_need_rank(g, node, ROUTER, 2, 2);
    op_need_rank(g, node, weight_at(&m, FC1), 3, 3);
    op_need_rank(g, node, weight_at(&m, FC2), 3, 3);
    const struct type *x = op_operand(g, node, INPUT), *fc2 = op_operand(g, node, weight_at(&m, FC2));
    m.rows = x->rank == 2 ? x->dim[0] : dim_mul(g->alg, x->dim[0], x->dim[1]);
    m.hidden = x->dim[x->rank - 1];
    m.experts = fc2->dim[0];
    m.result = fc2->dim[1];
    m.inner = dim_div(g->alg, dim_mul(g->alg, fc2->dim[2], dim_int(g->alg, 8)), dim_int(g->alg, m.bits[FC2]));
    if (attr_int(node, "k") < 1)
        fail("%s: k is %lld, expected at least 1", node_where(g, node), (long long)attr_int(node, "k"));
    if (attr_int(node, "use_sparse_mixer"))
        fail("%s: use_sparse_mixer is set, which tpc does not know", node_where(g, node));
    return m;
}

/* ---- inference --------------------------------------------------------------------------------------------------------------------- */

static const struct dim *rows_of(struct graph *g, const struct moe *m, int j)
{
    return j == FC2 ? m->result : j == FC1 ? dim_mul(g->alg, m->inner, dim_int(g->alg, m->gates)) : m->inner;
}

static const struct dim *columns_of(const struct moe *m, int j)
{
    return j == FC2 ? m->inner : m->hidden;
}

static void check_shape(struct graph *g, const struct node *node, int i, int rank, const struct dim *const *dim)
{
    op_need_rank(g, node, i, rank, rank);
    for (int d = 0; d < rank; d++)
        op_same_dim(g, node, node->in[i]->type.dim[d], dim[d], arena_printf(g->arena, "dimension %d of '%s' and of the experts", d, node->in[i]->name));
}

static const struct dim *blocks_of(struct graph *g, const struct moe *m, int j)
{
    return dim_div(g->alg, dim_add(g->alg, columns_of(m, j), dim_int(g->alg, m->block - 1)), dim_int(g->alg, m->block));
}

static void check_bytes(const struct graph *g, const struct node *node, int i)
{
    if (op_operand(g, node, i)->dtype != DT_U8)
        fail("%s: operand '%s' is %s, expected u8", node_where(g, node), node->in[i]->name, dtype_name(node->in[i]->type.dtype));
}

static void check_scales(struct graph *g, const struct node *node, const struct moe *m, int j)
{
    const struct dim *rows = rows_of(g, m, j), *blocks = m->block ? blocks_of(g, m, j) : NULL;
    int scales = scales_at(m, j), zeros = zeros_at(j);
    if (!dtype_is_float(op_operand(g, node, scales)->dtype))
        fail("%s: the scales '%s' are %s, expected a float type", node_where(g, node), node->in[scales]->name, dtype_name(node->in[scales]->type.dtype));
    check_shape(g, node, scales, m->block ? 3 : 2, (const struct dim *[]){m->experts, rows, blocks});
    if (!has(node, zeros))
        return;
    check_bytes(g, node, zeros);
    check_shape(g, node, zeros, m->block ? 3 : 2,
                (const struct dim *[]){m->experts, m->block ? rows : packed(g, rows, m->bits[j]), m->block ? packed(g, blocks, m->bits[j]) : NULL});
}

static void check_matrix(struct graph *g, const struct node *node, const struct moe *m, int j)
{
    int w = weight_at(m, j);
    if (j == FC3 && !has(node, w))
        return;
    const struct dim *rows = rows_of(g, m, j);
    if (m->quantized)
        check_bytes(g, node, w);
    else
        op_same_dtype(g, node, INPUT, w);
    check_shape(g, node, w, 3, (const struct dim *[]){m->experts, rows, packed(g, columns_of(m, j), m->quantized ? m->bits[j] : 8)});
    if (m->quantized)
        check_scales(g, node, m, j);
    if (!has(node, bias_at(m, j)))
        return;
    op_same_dtype(g, node, INPUT, bias_at(m, j));
    check_shape(g, node, bias_at(m, j), 2, (const struct dim *[]){m->experts, rows});
}

void infer_moe(struct graph *g, struct node *node)
{
    struct moe m = moe_read(g, node);
    int64_t experts;
    op_same_dtype(g, node, INPUT, ROUTER);
    check_shape(g, node, ROUTER, 2, (const struct dim *[]){m.rows, m.experts});
    for (int j = 0; j < MATRICES; j++)
        check_matrix(g, node, &m, j);
    if (has(node, mix_at(&m)))
        check_shape(g, node, mix_at(&m), 2, (const struct dim *[]){m.rows, m.experts});
    else if (dim_is_int(m.experts, &experts) && experts < attr_int(node, "k"))
        fail("%s: k is %lld of %lld experts", node_where(g, node), (long long)attr_int(node, "k"), (long long)experts);
    struct type y = node->in[INPUT]->type;
    y.dim[y.rank - 1] = g->rank < 0 ? op_same_dim(g, node, m.result, m.hidden, "the width of the result and of the input") : m.result;
    op_result(g, node, 0, y.dtype, y.rank, y.dim);
}

/* ---- the rule ------------------------------------------------------------------------------------------------------------------------ */

struct factors { struct graph *g; struct rule *r; const struct node *node; const struct moe *m; int64_t unit; int rows, row[2], e, n, c, u, gate; };

static int whole(struct factors *f, const char *name, const struct dim *size)
{
    return rule_factor(f->g, f->r, name, size, FACTOR_WHOLE | FACTOR_DROPPED);
}

static void put(struct factors *f, int operand, int d, int factor)
{
    if (factor >= 0)
        rule_put(f->g, &f->r->in[operand], d, 0, factor);
}

/* Numbers of the inner width that split together: as many as fill bytes, blocks, and bytes of zero points; 0: the width stays whole. */
static int64_t inner_unit(const struct node *node, const struct moe *m)
{
    int64_t unit = 1, inner, packs = m->block * (has(node, zeros_at(FC2)) ? 8 / m->bits[FC2] : 1);
    for (int j = 0; m->quantized && j < MATRICES; j++)
        unit = unit < 8 / m->bits[j] ? 8 / m->bits[j] : unit;
    unit = unit < packs ? packs : unit;
    return dim_is_int(m->inner, &inner) && inner % unit == 0 ? unit : 0;
}

static void inner_factors(struct factors *f)
{
    struct graph *g = f->g;
    int64_t unit = f->unit ? f->unit : 1;
    f->c = rule_factor(g, f->r, "i", dim_div(g->alg, f->m->inner, dim_int(g->alg, unit)), FACTOR_CONTRACTED | (f->unit ? 0 : FACTOR_WHOLE));
    f->r->factor[f->c].red = RED_SUM;
    f->u = unit > 1 ? whole(f, "u", dim_int(g->alg, unit)) : -1;
    f->gate = f->m->gates > 1 ? whole(f, "gate", dim_int(g->alg, 2)) : -1;
}

/* The inner width, or what it takes of a packed one: `each` for every unit, in both gates. */
static void put_inner(struct factors *f, int operand, int d, int j, int64_t each)
{
    int gate = j == FC1 ? f->gate : -1, u = each == f->unit || !f->unit ? f->u : each > 1 ? whole(f, "p", dim_int(f->g->alg, each)) : -1;
    put(f, operand, d, f->m->interleaved ? -1 : gate);
    put(f, operand, d, f->c);
    put(f, operand, d, u);
    put(f, operand, d, f->m->interleaved ? gate : -1);
}

static void put_rows(struct factors *f, int operand, int d, int j)
{
    if (j == FC2)
        put(f, operand, d, f->n);
    else
        put_inner(f, operand, d, j, f->unit);
}

/* A dimension that no other operand has. */
static void put_own(struct factors *f, int operand, int d)
{
    put(f, operand, d, whole(f, "q", f->node->in[operand]->type.dim[d]));
}

/* Along the columns of fc2 a unit takes so much of a dimension of its operands; those of others stay whole. */
static void put_columns(struct factors *f, int operand, int j, int64_t each)
{
    if (j == FC2 && f->unit)
        put_inner(f, operand, 2, j, each);
    else
        put_own(f, operand, 2);
}

static void put_scales(struct factors *f, int j)
{
    const struct moe *m = f->m;
    int scales = scales_at(m, j), zeros = zeros_at(j);
    put(f, scales, 0, f->e);
    put_rows(f, scales, 1, j);
    if (m->block)
        put_columns(f, scales, j, f->unit / m->block);
    if (!has(f->node, zeros))
        return;
    put(f, zeros, 0, f->e);
    if (m->block) {
        put_rows(f, zeros, 1, j);
        put_columns(f, zeros, j, f->unit / m->block * m->bits[j] / 8);
    } else if (j == FC2 || !f->unit) {
        put_own(f, zeros, 1);
    } else {
        put_inner(f, zeros, 1, j, f->unit * m->bits[j] / 8);
    }
}

static void put_matrix(struct factors *f, int j)
{
    const struct moe *m = f->m;
    int w = weight_at(m, j), bias = bias_at(m, j);
    if (!has(f->node, w))
        return;
    put(f, w, 0, f->e);
    put_rows(f, w, 1, j);
    put_columns(f, w, j, f->unit * m->bits[j] / 8);
    if (m->quantized)
        put_scales(f, j);
    if (!has(f->node, bias))
        return;
    put(f, bias, 0, f->e);
    put_rows(f, bias, 1, j);
    f->r->in[bias].term = j == FC2;
}

/* Rows of the result of fc2 are independent, too; but not where their zero points share bytes. */
static unsigned result_flags(const struct node *node, const struct moe *m)
{
    return m->quantized && !m->block && has(node, zeros_at(FC2)) ? FACTOR_WHOLE : 0;
}

struct rule *rule_moe(struct graph *g, const struct node *node)
{
    struct moe m = moe_read(g, node);
    struct rule *r = rule_new(g, node);
    struct factors f = {.g = g, .r = r, .node = node, .m = &m, .unit = inner_unit(node, &m), .rows = node->in[INPUT]->type.rank - 1};
    for (int d = 0; d < f.rows; d++) {
        f.row[d] = rule_factor(g, r, f.rows == 1 ? "t" : d ? "s" : "b", node->in[INPUT]->type.dim[d], 0);
        put(&f, INPUT, d, f.row[d]);
        put(&f, ROUTER, 0, f.row[d]);
        rule_put(g, &r->out[0], d, 0, f.row[d]);
    }
    put(&f, INPUT, f.rows, rule_factor(g, r, "h", m.hidden, FACTOR_WHOLE | FACTOR_CONTRACTED));
    put_own(&f, ROUTER, 1);
    f.e = whole(&f, "e", m.experts);
    f.n = rule_factor(g, r, "n", m.result, result_flags(node, &m));
    inner_factors(&f);
    for (int j = 0; j < MATRICES; j++)
        put_matrix(&f, j);
    if (has(node, mix_at(&m))) {
        for (int d = 0; d < f.rows; d++)
            put(&f, mix_at(&m), 0, f.row[d]);
        put_own(&f, mix_at(&m), 1);
    }
    rule_put(g, &r->out[0], f.rows, 0, f.n);
    if (!m.quantized)
        rule_linear(r, 1u << weight_at(&m, FC2) | (has(node, bias_at(&m, FC2)) ? 1u << bias_at(&m, FC2) : 0));
    return r;
}
