/* size_guess: the sizes that a plan assumes for data-dependent dimensions. */
#include "op/analysis/analysis.h"
#include "op/control/control.h"
#include "op/op.h"
#include "op/rule/rule.h"
#include "op/table/table.h"

#include <string.h>

static const struct dim *value_elements(struct graph *g, const struct value *v)
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
static const struct dim *routed_elements(struct graph *g, const struct value *mask)
{
    const struct node *n = maker_of_mask(g, mask);
    const struct dim *all = value_elements(g, mask);
    if (!n)
        return all;
    const struct dim *rows = value_elements(g, n->in[0]), *made = value_elements(g, n->out[0]);
    if (n->op->infer != infer_onehot)
        rows = dim_max(g->alg, rows, value_elements(g, n->in[1]));
    return dim_div(g->alg, dim_mul(g->alg, all, rows), dim_max(g->alg, made, dim_int(g->alg, 1)));
}

const struct dim *op_guess_size(struct graph *g, const struct node *node, int i, int d)
{
    const struct dim *one = dim_int(g->alg, 1), *others = dim_int(g->alg, node->nout), *inside = NULL;
    if (node->op && (node->op->flags & OP_CONTROL))
        inside = control_size_guess(g, node, i, d);
    if (inside)
        return dim_max(g->alg, inside, one);
    if (node->nin == 0 || !node->in[0] || node->in[0]->type.dtype == DT_NONE)
        return one;
    if (node->op && node->op->infer == infer_nonzero)
        return dim_max(g->alg, routed_elements(g, node->in[0]), one);
    for (int k = 0; k < node->out[i]->type.rank; k++)
        if (k != d)
            others = dim_mul(g->alg, others, node->out[i]->type.dim[k]);
    return dim_max(g->alg, dim_div(g->alg, value_elements(g, node->in[0]), dim_max(g->alg, others, one)), one);
}
