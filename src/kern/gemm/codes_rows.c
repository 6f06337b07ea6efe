/* codes_rows: rows of activations as digits of 8 bits. A step of a row has one scale: its greatest number is at most 127 of the first
 * digit. A digit leaves at most half of itself, and 128 times that is the next one. Scales of several digits are powers of two: then
 * integers are exact, however a product is split. */
#include "kern/core/core.h"
#include "kern/gemm/gemm.h"

#include <string.h>

enum { INFINITE = 0x7f800000 }; /* bits of a float; those of greater numbers are NaN */
#define INLINE static inline __attribute__((always_inline))
#define NEXT_DIGIT 128.0f
#define ROUNDER 12582912.0f /* 1.5 * 2^23: added to a small number, it leaves the nearest integer in the low bits */

struct step {
    float left[CODES_STEP]; /* in units of the next digit */
    float scale;            /* of that digit */
    int64_t count;
};

/* The bits of the greatest magnitude: their order is that of the numbers, and NaN is above all. */
INLINE int32_t greatest(const float *x)
{
    int32_t bits[CODES_STEP], most = 0;
    memcpy(bits, x, sizeof bits);
    _Pragma("omp simd reduction(max:most)") for (int i = 0; i < CODES_STEP; i++)
    {
        int32_t each = bits[i] & INT32_MAX;
        most = each > most ? each : most;
    }
    return most;
}

INLINE void times(float *x, float factor)
{
    LOOP for (int i = 0; i < CODES_STEP; i++) x[i] *= factor;
}

INLINE float power_of_two_above(float x)
{
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits + 0x7fffff) & INFINITE;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* A step with an infinity or a NaN is NaN; one whose scale would be no number of full precision is zero. */
INLINE void begin(struct step *s, int digits)
{
    int32_t most = greatest(s->left);
    float top;
    memcpy(&top, &most, sizeof top);
    s->scale = top / 127;
    if (most < INFINITE && s->scale > 1e-30f) {
        s->scale = digits > 1 ? power_of_two_above(s->scale) : s->scale;
        times(s->left, 1 / s->scale);
        return;
    }
    s->scale = most < INFINITE ? 0.0f : top - top;
    memset(s->left, 0, sizeof s->left);
}

/* Writes a digit of each number, 4 to a word, and leaves the rest; returns the sum of the digits. */
INLINE int32_t take_digit(struct step *s, int8_t *words)
{
    int32_t sum = 0;
    int8_t digit[CODES_STEP];
    _Pragma("omp simd reduction(+:sum)") for (int i = 0; i < CODES_STEP; i++)
    {
        float rounded = s->left[i] + ROUNDER - ROUNDER;
        int32_t whole = (int32_t)rounded;
        digit[i] = (int8_t)whole;
        s->left[i] = (s->left[i] - rounded) * NEXT_DIGIT;
        sum += whole;
    }
    for (int64_t i = 0; i < s->count; i += 4)
        memcpy(words + i * CODES_ROWS, digit + i, 4);
    s->scale /= NEXT_DIGIT;
    return sum;
}

SIMD void codes_row(const struct codes *w, const struct codes_rows *to, int digits, int64_t i, const float *a)
{
    int64_t group = i * digits / CODES_ROWS, first = i * digits % CODES_ROWS;
    struct step s = {.count = w->step};
    for (int64_t p = 0; p < to->steps; p++) {
        int64_t left = w->k - p * w->step, n = left < w->step ? left : w->step, at = (group * to->steps + p) * CODES_ROWS;
        memset(s.left, 0, sizeof s.left);
        if (n > 0)
            memcpy(s.left, a + p * w->step, (size_t)n * sizeof *a);
        begin(&s, digits);
        for (int64_t row = first; row < first + digits; row++) {
            to->scale[at + row] = s.scale;
            to->start[at + row] = -take_digit(&s, to->digit + at * w->step + row * 4) * (w->zeros ? 1 : w->zero);
        }
    }
}
