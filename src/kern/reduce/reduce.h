/* kern/reduce: kernels along axes: reductions, softmax, norms, losses, running sums, top-k. */
#ifndef TPC_KERN_REDUCE_H
#define TPC_KERN_REDUCE_H

#include "kern/core/core.h"

/* ---- softmax.c: one line, in place */
void softmax_log_f32(float *x, int64_t n);
void softmax_log_f64(double *x, int64_t n);
void softmax_log_chunks(float *x, int64_t n); /* in one order; room for n more behind them */

/* softmax_rows.c: Softmax in float32 along a dimension with nothing behind it. False: it is not such a one. */
bool softmax_by_rows(struct kcall *);

#endif
