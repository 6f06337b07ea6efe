/* solve: the exact minimum of a sum of tables over discrete variables. Knows nothing of graphs. */
#ifndef TPC_SOLVE_H
#define TPC_SOLVE_H

#include "base/base.h"

#define COST_NEVER (INT64_MAX / 4) /* a combination that is not allowed */

struct table {
    int nvar;
    int *var;
    int64_t *cost;
}; /* row-major: the last variable varies fastest */
struct problem {
    struct arena *arena;
    VEC(int) size; /* values of each variable */
    VEC(struct table) tables;
};
struct solution {
    int *value;
    int64_t cost;
    bool proven;
    int64_t largest_table;
};

struct problem *problem_new(struct arena *);
int problem_variable(struct problem *, int size);
/* A table of one or two variables, all 0; fill cost[a] or cost[a * size(second) + b]. */
int64_t *problem_unary(struct problem *, int var);
int64_t *problem_pair(struct problem *, int first, int second);

/* Variable elimination (Bertele and Brioschi, "Nonserial Dynamic Programming", 1972), smallest next table first. A variable whose
 * elimination would make a table of more than cap entries is fixed to its locally best value, and the solution is not proven. Where such
 * values don't go together, the variables are fixed to those of otherwise, an assignment; NULL: there is none. cost is COST_NEVER when
 * nothing is allowed. */
struct solution solve_exact(const struct problem *, int64_t cap, const int *otherwise);
/* All combinations; for tests. */
struct solution solve_brute(const struct problem *);
int64_t problem_cost(const struct problem *, const int *value);

#endif
