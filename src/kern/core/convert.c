/* convert: conversion between storage types. Stores to integers saturate from floating point (NaN gives 0) and wrap from integers. */
#include "base/half.h"
#include "kern/core/core.h"
#include "kern/core/intrinsics.h"

#include <math.h>
#include <string.h>

bool dtype_fits_f32(enum dtype t)
{
    return t == DT_F32 || dtype_is_half(t);
}

#define EACH_ELEMENT(name, S, D, convert)                          \
    static SIMD void name(const S *s, int64_t n, D *d)             \
    {                                                              \
        LOOP for (int64_t i = 0; i < n; i++) d[i] = convert(s[i]); \
    }
EACH_ELEMENT(load_f16_plain, uint16_t, float, f16_to_f32)
EACH_ELEMENT(load_bf16, uint16_t, float, bf16_to_f32)
EACH_ELEMENT(store_f16_plain, float, uint16_t, f32_to_f16)
EACH_ELEMENT(store_bf16, float, uint16_t, f32_to_bf16)

#if NEON
static void load_f16(const uint16_t *s, int64_t n, float *d)
{
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        float16x8_t x = vreinterpretq_f16_u16(vld1q_u16(s + i));
        vst1q_f32(d + i, vcvt_f32_f16(vget_low_f16(x)));
        vst1q_f32(d + i + 4, vcvt_high_f32_f16(x));
    }
    load_f16_plain(s + i, n - i, d + i);
}

/* The instruction keeps a NaN's payload; f32_to_f16 makes one NaN of all. */
INLINE float32x4_t one_nan(float32x4_t x)
{
    uint32x4_t bits = vreinterpretq_u32_f32(x), nan = vorrq_u32(vandq_u32(bits, vdupq_n_u32(1U << 31)), vdupq_n_u32(0x7fc00000));
    return vreinterpretq_f32_u32(vbslq_u32(vceqq_f32(x, x), bits, nan));
}

static void store_f16(const float *s, int64_t n, uint16_t *d)
{
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        float16x4_t low = vcvt_f16_f32(one_nan(vld1q_f32(s + i)));
        vst1q_u16(d + i, vreinterpretq_u16_f16(vcvt_high_f16_f32(low, one_nan(vld1q_f32(s + i + 4)))));
    }
    store_f16_plain(s + i, n - i, d + i);
}
#else
#define store_f16 store_f16_plain
#if X86
/* With the F16C instruction: a weight in f16 is read at memory speed. */
static __attribute__((target("avx2,f16c"))) void load_f16_f16c(const uint16_t *s, int64_t n, float *d)
{
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(d + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(s + i))));
    load_f16_plain(s + i, n - i, d + i);
}

static void load_f16(const uint16_t *s, int64_t n, float *d)
{
    (isa_runs(ISA_AVX2) ? load_f16_f16c : load_f16_plain)(s, n, d);
}
#else
#define load_f16 load_f16_plain
#endif
#endif

static void load_small(enum dtype t, const uint8_t *s, int64_t n, float *d)
{
    for (int64_t i = 0; i < n; i++)
        d[i] = small_float_decode(t, s[i]);
}

static void store_small(enum dtype t, const float *s, int64_t n, uint8_t *d)
{
    for (int64_t i = 0; i < n; i++)
        d[i] = small_float_encode(t, s[i], true);
}

void convert_to_f32(enum dtype t, const void *src, int64_t n, float *dst)
{
    if (t == DT_F32)
        memcpy(dst, src, (size_t)n * sizeof *dst);
    else if (t == DT_F16)
        load_f16(src, n, dst);
    else if (t == DT_BF16)
        load_bf16(src, n, dst);
    else if (dtype_is_small_float(t))
        load_small(t, src, n, dst);
    else
        bug("convert_to_f32 of %s", dtype_name(t));
}

void convert_from_f32(enum dtype t, const float *src, int64_t n, void *dst)
{
    if (t == DT_F32)
        memcpy(dst, src, (size_t)n * sizeof *src);
    else if (t == DT_F16)
        store_f16(src, n, dst);
    else if (t == DT_BF16)
        store_bf16(src, n, dst);
    else if (dtype_is_small_float(t))
        store_small(t, src, n, dst);
    else
        bug("convert_from_f32 of %s", dtype_name(t));
}

/* ---- through double ---- */
static void small_to_f64(enum dtype t, const void *src, int64_t n, double *dst)
{
    float part[CHUNK];
    for (int64_t i = 0; i < n; i += CHUNK) {
        int64_t m = n - i < CHUNK ? n - i : CHUNK;
        convert_to_f32(t, element_at_const(src, dtype_size(t), i), m, part);
        for (int64_t j = 0; j < m; j++)
            dst[i + j] = (double)part[j];
    }
}

#define STORE_SMALL(T, name)                                                      \
    static void name##_to_small(enum dtype t, const T *src, int64_t n, void *dst) \
    {                                                                             \
        float part[CHUNK];                                                        \
        for (int64_t i = 0; i < n; i += CHUNK) {                                  \
            int64_t m = n - i < CHUNK ? n - i : CHUNK;                            \
            for (int64_t j = 0; j < m; j++)                                       \
                part[j] = (float)src[i + j];                                      \
            convert_from_f32(t, part, m, element_at(dst, dtype_size(t), i));      \
        }                                                                         \
    }
STORE_SMALL(double, f64)
STORE_SMALL(int64_t, i64)

/* Floats that go through f32. */
#define SMALL_FLOAT_CASES(convert) \
    case DT_F32:                   \
    case DT_F16:                   \
    case DT_BF16:                  \
    case DT_F4E2M1:                \
    case DT_F8E4M3FN:              \
    case DT_F8E4M3FNUZ:            \
    case DT_F8E5M2:                \
    case DT_F8E5M2FNUZ:            \
    case DT_F8E8M0: convert; break;

/* Integers of 2 and 4 bits, in a byte each. */
/* clang-format off */
#define FEW_BITS(X, ...)              \
    X(DT_I2, int8_t, i2, __VA_ARGS__) \
    X(DT_U2, uint8_t, u2, __VA_ARGS__) \
    X(DT_I4, int8_t, i4, __VA_ARGS__) \
    X(DT_U4, uint8_t, u4, __VA_ARGS__)
/* clang-format on */

#define LOAD_CASE(dt, T, name, U)            \
    case dt:                                 \
        for (int64_t i = 0; i < n; i++)      \
            dst[i] = (U)((const T *)src)[i]; \
        break;

void convert_to_f64(enum dtype t, const void *src, int64_t n, double *dst)
{
    switch (t) {
        INT_TYPES(LOAD_CASE, double)
        LOAD_CASE(DT_BOOL, uint8_t, bool, double)
        FEW_BITS(LOAD_CASE, double)
        LOAD_CASE(DT_F64, double, f64, double)
        SMALL_FLOAT_CASES(small_to_f64(t, src, n, dst))
    default: bug("convert_to_f64 of %s", dtype_name(t));
    }
}

/* As in ONNX, also from floats: truncated, then wrapped. */
static int64_t truncated(double x)
{
    return x > -0x1p63 && x < 0x1p63 ? (int64_t)x : 0;
}

/* The bounds of T as doubles: lo is exact, hi is one above the largest value, so x >= lo && x < hi converts without overflow. */
#define STORE_CASE(dt, T, name, unused)                                                                \
    case dt: {                                                                                         \
        const bool is_signed = (T)-1 < (T)1;                                                           \
        const int bits = 8 * (int)sizeof(T) - is_signed;                                               \
        const double hi = ldexp(1.0, bits), lo = is_signed ? -hi : 0.0;                                \
        const T top = (T)(UINT64_MAX >> (64 - bits)), bottom = is_signed ? (T)(-(int64_t)(top)-1) : 0; \
        for (int64_t i = 0; i < n; i++) {                                                              \
            double x = src[i];                                                                         \
            ((T *)dst)[i] = x != x ? 0 : x <= lo ? bottom : x >= hi ? top : (T)x;                      \
        }                                                                                              \
        break;                                                                                         \
    }

void convert_from_f64(enum dtype t, const double *src, int64_t n, void *dst)
{
    switch (t) {
        INT_TYPES(STORE_CASE, )
    case DT_F64:
        memcpy(dst, src, (size_t)n * sizeof *src);
        break;
        SMALL_FLOAT_CASES(f64_to_small(t, src, n, dst))
    case DT_BOOL:
        for (int64_t i = 0; i < n; i++)
            ((uint8_t *)dst)[i] = (src[i] < 0.0 || src[i] > 0.0 || src[i] != src[i]) ? 1 : 0;
        break;
    case DT_I2:
    case DT_U2:
    case DT_I4:
    case DT_U4:
        for (int64_t i = 0; i < n; i++)
            ((uint8_t *)dst)[i] = dtype_low_bits(t, truncated(src[i]));
        break;
    default: bug("convert_from_f64 of %s", dtype_name(t));
    }
}
#undef STORE_CASE

/* ---- through int64 ---- */
void convert_to_i64(enum dtype t, const void *src, int64_t n, int64_t *dst)
{
    switch (t) {
        INT_TYPES(LOAD_CASE, int64_t)
        LOAD_CASE(DT_BOOL, uint8_t, bool, int64_t)
        FEW_BITS(LOAD_CASE, int64_t)
    default: bug("convert_to_i64 of %s", dtype_name(t));
    }
}
#undef LOAD_CASE

#define STORE_CASE(dt, T, name, unused) \
    case dt:                            \
        for (int64_t i = 0; i < n; i++) \
            ((T *)dst)[i] = (T)src[i];  \
        break;

void convert_from_i64(enum dtype t, const int64_t *src, int64_t n, void *dst)
{
    switch (t) {
        INT_TYPES(STORE_CASE, )
        STORE_CASE(DT_F64, double, f64, )
        SMALL_FLOAT_CASES(i64_to_small(t, src, n, dst))
    case DT_BOOL:
        for (int64_t i = 0; i < n; i++)
            ((uint8_t *)dst)[i] = src[i] != 0;
        break;
    case DT_I2:
    case DT_U2:
    case DT_I4:
    case DT_U4:
        for (int64_t i = 0; i < n; i++)
            ((uint8_t *)dst)[i] = dtype_low_bits(t, src[i]);
        break;
    default: bug("convert_from_i64 of %s", dtype_name(t));
    }
}

/* ---- integers modulo 2^64 ---- */
void convert_to_u64(enum dtype t, const void *src, int64_t n, uint64_t *dst)
{
    convert_to_i64(t, src, n, (int64_t *)dst);
}

void convert_from_u64(enum dtype t, const uint64_t *src, int64_t n, void *dst)
{
    convert_from_i64(t, (const int64_t *)src, n, dst);
}

/* ---- tensors ---- */
struct tensor_conversion {
    const struct tensor *t;
    float *to;
};

static void convert_range(void *data, int64_t lo, int64_t hi)
{
    struct tensor_conversion *w = data;
    convert_to_f32(w->t->dtype, element_at_const(w->t->data, dtype_size(w->t->dtype), lo), hi - lo, w->to + lo);
}

const float *tensor_f32(struct kenv *env, const struct tensor *t, enum room room)
{
    if (t->dtype == DT_F32)
        return t->data;
    struct tensor dense = *t;
    if (t->room)
        dense.dim[t->axis] = t->room;
    int64_t n = tensor_elements(&dense);
    struct tensor_conversion w = {t, kenv_room(env, room, (size_t)n * sizeof(float))};
    kenv_parallel_for(env, n, 1, convert_range, &w);
    return w.to;
}
