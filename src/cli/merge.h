/* merge: tpc-shard --merge DIR -o MODEL.onnx. */
#ifndef TPC_MERGE_H
#define TPC_MERGE_H

#include "base/base.h"

/* Writes the source of an emitted folder to out, and its external data beside it, or fails and leaves nothing. force: replaces files. */
void merge_folder(struct arena *, const char *dir, const char *out, bool force);

#endif
