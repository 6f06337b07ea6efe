/* facts: facts about a model before planning: its workloads, its state, the bytes of its weights. */
#ifndef TPC_FACTS_H
#define TPC_FACTS_H

#include "op/rule/rule.h"
#include "plan/plan.h"

/* limits.c: the bytes that a rank may hold, 0: no limit; whether limits differ between ranks. limit_weighed scales a rank's bytes, rounded
 * up or down, so that the common limit options->memory applies to them. */
#define LIMIT_MOST ((int64_t)1 << 61)
int64_t limit_of(const struct options *, int rank);
bool limits_differ(const struct options *, int ranks);
double limit_weight(const struct options *, int rank);
int64_t limit_weighed(const struct options *, int rank, int64_t bytes, bool up);
/* Shares of `whole` bytes, where rank r also holds other[r] bytes: in proportion to speeds, but capped by the rank's limit. NULL: no rank
 * has memory left. */
const int64_t *limit_shares(struct arena *, const struct options *, double whole, const double *other);

/* dim_roles.c: the roles of dimensions and symbols. */
enum dim_role { DIM_KV = 1, DIM_SEQUENCE = 2 };
enum symbol_kind {
    SYMBOL_OTHER,
    SYMBOL_PAST,
    SYMBOL_SEQUENCE,
    SYMBOL_CONTEXT,
    SYMBOL_STEPS,   /* steps of a recurrent net, or of windows in one dimension */
    SYMBOL_SAMPLES, /* the same with a single channel: audio samples */
    SYMBOL_SIDE     /* one of two sides of a picture */
};
struct symbol_role {
    const char *name;
    int64_t lo, usual; /* as in struct dim */
    enum symbol_kind kind;
    bool of_input;        /* a size of a graph input */
    bool contracted, row; /* contracted between activations; a row of a product */
    bool steps, samples, side;
    bool leading;   /* the first dimension of a graph input */
    bool of_output; /* sizes of outputs depend on it */
};
struct dim_roles {
    struct arena *arena;
    struct graph *g;
    struct rule **rule; /* by node position; NULL: no row or no rule, replicated */
    bool *weight;       /* by value id: weight_marks */
    VEC(struct symbol_role) symbols;
    struct name_index symbol_index;
    /* Only filled by dim_roles: */
    int *class;                    /* by value id * MAX_RANK + dimension: dim_class.c */
    bool *head_size;               /* by class */
    unsigned char (*of)[MAX_RANK]; /* by value id: bits of enum dim_role */
};
/* dim_symbol_roles: roles of symbols only, from the rules of products and of nodes that read only weights. dim_roles: of dimensions, too,
 * from all rules. */
struct dim_roles *dim_symbol_roles(struct arena *, struct graph *);
struct dim_roles *dim_roles_of(struct arena *, struct graph *);
struct symbol_role *dim_symbol_role(const struct dim_roles *, const char *name); /* NULL: the graph has no such symbol */
bool dim_has_role(const struct dim_roles *, const struct value *, int d, enum dim_role);
/* Whether a product of activations contracts factor f, or a dimension that it becomes. */
bool dim_factor_is_kv(const struct dim_roles *, int node, int f);
/* Whether the node reads a weight. */
bool dim_node_reads_weight(const struct dim_roles *, const struct node *);
/* Whether the node multiplies activations with one another. */
bool dim_node_multiplies_activations(const struct dim_roles *, const struct node *);
/* Whether the node is an outer product (a rotary table: frequencies times positions). Its constants are no weights. */
bool dim_node_sums_nothing(const struct dim_roles *, int node);

/* dim_class.c: dimensions that are the same. One int per value id * MAX_RANK + dimension; dim_class_of gives the representative. */
int dim_class_of(int *up, int at);
void dim_class_find_all(struct dim_roles *);
/* The class of factor f of the node's rule, from a dimension that consists of this factor alone; -1: none. */
int dim_class_of_factor(const struct dim_roles *, int node, int f);
/* Marks the class of factor f wherever it forms a dimension alone at the node; true if a mark is new. mark: by class. */
bool dim_class_mark_factor(const struct dim_roles *, int node, int f, bool *mark);
/* Extends marks to parts that are concatenated into, or sliced from, a marked dimension. */
void dim_class_spread(const struct dim_roles *, bool *mark);
/* Operand or result i of a node; NULL: it has none. */
struct value *dim_node_value(const struct node *, bool result, int i);
/* The dimensions of all operands and results in a node's rule, operands first; none without a rule: for (struct dim_walk w =
 * dim_walk(node); dim_next(roles, &w);) */
struct dim_walk {
    int node;
    bool result;
    int i, d; /* dimension d of operand or result i */
    const struct value *value;
    const struct rule_dim *rule;
    int at; /* value id * MAX_RANK + d: the index of classes */
};
static inline struct dim_walk dim_walk(int node)
{
    return (struct dim_walk){.node = node, .d = -1};
}
bool dim_next(const struct dim_roles *, struct dim_walk *);

/* weight.c: by value id, whether it is a weight: a constant, or made from constants by nodes that only move or decode elements. */
bool *weight_marks(struct arena *, struct graph *, struct rule **rule);
/* Whether the node multiplies a weight or looks it up. A constant index into an activation is no table. */
bool weight_is_used(const bool *weight, const struct node *);
/* Whether --weights may change the type of the constant: only products and lookups read it, as first or second operand, maybe through ops
 * that only move elements. */
bool weight_may_be_cast(const struct uses *, const struct value *);

/* workload.c: the sizes to plan for, from the texts of --workload, or the default: a prompt of 512 tokens and 256 single steps at context
 * 1024, where dim_roles.c finds the symbols' roles. Every symbol of the graph gets a value; the equations hold. */
void plan_workloads(struct graph *, const struct options *, struct plan *);
/* The tokens per step at these sizes; 0: no input of the graph holds tokens. */
int64_t workload_tokens(struct graph *, const struct workload *);

/* empty.c: warns of each workload with assumed sizes in which a node has a result without elements. */
void plan_note_empty(struct graph *, struct plan *);
/* long_text.c: warns of each --workload whose text is longer than the configuration next to the model allows. */
void plan_note_long(struct graph *, const struct options *, struct plan *);
/* machine_notes.c: warns if ranks need several machines and the profile has no link between them, and if a number of a link is implausible
 * in its unit (bytes per second, seconds). */
void plan_note_machine(struct graph *, const struct options *, struct plan *);

/* kv_origin.c: the keys and values that attention reads in a canonical graph, as the values from which they are moved, repeated or scaled;
 * dim is their KV dimension, -1 if moves hide it. */
struct origin {
    struct value *value;
    int dim;
};
struct kv_pair {
    struct origin key, value;
};
struct kv_pairs {
    VEC(struct kv_pair) list;
};
struct kv_pairs plan_kv_pairs(struct graph *, struct arena *);
/* The value and dimension from which dimension d of v is moved, repeated or scaled; d may be -1. */
struct origin plan_kv_origin(struct graph *, struct value *, int d);

/* state.c: finds the state of a decode loop. Pairs, before types are known; then, in a canonical graph, input-only state (past only, dim
 * -1) and output-only state (present only). Rank graphs have the state that their files name. */
void plan_find_states(struct graph *);
void plan_find_unpaired_states(struct graph *);

/* state_from.c: the state of another plan of the model (--state-from). */
struct other_state {
    struct handed end;
    bool made;
    const char *placement;
}; /* made: its end is an output, which a later graph reads */
struct other_plan {
    const char *path;
    VEC(struct other_state) states;
};
/* state_from.c: reads dir/plan.json, which must be for the same number of ranks. plan_match_states: matches each state of the graph with a
 * state of that plan, by name (state_match); the placement that the plan requires of it; the name of its source. */
struct other_plan *state_from_read(struct arena *, const char *dir, int ranks);
/* Parses the text of a plan.json from `path`. NULL: that graph has no state. */
struct other_plan *state_from_text(struct arena *, const char *path, const char *text, int ranks);
void plan_match_states(struct graph *, const struct options *, struct plan *);

/* layers.c: a layer is one repetition of a block, as node positions. Layers of block 0, which covers most products, come first. If nothing
 * repeats, there is at most one, with repeat 1. */
struct layer_span {
    int first, end;
    int block, number, repeat; /* its block; layer `number` of `repeat`, from 1 */
};
struct layers {
    VEC(struct layer_span) list;
    int blocks;
};
struct layers layers_find(struct arena *, const struct graph *, const struct dim_roles *);
/* Whether the node is a product with a weight. */
bool layers_is_product(const struct dim_roles *, int node);
/* The largest weight of a product; NULL: none of two or more dimensions. */
const struct value *layers_weight(const struct dim_roles *, const struct node *);

/* weight_bytes.c: a rank's part of a constant: `outer` repetitions of intervals of `size` rows, of `row` bytes each. weight_spans: the same
 * as byte ranges of the source tensor, in order, with adjacent ones merged. */
struct weight_layout {
    int64_t outer, size, row;
    int n;
    struct interval *interval;
};
struct weight_layout weight_layout(struct arena *, const struct constant *, struct placement, int rank);
int weight_ranges(struct arena *, const struct constant *, struct placement, int rank, const struct byte_range **out);
void weight_cut(struct graph *);               /* of a rank: cuts constants to its parts, whose bytes are copied on demand */
bool weight_converted(const struct options *); /* --weights converts f32 weights to another type */
/* False if a placement would split bytes that hold two elements: then it is not offered. Only constants have such types. */
bool weight_divides(const struct value *, struct placement);
int64_t weight_bytes(const struct value *); /* of a value with static type, as stored */

/* labels.c: the module or path of a node, without op and number: "model/layers.0/self_attn/q_proj"; the name of a weight, or its reader's
 * label if the name is a number; both, "onnx::MatMul_7 of model/layers.0/mlp"; the last part of a label; a label with numbers as *, for
 * what several layers have. */
const char *label_node(struct arena *, const struct graph *, const struct node *);
const char *label_weight(struct arena *, const struct graph *, const struct uses *, const struct value *);
const char *label_both(struct arena *, const struct graph *, const struct uses *, const struct value *);
const char *label_last(const char *label);
const char *label_pattern(struct arena *, const char *label);
/* The labels of the nodes that compute with a value, after nodes that only move, decode or cast it: each once, in order; from at most this
 * many nodes. */
struct label_list {
    VEC(const char *) list;
    int nodes;
};
struct label_list label_readers(struct arena *, const struct graph *, const struct uses *, const struct value *);

/* names.c: finds what a user's glob names in a graph: nodes and values by their names, weights also by their names in the model's file, and
 * all by the labels in reports. A node's label is a path: nodes inside a module match the module's path, too. A text that is exactly a name
 * matches only that. */
enum named_kind { NAMED_NODES = 1, NAMED_TENSORS = 2, NAMED_WEIGHTS = 4 };
struct names;
struct names *names_new(struct arena *, const struct graph *);
bool names_node(const struct names *, int node, const char *glob);
bool names_value(const struct names *, const struct value *, const char *glob);
/* The same, ignoring case. */
bool names_node_any_case(const struct names *, int node, const char *glob);
bool names_value_any_case(const struct names *, const struct value *, const char *glob);
/* Positions of nodes, or ids of values, in order. */
struct name_matches {
    VEC(int) at;
};
/* What is searched. where: for messages; kind: one of enum named_kind, `what` in words; among: by position or id, NULL: all. weight: by
 * node position, the weight whose names the node shares; NULL: none. */
struct name_search {
    const char *where, *what;
    enum named_kind kind;
    const bool *among;
    const struct value *const *weight;
    bool optional; /* a glob may match nothing */
};
/* All matches of the globs, which commas separate. A glob that matches nothing fails, with the nearest name and a few others, unless it is
 * optional. */
struct name_matches names_find(const struct names *, const struct name_search *, const char *globs);
/* Fails so; kinds: of enum named_kind. */
_Noreturn void names_refuse(const struct names *, const struct name_search *, unsigned kinds, const char *glob);

/* trained.c. trained_mark sets constant->trained of weights that an output depends on and that --train names and --freeze does not (with
 * --lora: of none), and counts in plan->trainable what they could name: tensors of the model with more than one float. trained_note_shared
 * warns of weights that several modules read; trained_tell lists weights under -v. */
void trained_mark(struct graph *, const struct options *, struct plan *);
void trained_note_shared(const struct graph *, struct plan *);
void trained_tell(const struct graph *, int n, struct value *const *weight);
struct weight_count trained_plus(struct weight_count, const struct value *);

#endif
