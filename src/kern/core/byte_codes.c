/* byte_codes: real numbers as bytes with one scale and one zero point, bit for bit like QuantizeLinear and DequantizeLinear. Whole vectors
 * of AVX-512 or NEON first, if the processor has them, then the rest in plain C. */
#include "kern/core/core.h"
#include "kern/core/intrinsics.h"

#include <math.h>

#if X86
#define AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi")))
#endif

enum { BLOCK = 256 };
/* The largest relative difference between the quotient and a product with 1 / scale: three roundings, with a margin. */
#define OFF 0x1p-22f

struct rounding {
    float scale, inverse, zero, least;
};

/* ---- AVX-512 ------------------------------------------------------------------------------------------------------------------------- */
/* Each returns the number of elements processed. */
#ifdef AVX512
static bool has_vectors(void)
{
    return isa_runs(ISA_AVX512) && __builtin_cpu_supports("avx512vbmi");
}

static AVX512 int64_t decode_vectors(const struct byte_scale *s, const uint8_t *code, int64_t n, float *to)
{
    __m512 scale = _mm512_set1_ps(s->scale), zero = _mm512_set1_ps(s->zero);
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m128i x = _mm_loadu_si128((const __m128i *)(const void *)(code + i));
        __m512 y = _mm512_cvtepi32_ps(s->is_signed ? _mm512_cvtepi8_epi32(x) : _mm512_cvtepu8_epi32(x));
        _mm512_storeu_ps(to + i, _mm512_mul_ps(_mm512_sub_ps(y, zero), scale));
    }
    return i;
}

/* Marks products so near the middle between two integers that the quotients may round differently. */
static inline AVX512 __attribute__((always_inline)) __mmask16 is_unsure(__m512 product, __m512 whole, __m512 off)
{
    __m512 limit = _mm512_fnmadd_ps(_mm512_abs_ps(product), off, _mm512_set1_ps(0.5f));
    return _mm512_cmp_ps_mask(_mm512_abs_ps(_mm512_sub_ps(product, whole)), limit, _CMP_NLT_UQ);
}

static AVX512 int64_t round_vectors(const struct rounding *r, bool divides, const float *x, int64_t n, uint8_t *code, bool *near)
{
    enum { NEAREST = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC };
    __m512 scale = _mm512_set1_ps(r->scale), inverse = _mm512_set1_ps(r->inverse), zero = _mm512_set1_ps(r->zero);
    __m512 least = _mm512_set1_ps(r->least), most = _mm512_set1_ps(r->least + 255), off = _mm512_set1_ps(OFF);
    __mmask16 unsure = 0;
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m512 from = _mm512_loadu_ps(x + i), exact = divides ? _mm512_div_ps(from, scale) : _mm512_mul_ps(from, inverse);
        __m512 whole = _mm512_roundscale_ps(exact, NEAREST), y = _mm512_max_ps(_mm512_add_ps(whole, zero), least);
        unsure |= is_unsure(exact, whole, off);
        _mm_storeu_si128((__m128i *)(void *)(code + i), _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(_mm512_min_ps(y, most))));
    }
    *near = unsure != 0;
    return i;
}

/* 16 numbers at a time; signed and unsigned codes are both read as unsigned. */
struct pair {
    __m512 a_scale, a_zero, b_scale, b_zero, lo, inverse, zero, least, most, off;
    __m128i a_flip, b_flip;
};

static inline AVX512 __attribute__((always_inline)) __m512 decode_16(const uint8_t *code, __m128i flip, __m512 zero, __m512 scale)
{
    __m128i x = _mm_xor_si128(_mm_loadu_si128((const __m128i *)(const void *)code), flip);
    return _mm512_mul_ps(_mm512_sub_ps(_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(x)), zero), scale);
}

static inline AVX512 __attribute__((always_inline)) int64_t pair_vectors(const struct pair *p, enum byte_codes_op op, const uint8_t *a,
                                                                         const uint8_t *b, const float *real, int64_t n, uint8_t *code)
{
    struct pair k = *p;
    __mmask16 unsure = 0;
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m512 x = decode_16(a + i, k.a_flip, k.a_zero, k.a_scale);
        __m512 y = real ? _mm512_loadu_ps(real + i) : decode_16(b + i, k.b_flip, k.b_zero, k.b_scale);
        x = op == BYTE_CODES_ADD ? _mm512_add_ps(x, y) : op == BYTE_CODES_SUB ? _mm512_sub_ps(x, y) : _mm512_mul_ps(x, y);
        x = _mm512_mul_ps(_mm512_max_ps(x, k.lo), k.inverse);
        __m512 whole = _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
        unsure |= is_unsure(x, whole, k.off);
        x = _mm512_min_ps(_mm512_max_ps(_mm512_add_ps(whole, k.zero), k.least), k.most);
        _mm_storeu_si128((__m128i *)(void *)(code + i), _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(x)));
    }
    return unsure ? 0 : i;
}

static AVX512 struct pair pair_of(const struct byte_pair *from)
{
    const struct byte_scale *a = &from->a, *b = &from->b, *y = &from->y;
    return (struct pair){_mm512_set1_ps(a->scale),
                         _mm512_set1_ps(a->zero + (a->is_signed ? 128 : 0)),
                         _mm512_set1_ps(b->scale),
                         _mm512_set1_ps(b->zero + (b->is_signed ? 128 : 0)),
                         _mm512_set1_ps(from->lo),
                         _mm512_set1_ps(1 / y->scale),
                         _mm512_set1_ps(y->zero),
                         _mm512_set1_ps(y->is_signed ? -128 : 0),
                         _mm512_set1_ps(y->is_signed ? 127 : 255),
                         _mm512_set1_ps(OFF),
                         _mm_set1_epi8(a->is_signed ? -128 : 0),
                         _mm_set1_epi8(b->is_signed ? -128 : 0)};
}

static AVX512 int64_t combine_vectors(const struct byte_pair *from, const void *a, const void *b, const float *real, int64_t n, void *code)
{
    struct pair p = pair_of(from);
    switch (from->op) {
#define CASE(OP) \
    case OP: return real ? pair_vectors(&p, OP, a, NULL, real, n, code) : pair_vectors(&p, OP, a, b, NULL, n, code);
        CASE(BYTE_CODES_ADD)
        CASE(BYTE_CODES_SUB)
        CASE(BYTE_CODES_MUL)
    default: return 0;
    }
}

static AVX512 int64_t map_vectors(const uint8_t *code, int64_t n, const uint8_t *table, uint8_t *to)
{
    __m512i t[4];
    int64_t i = 0;
    for (int k = 0; k < 4; k++)
        t[k] = _mm512_loadu_si512(table + k * 64);
    for (; i + 64 <= n; i += 64) {
        __m512i x = _mm512_loadu_si512(code + i), lower = _mm512_permutex2var_epi8(t[0], x, t[1]);
        __m512i upper = _mm512_permutex2var_epi8(t[2], x, t[3]);
        _mm512_storeu_si512(to + i, _mm512_mask_blend_epi8(_mm512_movepi8_mask(x), lower, upper));
    }
    return i;
}

static AVX512 int64_t range_vectors(const float *x, int64_t n, float *lo, float *hi)
{
    enum { MANY = 4, LANES = 16 };
    __m512 least[MANY], most[MANY];
    int64_t i = 0;
    for (int k = 0; k < MANY; k++)
        least[k] = most[k] = _mm512_setzero_ps();
    for (; i + MANY * LANES <= n; i += MANY * LANES)
        _Pragma("GCC unroll 4") for (int k = 0; k < MANY; k++)
        {
            __m512 y = _mm512_loadu_ps(x + i + k * LANES);
            least[k] = _mm512_min_ps(y, least[k]);
            most[k] = _mm512_max_ps(y, most[k]);
        }
    *lo = _mm512_reduce_min_ps(_mm512_min_ps(_mm512_min_ps(least[0], least[1]), _mm512_min_ps(least[2], least[3])));
    *hi = _mm512_reduce_max_ps(_mm512_max_ps(_mm512_max_ps(most[0], most[1]), _mm512_max_ps(most[2], most[3])));
    return i;
}
#elif NEON
/* ---- NEON: 16 codes at a time -------------------------------------------------------------------------------------------------------- */
enum { REGISTERS = 4, FOUR = 4, SIXTEEN = REGISTERS * FOUR };

static bool has_vectors(void)
{
    return isa_runs(ISA_NEON);
}

/* Both kinds of codes are read as unsigned: signed ones are XORed with `flip`, and their zero point is 128 more. */
INLINE void decode_16(const uint8_t *code, uint8_t flip, float zero, float scale, float32x4_t *to)
{
    uint8x16_t x = veorq_u8(vld1q_u8(code), vdupq_n_u8(flip));
    uint16x8_t low = vmovl_u8(vget_low_u8(x)), high = vmovl_high_u8(x);
    uint32x4_t wide[REGISTERS] = {vmovl_u16(vget_low_u16(low)), vmovl_high_u16(low), vmovl_u16(vget_low_u16(high)), vmovl_high_u16(high)};
    UNROLL for (int v = 0; v < REGISTERS; v++) to[v] = vmulq_f32(vsubq_f32(vcvtq_f32_u32(wide[v]), vdupq_n_f32(zero)), vdupq_n_f32(scale));
}

static int64_t decode_vectors(const struct byte_scale *s, const uint8_t *code, int64_t n, float *to)
{
    int64_t i = 0;
    for (; i + SIXTEEN <= n; i += SIXTEEN) {
        float32x4_t x[REGISTERS];
        decode_16(code + i, s->is_signed ? 0x80 : 0, s->zero + (s->is_signed ? 128 : 0), s->scale, x);
        UNROLL for (int v = 0; v < REGISTERS; v++) vst1q_f32(to + i + v * FOUR, x[v]);
    }
    return i;
}

/* Encodes numbers in multiples of the scale. `sure`: no product is so near the middle between two integers that the quotient may round
 * differently. */
INLINE void encode_16(const float32x4_t *x, float zero, float least, uint8_t *code, uint32x4_t *sure)
{
    int32x4_t whole[REGISTERS];
    UNROLL for (int v = 0; v < REGISTERS; v++)
    {
        float32x4_t near = vrndnq_f32(x[v]), y = vaddq_f32(near, vdupq_n_f32(zero));
        *sure = vandq_u32(*sure, vcltq_f32(vabdq_f32(x[v], near), vfmsq_f32(vdupq_n_f32(0.5f), vabsq_f32(x[v]), vdupq_n_f32(OFF))));
        whole[v] = vcvtq_s32_f32(vminnmq_f32(vmaxnmq_f32(y, vdupq_n_f32(least)), vdupq_n_f32(least + 255)));
    }
    int16x8_t low = vuzp1q_s16(vreinterpretq_s16_s32(whole[0]), vreinterpretq_s16_s32(whole[1]));
    int16x8_t high = vuzp1q_s16(vreinterpretq_s16_s32(whole[2]), vreinterpretq_s16_s32(whole[3]));
    vst1q_u8(code, vuzp1q_u8(vreinterpretq_u8_s16(low), vreinterpretq_u8_s16(high)));
}

static int64_t round_vectors(const struct rounding *r, bool divides, const float *x, int64_t n, uint8_t *code, bool *near)
{
    uint32x4_t sure = vdupq_n_u32(UINT32_MAX);
    int64_t i = 0;
    for (; i + SIXTEEN <= n; i += SIXTEEN) {
        float32x4_t exact[REGISTERS];
        UNROLL for (int v = 0; v < REGISTERS; v++)
        {
            float32x4_t from = vld1q_f32(x + i + v * FOUR);
            exact[v] = divides ? vdivq_f32(from, vdupq_n_f32(r->scale)) : vmulq_f32(from, vdupq_n_f32(r->inverse));
        }
        encode_16(exact, r->zero, r->least, code + i, &sure);
    }
    *near = vminvq_u32(sure) == 0;
    return i;
}

INLINE int64_t pair_vectors(const struct byte_pair *p, enum byte_codes_op op, const uint8_t *a, const uint8_t *b, const float *real,
                            int64_t n, uint8_t *code)
{
    const struct byte_scale *s = &p->a, *t = &p->b;
    const float inverse = 1 / p->y.scale, zero = p->y.zero, least = p->y.is_signed ? -128 : 0, lo = p->lo;
    uint32x4_t sure = vdupq_n_u32(UINT32_MAX);
    int64_t i = 0;
    for (; i + SIXTEEN <= n; i += SIXTEEN) {
        float32x4_t x[REGISTERS], y[REGISTERS];
        decode_16(a + i, s->is_signed ? 0x80 : 0, s->zero + (s->is_signed ? 128 : 0), s->scale, x);
        if (!real)
            decode_16(b + i, t->is_signed ? 0x80 : 0, t->zero + (t->is_signed ? 128 : 0), t->scale, y);
        UNROLL for (int v = 0; v < REGISTERS; v++)
        {
            float32x4_t other = real ? vld1q_f32(real + i + v * FOUR) : y[v];
            x[v] = op == BYTE_CODES_ADD ? vaddq_f32(x[v], other) : op == BYTE_CODES_SUB ? vsubq_f32(x[v], other) : vmulq_f32(x[v], other);
            x[v] = vmulq_f32(vmaxnmq_f32(x[v], vdupq_n_f32(lo)), vdupq_n_f32(inverse));
        }
        encode_16(x, zero, least, code + i, &sure);
    }
    return vminvq_u32(sure) ? i : 0;
}

static int64_t combine_vectors(const struct byte_pair *p, const void *a, const void *b, const float *real, int64_t n, void *code)
{
    switch (p->op) {
#define CASE(OP) \
    case OP:     \
        return real ? pair_vectors(p, OP, a, NULL, real, n, code) : pair_vectors(p, OP, a, b, NULL, n, code);
        CASE(BYTE_CODES_ADD)
        CASE(BYTE_CODES_SUB)
        CASE(BYTE_CODES_MUL)
    default: return 0;
    }
}

/* In a table of 64 bytes, an index out of range leaves the lane unchanged. */
static int64_t map_vectors(const uint8_t *code, int64_t n, const uint8_t *table, uint8_t *to)
{
    uint8x16x4_t t[4];
    int64_t i = 0;
    for (int k = 0; k < 4; k++)
        t[k] = vld1q_u8_x4(table + k * 64);
    for (; i + SIXTEEN <= n; i += SIXTEEN) {
        uint8x16_t x = vld1q_u8(code + i), y = vqtbl4q_u8(t[0], x);
        UNROLL for (int k = 1; k < 4; k++) y = vqtbx4q_u8(y, t[k], vsubq_u8(x, vdupq_n_u8((uint8_t)(k * 64))));
        vst1q_u8(to + i, y);
    }
    return i;
}

/* By comparison, because the instruction for minima treats signalling NaNs differently. */
static int64_t range_vectors(const float *x, int64_t n, float *lo, float *hi)
{
    float32x4_t least[REGISTERS], most[REGISTERS];
    int64_t i = 0;
    for (int v = 0; v < REGISTERS; v++)
        least[v] = most[v] = vdupq_n_f32(0);
    for (; i + SIXTEEN <= n; i += SIXTEEN)
        UNROLL for (int v = 0; v < REGISTERS; v++)
        {
            float32x4_t y = vld1q_f32(x + i + v * FOUR);
            least[v] = vbslq_f32(vcltq_f32(y, least[v]), y, least[v]);
            most[v] = vbslq_f32(vcgtq_f32(y, most[v]), y, most[v]);
        }
    *lo = vminvq_f32(vminq_f32(vminq_f32(least[0], least[1]), vminq_f32(least[2], least[3])));
    *hi = vmaxvq_f32(vmaxq_f32(vmaxq_f32(most[0], most[1]), vmaxq_f32(most[2], most[3])));
    return i;
}
#else
static bool has_vectors(void)
{
    return false;
}
#define range_vectors(x, n, lo, hi) 0
#define decode_vectors(s, code, n, to) 0
#define round_vectors(r, divides, x, n, code, near) 0
#define combine_vectors(from, a, b, real, n, code) ((void)(a), (void)(b), (void)(n), (void)(code), 0)
#define map_vectors(code, n, table, to) 0
#endif

/* ---- to real numbers ----------------------------------------------------------------------------------------------------------------- */

static SIMD void decode_unsigned(const uint8_t *code, int64_t n, float scale, float zero, float *to)
{
    LOOP for (int64_t i = 0; i < n; i++) to[i] = ((float)code[i] - zero) * scale;
}

static SIMD void decode_signed(const int8_t *code, int64_t n, float scale, float zero, float *to)
{
    LOOP for (int64_t i = 0; i < n; i++) to[i] = ((float)code[i] - zero) * scale;
}

void byte_codes_decode(const struct byte_scale *s, const void *code, int64_t n, float *to)
{
    int64_t done = has_vectors() ? decode_vectors(s, code, n, to) : 0;
    if (s->is_signed)
        decode_signed((const int8_t *)code + done, n - done, s->scale, s->zero, to + done);
    else
        decode_unsigned((const uint8_t *)code + done, n - done, s->scale, s->zero, to + done);
}

/* ---- to codes ------------------------------------------------------------------------------------------------------------------------ */

/* NaN becomes the least code. */
#define ROUND(quotient)                                 \
    float whole = rintf(quotient), y = whole + r->zero; \
    y = y > r->least ? y : r->least;                    \
    y = y < r->least + 255 ? y : r->least + 255;        \
    code[i] = (uint8_t)(int32_t)y;

/* Whether any number is so near the middle between two codes that the quotient may round differently. */
static SIMD bool round_products(const struct rounding *r, const float *x, int64_t n, uint8_t *code)
{
    int near = 0;
    _Pragma("omp simd reduction(|:near)") for (int64_t i = 0; i < n; i++)
    {
        float product = x[i] * r->inverse;
        ROUND(product)
        near |= !(fabsf(product - whole) < 0.5f - OFF * fabsf(product));
    }
    return near;
}

static SIMD void round_quotients(const struct rounding *r, const float *x, int64_t n, uint8_t *code)
{
    LOOP for (int64_t i = 0; i < n; i++)
    {
        ROUND(x[i] / r->scale)
    }
}

/* divides: divides by the scale, which is exact; otherwise returns whether a number is too near the middle for a product. */
static bool round_block(const struct rounding *r, bool divides, const float *x, int64_t n, uint8_t *code)
{
    bool near = false;
    int64_t done = has_vectors() ? round_vectors(r, divides, x, n, code, &near) : 0;
    if (divides)
        round_quotients(r, x + done, n - done, code + done);
    else
        near |= round_products(r, x + done, n - done, code + done);
    return near;
}

void byte_codes_encode(const struct byte_scale *s, const float *x, int64_t n, void *code)
{
    struct rounding r = {s->scale, 1 / s->scale, s->zero, s->is_signed ? -128 : 0};
    bool divides = !isnormal(r.inverse) || !isnormal(r.scale);
    for (int64_t i = 0; i < n; i += BLOCK) {
        int64_t some = n - i < BLOCK ? n - i : BLOCK;
        uint8_t *to = (uint8_t *)code + i;
        if (divides || round_block(&r, false, x + i, some, to))
            round_block(&r, true, x + i, some, to);
    }
}

void byte_codes_range(const float *x, int64_t n, float *lo, float *hi)
{
    float least = 0, most = 0;
    for (int64_t i = has_vectors() ? range_vectors(x, n, &least, &most) : 0; i < n; i++) {
        least = x[i] < least ? x[i] : least;
        most = x[i] > most ? x[i] : most;
    }
    *lo = least;
    *hi = most;
}

/* Whether the scale is moderate: products with very large or small ones could overflow or vanish. */
static bool is_moderate(const struct byte_scale *s)
{
    return s->scale > 1e-12f && s->scale < 1e12f;
}

int64_t byte_codes_combine(const struct byte_pair *p, const void *a, const void *b, const float *real, int64_t n, void *code)
{
    if (!has_vectors() || !is_moderate(&p->a) || (!real && !is_moderate(&p->b)) || !is_moderate(&p->y))
        return 0;
    return combine_vectors(p, a, b, real, n, code);
}

/* ---- from codes to codes ------------------------------------------------------------------------------------------------------------- */

void byte_codes_map(const uint8_t *code, int64_t n, const uint8_t *table, uint8_t *to)
{
    for (int64_t i = has_vectors() ? map_vectors(code, n, table, to) : 0; i < n; i++)
        to[i] = table[code[i]];
}
