/* solve: minimises a sum of tables.
 *
 * Elimination alone solves narrow problems, such as transformers of any depth. If a table would grow too large, only variables with small
 * tables are eliminated, and the rest, the core, is treated in rounds:
 *
 *     all       tries all assignments of a small core
 *     bound     raises a lower bound (bound.c), with limits priced (prices.c)
 *     probe     tries single values, and drops those for which the bound reaches the best cost (probe.c)
 *     search    finds better assignments: solves a part exactly, the rest stays (around.c)
 *     shrink    removes values that no better assignment has, and variables without a choice (reduce.c)
 *     again     with fewer values, more variables have small tables
 *
 * It ends when nothing is left or the bound is met, which proves the optimum, or when the effort is spent. Effort is counted, not timed, so
 * the same problem gives the same solution on every machine. */
#include "plan/solve/solve.h"

#include "plan/plan.h"

#include <math.h>
#include <string.h>

const struct solve_limits solve_default = {.table = 1 << 22, .effort = 8e8};

/* Entries of tables. */
enum {
    SMALL_TABLE = 1 << 12, /* made at once */
    LED_TABLE = 1 << 8,    /* in a search guided by the bound */
    AROUND_TABLE = 1 << 10 /* in a search around a known assignment */
};
/* Per round. */
enum {
    SWEEPS = 8,
    MOVES = 50,      /* of prices */
    SWEEPS_EACH = 4, /* after a move */
    PROPOSALS = 64,  /* per cycle of the search, */
    LARGE = 256,     /* from this number of variables in the core */
    IDLE = 8         /* cycles without success that end a search */
};
/* Values of a core. */
enum {
    SHARE_DROPPED = 12,   /* it shrinks when one value in this many is dropped, */
    SHARE_SETTLED = 2000, /* or in this many once prices have settled */
    FEW_VALUES = 4096,    /* probed in every round */
    FEW_ASSIGNMENTS = 1 << 14
};
#define ROOM 0.01       /* by how much a search may exceed the best cost */
#define HOPED 1.3       /* times the bound: the target of prices until a cost is known */
#define MOST_SHARE 16.0 /* times the bound's effort: the most that the search may spend */
#define LEAST_GAIN 0.01 /* of the gap: what counts as progress */
#define MOST_FAILED (1 << 20)
#define MOST_AT_ONCE 2e9
#define MOST_SCALED ((int64_t)1 << 56)

/* How a problem became smaller: variables were eliminated, or it was reduced. */
struct reduction {
    struct elimination *eliminated;
    struct reduced *reduced;
    int variables; /* before */
};
struct solving {
    struct arena *arena;
    struct solve_limits limits;
    double spent;
    const struct problem *core;
    VEC(struct reduction) done;
    struct known best;             /* of the core */
    int64_t bound, largest, scale; /* the factor by which the core's costs exceed the problem's */
    double *price;                 /* of the core's points, from the previous round; NULL: none */
    uint64_t seed;
    double share;       /* the search's effort relative to the bound's */
    int rounds, failed; /* failed: rounds until the next fresh search, after some that found nothing better */
    bool impossible;
};

static bool is_spent(const struct solving *s)
{
    return s->spent > s->limits.effort || (s->limits.enough && s->limits.enough());
}

static void take_if_better(struct solving *s, const int *value)
{
    int64_t cost = problem_cost(s->core, value);
    if (cost >= s->best.cost || !problem_fits(s->core, value))
        return;
    if (!s->best.value)
        s->best.value = NEWN(s->arena, int, s->core->size.n + 1);
    memcpy(s->best.value, value, sizeof(int) * (size_t)s->core->size.n);
    s->best.cost = cost;
}

static void note_effort(struct solving *s, const struct elimination *e)
{
    s->spent += elimination_spent(e);
    s->largest = elimination_largest(e) > s->largest ? elimination_largest(e) : s->largest;
}

/* ---- reduction ---------------------------------------------------------------------------------------------------------------------- */

static void move_best(struct solving *s, const struct reduced *r)
{
    int *value = NEWN(s->arena, int, r->p->size.n + 1);
    for (int k = 0; s->best.value && k < r->root.n; k++) {
        value[k] = r->into[k][s->best.value[r->root.at[k]]];
        if (value[k] < 0)
            s->best.value = NULL;
    }
    s->best.cost = s->best.value ? problem_cost(r->p, value) : COST_NEVER;
    s->best.value = s->best.value ? value : NULL;
}

static void move_prices(struct solving *s, const struct reduced *r)
{
    double *price = NEWN(s->arena, double, r->p->points + 1);
    for (int i = 0; s->price && i < s->core->points; i++)
        if (r->point[i] >= 0)
            price[r->point[i]] += s->price[i];
    s->price = s->price ? price : NULL;
}

/* A scale that makes costs large enough for rounded prices, and small enough to add up. */
static int64_t find_scale(const struct problem *p)
{
    int64_t sum = p->points ? cost_plus(problem_magnitude(p), 1) : 0, scale = 1;
    while (p->points && scale < 1 << 20 && sum * scale < MOST_SCALED / 2)
        scale *= 2;
    return scale;
}

/* Removes the values that the bound dropped, and everything without a choice. False: nothing is left to choose. */
static bool reduce_core(struct solving *s, const struct bound *b)
{
    struct problem *moved = b ? bound_problem(b, s->arena) : NULL;
    if (b)
        problem_copy_limits(s->core, moved);
    for (int quiet = 0, round = 0; quiet < 2; round++) {
        struct reduced *r = NEW(s->arena, struct reduced);
        int64_t scale = s->done.n == 0 ? find_scale(s->core) : 1;
        *r = reduce(round || !b ? s->core : moved, s->arena, round ? NULL : b, scale, round % 2 == 0);
        if (!r->possible)
            return false;
        quiet = r->changed || round == 0 ? 0 : quiet + 1;
        s->scale *= scale;
        move_best(s, r);
        move_prices(s, r);
        VEC_PUSH(s->arena, &s->done, ((struct reduction){.reduced = r, .variables = s->core->size.n}));
        s->core = r->p;
    }
    return true;
}

/* ---- search ------------------------------------------------------------------------------------------------------------------------- */

/* Eliminates all variables with small tables only. Fixes variables that prevent that to their locally best value; overwrites the problem's
 * tables. */
static void search_led(struct solving *s, const struct problem *p, int *value)
{
    struct arena *tmp = arena_new();
    struct elimination *e = elimination_new(p, tmp);
    elimination_forbid_early(e);
    while (!elimination_run(e, LED_TABLE, INFINITY)) {
        int v = elimination_widest(e, s->seed);
        elimination_fix(e, v, elimination_locally_best(e, v));
    }
    elimination_read_back(e, value);
    note_effort(s, e);
    arena_free(tmp);
}

/* Cycles of proposals around an assignment, until they do not help. */
static void search_around(struct solving *s, const struct bound *b, const struct prices *prices, const int *value, double most)
{
    struct arena *tmp = arena_new();
    struct around *r = around_new(s->core, tmp, b, value, ++s->seed);
    int proposals = PROPOSALS * (s->core->size.n < LARGE ? s->core->size.n : LARGE) / LARGE;
    for (int i = 0, idle = 0; around_effort(r) < most && idle < IDLE && !is_spent(s) && s->best.cost > s->bound; i++) {
        double effort = around_effort(r), excess = around_excess(r);
        int64_t cost = around_cost(r);
        around_search(r, prices_now(prices), proposals + 1, AROUND_TABLE, i % 2 ? ROOM : 0, idle > 1, most);
        s->spent += around_effort(r) - effort;
        idle = around_cost(r) < cost || around_excess(r) < excess ? 0 : idle + 1;
    }
    take_if_better(s, around_value(r));
    arena_free(tmp);
}

/* Searches from the assignment that the moved costs suggest, and from the best known. */
static void search(struct solving *s, const struct bound *b, const struct prices *prices, double most)
{
    struct arena *tmp = arena_new();
    int *led = NEWN(tmp, int, s->core->size.n + 1);
    bool fresh = b && (!s->best.value || s->rounds % (s->failed + 1) == 0);
    int64_t before = s->best.cost;
    if (fresh) {
        search_led(s, bound_problem(b, tmp), led);
        take_if_better(s, led);
        search_around(s, b, prices, led, most);
        s->failed = s->best.cost < before ? 0 : s->failed < MOST_FAILED ? 2 * s->failed + 1 : s->failed;
    }
    if (s->best.value && !fresh)
        search_around(s, b, prices, s->best.value, most);
    require(s->best.cost >= s->bound);
    s->rounds++;
    arena_free(tmp);
}

/* ---- rounds -------------------------------------------------------------------------------------------------------------------------- */

static bool sweep(struct solving *s, struct bound *b, int sweeps)
{
    double before = bound_effort(b);
    bool better = true;
    for (int i = 0; i < sweeps && better && !is_spent(s); i++) {
        better = bound_sweep(b, &s->best);
        s->bound = bound_total(b) > s->bound ? bound_total(b) : s->bound;
    }
    s->spent += bound_effort(b) - before;
    s->bound = better ? s->bound : s->best.cost;
    require(s->bound <= s->best.cost);
    return better;
}

static void raise_bound(struct solving *s, struct bound *b, struct prices *prices)
{
    struct arena *tmp = arena_new();
    int *value = NEWN(tmp, int, s->core->size.n + 1);
    bool better = sweep(s, b, SWEEPS);
    if (prices)
        prices_resume(prices);
    for (int i = 0; i < MOVES && prices && better && !prices_settled(prices) && !is_spent(s); i++) {
        bound_decode(b, value);
        prices_move(prices, value, (double)bound_total(b), s->best.value ? (double)s->best.cost : HOPED * fabs((double)s->bound));
        prices_charge(prices, b);
        s->spent += s->core->points + s->core->takes.n;
        better = sweep(s, b, SWEEPS_EACH);
    }
    arena_free(tmp);
}

/* Eliminates variables with small tables, or all if affordable. True: nothing is left. */
static bool eliminate_most(struct solving *s)
{
    struct elimination *e = elimination_new(s->core, s->arena);
    double left = s->limits.effort - s->spent < MOST_AT_ONCE ? s->limits.effort - s->spent : MOST_AT_ONCE;
    bool all = elimination_run(e, s->limits.table < SMALL_TABLE ? s->limits.table : SMALL_TABLE, left);
    if (!all && elimination_effort(e, s->limits.table, left) <= left)
        all = elimination_run(e, s->limits.table, INFINITY);
    note_effort(s, e);
    VEC_PUSH(s->arena, &s->done, ((struct reduction){.eliminated = e, .variables = s->core->size.n}));
    s->core = elimination_rest(e, s->arena);
    require(s->core->size.n == s->done.at[s->done.n - 1].variables);
    for (int v = 0; s->best.value && v < s->core->size.n; v++)
        s->best.value[v] = s->core->size.at[v] > 1 ? s->best.value[v] : 0;
    s->best.cost = s->best.value ? problem_cost(s->core, s->best.value) : COST_NEVER;
    return all;
}

/* The sum of the least entry of each table. */
static int64_t least_sum(const struct problem *p)
{
    int64_t sum = 0;
    for (int i = 0; i < p->tables.n; i++) {
        int64_t least = COST_NEVER;
        for (int64_t k = 0, n = problem_entries(p, &p->tables.at[i]); k < n; k++)
            least = p->tables.at[i].cost[k] < least ? p->tables.at[i].cost[k] : least;
        sum = cost_plus(sum, least);
    }
    return sum;
}

/* Removes the dropped values from the core, and keeps its moved costs. */
static bool shrink(struct solving *s, struct bound *b, struct prices *prices)
{
    if (prices) {
        prices_release(prices, b);
        s->price = NEWN(s->arena, double, s->core->points + 1);
        memcpy(s->price, prices_now(prices), sizeof *s->price * (size_t)s->core->points);
    }
    s->impossible = !reduce_core(s, b);
    return !s->impossible;
}

static int64_t count_values(const struct problem *p)
{
    int64_t n = 0;
    for (int v = 0; v < p->size.n; v++)
        n += p->size.at[v];
    return n;
}

/* The state before a round. */
struct standing {
    int64_t bound, cost;
    double effort; /* effort of the bound */
};

static struct standing standing_of(const struct solving *s, const struct bound *b)
{
    return (struct standing){s->bound, s->best.cost, b ? bound_effort(b) : 0};
}

/* Spends more on whichever of bound and search closed the gap more; equally if neither did. Returns whether the bound moved. */
static bool share_effort(struct solving *s, const struct standing *before)
{
    double gap = (double)(s->best.cost - s->bound), risen = (double)(s->bound - before->bound),
           saved = (double)(before->cost - s->best.cost);
    bool neither = risen < LEAST_GAIN * gap && saved < LEAST_GAIN * gap, more = neither ? s->share < 1 : saved >= risen;
    double share = more ? 2 * s->share : s->share / 2;
    s->share = share > MOST_SHARE ? MOST_SHARE : share < 1 / MOST_SHARE ? 1 / MOST_SHARE : share;
    return risen >= LEAST_GAIN * gap;
}

/* True if the core became smaller; false if it is solved or the effort is spent. */
static bool play_round(struct solving *s)
{
    struct arena *tmp = arena_new();
    struct bound *b = bound_new(s->core, tmp);
    struct prices *prices = prices_new(s->core, tmp, s->price, (double)s->bound);
    int64_t values = count_values(s->core);
    int probed = 0;
    bool open = b;
    if (b && prices)
        prices_charge(prices, b);
    do {
        struct standing before = standing_of(s, b);
        if (b)
            raise_bound(s, b, prices);
        search(s, b, prices, s->share * (b ? bound_effort(b) - before.effort : 0) + 1);
        bool moved = share_effort(s, &before);
        if (b && (!moved || values <= FEW_VALUES) && s->best.value && s->bound < s->best.cost && !is_spent(s))
            s->spent += probe_values(b, &s->best, &probed, bound_effort(b) - before.effort);
        open = open && s->bound < s->best.cost && sweep(s, b, SWEEPS) && !is_spent(s);
    } while (open && bound_dropped(b) <= values / (prices && prices_settled(prices) ? SHARE_SETTLED : SHARE_DROPPED));
    open = open && shrink(s, b, prices);
    arena_free(tmp);
    return open;
}

/* Tries all assignments of a small core. False: it has too many. */
static bool try_all(struct solving *s)
{
    double n = 1;
    for (int v = 0; v < s->core->size.n; v++)
        n *= s->core->size.at[v];
    double effort = n * (s->core->tables.n + s->core->takes.n + s->core->points + 1);
    if (n > FEW_ASSIGNMENTS || s->spent + effort > s->limits.effort)
        return false;
    struct solution best = solve_brute(s->core);
    if (best.cost < s->best.cost)
        take_if_better(s, best.value);
    s->spent += effort;
    s->bound = s->best.cost;
    s->impossible = s->best.cost >= COST_NEVER;
    return true;
}

/* Values of the problem from values of the core. */
static void read_back(const struct solving *s, const int *core, int *value)
{
    int n = s->core->size.n;
    int *now = NEWN(s->arena, int, n + 1);
    if (n)
        memcpy(now, core, sizeof(int) * (size_t)n);
    for (int i = s->done.n - 1; i >= 0; i--) {
        const struct reduction *r = &s->done.at[i];
        int *before = NEWN(s->arena, int, r->variables + 1);
        for (int v = 0; r->eliminated && v < r->variables; v++)
            before[v] = now[v];
        if (r->eliminated)
            elimination_read_back(r->eliminated, before);
        for (int v = 0; r->reduced && v < r->variables; v++)
            before[v] = r->reduced->value[v][r->reduced->var[v] < 0 ? 0 : now[r->reduced->var[v]]];
        now = before;
        n = r->variables;
    }
    if (n)
        memcpy(value, now, sizeof(int) * (size_t)n);
}

struct solution solve_exact(const struct problem *p, struct solve_limits limits, const int *otherwise)
{
    struct solving s = {.arena = arena_new(), .limits = limits, .best.cost = COST_NEVER, .core = p, .scale = 1, .share = 0.5};
    struct solution out = {.value = NEWN(p->arena, int, p->size.n + 1)};
    if (otherwise)
        take_if_better(&s, otherwise);
    s.impossible = p->points && !reduce_core(&s, NULL);
    bool all = !s.impossible && eliminate_most(&s);
    if (!all && !s.impossible && !p->points) {
        s.impossible = !reduce_core(&s, NULL);
        all = !s.impossible && eliminate_most(&s);
    }
    out.narrow = all;
    s.bound = least_sum(s.core);
    while (!all && !s.impossible && s.bound < s.best.cost && !try_all(&s) && play_round(&s))
        all = eliminate_most(&s);
    read_back(&s, s.best.value && !all ? s.best.value : NEWN(s.arena, int, s.core->size.n + 1), out.value);
    out.cost = problem_fits(p, out.value) ? problem_cost(p, out.value) : COST_NEVER;
    s.bound = s.impossible ? s.best.cost : s.bound;                                     /* nothing is better than the known assignment */
    require(!all || out.cost >= COST_NEVER || least_sum(s.core) == out.cost * s.scale); /* what is left is the cost of the values */
    out.bound = all ? out.cost : s.bound >= COST_NEVER ? COST_NEVER : (s.bound + (s.bound > 0 ? s.scale - 1 : 0)) / s.scale;
    out.proven = out.bound >= out.cost;
    out.largest_table = s.largest;
    require(out.cost >= out.bound);
    arena_free(s.arena);
    return out;
}
