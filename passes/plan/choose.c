/* choose: picks a placement for both ends of every edge.
 *
 * Rules and splits give candidates and strategies (src/plan/space/candidate.c). Costs and reshards form a problem, and the solver finds
 * its cheapest consistent solution (src/plan/choose.c). The pass sets node->strategy, value->place and the plan's predictions, and
 * changes no node. */
#include "op/op.h"
#include "passes/pass.h"
#include "plan/constrain/constrain.h"
#include "plan/cost/cost.h"
#include "plan/facts/facts.h"
#include "plan/plan.h"
#include "plan/report/report.h"
#include "plan/space/space.h"

#include <stdlib.h>
#include <string.h>

/* Replicated nodes of one op with the same reason. */
struct replicated {
    const struct node *named; /* the slowest */
    const char *why;
    int nodes, at;        /* at: position among all such groups */
    double seconds, most; /* of all nodes; of the slowest */
};
struct all_replicated {
    VEC(struct replicated) list;
};

static const char not_split[] = "not split by this plan";

/* Could the node be split, so that the report lists it as replicated: each product with a weight, and each node of a --strict plan. */
static bool tells_whole(const struct space *s, int i)
{
    const struct node *n = s->g->nodes.at[i];
    bool weight = false;
    for (int k = 0; k < n->nin; k++)
        weight = weight || (n->in[k] && s->weight[n->in[k]->id]);
    bool product = weight && n->op && (n->op->flags & OP_PRODUCT), strict = s->options->strict == STRICT_ON && s->offered[i].list.n > 1;
    return s->ranks > 1 && (product || strict) && !strategy_splits(n, n->strategy);
}

static const char *why_replicated(struct space *s, int i)
{
    const char *why = strategy_missing(s, i);
    return why || !tells_whole(s, i) ? why : not_split;
}

/* A large part of the step, or with --strict every replicated node. */
static bool is_told(const struct compile *c, const struct replicated *r)
{
    enum { PART = 20 };
    return r->why != not_split || c->options->strict == STRICT_ON || r->seconds * PART >= c->plan->seconds;
}

static void add_replicated(struct compile *c, struct all_replicated *all, const struct node *n, const char *why, double seconds)
{
    struct replicated *r = all->list.at;
    for (; r < all->list.at + all->list.n; r++)
        if (strcmp(r->why, why) == 0 && strcmp(r->named->optype, n->optype) == 0 && strcmp(r->named->domain, n->domain) == 0) {
            r->nodes++;
            r->seconds += seconds;
            r->named = seconds > r->most ? n : r->named;
            r->most = seconds > r->most ? seconds : r->most;
            return;
        }
    VEC_PUSH(c->arena, &all->list, ((struct replicated){n, why, 1, all->list.n, seconds, seconds}));
}

static void tell_replicated(struct compile *c, const struct replicated *r)
{
    const char *more = r->nodes == 1 ? "" : arena_printf(c->arena, " and %d more", r->nodes - 1);
    const char *takes = arena_printf(c->arena, "; %s a step on every rank", units_seconds(c->arena, r->seconds));
    VEC_PUSH(
        c->arena, &c->plan->replicated,
        arena_printf(c->arena, "%s (%s)%s: %s%s", r->named->name, r->named->optype, more, r->why, c->plan->missing.list.n ? "" : takes));
    c->plan->nreplicated += r->nodes;
}

/* Slowest first, then in graph order. */
static int by_seconds(const void *a, const void *b)
{
    const struct replicated *x = a, *y = b;
    return x->seconds != y->seconds ? (x->seconds < y->seconds) - (x->seconds > y->seconds) : x->at - y->at;
}

/* Lists the nodes that run on every rank, because they have no rule or the plan does not split them. Shape data always does. */
static void note_replicated(struct compile *c, struct space *s)
{
    struct all_replicated all = {0};
    for (int i = 0; i < s->g->nodes.n; i++) {
        const struct node *n = s->g->nodes.at[i];
        double seconds = strategy_splits(n, n->strategy) ? 0 : cost_step_seconds(s, i);
        const char *why = why_replicated(s, i);
        if (why && !(n->op && (n->op->flags & OP_INTERNAL)))
            add_replicated(c, &all, n, why, seconds);
        c->plan->repeated_seconds += s->ranks > 1 ? seconds : 0;
    }
    if (all.list.n > 1)
        qsort(all.list.at, (size_t)all.list.n, sizeof *all.list.at, by_seconds);
    for (int k = 0; k < all.list.n; k++)
        if (is_told(c, &all.list.at[k]))
            tell_replicated(c, &all.list.at[k]);
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
    constrain_note_kept(s);
    c->plan->missing = missing_kernels_of(c->arena, g);
    note_replicated(c, s);
    if (!c->plan->missing.list.n)
        plan_note_idle(s);
}
