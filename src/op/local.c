/* local: inference of what makes one rank's part of a whole value. In the global graph (rank -1) the types are global and nothing
 * changes; in a rank's graph the result is that rank's part. */
#include "op/op.h"
#include "op/table.h"

static const struct split *split_of(struct graph *g, const struct node *node, const char *attr)
{
    const char *error = NULL, *text = attr_string(node, attr);
    const struct split *s = split_parse(g->alg, text, &error);
    if (!s)
        fail("%s: attribute '%s' is no split: '%s': %s", node_where(g, node), attr, text, error ? error : "malformed");
    return s;
}

void infer_shard(struct graph *g, struct node *node)
{
    const struct type *x = op_operand(g, node, 0);
    struct type y = *x;
    int axis = op_axis(g, node, attr_int(node, "axis"), x->rank);
    const struct split *s = split_of(g, node, "to");
    if (g->rank >= s->ranks)
        fail("%s: attribute 'to' deals to %d ranks, this is rank %d", node_where(g, node), s->ranks, g->rank);
    if (g->rank >= 0)
        y.dim[axis] = split_extent(g->alg, s, g->rank);
    op_result(g, node, 0, y.dtype, y.rank, y.dim);
}

void infer_localindex(struct graph *g, struct node *node)
{
    const struct type *x = op_operand(g, node, 0);
    op_result(g, node, 0, x->dtype, x->rank, x->dim);
    op_result(g, node, 1, DT_BOOL, x->rank, x->dim);
}
