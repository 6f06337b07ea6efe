/* space: everything a plan may choose from. Splits are candidates of dimensions; projected through the rules they become strategies
 * of nodes, which reshards and a solver turn into a plan. */
#ifndef TPC_SPACE_H
#define TPC_SPACE_H

#include "op/analysis/analysis.h"
#include "op/rule/rule.h"
#include "plan/facts/facts.h"

struct candidate {
    const struct split *split;
    bool sequence;      /* along a sequence; may not enter products that no sequence split passes */
    const char *source; /* "a weight of", "through", ...: its origin, for --explain */
    int node;           /* position of the node it came from; -1: none */
};
struct candidates {
    VEC(struct candidate) list;
};
struct strategies {
    VEC(struct strategy *) list;
};
struct place_use {
    int node, operand;
}; /* node: position in the graph; -1: the use is graph output number `operand` */
struct place_uses {
    VEC(struct place_use) list;
};

/* The placement that the plan file requires of a value. split NULL: any; op RED_NONE: any. */
struct required_placement {
    const char *where, *text;
    enum place kind;
    int dim;
    const struct split *split;
    enum redop op;
};
struct required_placements {
    VEC(struct required_placement) list;
};
struct places {
    VEC(struct placement) list;
};

/* State of --sp: which dimensions are split, and where such a split may pass. */
struct space_sequence {
    struct placement *place; /* by value id: its placement under --sp; R: not split */
    bool *slides;            /* by class of dimensions: windows slide over it */
    bool *passes;            /* by node position: a product or softmax whose rows may be split along a sequence */
};
/* Strategies left by constraints, and the communication that they request; written by src/plan/constrain and required_placement.c. */
struct space_limits {
    VEC(const struct requirement *) requirements; /* constrain.h: what the plan file's constraints require */
    struct required_placements *required;         /* by value id: at its end of the graph, or before it is read */
    struct required_placements *required_read;    /* by value id, of graph outputs: before they are read or taken */
    bool *requested;                              /* by value id: a constraint requests its communication */
    bool *requested_within;                       /* by node position: a constraint requests the communication of its lowering */
    int64_t unrequested;                          /* added cost of other communication: COST_NEVER under --strict */
};
/* The chosen plan, in addition to node->strategy and value->place; written by src/plan/solve/encode.c. */
struct space_chosen {
    struct placement *output;      /* by output number: the placement in which the graph output leaves */
    const struct placement **read; /* by value id: its placement before any read; NULL: as it is produced */
};
/* Mixtures whose experts are nodes of their own; written by experts.c. */
struct space_expert {
    struct routes rows;
    int mixture, mates;    /* equal for all experts of a mixture; their number */
    double numbers, bytes; /* elements and bytes of the weights that only this expert reads */
    bool deep;             /* more than an MLP: a split of its width may need more than one sum */
    bool dealt;            /* a candidate assigns it to one rank; written by src/plan/cost/cost.c */
};
struct space_experts {
    VEC(struct space_expert) list; /* in the order of the nodes that find their rows */
    int *of; /* by value id: the expert whose rows it has, or the only one that reads this weight; -1: none; NULL: no expert in the graph */
};
/* Sizes under every workload; written by src/plan/cost/cost.c, chances by src/plan/cost/routing.c. */
struct space_sizes {
    int64_t (*extent)[MAX_RANK]; /* by value id * workloads + workload */
    double *chance;              /* the same: probability that it is not empty; NULL: nothing routes rows */
    double *dealt;               /* by expert * workloads + workload: routing_dealt; -1: not computed */
    double **fraction;           /* by split id, on demand: [workload * ranks + rank], then as many cost_next_rank */
    int nfraction;
};
/* The graph that runs; written by src/plan/cost/fused.c. By value id. */
struct fused_part;
struct space_fused {
    const struct graph *runs; /* the graph on one rank as it runs: values keep their ids */
    struct fused_part *part;  /* of the node with this first result */
    struct fused_part *alone; /* the same with its kernel taken apart */
    bool *inner;              /* a kernel makes and reads it, but never stores it */
    bool *last;               /* stored with channels as the last dimension */
    int *whole;               /* inner value: its kernel, from 1 on, if that runs whole or not at all; else 0 */
    int wholes;
    bool *apart; /* by such a kernel: taken apart, its parts run one by one */
};
/* The bodies of a control-flow node, for their price; written by src/plan/cost/control_flow.c on demand. */
struct space_bodies {
    const struct node *node;
    struct space **body;
};
struct space {
    struct arena *arena;
    struct arena *tmp; /* for what is tried at one node: assignments, strategies; the same as `arena` except in space_spread */
    struct graph *g;
    const struct options *options;
    struct plan *plan;
    int ranks;
    const struct shares *shares, *room_shares; /* by speeds of ranks; by their memory; NULL: all equal */
    /* The graph: producers, readers and rules. */
    struct dim_roles *roles; /* dimensions of the graph; NULL: the space of a lowering */
    struct rule **rule;      /* by node position; NULL: no row or no rule, replicated */
    struct place_uses *uses; /* by value id */
    int *producer;           /* by value id: node position, -1 input or constant */
    bool *weight;            /* by value id: a constant, or a constant with moved elements */
    bool *head_size;         /* by class: no candidate is carried there, unless a plan file asks for it */
    /* The choices. */
    struct candidates (*candidates)[MAX_RANK]; /* by value id */
    struct strategies *strategies;             /* by node position: those that constraints leave */
    struct strategies *offered;                /* by node position: the same before constraints */
    unsigned *partial;                         /* by value id: bits of the reductions for which it may be partial */
    int *around;                               /* by node position: the number of candidates around it at the last visit */
    const bool *finite;                        /* by value id: no element is infinite, as in a mask; strategy.c */
    struct space_sequence sequence;
    struct space_limits limits;
    struct space_chosen chosen;
    struct space_experts experts;
    struct space_sizes sizes;
    struct space_fused fused;
    VEC(struct space_bodies) bodies;
    struct names *names; /* on demand: space_names */
};

/* The names that globs match in the space's graph (plan/facts/facts.h). */
struct names *space_names(struct space *);

/* candidate.c: propagates candidates to a fixpoint and makes the strategies of every node. */
struct space *space_new(struct arena *, struct graph *, const struct options *, struct plan *);
/* Adds a candidate; returns false if it exists already or splits nothing. */
bool space_add(struct space *, const struct value *, int d, struct candidate);
/* Propagates candidates again and rebuilds the strategies of all nodes. */
void space_spread(struct space *);
/* Whether the value may be left partial by this reduction. */
static inline bool space_partial(const struct space *s, const struct value *v, enum redop op)
{
    return s->partial[v->id] >> op & 1;
}
/* The placement in which a chosen plan reads a value at one of its uses. */
struct placement space_read_as(const struct space *, struct place_use);
/* Lists all placements of kinds S and R that a value may have (graph inputs, constants). Returns the count. */
int space_placements(struct space *, const struct value *, struct placement **out);

/* shares.c: finds the shares of a space. shares_split: the split of n indices by speeds, even without shares. shares_splits: the splits
 * offered for n indices, the even one first; returns the count. */
enum { SHARE_FORMS = 3 };
void shares_find(struct space *);
const struct split *shares_split(struct space *, const struct dim *n);
int shares_splits(struct space *, const struct dim *n, const struct split *out[SHARE_FORMS]);
/* Whether ranks differ in speed or in memory. */
bool shares_are_unequal(const struct space *);

/* assignment.c: the assignments that give dimension d of an operand or result the split s. In the space's tmp. */
struct assignments {
    VEC(struct assignment) list;
};
/* The assignment that splits no factor. */
struct assignment assignment_none(struct space *, const struct rule *);
struct assignments assignment_list(struct space *, int node, bool result, int i, int d, const struct split *s);
/* Candidates that were already tried at one node. A node may have thousands of operands that suggest the same. True the first time. */
struct tried {
    struct assignments by_sequence[2];
};
bool assignment_is_new(struct space *, int node, struct tried *, const struct assignment *, bool sequence);

/* strategy.c: makes the strategies of nodes that have none, of stale nodes, and of nodes with operands that became partial or ceased to
 * be. */
void strategy_build_all(struct space *, const bool *stale);
/* Strategies of a node with a rule: all replicated; some operands partial; by an assignment, unless that is illegal. *why, if not NULL,
 * gets the reason. */
struct strategy strategy_replicated(struct arena *, const struct node *, const struct rule *);
struct strategy strategy_partial(struct arena *, const struct node *, const struct rule *, const struct rule_pass *);
bool strategy_assigned(struct arena *, struct graph *, const struct node *, const struct rule *, int ranks, const struct assignment *,
                       struct strategy *out, const char **why);
/* The strategy by an assignment for a node of the space, in its tmp. sequence: the split runs along a sequence. */
bool strategy_projects(struct space *, int node, const struct assignment *, bool sequence, struct strategy *out, const char **why);
/* A candidate that gave no strategy of the node: an assignment, and why it is illegal; or with why NULL, a split of dimension `dim` of a
 * value that no assignment gives. */
struct rejection {
    struct assignment assignment;
    const char *why;
    const struct value *value;
    int dim;
    const struct split *split;
};
struct rejections {
    VEC(struct rejection) list;
};
struct rejections strategy_rejections(struct space *, int node);
/* Whether any operand or result is sharded or partial. */
bool strategy_splits(const struct node *, const struct strategy *);
char *strategy_str(struct arena *, const struct node *, const struct strategy *);
/* The same without the splits: "R S(1;*) -> S(2;*)". */
char *strategy_outline(struct arena *, const struct node *, const struct strategy *);
/* Why the node can only be replicated; NULL: it has a rule. */
const char *strategy_missing(const struct space *, int node);

/* experts.c: finds experts that are nodes of their own, with their values. */
void experts_find(struct space *);
/* Dealt: each expert is on one rank, the experts of a mixture on the ranks in turn. The share of the fullest rank. */
double experts_dealt_share(const struct space *, int expert);
/* Whether a split that deals an expert must stop before this value, because the value belongs to no expert. Other nodes would inherit the
 * split. */
bool experts_end_at(struct space *, const struct node *, const struct value *, const struct split *);
/* The split that deals the expert of a value: one rank has all of the dimension. NULL: the value belongs to no expert, the size is unknown,
 * or dealing costs no less than the even split. */
const struct split *experts_dealt_split(struct space *, const struct value *, int d, const struct split *even);

/* sequence.c: marks the dimensions that --sp splits and seeds them at the results of row-parallel products. */
void sequence_seed(struct space *);
/* For the report of a chosen plan under --sp=auto: how much of it is split along a sequence. */
void sequence_note_chosen(struct space *);
/* By class: the split of a sequence, or of rows that contain one (NULL: neither); whether --sp splits it; whether windows slide over it. */
struct sequence_rows {
    const struct split **split;
    bool *on, *slides;
};
/* sequence_window.c: seeds the dimensions that windows slide over as sequences. up: classes of dimensions. */
void sequence_seed_windows(struct space *, int *up, struct sequence_rows *);
bool sequence_has_windows(const struct space *);
/* sequence_pass.c: whether a split along a sequence may pass the node by this assignment. Products and softmaxes only where `passes` allows
 * it, and as rows. */
bool sequence_passes(const struct space *, int node, const struct assignment *);
/* Lets such splits pass the routers of mixtures whose rows can be dispatched to their experts. */
void sequence_pass_routers(struct space *);

/* required_placement.c: adds a required placement, given as text. Fails with the nearest possible placement if it cannot be met; check:
 * also if it contradicts an earlier requirement. */
void required_add(struct space *, const char *where, const struct value *, const char *text, bool check);
/* The same for the placement before the value is read; a graph output may still leave in another. */
void required_add_read(struct space *, const char *where, const struct value *, const char *text, bool check);
/* required_parse: a text as a required placement of a value; fails if it is no placement or names no dimension of the value. required_fits:
 * whether a placement meets it. */
struct required_placement required_parse(struct space *, const char *where, const struct value *, const char *text);
bool required_fits(const struct required_placement *, struct placement);
/* Adds a candidate for a required split of a dimension that has none; true if it is new. split NULL: by shares. A dimension of run-time
 * size, and with `sequence` every dimension, is split as --sp splits it: between products and not through them. */
bool required_seed(struct space *, const struct value *, const struct required_placement *);
bool space_seed(struct space *, const struct value *, int d, const struct split *, bool sequence);
/* Adds candidates for all required placements; true if any is new. */
bool required_seed_all(struct space *);
bool space_allows(const struct space *, const struct value *, struct placement);
/* Placements that a value may have where it is made, or to which it may be resharded; those that the requirements leave; those that
 * requirements leave before it is read, none if there is no such requirement. */
struct places space_legal(struct space *, const struct value *);
struct places space_allowed(struct space *, const struct value *);
struct places space_read_places(struct space *, const struct value *);
/* Whether the value is the past or present of a state. */
bool space_state(const struct space *, const struct value *);
/* The placement in full, or as short as the text that it replaces: "S(1)". */
const char *required_like(struct arena *, const char *like, struct placement);

#endif
