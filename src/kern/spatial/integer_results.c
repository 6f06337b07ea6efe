/* integer_results: exact sums of integers become real numbers, or codes. */
#include "kern/core/core.h"
#include "kern/spatial/spatial.h"

#include <math.h>
#include <string.h>

/* All columns are computed, so that loops have one length. */
#define INLINE static inline __attribute__((always_inline))

INLINE void real_numbers(const struct integer_columns *c, const int32_t *sum, uint32_t row, float *to)
{
    LOOP for (int j = 0; j < RESULT_COLUMNS; j++)
        to[j] = (float)(int32_t)((uint32_t)sum[j] + (uint32_t)c->start[j]) * c->factor[j] + c->bias[j];
    (void)row;
}

INLINE void real_numbers_less(const struct integer_columns *c, const int32_t *sum, uint32_t row, float *to)
{
    LOOP for (int j = 0; j < RESULT_COLUMNS; j++)
    {
        uint32_t less = (uint32_t)c->start[j] - row * (uint32_t)c->zero[j];
        to[j] = (float)(int32_t)((uint32_t)sum[j] + less) * c->factor[j] + c->bias[j];
    }
}

/* NaN stays one. */
INLINE void clamp(float lo, float hi, float *x)
{
    LOOP for (int j = 0; j < RESULT_COLUMNS; j++)
    {
        float y = x[j] < lo ? lo : x[j];
        x[j] = y > hi ? hi : y;
    }
}

INLINE void add(const float *z, int64_t n, float *x)
{
    if (n == RESULT_COLUMNS) {
        LOOP for (int j = 0; j < RESULT_COLUMNS; j++) x[j] += z[j];
    } else {
        LOOP for (int64_t j = 0; j < n; j++) x[j] += z[j];
    }
}

/* NaN becomes the least code, as in QuantizeLinear. */
INLINE void encode(const struct integer_results *r, const float *x, uint8_t *to)
{
    LOOP for (int j = 0; j < RESULT_COLUMNS; j++)
    {
        float y = rintf(x[j] * r->per_scale) + r->zero;
        y = y > r->least ? y : r->least;
        to[j] = (uint8_t)(int32_t)(y < r->most ? y : r->most);
    }
}

SIMD void integer_results_store(const struct integer_results *r, const struct integer_columns *c, int64_t place, int64_t rows,
                                const int32_t *sums, const int32_t *row)
{
    bool whole = c->n == RESULT_COLUMNS, clamps = r->lo > -INFINITY || r->hi < INFINITY;
    for (int64_t i = 0; i < rows; i++) {
        int64_t at = (place + i) * r->channels + c->from;
        float room[RESULT_COLUMNS], *x = r->real && whole ? r->real + at : room;
        uint8_t code[RESULT_COLUMNS];
        if (c->zeros)
            real_numbers_less(c, sums + i * RESULT_COLUMNS, (uint32_t)row[i], x);
        else
            real_numbers(c, sums + i * RESULT_COLUMNS, 0, x);
        if (clamps && !r->clamps_last)
            clamp(r->lo, r->hi, x);
        if (r->z)
            add(r->z + at, c->n, x);
        if (clamps && r->clamps_last)
            clamp(r->lo, r->hi, x);
        if (r->codes) {
            encode(r, x, whole ? r->codes + at : code);
            if (!whole)
                memcpy(r->codes + at, code, (size_t)c->n);
        } else if (!whole) {
            memcpy(r->real + at, x, (size_t)c->n * sizeof *x);
        }
    }
}
