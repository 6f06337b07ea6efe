/* mathf: float32 exp, tanh, erf, sigmoid, softplus, sin and cos that compilers vectorise: no branches, no calls, NaN and infinities right.
 *
 * exp: Cody-Waite reduction by ln 2 and a degree-6 polynomial (Cephes); tanh and erf: minimax polynomials near zero and through exp
 * elsewhere (after N. Juffa). About 1 to 2 ulp. */
#ifndef TPC_KERN_MATHF_H
#define TPC_KERN_MATHF_H

#include "base/half.h"

#include <math.h>

/* 2^n for n in [-126, 127]. */
static inline float mathf_pow2(int32_t n)
{
    return f32_from_bits((uint32_t)(n + 127) << 23);
}

static inline float mathf_exp(float x)
{
    const float magic = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer */
    float low = x < -104.0f ? -104.0f : x, c = low > 89.0f ? 89.0f : low;
    float shifted = c * 1.44269504088896341f + magic, n = shifted - magic;
    int32_t k = (int32_t)(f32_to_bits(shifted) - f32_to_bits(magic)), half = k >> 1;
    float r = c - n * 0.693359375f - n * -2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r + 1.0f;
    return p * mathf_pow2(half) * mathf_pow2(k - half);
}

/* sin(x + quarters * pi / 2) for |x| < 2^20; an arbitrary number otherwise. Reduced by pi / 2 in float64, then Cephes' polynomials. */
static inline float mathf_sin_near(float x, int64_t quarters)
{
    const double magic = 6755399441055744.0; /* 1.5 * 2^52: adding it rounds to an integer */
    double shifted = (double)x * 0.63661977236758134308 + magic, n = shifted - magic;
    float r = (float)((double)x - n * 1.57079632673412561417e+00 - n * 6.07710050650619224932e-11), z = r * r;
    uint64_t q = (f64_to_bits(shifted) + (uint64_t)quarters) & 3;
    float s = ((-1.9515295891e-4f * z + 8.3321608736e-3f) * z - 1.6666654611e-1f) * z * r + r;
    float c = ((2.443315711809948e-5f * z - 1.388731625493765e-3f) * z + 4.166664568298827e-2f) * z * z - 0.5f * z + 1.0f;
    float y = q & 1 ? c : z > 0 ? s : r; /* keeps -0 */
    return q & 2 ? -y : y;
}

#define MATHF_LOG2E 1.44269504088896341f

/* 2^x for -126 <= x <= 127, in fewer operations than mathf_exp; an arbitrary number otherwise. */
static inline float mathf_exp2_near(float x)
{
    const float magic = 12582912.0f;
    float shifted = x + magic, r = x - (shifted - magic);
    float p = 1.535336188e-4f;
    p = p * r + 1.339887440e-3f;
    p = p * r + 9.618437358e-3f;
    p = p * r + 5.550332471e-2f;
    p = p * r + 2.402264791e-1f;
    p = p * r + 6.931472029e-1f;
    p = p * r + 1.0f;
    return p * f32_from_bits((f32_to_bits(shifted) << 23) + 0x3f800000u);
}

static inline float mathf_sigmoid(float x)
{
    return 1.0f / (1.0f + mathf_exp(-x));
}

/* The same in fewer operations, but 0 below 2^-126. */
static inline float mathf_sigmoid_near(float x)
{
    float c = x < -126.0f / MATHF_LOG2E ? 0 : x > 126.0f / MATHF_LOG2E ? 126.0f / MATHF_LOG2E : x;
    float y = 1.0f / (1.0f + mathf_exp2_near(-c * MATHF_LOG2E));
    return x < -126.0f / MATHF_LOG2E ? 0 : y;
}

/* log(1 + x) for 0 <= x <= 1, by the series of 2 atanh(x / (2 + x)). */
static inline float mathf_log1p_unit(float x)
{
    float s = x / (2.0f + x), q = s * s, p = 1.0f / 15;
    p = p * q + 1.0f / 13;
    p = p * q + 1.0f / 11;
    p = p * q + 1.0f / 9;
    p = p * q + 1.0f / 7;
    p = p * q + 1.0f / 5;
    p = p * q + 1.0f / 3;
    return 2.0f * (s + p * q * s);
}

static inline float mathf_softplus(float x)
{
    return (x > 0 ? x : 0.0f) + mathf_log1p_unit(mathf_exp(-fabsf(x)));
}

static inline float mathf_tanh(float x)
{
    float t = fabsf(x), s = x * x;
    float p = 1.57394409e-2f;
    p = p * s - 5.23025580e-2f;
    p = p * s + 1.33152470e-1f;
    p = p * s - 3.33327681e-1f;
    float near = p * s * x + x;
    float far = copysignf(1.0f - 2.0f / (mathf_exp(2.0f * t) + 1.0f), x);
    return t < 0.55f ? near : far;
}

static inline float mathf_erf(float x)
{
    float t = fabsf(x), s = x * x;
    float p = -1.72853470e-5f * t + 3.83197126e-4f, q = -3.88396438e-3f * t + 2.42546219e-2f;
    p = p * s + q;
    p = p * t - 1.06777877e-1f;
    p = p * t - 6.34846687e-1f;
    p = p * t - 1.28717512e-1f;
    p = p * t - t;
    float far = copysignf(1.0f - mathf_exp2_near(p * MATHF_LOG2E), x); /* used where p is above -19 */
    float n = -5.96761703e-4f;
    n = n * s + 4.99119423e-3f;
    n = n * s - 2.67681349e-2f;
    n = n * s + 1.12819925e-1f;
    n = n * s - 3.76125336e-1f;
    n = n * s + 1.28379166e-1f;
    float near = n * x + x;
    return t > 0.921875f ? (t > 4.0f ? copysignf(1.0f, x) : far) : near;
}

#endif
