/* solve: the exact minimum of a sum of tables over discrete variables, which knows nothing of graphs, and the choice as such a sum. */
#ifndef TPC_SOLVE_H
#define TPC_SOLVE_H

#include "plan/space/space.h"

/* ---- solve.c --------------------------------------------------------------------------------------------------------- */
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
/* Of several, all different. */
int64_t *problem_table(struct problem *, int nvar, const int *var);

/* Variable elimination (Bertele and Brioschi, "Nonserial Dynamic Programming", 1972), smallest next table first. A variable whose
 * elimination would make a table of more than cap entries is fixed to its locally best value, and the solution is not proven. Where such
 * values don't go together, the variables are fixed to those of otherwise, an assignment; NULL: there is none. cost is COST_NEVER when
 * nothing is allowed. */
struct solution solve_exact(const struct problem *, int64_t cap, const int *otherwise);
/* All combinations; for tests. */
struct solution solve_brute(const struct problem *);
int64_t problem_cost(const struct problem *, const int *value);

/* ---- encode.c, edge_tables.c, joint_table.c: how variables of the choice hang together through the values ---------------------------- */
struct endpoint {
    int var;
    int n;
    struct placement *at;
}; /* a variable and the placement each of its values means for a value */
struct choice_problem {
    struct space *s;
    struct arena *arena;
    struct problem *p;
    int *node_var;                  /* by node position */
    struct endpoint *source, *sink; /* by value id: inputs, constants; by output number */
    struct endpoint *read_place;    /* by value id: the placements that requirements leave before it is read; .at NULL: none is required */
    int *value_var;                 /* by value id, -1 none */
    VEC(int) replicated;            /* by variable: its value in the replicated plan; 0 if constraints rule that out */
    bool complete;                  /* no subset was left out */
};

/* A new variable of n values. */
int solve_variable(struct choice_problem *, int n, int replicated);
/* How the producer of a value, or its end of the graph, leaves it. */
struct endpoint edge_source(struct choice_problem *, const struct value *);
/* The tables between a value's producer and its readers. */
void edge_tables_make(struct choice_problem *, const struct value *);
/* The same as one table over the producer and all readers; false: they are too many, or it would have more than so many entries. */
bool joint_table_make(struct choice_problem *, const struct value *, const struct endpoint *from, const struct endpoint *reader, int n,
                      int64_t most);

struct choice_problem encode_space(struct space *, struct arena *);
struct solution encode_solve(const struct choice_problem *);
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

/* greedy.c: leaves every node one strategy, that of the first assignment that fits: a baseline. */
void greedy_assign(struct space *);

#endif
