/* kern/table: prototypes of every kernel that a row of schemas/ops.def names. A kernel file includes this. `none` is never defined. */
#ifndef TPC_KERN_TABLE_H
#define TPC_KERN_TABLE_H

#include "kern/kern.h"

#define OP(name, domain, since, inputs, outputs, attributes, i, v, r, l, x, k, flags) void kern_##k(struct kcall *);
#include "schemas/ops.def"
#undef OP

#endif
