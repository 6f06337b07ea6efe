/* NonZero, whose result has a data-dependent dimension. */
#include "op/infer/infer.h"
#include "op/table/table.h"

#include <string.h>

/* ---- NonZero: the positions of what is not zero, one per column: [rank n] --------------------------------------------------------- */

/* What the operand holds: a constant, or shape information that is all integers; NULL: known only at run time. */
static struct constant *known_operand(struct graph *g, const struct node *node)
{
    const struct value *v = node->in[0];
    if (!v->constant)
        return op_dims_constant(g, v);
    return constant_present(v->constant) ? v->constant : NULL;
}

static const struct dim *count_nonzero(struct graph *g, const struct value *v, struct constant *c)
{
    int64_t n = constant_elements(c), count = 0;
    for (int64_t i = 0; i < n; i++)
        count += constant_float(c, v->name, i) != 0;
    return dim_int(g->alg, count);
}

/* n is a data-dependent symbol if the operand is not known. It stays one when a later pass folds the operand: others have the symbol in
 * their types. */
void infer_nonzero(struct graph *g, struct node *node)
{
    const struct type *x = op_operand(g, node, 0), *had = &node->out[0]->type;
    const struct dim *dim[2] = {dim_int(g->alg, x->rank > 0 ? x->rank : 1), op_unknown_dim(g, node, 0, 1)};
    struct constant *c = known_operand(g, node);
    if (c && !(had->rank == 2 && had->dim[1] == dim[1]))
        dim[1] = count_nonzero(g, node->in[0], c);
    op_result(g, node, 0, DT_I64, 2, dim);
}
