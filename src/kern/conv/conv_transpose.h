/* conv_transpose: the sizes of a transposed convolution. */
#ifndef TPC_KERN_CONV_TRANSPOSE_H
#define TPC_KERN_CONV_TRANSPOSE_H

#include "kern/core/core.h"

struct conv_transpose {
    int n;
    int64_t batch, groups, in, out; /* in, out: channels per group */
    int64_t size[MOST_SPATIAL], kernel[MOST_SPATIAL], result[MOST_SPATIAL], stride[MOST_SPATIAL], dilation[MOST_SPATIAL],
        before[MOST_SPATIAL];      /* offset before the result's start of X's place 0 under tap 0 */
    int64_t places, taps, results; /* products of size, kernel and result */
};
/* last: the channels of X and Y, and the output channels of W, are last. Fails if sizes do not match, or if types are not all f32, f16 or
 * bf16. */
void conv_transpose_read(const struct kcall *, struct conv_transpose *, bool last);

#endif
