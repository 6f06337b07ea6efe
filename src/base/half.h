/* base/half.h: float32 to and from the two formats of 16 bits: f16 (IEEE 754 binary16) and bf16 (the upper half of a float32). Bit
 * arithmetic without branches, which compilers vectorise; rounding is to nearest even, NaN stays NaN. */
#ifndef TPC_HALF_H
#define TPC_HALF_H

#include <stdint.h>

union float_bits {
    float f;
    uint32_t u;
};

union double_bits {
    double d;
    uint64_t u;
};

static inline float f32_from_bits(uint32_t u)
{
    union float_bits b = {.u = u};
    return b.f;
}
static inline uint32_t f32_to_bits(float f)
{
    union float_bits b = {.f = f};
    return b.u;
}
static inline uint64_t f64_to_bits(double d)
{
    union double_bits b = {.d = d};
    return b.u;
}

static inline float f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, rest = (uint32_t)(h & 0x7fff) << 13;
    float scaled = f32_from_bits(rest) * 0x1p112f;
    return f32_from_bits(sign | (rest >= 0x0f800000u ? rest | 0x7f800000u : f32_to_bits(scaled)));
}

static inline uint16_t f32_to_f16(float f)
{
    uint32_t u = f32_to_bits(f), sign = u & 0x80000000u, a = u ^ sign;
    uint32_t big = a > 0x7f800000u ? 0x7e00u : 0x7c00u;
    uint32_t tiny = f32_to_bits(f32_from_bits(a) + 0.5f) - 0x3f000000u;
    uint32_t normal = (a + 0xc8000fffu + ((a >> 13) & 1)) >> 13;
    uint32_t h = a >= 0x47800000u ? big : a < 0x38800000u ? tiny : normal;
    return (uint16_t)(h | sign >> 16);
}

static inline float bf16_to_f32(uint16_t h)
{
    return f32_from_bits((uint32_t)h << 16);
}

static inline uint16_t f32_to_bf16(float f)
{
    uint32_t u = f32_to_bits(f), rounded = (u + 0x7fff + ((u >> 16) & 1)) >> 16, nan = u >> 16 | 0x40;
    return (uint16_t)((u & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
}

#endif
