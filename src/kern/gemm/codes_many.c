/* codes_many: products of many rows with a weight of few bits in bf16. Rows and weight are rounded to it, and sums are float32. A tile of
 * the weight is decoded once for all rows, a stretch of k at a time: it stays in the first level of cache while rows come by. */
#include "kern/core/core.h"
#include "kern/gemm/gemm.h"

#include <string.h>

enum {
    STRETCH = 1024,      /* numbers of k, at most */
    MOST_ROOM = 9 << 17, /* bytes of rows that stay in the second level of cache */
    LEAST_ROWS = 128
};

struct many_run {
    const struct codes *w;
    const struct codes_panel_kernel *kernel;
    int64_t m, depth, rows; /* depth: numbers of k of a row, padded; rows: of a block */
    const float *a;
    uint16_t *placed; /* [groups][depth / CODES_DEPTH][CODES_TILE_ROWS][CODES_DEPTH] */
    float *c;
    char *scratch;
    size_t each;
};

static int64_t at_most(int64_t n, int64_t most)
{
    return n < most ? n : most;
}

/* Rows lo..hi. */
static void place_range(void *data, int64_t lo, int64_t hi)
{
    const struct many_run *r = data;
    for (int64_t i = lo; i < hi; i++)
        r->kernel->place(r->a + i * r->w->k, r->w->k, r->depth,
                         r->placed + i / CODES_TILE_ROWS * CODES_TILE_ROWS * r->depth + i % CODES_TILE_ROWS * CODES_DEPTH);
}

/* Bytes of the codes of a stretch. */
static int64_t stretch_bytes(const struct codes *w, int64_t n)
{
    return n / w->block * (int64_t)w->block_bytes;
}

/* A block of rows of a tile. */
static void tile_rows(const struct many_run *r, int64_t tile, int64_t first, int64_t rows, char *scratch)
{
    const struct codes *w = r->w;
    int64_t numbers = w->blocks * w->block, column = tile * CODES_WIDTH, count = at_most(w->n - column, CODES_WIDTH);
    uint16_t *panel = (uint16_t *)(void *)scratch;
    float *part = (float *)(void *)(scratch + STRETCH * CODES_WIDTH * sizeof *panel), *to = r->c + first * w->n + column;
    struct codes_panel p = {.rows = rows,
                            .group = CODES_TILE_ROWS * r->depth,
                            .panel = panel,
                            .sums = count < CODES_WIDTH ? part : to,
                            .apart = count < CODES_WIDTH ? CODES_WIDTH : w->n};
    for (int64_t k = 0; k < numbers; k += STRETCH) {
        int64_t n = at_most(numbers - k, STRETCH);
        r->kernel->decode(w, tile, k, n, panel);
        p.steps = (n + CODES_DEPTH - 1) / CODES_DEPTH;
        p.a = r->placed + first * r->depth + k * CODES_TILE_ROWS;
        p.more = k > 0;
        p.next = w->weight + (size_t)((tile + 1) * w->blocks) * w->block_bytes + stretch_bytes(w, k);
        p.next_bytes = stretch_bytes(w, n);
        r->kernel->multiply(&p);
    }
    for (int64_t i = 0; i < rows && count < CODES_WIDTH; i++)
        memcpy(to + i * w->n, part + i * CODES_WIDTH, (size_t)count * sizeof *part);
}

/* Tiles lo..hi. */
static void tile_range(void *data, int thread, int64_t lo, int64_t hi)
{
    const struct many_run *r = data;
    for (int64_t i = 0; i < r->m; i += r->rows)
        for (int64_t t = lo; t < hi; t++)
            tile_rows(r, t, i, at_most(r->m - i, r->rows), r->scratch + (size_t)thread * r->each);
}

/* Blocks of rows, all about as large. */
static int64_t block_rows(int64_t m, int64_t depth)
{
    const int64_t unit = 2 * CODES_TILE_ROWS;
    int64_t most = MOST_ROOM / (depth * (int64_t)sizeof(uint16_t));
    most = most < LEAST_ROWS ? LEAST_ROWS : most;
    int64_t blocks = (m + most - 1) / most, rows = (m + blocks - 1) / blocks;
    return (rows + unit - 1) / unit * unit;
}

bool codes_many_pays(int64_t m)
{
    return m >= codes_panel_best()->least;
}

void codes_many(struct kcall *call, const struct codes_panel_kernel *kernel, const struct codes *w, int64_t m, const float *a, float *c)
{
    struct many_run r = {.w = w, .kernel = kernel, .m = m, .a = a, .c = c};
    int64_t groups = (m + CODES_TILE_ROWS - 1) / CODES_TILE_ROWS, tiles = (w->n + CODES_WIDTH - 1) / CODES_WIDTH;
    r.depth = (w->blocks * w->block + CODES_DEPTH - 1) / CODES_DEPTH * CODES_DEPTH;
    r.rows = block_rows(m, r.depth);
    r.each = STRETCH * CODES_WIDTH * sizeof *r.placed + kcall_bytes(call, r.rows, CODES_WIDTH * sizeof *c);
    r.placed = kenv_room(call->env, ROOM_B, kcall_bytes(call, groups * CODES_TILE_ROWS, (size_t)r.depth * sizeof *r.placed));
    r.scratch = kenv_room(call->env, ROOM_THREADS, kcall_bytes(call, kenv_threads(call->env), r.each));
    kenv_parallel_for(call->env, m, w->k, place_range, &r);
    kenv_parallel_shares(call->env, tiles, m * CODES_WIDTH * w->k / 256 + 1, tile_range, &r);
}
