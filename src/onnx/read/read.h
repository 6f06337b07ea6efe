/* onnx/read: parts of a model's message to parts of a graph: names, tensors, attributes, nodes in the form of their row, subgraphs.
 *
 * A name scope for each graph or function call maps names of the file to values of the IR. */
#ifndef TPC_ONNX_READ_H
#define TPC_ONNX_READ_H

#include "onnx/message/message.h"

#define NEWEST_OPSET 28    /* later ones may change what an op means */
#define MAX_INLINED 200000 /* inlined nodes and calls: nested calls grow without bound */

struct name_scope;
struct import {
    struct arena *arena, *tmp; /* tmp: freed after the load */
    struct graph *graph;       /* the graph being imported into: the main graph or a subgraph */
    struct alg *alg;           /* of that graph */
    const char *path;
    const Onnx__ModelProto *model;
    struct external_files external;
    struct text_table *functions; /* "domain\nname\noverload" -> FunctionProto */
    struct text_table *declared;  /* value name -> ValueInfoProto, for outputs of ops without a row */
    struct name_index node_names;
    struct text_table *sequences; /* name of a sequence value -> its contents (struct sequence of onnx/compose) */
    const Onnx__NodeProto *own;   /* a node in a body that tpc made, whose names are not the file's (onnx/upgrade/scan.c) */
    int fresh, inlined;
    int depth; /* of subgraphs around the current one */
    /* Set by onnx/load.c. Imports any node: subgraphs and functions recurse through it. */
    void (*node)(struct import *, struct name_scope *, const Onnx__NodeProto *);
    /* The version since which an op has another form than at an opset, up to the form of the rows; 0: same form. */
    int (*form_changed)(const char *op, int opset);
};

/* ---- name_scope.c: the names of one graph or function call ------------------------------------------------------------- */
struct scoped_name;
struct name_scope {
    const char *prefix; /* "" for the main graph, else "call/" */
    struct scoped_name *names;
    size_t nopset;
    Onnx__OperatorSetIdProto **opset;
    const Onnx__FunctionProto *function; /* NULL: the main graph */
    const Onnx__NodeProto *call;         /* of the function */
    size_t nargument;
    Onnx__AttributeProto **argument; /* the call's attributes and the function's defaults */
    const struct name_scope *caller;
    struct graph *graph;          /* where its values are */
    struct name_scope *outer;     /* of a subgraph: where undefined names are looked up; else NULL */
    VEC(struct value *) captured; /* of a subgraph: outer values that it reads, in the order of its inputs */
};
/* The name will be defined by this scope. */
void name_scope_announce(struct import *, struct name_scope *, const char *name);
struct value *name_scope_read(struct import *, struct name_scope *, const char *name, const char *reader);
/* A second definition is a failure. */
struct value *name_scope_define(struct import *, struct name_scope *, const char *name, const char *definer);
/* The name stands for an existing value. */
void name_scope_bind(struct import *, struct name_scope *, const char *name, struct value *);
/* The name will be defined, and stands for an existing value. */
void name_scope_promise(struct import *, struct name_scope *, const char *name, struct value *, const char *reader);
bool name_scope_knows(const struct name_scope *, const char *name);
/* The name is a parameter that the call of its function leaves out. */
bool name_scope_lacks(const struct name_scope *, const char *name);
/* The value of a defined name, or NULL. */
struct value *name_scope_find(const struct name_scope *, const char *name);
/* The outer value becomes an input of this subgraph, which stands for it. */
void name_scope_add_capture(struct import *, struct name_scope *, struct value *outer, struct value *inside);
/* A key that no file can hold. Define it later by name_scope_define, or now: name_scope_ints, name_scope_floats, name_scope_scalar,
 * name_scope_whole. */
char *name_scope_fresh(struct import *, const char *display);
char *name_scope_ints(struct import *, struct name_scope *, const char *display, size_t n, const int64_t *);
char *name_scope_floats(struct import *, struct name_scope *, const char *display, size_t n, const float *);
char *name_scope_scalar(struct import *, struct name_scope *, const char *display, double);
char *name_scope_whole(struct import *, struct name_scope *, const char *display, enum dtype, int64_t); /* i64 or bool */
/* The name is never defined; why: the clause after it in "'x', which ...". */
void name_scope_withhold(struct import *, struct name_scope *, const char *name, const char *why);
/* A name that was read and is not defined is a failure. */
void name_scope_close(struct import *, struct name_scope *);
/* The model names a version of the domain. */
bool name_scope_imports(const struct import *, const char *domain);
int name_scope_opset(const struct import *, const struct name_scope *, const char *domain, const char *where);

/* ---- import.c, declared.c, tensor.c: constants, copies, names and types ------------------------------------------------ */
void import_constant(struct import *, struct value *, struct constant *);
/* to = Identity(from). */
void import_copy(struct import *, const char *name, struct value *from, struct value *to);
char *import_node_name(struct import *, const struct name_scope *, const Onnx__NodeProto *);
/* The type that a ValueInfoProto declares; false: no tensor, or no rank. Absent dimensions become symbols NAME_axis. */
bool declared_type(struct import *, const Onnx__ValueInfoProto *, struct type *out);
/* "a sequence", "a tensor of unknown rank", ...; for messages. */
const char *declared_kind(const Onnx__TypeProto *);
/* A value declared as anything but a tensor is a failure. */
void declared_check_tensor(const struct import *, const Onnx__ValueInfoProto *, const char *where);
struct constant *tensor_constant(struct import *, const Onnx__TensorProto *, const char *what); /* what: "initializer 'w'" */
/* sparse.c: a sparse tensor as a dense one; defines all sparse initializers of a graph in the scope. */
struct constant *sparse_constant(struct import *, const Onnx__SparseTensorProto *, const char *what);
void sparse_initializers(struct import *, struct name_scope *, const Onnx__GraphProto *);
/* dtype, dims and byte length; failures start with "PATH: WHAT". */
enum dtype tensor_layout(struct arena *, const Onnx__TensorProto *, const char *path, const char *what, int64_t *dim, int64_t *bytes);
/* The little-endian bytes of an inline tensor, into out. */
void tensor_content(const Onnx__TensorProto *, enum dtype, int64_t bytes, const char *path, const char *what, void *out);

/* The number of string i. */
int64_t tensor_string(const ProtobufCBinaryData *, const char *path, const char *what, size_t i);

/* tensor_file.c: a tensor in a file of at most `most` bytes. */
struct tensor tensor_of_proto(struct arena *, const Onnx__TensorProto *, const char *path, const char *label, size_t most);

/* ---- nodes: plain_node.c, inline.c, body.c, decode.c, module.c, config_read.c ------------------------------------------ */
/* A node in the form of the rows, attributes resolved, becomes a node or a constant. */
void read_plain_node(struct import *, struct name_scope *, const Onnx__NodeProto *, int opset);
/* The subgraphs of a node whose attributes are decoded; their captures become its last operands. */
void read_bodies(struct import *, struct name_scope *, const Onnx__NodeProto *, struct node *);
/* The module path of a node or call, from its metadata. */
void read_module(struct import *, const Onnx__NodeProto *, const char *name);
/* Multi-device configurations of the model, and a node's annotations under each. */
void read_configurations(struct import *);
void read_shardings(struct import *, const Onnx__NodeProto *);
void inline_collect(struct import *);
const Onnx__FunctionProto *inline_find(const struct import *, const Onnx__NodeProto *);
void inline_call(struct import *, struct name_scope *, const Onnx__NodeProto *, const Onnx__FunctionProto *);
/* The type of a node's attribute, which old writers leave out. */
int decode_found_type(const Onnx__AttributeProto *);
void decode_attributes(struct import *, const Onnx__NodeProto *, struct node *);
void decode_raw(struct import *, const struct name_scope *, const Onnx__NodeProto *, struct node *);

#endif
