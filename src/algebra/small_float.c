/* small_float: floats of 4 and 8 bits: the types of OFP8 (fn: no infinity, one magnitude is NaN; e5m2 as IEEE), the variants without a
 * negative zero (fnuz: the code of -0 is the only NaN), powers of two (e8m0), and e2m1, which has neither infinity nor NaN: NaN becomes -0,
 * as in ml_dtypes. Rounding is to nearest even. */
#include "algebra/algebra.h"

#include <math.h>
#include <string.h>

struct small_float {
    enum dtype dtype;
    int mantissa, bias; /* bits; of the exponent */
    uint8_t max, nan;   /* codes of the largest number and of a NaN */
    uint8_t sign;       /* its bit */
    bool infinite;      /* the code after max is infinity */
    bool unsigned_zero;
};

static const struct small_float rows[] = {
    {DT_F8E4M3FN, 3, 7, 0x7e, 0x7f, 0x80, false, false}, {DT_F8E4M3FNUZ, 3, 8, 0x7f, 0x80, 0x80, false, true},
    {DT_F8E5M2, 2, 15, 0x7b, 0x7e, 0x80, true, false},   {DT_F8E5M2FNUZ, 2, 16, 0x7f, 0x80, 0x80, false, true},
    {DT_F4E2M1, 1, 1, 0x7, 0x8, 0x8, false, false},
};

static const struct small_float *find_row(enum dtype t)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].dtype == t)
            return &rows[i];
    return NULL;
}

static float power_decode(uint8_t code)
{
    return code == 0xff ? NAN : ldexpf(1, code - 127);
}

float small_float_decode(enum dtype t, uint8_t code)
{
    const struct small_float *f = find_row(t);
    if (!f)
        return power_decode(code);
    int magnitude = code & (f->sign - 1), exponent = magnitude >> f->mantissa, rest = magnitude & ((1 << f->mantissa) - 1);
    if (magnitude > f->max || (f->unsigned_zero && code == f->nan))
        return f->infinite && magnitude == f->max + 1 ? (code & f->sign ? -INFINITY : INFINITY) : NAN;
    if (exponent)
        rest += 1 << f->mantissa;
    float x = ldexpf((float)rest, (exponent ? exponent : 1) - f->bias - f->mantissa);
    return code & f->sign ? -x : x;
}

/* The code of a magnitude, which may exceed max. */
static int magnitude_code(const struct small_float *f, float x)
{
    int exponent;
    if (x <= 0)
        return 0;
    (void)frexpf(x, &exponent); /* x = 0.5 .. 1 times 2^exponent */
    exponent = exponent - 1 < 1 - f->bias ? 1 - f->bias : exponent - 1;
    int rest = (int)rintf(ldexpf(x, f->mantissa - exponent));
    return rest + ((exponent + f->bias - 1) << f->mantissa);
}

uint8_t small_float_encode(enum dtype t, float x, bool saturate)
{
    const struct small_float *f = find_row(t);
    if (!f)
        return small_float_power(x, "up");
    if (isnan(x))
        return f->nan;
    int code = isinf(x) || fabsf(x) > 0x1p20f ? f->max + 1 : magnitude_code(f, fabsf(x));
    bool clamps = saturate || t == DT_F4E2M1;
    if (code > f->max && !clamps && !f->infinite)
        return f->nan;
    if (code > f->max)
        code = clamps ? f->max : f->max + 1;
    return signbit(x) && (code || !f->unsigned_zero) ? (uint8_t)(code | f->sign) : (uint8_t)code;
}

/* Drops the sign; saturates at the largest power. */
uint8_t small_float_power(float x, const char *round)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    int exponent = bits >> 23 & 0xff;
    uint32_t rest = bits & 0x7fffff;
    bool up = strcmp(round, "up") == 0 ? rest > 0
                                       : strcmp(round, "nearest") == 0 && (rest > 0x400000 || (rest == 0x400000 && exponent > 0));
    return (uint8_t)(exponent + (up && exponent < 0xfe));
}
