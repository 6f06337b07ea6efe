/* Sizes that data decides: NonZero, and what a plan takes such sizes for. */
#include "op/op.h"
#include "op/table/table.h"

#include <string.h>

/* ---- NonZero: the positions of what is not zero, one per column: [rank n] --------------------------------------------------------- */

/* What the operand holds: a constant, or shape information that is all integers; NULL: only a run tells. */
static struct constant *known_operand(struct graph *g, const struct node *node)
{
    const struct value *v = node->in[0];
    if (!v->constant)
        return op_dims_constant(g, v);
    return constant_present(v->constant) && !dtype_is_packed(v->constant->dtype) ? v->constant : NULL;
}

static const struct dim *count_nonzero(struct graph *g, const struct value *v, struct constant *c)
{
    int64_t n = constant_elements(c), count = 0;
    for (int64_t i = 0; i < n; i++)
        count += constant_float(c, v->name, i) != 0;
    return dim_int(g->alg, count);
}

/* n is an opaque symbol where the operand is not known. It stays one when a later pass folds the operand: others have the symbol in their
 * types. */
void infer_nonzero(struct graph *g, struct node *node)
{
    const struct type *x = op_operand(g, node, 0), *had = &node->out[0]->type;
    const struct dim *dim[2] = {dim_int(g->alg, x->rank > 0 ? x->rank : 1), op_unknown_dim(g, node, 0, 1)};
    struct constant *c = known_operand(g, node);
    if (c && !(had->rank == 2 && had->dim[1] == dim[1]))
        dim[1] = count_nonzero(g, node->in[0], c);
    op_result(g, node, 0, DT_I64, 2, dim);
}

/* ---- guesses ---------------------------------------------------------------------------------------------------------------------- */

static const struct dim *elements(struct graph *g, const struct value *v)
{
    return type_elements(g->alg, &v->type);
}

/* Compares every entry with every class: one in each row is true. */
static bool makes_one_of(const struct node *n)
{
    return n->op && (n->op->infer == infer_onehot || strcmp(n->op->name, "Equal") == 0);
}

static bool passes_mask(struct graph *g, const struct node *n)
{
    if (n->nin == 0 || !n->in[0])
        return false;
    if (n->op->flags & OP_ELEMENTWISE)
        return n->nin == 1;
    const struct rule *rule = rule_of(g, n);
    return rule && rule->moves;
}

static const struct node *maker_of_mask(struct graph *g, const struct value *mask)
{
    const struct node *n = mask->producer;
    while (n && n->op && !makes_one_of(n) && passes_mask(g, n))
        n = n->in[0]->producer;
    return n && n->op && makes_one_of(n) ? n : NULL;
}

/* What is true of a mask that routes rows to classes: a share as large as the rows' of the comparisons. */
static const struct dim *routed(struct graph *g, const struct value *mask)
{
    const struct node *n = maker_of_mask(g, mask);
    const struct dim *all = elements(g, mask);
    if (!n)
        return all;
    const struct dim *rows = elements(g, n->in[0]), *made = elements(g, n->out[0]);
    if (n->op->infer != infer_onehot)
        rows = dim_max(g->alg, rows, elements(g, n->in[1]));
    return dim_div(g->alg, dim_mul(g->alg, all, rows), dim_max(g->alg, made, dim_int(g->alg, 1)));
}

const struct dim *op_guess_size(struct graph *g, const struct node *node, int i, int d)
{
    const struct dim *one = dim_int(g->alg, 1), *others = dim_int(g->alg, node->nout), *inside = NULL;
    if (node->op && (node->op->flags & OP_CONTROL))
        inside = op_control_guess(g, node, i, d);
    if (inside)
        return dim_max(g->alg, inside, one);
    if (node->nin == 0 || !node->in[0] || node->in[0]->type.dtype == DT_NONE)
        return one;
    if (node->op && node->op->infer == infer_nonzero)
        return dim_max(g->alg, routed(g, node->in[0]), one);
    for (int k = 0; k < node->out[i]->type.rank; k++)
        if (k != d)
            others = dim_mul(g->alg, others, node->out[i]->type.dim[k]);
    return dim_max(g->alg, dim_div(g->alg, elements(g, node->in[0]), dim_max(g->alg, others, one)), one);
}
