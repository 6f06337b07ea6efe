/* read: a model's message to a graph of the IR.
 *
 * load.c walks the message with a scope for each graph or function call, which maps names of the file to values of the IR. node.c brings
 * every node to the form of its row (upgrade.c, compose*.c) before plain_node.c and decode.c import it. */
#ifndef TPC_ONNX_READ_H
#define TPC_ONNX_READ_H

#include "onnx/message/message.h"

#define NEWEST_OPSET 28    /* later ones may change what an op means */
#define MAX_INLINED 200000 /* nodes and calls in bodies that are inlined: calls of calls grow without bound */
#define OPSET_OF_NUMPY_BROADCAST 7

struct scope;
struct import {
    struct arena *arena, *tmp; /* tmp: freed after the load */
    struct graph *graph;       /* being imported into: the main graph or a subgraph */
    struct alg *alg;           /* of that graph */
    const char *path;
    const Onnx__ModelProto *model;
    struct external_files external;
    struct text_table *functions; /* "domain\nname\noverload" -> FunctionProto */
    struct text_table *declared;  /* value name -> ValueInfoProto, for outputs of ops without a row */
    struct name_index node_names;
    struct text_table *sequences; /* name of a sequence value -> what it holds (struct sequence of compose_sequence.c) */
    const Onnx__NodeProto *own;   /* a node in a body that tpc made, whose names are no file's (upgrade_scan.c) */
    int fresh, inlined;
    int depth; /* of subgraphs around what is being imported */
    /* read_node, through which subgraphs and functions recur. */
    void (*node)(struct import *, struct scope *, const Onnx__NodeProto *);
};

/* ---- scope.c: the names of one graph or function call ---------------------------------------------------------------- */
struct scope_name;
struct scope {
    const char *prefix; /* "" for the main graph, else "call/" */
    struct scope_name *names;
    size_t nopset;
    Onnx__OperatorSetIdProto **opset;
    const Onnx__FunctionProto *function; /* NULL: the main graph */
    const Onnx__NodeProto *call;         /* of the function */
    size_t nargument;
    Onnx__AttributeProto **argument; /* the call's attributes and the function's defaults */
    const struct scope *caller;
    struct graph *graph;          /* where its values are */
    struct scope *outer;          /* of a subgraph: where names it does not define are looked up; else NULL */
    VEC(struct value *) captured; /* of a subgraph: outer values that it reads, in the order of its inputs */
};
/* The name will be defined by this scope. */
void scope_announce(struct import *, struct scope *, const char *name);
struct value *scope_read(struct import *, struct scope *, const char *name, const char *reader);
/* A second definition is a failure. */
struct value *scope_define(struct import *, struct scope *, const char *name, const char *definer);
/* The name stands for an existing value. */
void scope_bind(struct import *, struct scope *, const char *name, struct value *);
/* The name will be defined and stands for an existing value. */
void scope_promise(struct import *, struct scope *, const char *name, struct value *, const char *reader);
bool scope_knows(const struct scope *, const char *name);
/* The name is a parameter that the call of its function leaves out. */
bool scope_lacks(const struct scope *, const char *name);
/* The value of a defined name, or NULL. */
struct value *scope_find(const struct scope *, const char *name);
/* The outer value becomes an input of this subgraph, which stands for it. */
void scope_add_capture(struct import *, struct scope *, struct value *outer, struct value *inside);
/* A key that no file can hold. Define it later by scope_define, or now: scope_ints, scope_floats, scope_scalar, scope_whole. */
char *scope_fresh(struct import *, const char *display);
char *scope_ints(struct import *, struct scope *, const char *display, size_t n, const int64_t *);
char *scope_floats(struct import *, struct scope *, const char *display, size_t n, const float *);
char *scope_scalar(struct import *, struct scope *, const char *display, double);
char *scope_whole(struct import *, struct scope *, const char *display, enum dtype, int64_t); /* i64 or bool */
/* The name is one that is never defined; why: what stands behind it in "'x', which ...". */
void scope_withhold(struct import *, struct scope *, const char *name, const char *why);
/* A name that was read and is not defined is a failure. */
void scope_close(struct import *, struct scope *);
/* The model names a version of the domain. */
bool scope_imports(const struct import *, const char *domain);
int scope_opset(const struct import *, const struct scope *, const char *domain, const char *where);

/* ---- import.c, declared.c, tensor.c: constants, copies, names and types ------------------------------------------------ */
void import_constant(struct import *, struct value *, struct constant *);
/* to = Identity(from). */
void import_copy(struct import *, const char *name, struct value *from, struct value *to);
char *import_node_name(struct import *, const struct scope *, const Onnx__NodeProto *);
/* The type that a ValueInfoProto declares; false: no tensor, or no rank. Absent dimensions become symbols NAME_axis. */
bool declared_type(struct import *, const Onnx__ValueInfoProto *, struct type *out);
/* "a sequence", "a tensor of unknown rank", ...; for messages. */
const char *declared_kind(const Onnx__TypeProto *);
/* A value that is declared as something else than a tensor is a failure. */
void declared_check_tensor(const struct import *, const Onnx__ValueInfoProto *, const char *where);
struct constant *tensor_constant(struct import *, const Onnx__TensorProto *, const char *what); /* what: "initializer 'w'" */
/* dtype, dims and byte length; failures start with "PATH: WHAT". */
enum dtype tensor_layout(struct arena *, const Onnx__TensorProto *, const char *path, const char *what, int64_t *dim, int64_t *bytes);
/* The little-endian bytes of an inline tensor, into out. */
void tensor_content(const Onnx__TensorProto *, enum dtype, int64_t bytes, const char *path, const char *what, void *out);

/* The number of string i of what is read. */
int64_t tensor_string(const ProtobufCBinaryData *, const char *path, const char *what, size_t i);

/* tensor_file.c: a tensor in a file of `most` bytes. */
struct tensor tensor_of_proto(struct arena *, const Onnx__TensorProto *, const char *path, const char *label, size_t most);

/* ---- nodes: node.c, plain_node.c, inline.c, body.c, decode.c, upgrade.c, module.c, config_read.c ------------------------ */
void read_node(struct import *, struct scope *, const Onnx__NodeProto *);
/* A node in the form of the rows, attributes resolved, becomes a node or a constant. */
void read_plain_node(struct import *, struct scope *, const Onnx__NodeProto *, int opset);
/* The subgraphs of a node whose attributes are decoded; what they capture becomes its last operands. */
void read_bodies(struct import *, struct scope *, const Onnx__NodeProto *, struct node *);
/* The module path of a node or call, from its metadata. */
void read_module(struct import *, const Onnx__NodeProto *, const char *name);
/* Multi-device configurations of the model, and what a node's annotations are under each. */
void read_configurations(struct import *);
void read_shardings(struct import *, const Onnx__NodeProto *);
void inline_collect(struct import *);
const Onnx__FunctionProto *inline_find(const struct import *, const Onnx__NodeProto *);
void inline_call(struct import *, struct scope *, const Onnx__NodeProto *, const Onnx__FunctionProto *);
void decode_attributes(struct import *, const Onnx__NodeProto *, struct node *);
void decode_raw(struct import *, const struct scope *, const Onnx__NodeProto *, struct node *);
/* Changes node in place and may import helper nodes; a form that can't be upgraded is a failure. */
void upgrade_node(struct import *, struct scope *, Onnx__NodeProto *, int opset);
/* The version since which op has another form than at opset, up to the form of the rows; 0: same form. */
int upgrade_form_changed(const char *op, int opset);

/* ---- upgrade_edit.c, upgrade_early.c: the node that is upgraded ------------------------------------------------------- */
struct upgrade {
    struct import *im;
    struct scope *scope;
    Onnx__NodeProto *node;
    int opset;
    const char *to; /* the op that it becomes */
    const char *where;
};
/* Takes an attribute off the node; NULL: it has none of that name. Of another type than given: a failure. */
Onnx__AttributeProto *upgrade_take(Onnx__NodeProto *, const char *name);
Onnx__AttributeProto *upgrade_remove(struct upgrade *, const char *name, Onnx__AttributeProto__AttributeType);
/* A new one of the arena, without a value. */
Onnx__AttributeProto *upgrade_attribute(struct arena *, const char *name, Onnx__AttributeProto__AttributeType type);
void upgrade_add_int(struct upgrade *, const char *name, int64_t);
void upgrade_add_float(struct upgrade *, const char *name, float);
void upgrade_add_text(struct upgrade *, const char *name, const char *text);
/* Sets operand number index; absent ones before it become "". */
void upgrade_set_input(struct upgrade *, size_t index, char *name);
/* The INTS attribute becomes operand index; false: there is none. */
bool upgrade_ints_to_input(struct upgrade *, const char *name, size_t index);
/* Results that the op has in training only are dropped; to read one is a failure. */
void upgrade_withhold_results(struct upgrade *, size_t first);
char *upgrade_display_name(struct upgrade *, const char *what);
/* A helper node with one output, imported at once. Returns the output's key. attr: one attribute, or NULL. */
char *upgrade_helper(struct upgrade *, const char *op, const char *suffix, size_t nin, char **in, const char *attr, int64_t value);
/* Forms before OPSET_OF_NUMPY_BROADCAST. */
void upgrade_early(struct upgrade *);
/* upgrade_scan.c */
void upgrade_scan(struct upgrade *);

/* ---- compose.c, compose_table.c: ops that are compositions of others --------------------------------------------------- */
struct composer {
    struct import *im;
    struct scope *scope;
    Onnx__NodeProto *node;
    const struct composition *row;
    const char *where;
};
/* run rewrites its node to the last op of the composition and imports the others; if it returns without doing so, the node has no row
 * and is replicated. */
struct composition {
    const char *domain, *op;
    int since;
    const char *of; /* all ops that it may consist of; no other can be made */
    void (*run)(struct composer *);
};
/* Each ends with a row without op. */
extern const struct composition compose_list_onnx[], compose_list_microsoft[], compose_list_integers[], compose_list_training[],
    compose_list_flex[], compose_list_ml[], compose_list_sequence[], compose_list_optimizer[];
void compose_node(struct import *, struct scope *, Onnx__NodeProto *);
bool compose_has(const Onnx__NodeProto *, size_t operand);
bool compose_gives(const Onnx__NodeProto *, size_t result);
/* The name of an operand; an absent one is a failure. */
char *compose_input(struct composer *, size_t);
/* The name of an operand, or NULL. */
char *compose_optional(struct composer *, size_t);
int64_t compose_int_of(const Onnx__NodeProto *, const char *name, int64_t otherwise);
float compose_float_of(const Onnx__NodeProto *, const char *name, float otherwise);
Onnx__AttributeProto *compose_int(struct composer *, const char *name, int64_t);
Onnx__AttributeProto *compose_truth(struct composer *, const char *name, bool);
Onnx__AttributeProto *compose_ints(struct composer *, const char *name, size_t n, const int64_t *);
Onnx__AttributeProto *compose_float(struct composer *, const char *name, float);
Onnx__AttributeProto *compose_string(struct composer *, const char *name, const char *);
/* A helper whose results are new values. NULL operands are absent, NULL attributes left out. Returns the first result; more: room for
 * the others. */
char *compose_node_of(struct composer *, const char *op, size_t nin, char *const *in, size_t nattr, Onnx__AttributeProto *const *attr,
                      size_t nout, char **more);
/* A helper with one or two operands, without attributes. */
char *compose_op(struct composer *, const char *op, char *a, char *b);
char *compose_cast(struct composer *, char *x, int64_t data_type);
/* A number of x's type. */
char *compose_number_like(struct composer *, double, char *x);
/* The node itself becomes op, with the operands and attributes that it has. */
void compose_rename(struct composer *, const char *op);
/* The node itself becomes op: its attributes are dropped, its results kept. */
void compose_become(struct composer *, const char *op, size_t nin, char *const *in);
void compose_become_with(struct composer *, const char *op, size_t nin, char *const *in, size_t nattr, Onnx__AttributeProto *const *attr);
/* Another result, if the node has it, is made by op and removed from the node. Call it for later results first. */
void compose_also(struct composer *, size_t result, const char *op, size_t nin, char *const *in);
/* compose_sequence.c: what a value that is a sequence or an optional holds. */
struct sequence {
    enum { SEQUENCE_LIST, SEQUENCE_STACK, SEQUENCE_PARTS, SEQUENCE_ABSENT } kind;
    size_t n;            /* LIST */
    struct value **at;   /* of them; STACK, PARTS: the tensor */
    int64_t axis, chunk; /* PARTS: so many indices each */
};
void compose_sequence_note(struct import *, const struct value *, struct sequence);
/* NULL: none that is known in the graph that is being imported. */
const struct sequence *compose_sequence_find(const struct import *, const struct value *);
/* sequence_ends.c: those that enter the main graph, and, when all its nodes are read, those that leave it. */
bool sequence_is_type(const Onnx__TypeProto *);
void sequence_enter(struct import *, struct scope *, const Onnx__ValueInfoProto *);
void sequence_leave(struct import *);
/* An input that must be known now becomes a constant if --bind or the inputs of the run tell its value. */
bool sequence_bind_input(struct import *, struct value *);
/* sequence_unroll.c: a Loop, false: it stays one; an If. */
bool sequence_unroll(struct composer *);
void sequence_branch(struct composer *);
/* sequence_loop.c: a sequence that a Loop begins empty and appends one tensor to in each iteration becomes a scan output; the result that
 * was sequence k then is the tensor of all elements, stacked. */
bool sequence_is_appended(const Onnx__NodeProto *loop, size_t state, char **element);
void sequence_to_scan(struct composer *, size_t state, const char *element, char *stack);
/* compose_body.c: the nodes of the body that the attribute holds, read here; in: what its inputs are; out: its results. */
void compose_body(struct composer *, const char *attribute, size_t nin, char *const *in, size_t nout, char **out);

#endif
