/* Elementwise nodes repeat short operands themselves: they read what an Expand would repeat for them. */
#include "kern/pointwise/pointwise.h"
#include "lower/lower.h"
#include "op/op.h"

/* The size that v has where y has dimension d; NULL: it has no such dimension. */
static const struct dim *size_at(const struct value *v, const struct value *y, int d)
{
    int e = d - (y->type.rank - v->type.rank);
    return e < 0 ? NULL : v->type.dim[e];
}

/* Does the result keep its sizes with x as operand k? */
static bool keeps_sizes(const struct node *n, int k, const struct value *x)
{
    const struct value *y = n->out[0];
    bool all = x->type.rank <= y->type.rank;
    for (int d = 0; all && d < y->type.rank; d++)
        all = size_at(x, y, d) == y->type.dim[d] || size_at(n->in[!k], y, d) == y->type.dim[d];
    return all;
}

int fuse_expand(struct graph *g)
{
    int found = 0;
    for (int i = 0; i < g->nodes.n; i++) {
        struct node *n = g->nodes.at[i];
        int op = n->op && !*n->domain && n->nin == 2 ? chain_find(n->optype) : -1;
        for (int k = 0; op >= 0 && chain_binary[op] && k < 2; k++) {
            struct node *expand = op_made_by(n->in[k], "Expand");
            if (!expand || !op_resolved(expand) || !keeps_sizes(n, k, expand->in[0]))
                continue;
            n->in[k] = expand->in[0];
            found++;
        }
    }
    graph_prune(g);
    return found;
}
