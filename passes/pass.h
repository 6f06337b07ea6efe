/* passes: the pipeline. passes.def lists it top to bottom; each pass has one entry point, void pass_NAME(struct compile *). */
#ifndef TPC_PASS_H
#define TPC_PASS_H

#include "op/op.h"

struct compile {
    struct arena *arena;
    struct graph *graph;           /* what the next pass works on */
    const struct options *options; /* plan/plan.h: of tpc-shard; NULL in tpc-run */
    struct plan *plan;             /* plan/plan.h; NULL before choose and in tpc-run */
    struct graph **rank_graphs;    /* after localize: one per rank */
    struct graph *source;          /* copy of the canonical graph, taken before choose, to compare with; NULL in tpc-run */
    const char *model_path;
    struct folders external_roots; /* --external-root */
    const struct fixed *fixed;     /* --bind; NULL: nothing */
    bool deterministic;            /* of tpc-run: fusions that change no bit, and sums complete where they are made */
    bool split_outputs;            /* of tpc-run: outputs are wanted as the ranks hold them */
    const char *text;              /* what the file holds where it is a graph in text form; NULL: ONNX */
};
#define PASS(name, purpose, needs, gives, breaks) void pass_##name(struct compile *);
#include "passes/passes.def"
#undef PASS
struct pass {
    const char *name, *purpose;
    void (*run)(struct compile *);
    unsigned needs, gives, breaks;
};
const struct pass *pass_list(int *n);
/* Runs the passes from first to last (names, inclusive), verifying after each; dump_after: print the text form to stdout there. */
void pass_run(struct compile *, const char *first, const char *last, const char *dump_after);

#endif
