/* sequence_pass: where splits along a sequence pass products and softmax. That is attention of some of the queries over all keys (context
 * parallelism), and products of some of the rows with replicated weights, between which all-to-all exchanges rows for heads (arXiv
 * 2309.14509).
 *
 * Plain --sp does not let them pass: each would keep weights replicated, for a part of the tokens. Under --sp=auto the price of weights
 * decides, and a plan file lets them pass the nodes that it names. A KV dimension is never split: it is gathered. */
#include "op/op.h"
#include "op/rule/rule.h"
#include "plan/facts/facts.h"
#include "plan/space/space.h"

/* ---- passing --------------------------------------------------------------------------------------------------------------- */

static bool splits_factor(const struct assignment *c, int f)
{
    bool split = c->factor[f] != NULL;
    for (int i = 0; i < c->nproduct; i++)
        split |= c->product[i] == f;
    return split;
}

static bool is_rows(const struct space *s, int node, int f)
{
    const struct node *n = s->g->nodes.at[node];
    unsigned factor = s->rule[node]->factor[f].flags;
    if (n->op->flags & OP_BARRIER)
        return !(factor & FACTOR_LOWERED);
    return !(factor & FACTOR_CONTRACTED) && !(dim_node_multiplies_activations(s->roles, n) && dim_factor_is_kv(s->roles, node, f));
}

bool sequence_passes(const struct space *s, int node, const struct assignment *c)
{
    const struct rule *r = s->rule[node];
    unsigned flags = s->g->nodes.at[node]->op->flags;
    require(r);
    if (!(flags & (OP_PRODUCT | OP_BARRIER)))
        return true;
    for (int f = 0; f < r->nfactor; f++) {
        if (splits_factor(c, f) && !(s->sequence.passes[node] && is_rows(s, node, f)))
            return false;
    }
    return true;
}
