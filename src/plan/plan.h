/* plan: what may be split, what it costs, what is best. Services of the passes choose, insert and fuse. */
#ifndef TPC_PLAN_H
#define TPC_PLAN_H

#include "op/op.h"

/* ---- options (filled by the command line) ---------------------------------------------------------------------------- */
enum sp_mode { SP_OFF, SP_ON, SP_AUTO };
struct machine {                     /* machine.c: the shipped reference profile, or a file from tpc-run --calibrate */
    const char *name;
    double flops, memory_bandwidth, link_bandwidth;      /* per second, bytes per second */
    double hop_latency, collective_overhead;             /* seconds */
    double elementwise_share;        /* part of its bytes that a fused elementwise op costs */
    double weight_price;             /* holding a weight byte costs reading it so many times per step */
};
struct workload { struct bindings dims; double weight; const char *text; };
struct options {
    int ranks;
    enum sp_mode sp;
    const char *sp_symbol;           /* restricts --sp to one dimension; NULL: every one that qualifies */
    struct bindings dims;            /* --dim */
    VEC(const char *) workload;      /* --workload texts as given; empty: the default */
    struct machine machine;
    bool solver_first, dry_run, force;
    const char *out, *model;         /* folder to write, model file */
    /* Test hook: forces strategies by a seed (random legal plans); 0: off. force_whole_never: only among non-whole ones. */
    uint64_t random_seed;
    bool random_split_only;
    const char *force_file;          /* lines "node-name-glob<TAB>strategy text": strategies forced; NULL: none */
};
struct machine machine_reference(void);
/* JSON; unknown or missing keys are failures. */
struct machine machine_read(const char *path);

/* ---- strategies ---------------------------------------------------------------------------------------------------------- */
struct strategy {
    struct placement *in, *out;      /* what the node wants of each operand, how it leaves each result */
    struct choice choice;            /* the split factors; none: whole or partial */
    bool lowered;                    /* the choice needs the row's lowering */
};

/* ---- the plan, as reported and written to plan.json ------------------------------------------------------------------------ */
struct collective { const char *op; const struct value *value; int axis; const char *reason; const struct node *node; };
struct plan {
    int ranks;
    VEC(struct workload) workloads;
    const char *sequence;            /* symbol(s) split by --sp, for the report; NULL: none */
    double seconds, unsharded_seconds, lower_bound;   /* per weighted step, predicted */
    bool proven;
    int64_t objective;               /* what the solver minimised, picoseconds over all workloads, weight price included */
    struct space *space;             /* what could have been chosen (space.h) */
    VEC(struct collective) collectives;   /* filled by insert, in file order */
    VEC(const char *) warnings;      /* for people */
    VEC(const char *) whole;         /* "node (Op): why it stays whole" */
};

/* payload.c: bytes that one rank (the one that holds most) puts into a collective node, under a workload. */
int64_t cost_payload(struct alg *, const struct node *, const struct bindings *, int ranks);

/* reshard.c: what turns one placement into another; the name of the collective, or NULL for a local step. */
const char *reshard_name(struct placement from, struct placement to);
bool reshard_possible(const struct type *, struct placement from, struct placement to);

/* state.c: past/present pairs by dataflow; role of symbols. */
void plan_find_states(struct graph *);

#endif
