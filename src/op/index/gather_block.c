/* GatherBlockQuantized (com.microsoft): rows of a few-bit table in blocks along its last dimension, each with a scale and maybe a zero
 * point. Data is u4, i4, or bytes; if a byte has two elements, the zero points of a row also fill whole bytes.
 *
 * The width splits between blocks and between bytes of zero points: its factors are as in MatMulNBits (matmul_nbits.c). The vocabulary is
 * split by the lowering of Gather. */
#include "ir/operands.h"
#include "op/index/index.h"
#include "op/infer/infer.h"
#include "op/rule/rule.h"
#include "op/table/table.h"

struct block_table {
    int64_t bits, block;
    bool bytes;
}; /* bytes: numbers are in bytes, 8 / bits to one */

static struct block_table table_of(const struct graph *g, const struct node *node)
{
    struct block_table t = {attr_int(node, "bits"), attr_int(node, "block_size"),
                            op_operand(g, node, IN_GatherBlockQuantized_data)->dtype == DT_U8};
    int last = op_operand(g, node, IN_GatherBlockQuantized_data)->rank - 1;
    if (!t.bytes && dtype_bits(node->in[IN_GatherBlockQuantized_data]->type.dtype) != 4)
        fail("%s: the data '%s' is %s, expected u8, u4 or i4", node_where(g, node), node->in[IN_GatherBlockQuantized_data]->name,
             dtype_name(node->in[IN_GatherBlockQuantized_data]->type.dtype));
    if ((t.bits != 4 && t.bits != 8) || (t.bits == 8 && !t.bytes))
        fail("%s: bits is %lld for data of type %s", node_where(g, node), (long long)t.bits,
             dtype_name(node->in[IN_GatherBlockQuantized_data]->type.dtype));
    if (t.block < 16 || t.block > 65536 || (t.block & (t.block - 1)))
        fail("%s: block_size is %lld, expected a power of two from 16 to 65536", node_where(g, node), (long long)t.block);
    if (op_axis(g, node, attr_int(node, "gather_axis"), last + 1) != 0 ||
        op_axis(g, node, attr_int(node, "quantize_axis"), last + 1) != last)
        fail("%s: gather_axis and quantize_axis are %lld and %lld, expected the first and the last dimension of the data",
             node_where(g, node), (long long)attr_int(node, "gather_axis"), (long long)attr_int(node, "quantize_axis"));
    return t;
}

static int64_t per_byte(const struct block_table *t)
{
    return t->bytes ? 8 / t->bits : 1;
}

/* n elements in groups of `each`. */
static const struct dim *groups(struct graph *g, const struct dim *n, int64_t each)
{
    return dim_div(g->alg, dim_add(g->alg, n, dim_int(g->alg, each - 1)), dim_int(g->alg, each));
}

static const struct dim *width_of(struct graph *g, const struct node *node, const struct block_table *t)
{
    const struct type *data = &node->in[IN_GatherBlockQuantized_data]->type;
    return dim_mul(g->alg, data->dim[data->rank - 1], dim_int(g->alg, per_byte(t)));
}

/* Checks that an operand has the dimensions of the data, except the given last one. */
static void check_like_data(struct graph *g, const struct node *node, int i, const struct dim *last)
{
    const struct type *data = op_operand(g, node, IN_GatherBlockQuantized_data), *x = op_operand(g, node, i);
    op_need_rank(g, node, i, data->rank, data->rank);
    for (int d = 0; d < data->rank; d++)
        op_same_dim(g, node, x->dim[d], d < data->rank - 1 ? data->dim[d] : last, "the scales or zero points and the data");
}

void infer_gatherblock(struct graph *g, struct node *node)
{
    op_need_rank(g, node, IN_GatherBlockQuantized_data, 2, MAX_RANK);
    struct block_table t = table_of(g, node);
    const struct type *data = op_operand(g, node, IN_GatherBlockQuantized_data),
                      *index = op_operand(g, node, IN_GatherBlockQuantized_indices);
    const struct dim *dim[2 * MAX_RANK], *width = width_of(g, node, &t), *blocks = groups(g, width, t.block);
    int rank = 0;
    if (index->dtype != DT_I64 && index->dtype != DT_I32)
        fail("%s: the indices '%s' are %s, expected i32 or i64", node_where(g, node), node->in[IN_GatherBlockQuantized_indices]->name,
             dtype_name(index->dtype));
    check_like_data(g, node, IN_GatherBlockQuantized_scales, blocks);
    if (node_operand(node, IN_GatherBlockQuantized_zero_points)) {
        op_same_dtype(g, node, IN_GatherBlockQuantized_data, IN_GatherBlockQuantized_zero_points);
        check_like_data(g, node, IN_GatherBlockQuantized_zero_points, groups(g, blocks, per_byte(&t)));
    }
    for (int d = 0; d < index->rank; d++)
        dim[rank++] = index->dim[d];
    for (int d = 1; d < data->rank - 1; d++)
        dim[rank++] = data->dim[d];
    dim[rank++] = width;
    op_result(g, node, 0, op_operand(g, node, IN_GatherBlockQuantized_scales)->dtype, rank, dim);
}

/* Puts a factor into a dimension of all tables and of the result; from: where the table's dimensions start in the result. */
static void put_table(struct graph *g, struct rule *r, const struct node *node, int d, int f)
{
    rule_put(g, &r->in[IN_GatherBlockQuantized_data], d, 0, f);
    rule_put(g, &r->in[IN_GatherBlockQuantized_scales], d, 0, f);
    if (node_operand(node, IN_GatherBlockQuantized_zero_points))
        rule_put(g, &r->in[IN_GatherBlockQuantized_zero_points], d, 0, f);
}

static void put_width(struct graph *g, struct rule *r, const struct node *node, const struct block_table *t)
{
    struct alg *alg = g->alg;
    int64_t per = node_operand(node, IN_GatherBlockQuantized_zero_points) ? per_byte(t) : 1;
    int last = r->in[IN_GatherBlockQuantized_data].rank - 1, out = r->out[0].rank - 1;
    const struct dim *width = width_of(g, node, t), *c = dim_quotient(alg, width, dim_int(alg, t->block * per));
    int64_t stored = t->block / per_byte(t);
    if (!c) {
        rule_put(g, &r->in[IN_GatherBlockQuantized_data], last, 0,
                 rule_factor(g, r, "o", node->in[IN_GatherBlockQuantized_data]->type.dim[last], FACTOR_REPLICATED));
        for (int i = IN_GatherBlockQuantized_scales; i < node->nin; i++)
            if (node->in[i])
                rule_put(g, &r->in[i], last, 0, rule_factor(g, r, "c", node->in[i]->type.dim[last], FACTOR_REPLICATED));
        rule_put(g, &r->out[0], out, 0, rule_factor(g, r, "k", width, FACTOR_REPLICATED));
        return;
    }
    int f = rule_factor(g, r, "c", c, 0), p = rule_factor(g, r, "p", dim_int(alg, per), FACTOR_REPLICATED);
    put_table(g, r, node, last, f);
    rule_put(g, &r->in[IN_GatherBlockQuantized_data], last, 0, p);
    rule_put(g, &r->in[IN_GatherBlockQuantized_data], last, 0, rule_factor(g, r, "o", dim_int(alg, stored), FACTOR_REPLICATED));
    rule_put(g, &r->in[IN_GatherBlockQuantized_scales], last, 0, p);
    rule_put(g, &r->out[0], out, 0, f);
    rule_put(g, &r->out[0], out, 0, p);
    rule_put(g, &r->out[0], out, 0, rule_factor(g, r, "l", dim_int(alg, t->block), FACTOR_REPLICATED));
}

struct rule *rule_gatherblock(struct graph *g, const struct node *node)
{
    struct rule *r = rule_new(g, node);
    struct block_table t = table_of(g, node);
    const struct type *index = &node->in[IN_GatherBlockQuantized_indices]->type;
    put_table(g, r, node, 0, gather_table_factor(g, r, node));
    for (int d = 0; d < index->rank; d++) {
        int f = rule_numbered(g, r, "i", d, index->dim[d], 0);
        rule_put(g, &r->in[IN_GatherBlockQuantized_indices], d, 0, f);
        rule_put(g, &r->out[0], d, 0, f);
    }
    for (int d = 1; d < r->in[IN_GatherBlockQuantized_data].rank - 1; d++) {
        int f = rule_numbered(g, r, "d", d, node->in[IN_GatherBlockQuantized_data]->type.dim[d], 0);
        put_table(g, r, node, d, f);
        rule_put(g, &r->out[0], index->rank + d - 1, 0, f);
    }
    put_width(g, r, node, &t);
    rule_linear(r, 1u << IN_GatherBlockQuantized_scales);
    return r;
}
