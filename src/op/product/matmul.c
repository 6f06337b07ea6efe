/* matmul: matrix products. The contracted dimension is a summed factor: if split, it leaves partial sums. Rows, columns and batch
 * dimensions are factors of their own. Gemm's C is an addend: it must count once if the contraction is split. */
#include "op/infer/infer.h"
#include "op/rule/rule.h"
#include "op/table/table.h"

/* ---- inference ------------------------------------------------------------------------------------------------------------------ */

/* The batch dimensions of an operand: all but the last two. */
static struct type batch_dims(const struct type *t)
{
    struct type batch = *t;
    batch.rank = t->rank > 2 ? t->rank - 2 : 0;
    return batch;
}

void infer_matmul(struct graph *g, struct node *node)
{
    op_need_rank(g, node, 0, 1, MAX_RANK);
    op_need_rank(g, node, 1, 1, MAX_RANK);
    op_same_dtype(g, node, 0, 1);
    const struct type *a = op_operand(g, node, 0), *b = op_operand(g, node, 1);
    op_same_dim(g, node, a->dim[a->rank - 1], b->dim[b->rank > 1 ? b->rank - 2 : 0], "the contracted dimensions");
    struct type batch[2] = {batch_dims(a), batch_dims(b)};
    struct type out = op_broadcast(g, node, 2, (const struct type *const[]){&batch[0], &batch[1]});
    if (a->rank > 1)
        out.dim[out.rank++] = a->dim[a->rank - 2];
    if (b->rank > 1)
        out.dim[out.rank++] = b->dim[b->rank - 1];
    op_result(g, node, 0, a->dtype, out.rank, out.dim);
}

static bool is_transposed(const struct node *node, const char *which)
{
    return attr_int(node, which) != 0;
}

void infer_gemm(struct graph *g, struct node *node)
{
    op_need_rank(g, node, 0, 2, 2);
    op_need_rank(g, node, 1, 2, 2);
    op_same_dtype(g, node, 0, 1);
    const struct type *a = op_operand(g, node, 0), *b = op_operand(g, node, 1);
    int ta = is_transposed(node, "transA"), tb = is_transposed(node, "transB");
    op_same_dim(g, node, a->dim[!ta], b->dim[tb], "the contracted dimensions");
    const struct dim *out[2] = {a->dim[ta], b->dim[!tb]};
    if (node_operand(node, 2)) {
        op_need_rank(g, node, 2, 0, 2);
        op_same_dtype(g, node, 0, 2);
        const struct type *c = op_operand(g, node, 2);
        for (int d = 0; d < c->rank; d++)
            if (!dim_equals(c->dim[d], 1))
                op_same_dim(g, node, c->dim[d], out[2 - c->rank + d], "C and the result");
    }
    op_result(g, node, 0, a->dtype, 2, out);
}

/* ---- rules --------------------------------------------------------------------------------------------------------------------------- */

static int contracted(struct graph *g, struct rule *r, const struct dim *size)
{
    int k = rule_factor(g, r, "k", size, FACTOR_CONTRACTED);
    r->factor[k].red = RED_SUM;
    return k;
}

/* For products that tpc-run makes: only the rows of the first operand may be split. */
struct rule *rule_rows_product(struct graph *g, const struct node *node)
{
    struct rule *r = rule_new(g, node);
    const struct type *y = &node->out[0]->type;
    int last = y->rank - 1;
    for (int d = 0; d < last; d++)
        rule_same_dim(g, r, "b", d, y->dim[d], 0);
    rule_put(g, &r->out[0], last, 0, rule_factor(g, r, "n", y->dim[last], FACTOR_REPLICATED));
    for (int i = 0, f = 0; i < node->nin; i++)
        for (int d = i == 0 ? last : 0; node->in[i] && d < node->in[i]->type.rank; d++)
            rule_put(g, &r->in[i], d, 0, rule_numbered(g, r, "k", f++, node->in[i]->type.dim[d], FACTOR_REPLICATED));
    return r;
}

struct rule *rule_gemm(struct graph *g, const struct node *node)
{
    struct rule *r = rule_new(g, node);
    const struct type *y = &node->out[0]->type;
    int ta = is_transposed(node, "transA"), tb = is_transposed(node, "transB");
    int k = contracted(g, r, node->in[0]->type.dim[!ta]);
    int mn[2] = {rule_factor(g, r, "m", y->dim[0], 0), rule_factor(g, r, "n", y->dim[1], 0)};
    bool bias = node_operand(node, 2);
    rule_put(g, &r->in[0], ta, 0, mn[0]);
    rule_put(g, &r->in[0], !ta, 0, k);
    rule_put(g, &r->in[1], tb, 0, k);
    rule_put(g, &r->in[1], !tb, 0, mn[1]);
    rule_put(g, &r->out[0], 0, 0, mn[0]);
    rule_put(g, &r->out[0], 1, 0, mn[1]);
    if (bias) {
        rule_addend(r, 2);
        r->increasing = attr_float(node, "beta") >= 0 ? r->increasing : 0;
        rule_broadcast(g, r, &r->in[2], &node->in[2]->type, 2, mn);
    }
    rule_linear(r, bias ? 1 | 4 : 1);
    rule_linear(r, bias ? 2 | 4 : 2);
    return r;
}
