/* passes: the pipeline. passes.def lists it from top to bottom. Each pass has one entry point, void pass_NAME(struct compile *). */
#ifndef TPC_PASS_H
#define TPC_PASS_H

#include "lower/lower.h"
#include "op/canon/canon.h"
#include "plan/plan.h"
#include "plan/stages/stages.h"

/* Properties of a compilation. A pass needs, gives and breaks some. The lowest byte holds the properties of a graph (ir/ir.h), which a
 * file in text form states. */
enum compile_property {
    PROP_GRAPH = 0xff, /* all of ir/ir.h */
    PROP_FOLDED = 1 << 8,
    PROP_WORKLOADS = 1 << 9,
    PROP_CONFIGURED = 1 << 10,
    PROP_SOURCE = 1 << 11,
    PROP_LIMITED = 1 << 12,
    PROP_COMPARED = 1 << 13,
    PROP_STORED = 1 << 14,
    PROP_CHOSEN = 1 << 15, /* the graph's nodes are those that plan->space lists */
    PROP_EXPLAINED = 1 << 16,
    PROP_ANNOTATED = 1 << 17,
    PROP_PRICED = 1 << 18,
    PROP_FUSED = 1 << 19,
    PROP_CUT = 1 << 20,
    PROP_MEASURED = 1 << 21,
    PROP_EMITTED = 1 << 22,
    PROP_KERNELS = 1 << 23,
    PROP_GRADIENTS = 1 << 24,
    PROP_OVERLAPPED = 1 << 25,
    PROP_STAGED = 1 << 26,
    PROP_ADAPTED = 1 << 27,
    /* A pass that gives only these does not change the graph: it is not verified again. */
    PROP_READ_ONLY = PROP_WORKLOADS | PROP_CONFIGURED | PROP_SOURCE | PROP_LIMITED | PROP_COMPARED | PROP_EXPLAINED | PROP_ANNOTATED |
        PROP_PRICED | PROP_OVERLAPPED | PROP_STAGED
};

/* Equates sizes of a graph's inputs with known ones. state NULL: none are known. */
struct size_source {
    void (*state)(const void *data, struct graph *);
    /* The value of an input, for load_options.bound; NULL: unknown. */
    const char *(*held)(const void *data, struct arena *, const char *input, bool tensor);
    /* For load_options.given; NULL: no input that has an initializer. */
    bool (*given)(const void *data, struct arena *, const char *input);
    const void *data;
};
/* After the pass stages, with --pp: each stage is compiled by itself, until its ranks' graphs are ready to be written. */
struct staged {
    int n; /* 0: no stages */
    struct compile *at;
    struct stage_plan *plan;
};
struct compile {
    struct arena *arena;
    struct graph *graph;           /* the next pass works on it */
    const struct options *options; /* options of tpc-shard; NULL in tpc-run */
    struct plan *plan;             /* NULL in tpc-run */
    unsigned properties;           /* enum compile_property; set by the pass manager */
    bool plans_only;               /* no rank's graph is written or printed */
    struct graph **rank_graphs;    /* after localize: one per rank; plans_only: NULL except for the first of equal ranks */
    const int *alike;              /* after localize: by rank, the first rank whose graph differs only in the rank number */
    struct graph *source;          /* after keep_source */
    const char *model_path;
    struct folders external_roots;    /* --external-root */
    const struct bound_inputs *fixed; /* --bind; NULL: nothing */
    struct size_source sizes;         /* tpc-run: from the inputs, if sizes decide a form */
    struct lower_options lower;       /* tpc-run: its options that change what runs */
    bool prints;                      /* --print: the graph is only printed, so it may hold what tpc-run makes */
    const char *text;                 /* the file, if it is a graph in text form; NULL: ONNX */
    const char *part;                 /* in a model with stages, "stage 1 on "; NULL: the whole model */
    struct compared_list compared;    /* after compare */
    struct staged stages;
    struct pass_record *record; /* for -v; NULL: no report */
};
#define PASS(name, purpose, needs, gives, breaks) void pass_##name(struct compile *);
#include "passes/passes.def"
#undef PASS
struct pass {
    const char *name, *purpose;
    void (*run)(struct compile *);
    unsigned needs, gives, breaks;
};
/* rows.c: the passes in order; a row without a name ends the list. */
extern const struct pass pass_rows[];
/* The properties needed by the pass that `have` lacks. */
unsigned pass_lacks(const struct pass *, unsigned have);
/* The properties that hold after the pass. */
unsigned pass_after(const struct pass *, unsigned have);
/* Runs the passes from first to last (names, both included) and verifies the graph after each. dump_after: the pass after which the text
 * form goes to stdout, or all=DIR, for which dump.c writes a folder; NULL: none. An unknown name: wrong usage. A property that a pass
 * lacks: bug. */
void pass_run(struct compile *, const char *first, const char *last, const char *dump_after);
/* dump.c: is the option all=DIR? Then begin makes the folder, pass adds the graphs after a pass, and end gives it its name. */
struct pass_dump;
bool dump_is_folder(const char *dump_after);
struct pass_dump *dump_begin(struct arena *, const char *dump_after);
void dump_pass(struct pass_dump *, const struct compile *, int row);
void dump_end(struct pass_dump *);
/* tell.c: for -v, seconds of passes and numbers of operators, as they run; then prints them. */
struct pass_record *pass_record_new(struct arena *);
void pass_record_add(struct compile *, int row, double seconds);
void pass_tell(const struct compile *);
/* Runs one pass. Any order that satisfies the needs of the passes is legal. */
void pass_run_one(struct compile *, const struct pass *);

/* keep_source.c: copies a compilation, with the source as its graph, to replan the same workloads, starting at weight_dtype. The copy lives
 * in the arena. */
struct compile keep_source_copy(const struct compile *first, struct arena *, const struct options *, struct plan *);

/* compare.c: the results of the plan for a number of ranks, without constraints; if none keeps the memory limit, of the plan with the least
 * memory. compare_tried: numbers of ranks worth trying. */
extern const int compare_tried[];
enum { COMPARE_TRIED = 5 };
struct compared compare_ranks(const struct compile *first, int ranks, enum sp_mode);

/* memory_price.c. After choose: the ranks' memory by their own graphs, or by the global graph, which may fuse more than a rank can. */
enum { EXACT_RANKS = 16 }; /* with more ranks, unless they are emitted, the global graph is used */
void memory_measure(struct compile *, bool exact);
/* stages.c: estimates `pp` stages of `tp` ranks by a plan of the whole graph on tp ranks, without constraints: seconds of a weighted step
 * of one text through all stages, and in the slowest stage; bytes of the fullest rank, approximated as a tp rank's, with weights and state
 * scaled to the fullest stage's part. pp is given. */
struct grid_point {
    int pp;
    double text, slowest, memory;
};
void stages_price(const struct compile *first, int tp, int n, struct grid_point *);
/* annotate.c: the model with the plans of its stages as annotations (--annotate), after choose of each. */
void annotate_stages(struct compile *);
/* emit.c: the folder of a model in stages. */
void emit_stages(struct compile *);
/* memory_limit.c. Before choose: sets the byte price at which a plan of c->options->ranks ranks keeps the limit of c->options; false: none
 * does, and the price is the one with the least memory. */
bool memory_price(struct compile *);

#endif
