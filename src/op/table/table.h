/* table: prototypes of every function that a row of schemas/ops.def names. A family file includes this, so a function that no row
 * names, or whose type differs from the row's use of it, does not compile cleanly. `none` is never defined: table.c puts NULL. */
#ifndef TPC_OP_TABLE_H
#define TPC_OP_TABLE_H

#include "ir/ir.h"

#define OP(name, domain, since, inputs, outputs, attributes, i, v, r, l, x, k, flags) \
    void infer_##i(struct graph *, struct node *);                                    \
    void value_##v(struct graph *, struct node *);                                    \
    struct rule *rule_##r(struct graph *, const struct node *);                       \
    void lower_##l(struct lowering *);                                                \
    void expand_##x(struct graph *, struct node *);
#include "schemas/ops.def"
#undef OP

#endif
