/* conv_transpose: what a transposed convolution is. */
#ifndef TPC_KERN_CONV_TRANSPOSE_H
#define TPC_KERN_CONV_TRANSPOSE_H

#include "kern/core/core.h"

struct conv_transpose {
    int n;
    int64_t batch, groups, in, out; /* in, out: channels of a group */
    int64_t size[MOST_SPATIAL], kernel[MOST_SPATIAL], result[MOST_SPATIAL], stride[MOST_SPATIAL], dilation[MOST_SPATIAL],
        before[MOST_SPATIAL];      /* where X's place 0 under tap 0 lands before the result's start */
    int64_t places, taps, results; /* products of size, kernel and result */
};
/* last: the channels of X and Y, and the output channels of W, are the last dimension. Sizes that do not fit each other, and types that
 * are not one of f32, f16 and bf16, are failures. */
void conv_transpose_read(const struct kcall *, struct conv_transpose *, bool last);

#endif
