/* shape: ops that make, read, rearrange or cut out elements without computing on them. */
#ifndef TPC_OP_SHAPE_H
#define TPC_OP_SHAPE_H

#include "ir/ir.h"

/* One sliced axis of a Slice: bounds counted from 0 and clamped to the dimension; for a negative step, stop may be -1. size is the
 * resulting extent. start NULL: the bounds are unknown. */
struct slice {
    int axis;
    const struct dim *start, *stop, *size;
    int64_t step;
};
/* The sliced axes of a Slice node; -1 if an operand is unknown. */
int op_slices(struct graph *, const struct node *, struct slice out[MAX_RANK]);

#endif
