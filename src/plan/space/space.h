/* space: everything a plan may choose from. Splits are candidates of dimensions; projected through the rules they become strategies
 * of nodes, which reshards and a solver turn into a plan. */
#ifndef TPC_SPACE_H
#define TPC_SPACE_H

#include "op/analysis/analysis.h"
#include "op/rule/rule.h"
#include "plan/facts/facts.h"

struct candidate {
    const struct split *split;
    bool sequence;      /* along one, kept out of products that no sequence split passes */
    const char *source; /* "a weight of", "through", ...: its origin, for --explain */
    int node;           /* from which node; -1: from none */
};
struct candidates {
    VEC(struct candidate) list;
};
struct strategies {
    VEC(struct strategy *) list;
};
struct place_use {
    int node, operand;
}; /* node: position in the graph, -1: graph output number operand */
struct place_uses {
    VEC(struct place_use) list;
};

/* What the plan file requires of a value: split NULL: any; op RED_NONE: any. */
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

/* Of --sp: which dimensions are split, and where such a split may pass. */
struct space_sequence {
    struct placement *place; /* by value id: as --sp splits it, R: it does not */
    bool *slides;            /* by class of dimensions: windows slide over it */
    bool *passes;            /* by node position: a product or barrier whose rows may be split along a sequence */
};
/* What constraints leave, and what they request; written by src/plan/constrain and placement_limits.c. */
struct space_limits {
    VEC(const struct requirement *) requirements; /* constrain.h: what the plan file's constraints require */
    struct required_placements *required;         /* by value id: at its end of the graph, or before it is read */
    struct required_placements *required_read;    /* by value id, of graph outputs: before they are read or taken */
    bool *requested;                              /* by value id: a constraint requests its communication */
    bool *requested_within;                       /* by node position: a constraint requests that of its lowering */
    int64_t unrequested;                          /* what other communication costs more: COST_NEVER under --strict */
};
/* Of the plan found last, in addition to node->strategy and value->place; written by src/plan/solve/encode.c. */
struct space_chosen {
    struct placement *output;      /* by output number: how the graph output is taken */
    const struct placement **read; /* by value id: what it is resharded to before any read; NULL: it is read as it is left */
};
/* Mixtures whose experts are nodes of their own; written by experts.c. */
struct space_expert {
    struct routes rows;
    int mixture, mates;    /* the same for all experts of a mixture; how many these are */
    double numbers, bytes; /* of the weights that it alone reads */
    bool deep;             /* more than an MLP: it may have to be summed more than once where its width is split */
    bool dealt;            /* some of its values may be split so; written by src/plan/cost/cost.c */
};
struct space_experts {
    VEC(struct space_expert) list; /* in order of the nodes that find their rows */
    int *of; /* by value id: the expert whose rows it has, or which alone reads this weight; -1: none; NULL: no space */
};
/* Sizes under every workload; written by src/plan/cost/cost.c, chances by src/plan/cost/routing.c. */
struct space_sizes {
    int64_t (*extent)[MAX_RANK]; /* by value id * workloads + workload */
    double *chance;              /* the same: that it has any rows; NULL: nothing routes rows */
    double *dealt;               /* by expert * workloads + workload: what a dealt one costs of what it takes; -1: not known yet */
    double **fraction;           /* by split id: [workload * ranks + rank], then as many next ranks with another; made when asked for */
    int nfraction;
};
/* What the run makes of the graph; written by src/plan/cost/fused.c. By value id. */
struct fused_part;
struct space_fused {
    const struct graph *runs; /* the graph on one rank as it runs: values of this one keep their ids */
    struct fused_part *part;  /* of the node whose first result it is */
    struct fused_part *alone; /* what it is where its kernel is apart */
    bool *inner;              /* a kernel makes and reads it, and never stores it */
    bool *last;               /* it lies in memory with the channels as last dimension */
    int *whole;               /* inner: in which kernel that runs as a whole or not at all, from 1 on; 0: in none */
    int wholes;
    bool *apart; /* by such a kernel: it does not run, each of its parts does */
};
/* The bodies of a node of control flow, for their price; written by src/plan/cost/control_flow.c when first asked for. */
struct space_bodies {
    const struct node *node;
    struct space **body;
};
struct space {
    struct arena *arena;
    struct arena *tmp; /* of what is tried at one node: assignments, strategies; the same as arena but in space_spread */
    struct graph *g;
    const struct options *options;
    struct plan *plan;
    int ranks;
    const struct shares *shares, *room_shares; /* by the speeds of ranks, by their memory; NULL: they are equal */
    /* The graph: who makes and reads what, and by which rule. */
    struct dim_roles *roles; /* of the graph's dimensions; NULL: a lowering alone */
    struct rule **rule;      /* by node position; NULL: no row or no rule, replicated */
    struct place_uses *uses; /* by value id */
    int *producer;           /* by value id: node position, -1 input or constant */
    bool *weight;            /* by value id: a constant, or a constant moved about */
    bool *head_size;         /* by class: no candidate is carried there, unless a plan file asks for one */
    /* What may be chosen. */
    struct candidates (*candidates)[MAX_RANK]; /* by value id */
    struct strategies *strategies;             /* by node position: those that constraints leave */
    struct strategies *offered;                /* by node position: the same before constraints */
    unsigned *partial;                         /* by value id: bits of the reductions by which it can be left partial */
    int *around;                               /* by node position: how many candidates touched it when it was last visited */
    const bool *finite;                        /* by value id: it holds no mask; strategy.c */
    struct space_sequence sequence;
    struct space_limits limits;
    struct space_chosen chosen;
    struct space_experts experts;
    struct space_sizes sizes;
    struct space_fused fused;
    VEC(struct space_bodies) bodies;
    struct names *names; /* when first asked for: space_names */
};

/* What a glob names in the graph of the space (plan/facts/facts.h). */
struct names *space_names(struct space *);

/* candidate.c: candidates to a fixpoint, strategies of every node. */
struct space *space_new(struct arena *, struct graph *, const struct options *, struct plan *);
/* Adds a candidate; false when it was there (or splits nothing). */
bool space_add(struct space *, const struct value *, int d, struct candidate);
/* Carries candidates wherever rules carry them, and makes the strategies of all nodes again. */
void space_spread(struct space *);
/* Can the value be left partial by this reduction? */
static inline bool space_partial(const struct space *s, const struct value *v, enum redop op)
{
    return s->partial[v->id] >> op & 1;
}
/* The placement in which a chosen plan reads a value at one of its uses. */
struct placement space_read_as(const struct space *, struct place_use);
/* All placements of S or R that a value may have (graph inputs, constants). Returns the count. */
int space_placements(struct space *, const struct value *, struct placement **out);

/* shares.c: finds the shares of a space. The split of n indices by speeds, even where there are none; and the splits that are candidates
 * where one of n indices is, the even one first: how many. */
enum { SHARE_FORMS = 3 };
void shares_find(struct space *);
const struct split *shares_split(struct space *, const struct dim *n);
int shares_splits(struct space *, const struct dim *n, const struct split *out[SHARE_FORMS]);
/* Do ranks differ in speed, or in what they may hold? */
bool shares_are_unequal(const struct space *);

/* assignment.c: the assignments that give dimension d of an operand or result the split s. In the space's tmp. */
struct assignments {
    VEC(struct assignment) list;
};
/* No factor split. */
struct assignment assignment_none(struct space *, const struct rule *);
struct assignments assignment_list(struct space *, int node, bool result, int i, int d, const struct split *s);
/* Choices met at one node: its operands suggest the same ones, and a node may have thousands of operands. True the first time. */
struct tried {
    struct assignments by_sequence[2];
};
bool assignment_is_new(struct space *, int node, struct tried *, const struct assignment *, bool sequence);

/* strategy.c: the strategies of nodes that have none, of stale ones and of those with operands that became partial, or ceased to be. */
void strategy_build_all(struct space *, const bool *stale);
/* Of a node with a rule: all replicated; some operands partial; by an assignment, unless that is not legal; *why, if not NULL, is the
 * reason. */
struct strategy strategy_replicated(struct arena *, const struct node *, const struct rule *);
struct strategy strategy_partial(struct arena *, const struct node *, const struct rule *, const struct rule_pass *);
bool strategy_assigned(struct arena *, struct graph *, const struct node *, const struct rule *, int ranks, const struct assignment *,
                       struct strategy *out, const char **why);
/* The last of a node of the space, in its tmp; sequence: the split runs along one. */
bool strategy_projects(struct space *, int node, const struct assignment *, bool sequence, struct strategy *out, const char **why);
/* A candidate that gave no strategy of the node: an assignment, and why it is not legal. why NULL: a split of dimension dim of value that
 * no assignment gives. */
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
/* Is any operand or result sharded or partial? */
bool strategy_splits(const struct node *, const struct strategy *);
char *strategy_str(struct arena *, const struct node *, const struct strategy *);
/* The same without the splits: "R S(1;*) -> S(2;*)". */
char *strategy_outline(struct arena *, const struct node *, const struct strategy *);
/* Why the node can only be replicated; NULL: it has a rule. */
const char *strategy_missing(const struct space *, int node);

/* experts.c: experts that are nodes of their own, and what is theirs. */
void experts_find(struct space *);
/* Dealt: each is all of one rank's, of the ranks in turn. What the rank that has most has of all of them. */
double experts_dealt_share(const struct space *, int expert);
/* May a split by which an expert is dealt not be carried on to this value, for that is no expert's? Others would have it from there. */
bool experts_end_at(struct space *, const struct node *, const struct value *, const struct split *);
/* The split by which the expert of a value is dealt: one rank has all of the dimension. NULL: it is no expert's, the size is not known, or
 * it costs no less than the even split. */
const struct split *experts_dealt_split(struct space *, const struct value *, int d, const struct split *even);

/* sequence.c: marks the dimensions that --sp splits and seeds them at the results of row-split products. */
void sequence_seed(struct space *);
/* For the report, of a chosen plan under --sp=auto: how much of it is split along a sequence. */
void sequence_note_chosen(struct space *);
/* By class: the split of a sequence, or of rows with one inside (NULL: it is neither); whether --sp splits it; whether windows slide over
 * it. */
struct sequence_rows {
    const struct split **split;
    bool *on, *slides;
};
/* sequence_window.c: seeds what windows slide over, as sequences. up: classes of dimensions. */
void sequence_seed_windows(struct space *, int *up, struct sequence_rows *);
bool sequence_has_windows(const struct space *);
/* sequence_pass.c: may a split along a sequence pass the node by this assignment? Products and barriers only where the sequence passes, and
 * as rows. */
bool sequence_passes(const struct space *, int node, const struct assignment *);
/* Lets them pass what makes the scores of mixtures whose rows can travel to their experts. */
void sequence_pass_routers(struct space *);

/* required_placement.c. Adds a required placement, given as text. One that can't be met (check: beside those before it, too) is a failure
 * that names the nearest placement that can. */
void required_add(struct space *, const char *where, const struct value *, const char *text, bool check);
/* The same of what the value is resharded to before it is read; a graph output may be taken elsewhere. */
void required_add_read(struct space *, const char *where, const struct value *, const char *text, bool check);
/* A text as a required placement of a value; one that is no placement, or of no dimension of it, is a failure. Does a placement meet it? */
struct required_placement required_parse(struct space *, const char *where, const struct value *, const char *text);
bool required_fits(const struct required_placement *, struct placement);
/* A candidate for a required split of a dimension that has none; true when it is new. split NULL: by shares. A dimension of run-time size
 * is split as --sp splits it, between products and not through them; so is, with sequence, every one. */
bool required_seed(struct space *, const struct value *, const struct required_placement *);
bool space_seed(struct space *, const struct value *, int d, const struct split *, bool sequence);
/* Candidates for all required placements; true when there are new ones. */
bool required_seed_all(struct space *);
bool space_allows(const struct space *, const struct value *, struct placement);
/* Placements that a value may have at its end of the graph, or be resharded to; those of them that the requirements leave; those that they
 * leave of what it is resharded to before it is read, none if nothing is required of that. */
struct places space_legal(struct space *, const struct value *);
struct places space_allowed(struct space *, const struct value *);
struct places space_read_places(struct space *, const struct value *);
/* Is it an end of a state? */
bool space_state(const struct space *, const struct value *);
/* In full, or as short as the text that it replaces: "S(1)". */
const char *required_like(struct arena *, const char *like, struct placement);

#endif
