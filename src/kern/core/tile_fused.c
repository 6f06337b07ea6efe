/* tile_fused: the product of a tile by multiply-adds, each rounded once, on processors without an instruction for them. It takes many times
 * as long as a product and a sum, and makes --deterministic the same on every processor.
 *
 * The product of two floats is exact in double. Their sum with a float is rounded to odd (Boldo and Melquiond, "Emulation of a FMA and
 * correctly rounded sums", 2008): rounding that to float then gives the same as rounding once. */
#include "kern/core/core.h"

#include <string.h>

/* x + y in double, rounded to odd: an inexact sum whose last bit is 0 moves by one unit towards its exact value. */
INLINE double sum_to_odd(double x, double y)
{
    double sum = x + y, part = sum - x, rest = (x - (sum - part)) + (y - part);
    uint64_t bits;
    memcpy(&bits, &sum, sizeof bits);
    uint64_t even = (bits & 1) ^ 1;
    bits += rest > 0 ? (sum > 0 ? even : 0 - even) : rest < 0 ? (sum > 0 ? 0 - even : even) : 0;
    memcpy(&sum, &bits, sizeof sum);
    return sum;
}

static SIMD void add_products(float a, const float *x, float *sum)
{
    LOOP for (int j = 0; j < TILE; j++) sum[j] = (float)sum_to_odd((double)a * (double)x[j], (double)sum[j]);
}

void tile_fused(int rows, const struct tile *t)
{
    for (int r = 0; r < rows; r++) {
        float sum[TILE] = {0};
        for (int64_t l = 0; l < t->k; l++)
            add_products(t->a[r][l], t->panel + l * TILE, sum);
        LOOP for (int j = 0; j < TILE; j++) t->c[r][j] = t->more ? t->c[r][j] + sum[j] : sum[j];
    }
}
