/* plan: what may be split, what it costs, what is best: the options, the plan, and the way from one to the other. */
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
/* What connects units of so many ranks: ranks of a socket, sockets of a machine, machines of a rack. Of a level, all units are alike. */
struct link {
    double ranks, unit_bandwidth; /* of a unit; out of it. Level 0 connects ranks: 1, and no limit */
    double bandwidth, slowdown[LINK_SIZES], latency, overhead, reduce_seconds;
};
struct machine { /* machine.c: schemas/prices.def; the reference profile, or a file from tpc-run --calibrate */
    const char *name;
#define PRICE(key, ...) double key;
#define SHARED(key, ...) double key, machine_##key; /* of one rank while the others are idle; of all ranks of a machine at once */
#define CONSTANT(key, ...) double key;
#include "schemas/prices.def"
    struct link level[LINK_LEVELS]; /* from the inside out; the last one connects as many units as there are */
    int levels;
    int speeds;            /* ranks whose speed is known, relative to the numbers of the profile; 0: all are alike */
    const double *speed;   /* by rank */
    int memories;          /* ranks whose memory is known; 0: no rank's is */
    const int64_t *memory; /* by rank: bytes that it may hold */
    uint64_t assumed;      /* by number (schemas/prices.def): the reference's, and not measured */
    bool tells;            /* the profile says which are */
    double waited;         /* the share of the time that ranks waited for a core while it was measured */
    enum wire wire;        /* --wire: what float32 addends become between machines */
};
struct workload {
    struct bindings dims;
    double weight;
    const char *text, *assumed;        /* its sizes; those that nobody gave, by name, or "sizes": all. NULL: none */
    double seconds, unsharded_seconds; /* of one step, predicted by the pass choose */
    double overlapped;                 /* of these, what overlapping sums save: the pass overlap */
};

/* One step on all ranks. */
static inline double plan_step_seconds(const struct workload *w)
{
    return w->seconds - w->overlapped;
}

/* ---- options (filled by the command line) ---------------------------------------------------------------------------- */
/* What the backward half of training computes again; AUTO: all, if only then a plan keeps --memory. */
enum recompute { RECOMPUTE_AUTO, RECOMPUTE_NONE, RECOMPUTE_FULL };
struct options {
    int ranks;  /* of a stage */
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
    const char
        *configuration; /* --configuration: whose annotations to follow; "": nobody's; NULL: that for as many devices, if there is one */
    const char *train, *freeze; /* --train, --freeze: globs over weights; NULL: not asked */
    const char *loss;           /* --loss: what is minimised; NULL: cross entropy */
    struct {
        int64_t rank; /* 0: no adapters */
        double alpha;
        const char *on;        /* --on: globs over products; NULL: those that make no output */
    } lora;                    /* --lora */
    enum recompute recompute;  /* --recompute */
    enum dtype weights;        /* --weights: the type that large f32 weights are stored in; DT_NONE: their own */
    VEC(const char *) compare; /* --compare: "first", "none" or a plan file */
    const char *explain;       /* --explain: a name; NULL: not asked */
    const char *annotate;      /* --annotate: the file to write; NULL: none */
    const char *trace;         /* --trace: a run that --report html compares with the plan; NULL: none */
    bool price;                /* the report lists what every strategy costs */
    bool equal_shares;         /* splits are as for ranks of equal speed and memory, whatever these are */
    bool compare_equal;        /* the report says what such splits take */
    bool solver_first, dry_run, force;
    bool part; /* the graph is a stage: a constraint of --plan may name what is in another */
    enum strict strict;
    int64_t memory;             /* --memory: most bytes that any rank may hold (src/plan/facts/limits.c); 0: no limit */
    const char *out, *model;    /* folder to write, model file */
    struct file_digest *digest; /* of the model file, for plan_json */
    struct folder *folder;      /* the model is the source of this emitted folder; NULL: it is a file by itself */
    /* Test hook: forces strategies by a seed (random legal plans); 0: off. random_split_only: only among those that split. */
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
/* Bytes of one rank: weights, of them tables that are only looked up in (their pages stay in the file until read), state at its largest
 * workload, activations at their peak (the slab without the state), blocks that collectives pack. */
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
}; /* of a kind of collective: nodes; payload of one rank per step, by workload */
struct kind_uses {
    VEC(struct kind_use) list;
};
/* What a plan chose, by name: placements of weights, strategies of nodes; values that are resharded, and by which collectives. */
struct choices {
    struct named_list weights, nodes, collectives;
};
/* Of a rank, where speeds differ: relative to the profile's numbers; its part of all that is computed, at one speed; and what that takes it
 * per weighted step. */
struct rank_time {
    double speed, share, seconds;
};
struct compared {          /* what a plan comes to (--compare) */
    const char *name;      /* first, none, or the plan file */
    double seconds, *step; /* of a weighted step; by workload */
    struct kind_uses kinds;
    int64_t weights, memory;       /* bytes on the fullest rank; memory: with state, activations and blocks */
    int fullest;                   /* the rank that fills most of what it may hold */
    bool fits;                     /* no rank holds more than it may */
    const struct choices *choices; /* NULL: not kept */
};
struct compared_list {
    VEC(struct compared) list;
};
/* What the cheapest plan for another number of ranks comes to; its name: the option that it takes, or "". */
struct other_ranks {
    int ranks;
    struct compared plan;
};
struct other_ranks_list {
    VEC(struct other_ranks) list;
};
/* Seconds a step of a strategy of a node and of the reshards around it; -1: no reshard leads there. barred: by the plan file. */
struct alternative {
    const char *outline;
    double node, around;
    bool chosen, barred;
};
struct alternative_list {
    VEC(struct alternative) list;
    bool mixes; /* the node multiplies activations */
};
/* For the page (plan_price): the graph as it was planned, what its nodes could be instead, and which dimensions are heads. */
struct alternatives {
    struct graph *graph;
    struct alternative_list *node; /* by position; of layers that are alike, for the first one */
    int *class;                    /* dim_class.c */
    bool *head;                    /* by class */
};
/* A part of the predicted step, in the order in which a rank comes to it: a node of the canonical graph, or a reshard of a value. */
struct step_part {
    const char *name;   /* of the node, or of the value */
    const char *into;   /* a node that runs inside a kernel: that whose result the kernel leaves; NULL: it has one, or needs none */
    const char *to;     /* a reshard: the placement that it leads to; NULL: a node */
    enum collective by; /* a reshard: the collective; COLL_NONE: a slice */
    int node;           /* position of the node, or of the first that reads the reshard; as many as there are: an output takes it */
    int layer;          /* number in step_parts.layer; -1: in none */
    uint64_t digest;    /* of what it is, names aside: the same node or reshard, placed alike */
    double *seconds, *unsharded; /* by workload; of all ranks, and of one alone */
};
/* layer[i]: the first layer whose parts are like those of layer i, one by one: names aside, the same nodes placed alike. */
struct step_parts {
    VEC(struct step_part) list;
    VEC(int) layer;
};
/* Of plans whose time is within PLAN_NEAR of the least, the one that was chosen has the fewest collectives and bytes (choose_near.c). */
#define PLAN_NEAR 0.001
struct near_choice {
    int64_t collective_price; /* picoseconds over all workloads that a collective costs beside its time, which led to the plan */
    double byte_price;        /* and reads of a resident byte per step */
    bool searched;
    double more; /* collectives, or bytes that count as these, by which the plan may have more than another of these */
};
struct weight_count {
    int weights;
    double numbers; /* in all of them */
};
/* Limits over time instead of the price of a byte (room.c). Values of the problem's variables: one that is known to fit, those that are
 * known not to. */
struct plan_room {
    int64_t bytes; /* that a rank may hold at any time as they are counted; 0: no such limits */
    int n, sizes;  /* variables, and values of all together: of other problems nothing is known */
    const int *known;
    VEC(const int *) barred;
};
struct plan {
    int ranks;
    VEC(struct workload) workloads;
    const struct configuration *configuration;      /* the model's annotations that are followed; NULL: none */
    const char *sequence;                           /* symbol(s) split by --sp, and where under --sp=auto, for the report; NULL: none */
    double seconds, unsharded_seconds, lower_bound; /* per weighted step, predicted */
    double overlapped;                              /* of the seconds, as in struct workload */
    int64_t overlap_bytes;                          /* an AllReduce from this size on overlaps with compute; 0: none */
    struct rank_time *rank_time;                    /* by rank; NULL: all have one speed */
    const struct compared *equal;                   /* the best plan of equal shares; NULL: not looked for */
    struct step_parts step;                         /* what the seconds are made of */
    double first_seconds;                           /* the same of the first assignment that fits; 0: not looked for, or none */
    double first_resident;                          /* and its bytes, as in `resident` */
    bool proven;                                    /* no plan takes less by more than PLAN_NEAR */
    int64_t least;                                  /* no plan has a lower objective; at a byte_price none that holds as many bytes */
    int64_t objective;                              /* picoseconds over all workloads */
    struct near_choice near;                        /* how it was chosen of those that take nearly as long */
    struct space *space;                            /* what could have been chosen (space.h) */
    struct named_list nodes, read_places; /* as chosen: strategies of nodes; placements that values are resharded to before they are read */
    const char **state_placement;         /* by state of the graph, as text: what --state-from requires; NULL: nothing */
    struct alternatives *alternatives;    /* after plan_price */
    struct weight_count trained, trainable; /* of all weights that --train could have named; copies that are trained as one count once */
    VEC(struct planned_collective) collectives; /* filled by insert, in file order */
    VEC(const char *) warnings;                 /* for people */
    VEC(const char *) replicated;               /* "node (Op) and 3 more: why they are replicated" */
    int nreplicated;                            /* nodes that these are */
    double repeated_seconds;                    /* of a step, in nodes that no rank has a part of */
    struct missing_kernels missing;             /* where there are some, tpc-run refuses the plan, and no speed is claimed */
    struct rank_use *use, unsharded;            /* by rank, and of the graph before sharding; after the pass memory */
    double byte_price;           /* of --memory: holding a byte of weights or state costs reading it this many more times per step */
    const int64_t *memory_share; /* by rank: shares that keep --memory, which are candidates; NULL: none */
    struct plan_room room;
    int64_t counted;                /* that the fullest rank holds, as room.c counts */
    double combinations;            /* of strategies of nodes, that could have been chosen */
    const int *values;              /* what was chosen, of the problem's variables; as many as room.n says */
    int64_t fitting;                /* of --memory: no plan that fits has a lower objective */
    double resident;                /* bytes of weights and state that this price is paid for */
    double fastest_seconds;         /* per step, overlap counted, of the plan without the limit, where that does not fit; 0 */
    int64_t fastest_total;          /* and what its fullest rank holds */
    double memory_gap;              /* seconds per step that another plan within the limit may be better */
    struct other_ranks_list others; /* for the page; the first is one rank; none of a large graph */
    struct compared_list compared;  /* other plans of the graph, for the report; plan.json is written before there are any */
    const char *hash;               /* hex digest of plan.json, after the pass emit */
};

/* A weighted step on all ranks. */
static inline double plan_seconds(const struct plan *p)
{
    return p->seconds - p->overlapped;
}

/* choose.c: the space of plans of a graph, with what the constraints add to it, as plan->space; then the best of them, in the graph and the
 * plan. */
struct space *plan_space(struct arena *, struct graph *, const struct options *, struct plan *);
void plan_choose(struct space *);

#endif
