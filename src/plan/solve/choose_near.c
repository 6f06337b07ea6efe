/* choose_near: among plans nearly as fast as the fastest, finds the one with the fewest collectives and bytes. A hundredth of a rank's even
 * share of all weights and state counts as one collective: one collective of many is not worth a tenth of the memory, nor a hundredth of
 * the memory ten collectives.
 *
 * Both get a price, a Lagrange multiplier, in addition to time, and the problem is solved again. The cheapest plan at a price has the
 * fewest of all plans that take no more time (Everett, "Generalized Lagrange Multiplier Method", 1963). The first price is the whole time
 * that may be lost: a plan that pays more per saved collective is too slow. Values that no sufficiently fast plan has are removed. If the
 * plan is still too slow, because it saves several at once, the price is lowered to where it costs the same as the best known plan. The
 * bound that every solution proves for sufficiently fast plans is kept: a plan between two that are cheapest at the same price may never be
 * found. */
#include "plan/cost/cost.h"
#include "plan/plan.h"
#include "plan/solve/solve.h"
#include "plan/space/space.h"

#include <math.h>
#include <string.h>

enum { MOST_TRIALS = 6 };
#define BYTES_OF_A_COLLECTIVE 0.01

/* A plan at a price per collective. cost: without that price; bound: no plan costs less with it. */
struct trial {
    int64_t price;
    int *value, collectives;
    int64_t cost, bound;
    double bytes, saved; /* saved: collectives, and bytes counted as collectives */
};
struct nearing {
    struct choice_problem *of; /* its variables are the same at any price */
    struct trial best;
    bool **slow;   /* by variable and value: no sufficiently fast plan has it */
    int **kept;    /* by node: its remaining strategies; the others are too slow */
    int64_t most;  /* the most that a plan may cost */
    double held;   /* and hold, if bytes have a price */
    double each;   /* bytes that count as one collective */
    double fewest; /* no sufficiently fast plan has fewer collectives, and bytes counted as such */
};

static void set_price(struct nearing *n, int64_t price)
{
    struct space *s = n->of->s;
    double seconds = (double)price * 1e-12 / cost_steps(s->plan); /* per step */
    s->plan->near.collective_price = price;
    s->plan->near.byte_price = n->each > 0 ? seconds / n->each * s->options->machine.memory_bandwidth : 0;
}

/* The figures of an assignment at a price, without its value. */
static struct trial outcome(const struct nearing *n, struct choice_problem *e, int64_t price, const struct solution *best)
{
    encode_place_values(e, best->value);
    struct resident held = encode_resident(e, best->value);
    struct trial t = {.price = price, .bound = best->bound, .collectives = encode_collectives(e->s), .bytes = held.bytes};
    t.saved = t.collectives + (n->each > 0 ? held.bytes / n->each : 0);
    t.cost = best->cost - price * t.collectives - held.nearness;
    require(t.cost >= 0 && t.bytes >= 0); /* the solver paid for as many collectives as the plan has */
    return t;
}

/* ---- without what is slow ----------------------------------------------------------------------------------------------------- */

/* Restricts every node to strategies that are not too slow; to all of them if the problem is narrow, since the others then cost next to
 * nothing. Returns the previous strategies. */
static struct strategies *leave_fast(struct nearing *n, bool narrow)
{
    struct space *s = n->of->s;
    size_t bytes = sizeof *s->strategies * (size_t)s->g->nodes.n;
    struct strategies *all = memcpy(arena_alloc(s->arena, bytes + 1), s->strategies, bytes);
    n->kept = NEWN(s->arena, int *, s->g->nodes.n + 1);
    for (int i = 0; i < s->g->nodes.n; i++) {
        const bool *slow = n->slow[n->of->node_var[i]];
        s->strategies[i] = (struct strategies){0};
        n->kept[i] = NEWN(s->arena, int, all[i].list.n);
        for (int k = 0; k < all[i].list.n; k++) {
            n->kept[i][s->strategies[i].list.n] = k;
            if (narrow || !slow[k])
                VEC_PUSH(s->arena, &s->strategies[i].list, all[i].list.at[k]);
        }
        require(s->strategies[i].list.n > 0);
    }
    return all;
}

/* The ends of values and of the graph, in a list: their variables have the same values with all strategies and with a subset. */
static const struct endpoint *end_at(const struct choice_problem *e, int i)
{
    int values = e->s->g->values.n;
    return i < values ? &e->source[i] : i < 2 * values ? &e->read_place[i - values] : &e->sink[i - 2 * values];
}

static int count_ends(const struct choice_problem *e)
{
    return 2 * e->s->g->values.n + e->s->g->outputs.n;
}

static void forbid_slow(const struct nearing *n, struct choice_problem *e)
{
    for (int i = 0; i < e->s->g->nodes.n; i++) {
        int64_t *cost = problem_unary(e->p, e->node_var[i]);
        for (int k = 0; k < e->s->strategies[i].list.n; k++)
            cost[k] = n->slow[n->of->node_var[i]][n->kept[i][k]] ? COST_NEVER : 0;
    }
    for (int i = 0; i < count_ends(e); i++) {
        const struct endpoint *end = end_at(e, i), *whole = end_at(n->of, i);
        int64_t *cost = end->at ? problem_unary(e->p, end->var) : NULL;
        for (int x = 0; cost && x < end->n; x++)
            cost[x] = n->slow[whole->var][x] ? COST_NEVER : 0;
    }
}

/* Completes the variables other than those of nodes and ends: tables link them to these alone, so each takes its best value. */
static void complete_values(const struct choice_problem *e, const bool *known, int *value)
{
    struct arena *tmp = arena_new();
    struct problem_index of = problem_index(e->p, tmp);
    for (int v = 0; v < e->p->size.n; v++) {
        int64_t least = INT64_MAX;
        int best = 0;
        for (int x = 0; !known[v] && x < e->p->size.at[v]; x++) {
            int64_t sum = 0;
            value[v] = x;
            for (int i = 0; i < of.tables[v].list.n; i++)
                sum = cost_plus(sum, problem_entry(e->p, &e->p->tables.at[of.tables[v].list.at[i]], value));
            best = sum < least ? x : best;
            least = sum < least ? sum : least;
        }
        require(known[v] || least < COST_NEVER); /* the best assignment can be completed */
        value[v] = known[v] ? value[v] : best;
    }
    arena_free(tmp);
}

/* The best assignment, in the problem of the remaining strategies. */
static int *best_among_fast(const struct nearing *n, const struct choice_problem *e)
{
    const struct space *s = e->s;
    int *value = NEWN(e->arena, int, e->p->size.n + 1);
    bool *known = NEWN(e->arena, bool, e->p->size.n + 1);
    for (int i = 0; i < s->g->nodes.n; i++) {
        int v = e->node_var[i];
        while (n->kept[i][value[v]] != n->best.value[n->of->node_var[i]])
            require(++value[v] < s->strategies[i].list.n);
        known[v] = true;
    }
    for (int i = 0; i < count_ends(e); i++)
        if (end_at(e, i)->at) {
            value[end_at(e, i)->var] = n->best.value[end_at(n->of, i)->var];
            known[end_at(e, i)->var] = true;
        }
    complete_values(e, known, value);
    return value;
}

/* Translates an assignment of that problem to the problem of all strategies; only for nodes and ends. */
static int *among_all(const struct nearing *n, const struct choice_problem *e, const int *value)
{
    const struct space *s = e->s;
    int *all = NEWN(s->arena, int, n->of->p->size.n + 1);
    for (int i = 0; i < s->g->nodes.n; i++)
        all[n->of->node_var[i]] = n->kept[i][value[e->node_var[i]]];
    for (int i = 0; i < count_ends(e); i++)
        if (end_at(e, i)->at)
            all[end_at(n->of, i)->var] = value[end_at(e, i)->var];
    return all;
}

static struct trial solve_at(struct nearing *n, int64_t price)
{
    struct arena *tmp = arena_new();
    set_price(n, price);
    struct choice_problem e = encode_space(n->of->s, tmp);
    forbid_slow(n, &e);
    e.known = best_among_fast(n, &e);
    struct solution best = encode_solve(&e);
    require(best.cost < COST_NEVER); /* the fastest plan remains */
    struct trial t = outcome(n, &e, price, &best);
    t.value = among_all(n, &e, best.value);
    arena_free(tmp);
    return t;
}

static bool is_near(const struct nearing *n, const struct trial *t)
{
    return t->cost <= n->most && (n->of->s->plan->byte_price <= 0 || t->bytes <= n->held);
}

static void find_fewest(struct nearing *n, int64_t price)
{
    for (int i = 0; i < MOST_TRIALS && price > 0 && n->fewest < n->best.saved; i++) {
        struct trial t = solve_at(n, price);
        n->fewest = fmax(n->fewest, (double)(t.bound - n->most) / (double)price);
        if (t.saved >= n->best.saved)
            return;
        if (is_near(n, &t)) {
            n->best = t;
            return;
        }
        int64_t lower = (int64_t)((double)(t.cost - n->best.cost) / (n->best.saved - t.saved));
        if (lower >= price)
            return;
        price = lower;
    }
}

/* With the largest price, costs must still add up without overflow. */
static int64_t most_price(const struct nearing *n)
{
    const struct graph *g = n->of->s->g;
    return (COST_NEVER / 2 - n->most) / (2 * g->values.n + g->nodes.n + 1);
}

void choose_near(struct choice_problem *e, struct solution *best)
{
    struct space *s = e->s;
    struct nearing n = {.of = e, .each = BYTES_OF_A_COLLECTIVE * encode_all_bytes(e) / s->ranks};
    n.best = outcome(&n, e, 0, best);
    n.best.value = best->value;
    const int64_t lost = (int64_t)((double)(n.best.cost - encode_resident(e, n.best.value).memory) * PLAN_NEAR);
    n.most = n.best.cost + lost;
    n.held = n.best.bytes;
    const int64_t most = most_price(&n);
    n.slow = slow_values(e->p, s->arena, &(struct known){best->value, n.most + 1});
    for (int v = 0; v < e->p->size.n; v++)
        require(!n.slow[v][best->value[v]]);
    struct strategies *all = leave_fast(&n, best->narrow || s->plan->room.bytes > 0); /* barred plans refer to all strategies */
    find_fewest(&n, lost < most ? lost + 1 : most);
    memcpy(s->strategies, all, sizeof *all * (size_t)s->g->nodes.n);
    require(is_near(&n, &n.best));
    set_price(&n, n.best.price);
    encode_place_values(e, n.best.value);
    s->plan->near.searched = true;
    s->plan->near.more = fmax(n.best.saved - n.fewest, 0);
    best->value = n.best.value;
    best->cost = n.best.cost + n.best.price * n.best.collectives + encode_resident(e, n.best.value).nearness;
    explain("of the plans nearly as fast: %d collectives and %.0f bytes, %.2f collectives more than is proven", n.best.collectives,
            n.best.bytes, s->plan->near.more);
}
