/* recurrent_copy: which values are the same at every run, and what recurrent nets keep of their weights beside these. */
#include "op/analysis/analysis.h"
#include "op/op.h"

static bool has_sizes(const struct node *n)
{
    for (int i = 0; i < n->nattr; i++)
        for (int k = 0; n->attr[i].kind == ATTR_DIMS && n->attr[i].set && k < n->attr[i].n; k++)
            if (!dim_is_int(n->attr[i].dims[k], NULL))
                return true;
    for (int k = 0; k < n->nout; k++)
        for (int d = 0; n->out[k] && d < n->out[k]->type.rank; d++)
            if (!dim_is_int(n->out[k]->type.dim[d], NULL))
                return true;
    return false;
}

static bool is_settled(const bool *settled, const struct value *v)
{
    return !v || v->constant || settled[v->id];
}

bool *op_settled_values(struct arena *a, const struct graph *g)
{
    const unsigned varies = OP_DRAWS | OP_CONTROL;
    bool *settled = NEWN(a, bool, g->values.n + 1);
    for (int i = 0; i < g->nodes.n; i++) {
        const struct node *n = g->nodes.at[i];
        bool all = n->nin > 0 && n->op && !(n->op->flags & varies) && !op_communicates(n) && !has_sizes(n);
        for (int k = 0; k < n->nin; k++)
            all = all && is_settled(settled, n->in[k]);
        for (int k = 0; k < n->nout; k++)
            if (n->out[k])
                settled[n->out[k]->id] = all;
    }
    return settled;
}

bool op_packs_recurrent(const struct node *n, const bool *settled)
{
    return n->op && (n->op->flags & OP_RECURS) && n->nin > 2 && n->in[1] && n->in[2] && is_settled(settled, n->in[1]) &&
        is_settled(settled, n->in[2]);
}

int64_t op_recurrent_copy(const struct type *weight)
{
    int64_t n = 1, k, bytes;
    for (int d = 0; d < weight->rank; d++)
        if (!dim_is_int(weight->dim[d], &k) || k < 0 || !i64_mul(n, k, &n))
            return 0;
    return i64_mul(n, (int64_t)sizeof(float), &bytes) ? bytes : 0;
}
