/* kern/conv: convolutions, also of 8-bit integers, and functions of their results. */
#ifndef TPC_KERN_CONV_H
#define TPC_KERN_CONV_H

#include "kern/core/core.h"
#include "kern/core/window.h"

/* ---- conv_read.c: the sizes of a convolution of x, w and maybe a bias ---- */
struct conv {
    int spatial;
    bool last; /* x and y are channels-last */
    int64_t batch, groups, in, out;
    int64_t size[MOST_SPATIAL], kernel[MOST_SPATIAL], result[MOST_SPATIAL], stride[MOST_SPATIAL], dilation[MOST_SPATIAL],
        before[MOST_SPATIAL], after[MOST_SPATIAL];
    enum dtype dtype, stored; /* stored: the weight's type */
    const void *x, *w, *bias;
    void *y;
};
/* last: x and y are channels-last. Fails if sizes do not match. Does not check types. */
void conv_read(const struct kcall *, struct conv *, bool last);

/* ---- result_function.c: scale * f(x) + shift; alpha, beta: see enum conv_activation ---- */
struct result_function {
    void (*run)(const struct result_function *, float *x, int64_t n); /* NULL: the identity */
    float alpha, beta, scale, shift;
};
/* From the attributes of a convolution. */
struct result_function result_function_of(const struct node *);

/* ---- conv_swish.c ---- */
struct conv_shape;
/* Applies the activation CONV_SWISH to n results y; z: added afterwards, or NULL. */
void conv_swish(struct kenv *, const struct conv_shape *, int64_t n, const float *z, float *y);
/* The same as a result_function. */
void conv_swish_run(const struct result_function *, float *x, int64_t n);

/* ---- conv_tiles.c: like dnnl_convolve, where that has only plain loops ---- */
void conv_tiles(struct kcall *, void **cache, const struct conv_shape *, const float *x, const float *w, const float *factor,
                const float *bias, float *y);

/* ---- integer_results.c: functions of exact sums ---- */
enum { RESULT_COLUMNS = 32 };
/* How the sum is rounded before z is added: to multiples of a scale, within least..most. z is (code - z_zero) * z_scale; i8 codes are
 * stored plus 128. */
struct result_residual {
    float scale, least, most, z_scale, z_zero;
    bool is_signed; /* z's codes */
};
/* A result is f(sum * factor + bias) + z, or f(.. + z); as a code, it is rounded to a multiple of a scale. */
struct integer_results {
    int64_t channels;                /* of y and z, which are channels-last */
    float lo, hi;                    /* f as bounds; -inf, inf: none */
    struct result_function function; /* f otherwise */
    bool activates_last;             /* after adding z */
    const float *z;                  /* or NULL */
    const uint8_t *z_codes;          /* or NULL: */
    struct result_residual residual; /* factor and bias are in multiples of its scale */
    float *real;                     /* or NULL: */
    uint8_t *codes;                  /* round(result * per_scale) + zero; least..most: bounds of result * per_scale */
    float per_scale, least, most;
    int32_t zero;
    bool is_signed; /* codes are signed */
};
/* For each of n channels: the result's number is sum + start - seen * zero. */
struct integer_columns {
    _Alignas(64) int32_t start[RESULT_COLUMNS], zero[RESULT_COLUMNS];
    float factor[RESULT_COLUMNS], bias[RESULT_COLUMNS];
    int64_t from, n;
    bool zeros;
};
/* Rows of n columns in one pass: from sums, or from computed numbers, to real numbers or codes. Bounds apply to sums only. */
struct result_rows {
    int64_t count, n, apart, z_apart, made_apart; /* row strides of results, of z and of `made` */
    const int32_t *sums, *seen;                   /* seen: per row, the sum of x over its window; NULL: zero points are 0 */
    const float *made, *z;
    const uint8_t *z_codes;
    float *real;
    uint8_t *codes;
};
struct results_kernel {
    enum isa isa;
    void (*pass)(const struct integer_results *, const struct integer_columns *, const struct result_rows *);
};
extern const struct results_kernel integer_results_kernels[]; /* fastest first, plain C last */
const struct results_kernel *integer_results_best(void);
/* Stores results of places from `place` on: sums[rows][RESULT_COLUMNS]; seen[rows]: read only if there are zero points. */
void integer_results_store(const struct results_kernel *, const struct integer_results *, const struct integer_columns *, int64_t place,
                           int64_t rows, const int32_t *sums, const int32_t *seen);

/* ---- integer_conv.c: packs its filter for pack.c ---- */
struct packed_key;
bool integer_conv_packs(const struct kcall *, struct packed_key *);
bool integer_conv_pack(struct kcall *, const struct packed_key *);

/* ---- conv_patches.c ---- */
/* Whether conv_patches saves time. */
bool conv_patches_pay(const struct conv_shape *);
/* Converts the convolution of x to a pointwise one with the same weight bytes; returns its x, in ROOM_PANELS. */
const float *conv_patches(struct kcall *, struct conv_shape *, const float *x);

#endif
