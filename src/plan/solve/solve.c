/* solve: the exact minimum by variable elimination.
 *
 * Every variable is eliminated once: the tables that mention it are summed, minimised over it, and replaced by one table over its
 * neighbours; the minimising value is remembered and read back in reverse order. Transformer graphs are narrow whatever their
 * depth, so the tables stay small when the variable with the smallest next table goes first. Variables with one value are left out
 * of every scope: a mask that all layers read costs no width. */
#include "plan/solve/solve.h"

#include "plan/plan.h"

#include <string.h>

struct problem *problem_new(struct arena *a)
{
    struct problem *p = NEW(a, struct problem);
    p->arena = a;
    return p;
}

int problem_variable(struct problem *p, int size)
{
    require(size > 0);
    VEC_PUSH(p->arena, &p->size, size);
    return p->size.n - 1;
}

int64_t *problem_table(struct problem *p, int nvar, const int *var)
{
    struct cost_table t = {.nvar = nvar, .var = NEWN(p->arena, int, nvar)};
    size_t entries = 1;
    for (int i = 0; i < nvar; i++) {
        t.var[i] = var[i];
        entries *= (size_t)p->size.at[var[i]];
    }
    t.cost = NEWN(p->arena, int64_t, entries);
    VEC_PUSH(p->arena, &p->tables, t);
    return t.cost;
}

int64_t *problem_unary(struct problem *p, int var)
{
    require(var >= 0 && var < p->size.n);
    return problem_table(p, 1, &var);
}

int64_t *problem_pair(struct problem *p, int first, int second)
{
    require(first != second && first >= 0 && second >= 0 && first < p->size.n && second < p->size.n);
    return problem_table(p, 2, (int[]){first, second});
}

static int64_t table_at(const struct problem *p, const struct cost_table *t, const int *value)
{
    int64_t at = 0;
    for (int i = 0; i < t->nvar; i++) {
        require(value[t->var[i]] >= 0 && value[t->var[i]] < p->size.at[t->var[i]]);
        at = at * p->size.at[t->var[i]] + value[t->var[i]];
    }
    return t->cost[at];
}

int64_t problem_cost(const struct problem *p, const int *value)
{
    int64_t sum = 0;
    for (int i = 0; i < p->tables.n; i++)
        sum = cost_plus(sum, table_at(p, &p->tables.at[i], value));
    return sum;
}

/* ---- elimination ----------------------------------------------------------------------------------------------------- */

#define MOST_EFFORT 1e9 /* sums, over all tables: some seconds; two layers of a transformer take a thousandth */

struct elimination_step {
    int var, nvar, *scope, *best;
}; /* best[assignment of scope] */
struct index_list {
    VEC(int) list;
}; /* tables of a variable, or its neighbours */
struct elimination {
    const struct problem *p;
    struct arena *arena;
    VEC(struct cost_table) tables;
    struct index_list *tables_of, *near; /* by variable */
    int64_t *weight;                     /* entries of the table its elimination makes */
    bool *done;
    VEC(struct elimination_step) steps;
    int64_t largest;
};

static bool list_has(const struct index_list *l, int x)
{
    for (int i = 0; i < l->list.n; i++)
        if (l->list.at[i] == x)
            return true;
    return false;
}

static void list_drop(struct index_list *l, int x)
{
    for (int i = 0; i < l->list.n; i++)
        if (l->list.at[i] == x) {
            memmove(l->list.at + i, l->list.at + i + 1, sizeof(int) * (size_t)(l->list.n - i - 1));
            l->list.n--;
            return;
        }
    bug("the solver's lists of neighbours and tables disagree");
}

static void link_variables(struct elimination *e, int a, int b)
{
    if (a == b || list_has(&e->near[a], b))
        return;
    VEC_PUSH(e->arena, &e->near[a].list, b);
    VEC_PUSH(e->arena, &e->near[b].list, a);
}

static void take_table(struct elimination *e, struct cost_table t)
{
    for (int i = 0; i < t.nvar; i++) {
        VEC_PUSH(e->arena, &e->tables_of[t.var[i]].list, e->tables.n);
        for (int j = 0; j < i; j++)
            link_variables(e, t.var[i], t.var[j]);
    }
    VEC_PUSH(e->arena, &e->tables, t);
}

/* The same table without the variables that have one value. */
static struct cost_table drop_fixed(struct elimination *e, const struct cost_table *t)
{
    struct cost_table out = {.var = NEWN(e->arena, int, t->nvar + 1), .cost = t->cost};
    for (int i = 0; i < t->nvar; i++)
        if (e->p->size.at[t->var[i]] > 1)
            out.var[out.nvar++] = t->var[i];
    return out;
}

static void weigh_variable(struct elimination *e, int var)
{
    int64_t w = 1;
    for (int i = 0; i < e->near[var].list.n && w < INT64_MAX / 4096; i++)
        w *= e->p->size.at[e->near[var].list.at[i]];
    e->weight[var] = w;
}

static int next_variable(const struct elimination *e)
{
    int best = -1;
    for (int v = 0; v < e->p->size.n; v++)
        if (!e->done[v] && (best < 0 || e->weight[v] < e->weight[best]))
            best = v;
    return best;
}

/* The position of an assignment of the scope in a table, step by step: strides of the scope's variables and of var in it. */
struct stride {
    const int64_t *cost;
    int64_t *scope, var;
};

static struct stride strides_of(struct elimination *e, const struct cost_table *t, const int *scope, int n, int var)
{
    struct stride s = {.cost = t->cost, .scope = NEWN(e->arena, int64_t, n + 1)};
    int64_t step = 1;
    for (int i = t->nvar - 1; i >= 0; i--) {
        if (t->var[i] == var)
            s.var = step;
        for (int j = 0; j < n; j++)
            if (scope[j] == t->var[i])
                s.scope[j] = step;
        step *= e->p->size.at[t->var[i]];
    }
    return s;
}

static void minimise(const struct problem *p, const struct stride *at, int ntable, const int64_t *base, int var, int64_t *cost, int *best)
{
    *cost = COST_NEVER;
    *best = 0;
    for (int x = 0; x < p->size.at[var]; x++) {
        int64_t sum = 0;
        for (int i = 0; i < ntable && sum < COST_NEVER; i++)
            sum = cost_plus(sum, at[i].cost[base[i] + x * at[i].var]);
        if (sum < *cost) {
            *cost = sum;
            *best = x;
        }
    }
}

static void fill_table(struct elimination *e, struct elimination_step *s, const struct stride *at, int ntable, int64_t entries,
                       int64_t *cost)
{
    int *digit = NEWN(e->arena, int, s->nvar + 1);
    int64_t *base = NEWN(e->arena, int64_t, ntable + 1);
    for (int64_t k = 0; k < entries; k++) {
        minimise(e->p, at, ntable, base, s->var, &cost[k], &s->best[k]);
        for (int j = s->nvar - 1; j >= 0; j--) { /* the next assignment, odometer-wise */
            bool carry = ++digit[j] == e->p->size.at[s->scope[j]];
            for (int i = 0; i < ntable; i++)
                base[i] += carry ? -(int64_t)(digit[j] - 1) * at[i].scope[j] : at[i].scope[j];
            if (!carry)
                break;
            digit[j] = 0;
        }
    }
}

static void unlink_variable(struct elimination *e, int var)
{
    for (int i = 0; i < e->near[var].list.n; i++)
        list_drop(&e->near[e->near[var].list.at[i]], var);
    e->done[var] = true;
}

static void retire_table(struct elimination *e, int table)
{
    const struct cost_table *t = &e->tables.at[table];
    for (int i = 0; i < t->nvar; i++)
        list_drop(&e->tables_of[t->var[i]], table);
}

static void reweigh_around(struct elimination *e, const struct elimination_step *s)
{
    for (int i = 0; i < s->nvar; i++)
        weigh_variable(e, s->scope[i]);
}

static void eliminate(struct elimination *e, int var)
{
    struct elimination_step s = {.var = var, .nvar = e->near[var].list.n};
    s.scope = NEWN(e->arena, int, s.nvar + 1);
    if (s.nvar)
        memcpy(s.scope, e->near[var].list.at, sizeof(int) * (size_t)s.nvar);
    int ntable = e->tables_of[var].list.n;
    require(!e->done[var] && e->weight[var] > 0);
    int *mine = NEWN(e->arena, int, ntable + 1);
    if (ntable)
        memcpy(mine, e->tables_of[var].list.at, sizeof(int) * (size_t)ntable);
    struct stride *at = NEWN(e->arena, struct stride, ntable + 1);
    for (int i = 0; i < ntable; i++)
        at[i] = strides_of(e, &e->tables.at[mine[i]], s.scope, s.nvar, var);
    int64_t entries = e->weight[var];
    s.best = NEWN(e->arena, int, entries);
    struct cost_table made = {.nvar = s.nvar, .var = s.scope, .cost = NEWN(e->arena, int64_t, entries)};
    fill_table(e, &s, at, ntable, entries, made.cost);
    if (entries > e->largest)
        e->largest = entries;
    for (int i = 0; i < ntable; i++)
        retire_table(e, mine[i]);
    unlink_variable(e, var);
    take_table(e, made);
    VEC_PUSH(e->arena, &e->steps, s);
    reweigh_around(e, &s);
}

/* ---- over the cap --------------------------------------------------------------------------------------------------------- */

static int64_t table_entries(const struct problem *p, const struct cost_table *t)
{
    int64_t n = 1;
    for (int i = 0; i < t->nvar; i++)
        n *= p->size.at[t->var[i]];
    return n;
}

/* To the sum of each value of var, the least of it in table t over all values of the others. */
static void add_least(struct elimination *e, const struct cost_table *t, int var, int64_t *sum)
{
    int size = e->p->size.at[var];
    int64_t step = strides_of(e, t, NULL, 0, var).var, *least = NEWN(e->arena, int64_t, size);
    for (int x = 0; x < size; x++)
        least[x] = COST_NEVER;
    for (int64_t k = 0, n = table_entries(e->p, t); k < n; k++)
        if (t->cost[k] < least[k / step % size])
            least[k / step % size] = t->cost[k];
    for (int x = 0; x < size; x++)
        sum[x] = cost_plus(sum[x], least[x]);
}

static int locally_best(struct elimination *e, int var)
{
    int64_t *sum = NEWN(e->arena, int64_t, e->p->size.at[var]);
    int best = 0;
    for (int i = 0; i < e->tables_of[var].list.n; i++)
        add_least(e, &e->tables.at[e->tables_of[var].list.at[i]], var, sum);
    for (int x = 1; x < e->p->size.at[var]; x++)
        if (sum[x] < sum[best])
            best = x;
    return best;
}

/* The table without var, which is x. */
static struct cost_table cut_table(struct elimination *e, const struct cost_table *t, int var, int x)
{
    int64_t step = strides_of(e, t, NULL, 0, var).var, n = table_entries(e->p, t), kept = 0;
    struct cost_table cut = {.var = NEWN(e->arena, int, t->nvar + 1), .cost = NEWN(e->arena, int64_t, n / e->p->size.at[var] + 1)};
    for (int i = 0; i < t->nvar; i++)
        if (t->var[i] != var)
            cut.var[cut.nvar++] = t->var[i];
    for (int64_t k = 0; k < n; k++)
        if (k / step % e->p->size.at[var] == x)
            cut.cost[kept++] = t->cost[k];
    return cut;
}

static void fix(struct elimination *e, int var, int value)
{
    struct elimination_step fixed = {.var = var, .best = NEWN(e->arena, int, 1)};
    struct elimination_step around = {.nvar = e->near[var].list.n, .scope = NEWN(e->arena, int, e->near[var].list.n + 1)};
    fixed.best[0] = value;
    for (int i = 0; i < e->tables_of[var].list.n; i++) {
        struct cost_table *t = &e->tables.at[e->tables_of[var].list.at[i]];
        *t = cut_table(e, t, var, fixed.best[0]);
    }
    VEC_PUSH(e->arena, &e->steps, fixed);
    if (around.nvar)
        memcpy(around.scope, e->near[var].list.at, sizeof(int) * (size_t)around.nvar);
    unlink_variable(e, var);
    reweigh_around(e, &around);
}

/* ---- all variables ---------------------------------------------------------------------------------------------------------------- */

static void elimination_start(struct elimination *e)
{
    int n = e->p->size.n;
    e->tables_of = NEWN(e->arena, struct index_list, n + 1);
    e->near = NEWN(e->arena, struct index_list, n + 1);
    e->weight = NEWN(e->arena, int64_t, n + 1);
    e->done = NEWN(e->arena, bool, n + 1);
    for (int i = 0; i < e->p->tables.n; i++)
        take_table(e, drop_fixed(e, &e->p->tables.at[i]));
    for (int v = 0; v < n; v++) {
        e->done[v] = e->p->size.at[v] == 1;
        weigh_variable(e, v);
    }
}

static void read_back(const struct elimination *e, int *value)
{
    for (int i = e->steps.n - 1; i >= 0; i--) {
        const struct elimination_step *s = &e->steps.at[i];
        int64_t at = 0;
        for (int j = 0; j < s->nvar; j++)
            at = at * e->p->size.at[s->scope[j]] + value[s->scope[j]];
        value[s->var] = s->best[at];
        require(value[s->var] >= 0 && value[s->var] < e->p->size.at[s->var]);
    }
}

/* Sums to form when var is eliminated. */
static double effort(const struct elimination *e, int var)
{
    return (double)e->weight[var] * e->p->size.at[var] * (e->tables_of[var].list.n + 1);
}

/* instead: what variables over the cap are fixed to; NULL: to their locally best values. */
static struct solution solve_within(const struct problem *p, int64_t cap, const int *instead)
{
    double spent = 0;
    struct arena *scratch = arena_new();
    struct elimination e = {.p = p, .arena = scratch};
    struct solution out = {.value = NEWN(p->arena, int, p->size.n + 1), .proven = true};
    elimination_start(&e);
    for (int v; (v = next_variable(&e)) >= 0;) {
        if (e.weight[v] > cap || spent + effort(&e, v) > MOST_EFFORT) {
            fix(&e, v, instead ? instead[v] : locally_best(&e, v));
            out.proven = false;
        } else {
            spent += effort(&e, v);
            eliminate(&e, v);
        }
    }
    read_back(&e, out.value);
    out.cost = problem_cost(p, out.value);
    out.largest_table = e.largest;
    require(out.cost >= 0 && out.cost <= COST_NEVER && e.largest <= cap);
    arena_free(scratch);
    return out;
}

struct solution solve_exact(const struct problem *p, int64_t cap, const int *otherwise)
{
    struct solution out = solve_within(p, cap, NULL);
    return out.cost < COST_NEVER || out.proven || !otherwise ? out : solve_within(p, cap, otherwise);
}

/* ---- for tests ---------------------------------------------------------------------------------------------------- */

struct solution solve_brute(const struct problem *p)
{
    struct solution out = {.value = NEWN(p->arena, int, p->size.n + 1), .cost = COST_NEVER, .proven = true};
    int *value = NEWN(p->arena, int, p->size.n + 1);
    for (;;) {
        int64_t cost = problem_cost(p, value);
        if (cost < out.cost) {
            out.cost = cost;
            memcpy(out.value, value, sizeof(int) * (size_t)p->size.n);
        }
        int v = p->size.n - 1;
        while (v >= 0 && ++value[v] == p->size.at[v])
            value[v--] = 0;
        if (v < 0)
            return out;
    }
}
