/* small_float: floats of 8 bits. Those of OFP8 (fn: no infinity, one magnitude is NaN; e5m2 as IEEE), the variants without a negative zero
 * (fnuz: what would be -0 is the only NaN), and powers of two (e8m0). Rounding is to nearest even. */
#include "algebra/algebra.h"

#include <math.h>
#include <string.h>

struct small_float {
    enum dtype dtype;
    int mantissa, bias; /* bits; of the exponent */
    uint8_t max, nan;   /* codes of the largest number and of a NaN */
    bool infinite;      /* the code behind max is infinity */
    bool unsigned_zero;
};

static const struct small_float rows[] = {
    {DT_F8E4M3FN, 3, 7, 0x7e, 0x7f, false, false},
    {DT_F8E4M3FNUZ, 3, 8, 0x7f, 0x80, false, true},
    {DT_F8E5M2, 2, 15, 0x7b, 0x7e, true, false},
    {DT_F8E5M2FNUZ, 2, 16, 0x7f, 0x80, false, true},
};

static const struct small_float *find_row(enum dtype t)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].dtype == t)
            return &rows[i];
    return NULL;
}

bool small_float_is(enum dtype t)
{
    return find_row(t) || t == DT_F8E8M0;
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
    int magnitude = code & 0x7f, exponent = magnitude >> f->mantissa, rest = magnitude & ((1 << f->mantissa) - 1);
    if (magnitude > f->max || (f->unsigned_zero && code == f->nan))
        return f->infinite && magnitude == f->max + 1 ? (code & 0x80 ? -INFINITY : INFINITY) : NAN;
    if (exponent)
        rest += 1 << f->mantissa;
    float x = ldexpf((float)rest, (exponent ? exponent : 1) - f->bias - f->mantissa);
    return code & 0x80 ? -x : x;
}

/* The code of a magnitude, which may lie behind max. */
static int magnitude_code(const struct small_float *f, float x)
{
    int exponent;
    if (x <= 0)
        return 0;
    (void)frexpf(x, &exponent); /* x = 0.5 .. 1 times its power */
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
    if (code > f->max && !saturate && !f->infinite)
        return f->nan;
    if (code > f->max)
        code = saturate ? f->max : f->max + 1;
    return signbit(x) && (code || !f->unsigned_zero) ? (uint8_t)(code | 0x80) : (uint8_t)code;
}

/* The sign is lost; the largest power stays one. */
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
