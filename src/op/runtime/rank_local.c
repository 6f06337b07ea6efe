/* rank_local: inference of the ops that make one rank's shard of a global value. In the global graph (rank -1) types are global and
 * unchanged; in a rank's graph the result is that rank's part. */
#include "op/infer/infer.h"
#include "op/table/table.h"

static const struct split *split_of(struct graph *g, const struct node *node, const char *attr)
{
    const char *error = NULL, *text = attr_string(node, attr);
    const struct split *s = split_parse(g->alg, text, &error);
    if (!s)
        fail("%s: attribute '%s' is no split: '%s': %s", node_where(g, node), attr, text, error ? error : "malformed");
    if (g->rank >= s->ranks)
        fail("%s: attribute '%s' is for %d ranks, this is rank %d", node_where(g, node), attr, s->ranks, g->rank);
    return s;
}

void infer_shard(struct graph *g, struct node *node)
{
    const struct type *x = op_operand(g, node, 0);
    struct type y = *x;
    int axis = op_axis(g, node, attr_int(node, "axis"), x->rank);
    const struct split *s = split_of(g, node, "to");
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

void infer_positions(struct graph *g, struct node *node)
{
    const struct split *s = split_of(g, node, "to");
    const struct dim *n = g->rank < 0 ? split_size(g->alg, s) : split_extent(g->alg, s, g->rank);
    op_result(g, node, 0, DT_I64, 1, &n);
}

/* The most of k that a rank can have: no more than it holds. */
static const struct dim *topk_candidates(struct graph *g, const struct split *s, const struct dim *k, int rank)
{
    return dim_min(g->alg, k, split_extent(g->alg, s, rank));
}

void infer_localtopk(struct graph *g, struct node *node)
{
    const struct type *x = op_operand(g, node, 0);
    struct type y = *x;
    int axis = op_axis(g, node, attr_int(node, "axis"), x->rank);
    const struct split *s = split_of(g, node, "to");
    const struct dim **k;
    require(attr_dims(node, "k", &k) == 1);
    y.dim[axis] = g->rank < 0 ? dim_int(g->alg, 0) : topk_candidates(g, s, k[0], g->rank);
    for (int r = 0; g->rank < 0 && r < s->ranks; r++)
        y.dim[axis] = dim_add(g->alg, y.dim[axis], topk_candidates(g, s, k[0], r));
    op_result(g, node, 0, y.dtype, y.rank, y.dim);
    op_result(g, node, 1, DT_I64, y.rank, y.dim);
}
