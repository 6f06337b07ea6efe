/* rows: rows of activations as digits of 8 bits. A step of a row has one scale: its greatest number is at most 127 of the first
 * digit. A digit leaves at most half of itself, and 128 times that is the next one. Scales of several digits are powers of two: then
 * integers are exact, however a product is split.
 *
 * Steps go in batches, each phase for all of them: no step waits for its own greatest number, its divisions or its sum. */
#include "kern/codes/codes.h"
#include "kern/core/core.h"

#include <string.h>

enum { BATCH = 16, MOST = BATCH * CODES_STEP };
enum { INFINITE = 0x7f800000 }; /* bits of a float; those of greater numbers are NaN */
#define NEXT_DIGIT 128.0f
#define ROUNDER 12582912.0f /* 1.5 * 2^23: added to a small number, leaves the nearest integer in the low bits */
#define ROUNDER_BITS 0x4b400000u

struct batch {
    _Alignas(64) float left[MOST]; /* the remainder of each digit, in its units */
    const float *x;                /* [BATCH][step] */
    float factor[BATCH];           /* x * factor: in units of the digit */
    float scale[BATCH];            /* of that digit */
    int8_t digit[MOST];            /* [BATCH][step] */
    uint32_t sum[BATCH];           /* of each step's digits; wraps where the scale is NaN */
};

INLINE uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* The maxima of BATCH parts of x[n], in x or y, which are overwritten. */
INLINE const uint32_t *fold_greatest(uint32_t *x, uint32_t *y, int n)
{
    while ((n /= 2) >= BATCH) {
        for (int i = 0; i < n; i += BATCH)
            LOOP for (int j = i; j < i + BATCH; j++) y[j] = x[2 * j] > x[2 * j + 1] ? x[2 * j] : x[2 * j + 1];
        uint32_t *folded = y;
        y = x;
        x = folded;
    }
    return x;
}

/* The same for sums. */
INLINE const uint32_t *fold_sums(uint32_t *x, uint32_t *y, int n)
{
    while ((n /= 2) >= BATCH) {
        for (int i = 0; i < n; i += BATCH)
            LOOP for (int j = i; j < i + BATCH; j++) y[j] = x[2 * j] + x[2 * j + 1];
        uint32_t *folded = y;
        y = x;
        x = folded;
    }
    return x;
}

/* The bits of each step's largest magnitude: they compare like the numbers, with NaN above all. */
INLINE void greatest_of(const float *x, int step, uint32_t *most)
{
    uint32_t greater[MOST / 2], room[MOST / 4];
    int half = step / 2;
    for (int s = 0; s < BATCH; s++)
        LOOP for (int i = 0; i < half; i++)
        {
            uint32_t p = bits_of(x[s * step + i]) & INT32_MAX, q = bits_of(x[s * step + half + i]) & INT32_MAX;
            greater[s * half + i] = p > q ? p : q;
        }
    memcpy(most, fold_greatest(greater, room, BATCH * half), BATCH * sizeof *most);
}

static SIMD void find_greatest(const float *x, int step, uint32_t *most)
{
    if (step == CODES_STEP)
        greatest_of(x, CODES_STEP, most);
    else
        greatest_of(x, CODES_STEP / 2, most);
}

/* Splits off a digit of each number. Keeps the remainder, unless it is the last digit. */
INLINE void digits_of(struct batch *b, int step, bool last)
{
    uint32_t sum[MOST / 2], room[MOST / 4];
    int half = step / 2;
    for (int s = 0; s < BATCH; s++) {
        uint32_t whole[CODES_STEP];
        float factor = b->factor[s];
        LOOP for (int i = 0; i < step; i++)
        {
            float x = b->x[s * step + i] * factor, shifted = x + ROUNDER;
            whole[i] = bits_of(shifted);
            if (!last)
                b->left[s * step + i] = x - (shifted - ROUNDER);
        }
        LOOP for (int i = 0; i < step; i++) b->digit[s * step + i] = (int8_t)whole[i];
        LOOP for (int i = 0; i < half; i++) sum[s * half + i] = whole[i] + whole[i + half] - 2 * ROUNDER_BITS;
    }
    memcpy(b->sum, fold_sums(sum, room, BATCH * half), sizeof b->sum);
}

static SIMD void take_digits(struct batch *b, int step, bool last)
{
    if (step < CODES_STEP)
        digits_of(b, CODES_STEP / 2, last);
    else if (last)
        digits_of(b, CODES_STEP, true);
    else
        digits_of(b, CODES_STEP, false);
}

/* A step with an infinity or a NaN is NaN, whatever its digits; a step whose scale would be subnormal is zero. */
static SIMD void find_scales(struct batch *b, const uint32_t *most, int digits)
{
    uint32_t bits[BATCH];
    float top[BATCH];
    memcpy(top, most, sizeof top);
    LOOP for (int s = 0; s < BATCH; s++)
    {
        float scale = top[s] / 127;
        b->scale[s] = scale > 1e-30f ? scale : 0.0f;
    }
    if (digits > 1) { /* rounds up to a power of two */
        memcpy(bits, b->scale, sizeof bits);
        LOOP for (int s = 0; s < BATCH; s++) bits[s] = (bits[s] + 0x7fffff) & INFINITE;
        memcpy(b->scale, bits, sizeof bits);
    }
    LOOP for (int s = 0; s < BATCH; s++)
    {
        b->factor[s] = b->scale[s] > 0 ? 1 / b->scale[s] : 0.0f;
        b->scale[s] = most[s] < INFINITE ? b->scale[s] : top[s] - top[s];
    }
}

static void next_digit(struct batch *b)
{
    b->x = b->left;
    for (int s = 0; s < BATCH; s++) {
        b->factor[s] = NEXT_DIGIT;
        b->scale[s] /= NEXT_DIGIT;
    }
}

/* Writes `steps` steps to their place from `at` on, in row `row` of a group; 4 digits of a step are a word. */
INLINE void place(const struct batch *b, int step, const struct codes *w, const struct codes_rows *to, int64_t at, int64_t steps,
                  int64_t row)
{
    float *scale = to->scale + at * CODES_ROWS + row;
    int32_t *start = to->start + at * CODES_ROWS + row;
    int8_t *words = to->digit + at * CODES_ROWS * step + row * 4;
    uint32_t zero = w->zeros ? 1 : (uint32_t)w->zero;
    for (int64_t s = 0; s < steps; s++) {
        scale[s * CODES_ROWS] = b->scale[s];
        start[s * CODES_ROWS] = (int32_t)(0 - b->sum[s] * zero);
    }
    for (int64_t s = 0; s < steps * step; s += step)
        UNROLL for (int i = 0; i < step; i += 4) memcpy(words + (s + i) * CODES_ROWS, b->digit + s + i, 4);
}

static void place_steps(const struct batch *b, const struct codes *w, const struct codes_rows *to, int64_t at, int64_t steps, int64_t row)
{
    if (w->step == CODES_STEP)
        place(b, CODES_STEP, w, to, at, steps, row);
    else
        place(b, CODES_STEP / 2, w, to, at, steps, row);
}

void codes_row(const struct codes *w, const struct codes_rows *to, int digits, int64_t i, const float *a)
{
    int64_t group = i * digits / to->each, first = i * digits % to->each;
    int step = (int)w->step;
    float padded[MOST];
    struct batch b;
    for (int64_t p = 0; p < to->steps; p += BATCH) {
        int64_t steps = to->steps - p < BATCH ? to->steps - p : BATCH, left = w->k - p * step;
        uint32_t most[BATCH];
        b.x = padded;
        if (left >= BATCH * step)
            b.x = a + p * step;
        else
            memset(padded, 0, sizeof padded);
        if (left > 0 && left < BATCH * step)
            memcpy(padded, a + p * step, (size_t)left * sizeof *a);
        find_greatest(b.x, step, most);
        find_scales(&b, most, digits);
        for (int64_t row = first; row < first + digits; row++, next_digit(&b)) {
            take_digits(&b, step, row + 1 == first + digits);
            place_steps(&b, w, to, group * to->steps + p, steps, row);
        }
    }
}
