/* kern/table: prototypes of every kernel that a row of schemas/ops.def names. A kernel file includes this. `none` is never defined. */
#ifndef TPC_KERN_TABLE_H
#define TPC_KERN_TABLE_H

#include "kern/kern.h"

#define OP(name, domain, since, inputs, outputs, attributes, infer, value, rule, lower, expand, kernel, flags) \
    void kern_##kernel(struct kcall *);
#include "schemas/ops.def"
#undef OP

#endif
