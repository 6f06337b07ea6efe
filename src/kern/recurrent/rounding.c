/* rounding: rounds numbers to 8 bits with one scale and zero point. */
#include "kern/recurrent/recurrent.h"

#include <math.h>
#include <string.h>

static SIMD void widen(int64_t n, const float *x, float *least, float *most)
{
    float lo = *least, hi = *most;
    _Pragma("omp simd reduction(min:lo) reduction(max:hi)") for (int64_t i = 0; i < n; i++)
    {
        lo = x[i] < lo ? x[i] : lo;
        hi = x[i] > hi ? x[i] : hi;
    }
    *least = lo;
    *most = hi;
}

struct rounding rounding_of(int64_t rows, int64_t n, const float *const *x)
{
    float lo = 0, hi = 0;
    for (int64_t i = 0; i < rows; i++)
        widen(n, x[i], &lo, &hi);
    float scale = (hi - lo) / 255;
    scale = scale > 0 ? scale : 1;
    return (struct rounding){scale, rintf(-lo / scale)};
}

SIMD void rounding_apply(struct rounding r, int64_t n, const float *x, float *to)
{
    LOOP for (int64_t i = 0; i < n; i++)
    {
        float q = rintf(x[i] / r.scale) + r.zero;
        q = q > 0 ? q : 0;
        to[i] = (q < 255 ? q : 255) - r.zero;
    }
}

void rounding_digits(struct rounding r, int64_t n, int64_t width, const float *x, int8_t *to)
{
    byte_codes_encode(&(struct byte_scale){r.scale, r.zero - 128, true}, x, n, to);
    memset(to + n, 0, (size_t)(width - n));
}
