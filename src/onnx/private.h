/* onnx, private: what the files of this folder share. Nothing outside src/onnx includes it; it shows protobuf.
 *
 * A model is imported in three steps: wire.c checks the bytes and finds the big initializers, so that the message that protobuf-c
 * unpacks holds no weights; load.c, node.c and inline.c walk the message with a scope per graph or function call, which maps
 * names of the file to values of the IR; upgrade.c brings every node to the form its row describes before decode.c reads it. */
#ifndef TPC_ONNX_PRIVATE_H
#define TPC_ONNX_PRIVATE_H

#include "onnx/onnx.h"
#include "onnx/onnx.pb-c.h"

/* uthash allocates from the arena that is called hash_arena where the macro is used. */
#define uthash_malloc(size) arena_alloc(hash_arena, (size))
#define uthash_free(at, size) ((void)(at))
#include <uthash.h>

#define MODEL_FILE "an ONNX file" /* for messages */
#define OLDEST_OPSET 7
#define FORM_OPSET 23      /* the form the rows describe */
#define NEWEST_OPSET 28    /* later ones may change what an op means */
#define INLINE_BYTES 1024  /* constants below stay in the message */
#define MAX_INLINED 200000 /* nodes and calls in function bodies, all calls together: calls of calls grow without bound */

/* ---- wire.c ------------------------------------------------------------------------------------------------------------------ */
enum {
    MODEL_IR_VERSION = 1,
    MODEL_GRAPH = 7,
    MODEL_CONFIGURATION = 26,
    GRAPH_NODE = 1,
    GRAPH_INITIALIZER = 5,
    TENSOR_RAW_DATA = 9,
    TENSOR_EXTERNAL_DATA = 13,
    TENSOR_DATA_LOCATION = 14,
    NODE_INPUT = 1,
    NODE_OUTPUT = 2,
    NODE_NAME = 3,
    NODE_OP_TYPE = 4,
    NODE_DEVICE_CONFIGURATIONS = 10
};
#define MARK_KEY "tpc.raw" /* see strip_weights.c */
#define MARK_LOCATION "rank-files"
struct extent {
    int64_t tag, begin, end;
};                              /* a length-delimited field: where its tag is, and its content */
struct wire_initializer {       /* of the main graph */
    struct extent message, raw; /* raw.end == 0: no raw_data */
    int64_t mark;               /* where its mark begins; 0: none */
    bool external;
};
struct wire_index {
    struct extent graph;
    bool light; /* an initializer has a mark */
    VEC(struct wire_initializer) initializers;
    VEC(struct extent) tensors; /* every TensorProto, wherever it is */
};
/* Checks structure, wire types, lengths and depth. Failure: "PATH: not WHAT: ... at byte N". index may be NULL. */
void wire_check(struct arena *, const char *path, const char *what, struct map, const ProtobufCMessageDescriptor *, struct wire_index *);
/* A field: where its tag is, its content (of what has no length: its bytes), number and wire type. */
struct wire_field {
    int64_t tag, begin, end;
    uint32_t number;
    int wire;
    const ProtobufCFieldDescriptor *known;
};
/* The field at *at of a message that ends at end, which moves behind it; bytes must have passed wire_check. */
struct wire_field wire_next(struct map, int64_t *at, int64_t end);
/* Unpacks into the arena; bytes must have passed wire_check. */
void *wire_unpack(struct arena *, const char *path, const char *what, struct map, const ProtobufCMessageDescriptor *);

/* ---- segments.c: a message made of ranges of a file and new bytes, written without holding it ------------------------------------- */
struct segment {
    const uint8_t *at;
    int64_t bytes;
    const struct source *payload;
}; /* payload: the bytes are there, not at at */
struct pieces {
    struct arena *arena;
    const uint8_t *file;
    int64_t total;
    VEC(struct segment) list;
};
struct pieces pieces_from(struct arena *, const uint8_t *file);
void pieces_add(struct pieces *, struct segment);
void pieces_copy(struct pieces *, int64_t begin, int64_t end); /* of the file */
void pieces_append(struct pieces *, const struct pieces *inner);
/* The tag of a length-delimited field, and its length. */
void pieces_put_head(struct pieces *, uint32_t number, int64_t length);
/* The whole field. */
void pieces_put_message(struct pieces *, uint32_t number, const ProtobufCMessage *);
/* A message that is a model: its size is checked. path: for messages. */
void pieces_give(const struct pieces *, const char *path, byte_taker *, void *);

/* ---- strip_weights.c -------------------------------------------------------------------------------------------------------------------
 */
/* A copy of the model with marks for big payloads; the bytes themselves where they hold marks already. */
struct map light_model(struct arena *, struct map, const struct wire_index *);

/* ---- names: scope.c ------------------------------------------------------------------------------------------------------------ */
struct import;
struct name { /* one name of a scope */
    const char *text;
    struct value *value;
    bool defined;       /* produced, an input, or a constant */
    const char *reader; /* who used it before it was defined; for messages */
    UT_hash_handle hh;
};
struct scope {
    const char *prefix; /* "" for the main graph, else "call/" */
    struct name *names;
    size_t nopset;
    Onnx__OperatorSetIdProto **opset;
    const Onnx__FunctionProto *function; /* NULL: the main graph */
    const Onnx__NodeProto *call;         /* of the function */
    size_t nargument;
    Onnx__AttributeProto **argument; /* the call's attributes and the function's defaults */
    const struct scope *caller;
    struct graph *graph;          /* where its values are */
    struct scope *outer;          /* of a body: where names it does not define are looked up; else NULL */
    VEC(struct value *) captured; /* of a body: what it reads from around, in the order of its inputs */
};
/* The name will be defined by this scope. */
void scope_announce(struct import *, struct scope *, const char *name);
struct value *scope_read(struct import *, struct scope *, const char *name, const char *reader);
/* Twice is a failure. */
struct value *scope_define(struct import *, struct scope *, const char *name, const char *definer);
/* The name stands for a value that exists already. */
void scope_bind(struct import *, struct scope *, const char *name, struct value *);
/* The name will be defined and stands for a value that exists already. */
void scope_promise(struct import *, struct scope *, const char *name, struct value *, const char *reader);
bool scope_knows(const struct scope *, const char *name);
/* The name is a parameter for which the call of its function gives nothing. */
bool scope_lacks(const struct scope *, const char *name);
/* The value of a defined name, or NULL. */
struct value *scope_find(const struct scope *, const char *name);
/* A key no file can hold, for values we make; define it later by scope_define, or now: scope_ints. */
char *scope_fresh(struct import *, const char *display);
char *scope_ints(struct import *, struct scope *, const char *display, size_t n, const int64_t *);
char *scope_scalar(struct import *, struct scope *, const char *display, double);
void scope_close(struct import *, struct scope *); /* every name that was read is defined, else failure */
int scope_opset(const struct import *, const struct scope *, const char *domain, const char *where);

/* ---- the import as a whole: load.c ----------------------------------------------------------------------------------------------- */
struct text_key {
    const char *text;
    const void *item;
    UT_hash_handle hh;
};
struct import {
    struct arena *arena, *tmp; /* tmp: dies with the load */
    struct graph *graph;       /* being imported into: the main graph or a body */
    struct alg *alg;           /* of that graph */
    const char *path;
    const struct load_options *options;
    bool light; /* the file has marks itself: it is a folder's model.onnx */
    const Onnx__ModelProto *model;
    struct text_key *functions; /* "domain\nname\noverload" -> FunctionProto */
    struct text_key *declared;  /* value name -> ValueInfoProto, for outputs of ops without a row */
    struct text_key *node_names;
    struct text_key *sequences; /* name of a sequence value -> the keys of its parts (struct sequence of compose_onnx.c) */
    struct text_key *files;     /* location -> struct external_file */
    int fresh, inlined;
    int depth; /* of bodies around what is being imported */
};
const void *keyed_find(const struct text_key *, const char *text);
void keyed_add(struct arena *, struct text_key **, const char *text, const void *item);
const char *plain_domain(const char *domain); /* NULL and "ai.onnx" are "" */
const char *text_or(const char *text, const char *otherwise);
/* The type a ValueInfoProto declares; false: no tensor, or no rank. sized: absent dimensions become symbols NAME_axis. */
const struct dim *dim_param_parse(struct alg *, const char *text);
bool declared_type(struct import *, const Onnx__ValueInfoProto *, struct type *out);
/* Fails for what is declared to be something else than a tensor. */
void check_tensor_type(const struct import *, const Onnx__ValueInfoProto *, const char *where);

/* ---- node.c, inline.c ---------------------------------------------------------------------------------------------------------------- */
const char *node_label(struct import *, const Onnx__NodeProto *);
void import_node(struct import *, struct scope *, const Onnx__NodeProto *);
/* module.c: the node or call of that name in the graph is of the module that its metadata say. */
void import_module(struct import *, const Onnx__NodeProto *, const char *name);
/* In the form of the rows, attributes resolved: becomes a node or a constant. */
void import_plain(struct import *, struct scope *, const Onnx__NodeProto *, int opset);
char *unique_name(struct import *, char *base);
char *unique_node_name(struct import *, const struct scope *, const Onnx__NodeProto *);
/* The node's own name, or where that is empty one made of the op and its first output ("" where it has none). */
char *node_file_name(struct arena *, const char *own, const char *op_type, const char *out);
void import_constant(struct import *, struct value *, struct constant *);
/* to = Identity(from). */
void import_copy(struct import *, const char *name, struct value *from, struct value *to);
void collect_functions(struct import *);
const Onnx__FunctionProto *function_find(const struct import *, const Onnx__NodeProto *);
void inline_call(struct import *, struct scope *, const Onnx__NodeProto *, const Onnx__FunctionProto *);

/* ---- config_read.c: multi-device annotations of the main graph, as they are -----------------------------------------------------------
 */
void import_configurations(struct import *);
void import_shardings(struct import *, const Onnx__NodeProto *);

/* ---- body.c -----------------------------------------------------------------------------------------------------------------------------
 */
/* The bodies of a node whose attributes are decoded; what they capture becomes its last operands. */
void import_bodies(struct import *, struct scope *, const Onnx__NodeProto *, struct node *);
/* The body of this scope captures a value of the graph around: what it is inside. */
struct value *scope_capture(struct import *, struct scope *, const char *name, struct value *around);

/* ---- upgrade.c -------------------------------------------------------------------------------------------------------------------------
 */
/* Changes node in place and may import helper nodes; a form that can't be upgraded is a failure. */
void upgrade_node(struct import *, struct scope *, Onnx__NodeProto *, int opset);
/* The version since which op has another form than at opset, up to the form of the rows; 0: same form. */
int form_changed(const char *op, int opset);

/* ---- compose.c: see compose.h ------------------------------------------------------------------------------------------------------- */
/* Turns an op that stands for a few others into the last of them, in place, and imports those before it. */
void compose_node(struct import *, struct scope *, Onnx__NodeProto *);

/* ---- decode.c, tensor.c, external.c ----------------------------------------------------------------------------------------------------
 */
Onnx__AttributeProto *find_attribute(const Onnx__NodeProto *, const char *name);
void decode_attributes(struct import *, const Onnx__NodeProto *, struct node *);
void raw_attributes(struct import *, const struct scope *, const Onnx__NodeProto *, struct node *);
const char *data_type_text(struct arena *, int data_type);
bool is_external(const Onnx__TensorProto *);
struct constant *tensor_constant(struct import *, const Onnx__TensorProto *, const char *what); /* what: "initializer 'w'" */
/* dtype, dims and byte length; failures start with "PATH: WHAT". */
enum dtype tensor_layout(struct arena *, const Onnx__TensorProto *, const char *path, const char *what, int64_t *dim, int64_t *bytes);
/* The little-endian bytes of an inline tensor, into out. */
void tensor_bytes_of(const Onnx__TensorProto *, enum dtype, int64_t bytes, const char *path, const char *what, void *out);
/* to_half.c: up to NARROW_PIECE elements of an f32 constant, `bytes` from `offset` on, in the type that the value is stored in. Returns
 * their number. A number that the type can't hold is a failure naming file and tensor. */
enum { NARROW_PIECE = 4096 };
int64_t narrow_piece(const char *path, const struct value *, int64_t offset, int64_t bytes, uint16_t *out);
/* names.c: what the values of a graph, and of its bodies, are called in a file; by value id. */
struct value_names {
    const char *const *at;
    struct text_key **taken;
};
struct value_names names_of_graph(struct arena *, const struct graph *);
struct value_names names_of_body(struct arena *, const struct value_names *around, const struct node *, int body);
/* stream.c: the weights of a graph, in the order of its data file. */
struct saved_weight {
    const struct value *value;
    int64_t bytes, offset;
};
struct data_file {
    const char *model; /* where the graph comes from; for messages */
    const struct save_options *options;
    VEC(struct saved_weight) weights;
    struct written written; /* after data_write */
};
/* The bytes of a weight as they are stored here. */
void weight_give(const struct data_file *, const struct saved_weight *, byte_taker *, void *);
void data_write(int n, struct data_file *const *);
struct source external_source(struct import *, const Onnx__TensorProto *, const char *what, int64_t bytes);
/* Of a tensor with a mark: its payload in the model file, and where in its message that was. */
struct source external_payload(const struct import *, const Onnx__TensorProto *, const char *what, int64_t *at);
/* What any tensor with is_external refers to; false: the file does not exist. */
bool external_span(struct import *, const Onnx__TensorProto *, const char *what, struct span *out);

#endif
