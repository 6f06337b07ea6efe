/* read: reads a collective node from a rank's graph. */
#include "ir/rank_meta.h"
#include "run/collective/collective.h"

#include <string.h>

static const struct split *split_attr(struct graph *g, const struct node *n, const char *name)
{
    const char *error = NULL;
    const struct split *s = split_parse(g->alg, attr_string(n, name), &error);
    if (!s)
        fail("%s: attribute %s: %s", node_where(g, n), name, error);
    return s;
}

static int axis_attr(const struct graph *g, const struct node *n, const char *name)
{
    int rank = n->in[0]->type.rank;
    int64_t axis = attr_int(n, name);
    if (axis < -rank || axis >= rank)
        fail("%s: %s is %lld for a tensor of %d dimensions", node_where(g, n), name, (long long)axis, rank);
    return (int)(axis < 0 ? axis + rank : axis);
}

static enum collective kind_of(const struct graph *g, const struct node *n)
{
    enum collective kind = collective_parse(n->op->name);
    if (!kind)
        fail("%s: this program does not know the collective %s", node_where(g, n), n->op->name);
    return kind;
}

static enum redop red_attr(const struct graph *g, const struct node *n)
{
    enum redop red = redop_parse(attr_string(n, "op"));
    if (red == RED_NONE)
        fail("%s: op is '%s', expected sum, max, min or prod", node_where(g, n), attr_string(n, "op"));
    return red;
}

/* An attribute has the same meaning in every collective. */
void collective_read(struct graph *g, const struct node *n, struct collective_node *c)
{
    const struct node *maker = n->in[0]->producer;
    const struct dim **extent = NULL;
    c->kind = kind_of(g, n);
    c->name = n->name;
    c->axis2 = -1;
    if (attr_find(n, "op"))
        c->red = red_attr(g, n);
    if (attr_find(n, "root"))
        c->root = (int)attr_int(n, "root");
    if (attr_find(n, "from"))
        c->from = split_attr(g, n, "from");
    if (attr_find(n, "to"))
        c->to = split_attr(g, n, "to");
    if (attr_find(n, "experts"))
        c->experts = split_attr(g, n, "experts");
    if (attr_find(n, "axis"))
        c->axis = axis_attr(g, n, "axis");
    if (attr_find(n, "split_axis"))
        c->axis = axis_attr(g, n, "split_axis");
    if (attr_find(n, "concat_axis"))
        c->axis2 = axis_attr(g, n, "concat_axis");
    if (c->axis == c->axis2)
        fail("%s: split_axis and concat_axis are both %d", node_where(g, n), c->axis);
    if (attr_find(n, "extent"))
        c->nextent = attr_dims(n, "extent", &extent);
    c->extent = extent;
    c->bits = c->kind == COLL_ALLREDUCE && c->red == RED_SUM && maker && rank_meta_sum(g, maker).kind == RANK_SUM_ONCE;
}
