/* narrow_tiles: products of many rows of bf16 with panels of pairs, by tile registers. Two tiles of rows are multiplied with two tiles of
 * columns, so each loaded tile serves two products. Rows are stored tile by tile, [groups of 16 rows][steps][16][32]. The rows of a block,
 * over part of k, stay in the L2 cache; panels follow one another, and the next one is prefetched. */
#include "base/half.h"
#include "kern/core/amx.h"
#include "kern/core/core.h"
#include "kern/core/intrinsics.h"
#include "kern/gemm/gemm.h"

#include <string.h>

enum {
    GROUP = NARROW_TILE_ROWS,
    STEP = NARROW_TILE_DEPTH,
    PAIR = 2,
    BLOCK = 2 * GROUP, /* rows of two tiles */
    PANEL_STEP = STEP * PANEL_COLUMNS,
    MOST_STEPS = 32,      /* per part of k */
    BLOCK_BYTES = 1 << 20 /* of the rows over a part of k: half of the L2 cache of processors with tiles */
};

static int64_t at_most(int64_t n, int64_t most)
{
    return n < most ? n : most;
}

static int64_t parts_of(int64_t n, int64_t part)
{
    return (n + part - 1) / part;
}

/* ---- plain C ------------------------------------------------------------------------------------------------------------------------- */
static float plain_dot(const struct narrow_part *p, int64_t row, int64_t column)
{
    const uint16_t *a = p->a + row / GROUP * p->a_group + row % GROUP * STEP;
    const uint16_t *w = p->panel + column / PANEL_COLUMNS * p->panels_apart + column % PANEL_COLUMNS * PAIR;
    float sum = 0;
    for (int64_t s = 0; s < p->steps; s++, a += GROUP * STEP, w += PANEL_STEP)
        for (int i = 0; i < STEP; i++)
            sum += bf16_to_f32(a[i]) * bf16_to_f32(w[i / PAIR * PANEL_COLUMNS * PAIR + i % PAIR]);
    return sum;
}

static void plain_part(const struct narrow_part *p)
{
    for (int64_t row = 0; row < p->rows; row++)
        for (int64_t column = 0; column < p->columns; column++) {
            float *c = p->c + row * p->c_row + column, start = p->more ? *c : p->bias ? p->bias[column] : 0;
            *c = start + plain_dot(p, row, column);
        }
}

static void plain_place(const float *a, int64_t k, int64_t depth, uint16_t *to)
{
    for (int64_t i = 0; i < depth; i += STEP, to += GROUP * STEP) {
        int64_t left = k > i ? k - i : 0;
        memset(to, 0, STEP * sizeof *to);
        convert_from_f32(DT_BF16, a + i, left < STEP ? left : STEP, to);
    }
}

/* ---- tiles --------------------------------------------------------------------------------------------------------------------------- */
#if X86
enum { LINE = 64, HALF = PANEL_COLUMNS / 2, TILE_COLUMNS = 16, TILE_PAIRS = TILE_COLUMNS * PAIR, PANEL_ROW = PANEL_COLUMNS * PAIR * 2 };

/* Where sums start from and where they are stored: in the result, or in scratch if the tiles extend beyond it. */
struct sums {
    float *at;
    int64_t bytes; /* row stride; 0: all rows are the same */
};

/* What to prefetch: `each` lines with every step. */
struct ahead {
    const char *at;
    int64_t each;
};

INLINE AMX void ask_ahead(struct ahead *ahead)
{
    for (int64_t i = 0; i < ahead->each; i++, ahead->at += LINE)
        _mm_prefetch(ahead->at, _MM_HINT_T1);
}

/* 32 rows and 32 columns. */
static AMX void square(const struct narrow_part *p, const uint16_t *a, const uint16_t *w, const struct sums *from, const struct sums *to,
                       struct ahead *ahead)
{
    const uint16_t *below = a + p->a_group;
    amx_load_sums(true, from->at, (size_t)from->bytes);
    for (int64_t s = 0; s < p->steps; s++, a += GROUP * STEP, below += GROUP * STEP, w += PANEL_STEP) {
        _tile_loadd(4, a, LINE);
        _tile_loadd(6, w, PANEL_ROW);
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(7, w + TILE_PAIRS, PANEL_ROW);
        _tile_dpbf16ps(1, 4, 7);
        _tile_loadd(5, below, LINE);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
        ask_ahead(ahead);
    }
    amx_store_sums(true, to->at, (size_t)to->bytes);
}

/* 16 rows and 64 columns. */
static AMX void line(const struct narrow_part *p, const uint16_t *a, const uint16_t *w, const struct sums *from, const struct sums *to,
                     struct ahead *ahead)
{
    size_t in = (size_t)from->bytes, out = (size_t)to->bytes;
    amx_written(from->at);
    _tile_loadd(0, from->at, in);
    _tile_loadd(1, from->at + TILE_COLUMNS, in);
    _tile_loadd(2, from->at + 2 * TILE_COLUMNS, in);
    _tile_loadd(3, from->at + 3 * TILE_COLUMNS, in);
    for (int64_t s = 0; s < p->steps; s++, a += GROUP * STEP, w += PANEL_STEP) {
        _tile_loadd(4, a, LINE);
        _tile_loadd(5, w, PANEL_ROW);
        _tile_dpbf16ps(0, 4, 5);
        _tile_loadd(6, w + TILE_PAIRS, PANEL_ROW);
        _tile_dpbf16ps(1, 4, 6);
        _tile_loadd(7, w + 2 * TILE_PAIRS, PANEL_ROW);
        _tile_dpbf16ps(2, 4, 7);
        _tile_loadd(5, w + 3 * TILE_PAIRS, PANEL_ROW);
        _tile_dpbf16ps(3, 4, 5);
        ask_ahead(ahead);
    }
    _tile_stored(0, to->at, out);
    _tile_stored(1, to->at + TILE_COLUMNS, out);
    _tile_stored(2, to->at + 2 * TILE_COLUMNS, out);
    _tile_stored(3, to->at + 3 * TILE_COLUMNS, out);
}

static void copy_block(int64_t rows, int64_t columns, const float *from, int64_t from_row, float *to, int64_t to_row)
{
    for (int64_t i = 0; i < rows; i++)
        memcpy(to + i * to_row, from + i * from_row, (size_t)columns * sizeof *to);
}

/* Rows row.. of a panel: 32, or 16 if no more are left. */
static AMX void block(const struct narrow_part *p, int64_t row, float *start, struct ahead *ahead)
{
    float scratch[BLOCK * PANEL_COLUMNS] __attribute__((aligned(LINE)));
    bool pair = p->rows - row > GROUP;
    int64_t height = pair ? BLOCK : GROUP, rows = at_most(p->rows - row, height);
    bool whole = rows == height && p->columns == PANEL_COLUMNS;
    float *c = p->c + row * p->c_row;
    const uint16_t *a = p->a + row / GROUP * p->a_group;
    struct sums to = {whole ? c : scratch, (whole ? p->c_row : PANEL_COLUMNS) * (int64_t)sizeof *c};
    struct sums from = p->more ? to : (struct sums){start, 0};
    if (p->more && !whole)
        copy_block(rows, p->columns, c, p->c_row, scratch, PANEL_COLUMNS);
    if (pair) {
        square(p, a, p->panel, &from, &to, ahead);
        from.at += HALF;
        to.at += HALF;
        square(p, a, p->panel + HALF * PAIR, &from, &to, ahead);
    } else {
        line(p, a, p->panel, &from, &to, ahead);
    }
    if (!whole)
        copy_block(rows, p->columns, scratch, PANEL_COLUMNS, c, p->c_row);
}

/* Cache lines of the next panel to prefetch in every step of this one. */
static int64_t lines_ahead(const struct narrow_part *p)
{
    int64_t passes = p->rows > GROUP ? 2 * parts_of(p->rows, BLOCK) : 1;
    return parts_of(PANEL_STEP * (int64_t)sizeof *p->panel / LINE, passes);
}

static AMX void place_in_tiles(const float *a, int64_t k, int64_t depth, uint16_t *to)
{
    for (int64_t i = 0; i < depth; i += STEP, to += GROUP * STEP) {
        int64_t left = k - i;
        __mmask32 some = left >= STEP ? UINT32_MAX : left > 0 ? (1U << left) - 1 : 0;
        __m512 low = _mm512_maskz_loadu_ps((__mmask16)some, a + i),
               high = _mm512_maskz_loadu_ps((__mmask16)(some >> TILE_COLUMNS), a + i + TILE_COLUMNS);
        _mm512_storeu_si512(to, (__m512i)_mm512_cvtne2ps_pbh(high, low));
    }
}

static AMX void part_in_tiles(const struct narrow_part *p)
{
    float start[PANEL_COLUMNS] __attribute__((aligned(LINE))) = {0};
    amx_begin_sums(BLOCK, AMX_BYTES);
    for (int64_t column = 0; column < p->columns; column += PANEL_COLUMNS) {
        struct narrow_part panel = *p;
        panel.panel = p->panel + column / PANEL_COLUMNS * p->panels_apart;
        struct ahead ahead = {(const char *)(panel.panel + p->panels_apart), column + PANEL_COLUMNS < p->columns ? lines_ahead(p) : 0};
        panel.columns = at_most(p->columns - column, PANEL_COLUMNS);
        panel.c = p->c + column;
        if (p->bias)
            memcpy(start, p->bias + column, (size_t)panel.columns * sizeof *start);
        for (int64_t row = 0; row < p->rows; row += BLOCK)
            block(&panel, row, start, &ahead);
    }
    amx_end();
}
#endif

const struct narrow_part_kernel narrow_part_kernels[] = {
#if X86
    {ISA_AMX, part_in_tiles, place_in_tiles},
#endif
    {ISA_PLAIN, plain_part, plain_place},
};

ISA_BEST(narrow_part_best, narrow_part_kernel, narrow_part_kernels)

bool narrow_tiles_fast(void)
{
    return narrow_part_best()->isa != ISA_PLAIN;
}

/* ---- rows, tile by tile -------------------------------------------------------------------------------------------------------------- */
struct tiled_rows {
    const struct tensor *a; /* [m, k]; [k, m] when transposed */
    int64_t m, k, steps;
    uint16_t *to;
};

/* `depth` elements of row i, from element `from` on, padded with zeros to a whole step. */
static void tile_row(const struct tiled_rows *t, int64_t i, uint16_t *row, int64_t from, int64_t depth)
{
    int64_t whole = parts_of(depth, STEP) * STEP;
    uint16_t *to = t->to + (i / GROUP * t->steps + from / STEP) * GROUP * STEP + i % GROUP * STEP;
    memset(row + depth, 0, (size_t)(whole - depth) * sizeof *row);
    for (int64_t l = 0; l < whole; l += STEP, to += GROUP * STEP)
        memcpy(to, row + l, STEP * sizeof *to);
}

/* Groups lo..hi. */
static void tile_rows(void *data, int64_t lo, int64_t hi)
{
    const struct tiled_rows *t = data;
    uint16_t row[CHUNK];
    for (int64_t i = lo * GROUP; i < at_most(hi * GROUP, t->m); i++) {
        if (t->a->dtype == DT_F32) {
            uint16_t *to = t->to + i / GROUP * t->steps * GROUP * STEP + i % GROUP * STEP;
            narrow_part_best()->place((const float *)t->a->data + i * t->k, t->k, t->steps * STEP, to);
            continue;
        }
        for (int64_t from = 0; from < t->k; from += CHUNK) {
            int64_t depth = at_most(t->k - from, CHUNK);
            narrow_stretch(t->a, i * t->k + from, depth, row);
            tile_row(t, i, row, from, depth);
        }
    }
}

/* Groups lo..hi of columns. */
static void tile_columns(void *data, int64_t lo, int64_t hi)
{
    const struct tiled_rows *t = data;
    uint16_t wide[STEP * GROUP], row[STEP];
    for (int64_t g = lo; g < hi; g++)
        for (int64_t from = 0; from < t->k; from += STEP) {
            int64_t depth = at_most(t->k - from, STEP), count = at_most(t->m - g * GROUP, GROUP);
            for (int64_t l = 0; l < depth; l++)
                narrow_stretch(t->a, (from + l) * t->m + g * GROUP, count, wide + l * GROUP);
            for (int64_t i = 0; i < count; i++) {
                for (int64_t l = 0; l < depth; l++)
                    row[l] = wide[l * GROUP + i];
                tile_row(t, g * GROUP + i, row, from, depth);
            }
        }
}

static const uint16_t *tiled_rows(struct kenv *env, const struct narrow_tiles *p, int64_t steps)
{
    int64_t groups = parts_of(p->m, GROUP);
    size_t bytes = (size_t)(groups * steps * GROUP * STEP) * sizeof(uint16_t);
    struct tiled_rows t = {p->a, p->m, p->k, steps, kenv_room(env, ROOM_NARROW, bytes)};
    if (p->m % GROUP)
        memset(t.to + (groups - 1) * steps * GROUP * STEP, 0, (size_t)(steps * GROUP * STEP) * sizeof *t.to);
    kenv_parallel_for(env, groups, GROUP * p->k, p->transposed ? tile_columns : tile_rows, &t);
    return t.to;
}

/* ---- the product --------------------------------------------------------------------------------------------------------------------- */
struct tiles_run {
    const struct narrow_tiles *p;
    const uint16_t *rows;
    int64_t steps, stretch; /* steps of a row, and of a part of k */
    int64_t panels, height; /* panels of the weight; rows per block */
};

/* Panels lo..hi, rows row.. of a block. */
static void block_panels(const struct tiles_run *r, int64_t row, int64_t lo, int64_t hi)
{
    const struct narrow_tiles *p = r->p;
    int64_t column = lo * PANEL_COLUMNS;
    struct narrow_part part = {.rows = at_most(p->m - row, r->height),
                               .columns = at_most(p->n, hi * PANEL_COLUMNS) - column,
                               .a_group = r->steps * GROUP * STEP,
                               .panels_apart = r->steps * PANEL_STEP,
                               .bias = p->bias ? p->bias + column : NULL,
                               .c = p->c + row * p->n + column,
                               .c_row = p->n};
    for (int64_t from = 0; from < r->steps; from += r->stretch) {
        part.steps = at_most(r->steps - from, r->stretch);
        part.a = r->rows + (row / GROUP * r->steps + from) * GROUP * STEP;
        part.panel = p->w + (lo * r->steps + from) * PANEL_STEP;
        part.more = from > 0;
        narrow_part_best()->product(&part);
    }
}

/* Blocks of rows, panel by panel: items lo..hi. */
static void product_range(void *data, int64_t lo, int64_t hi)
{
    const struct tiles_run *r = data;
    while (lo < hi) {
        int64_t block = lo / r->panels, end = at_most(hi, (block + 1) * r->panels);
        block_panels(r, block * r->height, lo % r->panels, end - block * r->panels);
        lo = end;
    }
}

/* Rows per block: as even as possible, and so few that every thread has a block. */
static int64_t block_height(const struct kenv *env, const struct tiles_run *r)
{
    int64_t m = r->p->m, most = BLOCK_BYTES / (r->stretch * STEP * (int64_t)sizeof(uint16_t)), blocks = parts_of(m, most);
    while (blocks * r->panels < kenv_threads(env) && blocks * BLOCK < m)
        blocks++;
    return parts_of(parts_of(m, blocks), BLOCK) * BLOCK;
}

void narrow_tiles_product(struct kenv *env, const struct narrow_tiles *p)
{
    int64_t steps = parts_of(p->k, STEP), stretch = parts_of(steps, parts_of(steps, MOST_STEPS));
    struct tiles_run r = {p, tiled_rows(env, p, steps), steps, stretch, parts_of(p->n, PANEL_COLUMNS), 0};
    r.height = block_height(env, &r);
    kenv_parallel_for(env, parts_of(p->m, r.height) * r.panels, at_most(p->m, r.height) * PANEL_COLUMNS * p->k / 8 + 1, product_range, &r);
}
