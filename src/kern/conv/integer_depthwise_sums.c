/* integer_depthwise_sums: sums of products of bytes by 16-bit numbers, per channel, for each instruction set. Two taps at a time: on x86
 * their bytes are interleaved and widened, and a pair of products is added. x86 interleaves within 16 bytes, so a register holds 4 channels
 * of each half of a tile; filters are stored in this order, the numbers of two taps next to each other. On other processors they are stored
 * tap by tap. */
#include "kern/conv/integer_conv.h"
#include "kern/core/core.h"
#include "kern/core/intrinsics.h"

#include <string.h>

enum { LANES = BYTES_WIDTH, HALF = LANES / 2, FOUR = 4, PAIR = 2 * LANES /* numbers of a filter */ };

int64_t integer_depthwise_place(int64_t tap, int channel)
{
    if (!X86)
        return tap * LANES + channel;
    return tap / 2 * PAIR + (channel % HALF / FOUR * 2 * FOUR + channel / HALF * FOUR + channel % FOUR) * 2 + tap % 2;
}

/* ---- plain C ------------------------------------------------------------------------------------------------------------------------- */

/* The numbers of a tap in channel order. */
INLINE void plain_filter(const struct depthwise_tile *d, int64_t tap, int16_t *w)
{
    for (int j = 0; j < LANES; j++)
        w[j] = d->w[integer_depthwise_place(tap, j)];
}

static SIMD void plain_place(const struct depthwise_tile *d, int64_t at, int32_t *sums)
{
    int32_t sum[LANES] = {0};
    uint8_t x[LANES] = {0};
    int16_t w[LANES];
    for (int64_t t = 0; t < d->taps; t++) {
        memcpy(x, d->tap[t] + at, d->n == LANES ? LANES : (size_t)d->n);
        plain_filter(d, t, w);
        LOOP for (int j = 0; j < LANES; j++) sum[j] += (uint8_t)(x[j] ^ d->flip) * w[j];
    }
    memcpy(sums, sum, sizeof sum);
}

static void plain_sums(const struct depthwise_tile *d, int32_t *sums)
{
    for (int64_t i = 0; i < d->places; i++)
        plain_place(d, d->from + i * d->step, sums + i * LANES);
}

#if X86
/* ---- shared by AVX2 and AVX-512: 256 bits ------------------------------------------------------------------------------------------- */
#define AVX2 __attribute__((target("avx2")))
#define VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni")))

/* Fewer than LANES channels. */
static AVX2 __m256i avx2_part(const uint8_t *x, int64_t n)
{
    uint64_t part[LANES / 8] = {0};
    for (int64_t i = 0; i < n / 8; i++)
        memcpy(&part[i], x + 8 * i, 8);
    for (int64_t i = n / 8 * 8; i < n; i++)
        part[i / 8] |= (uint64_t)x[i] << i % 8 * 8;
    return _mm256_set_epi64x((int64_t)part[3], (int64_t)part[2], (int64_t)part[1], (int64_t)part[0]);
}

INLINE AVX2 __m256i avx2_load(const uint8_t *x, int64_t n)
{
    return n == LANES ? _mm256_loadu_si256((const __m256i *)(const void *)x) : avx2_part(x, n);
}

INLINE VNNI __m256i vnni_load(const uint8_t *x, int64_t n)
{
    return n == LANES ? _mm256_loadu_si256((const __m256i *)(const void *)x) : _mm256_maskz_loadu_epi8((__mmask32)(1U << n) - 1, x);
}

INLINE AVX2 __m256i avx2_add(__m256i sum, __m256i x, __m256i w)
{
    return _mm256_add_epi32(sum, _mm256_madd_epi16(x, w));
}

INLINE VNNI __m256i vnni_add(__m256i sum, __m256i x, __m256i w)
{
    return _mm256_dpwssd_epi32(sum, x, w);
}

/* The functions of an instruction set. P places at a time share loads of the filter. `whole` and `flips` are compile-time constants. */
#define KERNEL(NAME, TARGET, P)                                                                                                     \
    INLINE TARGET void NAME##_tap(const uint8_t *from, const uint8_t *next, const __m256i *w, int64_t n, bool flips, __m256i *sum)  \
    {                                                                                                                               \
        const __m256i none = _mm256_setzero_si256(), flip = _mm256_set1_epi8((char)0x80);                                           \
        __m256i a = NAME##_load(from, n), b = NAME##_load(next, n);                                                                 \
        __m256i lo = _mm256_unpacklo_epi8(a, b), hi = _mm256_unpackhi_epi8(a, b);                                                   \
        lo = flips ? _mm256_xor_si256(lo, flip) : lo;                                                                               \
        hi = flips ? _mm256_xor_si256(hi, flip) : hi;                                                                               \
        sum[0] = NAME##_add(sum[0], _mm256_unpacklo_epi8(lo, none), w[0]);                                                          \
        sum[1] = NAME##_add(sum[1], _mm256_unpackhi_epi8(lo, none), w[1]);                                                          \
        sum[2] = NAME##_add(sum[2], _mm256_unpacklo_epi8(hi, none), w[2]);                                                          \
        sum[3] = NAME##_add(sum[3], _mm256_unpackhi_epi8(hi, none), w[3]);                                                          \
    }                                                                                                                               \
    INLINE TARGET void NAME##_some(const struct depthwise_tile *d, int64_t at, int places, int32_t *sums, bool whole, bool flips)   \
    {                                                                                                                               \
        const int64_t n = whole ? LANES : d->n, step = d->step;                                                                     \
        const int16_t *w = d->w;                                                                                                    \
        __m256i sum[P][FOUR], by[FOUR];                                                                                             \
        UNROLL for (int p = 0; p < places; p++) UNROLL for (int q = 0; q < FOUR; q++) sum[p][q] = _mm256_setzero_si256();           \
        for (int64_t t = 0; t < d->taps; t += 2, w += PAIR) {                                                                       \
            const uint8_t *a = d->tap[t] + at, *b = d->tap[t + 1] + at;                                                             \
            UNROLL for (int q = 0; q < FOUR; q++) by[q] = _mm256_loadu_si256((const __m256i *)(const void *)(w + q * PAIR / FOUR)); \
            UNROLL for (int p = 0; p < places; p++) NAME##_tap(a + p * step, b + p * step, by, n, flips, sum[p]);                   \
        }                                                                                                                           \
        UNROLL for (int p = 0; p < places; p++) UNROLL for (int q = 0; q < FOUR; q++)                                               \
        {                                                                                                                           \
            int32_t *to = sums + p * LANES + q * FOUR;                                                                              \
            _mm_storeu_si128((__m128i *)(void *)to, _mm256_castsi256_si128(sum[p][q]));                                             \
            _mm_storeu_si128((__m128i *)(void *)(to + HALF), _mm256_extracti128_si256(sum[p][q], 1));                               \
        }                                                                                                                           \
    }                                                                                                                               \
    INLINE TARGET void NAME##_places(const struct depthwise_tile *d, int32_t *sums, bool whole, bool flips)                         \
    {                                                                                                                               \
        int64_t i = 0;                                                                                                              \
        for (; i + P <= d->places; i += P)                                                                                          \
            NAME##_some(d, d->from + i * d->step, P, sums + i * LANES, whole, flips);                                               \
        for (; P > 1 && i < d->places; i++)                                                                                         \
            NAME##_some(d, d->from + i * d->step, 1, sums + i * LANES, whole, flips);                                               \
    }                                                                                                                               \
    static TARGET void NAME##_sums(const struct depthwise_tile *d, int32_t *sums)                                                   \
    {                                                                                                                               \
        switch ((d->n == LANES ? 2 : 0) + (d->flip ? 1 : 0)) {                                                                      \
        case 0: NAME##_places(d, sums, false, false); break;                                                                        \
        case 1: NAME##_places(d, sums, false, true); break;                                                                         \
        case 2: NAME##_places(d, sums, true, false); break;                                                                         \
        default: NAME##_places(d, sums, true, true); break;                                                                         \
        }                                                                                                                           \
    }
KERNEL(vnni, VNNI, 4)
KERNEL(avx2, AVX2, 1)
#elif NEON
/* ---- ARM: 8 channels in a register ------------------------------------------------------------------------------------------------- */
enum { PLACES = 2, EIGHT = 8 }; /* PLACES: processed at a time, sharing loads of the filter */

/* Half a tile's bytes of a place, widened; fewer at its end. */
INLINE void neon_load(const uint8_t *from, int64_t n, bool flips, int16x8_t *x)
{
    uint8_t part[HALF] = {0};
    if (n < HALF)
        from = memcpy(part, from, n > 0 ? (size_t)n : 0);
    uint8x16_t bytes = vld1q_u8(from);
    bytes = flips ? veorq_u8(bytes, vdupq_n_u8(0x80)) : bytes;
    x[0] = vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(bytes)));
    x[1] = vreinterpretq_s16_u16(vmovl_high_u8(bytes));
}

INLINE void neon_some(const struct depthwise_tile *d, int64_t at, int places, int32_t *sums, bool whole, bool flips)
{
    const int64_t n = whole ? LANES : d->n, taps = d->taps, step = d->step;
    const uint8_t *const *tap = d->tap;
    const int16_t *filter = d->w;
    int32x4_t sum[2][PLACES][2][2];
    UNROLL for (int h = 0; h < 2; h++) UNROLL for (int i = 0; i < 4 * places; i++) sum[h][i / 4][i / 2 % 2][i % 2] = vdupq_n_s32(0);
    for (int64_t t = 0; t < taps; t++, tap++, filter += LANES)
        UNROLL for (int h = 0; h < 2; h++)
        {
            int16x8_t w[2] = {vld1q_s16(filter + h * HALF), vld1q_s16(filter + h * HALF + EIGHT)};
            UNROLL for (int p = 0; p < places; p++)
            {
                int16x8_t x[2];
                neon_load(*tap + at + p * step + h * HALF, n - h * HALF, flips, x);
                UNROLL for (int q = 0; q < 2; q++)
                {
                    sum[h][p][q][0] = vmlal_s16(sum[h][p][q][0], vget_low_s16(x[q]), vget_low_s16(w[q]));
                    sum[h][p][q][1] = vmlal_high_s16(sum[h][p][q][1], x[q], w[q]);
                }
            }
        }
    UNROLL for (int p = 0; p < places; p++) UNROLL for (int i = 0; i < 8; i++)
        vst1q_s32(sums + p * LANES + i * FOUR, sum[i / 4][p][i / 2 % 2][i % 2]);
}

INLINE void neon_places(const struct depthwise_tile *d, int32_t *sums, bool whole, bool flips)
{
    int64_t i = 0;
    for (; i + PLACES <= d->places; i += PLACES)
        neon_some(d, d->from + i * d->step, PLACES, sums + i * LANES, whole, flips);
    if (i < d->places)
        neon_some(d, d->from + i * d->step, 1, sums + i * LANES, whole, flips);
}

static void neon_sums(const struct depthwise_tile *d, int32_t *sums)
{
    switch ((d->n == LANES ? 2 : 0) + (d->flip ? 1 : 0)) {
    case 0: neon_places(d, sums, false, false); break;
    case 1: neon_places(d, sums, false, true); break;
    case 2: neon_places(d, sums, true, false); break;
    default: neon_places(d, sums, true, true); break;
    }
}
#endif

const struct depthwise_kernel integer_depthwise_kernels[] = {
#if X86
    {ISA_AVX512_VNNI, vnni_sums},
    {ISA_AVX2, avx2_sums},
#elif NEON
    {ISA_NEON, neon_sums},
#endif
    {ISA_PLAIN, plain_sums},
};

ISA_BEST(integer_depthwise_best, depthwise_kernel, integer_depthwise_kernels)
