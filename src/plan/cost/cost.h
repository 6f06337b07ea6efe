/* cost: the cost of strategies, reshards, lowerings and memory, in seconds and bytes. */
#ifndef TPC_COST_H
#define TPC_COST_H

#include "op/rule/rule.h"
#include "plan/space/space.h"

/* Arrays that training keeps in addition to a weight, in units of the stored weight: its gradient and two moments; for a weight stored
 * narrower than f32 also the f32 copy that the optimizer updates. */
int cost_trained(const struct value *weight);
/* cost.c: sum of the workload weights. */
double cost_steps(const struct plan *);
double plan_objective(const struct plan *); /* the objective: seconds over all workloads */

/* collective_cost.c: a collective of a global value of `bytes` over all ranks. */
struct sent {
    enum collective kind;
    enum wire wire;
    bool at_once; /* sums are rounded once, so no machine adds up its own addends first */
    double ranks, bytes;
    bool moves; /* a Redistribute whose sizes per rank are known: */
    double moved;
};
double collective_seconds(const struct machine *, const struct sent *);
double collective_overhead(const struct machine *, double ranks); /* seconds per collective of all ranks, in addition to its messages */
/* The same over one link between t units: sequential hops, and bytes that one unit sends. */
struct transfer {
    double hops, bytes, summed, coding;
}; /* summed: bytes of partial values that a rank adds up; coding: seconds to encode and decode */
struct coding {
    enum wire wire;
    double seconds; /* per byte of float32 */
};
struct transfer cost_link_transfer(const struct link *, enum collective, struct coding, double t, double bytes);
double cost_link_seconds(const struct link *, struct transfer);
/* The weight of each size of link.slowdown, and of larger messages, in a transfer: LINK_SIZES + 1 shares that sum to 1. */
void cost_link_size_shares(struct transfer, double *share);
/* The type that addends of a value have in messages when it is resharded from this placement. */
enum wire collective_wire(const struct machine *, enum dtype, struct placement from, double ranks);
/* calibrate.c: fits the constants of one link to times measured over it alone; COLL_NONE: one nearly empty message. Returns the root mean
 * square of the relative errors. */
struct timed_transfer {
    enum collective kind;
    double bytes, seconds;
};
double calibrate_fit(struct link *, int units, int n, const struct timed_transfer *);
/* Fits the constants of overlap to the seconds of sums. n = 0: no collective overlaps with compute. */
struct timed_overlap {
    double sum, meanwhile, taken; /* time of the sum alone; while ranks compute; compute time lost meanwhile */
};
void calibrate_overlap(struct machine *, int n, const struct timed_overlap *);

/* reshard.c: how to reach a placement from another, maybe through a third. COST_NEVER: impossible. */
struct reshard_path {
    struct placement via;
    bool has_via;
    int64_t cost;
};
struct reshard_path reshard_find(struct space *, const struct value *, struct placement from, struct placement to);
enum { RESHARD_TARGETS = 1024 }; /* the most targets of a tree */
/* The cheapest tree of reshards from one placement to all of to[]: parent[i] is -1 (the source) or the index of an earlier target. */
int64_t reshard_tree(struct space *, const struct value *, struct placement from, int n, const struct placement *to, int *parent);

/* The further cost of these reshards, if they cut a kernel that would otherwise make and read the value inside. */
int64_t reshard_cuts(struct space *, const struct value *, struct placement from, int n, const struct placement *to);

/* The reshards of a value of a chosen plan: from the placement in which its producer leaves it, to its required placement first if there is
 * one, then to those of its readers. parent: position in the list, -1: the producer's placement. value: for the pass insert. */
struct reshard {
    struct placement place;
    int parent;
    struct value *value;
};
struct reshards {
    VEC(struct reshard) list;
};
struct reshards reshard_chosen(struct space *, struct arena *, const struct value *);
/* Whether any reader needs another placement than the producer's. If not, no reshard is emitted, whatever placement a constraint asks
 * for. */
bool reshard_is_read(const struct space *, const struct value *);
int reshard_position(const struct reshards *, struct placement); /* position in the list, -1: none */

/* explicit.c: the space of a graph whose reshards are nodes, to price it under a plan's workloads. The caller marks its weights and calls
 * fused_find. */
bool explicit_is_reshard(const struct node *);
struct space *explicit_space(struct space *model, struct graph *, struct plan *, int ranks);
double explicit_seconds(struct space *, int workload, int busy);
/* lowering.c: the lowering of a node in a graph of its own. */
struct space *lowering_space(struct space *, const struct node *, const struct strategy *);
/* The number of collectives in the strategy's lowering. After cost_prepare. */
int lowering_collectives(const struct strategy *);
/* The first collective of the strategy's lowering; COLL_NONE if there is no lowering or it has no collective. After cost_prepare. */
enum collective lowering_sends(const struct strategy *);

/* step_time.c: seconds of a node of the chosen plan, per weighted step. */
double cost_step_seconds(struct space *, int node);
/* Seconds of a step of the chosen plan, unsharded and on all ranks, under each workload and on average. */
void plan_predict(struct space *);
/* After it: the seconds of a step where products round to bf16, as plan->fast_seconds, if such products are faster. Convolutions gain,
 * too, but no price tells how much. */
void plan_predict_fast(struct space *);
void plan_note_rank_times(struct space *); /* fills plan->rank_time of the chosen plan, if speeds differ */
/* step_parts.c: fills plan->step of the chosen plan. */
void plan_note_step(struct space *);
/* idle.c: adds a warning for each workload in which ranks are idle for a part of the step. */
void plan_note_idle(struct space *);

/* overlap_saving.c: for an explicit, fused graph, with plan->step: sets plan->overlap_bytes and the time saved under each workload. */
void plan_overlap(struct arena *, struct graph *, struct plan *, const struct machine *);
/* Rows of a value; 0: not known, or too many. */
int64_t overlap_rows(const struct row_segments *, const struct value *, const struct bindings *);

/* cost.c: picoseconds over the weighted workloads. */
int64_t cost_of_reshard(struct space *, const struct value *, struct placement from, struct placement to);
/* The further cost of resharding a value that its kernel never stores: where it is made, or where it is read. 0 for other values. */
int64_t cost_of_cut(struct space *, const struct value *, struct placement, bool reads);
int64_t cost_of_strategy(struct space *, const struct node *, const struct rule *, const struct strategy *);
int64_t cost_of_memory(struct space *, const struct value *, struct placement);   /* of a weight or a state, at the plan's byte price */
int64_t cost_of_nearness(struct space *, const struct value *, struct placement); /* the same, at the byte price of nearly equal plans */
int cost_copies(const struct graph *, const struct value *weight); /* arrays of its size that are kept: more than one in training */
double cost_resident_bytes(struct space *, const struct value *, struct placement); /* bytes on the fullest rank in the largest workload */
/* The same in seconds under one workload; busy: ranks that work at the same time. */
double cost_reshard_seconds(struct space *, const struct value *, struct placement from, struct placement to, int workload);
double cost_cut_seconds(struct space *, const struct value *, struct placement, bool reads, int workload);
/* Seconds of a node that communicates. */
double cost_collective_seconds(const struct machine *, const struct graph *, const struct node *, const struct bindings *, int ranks);
double cost_node_seconds(struct space *, const struct node *, const struct rule *, const struct strategy *, int workload, int busy);
/* The size of a dimension that a rank holds, under a workload; it may be fractional. */
double cost_local_size(struct space *, const struct value *, struct placement, int dim, int workload, int rank);
double cost_fraction(struct space *, const struct split *, int workload, int rank); /* the fraction of a dimension that a rank holds by a
                                                                                     * split */
/* The same for a value; if it belongs to an expert assigned to one rank, the expert's expected fraction, the same for every rank. */
double cost_part(struct space *, const struct value *, const struct split *, int workload, int rank);
int cost_next_rank(struct space *, const struct split *, int workload, int rank); /* the next rank whose part differs; or the number of
                                                                                   * ranks */
double cost_local_elements(struct space *, const struct value *, struct placement, int workload, int rank);
/* graph_that_runs.c: a copy, in the arena, as a rank runs it: without internal ops, and fused as tpc-run fuses by default. The graph may be
 * the global one or one rank's. */
struct graph *cost_graph_that_runs(struct arena *, const struct graph *);
/* fused.c: finds what each node becomes in the run. runs: the graph that runs, a copy of the space's; or the space's graph itself if no
 * nodes are fused. After cost_evaluate_types. */
void fused_find(struct space *, const struct graph *runs);
/* Finds the same with each kernel taken apart; fused_settle uses that for kernels in which the chosen plan reshards an inner value. */
void fused_find_alone(struct space *);
void fused_settle(struct space *);
void fused_join(struct space *); /* undoes fused_find_alone: all kernels run whole */
struct fused_part {
    const struct node *into;     /* the node whose result its kernel stores, maybe itself; NULL: no kernel runs for it */
    int whole;                   /* its kernel, if that runs whole or not at all; else 0 */
    bool computed;               /* a kernel computes it; a convolution of a sum may be merged into another */
    int overheads;               /* number of kernels that store its result */
    bool folded;                 /* computed at load */
    bool in_turn;                /* its kernel does not overlap memory traffic with computation */
    bool integers;               /* its kernel multiplies integers */
    int digits;                  /* number of such products */
    bool codes, functions;       /* rounds or decodes each number; evaluates its function for each */
    bool rows;                   /* goes through rows of neighbours */
    bool recoded;                /* changed: to or from codes, not only to another layout */
    enum dtype weight;           /* of a product: the stored type of the weight; DT_NONE: it reads no weight */
    const struct value *changed; /* its operand or result that is converted to another form; NULL: none */
    double *read, *write;        /* bytes per element read from memory for each operand, and written for each result */
};
const struct fused_part *fused_part(const struct space *, const struct node *); /* NULL: the node has no result */
/* The name of the node whose kernel computes this node; NULL: it has a kernel of its own, or needs none. */
const char *fused_into(const struct space *, const struct node *);
/* control_flow.c: seconds of a node of control flow. */
double control_flow_seconds(struct space *, const struct node *, int workload, int busy);
void cost_evaluate_types(struct space *); /* evaluates every type under every workload */
void cost_prepare(struct space *);        /* the same, including the types of lowerings */

/* reshard_node.c: a single step from a placement of a value to another. Sharded weights and types whose elements share bytes cannot be
 * resharded. */
struct transition reshard_transition(const struct value *, bool weight, struct placement from, struct placement to);
/* That step as a node that is not inserted yet, from the value's own placement. Its result has the new placement. */
struct node *reshard_node(struct graph *, struct value *, struct placement to);
/* lowering.c: appends to the graph the lowering of a node whose operands and results are placed, without the node itself. */
void lowering_append(struct graph *, struct node *);

/* payload.c: bytes that one rank (the one that holds most) puts into a collective node, under a workload; for a Redistribute, the most that
 * a rank sends or receives, if each rank holds one range. */
int64_t cost_payload(const struct graph *, const struct node *, const struct bindings *, int ranks);
/* memory.c: the memory of each rank that runs this graph: one rank's own graph, or a global one with explicit reshards. */
void plan_memory(struct graph *, const struct plan *, int ranks, struct rank_use *out);
/* The same of the graph as it runs: values inside fused kernels are not stored. */
void plan_memory_that_runs(const struct graph *, const struct plan *, int ranks, struct rank_use *out);
/* A number of bytes, capped so that sums do not overflow: a file may hold any size. */
int64_t plan_possible_bytes(int64_t bytes);
/* memory_bodies.c: the slabs of all bodies of a graph that runs, under these sizes of the enclosing graph. */
int64_t plan_bodies_bytes(struct arena *tmp, const struct graph *, const struct bindings *);
/* The symbols of body k, resolved under sizes of the enclosing graph. */
struct bindings plan_sizes_inside(struct arena *tmp, const struct node *, int k, const struct graph *body, const struct bindings *);
int64_t memory_total(const struct rank_use *);
/* The rank with the largest memory relative to its limit. */
int memory_fullest(const struct options *, int ranks, const struct rank_use *);
/* A lower bound of weights and state on the fullest rank, for any plan on this many ranks. Before they are placed. */
int64_t memory_least(const struct graph *, const struct plan *, const struct options *, int ranks);
/* The maximum of each field. */
struct rank_use memory_most(int n, const struct rank_use *);

#endif
