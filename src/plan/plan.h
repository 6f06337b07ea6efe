/* plan: what may be split, at what cost, and which plan is best: the options, the plan, and the steps between them. */
#ifndef TPC_PLAN_H
#define TPC_PLAN_H

#include "ir/configuration.h"
#include "op/analysis/analysis.h"
#include "op/canon/canon.h"

#define COST_NEVER (INT64_MAX / 4) /* picoseconds: a combination that is not allowed */
static inline int64_t cost_plus(int64_t a, int64_t b)
{
    return a >= COST_NEVER - b ? COST_NEVER : a + b;
}
enum { PLAN_VERSION = 1 };
enum sp_mode { SP_OFF, SP_ON, SP_AUTO };
enum strict { STRICT_OFF, STRICT_ON, STRICT_WARN };          /* of unrequested communication */
enum { LINK_SIZES = 5, LINK_LEAST = 1024, LINK_GROWTH = 4 }; /* messages of 1, 4, 16, 64 and 256 KiB; from 1 MiB on the bandwidth holds */
enum { LINK_LEVELS = 8 };
/* A link that connects this many units: ranks of a socket, sockets of a machine, machines of a rack. All units of a level are alike. */
struct link {
    double ranks, unit_bandwidth; /* of one unit, to the outside. Level 0 connects ranks: 1, and no limit */
    double bandwidth, slowdown[LINK_SIZES], latency, overhead, reduce_seconds;
};
struct machine { /* machine.c: prices of schemas/prices.def; the reference profile, or a file from tpc-run --calibrate */
    const char *name;
#define PRICE(key, ...) double key;
#define SHARED(key, ...) double key, machine_##key; /* of one rank while the others are idle; of all ranks of a machine together */
#define CONSTANT(key, ...) double key;
#include "schemas/prices.def"
    struct link level[LINK_LEVELS]; /* from the inside out; the last one connects all units */
    int levels;
    int speeds;            /* ranks whose speed is given, relative to the profile; 0: all are equal */
    const double *speed;   /* by rank */
    int memories;          /* ranks whose memory is given; 0: none */
    const int64_t *memory; /* by rank: its limit in bytes */
    uint64_t assumed;      /* bits by number (schemas/prices.def): taken from the reference, not measured */
    bool tells;            /* the profile says which prices are assumed */
    double waited;         /* fraction of the time that ranks waited for a core during the measurement */
    bool fast;             /* products round to bf16, as with tpc-run --fast: weights are read in half the bytes */
    enum wire wire;        /* --wire: type of float32 addends between machines */
};
struct workload {
    struct bindings dims;
    double weight;
    const char *text, *assumed;        /* its sizes; names of the assumed sizes, or "sizes": all. NULL: none */
    double seconds, unsharded_seconds; /* of one step, predicted by the pass choose */
    double overlapped;                 /* seconds that overlapping sums save: the pass overlap */
};

/* One step on all ranks. */
static inline double plan_step_seconds(const struct workload *w)
{
    return w->seconds - w->overlapped;
}

/* ---- options (filled by the command line) ---------------------------------------------------------------------------- */
/* Values that training recomputes in the backward pass; AUTO: all, if no plan keeps --memory otherwise. */
enum recompute { RECOMPUTE_AUTO, RECOMPUTE_NONE, RECOMPUTE_FULL };
struct options {
    int ranks;  /* per stage */
    int stages; /* --pp: 0, or more than one */
    enum sp_mode sp;
    const char *sp_symbol;        /* restricts --sp to one dimension; NULL: every one that qualifies */
    struct bindings dims;         /* --dim */
    struct bound_inputs fixed;    /* --bind */
    struct text_list kept_inputs; /* --keep-input */
    VEC(const char *) workload;   /* --workload texts as given; empty: the default */
    struct machine machine;
    const struct plan_file *plan_file;   /* --plan; NULL: none */
    const struct other_plan *state_from; /* --state-from; NULL: none */
    const char *configuration; /* --configuration: whose annotations to follow; "": none; NULL: the one for this number of devices, if there
                                * is one */
    const char *train, *freeze; /* --train, --freeze: globs over weights; NULL: not asked */
    const char *loss;           /* --loss: what is minimised; NULL: cross entropy */
    struct {
        int64_t rank; /* 0: no adapters */
        double alpha;
        const char *on;        /* --on: globs over products; NULL: all but those that make outputs */
    } lora;                    /* --lora */
    enum recompute recompute;  /* --recompute */
    enum dtype weights;        /* --weights: the stored type of large f32 weights; DT_NONE: unchanged */
    VEC(const char *) compare; /* --compare: "first", "none" or a plan file */
    const char *explain;       /* --explain: a name; NULL: not asked */
    const char *annotate;      /* --annotate: the file to write; NULL: none */
    const char *trace;         /* --trace: a run that --report html compares with the plan; NULL: none */
    bool price;                /* the report lists the cost of every strategy */
    bool equal_shares;         /* split as for ranks of equal speed and memory */
    bool compare_equal;        /* the report compares with equal shares */
    bool solver_first, dry_run, force;
    bool part; /* the graph is a stage: a constraint of --plan may name nodes of another */
    enum strict strict;
    int64_t memory;             /* --memory: limit in bytes for every rank (src/plan/facts/limits.c); 0: no limit */
    const char *out, *model;    /* folder to write, model file */
    struct file_digest *digest; /* of the model file, for plan.json */
    struct folder *folder;      /* the emitted folder whose source the model is; NULL: an ordinary file */
    /* Test hook: forces strategies by a seed (random legal plans); 0: off. random_split_only: only strategies that split. */
    uint64_t random_seed;
    bool random_split_only;
};

/* ---- the plan, as reported and written to plan.json ------------------------------------------------------------------ */
struct named {
    const char *name, *text;
};
struct named_list {
    VEC(struct named) list;
};
/* Bytes of one rank: weights, including tables that are only looked up in (their pages stay in the file until read); state at its largest
 * workload; activations at their peak (the slab without the state); blocks that collectives pack. */
struct rank_use {
    int64_t weights, tables, state, peak, blocks;
    int weight, value; /* value ids of the largest weight and the largest activation; -1: none */
};
struct planned_collective {
    enum collective kind;
    const struct value *value;
    int axis;
    const char *reason;
    const struct node *node;
};
struct kind_use {
    enum collective kind;
    int count;
    double *bytes;
}; /* per kind of collective: nodes; payload of one rank per step, by workload */
struct kind_uses {
    VEC(struct kind_use) list;
};
/* The choices of a plan, by name: placements of weights, strategies of nodes, resharded values with their collectives. */
struct choices {
    struct named_list weights, nodes, collectives;
};
/* Of a rank, if speeds differ: its relative speed; its share of all computation; its seconds per weighted step. */
struct rank_time {
    double speed, share, seconds;
};
struct compared {          /* a plan that --compare names, and its figures */
    const char *name;      /* first, none, or the plan file */
    double seconds, *step; /* of a weighted step; by workload */
    struct kind_uses kinds;
    int64_t weights, memory;       /* bytes on the fullest rank; memory: with state, activations and blocks */
    int fullest;                   /* the rank with the largest memory relative to its limit */
    bool fits;                     /* no rank exceeds its limit */
    const struct choices *choices; /* NULL: not kept */
};
struct compared_list {
    VEC(struct compared) list;
};
/* The cheapest plan for another number of ranks; its name: the option for it, or "". */
struct other_ranks {
    int ranks;
    struct compared plan;
};
struct other_ranks_list {
    VEC(struct other_ranks) list;
};
/* Seconds per step of a strategy of a node and of the reshards around it; -1: no reshard leads there. barred: by the plan file. */
struct alternative {
    const char *outline;
    double node, around;
    bool chosen, barred;
};
struct alternative_list {
    VEC(struct alternative) list;
    bool mixes; /* the node multiplies activations */
};
/* For the HTML page (plan_price): the planned graph, the alternatives of its nodes, and which dimensions are heads. */
struct alternatives {
    struct graph *graph;
    struct alternative_list *node; /* by position; for equal layers, of the first one */
    int *class;                    /* dim_class.c */
    bool *head;                    /* by class */
};
/* A part of the predicted step, in execution order: a node of the canonical graph, or a reshard of a value. */
struct step_part {
    const char *name;            /* of the node, or of the value */
    const char *into;            /* a fused node: the node whose result its kernel stores; NULL: it has its own kernel, or needs none */
    const char *to;              /* a reshard: its target placement; NULL: a node */
    enum collective by;          /* a reshard: the collective; COLL_NONE: a slice */
    int node;                    /* position of the node, or of the reshard's first reader; number of nodes: an output reads it */
    int layer;                   /* number in step_parts.layer; -1: none */
    uint64_t digest;             /* digest without names: equal for the same node or reshard with the same placement */
    double *seconds, *unsharded; /* by workload; of all ranks, and of one rank alone */
};
/* layer[i]: the first layer whose parts equal those of layer i, except for names. */
struct step_parts {
    VEC(struct step_part) list;
    VEC(int) layer;
};
/* Among plans within PLAN_NEAR of the least time, the chosen one has the fewest collectives and bytes (choose_near.c). */
#define PLAN_NEAR 0.001
struct near_choice {
    int64_t collective_price; /* picoseconds over all workloads added per collective to find this plan */
    double byte_price;        /* added reads per step of each resident byte */
    bool searched;
    double more; /* collectives, or bytes counted as such, by which this plan may exceed the best of them */
};
struct weight_count {
    int weights;
    double numbers; /* in all of them */
};
/* Limits over time instead of a byte price (room.c). Values of the problem's variables: an assignment known to fit, and those known not
 * to. */
struct plan_room {
    int64_t bytes; /* limit of a rank at any time, in room.c's count; 0: no such limits */
    int n, sizes;  /* variables, and the sum of their domain sizes, which identify the problem */
    const int *known;
    VEC(const int *) barred;
};
struct plan {
    int ranks;
    VEC(struct workload) workloads;
    const struct configuration *configuration;      /* the model's annotations in use; NULL: none */
    const char *sequence;                           /* symbol(s) that --sp splits, and under --sp=auto where, for the report; NULL: none */
    double seconds, unsharded_seconds, lower_bound; /* per weighted step, predicted */
    double overlapped;                              /* seconds saved by overlap, as in struct workload */
    double fast_seconds;                            /* seconds where products round to bf16 (tpc-run --fast); 0: no gain */
    int64_t overlap_bytes;                          /* an AllReduce from this size on overlaps with compute; 0: none */
    struct rank_time *rank_time;                    /* by rank; NULL: all speeds are equal */
    const struct compared *equal;                   /* the best plan with equal shares; NULL: not computed */
    struct step_parts step;                         /* the parts of the seconds */
    double first_seconds;                           /* seconds of the first assignment that fits; 0: not computed, or none */
    double first_resident;                          /* and its bytes, as in `resident` */
    bool proven;                                    /* no plan is faster by more than PLAN_NEAR */
    int64_t least;                                  /* no plan has a lower objective; with a byte_price, none that holds as many bytes */
    int64_t objective;                              /* picoseconds over all workloads */
    struct near_choice near;                        /* how it was chosen among nearly equal plans */
    struct space *space;                            /* the choices (space.h) */
    struct named_list nodes, read_places;           /* as chosen: strategies of nodes; placements of values before they are read */
    const char **state_placement;                   /* by state of the graph, as text: what --state-from requires; NULL: nothing */
    struct alternatives *alternatives;              /* after plan_price */
    struct weight_count trained, trainable;         /* of all weights that --train could name; shared copies count once */
    VEC(struct planned_collective) collectives;     /* filled by insert, in file order */
    VEC(const char *) warnings;                     /* for the user */
    VEC(const char *) replicated;                   /* "node (Op) and 3 more: why they are replicated" */
    int nreplicated;                                /* number of these nodes */
    double repeated_seconds;                        /* seconds per step in nodes that every rank repeats */
    struct missing_kernels missing;                 /* if there are any, tpc-run refuses the plan, and no speed is claimed */
    struct rank_use *use, unsharded;                /* by rank, and of the graph before sharding; after the pass memory */
    double byte_price;                              /* of --memory: the price of a byte of weights or state, as further reads per step */
    const int64_t *memory_share;                    /* by rank: shares that keep --memory, used as candidates; NULL: none */
    struct plan_room room;
    int64_t counted;                /* bytes of the fullest rank, in room.c's count */
    double combinations;            /* number of combinations of strategies */
    const int *values;              /* the chosen values of the problem's variables; room.n of them */
    int64_t fitting;                /* of --memory: no plan that fits has a lower objective */
    double resident;                /* bytes of weights and state at this price */
    double fastest_seconds;         /* per step, with overlap, of the best plan without the limit, if that does not fit; else 0 */
    int64_t fastest_total;          /* bytes of its fullest rank */
    double memory_gap;              /* seconds per step by which an unknown plan within the limit may be better */
    struct other_ranks_list others; /* for the HTML page; the first is one rank; empty for large graphs */
    struct compared_list compared;  /* other plans of the graph, for the report; filled after plan.json is written */
    const char *hash;               /* hex digest of plan.json, after the pass emit */
};

/* A weighted step on all ranks. */
static inline double plan_seconds(const struct plan *p)
{
    return p->seconds - p->overlapped;
}

/* choose.c: builds the space of plans of a graph, including the candidates of constraints, as plan->space; then chooses the best plan into
 * the graph and the plan. */
struct space *plan_space(struct arena *, struct graph *, const struct options *, struct plan *);
void plan_choose(struct space *);

#endif
