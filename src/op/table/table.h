/* table: the rows of schemas/ops.def as data, and the prototypes of every function that they name.
 *
 * Every file with such a function includes this: a function whose type does not match its column does not compile. */
#ifndef TPC_OP_TABLE_H
#define TPC_OP_TABLE_H

#include "ir/ir.h"

#define OP(name, domain, since, inputs, outputs, attributes, ...) __VA_ARGS__
#define INFER(f) void infer_##f(struct graph *, struct node *);
#define VALUE(f) void value_##f(struct graph *, struct node *);
#define RULE_TEXT(text)
#define OVER(f) uint32_t over_##f(struct graph *, const struct node *);
#define RULE(f) struct rule *rule_##f(struct graph *, const struct node *);
#define LOWER(f) void lower_##f(struct lowering *);
#define BACKWARD(f) void backward_##f(struct backward *);
#define NO_BACKWARD(why)
#define SLIDE(f) void slide_##f(struct graph *, struct node *, const struct slide *);
#define EXPAND(f) void expand_##f(struct graph *, struct node *);
#define KERNEL(f)
#define TAKES(types)
#define FLAGS(flags)
#define CODES(n)
#include "schemas/ops.def"

#endif
