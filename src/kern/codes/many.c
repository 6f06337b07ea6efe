/* many: products of many rows with a weight of few bits in bf16. Rows and weight are rounded to it, and sums are float32. A tile of
 * the weight is decoded once for all rows, a stretch of k at a time, while the one before is multiplied. */
#include "kern/codes/codes.h"
#include "kern/core/core.h"

#include <string.h>

enum {
    STRETCH = 3072,      /* numbers of k, at most */
    MOST_ROOM = 9 << 17, /* bytes of rows that stay in the L2 cache */
    LEAST_ROWS = 128,
    PANELS = 2 * STRETCH * CODES_WIDTH * (int)sizeof(uint16_t)
};

struct many_run {
    const struct codes *w;
    const struct codes_panel_kernel *kernel;
    int64_t m, depth, rows; /* depth: elements of k per row, padded; rows: per block */
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
        narrow_part_best()->place(r->a + i * r->w->k, r->w->k, r->depth,
                                  r->placed + i / CODES_TILE_ROWS * CODES_TILE_ROWS * r->depth + i % CODES_TILE_ROWS * CODES_DEPTH);
}

/* Part number i of tiles lo..hi, a block of k of one of them, with its panel. Empty after the last one. */
static struct codes_part part_at(const struct many_run *r, int64_t i, int64_t lo, int64_t hi, char *scratch)
{
    int64_t numbers = r->w->blocks * r->w->block, stretches = (numbers + STRETCH - 1) / STRETCH;
    struct codes_part p = {.w = r->w, .tile = lo + i / stretches, .from = i % stretches * STRETCH};
    p.n = p.tile < hi ? at_most(numbers - p.from, STRETCH) : 0;
    p.panel = (uint16_t *)(void *)scratch + i % 2 * STRETCH * CODES_WIDTH;
    return p;
}

/* Prefetches the codes of a part: of its whole blocks. */
static void ask_for(const struct codes_part *of, struct codes_panel *p)
{
    const struct codes *w = of->w;
    p->soon = w->weight + (size_t)(of->tile * w->blocks + of->from / w->block) * w->block_bytes;
    p->soon_bytes = of->n / w->block * (int64_t)w->block_bytes;
}

/* A block of rows of a part. `part`: rows of a partial tile. */
static void part_rows(const struct many_run *r, int64_t first, int64_t rows, const struct codes_part *of, struct codes_panel *p,
                      float *part)
{
    int64_t column = of->tile * CODES_WIDTH, count = at_most(r->w->n - column, CODES_WIDTH);
    float *to = r->c + first * r->w->n + column;
    p->rows = rows;
    p->steps = (of->n + CODES_DEPTH - 1) / CODES_DEPTH;
    p->group = CODES_TILE_ROWS * r->depth;
    p->a = r->placed + first * r->depth + of->from * CODES_TILE_ROWS;
    p->panel = of->panel;
    p->sums = count < CODES_WIDTH ? part : to;
    p->apart = count < CODES_WIDTH ? CODES_WIDTH : r->w->n;
    p->more = of->from > 0;
    r->kernel->multiply(p);
    for (int64_t i = 0; i < rows && count < CODES_WIDTH && of->from + of->n == r->w->blocks * r->w->block; i++)
        memcpy(to + i * r->w->n, part + i * CODES_WIDTH, (size_t)count * sizeof *part);
}

/* Tiles lo..hi. While a part is multiplied, the next one is decoded, and the one after that is prefetched. */
static void tile_range(void *data, int thread, int64_t lo, int64_t hi)
{
    const struct many_run *r = data;
    char *scratch = r->scratch + (size_t)thread * r->each;
    float *part = (float *)(void *)(scratch + PANELS);
    for (int64_t first = 0; first < r->m; first += r->rows) {
        struct codes_part now = part_at(r, 0, lo, hi, scratch), soon;
        struct codes_panel p = {0};
        r->kernel->decode(&now);
        for (int64_t i = 0; now.n > 0; i++, now = p.next) {
            p.next = part_at(r, i + 1, lo, hi, scratch);
            soon = part_at(r, i + 2, lo, hi, scratch);
            ask_for(&soon, &p);
            part_rows(r, first, at_most(r->m - first, r->rows), &now, &p, part);
        }
    }
}

/* Blocks of rows of about equal size. */
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
    r.each = PANELS + kcall_bytes(call, r.rows, CODES_WIDTH * sizeof *c);
    r.placed = kenv_room(call->env, ROOM_B, kcall_bytes(call, groups * CODES_TILE_ROWS, (size_t)r.depth * sizeof *r.placed));
    r.scratch = kenv_room(call->env, ROOM_THREADS, kcall_bytes(call, kenv_threads(call->env), r.each));
    kenv_parallel_for(call->env, m, w->k, place_range, &r);
    kenv_parallel_shares(call->env, tiles, m * CODES_WIDTH * w->k / 256 + 1, tile_range, &r);
}
