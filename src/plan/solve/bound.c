/* bound: a lower bound by sequential reweighted message passing (Kolmogorov, "A New Look at Reweighted Message Passing", 2015).
 *
 * The sum of the tables stays the same while costs move between tables and variables. The sum of their least entries is a bound at any
 * time, and it rises. A sweep visits the variables in order: for each table of a variable, the least entry for each value moves to the
 * variable, and then in equal parts to the tables that have variables still to be visited.
 *
 * The bound, minus the least cost of a variable, plus the cost of one of its values, bounds all assignments with this value. If that
 * reaches the best known cost, the value is dropped: no better assignment has it. */
#include "plan/plan.h"
#include "plan/solve/solve.h"

#include <string.h>

#define MOST_COST ((int64_t)1 << 58) /* in total, so that sums of moved costs do not overflow */

struct bound_table {
    struct cost_table t;
    int64_t entries, least;
};
struct incidence {
    int table, position;
};
struct incidences {
    VEC(struct incidence) list;
};
struct bound {
    const struct problem *p;
    struct arena *arena;
    VEC(struct bound_table) tables;   /* of two or more variables */
    struct incidences *of;            /* by variable */
    int64_t **unary, *least;          /* by variable: costs of its values; the least of them */
    int64_t total, constant;          /* of all least costs */
    int64_t **moved, *share, *change; /* scratch: by position in a variable's list, what its tables give it; by value */
    bool *gives;                      /* by position: whether it gives */
    double effort;
    int dropped;
    bool forward;
};

static bool is_never(int64_t cost)
{
    return cost >= COST_NEVER / 2;
}

static int64_t least_of(const int64_t *cost, int64_t n)
{
    int64_t least = COST_NEVER;
    for (int64_t i = 0; i < n; i++)
        least = cost[i] < least ? cost[i] : least;
    return least;
}

/* ---- set-up ------------------------------------------------------------------------------------------------------------------ */

static void take(struct bound *b, const struct cost_table *t)
{
    int64_t n = problem_entries(b->p, t);
    if (t->nvar < 2) {
        int64_t *to = t->nvar ? b->unary[t->var[0]] : &b->constant;
        for (int64_t i = 0; i < n; i++)
            to[i] = cost_plus(to[i], t->cost[i]);
        return;
    }
    struct bound_table own = {.t = {t->nvar, t->var, NEWN(b->arena, int64_t, n)}, .entries = n, .least = least_of(t->cost, n)};
    memcpy(own.t.cost, t->cost, sizeof *t->cost * (size_t)n);
    for (int i = 0; i < t->nvar; i++)
        VEC_PUSH(b->arena, &b->of[t->var[i]].list, ((struct incidence){b->tables.n, i}));
    VEC_PUSH(b->arena, &b->tables, own);
}

struct bound *bound_new(const struct problem *p, struct arena *a)
{
    struct bound *b = NEW(a, struct bound);
    int n = p->size.n, most = 0, widest = 0;
    if (problem_magnitude(p) >= MOST_COST) /* sums might overflow */
        return NULL;
    *b = (struct bound){.p = p, .arena = a};
    b->of = NEWN(a, struct incidences, n + 1);
    b->unary = NEWN(a, int64_t *, n + 1);
    b->least = NEWN(a, int64_t, n + 1);
    for (int v = 0; v < n; v++)
        b->unary[v] = NEWN(a, int64_t, p->size.at[v]);
    for (int i = 0; i < p->tables.n; i++)
        take(b, &p->tables.at[i]);
    b->total = b->constant;
    for (int v = 0; v < n; v++) {
        b->least[v] = least_of(b->unary[v], p->size.at[v]);
        b->total = cost_plus(b->total, b->least[v]);
        most = b->of[v].list.n > most ? b->of[v].list.n : most;
        widest = p->size.at[v] > widest ? p->size.at[v] : widest;
    }
    for (int i = 0; i < b->tables.n; i++)
        b->total = cost_plus(b->total, b->tables.at[i].least);
    b->moved = NEWN(a, int64_t *, most + 1);
    b->gives = NEWN(a, bool, most + 1);
    for (int i = 0; i < most; i++)
        b->moved[i] = NEWN(a, int64_t, widest);
    b->share = NEWN(a, int64_t, widest + 1);
    b->change = NEWN(a, int64_t, widest + 1);
    return b;
}

/* ---- a sweep ------------------------------------------------------------------------------------------------------------------ */

static int64_t moved_cost(int64_t cost, int64_t by)
{
    return is_never(cost) || is_never(by) ? COST_NEVER : cost + by;
}

/* Adds the cost of its value to every entry; forbidden entries stay forbidden. */
static void add_costs(const struct bound *b, struct bound_table *t, int position, const int64_t *by_value)
{
    struct table_layout l = problem_layout(b->p, &t->t, position);
    int64_t *cost = t->t.cost, low = COST_NEVER;
    for (int64_t o = 0; l.inner == 1 && o < l.outer; o++, cost += l.size)
        for (int x = 0; x < l.size; x++) {
            cost[x] = moved_cost(cost[x], by_value[x]);
            low = cost[x] < low ? cost[x] : low;
        }
    for (int64_t o = 0; l.inner > 1 && o < l.outer; o++)
        for (int x = 0; x < l.size; x++, cost += l.inner)
            for (int64_t i = 0, by = by_value[x]; i < l.inner; i++) {
                cost[i] = moved_cost(cost[i], by);
                low = cost[i] < low ? cost[i] : low;
            }
    t->least = low;
}

/* Whether variables of the table are still to be visited in this sweep; whether any have been. */
static bool has_others(const struct bound *b, const struct bound_table *t, int v, bool later)
{
    for (int i = 0; i < t->t.nvar; i++)
        if (t->t.var[i] != v && (t->t.var[i] > v) == (later == b->forward))
            return true;
    return false;
}

/* Moves costs of tables to the variable. Returns the number of tables with variables still to be visited, or with visited ones, whichever
 * is larger. */
static int gather(struct bound *b, int v)
{
    int later = 0, earlier = 0, size = b->p->size.at[v];
    for (int i = 0; i < b->of[v].list.n; i++) {
        struct incidence at = b->of[v].list.at[i];
        const struct bound_table *t = &b->tables.at[at.table];
        b->effort += (double)t->entries;
        later += has_others(b, t, v, true);
        b->gives[i] = has_others(b, t, v, false);
        if (!b->gives[i])
            continue;
        earlier++;
        problem_least(b->p, &t->t, at.position, b->moved[i]);
        for (int x = 0; x < size; x++)
            b->unary[v][x] = is_never(b->unary[v][x]) || is_never(b->moved[i][x]) ? COST_NEVER : b->unary[v][x] + b->moved[i][x];
    }
    return later > earlier ? later : earlier;
}

/* Drops values that no assignment better than the best known one has. rest: the bound without the variable's least cost. */
static void drop_values(struct bound *b, int v, int64_t rest, const struct known *best)
{
    for (int x = 0; x < b->p->size.at[v]; x++)
        if (!is_never(b->unary[v][x]) && rest + b->unary[v][x] >= best->cost && x != best->value[v]) {
            b->unary[v][x] = COST_NEVER;
            b->dropped++;
        }
}

static void scatter(struct bound *b, int v, int parts)
{
    int size = b->p->size.at[v], given = 0;
    int64_t *share = b->share, *change = b->change;
    for (int x = 0; x < size; x++)
        share[x] = is_never(b->unary[v][x]) ? COST_NEVER : parts ? b->unary[v][x] / parts : 0;
    for (int i = 0; i < b->of[v].list.n; i++) {
        struct incidence at = b->of[v].list.at[i];
        struct bound_table *t = &b->tables.at[at.table];
        bool takes = has_others(b, t, v, true);
        given += takes;
        for (int x = 0; x < size; x++)
            change[x] = is_never(share[x]) ? COST_NEVER : (takes ? share[x] : 0) - (b->gives[i] ? b->moved[i][x] : 0);
        add_costs(b, t, at.position, change);
    }
    for (int x = 0; x < size; x++)
        b->unary[v][x] = is_never(share[x]) ? COST_NEVER : b->unary[v][x] - given * share[x];
}

static int64_t least_around(const struct bound *b, int v)
{
    int64_t sum = b->least[v];
    for (int i = 0; i < b->of[v].list.n; i++)
        sum = cost_plus(sum, b->tables.at[b->of[v].list.at[i].table].least);
    return sum;
}

static bool visit(struct bound *b, int v, const struct known *best)
{
    int64_t rest = b->total - least_around(b, v);
    int parts = gather(b, v);
    int64_t kept = 0; /* of tables that keep their costs */
    for (int i = 0; i < b->of[v].list.n; i++)
        kept += b->gives[i] ? 0 : b->tables.at[b->of[v].list.at[i].table].least;
    if (best->value)
        drop_values(b, v, rest + kept, best);
    scatter(b, v, parts);
    b->least[v] = least_of(b->unary[v], b->p->size.at[v]);
    int64_t around = least_around(b, v);
    b->total = around >= COST_NEVER ? COST_NEVER : rest + around;
    return b->total < best->cost;
}

bool bound_sweep(struct bound *b, const struct known *best)
{
    b->forward = !b->forward;
    for (int k = 0; k < b->p->size.n; k++) {
        int v = b->forward ? k : b->p->size.n - 1 - k;
        if (b->of[v].list.n && !visit(b, v, best))
            return false;
    }
    return b->total < best->cost;
}

/* ---- prices ------------------------------------------------------------------------------------------------------------------- */

void bound_charge(struct bound *b, int v, const int64_t *more)
{
    for (int x = 0; x < b->p->size.at[v]; x++)
        b->unary[v][x] = is_never(b->unary[v][x]) ? COST_NEVER : b->unary[v][x] + more[x];
    b->total -= b->least[v];
    b->least[v] = least_of(b->unary[v], b->p->size.at[v]);
    b->total += b->least[v];
}

void bound_drop(struct bound *b, int v, int x)
{
    b->unary[v][x] = COST_NEVER;
    b->dropped++;
    b->total -= b->least[v];
    b->least[v] = least_of(b->unary[v], b->p->size.at[v]);
    b->total += b->least[v];
}

void bound_add(struct bound *b, int64_t constant)
{
    b->constant += constant;
    b->total += constant;
}

void bound_values(const struct bound *b, int v, int64_t *least)
{
    memcpy(least, b->unary[v], sizeof *least * (size_t)b->p->size.at[v]);
    for (int i = 0; i < b->of[v].list.n; i++) {
        struct incidence at = b->of[v].list.at[i];
        problem_least(b->p, &b->tables.at[at.table].t, at.position, b->share);
        for (int x = 0; x < b->p->size.at[v]; x++)
            least[x] = cost_plus(least[x], b->share[x]);
    }
}

/* Adds the least entry for each value of a variable, given the values of earlier ones. */
static void add_least(const struct bound *b, struct incidence at, int before, const int *value, int64_t *sum)
{
    const struct cost_table *t = &b->tables.at[at.table].t;
    struct table_layout l = problem_layout(b->p, t, at.position);
    if (t->nvar == 2) {
        int other = t->var[1 - at.position];
        for (int x = 0; x < l.size; x++) {
            const int64_t *cost = t->cost + (at.position ? x : (int64_t)x * l.inner);
            int64_t step = at.position ? l.size : 1, low = COST_NEVER;
            if (other < before)
                low = cost[value[other] * step];
            for (int64_t i = 0; other >= before && i < l.outer * l.inner; i++)
                low = cost[i * step] < low ? cost[i * step] : low;
            sum[x] = cost_plus(sum[x], low);
        }
        return;
    }
    for (int x = 0; x < l.size; x++) {
        int64_t low = COST_NEVER;
        for (int64_t o = 0; o < l.outer; o++)
            for (int64_t i = 0; i < l.inner; i++) {
                int64_t k = (o * l.size + x) * l.inner + i, rest = k;
                bool fits = t->cost[k] < low;
                for (int j = t->nvar - 1; fits && j >= 0; j--) {
                    int n = b->p->size.at[t->var[j]];
                    fits = t->var[j] >= before || j == at.position || rest % n == value[t->var[j]];
                    rest /= n;
                }
                low = fits ? t->cost[k] : low;
            }
        sum[x] = cost_plus(sum[x], low);
    }
}

void bound_decode(struct bound *b, int *value)
{
    for (int v = 0; v < b->p->size.n; v++) {
        int64_t *sum = b->share;
        memcpy(sum, b->unary[v], sizeof *sum * (size_t)b->p->size.at[v]);
        for (int i = 0; i < b->of[v].list.n; i++)
            add_least(b, b->of[v].list.at[i], v, value, sum);
        value[v] = 0;
        for (int x = 1; x < b->p->size.at[v]; x++)
            value[v] = sum[x] < sum[value[v]] ? x : value[v];
    }
}

/* ---- what it tells ------------------------------------------------------------------------------------------------------------ */

int64_t bound_total(const struct bound *b)
{
    return b->total;
}

double bound_effort(const struct bound *b)
{
    return b->effort;
}

int bound_dropped(const struct bound *b)
{
    return b->dropped;
}

int bound_variables(const struct bound *b)
{
    return b->p->size.n;
}

int bound_size(const struct bound *b, int v)
{
    return b->p->size.at[v];
}

bool bound_keeps(const struct bound *b, int v, int x)
{
    return !is_never(b->unary[v][x]);
}

/* Costs move between tables, but the bound is the sum of what is least in each. */
static void require_sum(const struct bound *b)
{
    int64_t sum = b->constant;
    for (int v = 0; v < b->p->size.n; v++)
        sum = cost_plus(sum, b->least[v]);
    for (int i = 0; i < b->tables.n; i++)
        sum = cost_plus(sum, b->tables.at[i].least);
    require(sum == b->total || is_never(sum) || is_never(b->total));
}

struct problem *bound_problem(const struct bound *b, struct arena *a)
{
    struct problem *p = problem_new(a);
    require_sum(b);
    *problem_table(p, 0, NULL) = b->constant;
    for (int v = 0; v < b->p->size.n; v++) {
        problem_variable(p, b->p->size.at[v]);
        memcpy(problem_unary(p, v), b->unary[v], sizeof(int64_t) * (size_t)b->p->size.at[v]);
    }
    for (int i = 0; i < b->tables.n; i++) {
        const struct bound_table *t = &b->tables.at[i];
        memcpy(problem_table(p, t->t.nvar, t->t.var), t->t.cost, sizeof(int64_t) * (size_t)t->entries);
    }
    return p;
}
