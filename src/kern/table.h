/* kern/table: prototypes of every kernel that a row of schemas/ops.def names. A kernel file includes this. */
#ifndef TPC_KERN_TABLE_H
#define TPC_KERN_TABLE_H

#include "kern/kern.h"

#define OP(name, domain, since, inputs, outputs, attributes, ...) __VA_ARGS__
#define INFER(f)
#define VALUE(f)
#define RULE_TEXT(text)
#define OVER(f)
#define RULE(f)
#define LOWER(f)
#define BACKWARD(f)
#define NO_BACKWARD(why)
#define SLIDE(f)
#define EXPAND(f)
#define KERNEL(f) void kern_##f(struct kcall *);
#define TAKES(types)
#define FLAGS(flags)
#define CODES(n)
#include "schemas/ops.def"

#endif
