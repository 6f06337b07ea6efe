/* ir: one graph of nodes and values. Attributes are decoded once, at load, by the op's row; nothing later parses a string.
 *
 * Canonical form (after the shapes pass): an operand that only gives a size is gone. Its content is the node's output type (Reshape,
 * Expand, ConstantOfShape) or an attribute of kind DIMS named in the op's row (Slice starts, Split split, Reduce axes, ...). */
#ifndef TPC_IR_H
#define TPC_IR_H

#include "ir/constant/constant.h"

struct node;
struct graph;
struct value;
struct configuration; /* ir/configuration.h */

/* ---- values ---------------------------------------------------------------------------------------------------------- */
/* Shape information: the value of a small integer or boolean tensor as a vector of expressions, in addition to its type. */
struct dims_value {
    int n;
    const struct dim **at;
}; /* rank 0: n == 1 */

struct value {
    const char *name;
    const char *first_name;    /* the symbols of data-dependent sizes are named after it */
    struct type type;          /* global type; after localize, this rank's */
    struct constant *constant; /* not NULL: a constant */
    enum dtype stored;         /* of a constant: the type that files hold it in; DT_NONE: its own */
    struct dims_value *dims;   /* not NULL: known shape information */
    struct node *producer;     /* NULL: graph input or constant */
    int index;                 /* which output of the producer */
    int id;                    /* position in graph.values */
    int output, state;         /* which of the graph's outputs and states this is, plus 1; 0: none (ends.c) */
    struct placement place;    /* where its producer leaves it (after choose) */
    bool placed;
    const struct value *form_of; /* in a graph that runs: the value that this is another form of: other element order, codes, or padding */
    const struct value *outside; /* in a lowering priced alone: the operand of the lowered node, in its graph */
};
/* The type that a value has in memory and in files: its element type, or the one that a constant is stored in. */
enum dtype value_storage(const struct value *);
double value_width(const struct value *); /* bytes of an element; less than 1 in constants of few bits */

/* ---- attributes ------------------------------------------------------------------------------------------------------ */
enum attr_kind { ATTR_INT, ATTR_FLOAT, ATTR_STRING, ATTR_INTS, ATTR_FLOATS, ATTR_STRINGS, ATTR_DIMS, ATTR_TENSOR, ATTR_GRAPH, ATTR_RAW };
struct attr {
    const char *name;
    enum attr_kind kind;
    bool set;      /* false: absent and without default */
    int64_t i;     /* INT */
    double f;      /* FLOAT */
    const char *s; /* STRING */
    int n;         /* INTS, FLOATS, STRINGS, DIMS: count; RAW: bytes */
    const int64_t *ints;
    const double *floats;
    const char *const *strings;
    const struct dim **dims; /* DIMS: expressions; all integers where the op takes plain ints */
    struct constant *tensor;
    struct graph *graph; /* GRAPH: a body */
    const void *raw;     /* RAW: the AttributeProto as found (ops without a row) */
};

/* ---- rows: one per op, the projection of schemas/ops.def that src/op/registry.c builds ------------------------------------- */
struct rule; /* op/op.h */
struct lowering;
struct slide;    /* op/rule/rule.h */
struct backward; /* op/backward/backward.h */
struct kcall;    /* kern/kern.h */
struct kenv;
struct op_attr {
    const char *name;
    enum attr_kind kind;
    bool has_default;
    bool noted; /* files have it in the node's metadata: there is no such attribute in the standard. Of kind INT or STRING */
    struct attr value;
};
struct op_param {
    const char *name;
    bool optional, variadic;
    bool given;       /* computed or measured beforehand (angles, statistics): never trained */
    const char *size; /* NULL: data. "@name": folded into the DIMS attribute name; "@type": into the output type */
    uint32_t types;   /* a bit for each element type that the op takes; 0: inference or the kernel checks it */
};
struct op {
    const char *name, *domain;
    const char *plugin;                   /* the plug-in that defines it; NULL: none */
    int since;                            /* first opset of the form this row describes */
    int min_in, max_in, min_out, max_out; /* max -1: variadic */
    int nin, nout, nattr;
    const struct op_param *in, *out;
    const char *takes; /* the column of that name; NULL: none */
    const struct op_attr *attr;
    unsigned flags;                                            /* op/op.h */
    int codes;                                                 /* 8-bit roundings or reads of 8-bit values per result */
    void (*infer)(struct graph *, struct node *);              /* output types from operands; mismatch is a failure */
    void (*value)(struct graph *, struct node *);              /* shape information, where it carries any; or NULL */
    struct rule *(*rule)(struct graph *, const struct node *); /* NULL: only replicated */
    const char *rule_text;                                     /* what it reads; NULL: code makes the rule */
    uint32_t (*over)(struct graph *, const struct node *);     /* the dimensions that "[n a]" in the text means; NULL: none */
    void (*lower)(struct lowering *);                          /* NULL: its split form is itself */
    /* Computes some windows of one rank's node, where its rule has windows. */
    void (*slide)(struct graph *, struct node *, const struct slide *);
    void (*backward)(struct backward *);           /* gradients of operands from gradients of results; NULL: none */
    const char *no_backward;                       /* why there are none; NULL: there are */
    void (*expand)(struct graph *, struct node *); /* IR-only ops: standard ops at emit; NULL: none */
    void (*kernel)(struct kcall *);                /* NULL: none (collectives) */
    const char *infer_name, *value_name, *rule_name, *over_name, *lower_name, *backward_name, *expand_name,
        *kernel_name; /* "none" where NULL; --list-ops */
};
/* Finds the row of an op, or NULL: op_find (op/op.h), as a parameter, for readers of nodes. */
typedef const struct op *op_lookup(const char *domain, const char *name);

/* ---- nodes ------------------------------------------------------------------------------------------------------------ */
struct node {
    const struct op *op;         /* NULL: no row; optype and domain tell */
    const char *optype, *domain; /* domain "" is ai.onnx */
    const char *name;
    int nin, nout, nattr;
    struct value **in;     /* NULL where an optional input is absent; positions are kept */
    struct value **out;    /* likewise; trailing absent ones are cut */
    struct attr *attr;     /* in the order of the op's row (all present), or as found when op is NULL */
    int opset;             /* opset of its domain at load (ops without a row keep it) */
    void *strategy;        /* chosen by choose; struct strategy of op/op.h */
    struct value *forward; /* in the backward half: the forward result whose gradient this node contributes to; NULL: not in that half */
    bool again;            /* in the backward half: recomputes a forward value (--recompute) */
    bool on_ranks;         /* in a lowering: each rank runs it on its own shards; no rule of the global graph describes it */
};

struct state {
    struct value *past, *present; /* past NULL: output-only, present NULL: input-only */
    int dim;                      /* the growing dimension, -1 none */
    const char *from;             /* the output of another graph of the model that past starts from; NULL: unknown */
};
/* A weight and the number of the output that is its gradient: both are placed alike. */
struct trained {
    struct value *weight;
    int output;
    struct constant *initial; /* what it held before it became an input (job/weight_inputs.c); NULL: it is a constant */
};
/* In a stage: a weight that another stage trains and whose new value it sends; an input meanwhile (job/weight_inputs.c). */
struct followed {
    struct value *weight;
    struct constant *initial;
    struct type type; /* global */
    struct placement place;
    int stage;
};
struct meta {
    const char *key, *text;
};

/* A form that depends on unknown sizes or values of inputs, such as that of an If whose branches differ in their number of dimensions. */
struct undecided {
    const char *what; /* NULL: none */
    VEC(const struct dim *) by;
    VEC(struct value *) inputs; /* of the graph, whose values decide */
};

struct rank_meta;
struct graph {
    struct arena *arena;
    struct alg *alg;
    const char *name, *path;    /* path: the file it came from, for messages; may be NULL */
    VEC(struct node *) nodes;   /* topologically sorted */
    VEC(struct value *) values; /* every value ever made; dead ones have no producer and no users */
    VEC(struct value *) inputs, outputs;
    int captures; /* of a body: how many of its inputs, the last ones, are values of the graphs around its node */
    VEC(struct state) states;
    VEC(struct trained) trained; /* with --train */
    VEC(struct followed) followed;
    VEC(struct meta) meta;
    struct name_index meta_at;                  /* positions by key */
    VEC(struct meta) opsets;                    /* domain -> version as text, of the source */
    VEC(struct configuration *) configurations; /* of the source; copies have none */
    int64_t ir_version;
    int opset;                   /* of ai.onnx that the graph's nodes follow after load: max(source, 23) */
    int in_flight;               /* of a stage that trains: microbatches whose activations it holds at once; 0: not one */
    int late;                    /* of such a stage: its first input that a later stage sends; all after it are, too */
    int ranks, rank;             /* ranks: 0 before choose; rank: -1 for the global graph */
    struct rank_meta *rank_meta; /* of a rank file (ir/rank_meta.h); NULL: it is none */
    bool keeps_sums;             /* nodes that make partial sums stay as they are (tpc-run --deterministic) */
    unsigned properties;         /* enum property, kept by the pass manager */
    struct undecided undecided;  /* the first that inference met; types after it are not known */
    struct names *names;         /* graph.c: value by name */
    struct modules *modules;     /* module.c: NULL: no node has one */
};
/* Properties of a graph between passes. */
enum property {
    PROP_LOADED = 1,
    PROP_TYPED = 2,
    PROP_CANONICAL = 4,
    PROP_PLACED = 8,
    PROP_EXPLICIT = 16 /* reshards are nodes */,
    PROP_LOCAL = 32
};

/* ---- graph.c ------------------------------------------------------------------------------------------------------------ */
struct graph *graph_new(struct arena *, struct alg *, const char *name);
/* A new value; a name already in use gets a suffix. type NULL: not known yet. */
struct value *graph_value(struct graph *, const char *name, const struct type *);
/* A value of the same elements in another order, or as codes of them. */
struct value *graph_form(struct graph *, const struct value *of, const char *name, const struct type *);
/* The next value of a copy: same name, type and id as the source's. */
struct value *graph_twin(struct graph *, const struct value *of);
struct value *graph_constant(struct graph *, const char *name, enum dtype, int rank, const int64_t *dim, const void *data);
struct value *graph_ints(struct graph *, const char *name, int n, const int64_t *at); /* i64[n] */
/* One of the operands has no type because its producer has no row: its readers are treated as nodes without a row, too. */
bool value_any_untyped(int nin, struct value *const *in);
/* A node with attributes at their defaults, inserted nowhere. Outputs are to be set by the caller (node_output). */
struct node *graph_node(struct graph *, const struct op *, const char *name, int nin, struct value *const *in, int nout);
void node_output(struct graph *, struct node *, int index, struct value *);
/* The op of a node, with its attributes, on other operands; its results are to be set. */
struct node *graph_node_like(struct graph *, const struct node *, const char *name, int nin, struct value *const *in);
/* Operand or result i; NULL: the node has none there. */
static inline struct value *node_operand(const struct node *n, int i)
{
    return i < n->nin ? n->in[i] : NULL;
}
static inline struct value *node_result(const struct node *n, int i)
{
    return i < n->nout ? n->out[i] : NULL;
}
void graph_append(struct graph *, struct node *);
/* Insert before position at in g->nodes. */
void graph_insert(struct graph *, int at, struct node *);
/* Inserts nodes with one result each before the first node that reads it, or at the end. */
void graph_insert_before_use(struct graph *, int n, struct node *const *);
struct value *graph_find(const struct graph *, const char *name);
struct configuration *graph_configuration(const struct graph *, const char *name); /* NULL: no such name */
/* Makes another value the output, and the end of its state. That value takes the name; the old value gets the name with the suffix.
 */
void graph_move_output(struct graph *, int output, struct value *to, const char *suffix);
/* Every use of old becomes new (also as graph output when outputs is true: new then takes over the name of the output; it stays
 * old where new is itself an input, an output or a constant, so names of the interface never change). One walk over the graph. */
void graph_replace(struct graph *, struct value *old, struct value *new_value, bool outputs);
/* The same for many values in one walk: to[id] replaces the value of that id, NULL leaves it; chains are followed,
 * and shortened in to. */
void graph_rewire(struct graph *, struct value **to, bool outputs);
/* Gives every node a name that no node before it has: the first keeps its own, the others get a suffix. */
void graph_name_nodes(struct graph *);
/* Drops nodes none of whose outputs is used; keeps graph inputs. Renumbers nothing. */
void graph_prune(struct graph *);
/* Sorts g->nodes topologically, stable; a cycle is a bug. */
void graph_sort(struct graph *);
/* The same for nodes as a file has them: a cycle is a failure naming a node in it. */
void graph_sort_read(struct graph *);
/* Uses of each value, by value id; a graph output is a use with node NULL. Arena: scratch. */
struct use {
    struct node *node;
    int index;
};
struct uses {
    int n;
    struct use *at;
};
struct uses *graph_uses(const struct graph *, struct arena *);
/* By node: a marked value depends on it. marked: by value id; what these depend on is marked, too. */
bool *graph_leads_to(const struct graph *, struct arena *, bool *marked);
/* True for one of the first n values that has one reader, or is an output without readers. */
bool graph_reads_once(const struct uses *, int n, const struct value *);
/* For messages: the file it came from, or its name. */
const char *graph_file(const struct graph *);
const char *graph_meta(const struct graph *, const char *key);
void graph_set_meta(struct graph *, const char *key, const char *text);
/* "node 'x' (MatMul)" and "model.onnx: node 'x' (MatMul)" for messages. */
const char *node_label(const struct graph *, const struct node *);
/* "node 'x' (Gather): 'ids'" for a node that looks up indices: the operand, or the model's input that its attribute lookup names. */
const char *node_lookup(const struct graph *, const struct node *, int indices);
const char *node_where(const struct graph *, const struct node *);
/* The thread now works on the node (diag_work_on). */
struct diag_subject node_work_on(const struct graph *, const struct node *);

/* ---- ends.c: the lists of outputs and states; only these functions change them ---- */
void graph_add_output(struct graph *, struct value *); /* not an output yet */
void graph_clear_outputs(struct graph *);
int graph_input_named(const struct graph *, const char *name); /* its number; -1: none */
int graph_output_named(const struct graph *, const char *name);
/* The output, and the state that it is an end of, becomes another value. */
void graph_set_output(struct graph *, int output, struct value *to);
/* The first input that is a weight, while tpc-run trains; the number of inputs if none is. */
int graph_weight_inputs(const struct graph *);
/* Which output the value is, -1: none. */
int graph_output_number(const struct graph *, const struct value *);
void graph_add_state(struct graph *, struct state);
void graph_clear_states(struct graph *);
/* The state that the value is an end of; NULL: none. */
struct state *graph_state(const struct graph *, const struct value *end);
/* Is it the output of some state? */
bool graph_is_present(const struct graph *, const struct value *);

/* module.c: the module of the network that a node was exported from, by its path "model.layers.0.mlp". A node that a pass makes is named
 * after a node of the model, NODE/PART, and belongs to its module. */
enum { MODULE_PATH = 512 }; /* characters of a path, at most; at least one */
/* For the model's node of that name; the first path set holds. */
void graph_set_module(struct graph *, const char *node, const char *path);
/* NULL: not known. */
const char *node_module(const struct graph *, const struct node *);

/* ---- copy.c: the same nodes, values, names and order; constants, bodies and strategies are shared. Value ids are kept. ------------- */
struct graph *graph_copy(struct arena *, const struct graph *);
/* With dimensions of another interner; for graphs without placements. Equations are not taken over. */
struct graph *graph_copy_to(struct arena *, struct alg *, const struct graph *);
/* Appends to *out copies of the nodes of body k, which has no inputs but captures: they read what it captures and make the node's results.
 */
struct nodes {
    VEC(struct node *) list;
};
void graph_unfold(struct graph *, const struct node *, int k, struct nodes *out);

/* ---- state_match.c: state that passes between two graphs of a model --------------------------------------------------------- */
struct handed {
    const char *name;
    struct type type;
}; /* a state by the name of one of its ends; the global type */
struct handover {
    const char *file;
    int n;
    const struct handed *at;
}; /* file: for messages */
/* match[i]: the position in from of the state that to[i] takes, -1 none. Two match when element type, rank and sizes known as integers are
 * equal, the numbers in their names are the same, and their names end in the same components (between '.', '_' and '/'); more such
 * components win: past_key_values.0.encoder.key takes present.0.encoder.key. Two that fit equally well are a failure naming both. */
void state_match(const struct handover *to, const struct handover *from, int *match);

/* ---- attr.c ------------------------------------------------------------------------------------------------------------- */
/* "i", "f", ...: its name in the text form. */
const char *attr_kind_name(enum attr_kind);
bool attr_kind_parse(const char *name, enum attr_kind *out);
struct attr *attr_find(const struct node *, const char *name); /* NULL: the op has no such attribute */
/* By name of the op's row; a name that is not in the row is a bug() ----------------------------------------- */
struct attr *node_attr(const struct node *, const char *name);
bool attr_is_set(const struct node *, const char *name);
int64_t attr_int(const struct node *, const char *name);
double attr_float(const struct node *, const char *name);
const char *attr_string(const struct node *, const char *name);
/* INTS, or DIMS whose entries are all integers (else bug). Returns the count; *out valid as long as the graph. */
int attr_ints(const struct graph *, const struct node *, const char *name, const int64_t **out);
int attr_floats(const struct node *, const char *name, const double **out);
int attr_strings(const struct node *, const char *name, const char *const **out);
int attr_dims(const struct node *, const char *name, const struct dim ***out);
void attr_set_int(struct node *, const char *name, int64_t);
void attr_set_float(struct node *, const char *name, double);
void attr_set_string(struct node *, const char *name, const char *);
void attr_set_dims(struct graph *, struct node *, const char *name, int n, const struct dim *const *);
void attr_copy(struct node *to, const struct node *from); /* every attribute that both have, of the same kind */
void attr_rewrite_dims(struct graph *, struct node *);    /* all attributes of kind DIMS, by the current equations */
void attr_set_ints(struct graph *, struct node *, const char *name, int n, const int64_t *);

/* ---- body.c: the graphs that a node of control flow owns (If, Loop, Scan), its attributes of kind GRAPH ---------------------- */
/* A body has its own interner, because its assumptions about sizes hold only where it runs. It stays as it was loaded, without types, until
 * it is inferred for the operands of its node (op/control/subgraph.c, lower/graph/body.c). Its captures stand for the last operands of the
 * node: first the first body's, then the second's. Every output is the result of its own node. Weights are captured: a body holds small
 * constants. */
enum { DEEPEST_BODY = 16 }; /* nesting depth */
bool op_has_bodies(const struct op *);
int node_bodies(const struct node *);
/* The attribute that holds body k. */
struct attr *node_body(const struct node *, int k);
/* The operand that is the first capture of body k; k == node_bodies: the number of operands. */
int node_captured(const struct node *, int k);
/* The defect of a node's bodies, as the end of a sentence; NULL: nothing. */
const char *node_bodies_fault(const struct node *);

/* ---- verify.c: invariants; a violation is a bug() naming after, node and value ------------------------------------------- */
void graph_verify(const struct graph *, const char *after);

#endif
