/* tpc::If, an If whose branches have been imported around it: which branch is taken, and what the node's results then are. */
#include "op/op.h"
#include "op/table.h"

#include <string.h>

enum taken { TAKEN_UNKNOWN, TAKEN_THEN, TAKEN_ELSE };

static enum taken branch_of(struct graph *g, struct value *condition)
{
    const struct dims_value *dims = op_dims(g, condition);
    int64_t k;
    if (!dims || dims->n != 1 || !dim_is_int(dims->at[0], &k))
        return TAKEN_UNKNOWN;
    return k != 0 ? TAKEN_THEN : TAKEN_ELSE;
}

static struct value *if_result(struct graph *g, const struct node *node, int i)
{
    int n = (node->nin - 1) / 2;
    return node->in[1 + i + (branch_of(g, node->in[0]) == TAKEN_THEN ? 0 : n)];
}

void infer_if(struct graph *g, struct node *node)
{
    if (branch_of(g, node->in[0]) == TAKEN_UNKNOWN)
        fail("%s: which branch is taken depends on '%s', which is not known when compiling", node_where(g, node), node->in[0]->name);
    for (int i = 0; i < node->nout; i++) {
        const struct value *from = if_result(g, node, i);
        op_result(g, node, i, from->type.dtype, from->type.rank, from->type.dim);
    }
}

void value_if(struct graph *g, struct node *node)
{
    const struct dims_value *from = node->nout > 0 ? op_dims(g, if_result(g, node, 0)) : NULL;
    if (!from)
        return;
    const struct dim **at = op_set_dims(g, node, from->n);
    for (int i = 0; i < from->n; i++)
        at[i] = from->at[i];
}

bool op_is_taken(struct graph *g, const struct guard *guard)
{
    for (; guard; guard = guard->outer) {
        enum taken taken = branch_of(g, guard->condition);
        if (taken == TAKEN_UNKNOWN)
            fail("%s: node '%s' (If) chooses a branch by '%s', which is not known when compiling", g->path ? g->path : g->name, guard->node,
                 guard->condition->name);
        if ((taken == TAKEN_THEN) != guard->when)
            return false;
    }
    return true;
}

bool op_resolve_if(struct graph *g, const struct node *node)
{
    if (!node->op || strcmp(node->op->name, "If") != 0 || strcmp(node->op->domain, "tpc") != 0)
        return false;
    for (int i = 0; i < node->nout; i++)
        if (node->out[i])
            graph_replace(g, node->out[i], if_result(g, node, i), true);
    return true;
}
