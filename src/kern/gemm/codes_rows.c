/* codes_rows: rows of activations as digits of 8 bits. A step of a row has one scale: its greatest number is at most 127 of the first
 * digit. A digit leaves at most half of itself, and 128 times that is the next one. Scales of several digits are powers of two: then
 * integers are exact, however a product is split. */
#include "kern/core/core.h"
#include "kern/gemm/gemm.h"

#include <string.h>

enum { INFINITE = 0x7f800000 };                     /* bits of a float; those of greater numbers are NaN */
enum { HALF = CODES_STEP / 2, QUARTER = HALF / 2 }; /* reductions fold a step to 8 numbers, and go on one by one */
#define INLINE static inline __attribute__((always_inline))
#define NEXT_DIGIT 128.0f
#define ROUNDER 12582912.0f /* 1.5 * 2^23: added to a small number, it leaves the nearest integer in the low bits */

struct step {
    float left[CODES_STEP]; /* in units of the next digit */
    float scale;            /* of that digit */
};

/* The bits of the greatest magnitude: their order is that of the numbers, and NaN is above all. */
INLINE int32_t greatest(const float *x)
{
    int32_t bits[CODES_STEP];
    memcpy(bits, x, sizeof bits);
    LOOP for (int i = 0; i < CODES_STEP; i++) bits[i] &= INT32_MAX;
    LOOP for (int i = 0; i < HALF; i++) bits[i] = bits[i] > bits[i + HALF] ? bits[i] : bits[i + HALF];
    LOOP for (int i = 0; i < QUARTER; i++) bits[i] = bits[i] > bits[i + QUARTER] ? bits[i] : bits[i + QUARTER];
    for (int i = 1; i < QUARTER; i++)
        bits[0] = bits[i] > bits[0] ? bits[i] : bits[0];
    return bits[0];
}

/* The sum of x, which is used up. */
INLINE int32_t total(int32_t *x)
{
    LOOP for (int i = 0; i < HALF; i++) x[i] += x[i + HALF];
    LOOP for (int i = 0; i < QUARTER; i++) x[i] += x[i + QUARTER];
    for (int i = 1; i < QUARTER; i++)
        x[0] += x[i];
    return x[0];
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

/* Takes a digit of each number and leaves the rest; returns the sum of the digits. */
INLINE int32_t take_digit(struct step *s, int8_t *digit)
{
    int32_t whole[CODES_STEP];
    LOOP for (int i = 0; i < CODES_STEP; i++)
    {
        float rounded = s->left[i] + ROUNDER - ROUNDER;
        whole[i] = (int32_t)rounded;
        s->left[i] = (s->left[i] - rounded) * NEXT_DIGIT;
    }
    LOOP for (int i = 0; i < CODES_STEP; i++) digit[i] = (int8_t)whole[i];
    s->scale /= NEXT_DIGIT;
    return total(whole);
}

/* 4 digits to a word. */
INLINE void place_digits(const int8_t *digit, int count, int8_t *words)
{
    for (int i = 0; i < count; i += 4)
        memcpy(words + i * CODES_ROWS, digit + i, 4);
}

/* Step p of rows first.., of `count` numbers. */
INLINE void code_step(struct step *s, const struct codes *w, const struct codes_rows *to, int digits, int count, int64_t at, int64_t first)
{
    int8_t digit[CODES_STEP];
    begin(s, digits);
    for (int64_t row = first; row < first + digits; row++) {
        to->scale[at + row] = s->scale;
        to->start[at + row] = -take_digit(s, digit) * (w->zeros ? 1 : w->zero);
        place_digits(digit, count, to->digit + at * count + row * 4);
    }
}

SIMD void codes_row(const struct codes *w, const struct codes_rows *to, int digits, int64_t i, const float *a)
{
    int64_t group = i * digits / CODES_ROWS, first = i * digits % CODES_ROWS, at = group * to->steps * CODES_ROWS;
    struct step s;
    for (int64_t p = 0; p < to->steps; p++, at += CODES_ROWS) {
        int64_t left = w->k - p * w->step;
        if (left >= CODES_STEP && w->step == CODES_STEP) {
            memcpy(s.left, a + p * CODES_STEP, sizeof s.left);
            code_step(&s, w, to, digits, CODES_STEP, at, first);
            continue;
        }
        memset(s.left, 0, sizeof s.left);
        if (left > 0)
            memcpy(s.left, a + p * w->step, (size_t)(left < w->step ? left : w->step) * sizeof *a);
        code_step(&s, w, to, digits, (int)w->step, at, first);
    }
}
