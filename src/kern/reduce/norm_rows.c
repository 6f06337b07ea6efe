/* norm_rows: LayerNormalization and RMSNormalization of rows of float32. Short rows are processed in blocks, step by step, so that a row
 * does not wait for the previous one. Products and sums may be contracted to multiply-adds: the result of an element depends only on its
 * row and its position there. */
#if defined(__clang__)
#pragma clang fp contract(fast)
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=fast")
#endif
#include "kern/core/core.h"
#include "kern/reduce/reduce.h"

#include <math.h>

enum { BLOCK_ROWS = 16, BLOCK = 1024 }; /* BLOCK: elements, for shorter rows */

static SIMD void mean_rows(const float *x, int64_t n, int64_t rows, float *mean)
{
    for (int64_t r = 0; r < rows; r++, x += n) {
        float s = 0;
        _Pragma("omp simd reduction(+:s)") for (int64_t i = 0; i < n; i++) s += x[i];
        mean[r] = s / (float)n;
    }
}

/* 1 / deviation of each row. */
static SIMD void spread_rows(const float *x, int64_t n, int64_t rows, float epsilon, const float *mean, float *inv)
{
    for (int64_t r = 0; r < rows; r++, x += n) {
        float s = 0, m = mean[r];
        _Pragma("omp simd reduction(+:s)") for (int64_t i = 0; i < n; i++) s += (x[i] - m) * (x[i] - m);
        inv[r] = s / (float)n + epsilon;
    }
    LOOP for (int64_t r = 0; r < rows; r++) inv[r] = 1 / sqrtf(inv[r]);
}

static SIMD void scale_rows(const struct norm_rows *p, const float *x, float *y, int64_t rows, const float *mean, const float *inv)
{
    const float *scale = p->scale, *bias = p->bias;
    for (int64_t r = 0; r < rows; r++, x += p->n, y += p->n) {
        float m = mean[r], by = inv[r];
        if (bias) {
            LOOP for (int64_t i = 0; i < p->n; i++) y[i] = (x[i] - m) * by * scale[i] + bias[i];
        } else {
            LOOP for (int64_t i = 0; i < p->n; i++) y[i] = (x[i] - m) * by * scale[i];
        }
    }
}

void norm_rows(const struct norm_rows *p, int64_t lo, int64_t hi)
{
    float mean[BLOCK_ROWS] = {0}, inv[BLOCK_ROWS];
    int64_t most = p->n >= BLOCK ? 1 : BLOCK / p->n < BLOCK_ROWS ? BLOCK / p->n : BLOCK_ROWS;
    for (int64_t row = lo; row < hi; row += most) {
        int64_t count = hi - row < most ? hi - row : most;
        const float *x = p->x + row * p->n;
        if (p->centre)
            mean_rows(x, p->n, count, mean);
        spread_rows(x, p->n, count, p->epsilon, mean, inv);
        scale_rows(p, x, p->y + row * p->n, count, mean, inv);
        for (int64_t r = 0; r < count; r++) {
            if (p->mean)
                p->mean[row + r] = mean[r];
            if (p->invstd)
                p->invstd[row + r] = inv[r];
        }
    }
}
