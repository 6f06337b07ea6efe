/* kern/reduce: kernels along axes: reductions, softmax, norms, losses, running sums, top-k. */
#ifndef TPC_KERN_REDUCE_H
#define TPC_KERN_REDUCE_H

#include "kern/core/core.h"

/* ---- softmax.c: one line, in place */
void softmax_log_f32(float *x, int64_t n);
void softmax_log_f64(double *x, int64_t n);
void softmax_log_chunks(float *x, int64_t n); /* in a fixed order; with space for n more elements after them */

/* softmax_rows.c: Softmax in float32 along the last dimension. False: it is not the last. */
bool softmax_by_rows(struct kcall *);

/* ---- sum_rows.c: y[r] is the sum of row r of x, n numbers */
void sum_rows(const float *x, int64_t n, int64_t rows, float *y);

/* ---- norm_rows.c: rows of n > 0 numbers; bias, mean and invstd may be NULL */
struct norm_rows {
    bool centre; /* subtract the mean */
    int64_t n;
    float epsilon;
    const float *x, *scale, *bias; /* scale, bias: of a row */
    float *y, *mean, *invstd;      /* mean, invstd: one number per row */
};
/* Rows lo to hi. */
void norm_rows(const struct norm_rows *, int64_t lo, int64_t hi);

#endif
