/* integer_conv: a convolution of 8-bit integers, for the files integer_*.c. Data is channels-last, with three spatial dimensions. */
#ifndef TPC_KERN_INTEGER_CONV_H
#define TPC_KERN_INTEGER_CONV_H

#include "kern/conv/conv.h"
#include "kern/gemm/gemm.h"

struct integer_conv {
    struct kcall *call;
    int64_t batch, groups, in, out, taps, places;
    int64_t size[3], kernel[3], result[3], stride[3], dilation[3], before[3];
    const uint8_t *x;
    uint8_t flip, x_zero; /* flip: x is XORed with it; x_zero is flipped already */
    float per_unit;       /* factor of `factor` and bias */
};
/* ---- integer_columns.c ---- */
/* A number, or otherwise without a tensor. */
float integer_float(const struct tensor *, float otherwise);
/* The data of n channels from `from` on; sums, zero: see struct bytes. */
void integer_conv_columns(const struct integer_conv *, int64_t from, int64_t n, const int32_t *sums, const int32_t *zero,
                          struct integer_columns *to);

/* The start of a place's window; places are counted over all images. */
void integer_conv_start(const struct integer_conv *, int64_t place, int64_t *at);

/* ---- integer_windows.c: windows as runs of bytes, for bytes_dot.c ---- */
/* A run has all channels of contiguous taps along the last dimension: of one tap, or of all. */
struct integer_windows {
    const struct integer_conv *v;
    int64_t runs, lines, per_line, taps; /* per window; runs per line along the last dimension; taps per run */
    int64_t read, copy;                  /* bytes of a run that are read; bytes of a copy of it */
    const uint8_t *end;                  /* of x */
};
struct integer_windows integer_windows_of(const struct integer_conv *, const struct bytes *);
/* Memory for the pointers to `rows` windows. */
size_t integer_windows_bytes(const struct integer_windows *, int64_t rows);
/* Pointers: [groups of BYTES_ROWS places][runs][BYTES_ROWS]. */
const uint8_t *const *integer_windows_find(const struct integer_windows *, int64_t place, int64_t rows, void *room);

/* integer_depthwise.c: a filter per channel. weight: as read by integer_depthwise_sums.c, minus the zero points; sums as in struct bytes */
struct bytes integer_depthwise_pack(struct kcall *, const struct bytes_source *, bool keep);
void integer_depthwise_run(const struct integer_conv *, const struct integer_results *, const struct bytes *);

/* ---- integer_depthwise_sums.c: sums[places][BYTES_WIDTH] of a tile of channels, for each instruction set ---- */
/* Place i reads n channels of each tap, from tap[..] + from + i * step on. w: BYTES_WIDTH numbers per tap, in the order of
 * integer_depthwise_place; if taps is odd, tap has one more entry, whose numbers in w are 0. */
struct depthwise_tile {
    int64_t places, step, taps, from, n;
    const uint8_t *const *tap;
    const int16_t *w;
    uint8_t flip;
};
int64_t integer_depthwise_place(int64_t tap, int channel);
struct depthwise_kernel {
    enum isa isa;
    void (*sums)(const struct depthwise_tile *, int32_t *sums);
};
extern const struct depthwise_kernel integer_depthwise_kernels[]; /* fastest first, plain C last */
const struct depthwise_kernel *integer_depthwise_best(void);

#endif
