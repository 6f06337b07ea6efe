/* bytes_dot: dots of unsigned with signed bytes, for a tile of a filter and a few rows, and sums of rows. Lanes are columns: a word of 4
 * bytes of a column meets the same word of a row in every lane, so nothing is added across lanes. */
#include "kern/core/core.h"
#include "kern/core/isa.h"
#include "kern/gemm/gemm.h"

#include <string.h>

enum { WORD = 4, LANES = 16, UNIT = 4 }; /* UNIT: words at a time */

/* ---- plain C ------------------------------------------------------------------------------------------------------------------------- */

static SIMD void plain_row(const int8_t *tile, const struct bytes_rows *b, const uint8_t *const *at, int width, int32_t *sums)
{
    int32_t sum[BYTES_WIDTH] = {0};
    for (int64_t r = 0; r < b->runs; r++, tile += b->words * WORD * width)
        for (int64_t k = 0; k < b->words * WORD; k++) {
            const int8_t *w = tile + k / WORD * WORD * width + k % WORD;
            int32_t x = at[r * BYTES_ROWS][b->offset + k] ^ b->flip;
            LOOP for (int j = 0; j < width; j++) sum[j] += x * w[WORD * j];
        }
    memcpy(sums, sum, sizeof sum);
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

#if X86
INLINE int32_t word_at(const uint8_t *at)
{
    int32_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

/* A case for each number of rows and of halves, all sizes in it constants. */
#define CASES(BODY, FLIPS)                                                                                                        \
    switch (rows * 2 + halves - 1) {                                                                                              \
        CASE(BODY, 1, FLIPS)                                                                                                      \
        CASE(BODY, 2, FLIPS) CASE(BODY, 3, FLIPS) CASE(BODY, 4, FLIPS) CASE(BODY, 5, FLIPS) CASE(BODY, 6, FLIPS) default : break; \
    }
#define CASE(BODY, ROWS, FLIPS)                                \
    case ROWS * 2: BODY(ROWS, 1, FLIPS, tile, b, sums); break; \
    case ROWS * 2 + 1: BODY(ROWS, 2, FLIPS, tile, b, sums); break;

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

static VNNI void vnni_flipped(const int8_t *tile, const struct bytes_rows *b, int rows, int halves, int32_t *sums)
{
    CASES(vnni_rows, true)
}

static VNNI void vnni_straight(const int8_t *tile, const struct bytes_rows *b, int rows, int halves, int32_t *sums)
{
    CASES(vnni_rows, false)
}

static void vnni_dot(const int8_t *tile, const struct bytes_rows *b, int rows, int halves, int32_t *sums)
{
    (b->flip ? vnni_flipped : vnni_straight)(tile, b, rows, halves, sums);
}

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
enum { PART = 8 }; /* columns of a register */

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

/* The products of pairs are too large for 16 bits, so they go by 16-bit numbers, even and odd ones. */
INLINE AVX2 void avx2_rows(int rows, int halves, bool flips, const int8_t *tile, const struct bytes_rows *b, int32_t *sums)
{
    enum { MOST = BYTES_ROWS / 2 };
    for (int j = 0; j < halves * LANES; j += 2 * PART) {
        avx2_part(0, rows < MOST ? rows : MOST, halves, flips, tile, b, j, sums);
        if (rows > MOST)
            avx2_part(MOST, rows - MOST, halves, flips, tile, b, j, sums);
    }
}

static AVX2 void avx2_flipped(const int8_t *tile, const struct bytes_rows *b, int rows, int halves, int32_t *sums)
{
    CASES(avx2_rows, true)
}

static AVX2 void avx2_straight(const int8_t *tile, const struct bytes_rows *b, int rows, int halves, int32_t *sums)
{
    CASES(avx2_rows, false)
}

static void avx2_dot(const int8_t *tile, const struct bytes_rows *b, int rows, int halves, int32_t *sums)
{
    (b->flip ? avx2_flipped : avx2_straight)(tile, b, rows, halves, sums);
}

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
#endif

const struct bytes_kernel bytes_kernels[] = {
#if X86
    {"avx512_vnni", isa_avx512_vnni, vnni_dot, vnni_add},
    {"avx2", isa_avx2, avx2_dot, avx2_add},
#endif
    {"plain", isa_any, plain_dot, plain_add},
    {NULL, NULL, NULL, NULL},
};

ISA_BEST(bytes_best, bytes_kernel, bytes_kernels)
