/* Where splits along a sequence pass products and softmax: attention of some of the queries over all keys (context parallelism), and
 * products of some of the rows with whole weights, between which all-to-all exchanges rows for heads (arXiv 2309.14509).
 *
 * Plain --sp keeps them out: each would leave weights whole, on a part of the tokens. Under --sp=auto the price of holding weights
 * decides, and a plan file lets them into the nodes that it names. Keys are never split: what is attended over is gathered. */
#include "plan/space/space.h"

/* ---- what is attended over ------------------------------------------------------------------------------------------------- */

/* Is factor f summed by a product of activations, or does it become a dimension that is? Weights end the walk: past them are other rows. */
static bool factor_attended(const struct space *s, int node, int f)
{
    const struct node *n = s->g->nodes.at[node];
    const struct rule *r = s->rule[node];
    if (space_between_activations(s, n) && (r->factor[f].flags & FACTOR_CONTRACTED))
        return true;
    for (int i = 0; i < r->nout; i++)
        for (int d = 0; n->out[i] && d < n->out[i]->type.rank; d++)
            if (rule_factor_at(&r->out[i], d) == f && s->attended[n->out[i]->id][d])
                return true;
    return false;
}

static void mark_operands(struct space *s, int node)
{
    const struct node *n = s->g->nodes.at[node];
    const struct rule *r = s->rule[node];
    for (int i = 0; i < r->nin; i++)
        for (int d = 0; n->in[i] && d < n->in[i]->type.rank; d++) {
            int f = rule_factor_at(&r->in[i], d);
            s->attended[n->in[i]->id][d] |= f >= 0 && factor_attended(s, node, f);
        }
}

void sequence_mark_attended(struct space *s)
{
    for (int i = s->g->nodes.n - 1; i >= 0; i--) {
        const struct node *n = s->g->nodes.at[i];
        if (s->rule[i] && (!(n->op->flags & OP_PRODUCT) || space_between_activations(s, n)))
            mark_operands(s, i);
    }
}

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
    return !(factor & FACTOR_CONTRACTED) && !(space_between_activations(s, n) && factor_attended(s, node, f));
}

bool sequence_passes(const struct space *s, int node, const struct assignment *c)
{
    const struct rule *r = s->rule[node];
    unsigned flags = s->g->nodes.at[node]->op->flags;
    if (!(flags & (OP_PRODUCT | OP_BARRIER)))
        return true;
    for (int f = 0; f < r->nfactor; f++) {
        if (splits_factor(c, f) && !(s->through[node] && is_rows(s, node, f)))
            return false;
    }
    return true;
}
