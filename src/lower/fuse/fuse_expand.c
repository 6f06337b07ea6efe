/* fuse_expand: elementwise nodes broadcast, so they read the operand of an Expand instead of its result. */
#include "kern/pointwise/pointwise.h"
#include "lower/lower.h"
#include "op/op.h"

/* The size of v in the dimension that is dimension d of y; NULL: v lacks it. */
static const struct dim *size_at(const struct value *v, const struct value *y, int d)
{
    int e = d - (y->type.rank - v->type.rank);
    return e < 0 ? NULL : v->type.dim[e];
}

/* Whether the result has the same sizes with x as operand k. */
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
