/* message: ONNX files as protobuf messages, checked before they are unpacked and written from ranges of files. Of the IR it uses only types
 * and sources of bytes. */
#ifndef TPC_ONNX_MESSAGE_H
#define TPC_ONNX_MESSAGE_H

#include "ir/rank_meta.h"
#include "onnx/onnx.h"
#include "onnx/onnx.pb-c.h"

/* uthash allocates from the arena that is called hash_arena where the macro is used. */
#define uthash_malloc(size) arena_alloc(hash_arena, (size))
#define uthash_free(at, size) ((void)(at))
#include <uthash.h>

#define MODEL_FILE "an ONNX file" /* for messages */
#define FORM_OPSET 23             /* the form that the rows of ops.def describe */
#define PLACEHOLDER_KEY RANK_META_PLACEHOLDER
#define PLACEHOLDER_LOCATION "rank-files"
/* Metadata of a node, written by torch's dynamo exporter: the list of modules around it, beginning with the network itself. */
#define MODULES_KEY "pkg.torch.onnx.name_scopes"
#define MODULES_NETWORK "['', "

/* ---- wire.c: the wire format --------------------------------------------------------------------------------------- */
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
/* A length-delimited field: byte offsets of its tag and of its content. */
struct extent {
    int64_t tag, begin, end;
};
/* An initializer of the main graph. raw.end == 0: it has no raw_data. placeholder: where its placeholder begins; 0: none. */
struct wire_initializer {
    struct extent message, raw;
    int64_t placeholder;
    bool external;
};
struct wire_index {
    struct extent graph;
    bool stripped; /* an initializer has a placeholder */
    VEC(struct wire_initializer) initializers;
    VEC(struct extent) tensors; /* every TensorProto, wherever it is */
};
/* Checks structure, wire types, lengths and depth. Failure: "PATH: not WHAT: ... at byte N". index may be NULL. */
void wire_check(struct arena *, const char *path, const char *what, struct map, const ProtobufCMessageDescriptor *, struct wire_index *);
/* A field: offsets of its tag and content (without a length: of its bytes), number and wire type. */
struct wire_field {
    int64_t tag, begin, end;
    uint32_t number;
    int wire;
    const ProtobufCFieldDescriptor *known;
};
/* The field at *at of a message that ends at end; *at moves past it. The bytes must have passed wire_check. */
struct wire_field wire_next(struct map, int64_t *at, int64_t end);
/* True if the tensor's message says that its bytes are in another file. */
bool wire_is_external(struct map, const struct extent *tensor);
/* Unpacks into the arena. The bytes must have passed wire_check. */
void *wire_unpack(struct arena *, const char *path, const char *what, struct map, const ProtobufCMessageDescriptor *);

/* ---- proto.c: accessors of messages --------------------------------------------------------------------------------- */
const char *proto_text_or(const char *text, const char *otherwise);
const char *proto_domain(const char *domain); /* NULL and "ai.onnx" are "" */
Onnx__AttributeProto *proto_attribute(const Onnx__NodeProto *, const char *name);
/* An attribute without a value. */
Onnx__AttributeProto *proto_new_attribute(struct arena *, const char *name, Onnx__AttributeProto__AttributeType);
bool proto_is_external(const Onnx__TensorProto *);
const char *proto_data_type_name(struct arena *, int data_type);
/* "node 'NAME' (OP)", for messages. */
const char *proto_node_label(struct arena *, const Onnx__NodeProto *);
/* The node's own name; if empty, one made of the op and its first output ("": none). */
char *proto_node_name(struct arena *, const char *own, const char *op_type, const char *out);
/* dim_param.c: an expression if the text is one, else a symbol of that name; NULL: it has no meaning, as "?" and "-1". */
const struct dim *dim_param_parse(struct alg *, const char *text);

/* ---- text_table.c ----------------------------------------------------------------------------------------------------- */
/* A table is a pointer to its first entry; NULL: empty. */
struct text_table {
    const char *text;
    const void *item;
    UT_hash_handle hh;
};
const void *text_table_find(const struct text_table *, const char *text);
void text_table_add(struct arena *, struct text_table **, const char *text, const void *item);

/* ---- tensor_digest.c: the digest of a tensor's content, in its metadata ------------------------------------------------ */
/* Of strings: the message's; of other types: the bytes, as in raw_data. */
struct constant_digest tensor_digest_of(const Onnx__TensorProto *, const void *at, int64_t bytes);
/* It becomes the only entry of the tensor's metadata. */
void tensor_digest_put(struct arena *, Onnx__TensorProto *, struct constant_digest);

/* ---- external.c: where the bytes of external tensors are ------------------------------------------- */
struct external_files {
    struct arena *arena, *tmp; /* of the results; of the load */
    const char *path;          /* of the model */
    const struct load_options *options;
    bool stripped;            /* the model is weight-stripped: bytes of placeholders are in rank files */
    struct text_table *known; /* location -> struct external_file */
};
/* The source of a tensor's bytes, checked but not read. what: "initializer 'w'", for failures. */
struct source external_source(struct external_files *, const Onnx__TensorProto *, const char *what, int64_t bytes);
/* The source of a placeholder's payload in the model file; *at: its former offset in the tensor's message. */
struct source external_placeholder(const struct external_files *, const Onnx__TensorProto *, const char *what, int64_t *at);
/* The bytes that an external tensor refers to; false: the file does not exist. */
bool external_span(struct external_files *, const Onnx__TensorProto *, const char *what, struct span *out);

/* ---- segments.c: a message made of ranges of a file and new bytes, written without holding it -------------------------- */
/* payload: the bytes are there, not at `at`. */
struct segment {
    const uint8_t *at;
    int64_t bytes;
    const struct source *payload;
};
struct segments {
    struct arena *arena;
    const uint8_t *file;
    int64_t total;
    VEC(struct segment) list;
};
struct segments segments_new(struct arena *, const uint8_t *file);
void segments_add(struct segments *, struct segment);
void segments_copy(struct segments *, int64_t begin, int64_t end); /* of the file */
void segments_append(struct segments *, const struct segments *inner);
/* The tag and the length of a length-delimited field. */
void segments_add_head(struct segments *, uint32_t number, int64_t length);
/* A field with its content. */
void segments_add_message(struct segments *, uint32_t number, const ProtobufCMessage *);
/* Writes a model; one of 2 GiB or more is a failure. path: for messages. */
void segments_write(const struct segments *, const char *path, byte_taker *, void *);

/* ---- strip_weights.c -------------------------------------------------------------------------------------------------- */
/* The weight-stripped form of a model: placeholders replace its big payloads. A model with placeholders is returned as it is. */
struct map strip_weights(struct arena *, struct map, const struct wire_index *);

#endif
