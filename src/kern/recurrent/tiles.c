/* tiles: a few rows times a matrix that every step reads again. A tile is as many columns as registers hold sums of, and is read in order.
 *
 * Each number is the sum of its products in the order of k, whatever the rows beside it. */
#include "kern/recurrent/recurrent.h"

#include <string.h>

enum { LANES = 16, HALF = TILE_WIDTH / 2, BLOCK = 4 };
typedef float lanes __attribute__((vector_size(LANES * sizeof(float)), aligned(4), may_alias));
#define LANES_AT(p) (*(lanes *)(void *)(p))
#define WEIGHTS_AT(p) (*(const lanes *)(const void *)(p))

static SIMD void one_row(const float *tile, int64_t k, const float *a, float *c)
{
    lanes s0 = LANES_AT(c), s1 = LANES_AT(c + LANES), s2 = LANES_AT(c + 2 * LANES), s3 = LANES_AT(c + 3 * LANES);
    for (int64_t l = 0; l < k; l++, tile += TILE_WIDTH) {
        s0 += a[l] * WEIGHTS_AT(tile);
        s1 += a[l] * WEIGHTS_AT(tile + LANES);
        s2 += a[l] * WEIGHTS_AT(tile + 2 * LANES);
        s3 += a[l] * WEIGHTS_AT(tile + 3 * LANES);
    }
    LANES_AT(c) = s0;
    LANES_AT(c + LANES) = s1;
    LANES_AT(c + 2 * LANES) = s2;
    LANES_AT(c + 3 * LANES) = s3;
}

/* Four rows, half of the tile's columns. */
static SIMD void four_rows(const float *tile, int64_t k, const float *const *a, float *const *c)
{
    const float *a0 = a[0], *a1 = a[1], *a2 = a[2], *a3 = a[3];
    lanes s0 = LANES_AT(c[0]), s1 = LANES_AT(c[1]), s2 = LANES_AT(c[2]), s3 = LANES_AT(c[3]);
    lanes t0 = LANES_AT(c[0] + LANES), t1 = LANES_AT(c[1] + LANES), t2 = LANES_AT(c[2] + LANES), t3 = LANES_AT(c[3] + LANES);
    for (int64_t l = 0; l < k; l++, tile += TILE_WIDTH) {
        lanes x = WEIGHTS_AT(tile), y = WEIGHTS_AT(tile + LANES);
        s0 += a0[l] * x;
        t0 += a0[l] * y;
        s1 += a1[l] * x;
        t1 += a1[l] * y;
        s2 += a2[l] * x;
        t2 += a2[l] * y;
        s3 += a3[l] * x;
        t3 += a3[l] * y;
    }
    LANES_AT(c[0]) = s0;
    LANES_AT(c[1]) = s1;
    LANES_AT(c[2]) = s2;
    LANES_AT(c[3]) = s3;
    LANES_AT(c[0] + LANES) = t0;
    LANES_AT(c[1] + LANES) = t1;
    LANES_AT(c[2] + LANES) = t2;
    LANES_AT(c[3] + LANES) = t3;
}

/* Rows of a whole tile. */
static void tile_rows(const float *tile, int64_t k, int64_t m, const float *const *a, float *const *c)
{
    int64_t i = 0;
    for (; i + BLOCK <= m; i += BLOCK) {
        float *half[BLOCK] = {c[i] + HALF, c[i + 1] + HALF, c[i + 2] + HALF, c[i + 3] + HALF};
        four_rows(tile, k, a + i, c + i);
        four_rows(tile + HALF, k, a + i, half);
    }
    for (; i < m; i++)
        one_row(tile, k, a[i], c[i]);
}

/* The columns of a last tile, which c has not all of. */
static void last_tile(const float *tile, int64_t k, int64_t count, int64_t m, const float *const *a, float *const *c)
{
    float part[BLOCK][TILE_WIDTH] = {{0}};
    float *to[BLOCK] = {part[0], part[1], part[2], part[3]};
    for (int64_t i = 0; i < m; i += BLOCK) {
        int64_t rows = m - i < BLOCK ? m - i : BLOCK;
        for (int64_t j = 0; j < rows; j++)
            memcpy(part[j], c[i + j], (size_t)count * sizeof(float));
        tile_rows(tile, k, rows, a + i, to);
        for (int64_t j = 0; j < rows; j++)
            memcpy(c[i + j], part[j], (size_t)count * sizeof(float));
    }
}

enum { ROWS_AT_ONCE = 32 };

void tiles_product(const struct tiles *w, int64_t m, const float *const *a, float *const *c)
{
    float *to[ROWS_AT_ONCE];
    for (int64_t from = 0; from < w->n; from += TILE_WIDTH)
        for (int64_t i = 0; i < m; i += ROWS_AT_ONCE) {
            int64_t rows = m - i < ROWS_AT_ONCE ? m - i : ROWS_AT_ONCE, left = w->n - from;
            for (int64_t j = 0; j < rows; j++)
                to[j] = c[i + j] + from;
            if (left >= TILE_WIDTH)
                tile_rows(w->at + from * w->k, w->k, rows, a + i, to);
            else
                last_tile(w->at + from * w->k, w->k, left, rows, a + i, to);
        }
}

size_t tiles_bytes(const struct kcall *call, int64_t n, int64_t k)
{
    return kcall_bytes(call, (n + TILE_WIDTH - 1) / TILE_WIDTH * k, TILE_WIDTH * sizeof(float));
}

struct tiles tiles_pack(float *room, int64_t n, int64_t k, const float *w, int64_t row, int64_t column)
{
    for (int64_t from = 0; from < n; from += TILE_WIDTH)
        for (int64_t l = 0; l < k; l++) {
            int64_t count = n - from < TILE_WIDTH ? n - from : TILE_WIDTH;
            float *to = room + from * k + l * TILE_WIDTH;
            for (int64_t j = 0; j < count; j++)
                to[j] = w[l * row + (from + j) * column];
            for (int64_t j = count; j < TILE_WIDTH; j++)
                to[j] = 0;
        }
    return (struct tiles){n, k, room};
}
