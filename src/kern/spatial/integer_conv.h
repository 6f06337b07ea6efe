/* integer_conv: a convolution of 8-bit integers, for the files integer_*.c. Channels are last; there are three spatial dimensions. */
#ifndef TPC_KERN_INTEGER_CONV_H
#define TPC_KERN_INTEGER_CONV_H

#include "kern/gemm/gemm.h"
#include "kern/spatial/spatial.h"

enum { X, W, B, Z, FACTOR, X_SCALE, X_ZERO, W_ZERO, Y_SCALE, Y_ZERO }; /* operands */

struct integer_conv {
    struct kcall *call;
    int64_t batch, groups, in, out, taps, places;
    int64_t size[3], kernel[3], result[3], stride[3], dilation[3], before[3];
    const uint8_t *x;
    uint8_t flip, x_zero; /* flip: to xor x with; x_zero is done */
};
/* What n channels from `from` on have; sums, zero: see struct bytes. */
void integer_conv_columns(const struct integer_conv *, int64_t from, int64_t n, const int32_t *sums, const int32_t *zero,
                          struct integer_columns *to);

/* Where the window of a place begins; places of all images are counted. */
void integer_conv_start(const struct integer_conv *, int64_t place, int64_t *at);

/* ---- integer_depthwise.c: each channel with a filter of its own. weight: int16_t [channels / BYTES_WIDTH][taps][BYTES_WIDTH], less the
 * zero points; sums as in struct bytes ---- */
struct bytes integer_depthwise_pack(struct kcall *, const struct bytes_source *, bool keep);
void integer_depthwise_run(const struct integer_conv *, const struct integer_results *, const struct bytes *);

#endif
