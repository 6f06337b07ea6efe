/* solve: the exact minimum of a sum of tables over discrete variables, which knows nothing of graphs, and the choice as such a sum. */
#ifndef TPC_SOLVE_H
#define TPC_SOLVE_H

#include "plan/space/space.h"

/* ---- problem.c ------------------------------------------------------------------------------------------------------- */
struct cost_table {
    int nvar;
    int *var;
    int64_t *cost;
}; /* row-major: the last variable varies fastest */
struct problem {
    struct arena *arena;
    VEC(int) size; /* values of each variable */
    VEC(struct cost_table) tables;
};
struct problem *problem_new(struct arena *);
int problem_variable(struct problem *, int size);
/* A table of one or two variables, all 0; fill cost[a] or cost[a * size(second) + b]. */
int64_t *problem_unary(struct problem *, int var);
int64_t *problem_pair(struct problem *, int first, int second);
/* Of several, all different. */
int64_t *problem_table(struct problem *, int nvar, const int *var);
int64_t problem_entries(const struct problem *, const struct cost_table *);
int64_t problem_cost(const struct problem *, const int *value);
/* A table around the variable at a position: outer * size * inner entries. Its least entry for each value. */
struct table_layout {
    int64_t outer, inner;
    int size;
};
struct table_layout problem_layout(const struct problem *, const struct cost_table *, int position);
void problem_least(const struct problem *, const struct cost_table *, int position, int64_t *least);
/* The same problem with only the kept values of each variable. */
struct problem *problem_restrict(const struct problem *, struct arena *, const int *count, int *const *kept);

/* ---- solve.c --------------------------------------------------------------------------------------------------------- */
struct solution {
    int *value;
    int64_t cost, bound; /* no assignment costs less than the bound */
    bool proven;         /* nor less than this one */
    int64_t largest_table;
};
/* How much work may be spent: entries of a table; sums, over all. */
struct solve_limits {
    int64_t table;
    double effort;
};
extern const struct solve_limits solve_default;
/* The minimum, if limits allow, else an assignment and a bound. otherwise: an assignment to start from; NULL: none is known. cost is
 * COST_NEVER when none is found. */
struct solution solve_exact(const struct problem *, struct solve_limits, const int *otherwise);
/* All combinations; for tests. */
struct solution solve_brute(const struct problem *);

/* ---- elimination.c: one variable after another, each by the minimum over its values ------------------------------------- */
struct elimination *elimination_new(const struct problem *, struct arena *);
/* Eliminates while the next table has at most this many entries, and all together take at most this many sums; true: nothing is left.
 */
bool elimination_run(struct elimination *, int64_t most_entries, double effort);
/* The sums that the rest would take; more than most, or than most_entries in a table: some number above most. */
double elimination_effort(const struct elimination *, int64_t most_entries, double most);
double elimination_spent(const struct elimination *);
int64_t elimination_largest(const struct elimination *);
/* The variable that is next, and the entries of the table that this makes; -1: none is left. */
int elimination_next(struct elimination *, int64_t *entries);
/* Among those that would make the largest tables; another one for every seed but 0. */
int elimination_widest(const struct elimination *, uint64_t seed);
int elimination_locally_best(struct elimination *, int var);
void elimination_fix(struct elimination *, int var, int value);
/* From now on finds values that can't be any more at once, so that no variable is fixed to one; it overwrites the problem's tables. */
void elimination_forbid_early(struct elimination *);
/* What is left, of the same variables: those that are eliminated have one value. */
struct problem *elimination_rest(struct elimination *, struct arena *);
/* Extends the values of the variables that are left to all variables. */
void elimination_read_back(const struct elimination *, int *value);

/* ---- bound.c ------------------------------------------------------------------------------------------------------------ */
/* NULL: costs are too large to add up. */
struct bound *bound_new(const struct problem *, struct arena *);
/* The best assignment that is known; value NULL: none is, and the cost is COST_NEVER. */
struct known {
    int *value;
    int64_t cost;
};
/* One more sweep over the variables. Values that nothing better than what is known has are dropped. False: nothing is better. */
bool bound_sweep(struct bound *, const struct known *);
int bound_dropped(const struct bound *);
int64_t bound_total(const struct bound *);
double bound_effort(const struct bound *);
bool bound_keeps(const struct bound *, int var, int value);
/* The problem with its costs as they have been moved: they tell more about a table alone. */
struct problem *bound_problem(const struct bound *, struct arena *);

/* ---- encode.c, edge_tables.c, joint_table.c: how values link the variables of the choice ---------------------------- */
struct endpoint {
    int var;
    int n;
    struct placement *at;
}; /* a variable and the placement each of its values means for a value */
struct relaxed_value {
    const struct value *v;
    int var;
    const int64_t *cost;
}; /* a value of which too many placements may be read to list all sets of them, its variable and what the problem asks for it */
struct choice_problem {
    struct space *s;
    struct arena *arena;
    struct problem *p;
    int *node_var;                  /* by node position */
    struct endpoint *source, *sink; /* by value id: inputs, constants; by output number */
    struct endpoint *read_place;    /* by value id: the placements that requirements leave before it is read; .at NULL: none is required */
    VEC(int) replicated;            /* by variable: its value in the replicated plan; 0 if constraints rule that out */
    VEC(struct relaxed_value) relaxed;
    bool complete; /* no set was left out */
};

/* A new variable of n values. */
int solve_variable(struct choice_problem *, int n, int replicated);
/* How the producer of a value, or its end of the graph, leaves it. */
struct endpoint edge_source(struct choice_problem *, const struct value *);
/* The tables between a value's producer and its readers. */
void edge_tables_make(struct choice_problem *, const struct value *);
/* What the reshards of a value cost under an assignment. */
int64_t edge_reshards(struct choice_problem *, const struct value *, const int *value);
/* The same as one table over the producer and all readers; false: they are too many, or it would have more than this many entries. */
bool joint_table_make(struct choice_problem *, const struct value *, const struct endpoint *from, const struct endpoint *reader, int n,
                      int64_t most);

/* whole_kernels.c: by kernel that runs as a whole or not at all, whether strategies leave both; where all of them reshard inside, it is
 * apart. Before the variables of nodes. */
bool *whole_kernels_open(struct space *, struct arena *);
/* A variable of each that is open, and its tables. After the variables of nodes. */
void whole_kernels_make(struct choice_problem *, const bool *open);

struct choice_problem encode_space(struct space *, struct arena *);
/* If the problem underestimated some reshards, the solution has their real cost. */
struct solution encode_solve(struct choice_problem *);
/* Strategies of nodes and placements of values from values of the variables. */
void encode_place_values(struct choice_problem *, const int *value);
/* Weights and state at their chosen places: what their memory costs by the plan's price, and their bytes. */
struct resident {
    int64_t memory;
    double bytes;
};
struct resident encode_resident(const struct choice_problem *, const int *value);
/* The cost of the best plan under what may be chosen now, and its placements; COST_NEVER and no placements where there is none. */
int64_t solve_space(struct space *);

/* greedy.c: leaves every node one strategy, the one of the first assignment that fits: a baseline. */
void greedy_assign(struct space *);

#endif
