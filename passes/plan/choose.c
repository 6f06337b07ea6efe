/* choose: picks a placement for both ends of every edge.
 *
 * Rules and splits give candidates and strategies (src/plan/space/candidate.c). Costs and reshards form a problem, and the solver finds
 * its cheapest consistent solution (src/plan/choose.c). The pass sets node->strategy, value->place and the plan's predictions, and
 * changes no node. */
#include "op/op.h"
#include "passes/pass.h"
#include "plan/cost/cost.h"
#include "plan/facts/facts.h"
#include "plan/plan.h"
#include "plan/space/space.h"

/* The cost of the node's strategy per weighted step, in microseconds. */
static double node_microseconds(struct space *s, int i)
{
    const struct node *n = s->g->nodes.at[i];
    return (double)cost_of_strategy(s, n, s->rule[i], n->strategy) * 1e-6 / cost_steps(s->plan);
}

/* Does every rank multiply all of a weight here, for a good part of the step? */
static bool repeats_product(struct space *s, int i)
{
    enum { PART = 20 };
    const struct node *n = s->g->nodes.at[i];
    bool weight = false;
    for (int k = 0; k < n->nin; k++)
        weight = weight || (n->in[k] && s->weight[n->in[k]->id]);
    return s->ranks > 1 && weight && n->op && (n->op->flags & OP_PRODUCT) && !strategy_splits(n, n->strategy) &&
        node_microseconds(s, i) * PART >= s->plan->seconds * 1e6;
}

static const char *why_replicated(struct space *s, int i)
{
    const char *why = strategy_missing(s, i);
    return why || !repeats_product(s, i) ? why : "not split by this plan";
}

/* Lists the nodes that run on every rank, because they have no rule or the plan does not split them. Shape data always does. */
static void note_replicated(struct compile *c, struct space *s)
{
    for (int i = 0; i < s->g->nodes.n; i++) {
        const struct node *n = s->g->nodes.at[i];
        const char *why = why_replicated(s, i);
        if (why && !(n->op && (n->op->flags & OP_INTERNAL)))
            VEC_PUSH(c->arena, &c->plan->replicated,
                     arena_printf(c->arena, c->plan->missing.list.n ? "%s (%s): %s" : "%s (%s): %s; %.1f us a step on every rank", n->name,
                                  n->optype, why, node_microseconds(s, i)));
    }
}

void pass_choose(struct compile *c)
{
    struct graph *g = c->graph;
    require(c->options && c->plan);
    g->ranks = c->options->ranks;
    c->plan->ranks = g->ranks;
    if (c->options->state_from)
        plan_match_states(g, c->options, c->plan);
    struct space *s = plan_space(c->arena, g, c->options, c->plan);
    plan_choose(s);
    plan_note_step(s);
    c->plan->missing = missing_kernels_of(c->arena, g);
    note_replicated(c, s);
}
