/* input: the files read before planning: plan files, machine profiles. */
#ifndef TPC_INPUT_H
#define TPC_INPUT_H

#include "op/canon/canon.h"
#include "plan/plan.h"

#include <jansson.h>

/* json.c: hand-written JSON. `where` is the file and the path of a key ("plan.json: constraints[2]"): every error is one sentence that
 * begins with it. */
/* Reads a file with one object; the caller releases it with json_decref. */
json_t *json_read(const char *path);
/* Parses such an object from text; path: for messages. */
json_t *json_parse(const char *path, const char *text, size_t bytes);
/* Fails if the object has other keys than these, with the nearest known key; known ends in NULL. */
void json_known_keys(const char *where, const json_t *, const char *const *known);
/* A member that must be a string, an array, ...: fails if it is something else. NULL if it is absent. */
const char *json_text(struct arena *, const char *where, const json_t *, const char *key);
json_t *json_member(const char *where, const json_t *, const char *key, json_type);
/* As text, by jansson's flags; ends in a newline unless it is compact. */
char *json_dump(struct arena *, const json_t *, size_t flags);
/* A string; an empty one for NULL. */
json_t *json_text_of(const char *);
json_t *json_sizes(const struct bindings *); /* an object of integers */
/* Whether an object of integers agrees with the bindings in all names that it has. */
bool json_sizes_are(const json_t *, const struct bindings *);
/* "an object", "a string", ... for messages. */
const char *json_kind(const json_t *);
/* The text of a token in tokenizer_config.json: a string, or an object with its content. NULL: neither. */
const json_t *json_token_text(const json_t *);

/* model_texts.c: tokenizer.json and other files that programs read next to a model; output folders get copies. */
enum model_text {
    TEXT_TOKENIZER,
    TEXT_TOKENIZER_CONFIG,
    TEXT_SPECIAL_TOKENS,
    TEXT_GENERATION_CONFIG,
    TEXT_GENAI_CONFIG,
    TEXT_CONFIG,
    TEXT_CHAT_TEMPLATE,
    TEXT_TOOL_TEMPLATE,
    TEXT_POOLING,
    MODEL_TEXTS
};
extern const char *const model_texts[MODEL_TEXTS];
/* The path by path_beside; also finds a tool template where transformers saves it, and the pooling where sentence-transformers does. NULL:
 * not found. */
const char *model_text_beside(struct arena *, const char *folder, enum model_text);

/* model_config.c: the longest text in tokens, by config.json or genai_config.json in the model's folder (path_beside). An invalid limit
 * becomes a note: the file may belong to another program. */
enum config_side { CONFIG_BOTH, CONFIG_ENCODER, CONFIG_DECODER };
struct config_limit {
    int64_t tokens;          /* -1: none is given */
    const char *says, *note; /* "DIR/config.json: max_position_embeddings is 512"; why a file or value gives none, or NULL */
};
struct config_limit model_config_limit(struct arena *, const char *folder, enum config_side);

/* machine.c */
#define MACHINE_KIND "\"machine_ranks\": " /* near the beginning of a profile */
struct machine machine_from(struct arena *, const char *where, const json_t *);
/* Replaces the profile's speeds by a list: "1,1,0.5". */
void machine_set_speeds(struct arena *, struct machine *, const char *list);
int machine_most_ranks(const struct machine *);                /* ranks whose speed and memory are known; PLAN_RANKS: all are alike */
int64_t machine_most_memory(const struct machine *);           /* of all ranks, bytes; 0: unknown */
bool machine_speeds_differ(const struct machine *, int ranks); /* among the first `ranks` ranks */
void machine_put(json_t *to, const struct machine *);          /* adds its constants */
/* plan_parse.c: {"constraints": [...], "state": {...}} */
void plan_parse_user(struct arena *, struct plan_file *, const char *where, const json_t *);
/* plan_read.c */
const struct emitted *plan_read_emitted(struct arena *, struct plan_file *, const json_t *);

/* ---- the plan file (--plan) ------------------------------------------------------------------------------------------ */
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
const char *plan_style_name(enum style); /* plan_parse.c */
/* Placements of several values: one for all, in their order, or by globs over their names. text NULL: no requirement. */
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
    const char *glob;                                           /* over names of nodes, of values, of initializers */
    unsigned styles;                                            /* nodes: bits 1 << STYLE_ */
    int dim;                                                    /* of style sequence */
    const char *strategy;                                       /* nodes: a glob over the text of strategies (strategy_str); NULL: any */
    struct layout input, desired_input, output, desired_output; /* nodes: placements that values are resharded to, and are read with */
    const char *placement;                                      /* tensors, weights: R, P, P(op), S(d), or in placement_str's form */
};
/* state: globs over graph inputs and outputs, "" for a missing end; state_from: globs over ends of states here, and in the plan of
 * --state-from. A * in the second stands for what it matched in the first. */
struct state_names {
    const char *path, *past, *present;
};               /* path: the file and the path of the key, for messages */
struct emitted { /* a plan.json that tpc-shard wrote, with all choices */
    int ranks;
    enum sp_mode sp;
    const char *sp_symbol;
    bool solver_first, proven;
    enum strict strict;
    enum dtype storage; /* options.weights */
    enum wire wire;
    struct bindings dims;
    struct bound_inputs fixed;
    VEC(struct workload) workloads; /* without text */
    struct machine machine;
    double objective, lower_bound; /* seconds, as written */
    int64_t collective_price;      /* as in struct near_choice */
    int64_t memory;                /* the limit that it keeps; 0: none; */
    double byte_price, memory_gap; /* and how it was met, as in struct plan */
    const int64_t *memory_share;
    const char *configuration;                                      /* whose annotations it followed; "": none */
    struct named_list nodes, inputs, outputs, weights, read_places; /* strategies and placements, in the order of the graph */
    struct named_list from; /* past ends of states, and the outputs of another graph that feed them */
};
struct plan_file {
    const char *path;
    VEC(const struct constraint *) constraints;
    VEC(struct state_names) states, state_from;
    const char *text;              /* the user's part, as compact JSON; NULL: none */
    const struct emitted *emitted; /* NULL: a user's plan */
};

/* Reads a JSON file; fails with the path of the key if it is malformed. */
struct plan_file *plan_file_read(struct arena *, const char *path);
/* state_names.c: states that the plan file names replace those that plan_find_states found at these ends. */
void plan_name_states(struct graph *, const struct plan_file *);

/* ---- machines -------------------------------------------------------------------------------------------------------- */
struct machine machine_reference(void);
/* Marks the price of this key as measured. */
void machine_note_measured(struct machine *, const char *key);
/* Which prices were measured, maybe on a busy machine, which are the reference's, and which the user set: in a few words. NULL: the profile
 * does not tell. */
const char *machine_origins(struct arena *, const struct machine *);
/* What tpc-run --calibrate writes besides the constants: how and when they were measured. */
struct machine_origin {
    const char *date, *library, *communicator;
    int64_t cores, ranks, threads;
    double fit_error;
};
#define MACHINE_DISTURBED 0.1 /* above this fraction of waiting, ranks were measured too slow */
/* JSON for machine_read (schemas/machine.schema.json). */
char *machine_json(struct arena *, const struct machine *, const struct machine_origin *);
/* Reads a JSON file, or an installed profile by name: machines/NAME.json of the data folder. Fails on unknown or missing keys; warns of a
 * profile that was measured on a busy machine. */
struct machine machine_read(struct arena *, const char *name);
/* weight_type.c: the types of --weights by name; DT_NONE: no such type. */
enum dtype weight_type_parse(const char *name);
const char *weight_type_name(enum dtype);

#endif
