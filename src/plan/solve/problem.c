/* problem: a sum of tables over discrete variables. */
#include "plan/solve/solve.h"

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
        require(var[i] >= 0 && var[i] < p->size.n);
        t.var[i] = var[i];
        entries *= (size_t)p->size.at[var[i]];
    }
    t.cost = NEWN(p->arena, int64_t, entries);
    VEC_PUSH(p->arena, &p->tables, t);
    return t.cost;
}

int64_t *problem_unary(struct problem *p, int var)
{
    return problem_table(p, 1, &var);
}

int64_t *problem_pair(struct problem *p, int first, int second)
{
    require(first != second);
    return problem_table(p, 2, (int[]){first, second});
}

int64_t problem_entries(const struct problem *p, const struct cost_table *t)
{
    int64_t n = 1;
    for (int i = 0; i < t->nvar; i++)
        n *= p->size.at[t->var[i]];
    return n;
}

struct table_layout problem_layout(const struct problem *p, const struct cost_table *t, int position)
{
    struct table_layout l = {1, 1, p->size.at[t->var[position]]};
    for (int i = 0; i < t->nvar; i++)
        *(i < position ? &l.outer : &l.inner) *= i == position ? 1 : p->size.at[t->var[i]];
    return l;
}

void problem_least(const struct problem *p, const struct cost_table *t, int position, int64_t *least)
{
    struct table_layout l = problem_layout(p, t, position);
    const int64_t *cost = t->cost;
    for (int x = 0; x < l.size; x++)
        least[x] = COST_NEVER;
    for (int64_t o = 0; l.inner == 1 && o < l.outer; o++, cost += l.size)
        for (int x = 0; x < l.size; x++)
            least[x] = cost[x] < least[x] ? cost[x] : least[x];
    for (int64_t o = 0; l.inner > 1 && o < l.outer; o++)
        for (int x = 0; x < l.size; x++, cost += l.inner) {
            int64_t low = least[x];
            for (int64_t i = 0; i < l.inner; i++)
                low = cost[i] < low ? cost[i] : low;
            least[x] = low;
        }
}

int64_t problem_entry(const struct problem *p, const struct cost_table *t, const int *value)
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
        sum = cost_plus(sum, problem_entry(p, &p->tables.at[i], value));
    return sum;
}

int64_t problem_magnitude(const struct problem *p)
{
    int64_t sum = 0;
    for (int i = 0; i < p->tables.n; i++) {
        int64_t most = 0;
        for (int64_t k = 0, n = problem_entries(p, &p->tables.at[i]); k < n; k++) {
            int64_t cost = p->tables.at[i].cost[k] < 0 ? -p->tables.at[i].cost[k] : p->tables.at[i].cost[k];
            most = cost < COST_NEVER && cost > most ? cost : most;
        }
        sum = cost_plus(sum, most);
    }
    return sum;
}

struct problem_index problem_index(const struct problem *p, struct arena *a)
{
    int n = p->size.n;
    struct problem_index of = {NEWN(a, struct index_list, n + 1), NEWN(a, struct index_list, n + 1)};
    for (int i = 0; i < p->tables.n; i++)
        for (int k = 0; k < p->tables.at[i].nvar; k++)
            VEC_PUSH(a, &of.tables[p->tables.at[i].var[k]].list, i);
    for (int i = 0; i < p->takes.n; i++)
        VEC_PUSH(a, &of.takes[p->takes.at[i].var].list, i);
    return of;
}

/* ---- limits ------------------------------------------------------------------------------------------------------------------ */

int64_t *problem_limits(struct problem *p, int points)
{
    require(points >= 0 && !p->points);
    p->points = points;
    return p->limit = NEWN(p->arena, int64_t, points + 1);
}

int64_t *problem_take(struct problem *p, int var, int from, int to)
{
    require(var >= 0 && var < p->size.n && from >= 0 && from < to && to <= p->points);
    struct take t = {var, from, to, NEWN(p->arena, int64_t, p->size.at[var])};
    VEC_PUSH(p->arena, &p->takes, t);
    return t.amount;
}

void problem_copy_limits(const struct problem *p, struct problem *to)
{
    require(p->size.n == to->size.n); /* takes name variables by number */
    if (p->points)
        memcpy(problem_limits(to, p->points), p->limit, sizeof *p->limit * (size_t)p->points);
    for (int i = 0; i < p->takes.n; i++) {
        const struct take *t = &p->takes.at[i];
        memcpy(problem_take(to, t->var, t->from, t->to), t->amount, sizeof *t->amount * (size_t)p->size.at[t->var]);
    }
}

void problem_taken(const struct problem *p, const int *value, int64_t *taken)
{
    memset(taken, 0, sizeof *taken * ((size_t)p->points + 1));
    for (int i = 0; i < p->takes.n; i++) {
        const struct take *t = &p->takes.at[i];
        taken[t->from] += t->amount[value[t->var]];
        taken[t->to] -= t->amount[value[t->var]];
    }
    for (int i = 1; i <= p->points; i++)
        taken[i] += taken[i - 1];
    require(taken[p->points] == 0); /* all is given back at the end */
}

bool problem_fits(const struct problem *p, const int *value)
{
    struct arena *tmp = arena_new();
    int64_t *taken = NEWN(tmp, int64_t, p->points + 1);
    bool fits = true;
    problem_taken(p, value, taken);
    for (int i = 0; i < p->points; i++)
        fits = fits && taken[i] <= p->limit[i];
    arena_free(tmp);
    return fits;
}

struct solution solve_brute(const struct problem *p)
{
    struct solution out = {.value = NEWN(p->arena, int, p->size.n + 1), .cost = COST_NEVER, .proven = true};
    int *value = NEWN(p->arena, int, p->size.n + 1);
    for (;;) {
        int64_t cost = problem_cost(p, value);
        if (cost < out.cost && problem_fits(p, value)) {
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
