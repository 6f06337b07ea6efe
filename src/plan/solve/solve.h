/* solve: the exact minimum of a sum of tables over discrete variables, independent of graphs; and the choice of a plan as such a sum. */
#ifndef TPC_SOLVE_H
#define TPC_SOLVE_H

#include "plan/plan.h"
#include "plan/space/space.h"

/* ---- problem.c ------------------------------------------------------------------------------------------------------- */
struct cost_table {
    int nvar;
    int *var;
    int64_t *cost;
}; /* row-major: the last variable varies fastest */
/* A variable's use of each point from..to-1, by its value. */
struct take {
    int var, from, to;
    int64_t *amount;
};
struct problem {
    struct arena *arena;
    VEC(int) size; /* values of each variable */
    VEC(struct cost_table) tables;
    int points; /* moments, such as nodes that run; at none may the total taken exceed the limit */
    int64_t *limit;
    VEC(struct take) takes;
};
struct problem *problem_new(struct arena *);
int problem_variable(struct problem *, int size);
/* A new table of one or two variables, all 0; fill cost[a] or cost[a * size(second) + b]. */
int64_t *problem_unary(struct problem *, int var);
int64_t *problem_pair(struct problem *, int first, int second);
/* Limits of all points, to fill in; amounts of a variable during some of them, at least 0. Before and after problem_limits. */
int64_t *problem_limits(struct problem *, int points);
int64_t *problem_take(struct problem *, int var, int from, int to);
void problem_copy_limits(const struct problem *, struct problem *to);
/* The total use of each point; returns whether it is within all limits. */
void problem_taken(const struct problem *, const int *value, int64_t *taken);
bool problem_fits(const struct problem *, const int *value);
/* A new table of several different variables. */
int64_t *problem_table(struct problem *, int nvar, const int *var);
int64_t problem_entries(const struct problem *, const struct cost_table *);
int64_t problem_cost(const struct problem *, const int *value);
/* The sum of the largest finite entry of each table, by absolute value: no assignment costs more. */
int64_t problem_magnitude(const struct problem *);
/* By variable: its tables, and its takes. */
struct index_list {
    VEC(int) list;
};
struct problem_index {
    struct index_list *tables, *takes;
};
struct problem_index problem_index(const struct problem *, struct arena *);
/* A table around the variable at a position: outer * size * inner entries. The least entry for each value. */
struct table_layout {
    int64_t outer, inner;
    int size;
};
struct table_layout problem_layout(const struct problem *, const struct cost_table *, int position);
void problem_least(const struct problem *, const struct cost_table *, int position, int64_t *least);
int64_t problem_entry(const struct problem *, const struct cost_table *, const int *value);

/* ---- points.c: fewer points of the same limits ----------------------------------------------------------------------------- */
/* By old point: the new point with the equivalent limit; -1: none. */
int *points_reduce(struct problem *, struct arena *);

/* ---- reduce.c --------------------------------------------------------------------------------------------------------------- */
struct bound;
/* A smaller problem. var, value: by variable: its new variable, -1: fixed; its value for each value of that. root, into: by new variable:
 * an old one that it stands for; the new values of the old ones, -1: removed. */
struct reduced {
    struct problem *p;
    int *var, **value;
    VEC(int) root;
    int **into, *point;     /* by old point, as in points_reduce */
    bool possible, changed; /* possible: every variable has a value left */
};
/* Removes values that the bound dropped; multiplies costs by scale. by_pairs: merges variables; else removes dominated values. Unchanged
 * tables are the problem's: read-only. */
struct reduced reduce(const struct problem *, struct arena *, const struct bound *, int64_t scale, bool by_pairs);

/* ---- solve.c --------------------------------------------------------------------------------------------------------- */
struct solution {
    int *value;
    int64_t cost, bound; /* no assignment costs less than the bound */
    bool proven;         /* nor less than this one */
    bool narrow;         /* elimination alone found it */
    int64_t largest_table;
};
/* Limits of the work: entries of a table; sums in total. */
struct solve_limits {
    int64_t table;
    double effort;
    bool (*enough)(void); /* NULL: only effort counts */
};
extern const struct solve_limits solve_default;
/* The minimum if limits allow, else an assignment and a bound. otherwise: an assignment to start from; NULL: none. cost is COST_NEVER if
 * none is found. */
struct solution solve_exact(const struct problem *, struct solve_limits, const int *otherwise);
/* Tries all combinations; for tests. */
struct solution solve_brute(const struct problem *);

/* ---- elimination.c: one variable after another, each by the minimum over its values ------------------------------------- */
struct elimination *elimination_new(const struct problem *, struct arena *);
/* Eliminates while the next table has at most this many entries and the total is at most this many sums; true: nothing is left. */
bool elimination_run(struct elimination *, int64_t most_entries, double effort);
/* The number of sums for the rest; some number above `most` if it exceeds `most`, or a table exceeds most_entries. */
double elimination_effort(const struct elimination *, int64_t most_entries, double most);
double elimination_spent(const struct elimination *);
int64_t elimination_largest(const struct elimination *);
/* The next variable, and the entries of its table; -1: none. */
int elimination_next(struct elimination *, int64_t *entries);
/* One of the variables with the largest tables; each nonzero seed gives another. */
int elimination_widest(struct elimination *, uint64_t seed);
int elimination_locally_best(struct elimination *, int var);
void elimination_fix(struct elimination *, int var, int value);
/* From now on, removes impossible values at once, so that no variable is fixed to one; overwrites the problem's tables. */
void elimination_forbid_early(struct elimination *);
/* The rest, over the same variables; eliminated ones have one value. Its tables may be the problem's: read-only. */
struct problem *elimination_rest(struct elimination *, struct arena *);
/* Extends the values of the remaining variables to all variables. */
void elimination_read_back(const struct elimination *, int *value);

/* ---- bound.c ------------------------------------------------------------------------------------------------------------ */
/* NULL: costs are too large to add up. */
struct bound *bound_new(const struct problem *, struct arena *);
/* The best known assignment; value NULL: none, and the cost is COST_NEVER. */
struct known {
    int *value;
    int64_t cost;
};
/* One more sweep over the variables. Drops values that no better assignment has. False: no assignment is better. */
bool bound_sweep(struct bound *, const struct known *);
int bound_dropped(const struct bound *);
/* The least cost of all assignments with each value, up to a constant. */
void bound_values(const struct bound *, int var, int64_t *least);
/* Adds to the costs of a variable's values, and to the total. */
void bound_charge(struct bound *, int var, const int64_t *more);
void bound_add(struct bound *, int64_t constant);
/* Decodes a good assignment from the moved costs, variable by variable. */
void bound_decode(struct bound *, int *value);
int64_t bound_total(const struct bound *);
double bound_effort(const struct bound *);
bool bound_keeps(const struct bound *, int var, int value);
void bound_drop(struct bound *, int var, int value);
int bound_variables(const struct bound *);
int bound_size(const struct bound *, int var);
/* The problem with its moved costs: single tables tell more. */
struct problem *bound_problem(const struct bound *, struct arena *);

/* ---- slow.c ----------------------------------------------------------------------------------------------------------------- */
/* By variable and value: whether the bound shows that no assignment with it costs less than known->cost. known->value is such an
 * assignment. */
bool **slow_values(const struct problem *, struct arena *, const struct known *);

/* ---- probe.c: values that are dropped by trying them ------------------------------------------------------------------------ */
/* Tries the variables after *next, until all have been tried or `most` is spent; returns the effort spent. A best assignment must exist. */
double probe_values(struct bound *, const struct known *best, int *next, double most);

/* ---- prices.c: what a point's limit is worth ------------------------------------------------------------------------------- */
/* NULL: there are no limits. first: initial prices, goal: the most that they may be worth; NULL: none. */
struct prices *prices_new(const struct problem *, struct arena *, const double *first, double goal);
/* Takes back all charges. */
void prices_release(struct prices *, struct bound *);
/* Whether prices hardly move any more. Larger steps again, if so. */
bool prices_settled(const struct prices *);
void prices_resume(struct prices *);
/* Charges the bound for what values take at these prices, minus the worth of the limits. */
void prices_charge(struct prices *, struct bound *);
/* Moves the prices by what an assignment takes, to raise the bound towards the goal. */
void prices_move(struct prices *, const int *value, double bound, double goal);
/* By point. */
const double *prices_now(const struct prices *);

/* ---- around.c: better assignments, by solving a part exactly while the rest stays ---------------------------------------------- */
struct around *around_new(const struct problem *, struct arena *, const struct bound *, const int *value, uint64_t seed);
/* Makes this many proposals at these prices, starting from the best. Accepts proposals that cost more by a decreasing amount. whole: some
 * parts are as large as possible. Stops once the search has spent `most`. */
void around_search(struct around *, const double *price, int proposals, int64_t most_entries, double room, bool whole, double most);
double around_effort(const struct around *);
const int *around_value(const struct around *);
int64_t around_cost(const struct around *);
/* The total taken above the limits. */
double around_excess(const struct around *);

/* ---- encode.c, edge_tables.c, joint_table.c: how values link the variables of the choice ---------------------------- */
struct endpoint {
    int var;
    int n;
    struct placement *at;
}; /* a variable, and the placement of a value for each of the variable's values */
struct relaxed_value {
    const struct value *v;
    int var;
    const int64_t *cost;
}; /* a value with a variable for the set of its placements, and what a set costs in the problem: too little if there are too many to list
    * them all, or if the set has a placement that nothing reads, by way of which others cost less */
struct choice_problem {
    struct space *s;
    struct arena *arena;
    struct problem *p;
    int *node_var;                  /* by node position */
    struct endpoint *source, *sink; /* by value id: inputs, constants; by output number */
    struct endpoint *read_place;    /* by value id: the placements that requirements leave before it is read; .at NULL: no requirement */
    VEC(int) replicated;            /* by variable: its value in the replicated plan; 0 if constraints exclude that */
    VEC(struct relaxed_value) relaxed;
    const int *known; /* values of a good plan to start from; NULL: use the replicated one */
    bool complete;    /* no set of placements was left out */
};

/* A new variable of n values. */
int solve_variable(struct choice_problem *, int n, int replicated);
/* How the producer of a value, or the graph input, leaves it. */
struct endpoint edge_source(struct choice_problem *, const struct value *);
/* How a node, or the caller for a graph output, reads a value. */
struct endpoint edge_reader(struct choice_problem *, struct place_use);
/* Makes the tables between a value's producer and its readers. */
void edge_tables_make(struct choice_problem *, const struct value *);
/* The cost of a value's reshards under an assignment. */
int64_t edge_reshards(struct choice_problem *, const struct value *, const int *value);
/* The same as one table over the producer and all readers; false: too many readers, or more than this many entries. */
bool joint_table_make(struct choice_problem *, const struct value *, const struct endpoint *from, const struct endpoint *reader, int n,
                      int64_t most);

/* room.c: limits of the problem over time: no rank holds more than plan->room allows, by a lower bound of its memory. After all variables.
 * room_knows: whether plan->room refers to this problem. room_note: notes the choice in the plan. */
void room_limit(struct choice_problem *);
bool room_knows(const struct choice_problem *);
void room_note(const struct choice_problem *, const int *value);

/* within.c: finds the best plan that fits, starting from one that is known to fit. An attempt: a plan, with these limits over time if
 * `within`; its cost and bound in picoseconds over all workloads, its fullest rank's bytes, and room.c's count of them. plan: makes an
 * attempt. *bound: no plan that fits costs less, before and after. */
struct attempt {
    struct plan_room room;
    double objective, least, combinations;
    int64_t total, counted;
    bool within;
    const int *values;
};
struct within_search {
    struct arena *arena;
    int64_t limit;
    struct attempt (*plan)(void *data, const struct plan_room *);
    void *data;
};
struct attempt within_attempt(struct arena *, const struct plan *, int64_t total);
struct attempt within_limit(const struct within_search *, const struct attempt *known, double *bound);

/* whole_kernels.c: by kernel that runs whole or not at all: whether strategies allow both; if all of them reshard inside it, it is apart.
 * Before the variables of nodes. */
bool *whole_kernels_open(struct space *, struct arena *);
/* Adds a variable for each open kernel, and its tables. After the variables of nodes. */
void whole_kernels_make(struct choice_problem *, const bool *open);

struct choice_problem encode_space(struct space *, struct arena *);
/* If the problem underestimates some reshards, the solution has their real cost. */
struct solution encode_solve(struct choice_problem *);
/* Strategies of nodes and placements of values from the variables' values. */
void encode_place_values(struct choice_problem *, const int *value);
/* Weights and state at their chosen placements: the cost of their memory at the plan's prices, and their bytes. */
struct resident {
    int64_t memory, nearness;
    double bytes;
};
struct resident encode_resident(const struct choice_problem *, const int *value);
/* The cost of the best plan under the current choices, and its placements; COST_NEVER and no placements if there is none. */
int64_t solve_space(struct space *);

/* For a placed graph: the cost of its weights and state at the byte price, as in solve_space. */
int64_t encode_memory_cost(struct space *);
double encode_all_bytes(const struct choice_problem *); /* of all weights and states, each once */
/* Of a placed graph: collectives of reshards and of lowerings. */
int encode_collectives(struct space *);

/* choose_near.c: replaces the cheapest solution by the one with the fewest collectives and bytes that takes at most PLAN_NEAR longer, and
 * holds no more bytes if these have a price; notes it in plan->near. */
void choose_near(struct choice_problem *, struct solution *);

/* greedy.c: leaves every node only the strategy of the first assignment that fits: a baseline. */
void greedy_assign(struct space *);

#endif
