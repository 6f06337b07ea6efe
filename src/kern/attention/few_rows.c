/* few_rows: dot products of a few queries with rows of keys, and weighted sums of rows of values, for each instruction set. Rows are f32,
 * f16, bf16, or codes of 8 bits with scales (coded_rows.c), widened in registers. The order of additions in a dot product, or in the sum of
 * a column, does not depend on which queries share the rows. */
#include "base/half.h"
#include "kern/attention/attention.h"
#include "kern/core/core.h"
#include "kern/core/intrinsics.h"

#include <string.h>

/* ---- plain C ------------------------------------------------------------------------------------------------------------------------- */

enum { PIECE = 8 * CODED_BLOCK };

/* Up to PIECE elements of row j from i on, as f32. */
static const float *piece_of(const struct few_rows *rows, int64_t j, int64_t i, int64_t count, float *room)
{
    const char *row = (const char *)rows->at + j * rows->step;
    if (rows->dtype == DT_F32)
        return (const float *)(const void *)row + i;
    if (rows->dtype == DT_I8)
        coded_rows_piece(row, rows->n, i, count, room);
    else
        convert_to_f32(rows->dtype, row + i * CODED_SCALE, count, room);
    return room;
}

static SIMD float plain_dot(const float *x, const float *y, int64_t n)
{
    float sum = 0;
    _Pragma("omp simd reduction(+:sum)") for (int64_t i = 0; i < n; i++) sum += x[i] * y[i];
    return sum;
}

static SIMD void plain_add(float weight, const float *x, int64_t n, float *sum)
{
    LOOP for (int64_t i = 0; i < n; i++) sum[i] += weight * x[i];
}

static void plain_scores(const struct few_rows *k, int queries, const float *const *query, float scale, float *const *to)
{
    float room[PIECE], sum[FEW_QUERIES];
    for (int64_t j = 0; j < k->count; j++) {
        memset(sum, 0, sizeof sum);
        for (int64_t i = 0; i < k->n; i += PIECE) {
            int64_t some = k->n - i < PIECE ? k->n - i : PIECE;
            const float *row = piece_of(k, j, i, some, room);
            for (int q = 0; q < queries; q++)
                sum[q] += plain_dot(query[q] + i, row, some);
        }
        for (int q = 0; q < queries; q++)
            to[q][j] = sum[q] * scale;
    }
}

static void plain_values(const struct few_rows *v, int queries, const float *const *weight, float *const *sum)
{
    float room[PIECE];
    for (int64_t j = 0; j < v->count; j++)
        for (int64_t i = 0; i < v->n; i += PIECE) {
            int64_t some = v->n - i < PIECE ? v->n - i : PIECE;
            const float *row = piece_of(v, j, i, some, room);
            for (int q = 0; q < queries; q++)
                plain_add(weight[q][j], row, some, sum[q] + i);
        }
}

#if X86 || NEON
/* A case for each type and number of queries. */
/* clang-format off */
#define CASES(BODY, TYPE, QUERIES, ...)                          \
    switch ((int)(TYPE) * 8 + (QUERIES)) {                       \
        CASES_OF(BODY, DT_F32, __VA_ARGS__)                      \
        CASES_OF(BODY, DT_F16, __VA_ARGS__)                      \
        CASES_OF(BODY, DT_BF16, __VA_ARGS__)                     \
        CASES_OF(BODY, DT_I8, __VA_ARGS__)                       \
        default: bug("%d queries of %s", QUERIES, dtype_name(TYPE)); \
    }
#define CASES_OF(BODY, TYPE, ...)                           \
    case (TYPE) * 8 + 1: BODY(TYPE, 1, __VA_ARGS__); break; \
    case (TYPE) * 8 + 2: BODY(TYPE, 2, __VA_ARGS__); break; \
    case (TYPE) * 8 + 4: BODY(TYPE, 4, __VA_ARGS__); break;
/* clang-format on */

/* A compile-time constant, unlike dtype_size. */
INLINE size_t bytes_of(enum dtype type)
{
    return type == DT_F32 ? 4 : type == DT_I8 ? 1 : 2;
}

/* The scale of block b of a row of codes, as bf16 bits; unused for other types. */
INLINE int16_t scale_at(enum dtype type, const char *row, int64_t n, int64_t b)
{
    int16_t half = 0;
    if (type == DT_I8)
        memcpy(&half, row + n + b * CODED_SCALE, sizeof half);
    return half;
}
#endif

#if X86
/* ---- AVX-512 ------------------------------------------------------------------------------------------------------------------------- */
#define FEW(name) avx512_##name
#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,f16c,fma")))
#define VECTORS(queries) 4
#define LANES 16
#define DOTS 16
#define CHAINS 1
#define vec __m512

INLINE TARGET vec FEW(load)(enum dtype type, const char *at, int16_t scale)
{
    if (type == DT_F16)
        return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)at));
    if (type == DT_BF16)
        return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)at)), 16));
    if (type == DT_I8)
        return _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(const void *)at))),
                             _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_set1_epi16(scale), 16)));
    return _mm512_loadu_ps(at);
}

INLINE TARGET vec FEW(set)(float x)
{
    return _mm512_set1_ps(x);
}

INLINE TARGET vec FEW(fma)(vec a, vec b, vec c)
{
    return _mm512_fmadd_ps(a, b, c);
}

INLINE TARGET vec FEW(mul)(vec a, vec b)
{
    return _mm512_mul_ps(a, b);
}

INLINE TARGET void FEW(store)(float *to, vec x)
{
    _mm512_storeu_ps(to, x);
}

/* Sums the lanes of each of 4 registers, into the lanes of 128 bits in place. */
INLINE TARGET vec FEW(sum_four)(const vec *x)
{
    vec a = _mm512_add_ps(_mm512_unpacklo_ps(x[0], x[1]), _mm512_unpackhi_ps(x[0], x[1]));
    vec b = _mm512_add_ps(_mm512_unpacklo_ps(x[2], x[3]), _mm512_unpackhi_ps(x[2], x[3]));
    return _mm512_add_ps(_mm512_shuffle_ps(a, b, 0x44), _mm512_shuffle_ps(a, b, 0xee));
}

INLINE TARGET vec FEW(sum_parts)(vec a, vec b)
{
    return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
}

/* Sums the lanes of each of DOTS registers. */
INLINE TARGET vec FEW(sum_each)(const vec *x)
{
    return FEW(sum_parts)(FEW(sum_parts)(FEW(sum_four)(x), FEW(sum_four)(x + 4)),
                          FEW(sum_parts)(FEW(sum_four)(x + 8), FEW(sum_four)(x + 12)));
}

#include "kern/attention/few_tile.h"
#undef FEW
#undef TARGET
#undef VECTORS
#undef LANES
#undef DOTS
#undef CHAINS
#undef vec

/* ---- AVX2 ---------------------------------------------------------------------------------------------------------------------------- */
#define FEW(name) avx2_##name
#define TARGET __attribute__((target("avx2,f16c,fma")))
#define VECTORS(queries) (8 / (queries))
#define LANES 8
#define DOTS 8
#define CHAINS 1
#define vec __m256

INLINE TARGET vec FEW(load)(enum dtype type, const char *at, int16_t scale)
{
    if (type == DT_F16)
        return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)at));
    if (type == DT_BF16)
        return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)at)), 16));
    if (type == DT_I8)
        return _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)at))),
                             _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_set1_epi16(scale), 16)));
    return _mm256_loadu_ps((const float *)(const void *)at);
}

INLINE TARGET vec FEW(set)(float x)
{
    return _mm256_set1_ps(x);
}

INLINE TARGET vec FEW(fma)(vec a, vec b, vec c)
{
    return _mm256_fmadd_ps(a, b, c);
}

INLINE TARGET vec FEW(mul)(vec a, vec b)
{
    return _mm256_mul_ps(a, b);
}

INLINE TARGET void FEW(store)(float *to, vec x)
{
    _mm256_storeu_ps(to, x);
}

/* Sums the lanes of each of DOTS registers. */
INLINE TARGET vec FEW(sum_each)(const vec *x)
{
    vec a = _mm256_hadd_ps(_mm256_hadd_ps(x[0], x[1]), _mm256_hadd_ps(x[2], x[3]));
    vec b = _mm256_hadd_ps(_mm256_hadd_ps(x[4], x[5]), _mm256_hadd_ps(x[6], x[7]));
    return _mm256_add_ps(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));
}

#include "kern/attention/few_tile.h"
#elif NEON
#define FEW(name) neon_##name
#define TARGET
#define VECTORS(queries) (8 / (queries))
#define LANES 4
#define DOTS 4
#define CHAINS 4
#define vec float32x4_t

INLINE vec FEW(load)(enum dtype type, const char *at, int16_t scale)
{
    uint16x4_t half = vdup_n_u16(0);
    int32_t word = 0;
    if (type == DT_F32)
        return vld1q_f32((const float *)(const void *)at);
    if (type == DT_I8) {
        memcpy(&word, at, sizeof word);
        int16x8_t code = vmovl_s8(vreinterpret_s8_s32(vdup_n_s32(word)));
        vec by = vreinterpretq_f32_u32(vdupq_n_u32((uint32_t)(uint16_t)scale << 16));
        return vmulq_f32(vcvtq_f32_s32(vmovl_s16(vget_low_s16(code))), by);
    }
    half = vld1_u16((const uint16_t *)(const void *)at);
    return type == DT_F16 ? vcvt_f32_f16(vreinterpret_f16_u16(half)) : vreinterpretq_f32_u32(vshll_n_u16(half, 16));
}

INLINE vec FEW(set)(float x)
{
    return vdupq_n_f32(x);
}

INLINE vec FEW(fma)(vec a, vec b, vec c)
{
    return vfmaq_f32(c, a, b);
}

INLINE vec FEW(mul)(vec a, vec b)
{
    return vmulq_f32(a, b);
}

INLINE void FEW(store)(float *to, vec x)
{
    vst1q_f32(to, x);
}

/* Sums the lanes of each of DOTS registers. */
INLINE vec FEW(sum_each)(const vec *x)
{
    return vpaddq_f32(vpaddq_f32(x[0], x[1]), vpaddq_f32(x[2], x[3]));
}

#include "kern/attention/few_tile.h"
#endif

const struct few_kernel few_kernels[] = {
#if X86
    {ISA_AVX512, avx512_scores, avx512_values},
    {ISA_AVX2, avx2_scores, avx2_values},
#elif NEON
    {ISA_NEON, neon_scores, neon_values},
#endif
    {ISA_PLAIN, plain_scores, plain_values},
};

ISA_BEST(few_best, few_kernel, few_kernels)
