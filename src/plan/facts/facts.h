/* facts: facts about a model before planning: its workloads, its state, the bytes of its weights. */
#ifndef TPC_FACTS_H
#define TPC_FACTS_H

#include "op/rule/rule.h"
#include "plan/plan.h"

/* limits.c: the bytes that a rank may hold, 0: no limit; do those of ranks differ? Bytes of a rank, weighed so that all have the limit
 * options->memory: times the weight, rounded up or down. Weighed, they are within options->memory where they are within the rank's limit.
 */
#define LIMIT_MOST ((int64_t)1 << 61)
int64_t limit_of(const struct options *, int rank);
bool limits_differ(const struct options *, int ranks);
double limit_weight(const struct options *, int rank);
int64_t limit_weighed(const struct options *, int rank, int64_t bytes, bool up);
/* Shares of what ranks divide, `whole` bytes, where rank r holds other[r] bytes besides: in proportion to their speeds, but a rank whose
 * limit leaves room for less gets that. NULL: none has room. */
const int64_t *limit_shares(struct arena *, const struct options *, double whole, const double *other);

/* dim_roles.c: what dimensions and symbols are for. */
enum dim_role { DIM_KV = 1, DIM_SEQUENCE = 2 };
enum symbol_kind {
    SYMBOL_OTHER,
    SYMBOL_PAST,
    SYMBOL_SEQUENCE,
    SYMBOL_CONTEXT,
    SYMBOL_STEPS,   /* what a recurrent net or windows of one dimension walk along */
    SYMBOL_SAMPLES, /* the same of a single channel: samples of sound */
    SYMBOL_SIDE     /* one of two sides of a picture */
};
struct symbol_role {
    const char *name;
    int64_t lo, usual; /* as struct dim has them */
    enum symbol_kind kind;
    bool of_input;        /* a size of a graph input */
    bool contracted, row; /* between activations; of a product */
    bool steps, samples, side;
    bool leading;   /* the first dimension of a graph input */
    bool of_output; /* outputs grow with it */
};
struct dim_roles {
    struct arena *arena;
    struct graph *g;
    struct rule **rule; /* by node position; NULL: no row or no rule, replicated */
    bool *weight;       /* by value id: weight_marks */
    VEC(struct symbol_role) symbols;
    struct name_index symbol_index;
    /* Of dim_roles alone: */
    int *class;                    /* by value id * MAX_RANK + dimension: dim_class.c */
    bool *head_size;               /* by class */
    unsigned char (*of)[MAX_RANK]; /* by value id: bits of enum dim_role */
};
/* Only of symbols, with the rules of products and of nodes that read weights alone; of dimensions, too, with all rules. */
struct dim_roles *dim_symbol_roles(struct arena *, struct graph *);
struct dim_roles *dim_roles_of(struct arena *, struct graph *);
struct symbol_role *dim_symbol_role(const struct dim_roles *, const char *name); /* NULL: the graph has no such symbol */
bool dim_has_role(const struct dim_roles *, const struct value *, int d, enum dim_role);
/* Is factor f contracted by a product of activations, or does it become a dimension that is? */
bool dim_factor_is_kv(const struct dim_roles *, int node, int f);
/* Does the node read a weight? */
bool dim_node_reads_weight(const struct dim_roles *, const struct node *);
/* Does the node multiply activations with one another? */
bool dim_node_multiplies_activations(const struct dim_roles *, const struct node *);
/* Is it an outer product (a rotary table: frequencies times positions)? Its constants are no weights. */
bool dim_node_sums_nothing(const struct dim_roles *, int node);

/* dim_class.c: dimensions that are the same one. An int per value id * MAX_RANK + dimension; class_of gives the representative. */
int dim_class_of(int *up, int at);
void dim_class_find_all(struct dim_roles *);
/* The class of factor f of the node's rule: of a dimension that is the factor alone; -1: none. */
int dim_class_of_factor(const struct dim_roles *, int node, int f);
/* Marks the class of factor f wherever it stands alone at the node; true when a mark is new. mark: by class. */
bool dim_class_mark_factor(const struct dim_roles *, int node, int f, bool *mark);
/* What is marked holds for the parts that are concatenated in, or cut out of, a marked dimension. */
void dim_class_spread(const struct dim_roles *, bool *mark);
/* Operand or result i of a node; NULL: it has none. */
struct value *dim_node_value(const struct node *, bool result, int i);
/* The dimensions of all operands and results that the rule of a node has, operands first; of a node without a rule none:
 * for (struct dim_walk w = dim_walk(node); dim_next(roles, &w);) */
struct dim_walk {
    int node;
    bool result;
    int i, d; /* of operand or result i dimension d */
    const struct value *value;
    const struct rule_dim *rule;
    int at; /* value id * MAX_RANK + d: what classes are of */
};
static inline struct dim_walk dim_walk(int node)
{
    return (struct dim_walk){.node = node, .d = -1};
}
bool dim_next(const struct dim_roles *, struct dim_walk *);

/* weight.c: by value id, is it a weight: a constant, or what a node that only moves elements, or decodes them, makes of constants? */
bool *weight_marks(struct arena *, struct graph *, struct rule **rule);
/* Does the node multiply a weight, or look it up? A constant index into an activation is no table. */
bool weight_is_used(const bool *weight, const struct node *);
/* May --weights give the constant another type: do only products and lookups read it, as their first or second operand, also through
 * ops that only move elements? */
bool weight_may_be_cast(const struct uses *, const struct value *);

/* workload.c: what is planned for. The texts of --workload, or the default: a prompt of 512 and 256 single steps at context 1024, where
 * symbols have the roles of dim_roles.c. Every symbol of the graph gets a value; the equations hold. */
void plan_workloads(struct graph *, const struct options *, struct plan *);
/* The tokens of a step at these sizes; 0: no input of the graph holds tokens. */
int64_t workload_tokens(struct graph *, const struct workload *);

/* empty.c: a warning for each workload of assumed sizes at which a node has a result without elements. */
void plan_note_empty(struct graph *, struct plan *);
/* long_text.c: a warning for each workload of --workload with a longer text than the configuration next to the model allows. */
void plan_note_long(struct graph *, const struct options *, struct plan *);
/* machine_notes.c: warnings where ranks need several machines and the profile has no link between them, and where a link's number is far
 * from any link's in its unit (bytes per second, seconds). */
void plan_note_machine(struct graph *, const struct options *, struct plan *);

/* kv_origin.c: keys and values that attention reads in a canonical graph, as the values that they are moved, repeated or scaled from; dim
 * is the KV dimension there, -1 where moves hide it. */
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
/* What dimension d of v is moved, repeated or scaled from; d may be -1. */
struct origin plan_kv_origin(struct graph *, struct value *, int d);

/* state.c: what a decode loop carries. Pairs, before types are known; then, in a canonical graph, input-only state (past only, dim -1) and
 * output-only state (present only). Graphs of one rank have the state that their files name. */
void plan_find_states(struct graph *);
void plan_find_unpaired_states(struct graph *);

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
/* state_from.c: dir/plan.json, which must be for as many ranks. plan_match_states: which of its states each state of the graph is, by name
 * (state_match); what placement the plan requires of it; what it comes from. */
struct other_plan *state_from_read(struct arena *, const char *dir, int ranks);
/* Of the text of a plan.json, which is called path. NULL: that graph has no state. */
struct other_plan *state_from_text(struct arena *, const char *path, const char *text, int ranks);
void plan_match_states(struct graph *, const struct options *, struct plan *);

/* layers.c: a layer is one of the repetitions of a block, as node positions. Those of block 0, which covers most products, come first. If
 * nothing repeats there is one at most, with repeat 1. */
struct layer_span {
    int first, end;
    int block, number, repeat; /* of its block it is layer `number` of so many, from 1 */
};
struct layers {
    VEC(struct layer_span) list;
    int blocks;
};
struct layers layers_find(struct arena *, const struct graph *, const struct dim_roles *);
/* Is the node a product with a weight? */
bool layers_is_product(const struct dim_roles *, int node);
/* The largest weight of a product; NULL: it has none of two or more dimensions. */
const struct value *layers_weight(const struct dim_roles *, const struct node *);

/* weight_bytes.c: a rank's part of a constant: outer times, the intervals of size rows of row bytes each. The same as byte ranges of the
 * source tensor, in order, merged where they adjoin. */
struct weight_layout {
    int64_t outer, size, row;
    int n;
    struct interval *interval;
};
struct weight_layout weight_layout(struct arena *, const struct constant *, struct placement, int rank);
int weight_ranges(struct arena *, const struct constant *, struct placement, int rank, const struct byte_range **out);
void weight_cut(struct graph *);               /* a rank's: constants become its parts, whose bytes are copied when they are asked for */
bool weight_converted(const struct options *); /* --weights gives f32 weights another type */
/* False where a placement takes apart bytes that hold two elements: then it is not offered. Only constants of such types are split. */
bool weight_divides(const struct value *, struct placement);
int64_t weight_bytes(const struct value *); /* of a value's type, which is static, as it is stored */

/* labels.c: the module or path of a node, without op and number: "model/layers.0/self_attn/q_proj"; a weight by its own name, or if that is
 * a number by its reader's; by both, "onnx::MatMul_7 of model/layers.0/mlp". The last part of a label. With numbers as *: what is alike in
 * several layers. */
const char *label_node(struct arena *, const struct graph *, const struct node *);
const char *label_weight(struct arena *, const struct graph *, const struct uses *, const struct value *);
const char *label_both(struct arena *, const struct graph *, const struct uses *, const struct value *);
const char *label_last(const char *label);
const char *label_pattern(struct arena *, const char *label);
/* The labels of the nodes that compute with a value, after those that only move, decode or cast it: each once, in order; of so many nodes.
 */
struct label_list {
    VEC(const char *) list;
    int nodes;
};
struct label_list label_readers(struct arena *, const struct graph *, const struct uses *, const struct value *);

/* names.c: what a glob of the user names in a graph: nodes and values by their own names, weights also by those of the model's file, and
 * all by the labels that reports show. A node's label is a path: what is within a module has the module's, too. A text that is a thing's
 * own name means that thing alone. */
enum named_kind { NAMED_NODES = 1, NAMED_TENSORS = 2, NAMED_WEIGHTS = 4 };
struct names;
struct names *names_new(struct arena *, const struct graph *);
bool names_node(const struct names *, int node, const char *glob);
bool names_value(const struct names *, const struct value *, const char *glob);
/* The same whatever the case of letters. */
bool names_node_any_case(const struct names *, int node, const char *glob);
bool names_value_any_case(const struct names *, const struct value *, const char *glob);
/* Positions of nodes, or ids of values, in order. */
struct name_matches {
    VEC(int) at;
};
/* What is looked for. where: for messages; kind: one of enum named_kind, as people call it in `what`; among: by position or id, NULL: all.
 * weight: by position of a node, the weight whose names are the node's, too; NULL: none. */
struct name_search {
    const char *where, *what;
    enum named_kind kind;
    const bool *among;
    const struct value *const *weight;
    bool optional; /* a glob may name nothing */
};
/* What one of the globs names that commas separate. One that names nothing is a failure that names what is nearest and a few others, unless
 * it is optional. */
struct name_matches names_find(const struct names *, const struct name_search *, const char *globs);
/* That failure; kinds: of enum named_kind. */
_Noreturn void names_refuse(const struct names *, const struct name_search *, unsigned kinds, const char *glob);

/* trained.c. trained_mark sets constant->trained of the weights that an output depends on and that --train names, and --freeze does not
 * (with --lora: of none), and counts in plan->trainable what they could name: tensors of the model with more than one float.
 * trained_note_shared makes a warning of weights that several modules read; trained_tell lists weights, under -v. */
void trained_mark(struct graph *, const struct options *, struct plan *);
void trained_note_shared(const struct graph *, struct plan *);
void trained_tell(const struct graph *, int n, struct value *const *weight);
struct weight_count trained_plus(struct weight_count, const struct value *);

#endif
