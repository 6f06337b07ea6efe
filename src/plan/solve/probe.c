/* probe: drops values that the bound alone does not: fixes a variable to one value at a time; if the bound then reaches the best cost, no
 * better assignment has the value. Known as shaving (Martin and Shmoys, "A new approach to computing optimal schedules", 1996). */
#include "plan/plan.h"
#include "plan/solve/solve.h"

enum { SWEEPS = 6 };

/* Whether no assignment with this value is better than the best. */
static bool is_refuted(const struct bound *b, int v, int x, const struct known *best, double *spent)
{
    struct arena *tmp = arena_new();
    struct problem *p = bound_problem(b, tmp);
    int64_t *others = problem_unary(p, v);
    for (int y = 0; y < p->size.at[v]; y++)
        others[y] = y == x ? 0 : COST_NEVER;
    struct bound *with = bound_new(p, tmp);
    bool open = true;
    for (int i = 0; with && open && i < SWEEPS; i++)
        open = bound_sweep(with, &(struct known){NULL, best->cost});
    *spent += with ? bound_effort(with) : 0;
    arena_free(tmp);
    return !open;
}

double probe_values(struct bound *b, const struct known *best, int *next, double most)
{
    double spent = 0;
    int n = bound_variables(b);
    require(best->value && *next >= 0 && *next <= n);
    for (int i = 0; i < n && spent <= most; i++) {
        int v = *next = (*next + 1) % n;
        for (int x = 0; x < bound_size(b, v) && spent <= most; x++)
            if (x != best->value[v] && bound_keeps(b, v, x) && is_refuted(b, v, x, best, &spent))
                bound_drop(b, v, x);
    }
    return spent;
}
