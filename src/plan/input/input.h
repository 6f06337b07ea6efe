/* input: what is read before planning: plan files, machine profiles. */
#ifndef TPC_INPUT_H
#define TPC_INPUT_H

#include "op/canon/canon.h"
#include "plan/plan.h"

#include <jansson.h>

/* ---- json.c: JSON that people write. `where` is the file and the path of a key in it ("plan.json: constraints[2]"): every failure is one
 * sentence that begins with it */
/* A file that holds one object; the caller drops it with json_decref. */
json_t *json_read(const char *path);
/* Such an object as text; path: for messages. */
json_t *json_parse(const char *path, const char *text, size_t bytes);
/* An object without other keys than these; known ends in NULL. An unknown key is a failure that names the nearest one. */
void json_known_keys(const char *where, const json_t *, const char *const *known);
/* A member that must be a string, an array, ...: a failure where it is something else. NULL where it is absent. */
const char *json_text(struct arena *, const char *where, const json_t *, const char *key);
json_t *json_member(const char *where, const json_t *, const char *key, json_type);
/* As text, by flags of jansson; a line of its own unless it is compact. */
char *json_dump(struct arena *, const json_t *, size_t flags);
/* A string; of NULL: an empty one. */
json_t *json_text_of(const char *);
json_t *json_sizes(const struct bindings *); /* an object of integers */
/* True if an object of integers has the values of the bindings, as far as it has their names. */
bool json_sizes_are(const json_t *, const struct bindings *);
/* "an object", "a string", ... for messages. */
const char *json_kind(const json_t *);
/* The text of a token in tokenizer_config.json: a string, or an object with its content. NULL: it is neither. */
const json_t *json_token_text(const json_t *);

/* model_texts.c: tokenizer.json and the like, which programs read next to a model and which travel with the ranks. */
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
/* By path_beside; a template for tools is found where transformers saves it, too, and the pooling where sentence-transformers does. NULL:
 * it is not there. */
const char *model_text_beside(struct arena *, const char *folder, enum model_text);

/* model_config.c: the most tokens that a text of the model may have, by config.json or genai_config.json in its folder (path_beside). What
 * is no limit there is a note: such a file may be another program's. */
enum config_side { CONFIG_BOTH, CONFIG_ENCODER, CONFIG_DECODER };
struct config_limit {
    int64_t tokens;          /* -1: none is stated */
    const char *says, *note; /* "DIR/config.json: max_position_embeddings is 512"; why a file or a value of it states none, or NULL */
};
struct config_limit model_config_limit(struct arena *, const char *folder, enum config_side);

/* machine.c */
#define MACHINE_KIND "\"machine_ranks\": " /* a profile has it near its beginning */
struct machine machine_from(struct arena *, const char *where, const json_t *);
/* Speeds as a list, "1,1,0.5", instead of those of the profile. */
void machine_set_speeds(struct arena *, struct machine *, const char *list);
int machine_most_ranks(const struct machine *);                /* of which speeds and memory are known; PLAN_RANKS: they are alike */
int64_t machine_most_memory(const struct machine *);           /* of all ranks, bytes; 0: no rank's is known */
bool machine_speeds_differ(const struct machine *, int ranks); /* of so many ranks */
void machine_put(json_t *to, const struct machine *);          /* its constants */
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
    const char *glob;                                           /* over names of nodes, of values, of initializers */
    unsigned styles;                                            /* nodes: bits 1 << STYLE_ */
    int dim;                                                    /* of style sequence */
    const char *strategy;                                       /* nodes: a glob over the text of strategies (strategy_str); NULL: any */
    struct layout input, desired_input, output, desired_output; /* nodes: placements that values are resharded to, and are read with */
    const char *placement;                                      /* tensors, weights: R, P, P(op), S(d), or as placement_str writes it */
};
/* state: globs over graph inputs and outputs, a "" end does not exist; state_from: over ends of states here, and in the plan of
 * --state-from. A * of the second is what matched it in the first. */
struct state_names {
    const char *path, *past, *present;
};               /* path: the file and the path of the key, for messages */
struct emitted { /* a plan.json that tpc-shard wrote: everything is chosen */
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
    int64_t memory;                /* the limit it keeps to; 0: none; */
    double byte_price, memory_gap; /* and how it was met, as in struct plan */
    const int64_t *memory_share;
    const char *configuration;                                      /* whose annotations it followed; "": nobody's */
    struct named_list nodes, inputs, outputs, weights, read_places; /* strategies and placements, in the order of the graph */
    struct named_list from; /* past ends of states, and the outputs of another graph that they come from */
};
struct plan_file {
    const char *path;
    VEC(const struct constraint *) constraints;
    VEC(struct state_names) states, state_from;
    const char *text;              /* what a person wrote of it, as compact JSON; NULL: nothing */
    const struct emitted *emitted; /* NULL: a user's plan */
};

/* JSON; a malformed file is a failure with the path of the key. */
struct plan_file *plan_file_read(struct arena *, const char *path);
/* state_names.c: state that the plan file names, instead of what plan_find_states found at these ends. */
void plan_name_states(struct graph *, const struct plan_file *);

/* ---- machines -------------------------------------------------------------------------------------------------------- */
struct machine machine_reference(void);
/* The number of this key was measured, and is no longer the reference's. */
void machine_note_measured(struct machine *, const char *key);
/* Which numbers were measured, on a busy machine or not, which are the reference's, and which a person has set in their place: in a few
 * words. NULL: the profile does not tell. */
const char *machine_origins(struct arena *, const struct machine *);
/* What tpc-run --calibrate writes in addition to the constants: how and when they were measured. */
struct machine_origin {
    const char *date, *library, *communicator;
    int64_t cores, ranks, threads;
    double fit_error;
};
#define MACHINE_DISTURBED 0.1 /* waited so much, ranks were measured too slow */
/* As machine_read wants it (schemas/machine.schema.json). */
char *machine_json(struct arena *, const struct machine *, const struct machine_origin *);
/* A JSON file, or the name of an installed profile: machines/NAME.json of the data folder. Unknown or missing keys are failures; of
 * one that was measured on a busy machine people are told. */
struct machine machine_read(struct arena *, const char *name);
/* weight_type.c: types that --weights stores weights in, by name; DT_NONE: there is none of that name. */
enum dtype weight_type_parse(const char *name);
const char *weight_type_name(enum dtype);

#endif
