/* plan: what may be split, what it costs, what is best. Services of the passes choose, insert and fuse. */
#ifndef TPC_PLAN_H
#define TPC_PLAN_H

#include "op/op.h"

enum sp_mode { SP_OFF, SP_ON, SP_AUTO };
enum strict { STRICT_OFF, STRICT_ON, STRICT_WARN }; /* of communication that no constraint asks for */
struct machine {                                    /* machine.c: the shipped reference profile, or a file from tpc-run --calibrate */
    const char *name;
    double flops, memory_bandwidth;                                /* of one rank while the others are idle; per second, bytes per second */
    double machine_ranks, machine_flops, machine_memory_bandwidth; /* ranks that share one machine, and what they do in all together */
    double link_bandwidth;                                         /* bytes per second that leave a rank */
    double hop_latency, collective_overhead, node_overhead;        /* seconds */
    double reduce_seconds;                                         /* of summing one byte of a term */
    double elementwise_share;                                      /* part of its bytes that a fused elementwise op costs */
    double weight_price;                                           /* holding a weight byte costs reading it so many times per step */
};
struct workload {
    struct bindings dims;
    double weight;
    const char *text;
    double seconds, unsharded_seconds; /* of one step, predicted by the pass choose */
};

/* ---- the plan file (--plan) --------------------------------------------------------------------------------------------- */
enum { PLAN_VERSION = 1, PLAN_RANKS = 1024 };
enum constraint_on { ON_NODES, ON_TENSORS, ON_WEIGHTS };
/* Styles of nodes (style.c). */
enum style {
    STYLE_COLWISE,
    STYLE_ROWWISE,
    STYLE_PAIRWISE,
    STYLE_SEQUENCE,
    STYLE_VOCAB,
    STYLE_REPLICATE,
    STYLE_LOSS_PARALLEL,
    STYLE_PREPARE_INPUT,
    STYLE_PREPARE_OUTPUT,
    STYLE_PREPARE_INPUT_OUTPUT,
    STYLES
};
const char *style_name(enum style);
/* Placements of several values: one for all, in their order, or by globs over their names. text NULL: the value is left alone. */
enum layout_form { LAYOUT_NONE, LAYOUT_ALL, LAYOUT_ORDER, LAYOUT_NAMES };
struct layout {
    enum layout_form form;
    const char *key;
    int n;
    const char **glob, **text;
};
struct constraint {
    const char *where; /* the file and the path of the key, for messages */
    enum constraint_on on;
    const char *glob;     /* over names of nodes, of values, of initializers */
    unsigned styles;      /* nodes: bits 1 << STYLE_ */
    int dim;              /* of style sequence */
    const char *strategy; /* nodes: a glob over the text of strategies (strategy_str); NULL: not said */
    struct layout input, desired_input, output, desired_output; /* nodes: where values are brought to, and where they are read */
    const char *placement;                                      /* tensors, weights: R, P, P(op), S(d), or as placement_str writes it */
};
/* state: globs over graph inputs and outputs, a "" end does not exist; state_from: over ends of states here, and in the plan of
 * --state-from. A * of the second stands for what it did in the first. */
struct state_names {
    const char *path, *past, *present;
}; /* path: the file and the path of the key, for messages */
struct named {
    const char *name, *text;
};
struct named_list {
    VEC(struct named) list;
};
struct emitted { /* a plan.json that tpc-shard wrote: everything is chosen */
    int ranks;
    enum sp_mode sp;
    const char *sp_symbol;
    bool solver_first, proven;
    enum strict strict;
    enum dtype storage; /* options.weights */
    struct bindings dims;
    struct fixed fixed;
    VEC(struct workload) workloads; /* without text */
    struct machine machine;
    double objective, lower_bound;                             /* seconds, as written */
    int64_t memory;                                            /* the limit it keeps to; 0: none; */
    double byte_price, memory_gap;                             /* and how it was met, as in struct plan */
    const char *configuration;                                 /* whose annotations it followed; "": nobody's */
    struct named_list nodes, inputs, outputs, weights, pinned; /* strategies and placements, in the order of the graph */
    struct named_list from; /* past ends of states, and the outputs of another graph that they come from */
};
struct plan_file {
    const char *path;
    VEC(const struct constraint *) constraints;
    VEC(struct state_names) states, state_from;
    const char *text;              /* what a person wrote of it, as compact JSON; NULL: nothing */
    const struct emitted *emitted; /* NULL: a user's plan */
};

/* state_from.c: the state of another plan of the model (--state-from). */
struct other_state {
    struct handed end;
    bool made;
    const char *placement;
}; /* made: its end is an output, which a later graph takes */
struct other_plan {
    const char *path;
    VEC(struct other_state) states;
};

/* ---- options (filled by the command line) ---------------------------------------------------------------------------- */
struct options {
    int ranks;
    enum sp_mode sp;
    const char *sp_symbol;      /* restricts --sp to one dimension; NULL: every one that qualifies */
    struct bindings dims;       /* --dim */
    struct fixed fixed;         /* --bind */
    VEC(const char *) workload; /* --workload texts as given; empty: the default */
    struct machine machine;
    const struct plan_file *plan_file;   /* --plan; NULL: none */
    const struct other_plan *state_from; /* --state-from; NULL: none */
    const char
        *configuration; /* --configuration: whose annotations to follow; "": nobody's; NULL: that for as many devices, if there is one */
    enum dtype weights; /* --weights: the type that large f32 weights are stored in; DT_NONE: their own */
    VEC(const char *) compare;       /* --compare: "first", "none" or a plan file */
    const char *explain;             /* --explain: a name; NULL: not asked */
    const char *annotate;            /* --annotate: the file to write; NULL: none */
    bool price;                      /* the report lists what every strategy costs */
    bool solver_first, dry_run, force;
    enum strict strict;
    int64_t memory;             /* --memory: most bytes that a rank may hold; 0: no limit */
    const char *out, *model;    /* folder to write, model file */
    struct file_digest *digest; /* of the model file, for plan_json */
    struct folder *folder;      /* the model is the source of this emitted folder; NULL: it is a file by itself */
    /* Test hook: forces strategies by a seed (random legal plans); 0: off. force_whole_never: only among non-whole ones. */
    uint64_t random_seed;
    bool random_split_only;
};
struct machine machine_reference(void);
/* By what tpc-run --calibrate says beside the constants: how and when they were measured. */
struct machine_origin {
    const char *date, *library, *communicator;
    int64_t cores, ranks, threads;
    double fit_error;
};
/* As machine_read wants it (schemas/machine.schema.json). */
char *machine_json(struct arena *, const struct machine *, const struct machine_origin *);
/* A JSON file, or the name of an installed profile: machines/NAME.json of the data folder. Unknown or missing keys are failures. */
struct machine machine_read(struct arena *, const char *name);
/* The model of a collective (cost.c): messages one after another and bytes on a rank's link, for a whole value of so many bytes. */
struct transfer {
    double hops, bytes, summed;
}; /* summed: bytes of terms that a rank adds up */
struct transfer machine_transfer(const struct machine *, const char *op, double ranks, double bytes);
double transfer_seconds(const struct machine *, struct transfer);
/* calibrate.c: the constants of that model from measured times; op NULL: one message of next to no bytes. Returns the root mean square of
 * the relative errors. */
struct timed_transfer {
    const char *op;
    double bytes, seconds;
};
double machine_fit(struct machine *, int ranks, int n, const struct timed_transfer *);
/* JSON; a malformed file is a failure with the path of the key. */
struct plan_file *plan_file_read(struct arena *, const char *path);

/* Bytes of one rank: weights, of them tables that are only looked up in (their pages stay in the file until read), state at its largest
 * workload, activations at their peak (the slab without the state), blocks that collectives pack. */
struct rank_use {
    int64_t weights, tables, state, peak, blocks;
    int weight, value; /* value ids of the largest weight and the largest activation; -1: none */
};
int64_t use_total(const struct rank_use *);
/* The largest of every entry. */
struct rank_use use_most(int n, const struct rank_use *);

/* ---- the plan, as reported and written to plan.json ------------------------------------------------------------------------ */
struct collective {
    const char *op;
    const struct value *value;
    int axis;
    const char *reason;
    const struct node *node;
};
struct kind_use {
    const char *op;
    int count;
    double *bytes;
}; /* of a kind of collective: nodes; payload of one rank per step, by workload */
struct kind_uses {
    VEC(struct kind_use) list;
};
struct compared {          /* what a plan comes to (--compare) */
    const char *name;      /* first, none, or the plan file */
    double seconds, *step; /* of a weighted step; by workload */
    struct kind_uses kinds;
    int64_t weights; /* bytes on the fullest rank */
};
struct compared_list {
    VEC(struct compared) list;
};
struct priced {
    const char *strategy;
    double seconds;
    bool chosen;
}; /* what a node costs per step by one of its strategies */
struct priced_node {
    const char *name, *op;
    VEC(struct priced) list;
};
struct plan {
    int ranks;
    VEC(struct workload) workloads;
    const struct configuration *configuration;      /* the model's annotations that are followed; NULL: none */
    const char *sequence;                           /* symbol(s) split by --sp, and where under --sp=auto, for the report; NULL: none */
    double seconds, unsharded_seconds, lower_bound; /* per weighted step, predicted */
    double first_seconds;                           /* the same of the first assignment that fits; 0: not looked for, or none */
    bool proven;
    int64_t objective;               /* what the solver minimised, picoseconds over all workloads, weight price included, byte_price not */
    struct space *space;             /* what could have been chosen (space.h) */
    struct named_list nodes, pinned; /* as chosen: strategies of nodes; placements that values are brought to before they are read */
    const char **state_placement;    /* by state of the graph, as text: what --state-from demands; NULL: nothing */
    VEC(struct priced_node) priced;  /* after plan_price */
    VEC(struct collective) collectives; /* filled by insert, in file order */
    VEC(const char *) warnings;         /* for people */
    VEC(const char *) whole;            /* "node (Op): why it stays whole" */
    struct rank_use *use, unsharded;    /* by rank, and of the graph before sharding; after the pass memory */
    double byte_price;                  /* of --memory: holding a byte of weights or state costs reading it so many more times per step */
    double held;                        /* bytes of weights and state that this price is paid for */
    double memory_gap;                  /* seconds per step that another plan within the limit may be better */
    struct compared_list compared;      /* other plans of the graph, for the report; plan.json is written before there are any */
    const char *hash;                   /* hex digest of plan.json, after the pass emit */
};

/* payload.c: bytes that one rank (the one that holds most) puts into a collective node, under a workload. */
int64_t cost_payload(struct alg *, const struct node *, const struct bindings *, int ranks);

/* compare.c: the collectives of a plan by kind, after insert and fuse; what the plan comes to, after the pass memory. */
struct kind_uses plan_kinds(struct arena *, const struct graph *, const struct plan *);
struct compared plan_compared(struct arena *, const char *name, const struct graph *, const struct plan *);

/* cost.c: sum of the workload weights. */
double cost_steps(const struct plan *);

/* reshard.c: what turns one placement into another; the name of the collective, or NULL for a local step. */
const char *reshard_name(struct placement from, struct placement to);
/* reshard_node.c: that step as a node, inserted nowhere: from where the value is placed. Its result has the new placement. */
struct node *reshard_step(struct graph *, struct value *, struct placement to);
/* merge_allreduce.c: in a graph with explicit reshards, small AllReduces become one where none has to wait for another. */
void plan_merge_reductions(struct graph *, const struct machine *, const struct plan *);
/* hoist_row_scalar.c: terms of what is picked from rows x - r or x / r wait for x alone, not for the one number r of each row. after: by
 * value id, what waits; false: v is no such terms, or x waits, too. */
bool plan_take_out(struct graph *, struct value *v, const bool *after);
/* lowering.c: appends to the graph what the row's lowering makes of a node whose operands and results are placed, and not the node. */
void lower_placed(struct graph *, struct node *);

/* kv_origin.c: keys and values that attention reads in a canonical graph, as the values that they are moved, repeated or scaled from; dim
 * is the dimension attended over there, -1 where moves hide it. */
struct origin {
    struct value *value;
    int dim;
};
struct attended {
    struct origin key, value;
};
struct attended_list {
    VEC(struct attended) list;
};
struct attended_list plan_attended(struct graph *, struct arena *);
/* What dimension d of v is moved, repeated or scaled from; d may be -1. */
struct origin plan_origin(struct graph *, struct value *, int d);

/* state.c: what a decode loop carries. Pairs, before types are known; then, in a canonical graph, read-only state (past only, dim -1)
 * and born state (present only). Graphs of one rank have what their files say. */
void plan_find_states(struct graph *);
void plan_find_kept_states(struct graph *);
/* state_names.c: state that the plan file names, instead of what plan_find_states found at these ends. */
void plan_name_states(struct graph *, const struct plan_file *);

/* state_from.c: dir/plan.json, which must be for as many ranks. plan_match_states: which of its states each state of the graph is, by name
 * (handover_match); what placement the plan demands of it; what it comes from. */
struct other_plan *state_from_read(struct arena *, const char *dir, int ranks);
void plan_match_states(struct graph *, const struct options *, struct plan *);

/* sharding_spec.c: what a sharding spec says of a tensor of that type. NULL, or the end of a sentence that tells what it is that tpc can't
 * do. */
const char *sharding_placement(struct arena *, struct alg *, const struct type *, const struct sharding *, int ranks,
                               struct placement *out);
/* The spec that says it, but for node and tensor; false: none does (terms of a sum, blocks of unequal sizes). */
bool placement_sharding(struct arena *, struct alg *, const struct type *, struct placement, int ranks, struct sharding *out);

/* onnx_config.c: plan_configuration chooses the device configuration of a model (options->configuration). annotation_of: after the pass
 * choose, what a node of the source says of a tensor under the chosen plan (struct annotation of onnx.h); the first argument is
 * plan->space. */
void plan_configuration(const struct graph *, const struct options *, struct plan *);
bool annotation_of(void *space, struct arena *, const char *node, const char *tensor, bool result, struct sharding *out);

/* workload.c: what is planned for. The texts of --workload, or the default: a prompt of 512 and 256 single steps at context 1024, where
 * roles of symbols are derived from states and contracted dimensions. Every symbol of the graph gets a value; the equations hold. */
void plan_workloads(struct graph *, const struct options *, struct plan *);

/* slice_index.c: cut points and copies of index-map ops, for every rank. local[r]->nodes.at[at] is the global node at on rank r. */
struct locality {
    struct graph *global;
    int ranks;
    struct graph **local;
};
void localize_index_map(struct locality *, int at);

/* partial_sums.c: into the metadata of a rank's file, which nodes of the global graph make terms of a sum, and of what. */
void plan_note_sums(struct graph *to, struct graph *global);

/* weight_bytes.c: a rank's part of a constant: outer times, the intervals of size rows of row bytes each. The same as byte ranges of the
 * source tensor, in order, merged where they adjoin. */
struct weight_layout {
    int64_t outer, size, row;
    int n;
    struct interval *interval;
};
struct weight_layout weight_layout(struct arena *, const struct constant *, struct placement, int rank);
int weight_ranges(struct arena *, const struct constant *, struct placement, int rank, const struct byte_range **out);
bool weights_converted(const struct options *); /* --weights gives f32 weights another type */
/* False where a placement takes apart bytes that hold two elements: then it is not offered. Only constants of such types are split. */
bool weight_divides(const struct value *, struct placement);
int64_t weight_bytes(const struct value *); /* of a value's type, which is static, as it is stored */

/* memory.c: what each of the ranks holds that run this graph, which the pass kernels has fused: one rank's own, or a global one with
 * explicit reshards. */
void plan_memory(const struct graph *, const struct plan *, int ranks, struct rank_use *out);
/* What a machine may have, and few enough for sums not to overflow: sizes in a file may be anything. */
int64_t plan_possible_bytes(int64_t bytes);
/* memory_bodies.c: the slabs of all bodies that are ready (pass kernels), under these sizes of the graph around them. */
int64_t plan_bodies_bytes(struct arena *tmp, const struct graph *, const struct bindings *);
/* The symbols of body k, made ready, under sizes of the graph around it. */
struct bindings plan_sizes_inside(struct arena *tmp, const struct node *, int k, const struct graph *body, const struct bindings *);

/* plan_write.c: plan.json as text (schemas/plan.schema.json); report.c: one screen for people. source: the graph before sharding. */
double plan_objective(const struct plan *); /* as written: seconds over all workloads */
char *plan_json(const struct graph *source, const struct graph *global, const struct options *, const struct plan *);
void plan_report(FILE *, const struct graph *global, const struct options *, const struct plan *);
/* html.c: one self-contained page; plan_price, between the passes choose and insert, notes what strategies cost.
 * dot.c: the graph for graphviz. */
void plan_price(struct space *);
void plan_html(FILE *, const struct graph *global, const struct options *, const struct plan *);
void plan_dot(FILE *, const struct graph *global);

/* explain.c: why what is called name is placed as it is, after the pass choose. Solves again for every alternative: the graph and the space
 * are of no use afterwards. An unknown name is a failure that names the nearest one. */
void plan_explain(FILE *, struct space *, const char *name);

/* manifest.c: what a folder holds of its source. Ranks are told of in descending order, rank 0 ends its data with what no rank keeps. */
enum { MANIFEST_VERSION = 1 };
#define MANIFEST_HEAD "{\"xxh3\":\"" /* then the digest of what is behind it and the comma, without the last line end */
struct manifest;
struct manifest *manifest_new(struct arena *, const char *plan_digest, struct spans);
/* The rank has its part of the constant, as dealt out by this placement, at offset of its data. */
void manifest_stored(struct manifest *, const struct value *, struct placement, int rank, int64_t offset);
/* place: where bytes may begin behind an end. */
void manifest_append_rest(struct manifest *, struct out *data, int64_t (*place)(int64_t end, int64_t bytes));
void manifest_wrote(struct manifest *, const char *file, struct written);
char *manifest_json(struct manifest *);
int manifest_order(const struct span *, const struct span *); /* by file, offset, length */

/* manifest_read.c: an emitted folder as a source. A folder that is not as it was written is a failure. need_data: the weights are checked
 * too. */
struct folder {
    const char *dir;
    int ranks;
    const char *file, *digest; /* the source: base name of the model file, XXH3 of it in hex */
    int64_t bytes;
    struct spans spans; /* of the source's files, in order; scattered over data */
    struct source_files data;
};
struct folder *folder_read(struct arena *, const char *dir, bool need_data);
/* For load_options.find; the first argument is the folder. */
bool folder_find(void *folder, const char *file, int64_t offset, int64_t bytes, struct source *out);

/* folder.c: an output folder that appears whole or not at all. check: fails where out may not be written. begin: the folder to write
 * to. commit: it takes the name out. */
void folder_check(const char *out, bool force);
char *folder_begin(struct arena *, const char *out);
void folder_commit(struct arena *, char *made, const char *out);

#endif
