/* bytes_dot: dot products of unsigned with signed bytes, for a tile of a filter and a few rows, and sums of rows. Lanes are columns: every
 * lane multiplies a 4-byte word of its column with the same word of a row, so nothing is added across lanes. */
#include "kern/core/core.h"
#include "kern/core/intrinsics.h"
#include "kern/gemm/gemm.h"

#include <string.h>

enum { WORD = 4, LANES = 16, UNIT = 4 }; /* UNIT: words at a time */

/* ---- plain C ------------------------------------------------------------------------------------------------------------------------- */

/* Multiplies a 4-byte word of each column with that of a row, byte by byte. `width` is a compile-time constant. */
INLINE void plain_words(int width, const int8_t *tile, const struct bytes_rows *b, const uint8_t *const *at, int32_t *sums)
{
    uint32_t sum[BYTES_WIDTH] = {0};
    for (int64_t r = 0; r < b->runs; r++)
        for (int64_t k = 0; k < b->words; k++, tile += WORD * width) {
            const uint8_t *byte = at[r * BYTES_ROWS] + b->offset + k * WORD;
            int32_t word[BYTES_WIDTH], x[WORD];
            memcpy(word, tile, (size_t)(WORD * width));
            UNROLL for (int i = 0; i < WORD; i++) x[i] = byte[i] ^ b->flip;
            LOOP for (int j = 0; j < width; j++)
            {
                uint32_t w = (uint32_t)word[j]; /* sign-extends each byte */
                int32_t low = ((int32_t)(w << 24) >> 24) * x[0] + ((int32_t)(w << 16) >> 24) * x[1];
                int32_t high = ((int32_t)(w << 8) >> 24) * x[2] + ((int32_t)w >> 24) * x[3];
                sum[j] += (uint32_t)(low + high);
            }
        }
    memcpy(sums, sum, sizeof sum);
}

static SIMD void plain_row(const int8_t *tile, const struct bytes_rows *b, const uint8_t *const *at, int width, int32_t *sums)
{
    if (width == BYTES_WIDTH)
        plain_words(BYTES_WIDTH, tile, b, at, sums);
    else
        plain_words(LANES, tile, b, at, sums);
}

static void plain_dot(const int8_t *tile, const struct bytes_rows *b, int rows, int halves, int32_t *sums)
{
    for (int r = 0; r < rows; r++)
        plain_row(tile, b, b->at + r, halves * LANES, sums + r * BYTES_WIDTH);
}

static SIMD int32_t sum_bytes(const uint8_t *x, int64_t n, uint8_t flip)
{
    int32_t sum = 0;
    _Pragma("omp simd reduction(+:sum)") for (int64_t i = 0; i < n; i++) sum += x[i] ^ flip;
    return sum;
}

static void plain_add(const struct bytes_rows *b, int64_t run, int rows, int32_t *sums)
{
    for (int r = 0; r < rows; r++) {
        sums[r] = 0;
        for (int64_t i = 0; i < b->runs; i++)
            sums[r] += sum_bytes(b->at[i * BYTES_ROWS + r] + b->offset, run, b->flip);
    }
}

#if X86 || NEON
INLINE int32_t word_at(const uint8_t *at)
{
    int32_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

/* A case for each number of rows and halves, in which all sizes are constants. */
#define CASES(BODY, FLIPS)                                                                                                        \
    switch (rows * 2 + halves - 1) {                                                                                              \
        CASE(BODY, 1, FLIPS)                                                                                                      \
        CASE(BODY, 2, FLIPS) CASE(BODY, 3, FLIPS) CASE(BODY, 4, FLIPS) CASE(BODY, 5, FLIPS) CASE(BODY, 6, FLIPS) default : break; \
    }
#define CASE(BODY, ROWS, FLIPS)                                \
    case ROWS * 2: BODY(ROWS, 1, FLIPS, tile, b, sums); break; \
    case ROWS * 2 + 1: BODY(ROWS, 2, FLIPS, tile, b, sums); break;
/* The dot product of an instruction set, by number of rows. */
#define DOT(isa, TARGET)                                                                                                   \
    static TARGET void isa##_flipped(const int8_t *tile, const struct bytes_rows *b, int rows, int halves, int32_t *sums)  \
    {                                                                                                                      \
        CASES(isa##_rows, true)                                                                                            \
    }                                                                                                                      \
    static TARGET void isa##_straight(const int8_t *tile, const struct bytes_rows *b, int rows, int halves, int32_t *sums) \
    {                                                                                                                      \
        CASES(isa##_rows, false)                                                                                           \
    }                                                                                                                      \
    static void isa##_dot(const int8_t *tile, const struct bytes_rows *b, int rows, int halves, int32_t *sums)             \
    {                                                                                                                      \
        (b->flip ? isa##_flipped : isa##_straight)(tile, b, rows, halves, sums);                                           \
    }
#endif

#if X86
/* ---- AVX-512 with VNNI --------------------------------------------------------------------------------------------------------------- */
#define VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni")))

INLINE VNNI void vnni_word(int rows, int halves, bool flips, const int8_t *tile, const uint8_t *const *a, int64_t at, __m512i (*sum)[2])
{
    __m512i w[2];
    UNROLL for (int h = 0; h < halves; h++) w[h] = _mm512_loadu_si512(tile + h * WORD * LANES);
    UNROLL for (int r = 0; r < rows; r++)
    {
        __m512i x = _mm512_set1_epi32(word_at(a[r] + at));
        x = flips ? _mm512_xor_si512(x, _mm512_set1_epi8((char)0x80)) : x;
        UNROLL for (int h = 0; h < halves; h++) sum[r][h] = _mm512_dpbusd_epi32(sum[r][h], x, w[h]);
    }
}

INLINE VNNI void vnni_rows(int rows, int halves, bool flips, const int8_t *tile, const struct bytes_rows *b, int32_t *sums)
{
    __m512i sum[BYTES_ROWS][2];
    const int64_t words = b->words, runs = b->runs, step = WORD * LANES * halves;
    const uint8_t *const *at = b->at, *a[BYTES_ROWS];
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int h = 0; h < halves; h++) sum[r][h] = _mm512_setzero_si512();
    for (int64_t i = 0; i < runs; i++, at += BYTES_ROWS) {
        int64_t k = 0;
        UNROLL for (int r = 0; r < rows; r++) a[r] = at[r] + b->offset;
        for (; k + UNIT <= words; k += UNIT, tile += UNIT * step)
            UNROLL for (int u = 0; u < UNIT; u++) vnni_word(rows, halves, flips, tile + u * step, a, (k + u) * WORD, sum);
        for (; k < words; k++, tile += step)
            vnni_word(rows, halves, flips, tile, a, k * WORD, sum);
    }
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int h = 0; h < halves; h++)
        _mm512_storeu_si512(sums + r * BYTES_WIDTH + h * LANES, sum[r][h]);
}

DOT(vnni, VNNI)

INLINE VNNI __m512i vnni_bytes(__m512i sum, const uint8_t *x, int64_t n, __m512i flip)
{
    const int64_t whole = WORD * LANES;
    int64_t k = 0;
    for (; k + whole <= n; k += whole)
        sum = _mm512_dpbusd_epi32(sum, _mm512_xor_si512(_mm512_loadu_si512(x + k), flip), _mm512_set1_epi8(1));
    if (k == n)
        return sum;
    const __mmask64 some = ((__mmask64)1 << (n - k)) - 1;
    return _mm512_dpbusd_epi32(sum, _mm512_xor_si512(_mm512_maskz_loadu_epi8(some, x + k), flip), _mm512_maskz_set1_epi8(some, 1));
}

static VNNI void vnni_add(const struct bytes_rows *b, int64_t run, int rows, int32_t *sums)
{
    const __m512i flip = _mm512_set1_epi8((char)b->flip);
    for (int r = 0; r < rows; r++) {
        __m512i sum = _mm512_setzero_si512();
        for (int64_t i = 0; i < b->runs; i++)
            sum = vnni_bytes(sum, b->at[i * BYTES_ROWS + r] + b->offset, run, flip);
        sums[r] = _mm512_reduce_add_epi32(sum);
    }
}

/* ---- AVX2 ---------------------------------------------------------------------------------------------------------------------------- */
#define AVX2 __attribute__((target("avx2,fma")))
enum { PART = 8 }; /* columns per register */

/* Columns j..j + 2 * PART of up to ROWS / 2 rows from row `first` on. */
INLINE AVX2 void avx2_part(int first, int rows, int halves, bool flips, const int8_t *tile, const struct bytes_rows *b, int j,
                           int32_t *sums)
{
    const __m256i low = _mm256_set1_epi16(255);
    const int64_t words = b->words, step = LANES * halves * WORD;
    const uint8_t *const *at = b->at + first, *a[BYTES_ROWS / 2];
    __m256i sum[BYTES_ROWS / 2][2];
    tile += j * WORD;
    UNROLL for (int r = 0; r < rows; r++) sum[r][0] = sum[r][1] = _mm256_setzero_si256();
    for (int64_t i = 0; i < b->runs; i++, at += BYTES_ROWS) {
        UNROLL for (int r = 0; r < rows; r++) a[r] = at[r] + b->offset;
        for (int64_t k = 0; k < words; k++, tile += step) {
            __m256i even[2], odd[2];
            UNROLL for (int h = 0; h < 2; h++)
            {
                __m256i w = _mm256_loadu_si256((const __m256i *)(const void *)(tile + h * PART * WORD));
                even[h] = _mm256_srai_epi16(_mm256_slli_epi16(w, 8), 8);
                odd[h] = _mm256_srai_epi16(w, 8);
            }
            UNROLL for (int r = 0; r < rows; r++)
            {
                __m256i x = _mm256_set1_epi32(word_at(a[r] + k * WORD));
                x = flips ? _mm256_xor_si256(x, _mm256_set1_epi8((char)0x80)) : x;
                __m256i x_even = _mm256_and_si256(x, low), x_odd = _mm256_srli_epi16(x, 8);
                UNROLL for (int h = 0; h < 2; h++)
                {
                    __m256i more = _mm256_add_epi32(_mm256_madd_epi16(x_even, even[h]), _mm256_madd_epi16(x_odd, odd[h]));
                    sum[r][h] = _mm256_add_epi32(sum[r][h], more);
                }
            }
        }
    }
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int h = 0; h < 2; h++)
        _mm256_storeu_si256((__m256i *)(void *)(sums + (first + r) * BYTES_WIDTH + j + h * PART), sum[r][h]);
}

/* Sums of two products exceed 16 bits, so even and odd numbers are multiplied as 16-bit numbers. */
INLINE AVX2 void avx2_rows(int rows, int halves, bool flips, const int8_t *tile, const struct bytes_rows *b, int32_t *sums)
{
    enum { MOST = BYTES_ROWS / 2 };
    for (int j = 0; j < halves * LANES; j += 2 * PART) {
        avx2_part(0, rows < MOST ? rows : MOST, halves, flips, tile, b, j, sums);
        if (rows > MOST)
            avx2_part(MOST, rows - MOST, halves, flips, tile, b, j, sums);
    }
}

DOT(avx2, AVX2)

/* Sums of 8 bytes are 64-bit numbers. */
static AVX2 void avx2_add(const struct bytes_rows *b, int64_t run, int rows, int32_t *sums)
{
    enum { WHOLE = 32 };
    const __m256i flip = _mm256_set1_epi8((char)b->flip);
    for (int r = 0; r < rows; r++) {
        __m256i sum = _mm256_setzero_si256();
        int32_t rest = 0;
        for (int64_t i = 0; i < b->runs; i++) {
            const uint8_t *x = b->at[i * BYTES_ROWS + r] + b->offset;
            int64_t k = 0;
            for (; k + WHOLE <= run; k += WHOLE) {
                __m256i some = _mm256_xor_si256(_mm256_loadu_si256((const __m256i *)(const void *)(x + k)), flip);
                sum = _mm256_add_epi64(sum, _mm256_sad_epu8(some, _mm256_setzero_si256()));
            }
            for (; k < run; k++)
                rest += x[k] ^ b->flip;
        }
        int64_t part[4];
        _mm256_storeu_si256((__m256i *)(void *)part, sum);
        sums[r] = rest + (int32_t)(part[0] + part[1] + part[2] + part[3]);
    }
}
#elif NEON
/* ---- ARM ----------------------------------------------------------------------------------------------------------------------------- */
enum { FOUR = 4, REGISTERS = LANES / FOUR }; /* columns per register; registers per half */

static void neon_add(const struct bytes_rows *b, int64_t run, int rows, int32_t *sums)
{
    enum { WHOLE = 16 };
    for (int r = 0; r < rows; r++) {
        uint32x4_t sum = vdupq_n_u32(0);
        uint32_t rest = 0;
        for (int64_t i = 0; i < b->runs; i++) {
            const uint8_t *x = b->at[i * BYTES_ROWS + r] + b->offset;
            int64_t k = 0;
            for (; k + WHOLE <= run; k += WHOLE)
                sum = vpadalq_u16(sum, vpaddlq_u8(veorq_u8(vld1q_u8(x + k), vdupq_n_u8(b->flip))));
            for (; k < run; k++)
                rest += (uint32_t)(x[k] ^ b->flip);
        }
        sums[r] = (int32_t)(vaddvq_u32(sum) + rest);
    }
}

/* The initial sums of a row if filters are read as unsigned numbers, which are 128 too large. */
static void neon_less(const struct bytes_rows *b, int rows, int32_t *sums)
{
    neon_add(b, b->words * WORD, rows, sums);
    for (int r = 0; r < rows; r++)
        sums[r] = (int32_t)(0 - ((uint32_t)sums[r] << 7));
}

/* NAME_rows, from NAME_dot(sum, filter, x, lane of x), for an instruction set. The sums of half the columns of all rows are in
 * registers. */
#define ROWS(NAME, TARGET, BEGIN)                                                                                                 \
    INLINE TARGET void NAME##_words(int rows, int words, bool flips, const int8_t *tile, int64_t step, const uint8_t *const *a,   \
                                    int64_t at, int32x4_t(*sum)[REGISTERS])                                                       \
    {                                                                                                                             \
        uint8x16_t x[BYTES_ROWS];                                                                                                 \
        UNROLL for (int r = 0; r < rows; r++)                                                                                     \
        {                                                                                                                         \
            x[r] = words == UNIT ? vld1q_u8(a[r] + at) : vreinterpretq_u8_s32(vdupq_n_s32(word_at(a[r] + at)));                   \
            x[r] = flips ? veorq_u8(x[r], vdupq_n_u8(0x80)) : x[r];                                                               \
        }                                                                                                                         \
        UNROLL for (int u = 0; u < words; u++) UNROLL for (int h = 0; h < REGISTERS; h++)                                         \
        {                                                                                                                         \
            int8x16_t w = vld1q_s8(tile + u * step + h * FOUR * WORD);                                                            \
            UNROLL for (int r = 0; r < rows; r++) sum[r][h] = NAME##_by_lane(sum[r][h], w, x[r], u);                              \
        }                                                                                                                         \
    }                                                                                                                             \
    INLINE TARGET void NAME##_half(int rows, bool flips, int64_t step, const int8_t *tile, const struct bytes_rows *b,            \
                                   const int32_t *begin, int32_t *to)                                                             \
    {                                                                                                                             \
        const int64_t words = b->words;                                                                                           \
        const uint8_t *const *at = b->at, *a[BYTES_ROWS];                                                                         \
        int32x4_t sum[BYTES_ROWS][REGISTERS];                                                                                     \
        UNROLL for (int r = 0; r < rows; r++) UNROLL for (int h = 0; h < REGISTERS; h++) sum[r][h] = vdupq_n_s32(begin[r]);       \
        for (int64_t i = 0; i < b->runs; i++, at += BYTES_ROWS) {                                                                 \
            int64_t k = 0;                                                                                                        \
            UNROLL for (int r = 0; r < rows; r++) a[r] = at[r] + b->offset;                                                       \
            for (; k + UNIT <= words; k += UNIT, tile += UNIT * step)                                                             \
                NAME##_words(rows, UNIT, flips, tile, step, a, k *WORD, sum);                                                     \
            for (; k < words; k++, tile += step)                                                                                  \
                NAME##_words(rows, 1, flips, tile, step, a, k *WORD, sum);                                                        \
        }                                                                                                                         \
        UNROLL for (int r = 0; r < rows; r++) UNROLL for (int h = 0; h < REGISTERS; h++)                                          \
            vst1q_s32(to + r * BYTES_WIDTH + h * FOUR, sum[r][h]);                                                                \
    }                                                                                                                             \
    INLINE TARGET void NAME##_rows(int rows, int halves, bool flips, const int8_t *tile, const struct bytes_rows *b, int32_t *to) \
    {                                                                                                                             \
        int32_t begin[BYTES_ROWS];                                                                                                \
        BEGIN(b, rows, begin);                                                                                                    \
        for (int h = 0; h < halves; h++)                                                                                          \
            NAME##_half(rows, flips, LANES *WORD *halves, tile + h * LANES * WORD, b, begin, to + h * LANES);                     \
    }
#define BY_LANE(FUNCTION, sum, w, x, lane)      \
    ((lane) == 0       ? FUNCTION(sum, w, x, 0) \
         : (lane) == 1 ? FUNCTION(sum, w, x, 1) \
         : (lane) == 2 ? FUNCTION(sum, w, x, 2) \
                       : FUNCTION(sum, w, x, 3))
#define UNSIGNED(w) veorq_u8(vreinterpretq_u8_s8(w), vdupq_n_u8(0x80))

/* Products have 16 bits, sums of two 32. */
INLINE int32x4_t neon_by_lane(int32x4_t sum, int8x16_t w, uint8x16_t x, int lane)
{
    uint32x4_t words = vreinterpretq_u32_u8(x);
    uint32x4_t word = lane == 0 ? vdupq_laneq_u32(words, 0)
        : lane == 1             ? vdupq_laneq_u32(words, 1)
        : lane == 2             ? vdupq_laneq_u32(words, 2)
                                : vdupq_laneq_u32(words, 3);
    uint8x16_t by = vreinterpretq_u8_u32(word), code = UNSIGNED(w);
    uint32x4_t low = vpaddlq_u16(vmull_u8(vget_low_u8(code), vget_low_u8(by))), high = vpaddlq_u16(vmull_high_u8(code, by));
    return vaddq_s32(sum, vreinterpretq_s32_u32(vpaddq_u32(low, high)));
}
ROWS(neon, , neon_less)
DOT(neon, )

#if NEON_DOTS
#define DOTS __attribute__((target("arch=armv8.2-a+dotprod")))
INLINE DOTS int32x4_t neon_dots_by_lane(int32x4_t sum, int8x16_t w, uint8x16_t x, int lane)
{
    return vreinterpretq_s32_u32(BY_LANE(vdotq_laneq_u32, vreinterpretq_u32_s32(sum), UNSIGNED(w), x, lane));
}
ROWS(neon_dots, DOTS, neon_less)
DOT(neon_dots, DOTS)

static void neon_none(const struct bytes_rows *b, int rows, int32_t *sums)
{
    (void)b;
    memset(sums, 0, (size_t)rows * sizeof *sums);
}

#define I8MM __attribute__((target("arch=armv8.2-a+dotprod+i8mm")))
INLINE I8MM int32x4_t neon_i8mm_by_lane(int32x4_t sum, int8x16_t w, uint8x16_t x, int lane)
{
    return BY_LANE(vsudotq_laneq_s32, sum, w, x, lane);
}
ROWS(neon_i8mm, I8MM, neon_none)

/* Products of two rows with two columns, 8 numbers each: a register holds sums of two rows and two columns. */
enum { ROW_PAIRS = BYTES_ROWS / 2, COLUMN_PAIRS = LANES / 2 };

/* `words` words, 1 or 2, of each row and column; a missing one is 0. */
INLINE I8MM void neon_mmla_words(int pairs, int words, bool flips, const int8_t *tile, int64_t step, const uint8_t *const *a, int64_t at,
                                 int32x4_t (*sum)[COLUMN_PAIRS])
{
    uint8x16_t x[ROW_PAIRS];
    UNROLL for (int p = 0; p < pairs; p++)
    {
        const uint8_t *first = a[2 * p] + at, *second = a[2 * p + 1] + at;
        uint32x2_t none = vdup_n_u32(0);
        uint8x8_t low = words == 2 ? vld1_u8(first) : vreinterpret_u8_u32(vset_lane_u32((uint32_t)word_at(first), none, 0));
        uint8x8_t high = words == 2 ? vld1_u8(second) : vreinterpret_u8_u32(vset_lane_u32((uint32_t)word_at(second), none, 0));
        x[p] = vcombine_u8(low, high);
        x[p] = flips ? veorq_u8(x[p], vdupq_n_u8(0x80)) : x[p];
    }
    UNROLL for (int h = 0; h < REGISTERS; h++)
    {
        int32x4_t one = vreinterpretq_s32_s8(vld1q_s8(tile + h * FOUR * WORD)), other = vdupq_n_s32(0);
        other = words == 2 ? vreinterpretq_s32_s8(vld1q_s8(tile + step + h * FOUR * WORD)) : other;
        int8x16_t low = vreinterpretq_s8_s32(vzip1q_s32(one, other)), high = vreinterpretq_s8_s32(vzip2q_s32(one, other));
        UNROLL for (int p = 0; p < pairs; p++)
        {
            sum[p][2 * h] = vusmmlaq_s32(sum[p][2 * h], x[p], low);
            sum[p][2 * h + 1] = vusmmlaq_s32(sum[p][2 * h + 1], x[p], high);
        }
    }
}

INLINE I8MM void neon_mmla_half(int rows, bool flips, int64_t step, const int8_t *tile, const struct bytes_rows *b, int32_t *to)
{
    const int pairs = (rows + 1) / 2;
    const int64_t words = b->words;
    const uint8_t *const *at = b->at, *a[BYTES_ROWS];
    int32x4_t sum[ROW_PAIRS][COLUMN_PAIRS];
    UNROLL for (int p = 0; p < pairs; p++) UNROLL for (int c = 0; c < COLUMN_PAIRS; c++) sum[p][c] = vdupq_n_s32(0);
    for (int64_t i = 0; i < b->runs; i++, at += BYTES_ROWS) {
        int64_t k = 0;
        UNROLL for (int r = 0; r < 2 * pairs; r++) a[r] = at[r < rows ? r : rows - 1] + b->offset;
        for (; k + 2 <= words; k += 2, tile += 2 * step)
            neon_mmla_words(pairs, 2, flips, tile, step, a, k * WORD, sum);
        for (; k < words; k++, tile += step)
            neon_mmla_words(pairs, 1, flips, tile, step, a, k * WORD, sum);
    }
    UNROLL for (int p = 0; p < pairs; p++) UNROLL for (int h = 0; h < REGISTERS; h++)
    {
        int64x2_t one = vreinterpretq_s64_s32(sum[p][2 * h]), other = vreinterpretq_s64_s32(sum[p][2 * h + 1]);
        vst1q_s32(to + 2 * p * BYTES_WIDTH + h * FOUR, vreinterpretq_s32_s64(vuzp1q_s64(one, other)));
        if (2 * p + 1 < rows)
            vst1q_s32(to + (2 * p + 1) * BYTES_WIDTH + h * FOUR, vreinterpretq_s32_s64(vuzp2q_s64(one, other)));
    }
}

/* A single row has no other row to pair with. */
INLINE I8MM void neon_mmla_rows(int rows, int halves, bool flips, const int8_t *tile, const struct bytes_rows *b, int32_t *to)
{
    if (rows == 1)
        neon_i8mm_rows(rows, halves, flips, tile, b, to);
    for (int h = 0; rows > 1 && h < halves; h++)
        neon_mmla_half(rows, flips, LANES * WORD * halves, tile + h * LANES * WORD, b, to + h * LANES);
}
DOT(neon_mmla, I8MM)
#endif
#endif

const struct bytes_kernel bytes_kernels[] = {
#if X86
    {ISA_AVX512_VNNI, vnni_dot, vnni_add},
    {ISA_AVX2, avx2_dot, avx2_add},
#elif NEON
#if NEON_DOTS
    {ISA_NEON_I8MM, neon_mmla_dot, neon_add},
    {ISA_NEON_DOT, neon_dots_dot, neon_add},
#endif
    {ISA_NEON, neon_dot, neon_add},
#endif
    {ISA_PLAIN, plain_dot, plain_add},
};

ISA_BEST(bytes_best, bytes_kernel, bytes_kernels)
