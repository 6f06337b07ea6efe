/* passes: the pipeline. passes.def lists it top to bottom; each pass has one entry point, void pass_NAME(struct compile *). */
#ifndef TPC_PASS_H
#define TPC_PASS_H

#include "op/canon/canon.h"
#include "plan/plan.h"

/* What holds of a compilation after a pass. ir/ir.h has those of a graph, which a file in text form states; these follow them. */
enum compile_property {
    PROP_GRAPH = 0xff, /* all of ir/ir.h */
    PROP_FOLDED = 1 << 8,
    PROP_WORKLOADS = 1 << 9,
    PROP_CONFIGURED = 1 << 10,
    PROP_SOURCE = 1 << 11,
    PROP_LIMITED = 1 << 12,
    PROP_COMPARED = 1 << 13,
    PROP_STORED = 1 << 14,
    PROP_CHOSEN = 1 << 15, /* the graph's nodes are those of plan->space */
    PROP_EXPLAINED = 1 << 16,
    PROP_ANNOTATED = 1 << 17,
    PROP_PRICED = 1 << 18,
    PROP_FUSED = 1 << 19,
    PROP_CUT = 1 << 20,
    PROP_MEASURED = 1 << 21,
    PROP_EMITTED = 1 << 22,
    PROP_KERNELS = 1 << 23
};

struct compile {
    struct arena *arena;
    struct graph *graph;           /* what the next pass works on */
    const struct options *options; /* of tpc-shard; NULL in tpc-run */
    struct plan *plan;             /* NULL in tpc-run */
    unsigned properties;           /* enum compile_property, kept by the pass manager */
    struct graph **rank_graphs;    /* after localize: one per rank */
    struct graph *source;          /* after keep_source */
    const char *model_path;
    struct folders external_roots;    /* --external-root */
    const struct bound_inputs *fixed; /* --bind; NULL: nothing */
    bool deterministic;               /* of tpc-run: fusions that change no bit, and sums complete where they are made */
    bool split_outputs;               /* of tpc-run: outputs are wanted as the ranks hold them */
    const char *text;                 /* what the file holds if it is a graph in text form; NULL: ONNX */
    struct compared_list compared;    /* after compare */
};
#define PASS(name, purpose, needs, gives, breaks) void pass_##name(struct compile *);
#include "passes/passes.def"
#undef PASS
struct pass {
    const char *name, *purpose;
    void (*run)(struct compile *);
    unsigned needs, gives, breaks;
};
/* rows.c: the list, in its order, ended by a row without a name. */
extern const struct pass pass_rows[];
/* What the pass needs and `have` lacks. */
unsigned pass_lacks(const struct pass *, unsigned have);
/* The properties that hold after the pass. */
unsigned pass_after(const struct pass *, unsigned have);
/* Runs the passes from first to last (names, inclusive), verifying after each; dump_after: print the text form to stdout there. */
void pass_run(struct compile *, const char *first, const char *last, const char *dump_after);
/* The same of one pass, in any order that its needs allow. */
void pass_run_one(struct compile *, const struct pass *);

/* keep_source.c: a compilation that plans a copy of the source again, for the same workloads, from weight_dtype on. */
struct compile pass_copy_compile(const struct compile *first, struct arena *, const struct options *, struct plan *);

/* memory.c: what each of `ranks` ranks would hold of a graph that is not localized; an estimate, for it may fuse what a rank cannot. */
void memory_estimate(const struct compile *, const struct graph *, int ranks, struct rank_use *out);

#endif
