/* rank_meta: what a rank file says about the global graph and its plan, in the model's metadata_props. Only rank_meta*.c read and write
 * keys "tpc.*"; docs/rank-files.md describes them. */
#ifndef TPC_IR_RANK_META_H
#define TPC_IR_RANK_META_H

#include "ir/ir.h"

/* The key, among a tensor's external_data, of a placeholder in a weight-stripped model (src/onnx/message/strip_weights.c). */
#define RANK_META_PLACEHOLDER "tpc.raw"
/* The key, among the metadata of a tensor of a rank file, of its digest (ir/constant/digest.c). */
#define RANK_META_DIGEST "tpc.digest"
/* The key, among the metadata of a node of a rank file, of the placements of its operands and results: for people only. */
#define RANK_META_PLACEMENT "tpc.placement"
/* What a rank must know about a node and the standard has no attribute for (schemas/ops.def, src/onnx/read/decode.c): then the attribute's
 * name. */
#define RANK_META_NOTE "tpc."
/* The key of the digest of all ranks' data files. */
#define RANK_META_WEIGHTS "tpc.weights"
/* The key of the plug-ins whose operators the file uses: "NAME:DIGEST", with blanks between (op/plugin). */
#define RANK_META_PLUGINS "tpc.plugins"

/* The key of the alpha of adapters that a training step trains. */
#define RANK_META_ADAPTERS "tpc.lora"
/* The key, followed by the name of a product with a weight, of how the product is split. */
#define RANK_META_PRODUCT "tpc.product."
/* A stage's number and the number of stages; followed by a name or a number: the stages that send and read a value, and make an output. */
#define RANK_META_STAGE "tpc.stage"
#define RANK_META_STAGES "tpc.stages"
#define RANK_META_FROM "tpc.from."
#define RANK_META_TO "tpc.to."
#define RANK_META_RESULT "tpc.result."
#define RANK_META_ADDEND "tpc.addend."
/* A stage's entries: a state of another stage; how the whole graph uses a mask, and positions. */
#define RANK_META_OTHER_STATE "tpc.other_state."
#define RANK_META_MASK "tpc.mask."
#define RANK_META_TABLES "tpc.tables."

/* The smallest value of a symbol. */
struct rank_bound {
    const char *symbol;
    int64_t least, usual; /* struct dim's lo and usual */
};
/* left == right, an assumption of the compilation; text: with the reason. */
struct rank_assumption {
    const char *left, *right, *why, *text;
};
/* Names of the input and the output of a state, "": none. dim: along which it grows, -1: none. from: the output of another graph of the
 * model from which it starts, or NULL. */
struct rank_state {
    const char *past, *present, *from;
    int dim;
};
struct rank_meta {
    const char *plan, *weights; /* hashes of the plan and of all ranks' data; NULL: missing */
    int rank, ranks;            /* of a stage; rank -1: missing */
    int stage, stages;          /* stages 1: the whole graph is in each rank's file */
    int nbound, nassumption, nstate;
    struct rank_bound *bound;
    struct rank_assumption *assumption;
    struct rank_state *state;
};
/* "PAST|PRESENT|DIM[|FROM]", as in the metadata. */
struct rank_state rank_meta_read_state(const struct graph *, const char *text);
const char *rank_meta_state_text(struct arena *, const struct rank_state *);
struct rank_state rank_meta_state_of(const struct state *);
/* Decodes the metadata of a loaded graph into graph->rank_meta, and sets graph->ranks and graph->rank; a plain graph keeps NULL.
 * Malformed metadata is a failure. */
void rank_meta_read(struct graph *);
/* Encodes rank and ranks of `to`, the plan's hash, and types, placements, states and equations of the global graph. */
void rank_meta_write(struct graph *to, const struct graph *global, const char *plan);

/* ---- global type and placement of an input or output ------------------------------------------------------------------------------- */
enum rank_end { RANK_INPUT, RANK_OUTPUT };
/* False: there is no entry. A malformed one is a failure. */
bool rank_meta_value(struct graph *, enum rank_end, const char *name, struct type *, struct placement *);
bool rank_meta_placement(struct graph *, enum rank_end, const char *name, struct placement *);
void rank_meta_set_placement(struct graph *, enum rank_end, const char *name, struct placement);
/* Adds or replaces an entry. */
void rank_meta_set_value(struct graph *, enum rank_end, const char *name, const struct type *, struct placement);

/* ---- nodes that make partial sums, for tpc-run --deterministic ---------------------------------------------------------------------- */
enum rank_sum_kind {
    RANK_SUM_NONE,
    RANK_SUM_SPLIT, /* sums over dimension dim of its first operand, whose factor has this split */
    RANK_SUM_TERM,  /* one rank keeps a replicated value and the others replace it by zero */
    RANK_SUM_ONCE,  /* one rank has each element and the others zero (a lookup in a split table) */
    RANK_SUM_EACH   /* each rank's float sums are read separately (a running sum): not addends of one sum */
};
struct rank_sum {
    enum rank_sum_kind kind;
    int dim;
    const struct split *split;
};
/* Of kind RANK_SUM_NONE: the node makes no partial sum, or the graph does not keep sums. A malformed entry is a failure. */
struct rank_sum rank_meta_sum(struct graph *, const struct node *);
/* The same, without decoding it. */
bool rank_meta_has_sum(const struct graph *, const struct node *);
void rank_meta_set_sum(struct graph *, const char *node, const struct rank_sum *);
/* The number of such nodes; -1: not stated. */
int64_t rank_meta_sum_count(const struct graph *);
void rank_meta_set_sum_count(struct graph *, int64_t);

/* ---- collectives that overlap with compute (src/run/session/blocks/overlap_blocks.c) ---- */
/* The size in bytes from which overlap saves time; -1: never, or not stated. */
int64_t rank_meta_overlap(const struct graph *);
void rank_meta_set_overlap(struct graph *, int64_t bytes);

/* What float32 addends of sums become in messages between machines; WIRE_F32: not stated. */
enum wire rank_meta_wire(const struct graph *);
void rank_meta_set_wire(struct graph *, enum wire);

/* ---- rank_meta_stages.c: stages (tpc-shard --pp): each rank file belongs to one ---- */
void rank_meta_set_stage(struct graph *, int stage, int stages);
bool rank_meta_is_stage(const struct graph *); /* also before it is decoded */
/* The stage that the input comes from; -1: an input of the model. */
void rank_meta_set_sender(struct graph *, const char *input, int stage);
int rank_meta_sender(const struct graph *, const char *input);
/* The output goes to these stages. Number i of them; -1: there are no more. */
void rank_meta_set_readers(struct graph *, const char *output, int n, const int *stage);
int rank_meta_reader(const struct graph *, const char *output, int i);
/* Such a value, between stages, is only added to gradients of weights: it may arrive once for several microbatches, as their sum. */
void rank_meta_set_addend(struct graph *, const char *value);
bool rank_meta_is_addend(const struct graph *, const char *value);
/* An output of the model, and the stage that makes it. */
struct rank_result {
    const char *name;
    int stage;
    struct type type; /* global */
};
void rank_meta_set_result(struct graph *, int i, const struct rank_result *);
/* Output number i of the model; false: there are no more. */
bool rank_meta_result(struct graph *, int i, struct rank_result *);

/* States that other stages keep: number i of them; false: there are no more. Their inputs are inputs here, too, which nothing reads. */
void rank_meta_set_other_state(struct graph *, int i, const struct rank_state *);
bool rank_meta_other_state(const struct graph *, int i, struct rank_state *);
/* The input belongs to such a state. */
bool rank_meta_kept_elsewhere(const struct graph *, const char *input);
/* Facts about the whole graph (src/op/analysis/input_use.c), as a text; NULL: none. input "": not of one input. */
void rank_meta_set_mask_use(struct graph *, const char *input, const char *use);
const char *rank_meta_mask_use(const struct graph *, const char *input);
void rank_meta_set_tables(struct graph *, const char *input, int64_t rows, const char *by_place);
/* *rows -1, *by_place NULL: none. */
void rank_meta_tables(const struct graph *, const char *input, int64_t *rows, const char **by_place);

/* ---- dimensions along which tpc-run --groups may split inputs ------------------------------------------------------------------------ */
/* NULL as why: a row along the symbol does not depend on others. */
void rank_meta_set_rows(struct graph *, const char *symbol, const char *why);
/* Entry number i, in the order of inputs; false: there are no more. */
bool rank_meta_rows(const struct graph *, int i, const char **symbol, const char **why);
void rank_meta_copy_rows(struct graph *to, const struct graph *from);
/* In a training step: why rows of a batch are not proven to be independent before the loss; NULL: they are. Copied with rows. */
void rank_meta_set_mixing(struct graph *, const char *why);
const char *rank_meta_mixing(const struct graph *);

/* ---- low-rank adapters ---- */
/* In a training step that trains only adapters: their alpha; 0: it trains weights. Copied with rows. */
double rank_meta_adapters(const struct graph *);
void rank_meta_set_adapters(struct graph *, double alpha);
/* How a product with a weight splits the dimension it sums over, and the last dimension of its result. NULL: not split. A missing entry is
 * a failure. */
struct rank_product {
    const struct split *rows, *columns;
};
struct rank_product rank_meta_product(struct graph *, const struct node *);
void rank_meta_set_product(struct graph *, const char *node, const struct rank_product *);

/* ---- integers that a global input may hold, for made-up inputs: less than rows (-1: not known), or a mask -------------------- */
void rank_meta_set_values(struct graph *, const char *input, int64_t rows, bool mask);
void rank_meta_values(const struct graph *, const char *input, int64_t *rows, bool *mask);

/* lookups whose indices follow from sizes (src/op/analysis/index_limits.c): the last index has to be less than the rows of the table */
struct index_limit {
    const struct dim *last, *rows;
    const char *node;
    bool exact;     /* every index is below it; false: it is a bound. Files have exact ones only */
    bool of_inputs; /* `last` is that index itself; false: a bound on it. Files have only exact ones */
};
void rank_meta_set_limit(struct graph *, int i, const struct index_limit *);
/* Limit number i; false: there are no more. */
bool rank_meta_limit(struct graph *, int i, struct index_limit *);

/* ---- sizes of the symbols of inputs that the plan was made for, by number of the workload ------------------------------------ */
void rank_meta_set_workload(struct graph *to, const struct graph *global, int number, const struct bindings *);
/* False: no workload has that number. */
bool rank_meta_workload(const struct graph *, int number, struct bindings *);

/* ---- inputs that the graph no longer has: fixed by --bind, read by nothing, or with an initializer that runs do not replace ---- */
void rank_meta_set_bind(struct graph *, const char *input, const char *values);
const char *rank_meta_bind(const struct graph *, const char *input); /* NULL: not fixed */
/* Entry number i; false: there are no more. */
bool rank_meta_binds(const struct graph *, int i, const char **input, const char **values);
void rank_meta_set_unread(struct graph *, const char *input);
bool rank_meta_is_unread(const struct graph *, const char *input);
void rank_meta_set_default(struct graph *, const char *input);
bool rank_meta_is_default(const struct graph *, const char *input);

#endif
