/* chunk_gemm: matrix products that are summed chunk by chunk. A tile of a few rows and TILE columns is multiplied in registers, one chunk
 * at a time; sums of chunks that wait for their neighbours are on a stack in the L1 cache. Every element gets the same multiply-adds in the
 * same order, wherever in a tile it is. */
#include "kern/chunk/chunk.h"
#include "kern/core/core.h"

#include <string.h>

enum { ROW_BLOCK = 16 * TILE_ROWS };

static SIMD void add_tile(float *sum, const float *x, int64_t n)
{
    LOOP for (int64_t i = 0; i < n; i++) sum[i] += x[i];
}

static void store_tile(const struct chunk_product *p, const float *tile, int rows, int64_t count, float *c)
{
    for (int r = 0; r < rows; r++)
        memcpy(c + r * p->c_row, tile + r * TILE, (size_t)count * sizeof *c);
}

/* ---- one tile ---------------------------------------------------------------------------------------------------------------- */

static void one_tile(const struct chunk_product *p, int64_t row, int rows, const float *panel, int64_t from, int64_t count)
{
    float slot[TREE_DEPTH][TILE_ROWS * TILE];
    struct chunk_walk w = {.chunks = p->chunks};
    struct chunk_step s;
    const float *a = p->a + row * p->a_row;
    float *c = p->c + row * p->c_row + from;
    if (p->chunks->whole && p->chunks->n == 0)
        store_tile(p, memset(slot[0], 0, sizeof slot[0]), rows, count, c);
    while (chunk_next(&w, &s)) {
        bool more = s.merges > 0;
        struct tile t = {.panel = panel + s.from * TILE, .k = s.count, .more = more, .fused = true};
        tile_at_rows(&t, rows, a + s.from, p->a_row, slot[s.slot - more], TILE);
        tile_product(rows, &t);
        for (int i = 1; i < s.merges; i++)
            add_tile(slot[s.slot - i - 1], slot[s.slot - i], rows * TILE);
        for (int i = 0; i < s.emit; i++, c += p->partial_step)
            store_tile(p, slot[i], rows, count, c);
        if (s.emit)
            chunk_emitted(&w);
    }
}

/* Rows lo..hi of one panel's columns. */
static void some_rows(const struct chunk_product *p, int64_t lo, int64_t hi, const float *panel, int64_t from, int64_t count)
{
    for (int64_t row = lo; row < hi; row += TILE_ROWS)
        one_tile(p, row, (int)(hi - row < TILE_ROWS ? hi - row : TILE_ROWS), panel, from, count);
}

static int64_t panel_count(const struct chunk_product *p, int64_t panel)
{
    int64_t left = p->n - panel * TILE;
    return left < TILE ? left : TILE;
}

void chunk_product_here(const struct chunk_product *p, float *room)
{
    for (int64_t i = 0; i * TILE < p->n; i++) {
        int64_t count = panel_count(p, i);
        some_rows(p, 0, p->m, p->right->panel(p->right, i * TILE, count, room), i * TILE, count);
    }
}

/* ---- shared out -------------------------------------------------------------------------------------------------------------- */
struct tile_blocks {
    const struct chunk_product *p;
    int64_t blocks;
    char *room;
    size_t each;
};

/* Blocks of rows of panels, panel by panel. */
static void shared_range(void *data, int thread, int64_t lo, int64_t hi)
{
    const struct tile_blocks *s = data;
    const struct chunk_product *p = s->p;
    float *room = (float *)(void *)(s->room + (size_t)thread * s->each);
    const float *panel = NULL;
    for (int64_t i = lo; i < hi; i++) {
        int64_t at = i / s->blocks, from = i % s->blocks * ROW_BLOCK, count = panel_count(p, at);
        if (i == lo || from == 0)
            panel = p->right->panel(p->right, at * TILE, count, room);
        some_rows(p, from, p->m - from < ROW_BLOCK ? p->m : from + ROW_BLOCK, panel, at * TILE, count);
    }
}

void chunk_product(struct kcall *call, const struct chunk_product *p)
{
    struct tile_blocks s = {p, (p->m + ROW_BLOCK - 1) / ROW_BLOCK, NULL,
                            (kcall_bytes(call, 2 * p->right->k * TILE, sizeof(float)) + 63) & ~(size_t)63};
    int64_t rows = p->m < ROW_BLOCK ? p->m : ROW_BLOCK;
    s.room = kenv_room(call->env, ROOM_PANELS, kcall_bytes(call, kenv_threads(call->env), s.each));
    kenv_parallel_shares(call->env, (p->n + TILE - 1) / TILE * s.blocks, rows * TILE * p->right->k / 8 + 1, shared_range, &s);
}

/* ---- right operands ---------------------------------------------------------------------------------------------------------- */

/* A few rows at a time, which stay in the L1 cache. */
static SIMD void turn_panel(const float *from, int64_t column, int64_t k, int64_t count, float *to)
{
    memset(to, 0, (size_t)(k * TILE) * sizeof *to);
    for (int64_t first = 0; first < k; first += TILE)
        for (int64_t j = 0; j < count; j++)
            for (int64_t l = first; l < (k - first < TILE ? k : first + TILE); l++)
                to[l * TILE + j] = from[j * column + l];
}

static const float *strided_panel(const struct right *r, int64_t from, int64_t count, float *room)
{
    const float *at = (const float *)r->at + from * r->column;
    if (r->row == 1) {
        turn_panel(at, r->column, r->k, count, room);
        return room;
    }
    for (int64_t l = 0; l < r->k; l++)
        for (int64_t j = 0; j < TILE; j++)
            room[l * TILE + j] = j < count ? at[l * r->row + j * r->column] : 0;
    return room;
}

struct right right_strided(const float *at, int64_t k, int64_t row, int64_t column)
{
    return (struct right){strided_panel, k, at, row, column};
}
