/* tile: a few rows times a tile of a matrix, with sums in registers, for each instruction set. Every result sums its products in the order
 * of k, by multiply-adds if the processor has them, independent of its position in a tile and of other rows.
 *
 * Other files are compiled without contraction to multiply-adds, because vectors and their remainders would be contracted differently. Here
 * every product is added to exactly one sum, so contraction is safe. */
#if defined(__clang__)
#pragma clang fp contract(fast)
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=fast", "expensive-optimizations") /* also at -O1 */
#endif
#include "kern/core/core.h"

#include <string.h>

#define ALL(ROWS, VECTORS) UNROLL for (int r = 0; r < (ROWS); r++) UNROLL for (int v = 0; v < (VECTORS); v++)

/* NAME_product, with vectors of LANES numbers: one or two rows use FEW vectors at a time, more rows two, so that all sums are in
 * registers. */
#define TILE_PRODUCT(NAME, TARGET, LANES, FEW)                                                      \
    typedef float NAME##_lanes __attribute__((vector_size(LANES * sizeof(float))));                 \
    INLINE TARGET void NAME##_part(int rows, int vectors, const struct tile *t, int from)           \
    {                                                                                               \
        NAME##_lanes sum[TILE_ROWS][4], x[4];                                                       \
        const float *panel = t->panel + from;                                                       \
        ALL(rows, vectors) sum[r][v] = (NAME##_lanes){0};                                           \
        for (int64_t l = 0; l < t->k; l++, panel += TILE) {                                         \
            UNROLL for (int v = 0; v < vectors; v++) memcpy(&x[v], panel + v * LANES, sizeof x[v]); \
            ALL(rows, vectors) sum[r][v] += t->a[r][l] * x[v];                                      \
        }                                                                                           \
        if (t->more)                                                                                \
            ALL(rows, vectors)                                                                      \
            {                                                                                       \
                memcpy(&x[v], t->c[r] + from + v * LANES, sizeof x[v]);                             \
                sum[r][v] = x[v] + sum[r][v];                                                       \
            }                                                                                       \
        ALL(rows, vectors) memcpy(t->c[r] + from + v * LANES, &sum[r][v], sizeof x[v]);             \
    }                                                                                               \
    INLINE TARGET void NAME##_all(int rows, int vectors, const struct tile *t)                      \
    {                                                                                               \
        for (int from = 0; from < TILE; from += vectors * LANES)                                    \
            NAME##_part(rows, vectors, t, from);                                                    \
    }                                                                                               \
    static TARGET void NAME##_product(int rows, const struct tile *t)                               \
    {                                                                                               \
        switch (rows) {                                                                             \
        case 1: NAME##_all(1, FEW, t); break;                                                       \
        case 2: NAME##_all(2, FEW, t); break;                                                       \
        case 3: NAME##_all(3, 2, t); break;                                                         \
        case 4: NAME##_all(4, 2, t); break;                                                         \
        case 5: NAME##_all(5, 2, t); break;                                                         \
        case 6: NAME##_all(6, 2, t); break;                                                         \
        default: bug("a tile of %d rows", rows);                                                    \
        }                                                                                           \
    }                                                                                               \
    static TARGET void NAME##_pair(const struct tile *t, int64_t apart)                             \
    {                                                                                               \
        for (int from = 0; from < TILE; from += FEW * LANES) {                                      \
            NAME##_lanes sum[2][FEW], x;                                                            \
            const float *panel = t->panel + from;                                                   \
            ALL(2, FEW) sum[r][v] = (NAME##_lanes){0};                                              \
            for (int64_t l = 0; l < t->k; l++, panel += TILE)                                       \
                ALL(2, FEW)                                                                         \
                {                                                                                   \
                    memcpy(&x, panel + r * apart + v * LANES, sizeof x);                            \
                    sum[r][v] += t->a[0][l] * x;                                                    \
                }                                                                                   \
            ALL(2, FEW)                                                                             \
            {                                                                                       \
                float *c = t->c[0] + r * TILE + from + v * LANES;                                   \
                memcpy(&x, c, sizeof x);                                                            \
                sum[r][v] = t->more ? x + sum[r][v] : sum[r][v];                                    \
                memcpy(c, &sum[r][v], sizeof x);                                                    \
            }                                                                                       \
        }                                                                                           \
    }

TILE_PRODUCT(lanes, , 4, 4)

static void plain_product(int rows, const struct tile *t)
{
#ifdef __FP_FAST_FMAF
    lanes_product(rows, t);
#else
    (t->fused ? tile_fused : lanes_product)(rows, t);
#endif
}

#if X86
TILE_PRODUCT(avx512, __attribute__((target("avx512f"))), 16, 2)

TILE_PRODUCT(avx2, __attribute__((target("avx2,fma"))), 8, 4)
#endif

const struct tile_kernel tile_kernels[] = {
#if X86
    {ISA_AVX512, avx512_product, avx512_pair},
    {ISA_AVX2, avx2_product, avx2_pair},
#endif
    {ISA_PLAIN, plain_product, lanes_pair},
};

ISA_BEST(tile_best, tile_kernel, tile_kernels)

void tile_product(int rows, const struct tile *t)
{
    tile_best()->product(rows, t);
}

void tile_pair(const struct tile *t, int64_t apart)
{
    tile_best()->pair(t, apart);
}
