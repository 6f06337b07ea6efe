/* sum_rows: sums of rows of float32. A short row is four partial sums, which take less time than the sum of a vector. */
#include "kern/core/core.h"
#include "kern/reduce/reduce.h"

static void short_rows(const float *x, int64_t n, int64_t rows, float *y)
{
    enum { SUMS = 4 };
    int64_t whole = n / SUMS * SUMS;
    for (int64_t r = 0; r < rows; r++, x += n) {
        float s[SUMS] = {0};
        for (int64_t i = 0; i < whole; i += SUMS)
            LOOP for (int k = 0; k < SUMS; k++) s[k] += x[i + k];
        for (int64_t i = whole; i < n; i++)
            s[i - whole] += x[i];
        y[r] = (s[0] + s[2]) + (s[1] + s[3]);
    }
}

static SIMD void long_rows(const float *x, int64_t n, int64_t rows, float *y)
{
    for (int64_t r = 0; r < rows; r++, x += n) {
        float s = 0;
        _Pragma("omp simd reduction(+:s)") for (int64_t i = 0; i < n; i++) s += x[i];
        y[r] = s;
    }
}

void sum_rows(const float *x, int64_t n, int64_t rows, float *y)
{
    enum { SHORT = 128 };
    (n < SHORT ? short_rows : long_rows)(x, n, rows, y);
}
