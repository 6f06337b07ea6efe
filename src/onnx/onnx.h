/* onnx: files to IR and back. The only layer that sees protobuf. */
#ifndef TPC_ONNX_H
#define TPC_ONNX_H

#include "ir/configuration.h"
#include "ir/ir.h"
#include "kern/kern.h"

/* load.c: a model file. Attributes decoded by row, opset upgraded, functions inlined, external data located (not read). A bad file is a
 * one-sentence failure. Nodes come in source form (shape operands are still edges). */
struct load_options {
    bool need_data;                /* false: a missing external file is no error until its bytes are read */
    struct folders external_roots; /* folders that may hold external data, besides the model's */
    /* For a folder: finds bytes that were in a file of the source (its location; "" is the model itself). NULL: they are in that file.
     * False: nowhere. */
    bool (*find)(void *, const char *file, int64_t offset, int64_t bytes, struct source *out);
    void *find_data;
    /* The value of an input by --bind or the run's inputs: a tensor's values, in --bind's form, or the contents of a sequence or an
     * optional (compose/sequence_ends.c); NULL: unknown. bound NULL: all are unknown. */
    const char *(*bound)(void *, struct arena *, const char *input, bool tensor);
    /* The run gives this input, although it has an initializer; NULL: none is given. */
    bool (*given)(void *, struct arena *, const char *input);
    void *bound_data; /* of both */
};
struct graph *onnx_load(struct arena *, struct alg *, const char *path, const struct load_options *);
/* Ops without a row that loading replaces by these ops. */
void onnx_each_composed(void (*take)(void *, const char *domain, const char *op, int since, const char *of), void *data);
/* Forms of ops before an opset (0: all forms) that loading rewrites to the form of `to`'s row. */
void onnx_each_upgraded(void (*take)(void *, const char *domain, const char *op, int below, const char *to), void *data);

/* save.c, stream.c: graphs of ONNX nodes only, each to a model file and a data file. Constants of 1 KiB and more, not int64 shape operands,
 * go to the data file (external, 64-byte aligned... 4096 for >= 1 MiB), others inline. */
struct save_options {
    const char *data_path; /* file to write; its base name becomes the location */
    /* Which bytes of a constant this rank holds, in order, in an arena that lives until they are read; NULL: all. The value's type says the
     * resulting dims. */
    int (*ranges)(void *, struct arena *, const struct value *, const struct byte_range **);
    void (*stored)(void *, const struct value *,
                   int64_t offset);           /* called with the offset in the data file before any write; may be NULL */
    void (*finish)(void *, struct out *data); /* appends to the data file at the end; NULL: nothing */
    void (*late)(void *, struct graph *);     /* called after the data is written, for more metadata; NULL: nothing */
    void *data;                               /* first argument of these four */
    const char *producer;
    int planned;               /* values before this number have placements, written as node metadata; 0: none */
    bool digests;              /* write digests of each weight, and of all weights of all graphs */
    struct progress *progress; /* counts the bytes written; may be NULL */
};
struct saved {
    struct written graph, data;
};
/* Saves n graphs, with paths, options and results of each. Streams: never holds more than one tensor, and reads one that several graphs
 * hold once. */
void onnx_save(int n, struct graph *const *, const char *const *paths, const struct save_options *, struct saved *out);
int64_t onnx_data_offset(int64_t end, int64_t bytes); /* the first legal tensor offset >= end */

/* ---- strip_weights.c: the model file with its weights elsewhere. */
/* Writes the weight-stripped form: the file's bytes without big payloads. A stripped file is copied. */
struct written onnx_save_stripped(const char *path, const char *to);
/* Emits the original of the stripped file at path; options->find locates the payloads. */
void onnx_restore(const char *path, const struct load_options *options, byte_taker *, void *data);
/* Every range of the model file and of external files that the model's tensors refer to, in the model's order, except in missing files. */
struct spans onnx_spans(struct arena *, const char *path, const struct load_options *);

/* relocate.c: a model whose external data moved to another file. */
struct relocated {
    int64_t base, end; /* where the old file begins in the new one; how long it was */
};
struct relocation {
    const char *location;                                              /* the new file's name in the model */
    bool (*find)(void *, const char *location, struct relocated *out); /* for an old file; false: it stays */
    void *data;
};
/* Emits the model with the new file's name in all tensors that move. */
void onnx_relocate(const char *path, const struct relocation *, byte_taker *, void *data);
/* The locations of all external data of the model. */
void onnx_each_location(const char *path, void (*see)(void *, const char *location), void *data);

/* weight_places.c: where a model's initializers are. */
struct weight_place {
    const char *name;
    struct tensor tensor; /* type and sizes */
    const char *file;     /* as the model names it; "": the model file. NULL: not one contiguous range */
    int64_t offset, bytes;
};
struct weight_places {
    struct weight_place *at;
    int n, cap;
};
struct weight_places onnx_weight_places(struct arena *, const char *path);

/* config_write.c: the model file with a multi-device configuration. IR version 11 at least; all else is unchanged. The file at `to` appears
 * whole; a model with external data must stay in its folder. */
struct annotation {
    const char *name; /* of the configuration, which replaces one of the same name in the file */
    int devices;
    int64_t ir_version; /* of the model */
    /* The sharding of an operand or result of a node of the main graph (by its name in the IR); false: none. Memory is the arena's. */
    bool (*find)(void *, struct arena *, const char *node, const char *tensor, bool result, struct sharding *out);
    /* The pipeline stage of a node with such a result; -1: unknown, so the node gets the stage of its results' first reader. NULL: no
     * stages. */
    int (*stage)(void *, const char *node, const char *result);
    void *data;
};
void onnx_annotate(const char *path, const char *to, const struct annotation *);

/* version.c: the version of protobuf-c that is linked. */
const char *onnx_library(void);

/* ---- tensor_file.c: TensorProto files of ONNX's test layout, and numpy's .npy (format 1.0 to 3.0, C and Fortran order, little endian). */
struct tensor tensor_read_pb(struct arena *, const char *path, const char **name);
/* sequence_file.c: a sequence or an optional of ONNX's test layout; name NULL: the file is a TensorProto's. absent: an empty optional. */
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

/* other_format.c: a file of another known format is a failure; recognised by its first bytes. */
void other_format_refuse(const char *path, struct map file);

/* safetensors.c: files of named tensors, and of texts. The data are mapped. */
#define SAFETENSORS_STATE "optimizer/" /* prefix of a checkpoint's tensors other than weights */
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
const struct tensor *safetensors_find(const struct safetensors *, const char *name); /* NULL: none */
const char *safetensors_text(const struct safetensors *, const char *key);           /* NULL: none */
/* Fails unless tpc-run wrote all bytes of the file, in this format: the metadata has this text and a digest. */
void safetensors_check(const struct safetensors *, const char *format);
bool safetensors_takes(const char *text); /* UTF-8, as in all headers */
/* Writes the header; the caller appends the bytes of all tensors, in this order. end: the digest. */
void safetensors_begin(struct out *, int n, const char *const *name, const struct tensor *, int texts, const struct named_text *);
void safetensors_end(struct out *);
/* Marks an empty file as an incomplete one of the format; safetensors_begin overwrites the mark. False: errno. */
bool safetensors_mark(FILE *, const char *format);
/* The file begins as one of the format, complete or not. */
bool safetensors_is_begun(int file, const char *format);

#endif
