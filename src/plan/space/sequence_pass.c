/* sequence_pass: the products and softmaxes that a split along a sequence may pass: attention of some queries over all keys (context
 * parallelism), and products of some rows with replicated weights, with all-to-all exchanges between rows and heads (arXiv 2309.14509).
 *
 * Plain --sp does not let such splits pass, because weights would stay replicated. Under --sp=auto the price of weights decides, and a plan
 * file lets splits pass the nodes that it names. They pass mixtures whose experts are split, because rows are dispatched to them, and the
 * routers that score these rows. A KV dimension is never split: it is gathered. */
#include "ir/operands.h"
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

static bool has_travellers(const struct rule *r)
{
    for (int f = 0; r && f < r->nfactor; f++)
        if (r->factor[f].flags & FACTOR_TRAVELS)
            return true;
    return false;
}

/* The operand that scores come from: of weights that are scattered among zeros, what is scattered. */
static const struct value *scores_before(const struct node *n)
{
    return n->op == op_find("", "ScatterElements") ? n->in[IN_ScatterElements_updates] : n->in[0];
}

/* Marks the nodes from the scores back to the product that makes them. */
static void pass_router(struct space *s, const struct value *scores)
{
    for (int i; (i = s->producer[scores->id]) >= 0 && s->rule[i]; scores = scores_before(s->g->nodes.at[i])) {
        const struct node *n = s->g->nodes.at[i];
        s->sequence.passes[i] = true;
        if (n->op->flags & OP_PRODUCT || n->nin == 0 || !n->in[0])
            return;
    }
}

void sequence_pass_routers(struct space *s)
{
    for (int i = 0; i < s->g->nodes.n; i++)
        if (has_travellers(s->rule[i]))
            pass_router(s, s->g->nodes.at[i]->in[1]);
}

bool sequence_passes(const struct space *s, int node, const struct assignment *c)
{
    const struct rule *r = s->rule[node];
    unsigned flags = s->g->nodes.at[node]->op->flags;
    require(r);
    if (!(flags & (OP_PRODUCT | OP_BARRIER)) || rule_travels(r, c))
        return true;
    for (int f = 0; f < r->nfactor; f++) {
        if (splits_factor(c, f) && !(s->sequence.passes[node] && is_rows(s, node, f)))
            return false;
    }
    return true;
}
