/* cost: what a strategy, a reshard, a lowering and memory cost, in seconds and bytes. */
#ifndef TPC_COST_H
#define TPC_COST_H

#include "op/rule/rule.h"
#include "plan/space/space.h"

/* What training keeps in addition to a weight, in arrays of the size in which it is stored: its gradient and two moments, and of a weight
 * that is stored narrower than f32 also the f32 that the optimizer changes. */
int cost_trained(const struct value *weight);
/* cost.c: sum of the workload weights. */
double cost_steps(const struct plan *);
double plan_objective(const struct plan *); /* as written: seconds over all workloads */

/* collective_cost.c: a collective of a global value of `bytes` over all ranks. */
struct sent {
    enum collective kind;
    enum wire wire;
    bool at_once; /* sums are rounded once, so no machine adds up its own first */
    double ranks, bytes;
    bool moves; /* a Redistribute of which it is known what a rank sends: */
    double moved;
};
double collective_seconds(const struct machine *, const struct sent *);
double collective_overhead(const struct machine *, double ranks); /* seconds of one of all ranks, besides its messages */
/* The same over one link between t units: hops one after another and bytes that one of them sends. */
struct transfer {
    double hops, bytes, summed, coding;
}; /* summed: bytes of partial values that a rank adds up; coding: seconds that it encodes and decodes */
struct coding {
    enum wire wire;
    double seconds; /* of a byte of float32 */
};
struct transfer cost_link_transfer(const struct link *, enum collective, struct coding, double t, double bytes);
double cost_link_seconds(const struct link *, struct transfer);
/* How much each size of link.slowdown, and the last beyond these, counts for the messages of a transfer: LINK_SIZES + 1 shares of one. */
void cost_link_size_shares(struct transfer, double *share);
/* What addends of a value become in messages, if it is brought from this placement. */
enum wire collective_wire(const struct machine *, enum dtype, struct placement from, double ranks);
/* calibrate.c: the constants of a link from measured times over it alone; COLL_NONE: one message of next to no bytes. Returns the root mean
 * square of the relative errors. */
struct timed_transfer {
    enum collective kind;
    double bytes, seconds;
};
double calibrate_fit(struct link *, int units, int n, const struct timed_transfer *);
/* The constants of overlap, from seconds of sums. n = 0: none overlaps with compute. */
struct timed_overlap {
    double sum, meanwhile, taken; /* alone; while ranks compute; what is taken from these */
};
void calibrate_overlap(struct machine *, int n, const struct timed_overlap *);

/* reshard.c: how a placement is reached from another, maybe through a third. COST_NEVER: it cannot be. */
struct reshard_path {
    struct placement via;
    bool has_via;
    int64_t cost;
};
struct reshard_path reshard_find(struct space *, const struct value *, struct placement from, struct placement to);
enum { RESHARD_TARGETS = 1024 }; /* the most that a tree has */
/* The cheapest way to make all of to[] available from one placement: parent[i] is -1 (from itself) or an earlier-made j. */
int64_t reshard_tree(struct space *, const struct value *, struct placement from, int n, const struct placement *to, int *parent);

/* What these reshards cost besides, if a kernel would make and read the value otherwise. */
int64_t reshard_cuts(struct space *, const struct value *, struct placement from, int n, const struct placement *to);

/* The reshards of a value of a chosen plan, from where its producer leaves it: to its required placement first, if it has one; from there
 * to what its readers want. parent: position in the list, -1 where it is left. value: for the pass insert. */
struct reshard {
    struct placement place;
    int parent;
    struct value *value;
};
struct reshards {
    VEC(struct reshard) list;
};
struct reshards reshard_chosen(struct space *, struct arena *, const struct value *);
/* Somebody reads the value otherwise than as it is left. If not, no reshard of it is emitted, whatever placement a constraint asks for. */
bool reshard_is_read(const struct space *, const struct value *);
int reshard_position(const struct reshards *, struct placement); /* position, -1 none */

/* explicit.c: the space of a graph with reshards as nodes, for its price under the workloads of a plan. The caller marks its weights, and
 * calls fused_find. */
bool explicit_is_reshard(const struct node *);
struct space *explicit_space(struct space *model, struct graph *, struct plan *, int ranks);
double explicit_seconds(struct space *, int workload, int busy);
/* lowering.c: the lowering of a node in a graph of its own. */
struct space *lowering_space(struct space *, const struct node *, const struct strategy *);
/* Collectives of the strategy's lowering. After cost_prepare. */
int lowering_collectives(const struct strategy *);
/* The first collective of the strategy's lowering; COLL_NONE: it has none, or the strategy no lowering. After cost_prepare. */
enum collective lowering_sends(const struct strategy *);

/* step_time.c: what a node of the chosen plan takes, per weighted step. */
double cost_step_seconds(struct space *, int node);
/* What a step of the chosen plan takes, unsharded and on all ranks, under each workload and on average. */
void plan_predict(struct space *);
void plan_note_rank_times(struct space *); /* plan->rank_time, of the chosen plan, where speeds differ */
/* step_parts.c: plan->step, of the chosen plan. */
void plan_note_step(struct space *);
/* idle.c: a warning for each workload at which ranks have nothing to do for a part of the step. */
void plan_note_idle(struct space *);

/* overlap_saving.c: of an explicit graph, fused, with plan->step: plan->overlap_bytes, and what is saved under each workload. */
void plan_overlap(struct arena *, struct graph *, struct plan *, const struct machine *);
/* Rows of a value; 0: they are not known, or too many. */
int64_t overlap_rows(const struct row_segments *, const struct value *, const struct bindings *);

/* cost.c, in picoseconds over the weighted workloads. */
int64_t cost_of_reshard(struct space *, const struct value *, struct placement from, struct placement to);
/* What a value that a kernel never stores costs more if it is resharded: where it is made, or where it is read. Others: nothing. */
int64_t cost_of_cut(struct space *, const struct value *, struct placement, bool reads);
int64_t cost_of_strategy(struct space *, const struct node *, const struct rule *, const struct strategy *);
int64_t cost_of_memory(struct space *, const struct value *, struct placement);   /* of a weight or a state, by the plan's */
int64_t cost_of_nearness(struct space *, const struct value *, struct placement); /* the same, by that of plans nearly as fast */
int cost_copies(const struct graph *, const struct value *weight); /* arrays of its size: training keeps more than the weight */
double cost_resident_bytes(struct space *, const struct value *, struct placement); /* bytes on the fullest rank in the largest workload */
/* The same in seconds under one workload; busy: ranks that work at the same time. */
double cost_reshard_seconds(struct space *, const struct value *, struct placement from, struct placement to, int workload);
double cost_cut_seconds(struct space *, const struct value *, struct placement, bool reads, int workload);
/* Of a node that communicates. */
double cost_collective_seconds(const struct machine *, const struct graph *, const struct node *, const struct bindings *, int ranks);
double cost_node_seconds(struct space *, const struct node *, const struct rule *, const struct strategy *, int workload, int busy);
/* The part of a dimension that a rank holds, under a workload: a size, maybe no whole number. */
double cost_local_size(struct space *, const struct value *, struct placement, int dim, int workload, int rank);
double cost_fraction(struct space *, const struct split *, int workload, int rank); /* of a dimension: what a rank holds by a split */
/* The same of a value; where it is of an expert that is dealt, what it costs as a part of what it takes, on any rank. */
double cost_part(struct space *, const struct value *, const struct split *, int workload, int rank);
int cost_next_rank(struct space *, const struct split *, int workload, int rank); /* the next that holds another part; or all ranks */
double cost_local_elements(struct space *, const struct value *, struct placement, int workload, int rank);
/* graph_that_runs.c: a copy, in the arena, as a rank runs it: without internal ops, and with nodes fused as they are if no option of
 * tpc-run is given. The graph: the global one, or one rank's. */
struct graph *cost_graph_that_runs(struct arena *, const struct graph *);
/* fused.c: what the run does of each node. runs: the graph that runs, a copy of the space's; or that itself, where each node runs alone.
 * After cost_evaluate_types. */
void fused_find(struct space *, const struct graph *runs);
/* The same of each node for where its kernel is apart, which fused_settle finds by a chosen plan: it reshards an inner value. */
void fused_find_alone(struct space *);
void fused_settle(struct space *);
void fused_join(struct space *); /* no kernel is apart */
struct fused_part {
    const struct node *into;     /* the node whose result its kernel leaves, maybe itself; NULL: nothing runs for it */
    int whole;                   /* its kernel, if that runs as a whole or not at all; 0 */
    bool computed;               /* a kernel computes it; one of a sum of convolutions may be part of another */
    int overheads;               /* of the kernels that leave its result */
    bool folded;                 /* it is computed at load instead */
    bool in_turn;                /* its kernel moves bytes before or after it computes, not meanwhile */
    bool integers;               /* its kernel multiplies integers */
    int digits;                  /* and so often */
    bool codes, functions;       /* it rounds or decodes each number; it evaluates its function for each */
    bool rows;                   /* it goes through rows of neighbours */
    bool recoded;                /* changed: to or from codes, not only to another order */
    enum dtype weight;           /* of a product: how the weight is stored that it reads; DT_NONE: it reads none */
    const struct value *changed; /* its operand or result, which is brought to another form; NULL: none */
    double *read, *write;        /* bytes of an element of each operand that are read from memory, and of each result that are written */
};
const struct fused_part *fused_part(const struct space *, const struct node *); /* NULL: it has no result */
/* The name of the node whose kernel the node runs inside; NULL: it has a kernel of its own, or needs none. */
const char *fused_into(const struct space *, const struct node *);
/* control_flow.c: the same of a node of control flow. */
double control_flow_seconds(struct space *, const struct node *, int workload, int busy);
void cost_evaluate_types(struct space *); /* every type under every workload */
void cost_prepare(struct space *);        /* the same, those of lowerings too */

/* reshard_node.c: a single step of a value from a placement to another. A sharded weight does not travel: what a rank does not hold of one
 * it does not read; nor does a type whose elements share bytes. */
struct transition reshard_transition(const struct value *, bool weight, struct placement from, struct placement to);
/* That step as a node, inserted nowhere: from where the value is placed. Its result has the new placement. */
struct node *reshard_node(struct graph *, struct value *, struct placement to);
/* lowering.c: appends to the graph what the row's lowering makes of a node whose operands and results are placed, and not the node. */
void lowering_append(struct graph *, struct node *);

/* payload.c: bytes that one rank (the one that holds most) puts into a collective node, under a workload; of a Redistribute, the most that
 * a rank sends or receives, if each holds one range. */
int64_t cost_payload(const struct graph *, const struct node *, const struct bindings *, int ranks);
/* memory.c: what each of the ranks holds that run this graph, as it runs: one rank's own, or a global one with
 * explicit reshards. */
void plan_memory(struct graph *, const struct plan *, int ranks, struct rank_use *out);
/* The same of the graph as it runs: fused nodes keep no values between them. */
void plan_memory_that_runs(const struct graph *, const struct plan *, int ranks, struct rank_use *out);
/* A number of bytes, capped so that sums do not overflow: sizes in a file may be arbitrary. */
int64_t plan_possible_bytes(int64_t bytes);
/* memory_bodies.c: the slabs of all bodies of a graph that runs, under these sizes of the graph around them. */
int64_t plan_bodies_bytes(struct arena *tmp, const struct graph *, const struct bindings *);
/* The symbols of body k, made ready, under sizes of the graph around it. */
struct bindings plan_sizes_inside(struct arena *tmp, const struct node *, int k, const struct graph *body, const struct bindings *);
int64_t memory_total(const struct rank_use *);
/* The rank that holds most of what it may hold. */
int memory_fullest(const struct options *, int ranks, const struct rank_use *);
/* Of weights and state alone, what the fullest of so many ranks holds at least, whatever the plan. Before they are placed. */
int64_t memory_least(const struct graph *, const struct plan *, const struct options *, int ranks);
/* The largest of every entry. */
struct rank_use memory_most(int n, const struct rank_use *);

#endif
