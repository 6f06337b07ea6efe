/* integer_results: converts exact integer sums to real numbers or codes. Functions other than bounds are applied between two passes, a few
 * rows at a time. */
#include "kern/conv/conv.h"
#include "kern/core/core.h"
#include "kern/core/intrinsics.h"

#include <math.h>
#include <string.h>

#if defined(__GNUC__) && !defined(__clang__)
#define NEAREST(x) __builtin_irintf(x) /* one instruction, also in vectors */
#else
#define NEAREST(x) ((int32_t)lrintf(x))
#endif
enum { ROWS = 16, PIECE = 8, LANES = 16 }; /* rows with fewer columns at a time; elements copied at a time */

/* What is common to all elements. A copy, because a written byte may alias anything. */
struct scalars {
    float lo, hi, per_scale, least, most;
    int32_t zero;
    struct result_residual z;
    uint8_t flip, z_flip; /* for signed codes */
};

static struct scalars scalars_of(const struct integer_results *r)
{
    return (struct scalars){
        r->lo, r->hi, r->per_scale, r->least, r->most, r->zero, r->residual, r->is_signed ? 0x80 : 0, r->residual.is_signed ? 0x80 : 0};
}

/* There is a loop for each kind of result. UNIT: codes of numbers in multiples of their scale. ALL_CODES: the lower bound is the least
 * code. */
enum { CODES = 1, ADDS = 2, CLAMPS_FIRST = 4, CLAMPS_LAST = 8, MADE = 16, RESIDUAL = 32, UNIT = 64, ALL_CODES = 128 };

static int kind_of(const struct integer_results *r, const struct result_rows *rows)
{
    bool clamps = !rows->made && (r->lo > -INFINITY || r->hi < INFINITY), unit = r->per_scale >= 1 && r->per_scale <= 1;
    int kind = (rows->codes ? CODES : 0) | (rows->z ? ADDS : 0) |
        (!clamps                 ? 0
             : r->activates_last ? CLAMPS_LAST
                                 : CLAMPS_FIRST) |
        (rows->made ? MADE : 0) | (rows->z_codes ? RESIDUAL : 0);
    if (kind != CODES || !unit)
        return kind;
    return kind | UNIT | (r->least <= (float)((r->is_signed ? -128 : 0) - r->zero) ? ALL_CODES : 0);
}

/* Cases of kinds; BODY(K) with a constant K. */
#define KIND(K, BODY) \
    case K: BODY(K); break;
/* clang-format off */
#define KINDS(K, BODY) KIND(K, BODY) KIND(K | CLAMPS_FIRST, BODY) KIND(K | CLAMPS_LAST, BODY) KIND(K | MADE, BODY)
#define ALL_KINDS(BODY)                                                                      \
    KINDS(0, BODY) KINDS(CODES, BODY) KINDS(ADDS, BODY) KINDS(CODES | ADDS, BODY)            \
    KIND(CODES | UNIT, BODY) KIND(CODES | UNIT | ALL_CODES, BODY)                            \
    KIND(CODES | RESIDUAL, BODY) KIND(CODES | RESIDUAL | CLAMPS_LAST, BODY)
/* clang-format on */

/* ---- plain C ------------------------------------------------------------------------------------------------------------------------- */

/* Keeps NaN. */
INLINE float clamp(struct scalars s, float x)
{
    x = x < s.lo ? s.lo : x;
    return x > s.hi ? s.hi : x;
}

/* NaN becomes the least code, as in QuantizeLinear. The bounds are integers, so they may be applied before rounding. */
INLINE int32_t nearest(float x, float least, float most)
{
    float y = x > least ? x : least;
    return NEAREST(y < most ? y : most);
}

/* x is in multiples of its codes' scale. */
INLINE float add_residual(struct scalars s, float x, uint8_t code)
{
    float z = ((float)(code ^ s.z_flip) - s.z.z_zero) * s.z.z_scale;
    return (float)nearest(x, s.z.least, s.z.most) * s.z.scale + z;
}

/* Computes all columns, so that loops have one length. */
INLINE void plain_rows(struct scalars s, const struct integer_columns *c, struct result_rows r, int kind)
{
    float *restrict real = r.real;
    uint8_t *restrict codes = r.codes;
    for (int64_t i = 0; i < r.count; i++, r.z += kind & ADDS ? r.z_apart : 0) {
        const float *made = r.made + (kind & MADE ? i * r.made_apart : 0);
        const int32_t *sums = r.sums + i * RESULT_COLUMNS;
        uint32_t seen = r.seen ? (uint32_t)r.seen[i] : 0;
        LOOP for (int j = 0; j < RESULT_COLUMNS; j++)
        {
            uint32_t sum = (uint32_t)sums[j] + (uint32_t)c->start[j] - seen * (uint32_t)c->zero[j];
            float x = kind & MADE ? made[j] : (float)(int32_t)sum * c->factor[j] + c->bias[j];
            x = kind & CLAMPS_FIRST ? clamp(s, x) : x;
            x = kind & ADDS ? x + r.z[j] : x;
            x = kind & RESIDUAL ? add_residual(s, x, r.z_codes[i * r.z_apart + j]) : x;
            x = kind & CLAMPS_LAST ? clamp(s, x) : x;
            if (kind & CODES)
                codes[i * r.apart + j] = (uint8_t)(nearest(x * s.per_scale, s.least, s.most) + s.zero);
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

/* Copies n elements; memcpy of a variable size would be a call. */
INLINE void copy(void *to, const void *from, int64_t n, size_t size)
{
    char *t = to;
    const char *f = from;
    for (; n >= PIECE; n -= PIECE, t += PIECE * size, f += PIECE * size)
        memcpy(t, f, PIECE * size);
    for (; n > 0; n--, t += size, f += size)
        memcpy(t, f, size);
}

typedef void pass_fn(const struct integer_results *, const struct integer_columns *, const struct result_rows *);

/* Rows with fewer columns are computed in a buffer. */
static void pass_part(pass_fn *whole, const struct integer_results *r, const struct integer_columns *c, const struct result_rows *rows)
{
    float z[ROWS * RESULT_COLUMNS] = {0}, made[ROWS * RESULT_COLUMNS] = {0}, real[ROWS * RESULT_COLUMNS];
    uint8_t codes[ROWS * RESULT_COLUMNS], z_codes[ROWS * RESULT_COLUMNS] = {0};
    struct result_rows some = {.apart = RESULT_COLUMNS, .z_apart = RESULT_COLUMNS, .made_apart = RESULT_COLUMNS};
    some.made = rows->made ? made : NULL;
    some.z = rows->z ? z : NULL;
    some.z_codes = rows->z_codes ? z_codes : NULL;
    some.real = rows->real ? real : NULL;
    some.codes = rows->codes ? codes : NULL;
    for (int64_t first = 0; first < rows->count; first += ROWS) {
        some.count = rows->count - first < ROWS ? rows->count - first : ROWS;
        some.sums = rows->sums + first * RESULT_COLUMNS;
        some.seen = rows->seen ? rows->seen + first : NULL;
        for (int64_t i = 0; i < some.count && rows->made; i++)
            copy(made + i * RESULT_COLUMNS, rows->made + (first + i) * rows->made_apart, rows->n, sizeof *made);
        for (int64_t i = 0; i < some.count && rows->z; i++)
            copy(z + i * RESULT_COLUMNS, rows->z + (first + i) * rows->z_apart, rows->n, sizeof *z);
        for (int64_t i = 0; i < some.count && rows->z_codes; i++)
            copy(z_codes + i * RESULT_COLUMNS, rows->z_codes + (first + i) * rows->z_apart, rows->n, sizeof *z_codes);
        whole(r, c, &some);
        for (int64_t i = 0; i < some.count; i++)
            if (rows->codes)
                copy(rows->codes + (first + i) * rows->apart, codes + i * RESULT_COLUMNS, rows->n, sizeof *codes);
            else
                copy(rows->real + (first + i) * rows->apart, real + i * RESULT_COLUMNS, rows->n, sizeof *real);
    }
}

static void plain_pass(const struct integer_results *r, const struct integer_columns *c, const struct result_rows *rows)
{
    if (rows->n == RESULT_COLUMNS)
        plain_whole(r, c, rows);
    else
        pass_part(plain_whole, r, c, rows);
}

#if X86
/* ---- AVX-512 ------------------------------------------------------------------------------------------------------------------------- */
#define AVX512 __attribute__((target("avx512f,avx512bw,avx512vl")))

INLINE AVX512 __m512 avx512_within(__m512 x, float lo, float hi)
{
    return _mm512_min_ps(_mm512_set1_ps(hi), _mm512_max_ps(_mm512_set1_ps(lo), x)); /* for a NaN, the second operand is the result */
}

INLINE AVX512 __m512i avx512_nearest(__m512 x, float least, float most)
{
    return _mm512_cvtps_epi32(_mm512_min_ps(_mm512_max_ps(x, _mm512_set1_ps(least)), _mm512_set1_ps(most)));
}

INLINE AVX512 __m512 avx512_add_residual(const struct scalars *s, __m512 x, __m128i codes)
{
    __m512 z = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_xor_si128(codes, _mm_set1_epi8((char)s->z_flip))));
    z = _mm512_mul_ps(_mm512_sub_ps(z, _mm512_set1_ps(s->z.z_zero)), _mm512_set1_ps(s->z.z_scale));
    x = _mm512_min_ps(_mm512_max_ps(x, _mm512_set1_ps(s->z.least)), _mm512_set1_ps(s->z.most));
    x = _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    return _mm512_add_ps(_mm512_mul_ps(x, _mm512_set1_ps(s->z.scale)), z);
}

/* LANES columns from column j on; `whole`: all of them exist. */
struct lanes {
    __m512i start, zero;
    __m512 factor, bias;
    __mmask16 some;
    int j;
    bool whole;
};

INLINE AVX512 struct lanes avx512_lanes(const struct integer_columns *c, int64_t n, int j, bool whole)
{
    return (struct lanes){_mm512_load_si512(c->start + j),
                          _mm512_load_si512(c->zero + j),
                          _mm512_load_ps(c->factor + j),
                          _mm512_load_ps(c->bias + j),
                          (__mmask16)(n - j < LANES ? (1U << (n - j)) - 1 : 0xffff),
                          j,
                          whole};
}

/* The numbers of row i, to be stored or rounded. Numbers that are only rounded to codes may differ from those of Mul and Add in the last
 * bit. */
INLINE AVX512 __m512 avx512_numbers(const struct scalars *s, const struct lanes *l, const struct result_rows *r, int64_t i, int kind)
{
    const float *z = kind & ADDS ? r->z + i * r->z_apart + l->j : NULL;
    const void *codes = kind & RESIDUAL ? r->z_codes + i * r->z_apart + l->j : NULL;
    __m512i sum = _mm512_add_epi32(_mm512_loadu_si512(r->sums + i * RESULT_COLUMNS + l->j), l->start);
    if (r->seen)
        sum = _mm512_sub_epi32(sum, _mm512_mullo_epi32(_mm512_set1_epi32(r->seen[i]), l->zero));
    __m512 x = _mm512_cvtepi32_ps(sum);
    x = kind & (UNIT | RESIDUAL) ? _mm512_fmadd_ps(x, l->factor, l->bias) : _mm512_add_ps(_mm512_mul_ps(x, l->factor), l->bias);
    x = kind & MADE ? _mm512_loadu_ps(r->made + i * r->made_apart + l->j) : x;
    x = kind & CLAMPS_FIRST ? avx512_within(x, s->lo, s->hi) : x;
    if (kind & ADDS)
        x = _mm512_add_ps(x, l->whole ? _mm512_loadu_ps(z) : _mm512_maskz_loadu_ps(l->some, z));
    if (kind & RESIDUAL)
        x = avx512_add_residual(s, x, l->whole ? _mm_loadu_si128(codes) : _mm_maskz_loadu_epi8(l->some, codes));
    x = kind & CLAMPS_LAST ? avx512_within(x, s->lo, s->hi) : x;
    return kind & CODES && !(kind & UNIT) ? _mm512_mul_ps(x, _mm512_set1_ps(s->per_scale)) : x;
}

INLINE AVX512 void avx512_column(struct scalars s, const struct integer_columns *c, struct result_rows r, int j, bool whole, int kind)
{
    const struct lanes l = avx512_lanes(c, r.n, j, whole);
    for (int64_t i = 0; i < r.count; i++) {
        int64_t at = i * r.apart + j;
        __m512 x = avx512_numbers(&s, &l, &r, i, kind);
        __m128i code = _mm512_cvtepi32_epi8(_mm512_add_epi32(avx512_nearest(x, s.least, s.most), _mm512_set1_epi32(s.zero)));
        if (kind & CODES && whole)
            _mm_storeu_si128((__m128i *)(void *)(r.codes + at), code);
        else if (kind & CODES)
            _mm_mask_storeu_epi8(r.codes + at, l.some, code);
        else if (whole)
            _mm512_storeu_ps(r.real + at, x);
        else
            _mm512_mask_storeu_ps(r.real + at, l.some, x);
    }
}

/* 32-bit numbers that saturate to codes: NaN, and numbers out of range, become the least. */
INLINE AVX512 __m512i avx512_saturating(const struct scalars *s, __m512 x, int kind)
{
    return kind & ALL_CODES ? _mm512_cvtps_epi32(_mm512_min_ps(_mm512_set1_ps(s->most), x)) : avx512_nearest(x, s->least, s->most);
}

/* Codes of all columns of rows a and b: packing takes 4 numbers of each alternately. */
INLINE AVX512 void avx512_two_rows(const struct scalars *s, const struct lanes *l, const struct result_rows *r, int64_t a, int64_t b,
                                   int kind)
{
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i zero = _mm512_set1_epi16((int16_t)(s->zero + s->flip)), flip = _mm512_set1_epi8((char)s->flip);
    __m512i whole[4];
    _Pragma("GCC unroll 4") for (int k = 0; k < 4; k++)
        whole[k] = avx512_saturating(s, avx512_numbers(s, &l[k % 2], r, k < 2 ? a : b, kind), kind);
    __m512i x = _mm512_adds_epi16(_mm512_packs_epi32(whole[0], whole[1]), zero);
    __m512i y = _mm512_adds_epi16(_mm512_packs_epi32(whole[2], whole[3]), zero);
    x = _mm512_permutexvar_epi32(order, _mm512_xor_si512(_mm512_packus_epi16(x, y), flip));
    _mm256_storeu_si256((__m256i *)(void *)(r->codes + a * r->apart), _mm512_castsi512_si256(x));
    _mm256_storeu_si256((__m256i *)(void *)(r->codes + b * r->apart), _mm512_extracti64x4_epi64(x, 1));
}

INLINE AVX512 void avx512_rows(struct scalars s, const struct integer_columns *c, struct result_rows r, int kind)
{
    if (kind & CODES && r.n == RESULT_COLUMNS) {
        const struct lanes l[2] = {avx512_lanes(c, r.n, 0, true), avx512_lanes(c, r.n, LANES, true)};
        for (int64_t i = 0; i < r.count; i += 2)
            avx512_two_rows(&s, l, &r, i, i + 1 < r.count ? i + 1 : i, kind);
        return;
    }
    for (int j = 0; j < r.n; j += LANES)
        if (r.n - j >= LANES)
            avx512_column(s, c, r, j, true, kind);
        else
            avx512_column(s, c, r, j, false, kind);
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
#elif NEON
/* ---- ARM: LANES columns at a time ---------------------------------------------------------------------------------------------------- */
enum { FOUR = 4, REGISTERS = LANES / FOUR };
struct lanes {
    int32x4_t start[REGISTERS], zero[REGISTERS];
    float32x4_t factor[REGISTERS], bias[REGISTERS];
};

/* Keeps NaN, and the sign of a zero. */
INLINE float32x4_t neon_within(float32x4_t x, float lo, float hi)
{
    x = vbslq_f32(vcltq_f32(x, vdupq_n_f32(lo)), vdupq_n_f32(lo), x);
    return vbslq_f32(vcgtq_f32(x, vdupq_n_f32(hi)), vdupq_n_f32(hi), x);
}

/* NaN becomes the least. */
INLINE float32x4_t neon_bounded(float32x4_t x, float least, float most)
{
    return vminnmq_f32(vmaxnmq_f32(x, vdupq_n_f32(least)), vdupq_n_f32(most));
}

/* Decodes LANES codes of a residual. */
INLINE void neon_residual(const struct scalars *s, const uint8_t *code, float32x4_t *z)
{
    uint8x16_t x = veorq_u8(vld1q_u8(code), vdupq_n_u8(s->z_flip));
    uint16x8_t low = vmovl_u8(vget_low_u8(x)), high = vmovl_high_u8(x);
    uint32x4_t wide[REGISTERS] = {vmovl_u16(vget_low_u16(low)), vmovl_high_u16(low), vmovl_u16(vget_low_u16(high)), vmovl_high_u16(high)};
    UNROLL for (int v = 0; v < REGISTERS; v++)
        z[v] = vmulq_f32(vsubq_f32(vcvtq_f32_u32(wide[v]), vdupq_n_f32(s->z.z_zero)), vdupq_n_f32(s->z.z_scale));
}

/* The numbers of row i, like avx512_numbers. */
INLINE void neon_numbers(const struct scalars *s, const struct lanes *l, const struct result_rows *r, int64_t i, int j, int kind,
                         float32x4_t *x)
{
    const int32_t *sums = r->sums + i * RESULT_COLUMNS + j;
    float32x4_t z[REGISTERS];
    if (kind & RESIDUAL)
        neon_residual(s, r->z_codes + i * r->z_apart + j, z);
    UNROLL for (int v = 0; v < REGISTERS; v++)
    {
        int32x4_t sum = vaddq_s32(vld1q_s32(sums + v * FOUR), l->start[v]);
        sum = r->seen ? vmlsq_s32(sum, vdupq_n_s32(r->seen[i]), l->zero[v]) : sum;
        float32x4_t y = vcvtq_f32_s32(sum);
        y = kind & (UNIT | RESIDUAL) ? vfmaq_f32(l->bias[v], y, l->factor[v]) : vaddq_f32(vmulq_f32(y, l->factor[v]), l->bias[v]);
        y = kind & MADE ? vld1q_f32(r->made + i * r->made_apart + j + v * FOUR) : y;
        y = kind & CLAMPS_FIRST ? neon_within(y, s->lo, s->hi) : y;
        y = kind & ADDS ? vaddq_f32(y, vld1q_f32(r->z + i * r->z_apart + j + v * FOUR)) : y;
        if (kind & RESIDUAL)
            y = vaddq_f32(vmulq_f32(vrndnq_f32(neon_bounded(y, s->z.least, s->z.most)), vdupq_n_f32(s->z.scale)), z[v]);
        y = kind & CLAMPS_LAST ? neon_within(y, s->lo, s->hi) : y;
        x[v] = kind & CODES && !(kind & UNIT) ? vmulq_n_f32(y, s->per_scale) : y;
    }
}

INLINE void neon_codes(const struct scalars *s, const float32x4_t *x, uint8_t *to)
{
    int16x8_t zero = vdupq_n_s16((int16_t)s->zero), half[2];
    UNROLL for (int h = 0; h < 2; h++)
    {
        int32x4_t low = vcvtnq_s32_f32(neon_bounded(x[2 * h], s->least, s->most));
        int32x4_t high = vcvtnq_s32_f32(neon_bounded(x[2 * h + 1], s->least, s->most));
        half[h] = vaddq_s16(vuzp1q_s16(vreinterpretq_s16_s32(low), vreinterpretq_s16_s32(high)), zero);
    }
    vst1q_u8(to, vuzp1q_u8(vreinterpretq_u8_s16(half[0]), vreinterpretq_u8_s16(half[1])));
}

INLINE void neon_rows(struct scalars s, const struct integer_columns *c, struct result_rows r, int kind)
{
    for (int j = 0; j < RESULT_COLUMNS; j += LANES) {
        struct lanes l;
        UNROLL for (int v = 0; v < REGISTERS; v++)
        {
            l.start[v] = vld1q_s32(c->start + j + v * FOUR);
            l.zero[v] = vld1q_s32(c->zero + j + v * FOUR);
            l.factor[v] = vld1q_f32(c->factor + j + v * FOUR);
            l.bias[v] = vld1q_f32(c->bias + j + v * FOUR);
        }
        for (int64_t i = 0; i < r.count; i++) {
            float32x4_t x[REGISTERS];
            neon_numbers(&s, &l, &r, i, j, kind, x);
            if (kind & CODES) {
                neon_codes(&s, x, r.codes + i * r.apart + j);
                continue;
            }
            UNROLL for (int v = 0; v < REGISTERS; v++) vst1q_f32(r.real + i * r.apart + j + v * FOUR, x[v]);
        }
    }
}

static void neon_whole(const struct integer_results *r, const struct integer_columns *c, const struct result_rows *rows)
{
    struct scalars s = scalars_of(r);
#define BODY(K) neon_rows(s, c, *rows, K)
    switch (kind_of(r, rows)) {
        ALL_KINDS(BODY) default : bug("a kind of results");
    }
#undef BODY
}

static void neon_pass(const struct integer_results *r, const struct integer_columns *c, const struct result_rows *rows)
{
    if (rows->n == RESULT_COLUMNS)
        neon_whole(r, c, rows);
    else
        pass_part(neon_whole, r, c, rows);
}
#endif

const struct results_kernel integer_results_kernels[] = {
#if X86
    {ISA_AVX512, avx512_pass},
#elif NEON
    {ISA_NEON, neon_pass},
#endif
    {ISA_PLAIN, plain_pass},
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
                                .z_codes = r->z_codes ? r->z_codes + at : NULL,
                                .real = r->real ? r->real + at : NULL,
                                .codes = r->codes ? r->codes + at : NULL};
}

/* At most ROWS rows. Skips the numbers of a half without columns. */
static void pass_twice(const struct results_kernel *k, const struct integer_results *r, const struct integer_columns *c,
                       struct result_rows rows)
{
    _Alignas(64) float x[ROWS * RESULT_COLUMNS];
    struct result_rows first = rows;
    first.real = x;
    first.codes = NULL;
    first.apart = rows.made_apart = rows.n > LANES ? RESULT_COLUMNS : LANES;
    if (!r->activates_last)
        first.z = NULL;
    else
        rows.z = NULL;
    if (rows.n < first.apart)
        memset(x, 0, (size_t)(rows.count * first.apart) * sizeof *x);
    k->pass(r, c, &first);
    r->function.run(&r->function, x, rows.count * first.apart);
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
        pass_twice(k, r, c,
                   rows_of(r, c, place + i, rows - i < ROWS ? rows - i : ROWS, sums + i * RESULT_COLUMNS, c->zeros ? seen + i : NULL));
}

ISA_BEST(integer_results_best, results_kernel, integer_results_kernels)
