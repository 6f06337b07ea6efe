/* solve: the minimum of a sum of tables.
 *
 * Elimination alone solves problems that are narrow, as transformers are whatever their depth. Where a table would grow too large, the
 * variables that make small ones are eliminated, and the rest, the core, is treated in rounds:
 *
 *     search    finds better assignments: some variables keep their values, so many that all others can be eliminated
 *     bound     raises a lower bound, and drops values that nothing better than the best assignment has
 *     again     with fewer values more variables make small tables
 *
 * It ends when nothing is left or the bound is met, which proves the assignment, or when the effort is spent. Effort is counted, not timed,
 * so the same problem gives the same solution on every machine. */
#include "plan/solve/solve.h"

#include "plan/plan.h"

#include <math.h>
#include <string.h>

const struct solve_limits solve_default = {.table = 1 << 22, .effort = 2e8};

/* Entries of tables: that are made at once, in a search led by the bound, in a search around what is known; sweeps and searches of a round.
 */
enum { SMALL_TABLE = 1 << 12, LED_TABLE = 1 << 8, AROUND_TABLE = 1 << 10, SWEEPS = 8, SEARCHES = 3 };

/* How a problem became a smaller one: variables were eliminated, or values left out. */
struct reduction {
    struct elimination *eliminated;
    int **kept; /* by variable: the values */
};
struct solving {
    struct arena *arena;
    struct solve_limits limits;
    double spent;
    const struct problem *core;
    VEC(struct reduction) done;
    struct known best; /* of the core */
    int64_t bound, largest;
    uint64_t seed;
};

static void take_if_better(struct solving *s, const int *value)
{
    int64_t cost = problem_cost(s->core, value);
    if (cost >= s->best.cost)
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

/* ---- search ------------------------------------------------------------------------------------------------------------------------- */

/* Eliminates all variables of a problem by small tables only. Variables that are in the way are fixed: to the values that are kept, and the
 * result is no worse than these; or to what is locally best, and the problem's tables are overwritten. */
static void search_by(struct solving *s, const struct problem *p, const int *keep, int64_t most_entries)
{
    struct arena *tmp = arena_new();
    struct elimination *e = elimination_new(p, tmp);
    int *value = NEWN(tmp, int, p->size.n + 1);
    if (!keep)
        elimination_forbid_early(e);
    while (!elimination_run(e, most_entries, INFINITY)) {
        int v = elimination_widest(e, s->seed);
        elimination_fix(e, v, keep ? keep[v] : elimination_locally_best(e, v));
    }
    elimination_read_back(e, value);
    note_effort(s, e);
    take_if_better(s, value);
    arena_free(tmp);
}

/* First led by the costs as the bound has moved them, then around the best that is known. */
static void search(struct solving *s, const struct bound *b)
{
    struct arena *tmp = arena_new();
    if (b)
        search_by(s, bound_problem(b, tmp), NULL, LED_TABLE);
    for (int i = 0; i < SEARCHES && s->best.value && s->spent < s->limits.effort && s->best.cost > s->bound; i++) {
        s->seed++;
        search_by(s, s->core, s->best.value, AROUND_TABLE);
    }
    arena_free(tmp);
}

/* ---- rounds -------------------------------------------------------------------------------------------------------------------------- */

static void raise_bound(struct solving *s, struct bound *b)
{
    bool better = true;
    for (int i = 0; i < SWEEPS && better && s->spent < s->limits.effort; i++) {
        double before = bound_effort(b);
        better = bound_sweep(b, &s->best);
        s->spent += bound_effort(b) - before;
        s->bound = bound_total(b) > s->bound ? bound_total(b) : s->bound;
    }
    s->bound = better ? s->bound : s->best.cost;
}

/* Leaves out what the bound has dropped. */
static void leave_out(struct solving *s, const struct bound *b)
{
    struct arena *tmp = arena_new();
    int n = s->core->size.n, **kept = NEWN(s->arena, int *, n + 1), *count = NEWN(tmp, int, n + 1);
    for (int v = 0; v < n; v++) {
        kept[v] = NEWN(s->arena, int, s->core->size.at[v]);
        for (int x = 0, at = s->best.value ? s->best.value[v] : -1; x < s->core->size.at[v]; x++)
            if (bound_keeps(b, v, x)) {
                if (x == at)
                    s->best.value[v] = count[v];
                kept[v][count[v]++] = x;
            }
    }
    s->core = problem_restrict(bound_problem(b, tmp), s->arena, count, kept);
    VEC_PUSH(s->arena, &s->done, ((struct reduction){.kept = kept}));
    arena_free(tmp);
}

/* Eliminates what makes small tables, or all if that is affordable. True: nothing is left. */
static bool eliminate_most(struct solving *s)
{
    struct elimination *e = elimination_new(s->core, s->arena);
    double left = s->limits.effort - s->spent;
    bool all = elimination_run(e, s->limits.table < SMALL_TABLE ? s->limits.table : SMALL_TABLE, left);
    if (!all && elimination_effort(e, s->limits.table, left) <= left)
        all = elimination_run(e, s->limits.table, INFINITY);
    note_effort(s, e);
    s->core = elimination_rest(e, s->arena);
    VEC_PUSH(s->arena, &s->done, ((struct reduction){.eliminated = e}));
    for (int v = 0; s->best.value && v < s->core->size.n; v++)
        s->best.value[v] = s->core->size.at[v] > 1 ? s->best.value[v] : 0;
    s->best.cost = s->best.value ? problem_cost(s->core, s->best.value) : COST_NEVER;
    return all;
}

/* The sum of what is least in each table. */
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

/* True if the core may have become smaller. */
static bool play_round(struct solving *s)
{
    struct bound *b = bound_new(s->core, s->arena);
    if (b)
        raise_bound(s, b);
    search(s, b);
    if (!b || s->bound >= s->best.cost || s->spent > s->limits.effort)
        return false;
    raise_bound(s, b);
    if (s->bound >= s->best.cost || s->spent > s->limits.effort)
        return false;
    leave_out(s, b);
    return true;
}

static void read_back(const struct solving *s, int *value)
{
    for (int i = s->done.n - 1; i >= 0; i--) {
        const struct reduction *r = &s->done.at[i];
        if (r->eliminated)
            elimination_read_back(r->eliminated, value);
        for (int v = 0; r->kept && v < s->core->size.n; v++)
            value[v] = r->kept[v][value[v]];
    }
}

struct solution solve_exact(const struct problem *p, struct solve_limits limits, const int *otherwise)
{
    struct solving s = {.arena = arena_new(), .limits = limits, .best.cost = COST_NEVER, .core = p};
    struct solution out = {.value = NEWN(p->arena, int, p->size.n + 1)};
    if (otherwise)
        take_if_better(&s, otherwise);
    bool all = eliminate_most(&s);
    s.bound = least_sum(s.core);
    while (!all && s.bound < s.best.cost && play_round(&s))
        all = eliminate_most(&s);
    if (s.best.value && !all)
        memcpy(out.value, s.best.value, sizeof(int) * (size_t)p->size.n);
    read_back(&s, out.value);
    out.cost = problem_cost(p, out.value);
    out.bound = all ? out.cost : s.bound;
    out.proven = out.bound >= out.cost;
    out.largest_table = s.largest;
    require(out.cost >= out.bound);
    arena_free(s.arena);
    return out;
}
