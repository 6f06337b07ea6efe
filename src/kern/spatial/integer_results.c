/* integer_results: exact sums of integers become real numbers, or codes. Functions other than bounds are computed between two passes, a few
 * rows at a time. */
#include "kern/core/core.h"
#include "kern/spatial/spatial.h"

#include <math.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define X86 1
#else
#define X86 0
#endif

#define INLINE static inline __attribute__((always_inline))
#if defined(__GNUC__) && !defined(__clang__)
#define NEAREST(x) __builtin_irintf(x) /* one instruction, in vectors, too */
#else
#define NEAREST(x) ((int32_t)lrintf(x))
#endif
enum { ROWS = 16, PIECE = 8, LANES = 16 }; /* rows with fewer columns at a time; elements copied at a time */

/* What is the same for all elements. It is copied, as a byte that is written may be anything's. */
struct scalars {
    float lo, hi, per_scale, least, most;
    int32_t zero;
};

static struct scalars scalars_of(const struct integer_results *r)
{
    return (struct scalars){r->lo, r->hi, r->per_scale, r->least - r->zero, r->most - r->zero, (int32_t)r->zero};
}

/* There is a loop for each kind of result. */
enum { CODES = 1, ADDS = 2, CLAMPS_FIRST = 4, CLAMPS_LAST = 8, MADE = 16 };

static int kind_of(const struct integer_results *r, const struct result_rows *rows)
{
    bool clamps = !rows->made && (r->lo > -INFINITY || r->hi < INFINITY);
    return (rows->codes ? CODES : 0) | (rows->z ? ADDS : 0) | (!clamps ? 0 : r->activates_last ? CLAMPS_LAST : CLAMPS_FIRST) |
        (rows->made ? MADE : 0);
}

/* Cases of kinds; BODY(K) with a constant K. */
#define KIND(K, BODY) \
    case K:           \
        BODY(K);      \
        break;
#define KINDS(K, BODY) KIND(K, BODY) KIND(K | CLAMPS_FIRST, BODY) KIND(K | CLAMPS_LAST, BODY) KIND(K | MADE, BODY)
#define ALL_KINDS(BODY) KINDS(0, BODY) KINDS(CODES, BODY) KINDS(ADDS, BODY) KINDS(CODES | ADDS, BODY)

/* ---- plain C ------------------------------------------------------------------------------------------------------------------------- */

static bool runs_everywhere(void)
{
    return true;
}

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
    return NEAREST(y < s.most ? y : s.most) + s.zero;
}

/* All columns are computed, so that loops have one length. */
INLINE void plain_rows(struct scalars s, const struct integer_columns *c, struct result_rows r, int kind)
{
    float *restrict real = r.real;
    uint8_t *restrict codes = r.codes;
    for (int64_t i = 0; i < r.count; i++, r.z += kind & ADDS ? r.z_apart : 0) {
        const float *made = r.made + (kind & MADE ? i * RESULT_COLUMNS : 0);
        const int32_t *sums = r.sums + i * RESULT_COLUMNS;
        uint32_t seen = r.seen ? (uint32_t)r.seen[i] : 0;
        LOOP for (int j = 0; j < RESULT_COLUMNS; j++)
        {
            uint32_t sum = (uint32_t)sums[j] + (uint32_t)c->start[j] - seen * (uint32_t)c->zero[j];
            float x = kind & MADE ? made[j] : (float)(int32_t)sum * c->factor[j] + c->bias[j];
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

static SIMD void plain_whole(const struct integer_results *r, const struct integer_columns *c, const struct result_rows *rows)
{
    struct scalars s = scalars_of(r);
#define BODY(K) plain_rows(s, c, *rows, K)
    switch (kind_of(r, rows)) {
        ALL_KINDS(BODY) default : bug("a kind of results");
    }
#undef BODY
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
static void plain_part(const struct integer_results *r, const struct integer_columns *c, const struct result_rows *rows)
{
    float z[ROWS * RESULT_COLUMNS] = {0}, real[ROWS * RESULT_COLUMNS];
    uint8_t codes[ROWS * RESULT_COLUMNS];
    struct result_rows some = {.apart = RESULT_COLUMNS, .z_apart = RESULT_COLUMNS};
    some.z = rows->z ? z : NULL;
    some.real = rows->real ? real : NULL;
    some.codes = rows->codes ? codes : NULL;
    for (int64_t first = 0; first < rows->count; first += ROWS) {
        some.count = rows->count - first < ROWS ? rows->count - first : ROWS;
        some.sums = rows->sums + first * RESULT_COLUMNS;
        some.seen = rows->seen ? rows->seen + first : NULL;
        some.made = rows->made ? rows->made + first * RESULT_COLUMNS : NULL;
        for (int64_t i = 0; i < some.count && rows->z; i++)
            copy(z + i * RESULT_COLUMNS, rows->z + (first + i) * rows->z_apart, rows->n, sizeof *z);
        plain_whole(r, c, &some);
        for (int64_t i = 0; i < some.count; i++)
            if (rows->codes)
                copy(rows->codes + (first + i) * rows->apart, codes + i * RESULT_COLUMNS, rows->n, sizeof *codes);
            else
                copy(rows->real + (first + i) * rows->apart, real + i * RESULT_COLUMNS, rows->n, sizeof *real);
    }
}

static void plain_pass(const struct integer_results *r, const struct integer_columns *c, const struct result_rows *rows)
{
    (rows->n == RESULT_COLUMNS ? plain_whole : plain_part)(r, c, rows);
}

#if X86
/* ---- AVX-512 ------------------------------------------------------------------------------------------------------------------------- */
#define AVX512 __attribute__((target("avx512f,avx512bw,avx512vl")))

static bool has_avx512(void)
{
    return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
}

INLINE AVX512 __m512 avx512_clamp(struct scalars s, __m512 x)
{
    return _mm512_min_ps(_mm512_set1_ps(s.hi), _mm512_max_ps(_mm512_set1_ps(s.lo), x)); /* of a NaN, the second is taken */
}

INLINE AVX512 __m128i avx512_encode(struct scalars s, __m512 x)
{
    x = _mm512_max_ps(_mm512_mul_ps(x, _mm512_set1_ps(s.per_scale)), _mm512_set1_ps(s.least));
    x = _mm512_min_ps(x, _mm512_set1_ps(s.most));
    return _mm512_cvtepi32_epi8(_mm512_add_epi32(_mm512_cvtps_epi32(x), _mm512_set1_epi32(s.zero)));
}

/* LANES columns from column j on, of all rows; `whole`: all of them are there. */
INLINE AVX512 void avx512_lanes(struct scalars s, const struct integer_columns *c, struct result_rows r, int j, bool whole, int kind)
{
    const __m512i start = _mm512_load_si512(c->start + j), zero = _mm512_load_si512(c->zero + j);
    const __m512 factor = _mm512_load_ps(c->factor + j), bias = _mm512_load_ps(c->bias + j);
    const __mmask16 some = (__mmask16)(r.n - j < LANES ? (1U << (r.n - j)) - 1 : 0xffff);
    for (int64_t i = 0; i < r.count; i++) {
        int64_t at = i * r.apart + j;
        __m512i sum = _mm512_add_epi32(_mm512_loadu_si512(r.sums + i * RESULT_COLUMNS + j), start);
        if (r.seen)
            sum = _mm512_sub_epi32(sum, _mm512_mullo_epi32(_mm512_set1_epi32(r.seen[i]), zero));
        __m512 x = _mm512_add_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(sum), factor), bias);
        x = kind & MADE ? _mm512_loadu_ps(r.made + i * RESULT_COLUMNS + j) : x;
        x = kind & CLAMPS_FIRST ? avx512_clamp(s, x) : x;
        if (kind & ADDS)
            x = _mm512_add_ps(x, whole ? _mm512_loadu_ps(r.z + i * r.z_apart + j) : _mm512_maskz_loadu_ps(some, r.z + i * r.z_apart + j));
        x = kind & CLAMPS_LAST ? avx512_clamp(s, x) : x;
        if (kind & CODES && whole)
            _mm_storeu_si128((__m128i *)(void *)(r.codes + at), avx512_encode(s, x));
        else if (kind & CODES)
            _mm_mask_storeu_epi8(r.codes + at, some, avx512_encode(s, x));
        else if (whole)
            _mm512_storeu_ps(r.real + at, x);
        else
            _mm512_mask_storeu_ps(r.real + at, some, x);
    }
}

INLINE AVX512 void avx512_rows(struct scalars s, const struct integer_columns *c, struct result_rows r, int kind)
{
    for (int j = 0; j < r.n; j += LANES)
        if (r.n - j >= LANES)
            avx512_lanes(s, c, r, j, true, kind);
        else
            avx512_lanes(s, c, r, j, false, kind);
}

static AVX512 void avx512_pass(const struct integer_results *r, const struct integer_columns *c, const struct result_rows *rows)
{
    struct scalars s = scalars_of(r);
#define BODY(K) avx512_rows(s, c, *rows, K)
    switch (kind_of(r, rows)) {
        ALL_KINDS(BODY) default : bug("a kind of results");
    }
#undef BODY
}
#endif

const struct results_kernel integer_results_kernels[] = {
#if X86
    {"avx512", has_avx512, avx512_pass},
#endif
    {"plain", runs_everywhere, plain_pass},
    {NULL, NULL, NULL},
};

/* ---- passes -------------------------------------------------------------------------------------------------------------------------- */

static struct result_rows rows_of(const struct integer_results *r, const struct integer_columns *c, int64_t place, int64_t rows,
                                  const int32_t *sums, const int32_t *seen)
{
    int64_t at = place * r->channels + c->from;
    return (struct result_rows){.count = rows,
                                .n = c->n,
                                .apart = r->channels,
                                .z_apart = r->channels,
                                .sums = sums,
                                .seen = c->zeros ? seen : NULL,
                                .z = r->z ? r->z + at : NULL,
                                .real = r->real ? r->real + at : NULL,
                                .codes = r->codes ? r->codes + at : NULL};
}

/* At most ROWS rows. */
static void pass_twice(const struct results_kernel *k, const struct integer_results *r, const struct integer_columns *c,
                       struct result_rows rows)
{
    _Alignas(64) float x[ROWS * RESULT_COLUMNS];
    struct result_rows first = rows;
    first.real = x;
    first.codes = NULL;
    first.apart = RESULT_COLUMNS;
    if (!r->activates_last)
        first.z = NULL;
    else
        rows.z = NULL;
    if (rows.n < RESULT_COLUMNS)
        memset(x, 0, sizeof x);
    k->pass(r, c, &first);
    r->function.run(&r->function, x, rows.count * RESULT_COLUMNS);
    rows.made = x;
    k->pass(r, c, &rows);
}

void integer_results_store(const struct results_kernel *k, const struct integer_results *r, const struct integer_columns *c, int64_t place,
                           int64_t rows, const int32_t *sums, const int32_t *seen)
{
    if (!r->function.run) {
        struct result_rows all = rows_of(r, c, place, rows, sums, seen);
        k->pass(r, c, &all);
        return;
    }
    for (int64_t i = 0; i < rows; i += ROWS)
        pass_twice(k, r, c, rows_of(r, c, place + i, rows - i < ROWS ? rows - i : ROWS, sums + i * RESULT_COLUMNS, c->zeros ? seen + i : NULL));
}

const struct results_kernel *integer_results_best(void)
{
    const struct results_kernel *k = integer_results_kernels;
    while (!k->runs())
        k++;
    return k;
}
