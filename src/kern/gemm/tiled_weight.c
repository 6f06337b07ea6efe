/* tiled_weight: constant weights of f32, f16 and bf16 in tiles, [n / TILE][k][TILE], the last one padded with zeros, so that every product
 * reads memory in order. f16 and bf16 are converted to float32 one block of a tile at a time, in the L1 cache. Sums are float32. */
#include "kern/core/core.h"
#include "kern/gemm/gemm.h"

#include <string.h>

enum { DEPTH = 16 };

/* ---- packing ------------------------------------------------------------------------------------------------------------------------ */

/* From element `row` of k on, in the tile that starts with a column. */
static const void *tile_at(const struct panels *w, int64_t column, int64_t row)
{
    return element_at_const(w->weight, dtype_size(w->dtype), column * w->k + row * TILE);
}

static void unpack_tile(const struct panels *w, int64_t from, int64_t count, float *panel)
{
    (void)count;
    convert_to_f32(w->dtype, tile_at(w, from, 0), w->k * TILE, panel);
}

/* Tile t of a weight. */
static void pack_tile(struct kenv *env, const struct panels *w, const void *from, bool transposed, int64_t t)
{
    size_t size = dtype_size(w->dtype);
    int64_t left = w->n - t * TILE, row = transposed ? 1 : w->n, column = transposed ? w->k : 1;
    struct copy c = {.rank = 2, .size = size, .dim = {w->k, left < TILE ? left : TILE}, .to = {TILE, 1}, .from = {row, column}};
    void *to = (void *)(uintptr_t)tile_at(w, t * TILE, 0);
    if (left < TILE)
        memset(to, 0, (size_t)(w->k * TILE) * size);
    copy_strided(env, &c, to, element_at_const(from, size, t * TILE * column));
}

const struct panels *tiled_weight(struct kcall *call, const struct tensor *weight, int64_t n, int64_t k, bool transposed)
{
    struct panels *w = *call->cache;
    int64_t tiles = (n + TILE - 1) / TILE;
    if (w)
        return w;
    w = *call->cache = kenv_keep(call->env, sizeof *w);
    size_t size = dtype_size(weight->dtype);
    void *room = kenv_weights(call->env, kcall_bytes(call, tiles * k, TILE * size));
    *w = (struct panels){.n = n, .k = k, .width = TILE, .dtype = weight->dtype, .weight = room, .tiled = true};
    w->unpack = size == 2 ? unpack_tile : NULL;
    for (int64_t t = 0; t < tiles; t++)
        pack_tile(call->env, w, weight->data, transposed, t);
    return w;
}

/* ---- products ----------------------------------------------------------------------------------------------------------------------- */
struct tiled_product {
    const struct panels *w;
    int64_t m;
    const float *a;
    float *c;
};

static int64_t at_most(int64_t n, int64_t most)
{
    return n < most ? n : most;
}

/* Prefetches the next block into the L2 cache. */
static void ask_for(const void *stretch, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 64)
        __builtin_prefetch((const char *)stretch + i, 0, 2);
}

/* Elements from.. from + depth of k, for the columns of a tile, as float32. */
static const float *stretch_of(const struct panels *w, int64_t column, int64_t from, int64_t depth, float *room)
{
    const void *at = tile_at(w, column, from);
    if (w->dtype == DT_F32)
        return at;
    convert_to_f32(w->dtype, at, depth * TILE, room);
    return room;
}

/* All rows, for the columns of a tile: takes the time of reading the weight, so it prefetches the weight. */
static void tile_columns(const struct tiled_product *p, int64_t column)
{
    const struct panels *w = p->w;
    float sums[TILE_ROWS * TILE], room[DEPTH * TILE];
    size_t each = TILE * dtype_size(w->dtype), ahead = w->dtype == DT_F32 ? 1024 : 16384;
    for (int64_t l = 0; l < w->k; l += DEPTH) {
        int64_t depth = at_most(w->k - l, DEPTH);
        ask_for((const char *)tile_at(w, column, l) + ahead, (size_t)depth * each);
        struct tile t = {.panel = stretch_of(w, column, l, depth, room), .k = depth, .more = l > 0};
        tile_at_rows(&t, (int)p->m, p->a + l, w->k, sums, TILE);
        tile_product((int)p->m, &t);
    }
    for (int64_t i = 0; i < p->m; i++)
        memcpy(p->c + i * w->n + column, sums + i * TILE, (size_t)at_most(w->n - column, TILE) * sizeof *sums);
}

static void tile_range(void *data, int64_t lo, int64_t hi)
{
    for (int64_t t = lo; t < hi; t++)
        tile_columns(data, t * TILE);
}

void tiled_product(struct kenv *env, const struct panels *w, int64_t m, const float *a, float *c)
{
    struct tiled_product p = {w, m, a, c};
    require(m <= TILE_ROWS);
    kenv_parallel_for(env, (w->n + TILE - 1) / TILE, m * TILE * w->k / 8 + 1, tile_range, &p);
}
