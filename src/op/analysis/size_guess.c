/* size_guess: the sizes that a plan assumes for data-dependent dimensions. */
#include "op/analysis/analysis.h"
#include "op/control/control.h"
#include "op/op.h"
#include "op/table/table.h"

static const struct dim *value_elements(struct graph *g, const struct value *v)
{
    return type_elements(g->alg, &v->type);
}

/* The assumed number of rows of one class, or of elements of a mask. NULL: neither. */
static const struct dim *found_elements(struct graph *g, const struct node *node)
{
    struct routes r;
    if (op_routes_rows(g, node, &r))
        return dim_div(g->alg, dim_mul(g->alg, r.entries, r.rows), r.compared);
    return node->op && node->op->infer == infer_nonzero ? value_elements(g, node->in[0]) : NULL;
}

/* Dimension d of an elementwise result, from an operand whose size is not data-dependent. NULL: none. */
static const struct dim *known_operand(const struct node *n, int d)
{
    int rank = n->out[0]->type.rank;
    for (int i = 0; n->op && n->op->flags & OP_ELEMENTWISE && i < n->nin; i++) {
        const struct type *t = n->in[i] ? &n->in[i]->type : NULL;
        const struct dim *size = t && t->rank >= rank - d ? t->dim[t->rank - (rank - d)] : NULL;
        if (size && !dim_equals(size, 1) && !dim_has_data(size))
            return size;
    }
    return NULL;
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
    const struct dim *found = found_elements(g, node), *known = known_operand(node, d);
    if (found)
        return dim_max(g->alg, found, one);
    if (known)
        return dim_max(g->alg, known, one);
    for (int k = 0; k < node->out[i]->type.rank; k++)
        if (k != d)
            others = dim_mul(g->alg, others, node->out[i]->type.dim[k]);
    return dim_max(g->alg, dim_div(g->alg, value_elements(g, node->in[0]), dim_max(g->alg, others, one)), one);
}
