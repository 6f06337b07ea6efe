/* coded_dots: dots of a query with keys that are rows of codes, and sums of values that are, by instructions that multiply integers. The
 * query becomes integers too, of two digits of 8 bits and a scale for each block: it is rounded by 2^-15 of the block's greatest number,
 * far less than the keys are. So do the weights of values, for each block of some rows. Codes go unsigned, 128 more than they are; what
 * that adds is in what a sum starts with. */
#include "kern/attention/attention.h"
#include "kern/core/core.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* A query: for each block its digits, the high ones first, then scale and start. */
enum { DIGIT = 128, MOST = 127 * DIGIT, WORDS = CODED_BLOCK * 2 / (int)sizeof(float), SCALE = WORDS, START, BLOCK };

int64_t coded_dots_room(int64_t n)
{
    return n / CODED_BLOCK * BLOCK;
}

static float greatest(const float *x)
{
    float most = 0, none = 0;
    for (int i = 0; i < CODED_BLOCK; i++) {
        most = fabsf(x[i]) > most ? fabsf(x[i]) : most;
        none += x[i] - x[i];
    }
    return most + none;
}

static void write_digits(const float *x, float inverse, int8_t *digits, int32_t *start)
{
    int32_t sum = 0;
    for (int i = 0; i < CODED_BLOCK; i++) {
        float real = x[i] * inverse;
        int32_t number = (int32_t)lrintf(real > -MOST ? real < MOST ? real : MOST : -MOST);
        int32_t high = (number + MOST + DIGIT + DIGIT / 2) / DIGIT - 128;
        digits[i] = (int8_t)high;
        digits[CODED_BLOCK + i] = (int8_t)(number - high * DIGIT);
        sum += number;
    }
    *start = -128 * sum;
}

void coded_dots_query(const float *x, int64_t n, float factor, float *query)
{
    for (; n > 0; n -= CODED_BLOCK, x += CODED_BLOCK, query += BLOCK) {
        int8_t digits[2 * CODED_BLOCK];
        int32_t start;
        float scale = greatest(x) / MOST;
        write_digits(x, scale > 0 ? 1 / scale : 0, digits, &start);
        scale *= factor;
        memcpy(query, digits, sizeof digits);
        memcpy(query + SCALE, &scale, sizeof scale);
        memcpy(query + START, &start, sizeof start);
    }
}

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define VNNI __attribute__((target("avx2,fma,avx512f,avx512bw,avx512vl,avx512vnni")))
#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 8")
enum { KEYS = 8 };

bool coded_dots_run_here(int64_t n)
{
    return n > 0 && n % CODED_BLOCK == 0 && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512vnni");
}

/* The sum of the lanes of each. */
INLINE VNNI __m256i sum_each(const __m256i *x)
{
    __m256i a = _mm256_hadd_epi32(_mm256_hadd_epi32(x[0], x[1]), _mm256_hadd_epi32(x[2], x[3]));
    __m256i b = _mm256_hadd_epi32(_mm256_hadd_epi32(x[4], x[5]), _mm256_hadd_epi32(x[6], x[7]));
    return _mm256_add_epi32(_mm256_permute2x128_si256(a, b, 0x20), _mm256_permute2x128_si256(a, b, 0x31));
}

INLINE int16_t half_at(const char *at)
{
    int16_t half;
    memcpy(&half, at, sizeof half);
    return half;
}

/* Scales of bf16, one of each row. */
INLINE VNNI __m256 scales_of(const char *const *row, int64_t at)
{
    __m128i x = _mm_setr_epi16(half_at(row[0] + at), half_at(row[1] + at), half_at(row[2] + at), half_at(row[3] + at), half_at(row[4] + at),
                               half_at(row[5] + at), half_at(row[6] + at), half_at(row[7] + at));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(x), 16));
}

INLINE VNNI __m256i block_of(const void *at)
{
    return _mm256_loadu_si256(at);
}

INLINE VNNI __m256 dot_keys(const float *query, const char *const *row, int64_t n)
{
    const __m256i sign = _mm256_set1_epi8((char)0x80);
    __m256 dots = _mm256_setzero_ps();
    for (int64_t b = 0; b < n / CODED_BLOCK; b++, query += BLOCK) {
        __m256i high = block_of(query), low = block_of(query + WORDS / 2), sum[KEYS];
        int32_t start;
        memcpy(&start, query + START, sizeof start);
        __m256i first = _mm256_zextsi128_si256(_mm_cvtsi32_si128(start));
        UNROLL for (int k = 0; k < KEYS; k++)
        {
            __m256i code = _mm256_xor_si256(block_of(row[k] + b * CODED_BLOCK), sign);
            __m256i upper = _mm256_dpbusd_epi32(_mm256_setzero_si256(), code, high);
            sum[k] = _mm256_add_epi32(_mm256_slli_epi32(upper, 7), _mm256_dpbusd_epi32(first, code, low));
        }
        __m256 scale = _mm256_mul_ps(scales_of(row, n + b * CODED_SCALE), _mm256_set1_ps(query[SCALE]));
        dots = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum_each(sum)), scale, dots);
    }
    return dots;
}

VNNI void coded_dots(const float *query, const void *rows, int64_t step, int64_t count, int64_t n, float *dots)
{
    for (int64_t j = 0; j < count; j += KEYS) {
        const char *row[KEYS];
        float sums[KEYS];
        for (int64_t k = 0; k < KEYS; k++)
            row[k] = (const char *)rows + (j + k < count ? j + k : count - 1) * step;
        _mm256_storeu_ps(sums, dot_keys(query, row, n));
        memcpy(dots + j, sums, (size_t)(count - j < KEYS ? count - j : KEYS) * sizeof *dots);
    }
}
/* ---- sums of rows ------------------------------------------------------------------------------------------------------------------ */

/* A block of all rows. Codes of 4 rows lie together, for the instruction adds up 4 products. Columns: 0 to 3 and 16 to 19, the next ones ..
 */
enum { GROUPS = CODED_TOGETHER / 4, PARTS = CODED_BLOCK / 8 };
struct turned_block {
    uint8_t code[GROUPS][PARTS][32];
    float scale[CODED_TOGETHER];
};

int64_t coded_sums_room(int64_t n)
{
    return n / CODED_BLOCK * (int64_t)(sizeof(struct turned_block) / sizeof(float));
}

INLINE VNNI void turn_rows(const char *const *row, int64_t at, uint8_t (*to)[32])
{
    const __m256i sign = _mm256_set1_epi8((char)0x80);
    __m256i x[4];
    UNROLL for (int k = 0; k < 4; k++) x[k] = _mm256_xor_si256(block_of(row[k] + at), sign);
    __m256i low = _mm256_unpacklo_epi8(x[0], x[1]), high = _mm256_unpackhi_epi8(x[0], x[1]);
    __m256i low2 = _mm256_unpacklo_epi8(x[2], x[3]), high2 = _mm256_unpackhi_epi8(x[2], x[3]);
    _mm256_storeu_si256((__m256i *)(void *)to[0], _mm256_unpacklo_epi16(low, low2));
    _mm256_storeu_si256((__m256i *)(void *)to[1], _mm256_unpackhi_epi16(low, low2));
    _mm256_storeu_si256((__m256i *)(void *)to[2], _mm256_unpacklo_epi16(high, high2));
    _mm256_storeu_si256((__m256i *)(void *)to[3], _mm256_unpackhi_epi16(high, high2));
}

VNNI void coded_sums_rows(const void *rows, int64_t step, int64_t count, int64_t n, float *turned)
{
    const char *row[CODED_TOGETHER];
    for (int64_t k = 0; k < CODED_TOGETHER; k++)
        row[k] = (const char *)rows + (k < count ? k : count - 1) * step;
    for (int64_t b = 0; b < n / CODED_BLOCK; b++) {
        struct turned_block *to = (struct turned_block *)(void *)turned + b;
        for (int g = 0; g < GROUPS; g++)
            turn_rows(row + 4 * g, b * CODED_BLOCK, to->code[g]);
        for (int k = 0; k < CODED_TOGETHER; k += KEYS)
            _mm256_storeu_ps(to->scale + k, scales_of(row + k, n + b * CODED_SCALE));
    }
}

INLINE VNNI float most_of(__m256 x)
{
    __m128 y = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    y = _mm_max_ps(y, _mm_movehl_ps(y, y));
    return _mm_cvtss_f32(_mm_max_ss(y, _mm_movehdup_ps(y)));
}

/* Weights of rows as digits; their scale, which is undefined if a weight is no number. */
INLINE VNNI float weigh(const float *weight, const float *scale, int8_t (*digits)[CODED_TOGETHER], int32_t *start)
{
    const __m256 sign = _mm256_set1_ps(-0.0f);
    __m256 x[CODED_TOGETHER / KEYS], most = _mm256_setzero_ps(), none = most;
    __m256i sum = _mm256_setzero_si256();
    UNROLL for (int k = 0; k < CODED_TOGETHER / KEYS; k++)
    {
        x[k] = _mm256_mul_ps(_mm256_loadu_ps(weight + k * KEYS), _mm256_loadu_ps(scale + k * KEYS));
        most = _mm256_max_ps(most, _mm256_andnot_ps(sign, x[k]));
        none = _mm256_or_ps(none, _mm256_cmp_ps(x[k], x[k], _CMP_UNORD_Q));
    }
    float greatest = most_of(most);
    if (_mm256_movemask_ps(none) || greatest > FLT_MAX) {
        memset(digits, 0, 2 * sizeof *digits);
        *start = 0;
        return NAN;
    }
    __m256 inverse = _mm256_set1_ps(greatest > FLT_MIN * MOST ? MOST / greatest : 0);
    UNROLL for (int k = 0; k < CODED_TOGETHER / KEYS; k++)
    {
        __m256i number = _mm256_cvtps_epi32(_mm256_mul_ps(x[k], inverse));
        __m256i high = _mm256_srai_epi32(_mm256_add_epi32(number, _mm256_set1_epi32(DIGIT / 2)), 7);
        _mm_storel_epi64((__m128i *)(void *)(digits[0] + k * KEYS), _mm256_cvtepi32_epi8(high));
        _mm_storel_epi64((__m128i *)(void *)(digits[1] + k * KEYS),
                         _mm256_cvtepi32_epi8(_mm256_sub_epi32(number, _mm256_slli_epi32(high, 7))));
        sum = _mm256_add_epi32(sum, number);
    }
    __m128i half = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
    half = _mm_hadd_epi32(half, half);
    *start = -128 * _mm_cvtsi128_si32(_mm_hadd_epi32(half, half));
    return greatest / MOST;
}

INLINE VNNI void add_columns(__m256i low, __m256i high, __m256 scale, float *sum)
{
    _mm256_storeu_ps(sum, _mm256_fmadd_ps(_mm256_cvtepi32_ps(_mm256_permute2x128_si256(low, high, 0x20)), scale, _mm256_loadu_ps(sum)));
    sum += CODED_BLOCK / 2;
    _mm256_storeu_ps(sum, _mm256_fmadd_ps(_mm256_cvtepi32_ps(_mm256_permute2x128_si256(low, high, 0x31)), scale, _mm256_loadu_ps(sum)));
}

INLINE VNNI void sum_block(const float *weight, const struct turned_block *t, float *sum)
{
    int8_t digits[2][CODED_TOGETHER];
    int32_t start;
    __m256 scale = _mm256_set1_ps(weigh(weight, t->scale, digits, &start));
    __m256i high[PARTS], low[PARTS];
    UNROLL for (int v = 0; v < PARTS; v++) high[v] = _mm256_setzero_si256(), low[v] = _mm256_set1_epi32(start);
    UNROLL for (int g = 0; g < GROUPS; g++)
    {
        int32_t word[2];
        memcpy(&word[0], digits[0] + 4 * g, sizeof *word);
        memcpy(&word[1], digits[1] + 4 * g, sizeof *word);
        UNROLL for (int v = 0; v < PARTS; v++)
        {
            __m256i code = block_of(t->code[g][v]);
            high[v] = _mm256_dpbusd_epi32(high[v], code, _mm256_set1_epi32(word[0]));
            low[v] = _mm256_dpbusd_epi32(low[v], code, _mm256_set1_epi32(word[1]));
        }
    }
    UNROLL for (int v = 0; v < PARTS; v++) low[v] = _mm256_add_epi32(_mm256_slli_epi32(high[v], 7), low[v]);
    add_columns(low[0], low[1], scale, sum);
    add_columns(low[2], low[3], scale, sum + KEYS);
}

VNNI void coded_sums(const float *weight, const float *turned, int64_t count, int64_t n, float *sum)
{
    float all[CODED_TOGETHER] = {0};
    memcpy(all, weight, (size_t)count * sizeof *all);
    for (int64_t b = 0; b < n / CODED_BLOCK; b++)
        sum_block(all, (const struct turned_block *)(const void *)turned + b, sum + b * CODED_BLOCK);
}
#else
int64_t coded_sums_room(int64_t n)
{
    return n;
}

void coded_sums_rows(const void *rows, int64_t step, int64_t count, int64_t n, float *turned)
{
    (void)rows, (void)step, (void)count, (void)n, (void)turned;
    bug("no instructions for sums of codes");
}

void coded_sums(const float *weight, const float *turned, int64_t count, int64_t n, float *sum)
{
    (void)weight, (void)turned, (void)count, (void)n, (void)sum;
    bug("no instructions for sums of codes");
}

bool coded_dots_run_here(int64_t n)
{
    (void)n;
    return false;
}

void coded_dots(const float *query, const void *rows, int64_t step, int64_t count, int64_t n, float *dots)
{
    (void)query, (void)rows, (void)step, (void)count, (void)n, (void)dots;
    bug("no instructions for dots of codes");
}
#endif
