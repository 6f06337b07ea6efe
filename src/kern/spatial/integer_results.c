/* integer_results: exact sums of integers become real numbers, or codes. */
#include "kern/core/core.h"
#include "kern/spatial/spatial.h"

#include <math.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))
enum { ROWS = 8, PIECE = 8, HALF = RESULT_COLUMNS / 2 }; /* rows with fewer columns at a time; elements copied at a time */

/* Rows of HALF or all columns: loops have one of two lengths. */
struct rows {
    int64_t n, z_apart, apart; /* rows; elements from a row of z, and of the results, to the next */
    const int32_t *sums;
    const float *z;
    float *real;
    uint8_t *codes;
};

/* What is the same for all elements. It is copied, as a byte that is written may be anything's. */
struct scalars {
    float lo, hi, per_scale, least, most;
    int32_t zero;
};

/* NaN stays one. */
INLINE float clamp(struct scalars s, float x)
{
    x = x < s.lo ? s.lo : x;
    return x > s.hi ? s.hi : x;
}

/* NaN becomes the least code, as in QuantizeLinear. The bounds are integers, so they may come before rounding. */
INLINE int32_t encode(struct scalars s, float x)
{
    float y = x * s.per_scale;
    y = y > s.least ? y : s.least;
    return __builtin_irintf(y < s.most ? y : s.most) + s.zero;
}

enum { CODES = 1, ADDS = 2, CLAMPS_FIRST = 4, CLAMPS_LAST = 8 };

INLINE void store_rows(struct scalars s, const struct integer_columns *c, struct rows r, int columns, int kind)
{
    float *restrict real = r.real;
    uint8_t *restrict codes = r.codes;
    for (int64_t i = 0; i < r.n; i++, r.sums += RESULT_COLUMNS, r.z += kind & ADDS ? r.z_apart : 0) {
        LOOP for (int j = 0; j < columns; j++)
        {
            float x = (float)(int32_t)((uint32_t)r.sums[j] + (uint32_t)c->start[j]) * c->factor[j] + c->bias[j];
            x = kind & CLAMPS_FIRST ? clamp(s, x) : x;
            x = kind & ADDS ? x + r.z[j] : x;
            x = kind & CLAMPS_LAST ? clamp(s, x) : x;
            if (kind & CODES)
                codes[i * r.apart + j] = (uint8_t)encode(s, x);
            else
                real[i * r.apart + j] = x;
        }
    }
}

/* A loop for each kind of result. */
#define KIND(K)                                         \
    case K:                                             \
        if (c->n > HALF)                                \
            store_rows(s, c, *rows, RESULT_COLUMNS, K); \
        else                                            \
            store_rows(s, c, *rows, HALF, K);           \
        break;
#define KINDS(K) KIND(K) KIND(K | CLAMPS_FIRST) KIND(K | CLAMPS_LAST)

static SIMD void store(const struct integer_results *r, const struct integer_columns *c, const struct rows *rows)
{
    struct scalars s = {r->lo, r->hi, r->per_scale, r->least - r->zero, r->most - r->zero, (int32_t)r->zero};
    bool clamps = r->lo > -INFINITY || r->hi < INFINITY;
    switch ((r->codes ? CODES : 0) | (r->z ? ADDS : 0) | (!clamps ? 0 : r->clamps_last ? CLAMPS_LAST : CLAMPS_FIRST)) {
        KINDS(0) KINDS(CODES) KINDS(ADDS) KINDS(CODES | ADDS) default : bug("a kind of results");
    }
}

/* Copies n elements; a size that is no constant would be a call. */
INLINE void copy(void *to, const void *from, int64_t n, size_t size)
{
    char *t = to;
    const char *f = from;
    for (; n >= PIECE; n -= PIECE, t += PIECE * size, f += PIECE * size)
        memcpy(t, f, PIECE * size);
    for (; n > 0; n--, t += size, f += size)
        memcpy(t, f, size);
}

/* Rows with fewer columns are computed beside. */
static void store_part(const struct integer_results *r, const struct integer_columns *c, const struct rows *rows)
{
    float z[ROWS * RESULT_COLUMNS] = {0}, real[ROWS * RESULT_COLUMNS];
    uint8_t codes[ROWS * RESULT_COLUMNS];
    for (int64_t first = 0; first < rows->n; first += ROWS) {
        struct rows some = {.n = rows->n - first < ROWS ? rows->n - first : ROWS,
                            .z_apart = RESULT_COLUMNS,
                            .apart = RESULT_COLUMNS,
                            .sums = rows->sums + first * RESULT_COLUMNS,
                            .z = r->z ? z : NULL,
                            .real = real,
                            .codes = codes};
        for (int64_t i = 0; i < some.n && r->z; i++)
            copy(z + i * RESULT_COLUMNS, rows->z + (first + i) * rows->z_apart, c->n, sizeof *z);
        store(r, c, &some);
        for (int64_t i = 0; i < some.n; i++)
            if (r->codes)
                copy(rows->codes + (first + i) * rows->apart, codes + i * RESULT_COLUMNS, c->n, sizeof *codes);
            else
                copy(rows->real + (first + i) * rows->apart, real + i * RESULT_COLUMNS, c->n, sizeof *real);
    }
}

/* sums -= row * zero. */
static SIMD void take_zeros(const struct integer_columns *c, int64_t rows, int32_t *sums, const int32_t *row)
{
    for (int64_t i = 0; i < rows; i++, sums += RESULT_COLUMNS)
        LOOP for (int j = 0; j < RESULT_COLUMNS; j++) sums[j] = (int32_t)((uint32_t)sums[j] - (uint32_t)row[i] * (uint32_t)c->zero[j]);
}

void integer_results_store(const struct integer_results *r, const struct integer_columns *c, int64_t place, int64_t rows, int32_t *sums,
                           const int32_t *row)
{
    int64_t at = place * r->channels + c->from;
    struct rows all = {.n = rows,
                       .z_apart = r->channels,
                       .apart = r->channels,
                       .sums = sums,
                       .z = r->z ? r->z + at : NULL,
                       .real = r->real ? r->real + at : NULL,
                       .codes = r->codes ? r->codes + at : NULL};
    if (c->zeros)
        take_zeros(c, rows, sums, row);
    (c->n == RESULT_COLUMNS || c->n == HALF ? store : store_part)(r, c, &all);
}
