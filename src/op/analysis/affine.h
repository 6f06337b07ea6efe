/* affine: integer values whose elements are an affine function of their index, such as positions and row numbers. */
#ifndef TPC_OP_AFFINE_H
#define TPC_OP_AFFINE_H

#include "op/op.h"

/* The element at index i is base + the sum of step[d] * i[d]; step[d] is 0 where the dimension is 1. */
struct affine {
    const struct dim *base, *step[MAX_RANK];
};
/* What is known of a value: of all its elements (n == 1), or of those at each index of the last dimension, along which no step counts
 * (n > 1, index tuples). A NULL entry is not known; n == 0: nothing is. */
struct affines {
    int n;
    const struct affine **at;
};

/* Of the only result of a node in canonical form, from what is known of its operands (by value id). An operand that is known counts: where
 * the result is known, nothing else of it reaches the result. */
struct affines affine_of(struct graph *, const struct node *, const struct affines *known);
/* The last element counts less than k, the first at least 0, not counting the step along one dimension. */
bool affine_within(struct graph *, const struct affine *, const struct type *, int but, const struct dim *k);

#endif
