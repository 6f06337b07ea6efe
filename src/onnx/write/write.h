/* write: graphs of the IR to model files, and their weights to data files. */
#ifndef TPC_ONNX_WRITE_H
#define TPC_ONNX_WRITE_H

#include "onnx/message/message.h"
#include "op/control/control.h"

/* ---- to_half.c -------------------------------------------------------------------------------------------------------- */
enum { TO_HALF_PIECE = 4096 }; /* elements */
/* Casts up to TO_HALF_PIECE elements of an f32 constant, `bytes` from byte `offset` on, to the type in which the value is stored. Returns
 * their number. A number that the type can't hold is a failure that names file and tensor. */
int64_t to_half_piece(const char *path, const struct value *, int64_t offset, int64_t bytes, uint16_t *out);

/* ---- names.c: names of values in a file, by value id ------------------------------------------------------------------- */
struct value_names {
    const char *const *at;
    struct text_table **taken;
};
struct value_names names_of_graph(struct arena *, const struct graph *);
struct value_names names_of_body(struct arena *, const struct value_names *around, const struct node *, int body);

/* ---- body_types.c: the types of values in the bodies of control flow ----------------------------------------------------- */
struct body_types;
/* The types of body k of a node of graph g, or of a body with the types `around`. NULL: unknown. */
const struct body_types *body_types_of(struct arena *, struct graph *g, const struct body_types *around, const struct node *, int k);
/* Sizes are in the main graph's symbols; NULL: unknown there. */
struct type body_type(const struct body_types *, const struct value *);

/* ---- node_metadata.c -------------------------------------------------------------------------------------------------- */
struct node_metadata {
    VEC(struct meta) list;
};
/* planned: values with lower numbers are in the plan; 0: no plan. */
struct node_metadata node_metadata_of(struct arena *, const struct graph *, const struct node *, int planned);

/* opset.c: the version of a domain that the nodes of a graph and of its bodies need. */
int64_t opset_version(const struct graph *, const char *domain);

/* ---- stream.c: the weights of a graph, in the order of its data file ---------------------------------------------------- */
struct saved_weight {
    const struct value *value;
    int64_t bytes, offset;
    bool hole;                     /* zeros, a hole in the source's file too */
    Onnx__TensorProto *tensor;     /* the message that refers to it; NULL: stays inline */
    struct constant_digest digest; /* after stream_files */
};
struct data_file {
    const char *model; /* where the graph comes from; for messages */
    const struct save_options *options;
    VEC(struct saved_weight) weights;
    struct written written; /* after stream_files */
};
/* The bytes of a weight as this file stores them. */
void stream_weight(const struct data_file *, const struct saved_weight *, byte_taker *, void *);
void stream_files(int n, struct data_file *const *);

#endif
