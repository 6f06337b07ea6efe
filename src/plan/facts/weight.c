/* weight: what counts as a weight in planning. constant_is_weight (ir) is another question: which constants are too large to fold. */
#include "op/op.h"
#include "op/rule/rule.h"
#include "plan/facts/facts.h"

bool *weight_marks(struct arena *a, struct graph *g, struct rule **rule)
{
    bool *weight = NEWN(a, bool, g->values.n + 1);
    for (int i = 0; i < g->values.n; i++)
        weight[i] = g->values.at[i]->constant != NULL;
    for (int i = 0; i < g->nodes.n; i++) {
        const struct node *n = g->nodes.at[i];
        bool all = n->nin > 0;
        for (int k = 0; all && k < n->nin; k++)
            all = n->in[k] && weight[n->in[k]->id];
        if (all && !rule[i])
            rule[i] = rule_of(g, n);
        all = all && rule[i] && (rule[i]->moves || (n->op->flags & OP_DECODES));
        for (int k = 0; all && k < n->nout; k++)
            if (n->out[k])
                weight[n->out[k]->id] = true;
    }
    return weight;
}

bool weight_is_used(const bool *weight, const struct node *n)
{
    if (!n->op || !(n->op->flags & OP_SEEDS) || n->nout == 0 || !n->out[0])
        return false;
    for (int i = 0; i < n->nin; i++)
        if (n->in[i] && weight[n->in[i]->id] && ((n->op->flags & OP_PRODUCT) || n->in[i]->type.rank > 1))
            return true;
    return false;
}

static bool only_products_read(const struct uses *uses, const struct value *v)
{
    const struct uses *u = &uses[v->id];
    for (int i = 0; i < u->n; i++) {
        const struct node *n = u->at[i].node;
        bool moves = n && n->op && (n->op->flags & OP_MOVES);
        bool matrices = n && n->op && n->op->flags & OP_ROUTES && v->type.rank == 3,
             product = n && n->op && n->op->flags & OP_SEEDS && (u->at[i].index < 2 || matrices);
        if (!product && !(moves && only_products_read(uses, n->out[0])))
            return false;
    }
    return u->n > 0;
}

bool weight_may_be_cast(const struct uses *uses, const struct value *v)
{
    const struct constant *c = v->constant;
    return c && dtype_is_float(c->dtype) && c->rank >= 2 && c->bytes >= WEIGHT_BYTES && only_products_read(uses, v);
}
