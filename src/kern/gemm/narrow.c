/* narrow: a tiled matrix product of operands rounded to bf16, with float32 sums, for processors other than x86, where oneDNN has none. A is
 * packed once, the columns of a tile one block of k at a time, FOUR elements of pairs of rows and of columns each, as for the instruction
 * that multiplies 2 x 4 by 4 x 2. */
#include "base/half.h"
#include "kern/core/core.h"
#include "kern/core/intrinsics.h"
#include "kern/gemm/gemm.h"

#include <string.h>

enum { DEPTH = 256, FOUR = 4, ROW_PAIRS = TILE_ROWS / 2, PAIRS = TILE / 2, PAIR = 2 * FOUR };

/* ---- kernels ------------------------------------------------------------------------------------------------------------------------- */

static void plain_product(int64_t steps, const uint16_t *a, const uint16_t *panel, float *sums)
{
    memset(sums, 0, TILE_ROWS * TILE * sizeof *sums);
    for (int64_t s = 0; s < steps; s++)
        for (int i = 0; i < TILE_ROWS * TILE * FOUR; i++) {
            int64_t row = s * TILE_ROWS + i / FOUR / TILE, column = s * TILE + i / FOUR % TILE;
            sums[i / FOUR] += bf16_to_f32(a[row * FOUR + i % FOUR]) * bf16_to_f32(panel[column * FOUR + i % FOUR]);
        }
}

static void plain_convert(int64_t n, const float *from, int64_t apart, uint16_t *to)
{
    for (int64_t i = 0; i < n; i++)
        to[i / FOUR * apart + i % FOUR] = f32_to_bf16(from[i]);
}

#if NEON_DOTS
#define BF16 __attribute__((target("arch=armv8.2-a+bf16")))

/* Half the columns: all sums are in registers. */
INLINE BF16 void neon_half(int64_t steps, const uint16_t *a, const uint16_t *panel, float *sums)
{
    float32x4_t sum[ROW_PAIRS][PAIRS / 2];
    UNROLL for (int p = 0; p < ROW_PAIRS; p++) UNROLL for (int c = 0; c < PAIRS / 2; c++) sum[p][c] = vdupq_n_f32(0);
    for (int64_t s = 0; s < steps; s++, a += TILE_ROWS * FOUR, panel += TILE * FOUR) {
        bfloat16x8_t x[ROW_PAIRS];
        UNROLL for (int p = 0; p < ROW_PAIRS; p++) x[p] = vreinterpretq_bf16_u16(vld1q_u16(a + p * PAIR));
        UNROLL for (int c = 0; c < PAIRS / 2; c++)
        {
            bfloat16x8_t y = vreinterpretq_bf16_u16(vld1q_u16(panel + c * PAIR));
            UNROLL for (int p = 0; p < ROW_PAIRS; p++) sum[p][c] = vbfmmlaq_f32(sum[p][c], x[p], y);
        }
    }
    UNROLL for (int p = 0; p < ROW_PAIRS; p++) UNROLL for (int c = 0; c < PAIRS / 2; c += 2)
    {
        float64x2_t one = vreinterpretq_f64_f32(sum[p][c]), other = vreinterpretq_f64_f32(sum[p][c + 1]);
        vst1q_f32(sums + 2 * p * TILE + 2 * c, vreinterpretq_f32_f64(vuzp1q_f64(one, other)));
        vst1q_f32(sums + (2 * p + 1) * TILE + 2 * c, vreinterpretq_f32_f64(vuzp2q_f64(one, other)));
    }
}

static BF16 void neon_product(int64_t steps, const uint16_t *a, const uint16_t *panel, float *sums)
{
    neon_half(steps, a, panel, sums);
    neon_half(steps, a, panel + PAIRS / 2 * PAIR, sums + TILE / 2);
}

static BF16 void neon_convert(int64_t n, const float *from, int64_t apart, uint16_t *to)
{
    int64_t i = 0;
    for (; i + FOUR <= n; i += FOUR, to += apart)
        vst1_u16(to, vreinterpret_u16_bf16(vcvt_bf16_f32(vld1q_f32(from + i))));
    plain_convert(n - i, from + i, apart, to);
}
#endif

const struct narrow_kernel narrow_kernels[] = {
#if NEON_DOTS
    {ISA_NEON_BF16, neon_product, neon_convert},
#endif
    {ISA_PLAIN, plain_product, plain_convert},
};

ISA_BEST(narrow_best, narrow_kernel, narrow_kernels)

bool narrow_fast(void)
{
    return narrow_best()->isa != ISA_PLAIN;
}

/* ---- packing ------------------------------------------------------------------------------------------------------------------------- */
struct narrow {
    const struct narrow_kernel *kernel;
    bool ta, tb;
    int64_t m, n, k, padded; /* padded: k, to multiples of FOUR */
    const float *a, *b;
    uint16_t *rows; /* [groups of TILE_ROWS][padded / FOUR][TILE_ROWS][FOUR] */
    float *c;
};

static int64_t at_most(int64_t n, int64_t most)
{
    return n < most ? n : most;
}

/* to[(depth + 3) / FOUR][side][FOUR]: lines first.. first + count of x, elements from.. from + depth of each; missing ones are 0. Lines are
 * rows of x[lines][length], or columns of x[length][lines]. */
static void pack_lines(const struct narrow *t, bool rows, int64_t lines, int64_t length, const float *x, int64_t first, int64_t from,
                       int64_t depth, int64_t side, uint16_t *to)
{
    float turned[TILE * DEPTH];
    int64_t count = at_most(lines - first, side), row = rows ? length : DEPTH;
    const float *line = rows ? x + first * length + from : turned;
    if (!rows)
        transpose_words(depth, count, x + from * lines + first, lines, turned, DEPTH);
    memset(to, 0, (size_t)((depth + FOUR - 1) / FOUR * side * FOUR) * sizeof *to);
    for (int64_t j = 0; j < count; j++)
        t->kernel->convert(depth, line + j * row, side * FOUR, to + j * FOUR);
}

/* Groups lo..hi of rows. */
static void pack_range(void *data, int64_t lo, int64_t hi)
{
    const struct narrow *t = data;
    for (int64_t g = lo; g < hi; g++)
        for (int64_t from = 0; from < t->k; from += DEPTH)
            pack_lines(t, !t->ta, t->m, t->k, t->a, g * TILE_ROWS, from, at_most(t->k - from, DEPTH), TILE_ROWS,
                       t->rows + (g * t->padded + from) * TILE_ROWS);
}

/* ---- the product --------------------------------------------------------------------------------------------------------------------- */

/* A block of k of all rows, for the columns of a tile. */
static void panel_rows(const struct narrow *t, int64_t column, int64_t from, int64_t depth, const uint16_t *panel)
{
    float sums[TILE_ROWS * TILE];
    for (int64_t row = 0; row < t->m; row += TILE_ROWS) {
        t->kernel->product((depth + FOUR - 1) / FOUR, t->rows + (row / TILE_ROWS * t->padded + from) * TILE_ROWS, panel, sums);
        for (int64_t r = 0; r < at_most(t->m - row, TILE_ROWS); r++) {
            float *c = t->c + (row + r) * t->n + column;
            for (int64_t j = 0; j < at_most(t->n - column, TILE); j++)
                c[j] = from ? c[j] + sums[r * TILE + j] : sums[r * TILE + j];
        }
    }
}

/* Tiles lo..hi of columns. */
static void product_range(void *data, int64_t lo, int64_t hi)
{
    const struct narrow *t = data;
    uint16_t panel[TILE * DEPTH];
    for (int64_t tile = lo; tile < hi; tile++)
        for (int64_t from = 0; from < t->k; from += DEPTH) {
            int64_t depth = at_most(t->k - from, DEPTH);
            pack_lines(t, t->tb, t->n, t->k, t->b, tile * TILE, from, depth, TILE, panel);
            panel_rows(t, tile * TILE, from, depth, panel);
        }
}

void narrow_gemm(struct kenv *env, const struct narrow_kernel *kernel, bool ta, bool tb, int64_t m, int64_t n, int64_t k, const float *a,
                 const float *b, float *c)
{
    struct narrow t = {kernel, ta, tb, m, n, k, (k + FOUR - 1) / FOUR * FOUR, a, b, NULL, c};
    int64_t groups = (m + TILE_ROWS - 1) / TILE_ROWS;
    t.rows = kenv_room(env, ROOM_NARROW, (size_t)(groups * TILE_ROWS * t.padded) * sizeof *t.rows);
    kenv_parallel_for(env, groups, 4 * k * TILE_ROWS, pack_range, &t);
    kenv_parallel_for(env, (n + TILE - 1) / TILE, m * TILE * k / 4 + 1, product_range, &t);
}
