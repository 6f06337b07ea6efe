/* dot: dots of 8-bit integers, for a tile of a weight and a few rows of digits. Lanes are columns: every lane multiplies a word of 4
 * numbers of its column by the same 4 digits of a row, so no sum crosses lanes. The weight's codes are unsigned and digits are signed, as
 * the instructions require; the initial sums account for zero points. */
#include "kern/codes/codes.h"
#include "kern/core/core.h"
#include "kern/core/intrinsics.h"

#include <string.h>

enum {
    WORD = 4,
    GROUP_WORD = CODES_ROWS * WORD,
    WORDS = 64,
    SCALES = CODES_WIDTH * (int)sizeof(float),
    AHEAD = 512,
    UNIT = 16,
    FEW_ROWS = 3,
    ASKING = 2 /* groups of rows that prefetch the next tile */
};

INLINE int32_t word_at(const int8_t *digit)
{
    int32_t word;
    memcpy(&word, digit, sizeof word);
    return word;
}

/* ---- plain C ------------------------------------------------------------------------------------------------------------------------- */

/* Words of 4 numbers: multiplies a word of each column with the word of digits, byte by byte. `bits` is a compile-time constant. */
INLINE void plain_words(int bits, int64_t words, const uint8_t *codes, const int8_t *digit, int64_t each, uint32_t *sum)
{
    const uint32_t mask = (1U << bits) - 1;
    for (int64_t i = 0; i < words; i++, digit += each) {
        uint32_t word[CODES_WIDTH], four = (uint32_t)word_at(digit), d[WORD];
        int shift = (int)(i * bits % 8);
        memcpy(word, codes + i * bits / 8 * CODES_WIDTH * WORD, sizeof word);
        UNROLL for (int b = 0; b < WORD; b++) d[b] = (uint32_t)(int8_t)(four >> 8 * b);
        LOOP for (int j = 0; j < CODES_WIDTH; j++)
        {
            uint32_t x = word[j] >> shift;
            sum[j] += (x & mask) * d[0] + (x >> 8 & mask) * d[1] + (x >> 16 & mask) * d[2] + (x >> 24 & mask) * d[3];
        }
    }
}

/* sum[column] += dot products of n numbers of one row, whose words of digits are `each` apart, modulo 2^32. */
static SIMD void plain_numbers(const struct codes *w, int64_t n, const uint8_t *codes, const int8_t *digit, int64_t each, uint32_t *sum)
{
    switch (w->bits) {
    case 2: plain_words(2, n / WORD, codes, digit, each, sum); break;
    case 4: plain_words(4, n / WORD, codes, digit, each, sum); break;
    default: plain_words(8, n / WORD, codes, digit, each, sum); break;
    }
}

static void plain_row(const struct codes *w, int64_t tile, const struct codes_rows *a, int64_t group, int row, float *sums)
{
    memset(sums, 0, CODES_WIDTH * sizeof *sums);
    for (int64_t p = 0; p < a->steps; p++) {
        int64_t b = p * w->step / w->block, inside = p * w->step % w->block, at = (group * a->steps + p) * CODES_ROWS;
        const char *block = w->weight + (size_t)(tile * w->blocks + b) * w->block_bytes;
        int32_t start = a->start[at + row];
        uint32_t sum[CODES_WIDTH];
        float scale[CODES_WIDTH];
        for (int j = 0; j < CODES_WIDTH; j++)
            sum[j] = (uint32_t)(w->zeros ? start * w->zeros[(tile * w->blocks + b) * CODES_WIDTH + j] : start);
        plain_numbers(w, w->step, (const uint8_t *)block + SCALES + inside * w->bits * (CODES_WIDTH / 8), a->digit + at * w->step + row * 4,
                      GROUP_WORD, sum);
        memcpy(scale, block, sizeof scale);
        for (int j = 0; j < CODES_WIDTH; j++)
            sums[j] += (float)(int32_t)sum[j] * (scale[j] * a->scale[at + row]);
    }
}

static void plain_dot(const struct codes *w, int64_t tile, const struct codes_rows *a, int64_t group, int rows, float *sums, int64_t apart)
{
    for (int r = 0; r < rows; r++)
        plain_row(w, tile, a, group, r, sums + r * apart);
}

static void plain_whole(const struct codes *w, int64_t tile, const int8_t *digit, int rows, int32_t *sums, int64_t apart)
{
    for (int r = 0; r < rows; r++) {
        uint32_t sum[CODES_WIDTH] = {0};
        const char *block = w->weight + (size_t)tile * w->block_bytes;
        plain_numbers(w, w->block, (const uint8_t *)block + SCALES, digit + r * w->block, WORD, sum);
        memcpy(sums + r * apart, sum, sizeof sum);
    }
}

/* A case for each width of codes and number of rows, in which all sizes are constants; at most MOST_ROWS rows, whose sums are in
 * registers. */
enum { MOST_ROWS = 3 };
#define FEW_CASES(BODY, ROWS, ...)                                                                                                \
    switch (w->bits * 4 + ((ROWS) < MOST_ROWS ? (ROWS) : MOST_ROWS)) {                                                            \
        FEW_CASES_OF(BODY, 2, __VA_ARGS__) FEW_CASES_OF(BODY, 4, __VA_ARGS__) FEW_CASES_OF(BODY, 8, __VA_ARGS__) default : break; \
    }
#define FEW_CASES_OF(BODY, BITS, ...)                     \
    case BITS * 4 + 1: BODY(BITS, 1, __VA_ARGS__); break; \
    case BITS * 4 + 2: BODY(BITS, 2, __VA_ARGS__); break; \
    case BITS * 4 + 3:                                    \
        BODY(BITS, 3, __VA_ARGS__);                       \
        break;

#if X86
/* The same for all rows of a group. */
#define CASES(BODY, ROWS, ...)                                                                                        \
    switch (w->bits * 8 + (ROWS)) {                                                                                   \
        CASES_OF(BODY, 2, __VA_ARGS__) CASES_OF(BODY, 4, __VA_ARGS__) CASES_OF(BODY, 8, __VA_ARGS__) default : break; \
    }
#define CASES_OF(BODY, BITS, ...)                         \
    case BITS * 8 + 1: BODY(BITS, 1, __VA_ARGS__); break; \
    case BITS * 8 + 2: BODY(BITS, 2, __VA_ARGS__); break; \
    case BITS * 8 + 3: BODY(BITS, 3, __VA_ARGS__); break; \
    case BITS * 8 + 4: BODY(BITS, 4, __VA_ARGS__); break; \
    case BITS * 8 + 5: BODY(BITS, 5, __VA_ARGS__); break; \
    case BITS * 8 + 6: BODY(BITS, 6, __VA_ARGS__); break;

/* ---- AVX-512 with VNNI --------------------------------------------------------------------------------------------------------------- */
#define VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni")))
#define HALVES 2 /* registers for the columns of a tile */
typedef uint32_t shifted __attribute__((vector_size(WORDS)));

/* The initial sums of a step. */
INLINE VNNI void vnni_start(int rows, const uint8_t *zeros, const int32_t *start, __m512i (*sum)[HALVES])
{
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int h = 0; h < HALVES; h++)
    {
        sum[r][h] = _mm512_set1_epi32(start[r]);
        if (zeros)
            sum[r][h] = _mm512_mullo_epi32(sum[r][h], _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)zeros + h)));
    }
}

/* UNIT numbers of all columns. Words of digits are `each` apart, rows `row`. */
INLINE VNNI void vnni_unit(int bits, int rows, const char *codes, const int8_t *digit, int64_t each, int64_t row, __m512i (*sum)[HALVES])
{
    const __m512i mask = _mm512_set1_epi8((char)((1 << bits) - 1));
    UNROLL for (int i = 0; i < UNIT / 4; i++)
    {
        const char *from = codes + i * bits / 8 * HALVES * WORDS;
        int shift = i * bits % 8;
        __m512i code[HALVES];
        UNROLL for (int h = 0; h < HALVES; h++)
        {
            code[h] = _mm512_loadu_si512(from + h * WORDS);
            code[h] = bits == 8 ? code[h] : _mm512_and_si512((__m512i)((shifted)code[h] >> shift), mask);
        }
        UNROLL for (int r = 0; r < rows; r++)
        {
            __m512i digits = _mm512_set1_epi32(word_at(digit + i * each + r * row));
            UNROLL for (int h = 0; h < HALVES; h++) sum[r][h] = _mm512_dpbusd_epi32(sum[r][h], code[h], digits);
        }
    }
}

/* total += sum * the scales of columns and rows. */
INLINE VNNI void vnni_scale(int rows, const char *block, const float *scale, __m512i (*sum)[HALVES], __m512 (*total)[HALVES])
{
    __m512 columns[HALVES];
    UNROLL for (int h = 0; h < HALVES; h++) columns[h] = _mm512_loadu_ps(block + h * WORDS);
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int h = 0; h < HALVES; h++)
    {
        __m512 both = _mm512_mul_ps(columns[h], _mm512_set1_ps(scale[r]));
        total[r][h] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum[r][h]), both, total[r][h]);
    }
}

/* Prefetches into the L2 cache: a core waits less for it than for the L1. */
INLINE void ask_for(const char *codes, int bits)
{
    UNROLL for (int i = 0; i < UNIT * bits / 8 * CODES_WIDTH; i += 64) __builtin_prefetch(codes + AHEAD + i, 0, 2);
}

/* With more than one group, the first two each prefetch every other line of a block of the next tile: later groups find a tile in the
 * cache, and memory would otherwise be idle meanwhile. */
INLINE void ask_for_next(const struct codes *w, const struct codes_rows *a, int64_t group, const char *block)
{
    if (a->rows <= CODES_ROWS || group >= ASKING)
        return;
    for (size_t i = 64 * (size_t)group; i < w->block_bytes; i += 64 * ASKING)
        __builtin_prefetch(block + (size_t)w->blocks * w->block_bytes + i, 0, 2);
}

/* units of UNIT numbers; advances codes and digit. alone: no other rows read them. */
INLINE VNNI void vnni_units(int bits, int rows, bool alone, int64_t units, const char **codes, const int8_t **digit, int64_t each,
                            int64_t row, __m512i (*sum)[HALVES])
{
    for (int64_t i = 0; i < units; i++, *codes += UNIT * bits / 8 * CODES_WIDTH, *digit += UNIT / WORD * each) {
        if (alone)
            ask_for(*codes, bits);
        vnni_unit(bits, rows, *codes, *digit, each, row, sum);
    }
}

INLINE VNNI void vnni_rows(int bits, int rows, const struct codes *w, int64_t tile, const struct codes_rows *a, int64_t group, float *sums,
                           int64_t apart)
{
    __m512 total[CODES_ROWS][HALVES];
    const char *block = w->weight + (size_t)(tile * w->blocks) * w->block_bytes;
    const uint8_t *zeros = w->zeros ? w->zeros + tile * w->blocks * CODES_WIDTH : NULL;
    const int8_t *digit = a->digit + group * a->padded * CODES_ROWS;
    const float *scale = a->scale + group * a->steps * CODES_ROWS;
    const int32_t *start = a->start + group * a->steps * CODES_ROWS;
    int64_t each = w->block / w->step, units = w->step / UNIT;
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int h = 0; h < HALVES; h++) total[r][h] = _mm512_setzero_ps();
    for (int64_t b = 0; b < w->blocks; b++, block += w->block_bytes) {
        const char *codes = block + SCALES;
        ask_for_next(w, a, group, block);
        for (int64_t p = 0; p < each; p++, scale += CODES_ROWS, start += CODES_ROWS) {
            __m512i sum[CODES_ROWS][HALVES];
            vnni_start(rows, zeros, start, sum);
            vnni_units(bits, rows, a->rows <= CODES_ROWS, units, &codes, &digit, GROUP_WORD, WORD, sum);
            vnni_scale(rows, block, scale, sum, total);
        }
        zeros = zeros ? zeros + CODES_WIDTH : NULL;
    }
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int h = 0; h < HALVES; h++)
        _mm512_storeu_ps(sums + r * apart + h * WORDS / 4, total[r][h]);
}

INLINE VNNI void vnni_integers(int bits, int rows, const struct codes *w, int64_t tile, const int8_t *digit, int32_t *sums, int64_t apart)
{
    __m512i sum[CODES_ROWS][HALVES];
    const char *codes = w->weight + (size_t)tile * w->block_bytes + SCALES;
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int h = 0; h < HALVES; h++) sum[r][h] = _mm512_setzero_si512();
    vnni_units(bits, rows, rows <= FEW_ROWS, w->block / UNIT, &codes, &digit, WORD, w->block, sum);
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int h = 0; h < HALVES; h++)
        _mm512_storeu_si512(sums + r * apart + h * WORDS / 4, sum[r][h]);
}

static VNNI void vnni_whole(const struct codes *w, int64_t tile, const int8_t *digit, int rows, int32_t *sums, int64_t apart)
{
    CASES(vnni_integers, rows, w, tile, digit, sums, apart)
}

static VNNI void vnni_dot(const struct codes *w, int64_t tile, const struct codes_rows *a, int64_t group, int rows, float *sums,
                          int64_t apart)
{
    CASES(vnni_rows, rows, w, tile, a, group, sums, apart)
}

/* ---- AVX2 ---------------------------------------------------------------------------------------------------------------------------- */
#define AVX2 __attribute__((target("avx2,fma")))
enum { PARTS = 4 }; /* registers for the columns of a tile */

INLINE AVX2 __m256i avx2_load(const void *at)
{
    return _mm256_loadu_si256(at);
}

/* Sums of two products with 8-bit codes exceed 16 bits, so even and odd numbers are multiplied as 16-bit numbers: adds those of a word of
 * all columns to sum. */
INLINE AVX2 void avx2_bytes(int rows, const char *from, const int8_t *digit, int64_t row, __m256i (*sum)[PARTS])
{
    __m256i even[MOST_ROWS], odd[MOST_ROWS];
    UNROLL for (int r = 0; r < rows; r++)
    {
        __m256i digits = _mm256_set1_epi32(word_at(digit + r * row));
        even[r] = _mm256_srai_epi16(_mm256_slli_epi16(digits, 8), 8);
        odd[r] = _mm256_srai_epi16(digits, 8);
    }
    UNROLL for (int h = 0; h < PARTS; h++)
    {
        __m256i code = avx2_load(from + h * 32), low = _mm256_and_si256(code, _mm256_set1_epi16(255)), high = _mm256_srli_epi16(code, 8);
        UNROLL for (int r = 0; r < rows; r++)
        {
            sum[r][h] = _mm256_add_epi32(sum[r][h], _mm256_madd_epi16(low, even[r]));
            sum[r][h] = _mm256_add_epi32(sum[r][h], _mm256_madd_epi16(high, odd[r]));
        }
    }
}

/* Codes of fewer bits: part holds sums of pairs in 16 bits. */
INLINE AVX2 void avx2_pairs(int bits, int rows, const char *from, int shift, const int8_t *digit, int64_t row, __m256i (*part)[PARTS])
{
    const __m256i mask = _mm256_set1_epi8((char)((1 << bits) - 1));
    UNROLL for (int h = 0; h < PARTS; h++)
    {
        __m256i code = _mm256_and_si256(_mm256_srli_epi16(avx2_load(from + h * 32), shift), mask);
        UNROLL for (int r = 0; r < rows; r++)
            part[r][h] = _mm256_add_epi16(part[r][h], _mm256_maddubs_epi16(code, _mm256_set1_epi32(word_at(digit + r * row))));
    }
}

/* UNIT numbers of all columns. */
INLINE AVX2 void avx2_unit(int bits, int rows, const char *codes, const int8_t *digit, int64_t each, int64_t row, __m256i (*sum)[PARTS])
{
    ask_for(codes, bits);
    UNROLL for (int i = 0; i < UNIT / WORD; i++)
    {
        const char *from = codes + i * bits / 8 * CODES_WIDTH * WORD;
        if (bits == 8)
            avx2_bytes(rows, from, digit + i * each, row, sum);
        else
            avx2_pairs(bits, rows, from, i * bits % 8, digit + i * each, row, sum);
    }
}

/* units <= 2 of UNIT numbers: sums of 32 products of a 4-bit code and a digit fit 16 bits, also in pairs. */
INLINE AVX2 void avx2_units(int bits, int rows, int64_t units, const char *codes, const int8_t *digit, int64_t each, int64_t row,
                            __m256i (*sum)[PARTS])
{
    __m256i part[MOST_ROWS][PARTS];
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int h = 0; h < PARTS; h++) part[r][h] = bits == 8 ? sum[r][h]
                                                                                                        : _mm256_setzero_si256();
    for (int64_t i = 0; i < units; i++)
        avx2_unit(bits, rows, codes + i * UNIT * bits / 8 * CODES_WIDTH, digit + i * UNIT / WORD * each, each, row, part);
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int h = 0; h < PARTS; h++)
        sum[r][h] = bits == 8 ? part[r][h] : _mm256_add_epi32(sum[r][h], _mm256_madd_epi16(part[r][h], _mm256_set1_epi16(1)));
}

INLINE AVX2 void avx2_start(int rows, const uint8_t *zeros, const int32_t *start, __m256i (*sum)[PARTS])
{
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int h = 0; h < PARTS; h++)
    {
        sum[r][h] = _mm256_set1_epi32(start[r]);
        if (zeros)
            sum[r][h] = _mm256_mullo_epi32(sum[r][h],
                                           _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)(zeros + 8 * h))));
    }
}

/* total += sum * the scales of columns and rows. */
INLINE AVX2 void avx2_scale(int rows, const char *block, const float *scale, __m256i (*sum)[PARTS], __m256 (*total)[PARTS])
{
    UNROLL for (int h = 0; h < PARTS; h++)
    {
        __m256 columns = _mm256_loadu_ps((const float *)(const void *)block + 8 * h);
        UNROLL for (int r = 0; r < rows; r++)
            total[r][h] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum[r][h]), _mm256_mul_ps(columns, _mm256_set1_ps(scale[r])), total[r][h]);
    }
}

/* Rows from `first` on. */
INLINE AVX2 void avx2_rows(int bits, int rows, const struct codes *w, int64_t tile, const struct codes_rows *a, int64_t group, int first,
                           float *sums, int64_t apart)
{
    __m256 total[MOST_ROWS][PARTS];
    int64_t each = w->block / w->step, at = group * a->steps * CODES_ROWS + first, units = w->step / UNIT;
    const char *block = w->weight + (size_t)(tile * w->blocks) * w->block_bytes;
    const uint8_t *zeros = w->zeros ? w->zeros + tile * w->blocks * CODES_WIDTH : NULL;
    const int8_t *digit = a->digit + group * a->padded * CODES_ROWS + first * WORD;
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int h = 0; h < PARTS; h++) total[r][h] = _mm256_setzero_ps();
    for (int64_t b = 0; b < w->blocks; b++, block += w->block_bytes) {
        const char *codes = block + SCALES;
        for (int64_t p = 0; p < each; p++, at += CODES_ROWS, codes += w->step * bits / 8 * CODES_WIDTH, digit += w->step * CODES_ROWS) {
            __m256i sum[MOST_ROWS][PARTS];
            avx2_start(rows, zeros, a->start + at, sum);
            avx2_units(bits, rows, units, codes, digit, GROUP_WORD, WORD, sum);
            avx2_scale(rows, block, a->scale + at, sum, total);
        }
        zeros = zeros ? zeros + CODES_WIDTH : NULL;
    }
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int h = 0; h < PARTS; h++) _mm256_storeu_ps(sums + r * apart + 8 * h, total[r][h]);
}

INLINE AVX2 void avx2_integers(int bits, int rows, const struct codes *w, int64_t tile, const int8_t *digit, int32_t *sums, int64_t apart)
{
    __m256i sum[MOST_ROWS][PARTS];
    const char *codes = w->weight + (size_t)tile * w->block_bytes + SCALES;
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int h = 0; h < PARTS; h++) sum[r][h] = _mm256_setzero_si256();
    for (int64_t k = 0; k < w->block; k += 2 * UNIT)
        avx2_units(bits, rows, 2, codes + k * bits / 8 * CODES_WIDTH, digit + k, WORD, w->block, sum);
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int h = 0; h < PARTS; h++)
        _mm256_storeu_si256((__m256i *)(void *)(sums + r * apart + 8 * h), sum[r][h]);
}

static AVX2 void avx2_whole(const struct codes *w, int64_t tile, const int8_t *digit, int rows, int32_t *sums, int64_t apart)
{
    for (int r = 0; r < rows; r += MOST_ROWS)
        FEW_CASES(avx2_integers, rows - r, w, tile, digit + r * w->block, sums + r * apart, apart)
}

static AVX2 void avx2_dot(const struct codes *w, int64_t tile, const struct codes_rows *a, int64_t group, int rows, float *sums,
                          int64_t apart)
{
    for (int r = 0; r < rows; r += MOST_ROWS)
        FEW_CASES(avx2_rows, rows - r, w, tile, a, group, r, sums + r * apart, apart)
}
#endif

#if NEON
/* ---- ARM ----------------------------------------------------------------------------------------------------------------------------- */
enum { FOUR = 4, EIGHT = CODES_WIDTH / FOUR }; /* columns per register; registers per tile */
#define REGISTERS(rows) ((rows) == 1 ? EIGHT : EIGHT / 2)

/* Word i of the codes of FOUR columns, `bits` of each byte. */
INLINE uint8x16_t neon_word(int bits, int i, const char *codes)
{
    uint8x16_t code = vld1q_u8((const uint8_t *)codes + i * bits / 8 * CODES_WIDTH * WORD);
    int shift = i * bits % 8;
    code = shift == 2 ? vshrq_n_u8(code, 2) : shift == 4 ? vshrq_n_u8(code, 4) : shift == 6 ? vshrq_n_u8(code, 6) : code;
    return shift + bits < 8 ? vandq_u8(code, vdupq_n_u8((uint8_t)((1 << bits) - 1))) : code;
}

/* ---- NEON: products in 16 bits; for codes of fewer than 8 bits, those of a step are added in 16 bits ---- */
#define CODES(name) neon_##name
#define TARGET
#define FLIPS true

INLINE void neon_bytes(int rows, int regs, int64_t units, const char *codes, const int8_t *digit, int64_t each, int64_t row,
                       int32x4_t (*sum)[EIGHT])
{
    int32x4_t part[MOST_ROWS][EIGHT][2];
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int h = 0; h < regs; h++) part[r][h][0] = part[r][h][1] = vdupq_n_s32(0);
    for (int64_t i = 0; i < units * (UNIT / WORD); i++, codes += CODES_WIDTH * WORD, digit += each) {
        int8x16_t digits[MOST_ROWS];
        UNROLL for (int r = 0; r < rows; r++) digits[r] = vreinterpretq_s8_s32(vdupq_n_s32(word_at(digit + r * row)));
        UNROLL for (int h = 0; h < regs; h++)
        {
            int8x16_t code = vreinterpretq_s8_u8(veorq_u8(neon_word(8, 0, codes + h * FOUR * WORD), vdupq_n_u8(0x80)));
            UNROLL for (int r = 0; r < rows; r++)
            {
                part[r][h][0] = vpadalq_s16(part[r][h][0], vmull_s8(vget_low_s8(code), vget_low_s8(digits[r])));
                part[r][h][1] = vpadalq_s16(part[r][h][1], vmull_high_s8(code, digits[r]));
            }
        }
    }
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int h = 0; h < regs; h++)
        sum[r][h] = vaddq_s32(sum[r][h], vpaddq_s32(part[r][h][0], part[r][h][1]));
}

INLINE void neon_few_bits(int bits, int rows, int regs, int64_t units, const char *codes, const int8_t *digit, int64_t each, int64_t row,
                          int32x4_t (*sum)[EIGHT])
{
    int16x8_t part[MOST_ROWS][EIGHT][2];
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int h = 0; h < regs; h++) part[r][h][0] = part[r][h][1] = vdupq_n_s16(0);
    for (int64_t u = 0; u < units; u++, codes += UNIT * bits / 8 * CODES_WIDTH, digit += UNIT / WORD * each)
        UNROLL for (int i = 0; i < UNIT / WORD; i++)
        {
            int8x16_t digits[MOST_ROWS];
            UNROLL for (int r = 0; r < rows; r++) digits[r] = vreinterpretq_s8_s32(vdupq_n_s32(word_at(digit + i * each + r * row)));
            UNROLL for (int h = 0; h < regs; h++)
            {
                int8x16_t code = vreinterpretq_s8_u8(neon_word(bits, i, codes + h * FOUR * WORD));
                UNROLL for (int r = 0; r < rows; r++)
                {
                    part[r][h][0] = vmlal_s8(part[r][h][0], vget_low_s8(code), vget_low_s8(digits[r]));
                    part[r][h][1] = vmlal_high_s8(part[r][h][1], code, digits[r]);
                }
            }
        }
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int h = 0; h < regs; h++)
        sum[r][h] = vaddq_s32(sum[r][h], vpaddq_s32(vpaddlq_s16(part[r][h][0]), vpaddlq_s16(part[r][h][1])));
}

/* units <= 2: sums of 8 products of a 4-bit code and a digit fit 16 bits. */
INLINE void neon_units(int bits, int rows, int regs, int lane, bool grouped, int64_t units, const char *codes, const int8_t *digit,
                       int64_t each, int64_t row, int32x4_t (*sum)[EIGHT])
{
    (void)lane, (void)grouped;
    if (bits == 8)
        neon_bytes(rows, regs, units, codes, digit, each, row, sum);
    else
        neon_few_bits(bits, rows, regs, units, codes, digit, each, row, sum);
}

#include "kern/codes/neon.h"

#if NEON_DOTS
/* ---- with dots of bytes ---- */
/* The digits of a word, in a lane for each row, if rows are grouped; else those of a row, in a lane for each word. `lane`: of the first
 * row, so that no load crosses the end of a group. */
#define DOTS(ATTRIBUTE)                                                                                                              \
    INLINE ATTRIBUTE void CODES(units)(int bits, int rows, int regs, int lane, bool grouped, int64_t units, const char *codes,       \
                                       const int8_t *digit, int64_t each, int64_t row, int32x4_t(*sum)[EIGHT])                       \
    {                                                                                                                                \
        for (int64_t u = 0; u < units; u++, codes += UNIT * bits / 8 * CODES_WIDTH, digit += UNIT / WORD * each) {                   \
            int8x16_t digits[FOUR];                                                                                                  \
            const int loads = grouped ? UNIT / WORD : rows;                                                                          \
            UNROLL for (int d = 0; d < loads; d++) digits[d] = vld1q_s8(grouped ? digit + d * each - lane * WORD : digit + d * row); \
            UNROLL for (int i = 0; i < UNIT / WORD; i++) UNROLL for (int h = 0; h < regs; h++)                                       \
            {                                                                                                                        \
                uint8x16_t code = neon_word(bits, i, codes + h * FOUR * WORD);                                                       \
                UNROLL for (int r = 0; r < rows; r++)                                                                                \
                    sum[r][h] = CODES(lane)(bits, sum[r][h], code, digits[grouped ? i : r], grouped ? lane + r : i);                 \
            }                                                                                                                        \
        }                                                                                                                            \
    }
#define BY_LANE(DOT, sum, code, digits, lane)      \
    ((lane) == 0       ? DOT(sum, code, digits, 0) \
         : (lane) == 1 ? DOT(sum, code, digits, 1) \
         : (lane) == 2 ? DOT(sum, code, digits, 2) \
                       : DOT(sum, code, digits, 3))

#define CODES(name) neon_dot_##name
#define TARGET __attribute__((target("arch=armv8.2-a+dotprod")))
#define FLIPS true

INLINE TARGET int32x4_t neon_dot_lane(int bits, int32x4_t sum, uint8x16_t code, int8x16_t digits, int lane)
{
    int8x16_t x = vreinterpretq_s8_u8(bits == 8 ? veorq_u8(code, vdupq_n_u8(0x80)) : code);
    return BY_LANE(vdotq_laneq_s32, sum, x, digits, lane);
}
DOTS(TARGET)

#include "kern/codes/neon.h"

/* ---- with dots of unsigned by signed bytes ---- */
#define CODES(name) neon_i8mm_##name
#define TARGET __attribute__((target("arch=armv8.2-a+dotprod+i8mm")))
#define FLIPS false

INLINE TARGET int32x4_t neon_i8mm_lane(int bits, int32x4_t sum, uint8x16_t code, int8x16_t digits, int lane)
{
    (void)bits;
    return BY_LANE(vusdotq_laneq_s32, sum, code, digits, lane);
}
DOTS(TARGET)

#include "kern/codes/neon.h"
#endif
#endif

const struct codes_kernel codes_kernels[] = {
#if X86
    {ISA_AVX512_VNNI, true, vnni_dot},
    {ISA_AVX2, false, avx2_dot},
#elif NEON
#if NEON_DOTS
    {ISA_NEON_I8MM, true, neon_i8mm_dot},
    {ISA_NEON_DOT, true, neon_dot_dot},
#endif
    {ISA_NEON, true, neon_dot},
#endif
    {ISA_PLAIN, false, plain_dot},
};

ISA_BEST(codes_best, codes_kernel, codes_kernels)

bool codes_fast(void)
{
    return codes_best()->fast;
}

const struct codes_whole_kernel codes_whole_kernels[] = {
#if X86
    {ISA_AMX, CODES_WHOLE_ROWS, 8, true, codes_amx_whole},
    {ISA_AVX512_VNNI, CODES_ROWS, 0, false, vnni_whole},
    {ISA_AVX2, CODES_ROWS, 0, false, avx2_whole},
#elif NEON
#if NEON_DOTS
    {ISA_NEON_I8MM, CODES_ROWS, 0, false, neon_i8mm_whole},
    {ISA_NEON_DOT, CODES_ROWS, 0, false, neon_dot_whole},
#endif
    {ISA_NEON, CODES_ROWS, 0, false, neon_whole},
#endif
    {ISA_PLAIN, CODES_ROWS, 0, false, plain_whole},
};

const struct codes_whole_kernel *codes_whole_best(const struct codes *w, int64_t rows)
{
    const struct codes_whole_kernel *k = codes_whole_kernels;
    while (!isa_runs(k->isa) || rows < k->least || (k->bytes && w->bits != 8))
        k++;
    return k;
}
