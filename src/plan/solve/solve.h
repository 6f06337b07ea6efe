/* solve: the exact minimum of a sum of tables over discrete variables, which knows nothing of graphs, and the choice as such a sum. */
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
/* What a variable takes of each point from..to-1, by its value. */
struct take {
    int var, from, to;
    int64_t *amount;
};
struct problem {
    struct arena *arena;
    VEC(int) size; /* values of each variable */
    VEC(struct cost_table) tables;
    int points; /* moments, such as nodes that run; at none of them may all that is taken exceed the limit */
    int64_t *limit;
    VEC(struct take) takes;
};
struct problem *problem_new(struct arena *);
int problem_variable(struct problem *, int size);
/* A table of one or two variables, all 0; fill cost[a] or cost[a * size(second) + b]. */
int64_t *problem_unary(struct problem *, int var);
int64_t *problem_pair(struct problem *, int first, int second);
/* Limits of all points, to fill in; amounts of a variable during some of them, at least 0. Before and after problem_limits. */
int64_t *problem_limits(struct problem *, int points);
int64_t *problem_take(struct problem *, int var, int from, int to);
void problem_copy_limits(const struct problem *, struct problem *to);
/* What is taken of each point; is that within all limits? */
void problem_taken(const struct problem *, const int *value, int64_t *taken);
bool problem_fits(const struct problem *, const int *value);
/* Of several, all different. */
int64_t *problem_table(struct problem *, int nvar, const int *var);
int64_t problem_entries(const struct problem *, const struct cost_table *);
int64_t problem_cost(const struct problem *, const int *value);
/* The sum of the largest entry of each table that is allowed, by absolute value: no assignment costs more. */
int64_t problem_magnitude(const struct problem *);
/* By variable: the numbers of its tables, and of what it takes. */
struct index_list {
    VEC(int) list;
};
struct problem_index {
    struct index_list *tables, *takes;
};
struct problem_index problem_index(const struct problem *, struct arena *);
/* A table around the variable at a position: outer * size * inner entries. Its least entry for each value. */
struct table_layout {
    int64_t outer, inner;
    int size;
};
struct table_layout problem_layout(const struct problem *, const struct cost_table *, int position);
void problem_least(const struct problem *, const struct cost_table *, int position, int64_t *least);
int64_t problem_entry(const struct problem *, const struct cost_table *, const int *value);

/* ---- points.c: fewer points of the same limits ----------------------------------------------------------------------------- */
/* By old point the one whose limit says the same; -1: none does. */
int *points_reduce(struct problem *, struct arena *);

/* ---- reduce.c --------------------------------------------------------------------------------------------------------------- */
struct bound;
/* A smaller problem. var, value: by variable, its new variable, -1: it has one value; its value for each of that. root, into: by new
 * variable, an old one that it stands for; what becomes of this one's values, -1: it is left out. */
struct reduced {
    struct problem *p;
    int *var, **value;
    VEC(int) root;
    int **into, *point;     /* by old point: as points_reduce says */
    bool possible, changed; /* possible: no variable has lost all values */
};
/* Values that the bound has dropped are left out; costs times scale. by_pairs: variables are merged, else dominated values left out. A
 * table that stays as it is is the problem's: to be read only. */
struct reduced reduce(const struct problem *, struct arena *, const struct bound *, int64_t scale, bool by_pairs);

/* ---- solve.c --------------------------------------------------------------------------------------------------------- */
struct solution {
    int *value;
    int64_t cost, bound; /* no assignment costs less than the bound */
    bool proven;         /* nor less than this one */
    bool narrow;         /* elimination alone has found it */
    int64_t largest_table;
};
/* How much work may be spent: entries of a table; sums, over all. */
struct solve_limits {
    int64_t table;
    double effort;
    bool (*enough)(void); /* NULL: effort alone says */
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
int elimination_widest(struct elimination *, uint64_t seed);
int elimination_locally_best(struct elimination *, int var);
void elimination_fix(struct elimination *, int var, int value);
/* From now on finds values that can't be any more at once, so that no variable is fixed to one; it overwrites the problem's tables. */
void elimination_forbid_early(struct elimination *);
/* What is left, of the same variables: those that are eliminated have one value. Its tables may be the problem's: to be read only. */
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
/* What all assignments with a value cost at least, but for a constant. */
void bound_values(const struct bound *, int var, int64_t *least);
/* Adds to the costs of a variable's values, and to all. */
void bound_charge(struct bound *, int var, const int64_t *more);
void bound_add(struct bound *, int64_t constant);
/* An assignment that is good by the costs as they have been moved, one variable after another. */
void bound_decode(struct bound *, int *value);
int64_t bound_total(const struct bound *);
double bound_effort(const struct bound *);
bool bound_keeps(const struct bound *, int var, int value);
void bound_drop(struct bound *, int var, int value);
int bound_variables(const struct bound *);
int bound_size(const struct bound *, int var);
/* The problem with its costs as they have been moved: they tell more about a table alone. */
struct problem *bound_problem(const struct bound *, struct arena *);

/* ---- slow.c ----------------------------------------------------------------------------------------------------------------- */
/* By variable and value: does the bound show that no assignment with it costs less than known->cost? known->value does. */
bool **slow_values(const struct problem *, struct arena *, const struct known *);

/* ---- probe.c: values that are dropped by trying them ------------------------------------------------------------------------ */
/* Of the variables after *next, one after another, until all have been tried or most is spent; returns what is. There is a best. */
double probe_values(struct bound *, const struct known *best, int *next, double most);

/* ---- prices.c: what a point's limit is worth ------------------------------------------------------------------------------- */
/* NULL: there are no limits. first: prices to begin with, goal: how much they may be worth; NULL: none. */
struct prices *prices_new(const struct problem *, struct arena *, const double *first, double goal);
/* Takes all charges back. */
void prices_release(struct prices *, struct bound *);
/* Do they hardly move any more? Larger steps again, if so. */
bool prices_settled(const struct prices *);
void prices_resume(struct prices *);
/* Charges the bound what values take at these prices, less what the limits are worth. */
void prices_charge(struct prices *, struct bound *);
/* Moves the prices by what an assignment takes, to bring the bound that they have now nearer to a goal. */
void prices_move(struct prices *, const int *value, double bound, double goal);
/* By point. */
const double *prices_now(const struct prices *);

/* ---- around.c: better assignments, by solving a part exactly while the rest stays ---------------------------------------------- */
struct around *around_new(const struct problem *, struct arena *, const struct bound *, const int *value, uint64_t seed);
/* So many proposals, at these prices of points, from the best on. What is accepted may cost more by a part of it, less and less.
 * whole: some parts are as large as can be.
 * No more once the search has spent most. */
void around_search(struct around *, const double *price, int proposals, int64_t most_entries, double room, bool whole, double most);
double around_effort(const struct around *);
const int *around_value(const struct around *);
int64_t around_cost(const struct around *);
/* What is taken above the limits, over all points. */
double around_excess(const struct around *);

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
    const int *known; /* values of a good plan to start from; NULL: the replicated one */
    bool complete;    /* no set was left out */
};

/* A new variable of n values. */
int solve_variable(struct choice_problem *, int n, int replicated);
/* How the producer of a value, or its end of the graph, leaves it. */
struct endpoint edge_source(struct choice_problem *, const struct value *);
/* How a node, or whoever takes a graph output, reads a value. */
struct endpoint edge_reader(struct choice_problem *, struct place_use);
/* The tables between a value's producer and its readers. */
void edge_tables_make(struct choice_problem *, const struct value *);
/* What the reshards of a value cost under an assignment. */
int64_t edge_reshards(struct choice_problem *, const struct value *, const int *value);
/* The same as one table over the producer and all readers; false: they are too many, or it would have more than this many entries. */
bool joint_table_make(struct choice_problem *, const struct value *, const struct endpoint *from, const struct endpoint *reader, int n,
                      int64_t most);

/* room.c: limits of the problem over time: no rank holds more than plan->room allows, by a count that says no more than is true. After all
 * variables. room_knows: what plan->room tells of assignments is about this problem. room_note: what was chosen, for the plan. */
void room_limit(struct choice_problem *);
bool room_knows(const struct choice_problem *);
void room_note(const struct choice_problem *, const int *value);

/* within.c: the best plan that fits, from one that is known to on. An attempt: a plan, within this room, if within; its cost and bound in
 * picoseconds over all workloads, what its fullest rank holds and what room.c counts, in bytes. plan: makes one. *bound: no plan that fits
 * costs less, before and after. */
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
/* Weights and state at their chosen places: what their memory costs by the plan's prices, and their bytes. */
struct resident {
    int64_t memory, nearness;
    double bytes;
};
struct resident encode_resident(const struct choice_problem *, const int *value);
/* The cost of the best plan under what may be chosen now, and its placements; COST_NEVER and no placements where there is none. */
int64_t solve_space(struct space *);

/* Of a placed graph: what its weights and state cost by the price of a byte, as solve_space counts them. */
int64_t encode_memory_cost(struct space *);
double encode_all_bytes(const struct choice_problem *); /* of all weights and states, each once */
/* Of a placed graph: collectives of reshards and of lowerings. */
int encode_collectives(struct space *);

/* choose_near.c: the solution of a problem for the least cost becomes that with the fewest collectives and bytes that takes no more than
 * PLAN_NEAR longer, and holds no more bytes where these have a price; plan->near tells of it. */
void choose_near(struct choice_problem *, struct solution *);

/* greedy.c: leaves every node one strategy, the one of the first assignment that fits: a baseline. */
void greedy_assign(struct space *);

#endif
