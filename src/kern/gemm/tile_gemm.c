/* tile_gemm: a tiled matrix product for processors other than x86, where oneDNN has only plain loops. A block of a tile's columns is packed
 * into a panel in the L1 cache, with which all rows are multiplied. */
#include "kern/core/core.h"
#include "kern/gemm/gemm.h"

#include <omp.h>
#include <string.h>

enum { DEPTH = 256 };

struct product {
    bool ta, tb;
    int64_t m, n, k, lda, ldb, ldc;
    float alpha, beta;
    const float *a, *b;
    float *c;
};

/* panel[depth][TILE]: rows from..from + depth of `count` columns of b, padded with zeros. */
static void pack_panel(const struct product *p, int64_t from, int64_t depth, int64_t column, int64_t count, float *panel)
{
    if (count < TILE)
        memset(panel, 0, (size_t)(depth * TILE) * sizeof *panel);
    if (p->tb)
        transpose_words(count, depth, p->b + column * p->ldb + from, p->ldb, panel, TILE);
    for (int64_t l = 0; l < depth && !p->tb; l++)
        memcpy(panel + l * TILE, p->b + (from + l) * p->ldb + column, (size_t)count * sizeof *panel);
}

/* c = alpha sum + by c */
static void store_row(const float *sum, int64_t count, float alpha, float by, float *c)
{
    if (by < 0 || by > 0)
        for (int64_t j = 0; j < count; j++)
            c[j] = alpha * sum[j] + by * c[j];
    else
        for (int64_t j = 0; j < count; j++)
            c[j] = alpha * sum[j];
}

static void panel_rows(const struct product *p, int64_t from, int64_t depth, int64_t column, int64_t count, const float *panel)
{
    float turned[TILE_ROWS * DEPTH], sums[TILE_ROWS * TILE];
    for (int64_t row = 0; row < p->m; row += TILE_ROWS) {
        int rows = (int)(p->m - row < TILE_ROWS ? p->m - row : TILE_ROWS);
        struct tile t = {.panel = panel, .k = depth};
        if (p->ta)
            transpose_words(depth, rows, p->a + from * p->lda + row, p->lda, turned, DEPTH);
        tile_at_rows(&t, rows, p->ta ? turned : p->a + row * p->lda + from, p->ta ? DEPTH : p->lda, sums, TILE);
        tile_product(rows, &t);
        for (int r = 0; r < rows; r++)
            store_row(sums + r * TILE, count, p->alpha, from ? 1 : p->beta, p->c + (row + r) * p->ldc + column);
    }
}

/* Tiles lo..hi of columns. */
static void product_range(void *data, int64_t lo, int64_t hi)
{
    const struct product *p = data;
    float panel[DEPTH * TILE];
    for (int64_t column = lo * TILE; column < hi * TILE && column < p->n; column += TILE)
        for (int64_t from = 0; from < p->k; from += DEPTH) {
            int64_t depth = p->k - from < DEPTH ? p->k - from : DEPTH, count = p->n - column < TILE ? p->n - column : TILE;
            pack_panel(p, from, depth, column, count, panel);
            panel_rows(p, from, depth, column, count, panel);
        }
}

void tile_gemm(struct kenv *env, bool ta, bool tb, int64_t m, int64_t n, int64_t k, float alpha, const float *a, int64_t lda,
               const float *b, int64_t ldb, float beta, float *c, int64_t ldc)
{
    struct product p = {ta, tb, m, n, k, lda, ldb, ldc, alpha, beta, a, b, c};
    int64_t tiles = (n + TILE - 1) / TILE;
    if (omp_in_parallel())
        product_range(&p, 0, tiles);
    else
        kenv_parallel_for(env, tiles, 2 * m * k, product_range, &p);
}
