/* rank_meta: what a rank file says of the global graph and its plan, in the model's metadata_props. Only rank_meta*.c read and write keys
 * "tpc.*"; docs/rank-files.md describes them. */
#ifndef TPC_IR_RANK_META_H
#define TPC_IR_RANK_META_H

#include "ir/ir.h"

/* The key, among a tensor's external_data, of a placeholder in a weight-stripped model (src/onnx/message/strip_weights.c). */
#define RANK_META_PLACEHOLDER "tpc.raw"
/* The key, among the metadata of a tensor of a rank file, of its digest (ir/constant/digest.c). */
#define RANK_META_DIGEST "tpc.digest"
/* The key, among the metadata of a node of a rank file, of how its operands and results are placed: for people, nothing reads it. */
#define RANK_META_PLACEMENT "tpc.placement"
/* What a rank must know of a node and the standard's node can't say (schemas/ops.def, src/onnx/read/decode.c): then the attribute's name.
 */
#define RANK_META_NOTE "tpc."
/* The key of the digest of all ranks' data files. */
#define RANK_META_WEIGHTS "tpc.weights"
/* The key of the plug-ins whose operators it has: "NAME:DIGEST", with blanks between (op/plugin). */
#define RANK_META_PLUGINS "tpc.plugins"

/* The key of the alpha of adapters that a step of training trains. */
#define RANK_META_ADAPTERS "tpc.lora"
/* The key, followed by the name of a product with a weight, of how that is split. */
#define RANK_META_PRODUCT "tpc.product."
/* Of a stage: its number and how many there are; followed by a name or a number, which of them send and read a value, and make an output.
 */
#define RANK_META_STAGE "tpc.stage"
#define RANK_META_STAGES "tpc.stages"
#define RANK_META_FROM "tpc.from."
#define RANK_META_TO "tpc.to."
#define RANK_META_RESULT "tpc.result."
#define RANK_META_ADDEND "tpc.addend."
/* Of a stage: a state of another one; what the whole graph does with an input: of a mask, and of positions. */
#define RANK_META_OTHER_STATE "tpc.other_state."
#define RANK_META_MASK "tpc.mask."
#define RANK_META_TABLES "tpc.tables."

/* The smallest value of a symbol. */
struct rank_bound {
    const char *symbol;
    int64_t least, usual; /* as struct dim has them: lo, usual */
};
/* left == right, which the graph was compiled under; text: with the reason. */
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
    const char *plan, *weights; /* hash of the plan, of all ranks' data; NULL: missing */
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
/* A new entry, or another one. */
void rank_meta_set_value(struct graph *, enum rank_end, const char *name, const struct type *, struct placement);

/* ---- nodes that make partial sums, for tpc-run --deterministic ---------------------------------------------------------------------- */
enum rank_sum_kind {
    RANK_SUM_NONE,
    RANK_SUM_SPLIT, /* it sums over dimension dim of its first operand, whose factor has this split */
    RANK_SUM_TERM,  /* a replicated value that one rank keeps and the others replace by zero */
    RANK_SUM_ONCE,  /* each element is on one rank and zero on the others (a lookup in a split table) */
    RANK_SUM_EACH   /* the ranks' sums of floats are read one by one (a running sum): no addends of one sum */
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
/* Bytes from which on that saves time; -1: never, or not stated. */
int64_t rank_meta_overlap(const struct graph *);
void rank_meta_set_overlap(struct graph *, int64_t bytes);

/* What float32 addends of sums become in messages between machines; WIRE_F32: not stated. */
enum wire rank_meta_wire(const struct graph *);
void rank_meta_set_wire(struct graph *, enum wire);

/* ---- rank_meta_stages.c: stages (tpc-shard --pp): the rank file is of one of them ---- */
void rank_meta_set_stage(struct graph *, int stage, int stages);
bool rank_meta_is_stage(const struct graph *); /* also before it is decoded */
/* The input comes from this stage; -1: it is one of the model. */
void rank_meta_set_sender(struct graph *, const char *input, int stage);
int rank_meta_sender(const struct graph *, const char *input);
/* The output goes to these stages. Number i of them; -1: there are no more. */
void rank_meta_set_readers(struct graph *, const char *output, int n, const int *stage);
int rank_meta_reader(const struct graph *, const char *output, int i);
/* Such a value, between stages, is only added to gradients of weights: it may come once for several microbatches, as their sum. */
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
/* The input is one of these. */
bool rank_meta_kept_elsewhere(const struct graph *, const char *input);
/* What is known of the whole graph (src/op/analysis/input_use.c), as a text; NULL: nothing. input "": of no input. */
void rank_meta_set_mask_use(struct graph *, const char *input, const char *use);
const char *rank_meta_mask_use(const struct graph *, const char *input);
void rank_meta_set_tables(struct graph *, const char *input, int64_t rows, const char *by_place);
/* *rows -1, *by_place NULL: there are none. */
void rank_meta_tables(const struct graph *, const char *input, int64_t *rows, const char **by_place);

/* ---- dimensions along which tpc-run --groups may split inputs ------------------------------------------------------------------------ */
/* NULL as why: a row along the symbol does not depend on others. */
void rank_meta_set_rows(struct graph *, const char *symbol, const char *why);
/* Entry number i, in the order of inputs; false: there are no more. */
bool rank_meta_rows(const struct graph *, int i, const char **symbol, const char **why);
void rank_meta_copy_rows(struct graph *to, const struct graph *from);
/* Of a step of training: why rows of a batch are not proven to be independent before the loss; NULL: they are. Copied with rows. */
void rank_meta_set_mixing(struct graph *, const char *why);
const char *rank_meta_mixing(const struct graph *);

/* ---- low-rank adapters ---- */
/* Of a step of training that trains adapters alone: their alpha; 0: it trains weights. Copied with rows. */
double rank_meta_adapters(const struct graph *);
void rank_meta_set_adapters(struct graph *, double alpha);
/* Of a product with a weight: how the dimension that it sums over is split, and the last one of its result. NULL: it is not. That none is
 * stated is a failure. */
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
    bool exact;     /* that is an index; else none is beyond it. Files have exact ones only */
    bool of_inputs; /* of a text without padding: it depends on elements of inputs */
};
void rank_meta_set_limit(struct graph *, int i, const struct index_limit *);
/* Limit number i; false: there are no more. */
bool rank_meta_limit(struct graph *, int i, struct index_limit *);

/* ---- sizes of the symbols of inputs that the plan was made for, by number of the workload ------------------------------------ */
void rank_meta_set_workload(struct graph *to, const struct graph *global, int number, const struct bindings *);
/* False: there is no workload of that number. */
bool rank_meta_workload(const struct graph *, int number, struct bindings *);

/* ---- inputs that the graph has no more: fixed by --bind, read by nothing, or with an initializer that no run was to replace ---- */
void rank_meta_set_bind(struct graph *, const char *input, const char *values);
const char *rank_meta_bind(const struct graph *, const char *input); /* NULL: not fixed */
/* Entry number i; false: there are no more. */
bool rank_meta_binds(const struct graph *, int i, const char **input, const char **values);
void rank_meta_set_unread(struct graph *, const char *input);
bool rank_meta_is_unread(const struct graph *, const char *input);
void rank_meta_set_default(struct graph *, const char *input);
bool rank_meta_is_default(const struct graph *, const char *input);

#endif
