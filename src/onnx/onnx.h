/* onnx: files to IR and back. The only layer that sees protobuf. */
#ifndef TPC_ONNX_H
#define TPC_ONNX_H

#include "ir/configuration.h"
#include "ir/ir.h"
#include "kern/kern.h"

/* load.c: a model file. Attributes decoded by row, opset upgraded, functions inlined, external data located (not read). Every bad file
 * is a failure with one sentence. Nodes come in source form (shape operands are still edges). */
struct load_options {
    bool need_data;                /* false: a missing external file is no error until its bytes are asked for */
    struct folders external_roots; /* where external data may lie besides the model's folder */
    /* Of a folder: where bytes are that were in a file of the source (its location; "" is the model itself). NULL: in that file. False:
     * nowhere. */
    bool (*find)(void *, const char *file, int64_t offset, int64_t bytes, struct source *out);
    void *find_data;
    /* What --bind or the inputs of the run say of an input: values of a tensor, as --bind has them, or what a sequence or an optional holds
     * (compose/sequence_ends.c); NULL: nothing. bound NULL: nothing is known. */
    const char *(*bound)(void *, struct arena *, const char *input, bool tensor);
    /* The run gives this input, although it has an initializer; NULL: none is given. */
    bool (*given)(void *, struct arena *, const char *input);
    void *bound_data; /* of both */
};
struct graph *onnx_load(struct arena *, struct alg *, const char *path, const struct load_options *);
/* Ops without a row that loading replaces by these ops. */
void onnx_each_composed(void (*take)(void *, const char *domain, const char *op, int since, const char *of), void *data);
/* Forms of ops before an opset (0: all forms) that loading brings to the form of the row of `to`. */
void onnx_each_upgraded(void (*take)(void *, const char *domain, const char *op, int below, const char *to), void *data);

/* save.c, stream.c: graphs whose nodes are all ONNX nodes with operands in place, each a model file and a data file. Constants of 1 KiB
 * and more, not int64 shape operands, go to the data file (external, 64-byte aligned... 4096 for >= 1 MiB), others inline. */
struct save_options {
    const char *data_path; /* file to write; its base name becomes the location */
    /* Which bytes of a constant this rank holds, in order, in an arena that lives until they are read; NULL: all. The value's type says the
     * resulting dims. */
    int (*ranges)(void *, struct arena *, const struct value *, const struct byte_range **);
    void (*stored)(void *, const struct value *,
                   int64_t offset);           /* called with the place in the data file, before any is written; may be NULL */
    void (*finish)(void *, struct out *data); /* writes what else belongs there, at the end; NULL: nothing */
    void (*late)(void *, struct graph *);     /* called once all data is written: what else the graph's metadata is to say; NULL: nothing */
    void *data;                               /* first argument of these four */
    const char *producer;
    int planned;               /* values before this number have placements that nodes tell of; 0: none */
    bool digests;              /* the files keep digests of their weights, and of all weights of all graphs */
    struct progress *progress; /* counts the bytes written; may be NULL */
};
struct saved {
    struct written graph, data;
};
/* Saves n graphs, with paths, options and results of each. Streams: never holds more than one tensor, and reads one that several graphs
 * hold once. */
void onnx_save(int n, struct graph *const *, const char *const *paths, const struct save_options *, struct saved *out);
int64_t onnx_data_offset(int64_t end, int64_t bytes); /* the first offset from `end` on at which a tensor may begin */

/* ---- strip_weights.c: the model file with its weights elsewhere. */
/* Writes the weight-stripped form: the file's own bytes without big payloads. A stripped file is copied. */
struct written onnx_save_stripped(const char *path, const char *to);
/* Passes on the bytes of the file that the stripped one at path was made from; options->find returns where the payloads are. */
void onnx_restore(const char *path, const struct load_options *options, byte_taker *, void *data);
/* Every range of the model file and of external files that a tensor of the model refers to, in the order of the model; none whose file is
 * missing. */
struct spans onnx_spans(struct arena *, const char *path, const struct load_options *);

/* relocate.c: a model whose external data lie in another file. */
struct relocated {
    int64_t base, end; /* where the old file begins in the new one; how long it was */
};
struct relocation {
    const char *location;                                              /* of the new file, as the model is to name it */
    bool (*find)(void *, const char *location, struct relocated *out); /* of an old file; false: it stays */
    void *data;
};
/* Passes on the bytes of the model: all tensors that move, wherever they are, name the new file. */
void onnx_relocate(const char *path, const struct relocation *, byte_taker *, void *data);
/* The locations of all external data of the model. */
void onnx_each_location(const char *path, void (*see)(void *, const char *location), void *data);

/* weight_places.c: where the initializers of a model lie. */
struct weight_place {
    const char *name;
    struct tensor tensor; /* type and sizes */
    const char *file;     /* as the model names it; "": the model file. NULL: they are not one stretch of bytes */
    int64_t offset, bytes;
};
struct weight_places {
    struct weight_place *at;
    int n, cap;
};
struct weight_places onnx_weight_places(struct arena *, const char *path);

/* config_write.c: the model file with a multi-device configuration. IR version 11 at least; all else as it is. The file at `to` appears
 * whole; a model with external data must stay in its folder. */
struct annotation {
    const char *name; /* of the configuration; what the file says of one of this name is replaced */
    int devices;
    int64_t ir_version; /* of the model */
    /* What a node of the main graph (by its name in the IR) says of its operand or result; false: nothing. Memory is the arena's. */
    bool (*find)(void *, struct arena *, const char *node, const char *tensor, bool result, struct sharding *out);
    /* The pipeline stage of a node that has such a result; -1: of none, so the node gets that of the first one that reads its results.
     * NULL: there are no stages. */
    int (*stage)(void *, const char *node, const char *result);
    void *data;
};
void onnx_annotate(const char *path, const char *to, const struct annotation *);

/* version.c: the version of protobuf-c that is linked. */
const char *onnx_library(void);

/* ---- tensor_file.c: TensorProto files of ONNX's test layout, and numpy's .npy (format 1.0 to 3.0, C and Fortran order, little endian). */
struct tensor tensor_read_pb(struct arena *, const char *path, const char **name);
/* sequence_file.c: a sequence or an optional of ONNX's test layout; name NULL: the file is a TensorProto's. absent: it holds nothing. */
struct tensor_list {
    const char *name;
    bool absent;
    int n;
    struct tensor *at;
};
struct tensor_list sequence_read_pb(struct arena *, const char *path);
struct tensor tensor_read_npy(struct arena *, const char *path);
void tensor_write_npy(const char *path, const struct tensor *);
/* As tensor_read_npy, but the data stay in the mapped file, at any alignment; not in Fortran order. */
struct tensor tensor_map_npy(const char *path);

/* other_format.c: a file of another known format is a failure; it is told by its first bytes. */
void other_format_refuse(const char *path, struct map file);

/* safetensors.c: files of named tensors, and of texts. The data are mapped. */
#define SAFETENSORS_STATE "optimizer/" /* how names begin of what a checkpoint holds beside weights */
#define SAFETENSORS_CHECKPOINT "tpc checkpoint 2"
struct named_text {
    const char *key, *text;
};
struct safetensors {
    const char *path;
    struct map file;
    int n;
    const char **name;
    struct tensor *tensor; /* data at any alignment */
    VEC(struct named_text) texts;
    struct name_index index;
};
struct safetensors *safetensors_read(struct arena *, const char *path);
const struct tensor *safetensors_find(const struct safetensors *, const char *name); /* NULL: there is none */
const char *safetensors_text(const struct safetensors *, const char *key);           /* likewise */
/* Fails unless tpc-run wrote all bytes of the file, in this format: a text that it has, beside a digest. */
void safetensors_check(const struct safetensors *, const char *format);
bool safetensors_takes(const char *text); /* UTF-8, as all of a header is */
/* Writes what is before the data; the caller puts the bytes of all tensors after it, in this order. end: the digest. */
void safetensors_begin(struct out *, int n, const char *const *name, const struct tensor *, int texts, const struct named_text *);
void safetensors_end(struct out *);
/* Marks an empty file as one of the format that is not complete; safetensors_begin writes over the mark. False: errno. */
bool safetensors_mark(FILE *, const char *format);
/* The file begins as one of the format, complete or not. */
bool safetensors_is_begun(int file, const char *format);

#endif
