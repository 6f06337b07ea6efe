/* tiles: a few rows times a matrix that every step reads again. Each result adds its products in the order of k to its old value,
 * independent of other rows. */
#include "kern/recurrent/recurrent.h"

#include <string.h>

/* At most TILE_ROWS rows of a tile, of which c has `count` columns. */
static void some_rows(const float *tile, int64_t k, int64_t count, int rows, const float *const *a, float *const *c, int64_t from)
{
    float part[TILE_ROWS * TILE] = {0};
    struct tile t = {.panel = tile, .k = k, .more = true};
    for (int i = 0; i < rows; i++) {
        t.a[i] = a[i];
        t.c[i] = count < TILE ? part + i * TILE : c[i] + from;
        if (count < TILE)
            memcpy(t.c[i], c[i] + from, (size_t)count * sizeof(float));
    }
    tile_product(rows, &t);
    for (int i = 0; i < rows && count < TILE; i++)
        memcpy(c[i] + from, t.c[i], (size_t)count * sizeof(float));
}

void tiles_product(const struct tiles *w, int64_t m, const float *const *a, float *const *c)
{
    int64_t from = 0;
    for (; m == 1 && from + 2 * TILE <= w->n; from += 2 * TILE)
        tile_pair(&(struct tile){.panel = w->at + from * w->k, .k = w->k, .more = true, .a = {a[0]}, .c = {c[0] + from}}, w->k * TILE);
    for (; from < w->n; from += TILE)
        for (int64_t i = 0; i < m; i += TILE_ROWS) {
            int64_t count = w->n - from < TILE ? w->n - from : TILE;
            some_rows(w->at + from * w->k, w->k, count, (int)(m - i < TILE_ROWS ? m - i : TILE_ROWS), a + i, c + i, from);
        }
}

size_t tiles_bytes(const struct kcall *call, int64_t n, int64_t k)
{
    return kcall_bytes(call, (n + TILE - 1) / TILE * k, TILE * sizeof(float));
}

struct tiles tiles_pack(float *room, int64_t n, int64_t k, const float *w, int64_t row, int64_t column)
{
    for (int64_t from = 0; from < n; from += TILE)
        for (int64_t l = 0; l < k; l++) {
            int64_t count = n - from < TILE ? n - from : TILE;
            float *to = room + from * k + l * TILE;
            for (int64_t j = 0; j < count; j++)
                to[j] = w[l * row + (from + j) * column];
            for (int64_t j = count; j < TILE; j++)
                to[j] = 0;
        }
    return (struct tiles){n, k, room};
}
