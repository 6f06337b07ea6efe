/* onnx: files to IR and back. The only layer that sees protobuf. */
#ifndef TPC_ONNX_H
#define TPC_ONNX_H

#include "ir/ir.h"
#include "kern/kern.h"

/* ---- load.c: a model file. Attributes decoded by row, opset upgraded, functions inlined, external data located (not read). Every
 * bad file is a failure with one sentence. Nodes come in source form (shape operands are still edges). */
struct load_options {
    bool need_data;                  /* false: a missing external file is no error until its bytes are asked for */
    struct folders external_roots;   /* where external data may lie besides the model's folder */
};
struct graph *onnx_load(struct arena *, struct alg *, const char *path, const struct load_options *);

/* ---- save.c: a graph whose nodes are all ONNX nodes with operands in place. Constants of 1 KiB and more, not int64 shape operands,
 * go to data_path (external, 64-byte aligned... 4096 for >= 1 MiB), others inline. data_path NULL: all inline. */
struct saved_weight { const struct value *value; int nrange; const struct byte_range *range; int64_t bytes, offset; };
struct save_options {
    const char *data_path;           /* file to write; its base name becomes the location */
    bool skip_data;                  /* location and length only, the bytes are not written (the source graph without weight bytes) */
    /* Which bytes of a constant this rank holds, in order, to live until the save returns; NULL: all. The value's type says the resulting dims. */
    int (*ranges)(void *, const struct value *, const struct byte_range **);
    void *ranges_data;
    const char *producer;
    struct progress *progress;       /* told of the bytes written; NULL: nobody is */
};
/* Returns bytes of external data written. Streams: never holds more than one tensor. */
int64_t onnx_save(const struct graph *, const char *path, const struct save_options *);

/* version.c: the version of protobuf-c that is linked. */
const char *onnx_library(void);

/* ---- tensors.c: TensorProto files of ONNX's test layout, and numpy's .npy (format 1.0 to 3.0, C and Fortran order, little endian). */
struct tensor tensor_read_pb(struct arena *, const char *path, const char **name);
struct tensor tensor_read_npy(struct arena *, const char *path);
void tensor_write_npy(const char *path, const struct tensor *);

#endif
