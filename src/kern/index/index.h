/* kern/index: the number of results of a selection, for inference once data is known. Operands as in the op's kernel; results are
 * absent. */
#ifndef TPC_KERN_INDEX_H
#define TPC_KERN_INDEX_H

#include "kern/kern.h"

int64_t index_compressed(struct kcall *); /* Compress: elements along the axis, by the condition alone */
int64_t index_distinct(struct kcall *);   /* Unique: different elements, or slices */
int64_t index_selected(struct kcall *);   /* NonMaxSuppression: boxes */

#endif
