/* problem: a sum of tables over discrete variables. */
#include "plan/solve/solve.h"

#include <string.h>

enum { MOST_SCOPE = 64 }; /* variables of more than one value that a table can have: it has 2^64 entries */

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
    for (int64_t o = 0; o < l.outer; o++)
        for (int x = 0; x < l.size; x++, cost += l.inner)
            for (int64_t i = 0; i < l.inner; i++)
                least[x] = cost[i] < least[x] ? cost[i] : least[x];
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

/* The entries of a table at the kept values of its variables. */
static void copy_kept(const struct problem *p, const struct cost_table *t, int *const *kept, const int *count, int64_t *out)
{
    int digit[MOST_SCOPE] = {0};
    require(t->nvar <= MOST_SCOPE);
    for (;;) {
        int64_t at = 0;
        for (int i = 0; i < t->nvar; i++)
            at = at * p->size.at[t->var[i]] + kept[t->var[i]][digit[i]];
        *out++ = t->cost[at];
        int v = t->nvar - 1;
        while (v >= 0 && ++digit[v] == count[t->var[v]])
            digit[v--] = 0;
        if (v < 0)
            return;
    }
}

struct problem *problem_restrict(const struct problem *p, struct arena *a, const int *count, int *const *kept)
{
    struct problem *out = problem_new(a);
    for (int v = 0; v < p->size.n; v++)
        problem_variable(out, count[v]);
    for (int i = 0; i < p->tables.n; i++) {
        const struct cost_table *t = &p->tables.at[i];
        copy_kept(p, t, kept, count, problem_table(out, t->nvar, t->var));
    }
    return out;
}

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
