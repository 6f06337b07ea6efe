/* codes: products with a weight of few bits in blocks. The weight is packed once, in the order in which a register block reads it, and its
 * own bytes are read no more. Activations become digits of 8 bits (rows.c), and all products are dots of integers (dot.c):
 * those of a step are exact, and steps are added in float32.
 *
 * A step has no numbers of two blocks, so a split of k between blocks leaves every digit as it is: only the order of additions changes. */
#include "kern/codes/codes.h"

#include "kern/core/core.h"

#include <string.h>

enum { SCALES = CODES_WIDTH * (int)sizeof(float) };

/* ---- packing ------------------------------------------------------------------------------------------------------------------------- */

struct packing {
    const struct codes *w;
    const struct codes_source *from;
    char *weight;
    uint8_t *zeros;
    int32_t *sums;
    char *scratch; /* per thread: a column's codes, scales and zero points */
    size_t scratch_each;
};

/* The codes of a block of column j of its tile. */
static void place_codes(const struct codes *w, const uint8_t *codes, int j, char *block)
{
    uint32_t word, part;
    for (int64_t i = 0; i < w->block; i += 32 / w->bits, block += CODES_WIDTH * sizeof word) {
        word = 0;
        for (int k = 0; k < 8 / w->bits; k++) {
            memcpy(&part, codes + i + 4 * k, sizeof part);
            word |= part << k * w->bits;
        }
        memcpy(block + (size_t)j * sizeof word, &word, sizeof word);
    }
}

static int32_t column_sum(const struct codes *w, const uint8_t *codes, int zero)
{
    uint32_t sum = 0;
    for (int64_t i = 0; i < w->k; i++)
        sum += (uint32_t)(codes[i] - zero);
    return (int32_t)sum;
}

static void pack_column(const struct packing *p, int64_t column, char *room)
{
    const struct codes *w = p->w;
    int64_t tile = column / CODES_WIDTH, j = column % CODES_WIDTH;
    float *scales = (float *)(void *)room;
    uint8_t *zeros = (uint8_t *)(scales + w->blocks), *codes = zeros + w->blocks;
    memset(codes, 0, (size_t)(w->blocks * w->block));
    p->from->read_codes(p->from->from, column, codes);
    memset(scales, 0, (size_t)w->blocks * sizeof *scales);
    if (!p->sums)
        p->from->read_scales(p->from->from, column, scales);
    if (p->zeros)
        p->from->read_zeros(p->from->from, column, zeros);
    if (p->sums)
        p->sums[column] = column_sum(w, codes, p->zeros ? *zeros : w->zero);
    for (int64_t b = 0; b < w->blocks; b++) {
        char *block = p->weight + (size_t)(tile * w->blocks + b) * w->block_bytes;
        memcpy(block + (size_t)j * sizeof *scales, scales + b, sizeof *scales);
        place_codes(w, codes + b * w->block, (int)j, block + SCALES);
        if (p->zeros)
            p->zeros[(tile * w->blocks + b) * CODES_WIDTH + j] = zeros[b];
    }
}

/* Tiles lo..hi. */
static void pack_range(void *data, int thread, int64_t lo, int64_t hi)
{
    const struct packing *p = data;
    const struct codes *w = p->w;
    size_t bytes = (size_t)w->blocks * w->block_bytes;
    for (int64_t t = lo; t < hi; t++) {
        memset(p->weight + (size_t)t * bytes, 0, bytes);
        if (p->zeros)
            memset(p->zeros + t * w->blocks * CODES_WIDTH, 0, (size_t)(w->blocks * CODES_WIDTH));
        for (int64_t j = t * CODES_WIDTH; j < (t + 1) * CODES_WIDTH && j < w->n; j++)
            pack_column(p, j, p->scratch + (size_t)thread * p->scratch_each);
    }
}

static struct codes codes_sizes(const struct kcall *call, const struct codes_source *from)
{
    int64_t step = from->block % CODES_STEP ? 16 : CODES_STEP;
    struct codes w = {.n = from->n, .k = from->k, .block = from->block, .step = step, .bits = from->bits, .zero = from->zero};
    require(from->block % step == 0);
    w.blocks = from->integers ? 1 : (w.k + w.block - 1) / w.block;
    require(w.blocks * w.block >= w.k);
    w.block_bytes = SCALES + kcall_bytes(call, w.block * w.bits, CODES_WIDTH / 8);
    return w;
}

/* take: the allocator. */
static void pack(struct kcall *call, const struct codes_source *from, struct codes *w, void *take(struct kenv *, size_t))
{
    int64_t tiles = (w->n + CODES_WIDTH - 1) / CODES_WIDTH;
    struct packing p = {.w = w, .from = from};
    size_t weight = kcall_bytes(call, tiles * w->blocks, w->block_bytes), zeros = kcall_bytes(call, tiles * w->blocks, CODES_WIDTH),
           sums = kcall_bytes(call, tiles, CODES_WIDTH * sizeof *p.sums);
    zeros = from->zeros ? zeros : 0;
    p.weight = take(call->env, weight + zeros + (from->integers ? sums : 0));
    p.zeros = from->zeros ? (uint8_t *)p.weight + weight : NULL;
    p.sums = from->integers ? (int32_t *)(void *)(p.weight + weight + zeros) : NULL;
    p.scratch_each = kcall_bytes(call, w->blocks, sizeof(float) + 1) + kcall_bytes(call, w->blocks, (size_t)w->block) + 64;
    p.scratch_each &= ~(size_t)63;
    p.scratch = kenv_room(call->env, ROOM_THREADS, kcall_bytes(call, kenv_threads(call->env), p.scratch_each));
    w->weight = p.weight;
    w->zeros = p.zeros;
    w->sums = p.sums;
    kenv_parallel_shares(call->env, tiles, CODES_WIDTH * w->k, pack_range, &p);
}

const struct codes *codes_pack(struct kcall *call, const struct codes_source *from)
{
    struct codes *w = kenv_keep(call->env, sizeof *w);
    *w = codes_sizes(call, from);
    pack(call, from, w, kenv_weights);
    return w;
}

static void *room_of_call(struct kenv *env, size_t bytes)
{
    return kenv_room(env, ROOM_PANELS, bytes);
}

struct codes codes_pack_once(struct kcall *call, const struct codes_source *from)
{
    struct codes w = codes_sizes(call, from);
    pack(call, from, &w, room_of_call);
    return w;
}

/* ---- the product --------------------------------------------------------------------------------------------------------------------- */

struct tile_run {
    const struct codes *w;
    const struct codes_kernel *kernel;
    struct codes_rows rows;
    int digits;
    const float *a;
    float *c;
};

static void code_range(void *data, int64_t lo, int64_t hi)
{
    const struct tile_run *r = data;
    for (int64_t i = lo; i < hi; i++)
        codes_row(r->w, &r->rows, r->digits, i, r->a + i * r->w->k);
}

static SIMD void add_digits(const float *digit, int digits, float *sum)
{
    LOOP for (int j = 0; j < CODES_WIDTH; j++)
    {
        sum[j] = digit[j];
        for (int d = 1; d < digits; d++)
            sum[j] += digit[d * CODES_WIDTH + j];
    }
}

/* Stores `rows` rows of c: adds up their digits. */
static void store_rows(const struct tile_run *r, int64_t tile, int64_t row, int64_t rows, const float *sums)
{
    int64_t left = r->w->n - tile * CODES_WIDTH, count = left < CODES_WIDTH ? left : CODES_WIDTH;
    float sum[CODES_WIDTH];
    for (int64_t i = 0; i < rows; i++) {
        add_digits(sums + i * r->digits * CODES_WIDTH, r->digits, sum);
        memcpy(r->c + (row + i) * r->w->n + tile * CODES_WIDTH, sum, (size_t)count * sizeof *sum);
    }
}

/* Rows of a tile from one on: at their place in c, if a whole tile has one digit. */
static void tile_rows(const struct tile_run *r, int64_t tile, int64_t group, int64_t row, int64_t rows)
{
    float sums[CODES_ROWS * CODES_WIDTH];
    int64_t column = tile * CODES_WIDTH;
    if (r->digits == 1 && column + CODES_WIDTH <= r->w->n) {
        r->kernel->dot(r->w, tile, &r->rows, group, (int)rows, r->c + row * r->w->n + column, r->w->n);
        return;
    }
    r->kernel->dot(r->w, tile, &r->rows, group, (int)rows * r->digits, sums, CODES_WIDTH);
    store_rows(r, tile, row, rows, sums);
}

/* Tiles lo..hi. */
static void tile_range(void *data, int64_t lo, int64_t hi)
{
    const struct tile_run *r = data;
    int64_t most = r->rows.each / r->digits, m = r->rows.rows / r->digits;
    for (int64_t t = lo; t < hi; t++)
        for (int64_t i = 0; i < m; i += most)
            tile_rows(r, t, i / most, i, m - i < most ? m - i : most);
}

/* The number of groups is minimal and their sizes equal: a small group would read the weight for little work. */
static struct codes_rows rows_new(struct kcall *call, const struct codes *w, int64_t m, int digits)
{
    struct codes_rows to = {.rows = m * digits, .padded = w->blocks * w->block, .steps = w->blocks * (w->block / w->step)};
    int64_t most = CODES_ROWS / digits, groups = (m + most - 1) / most, whole = groups * CODES_ROWS;
    to.each = groups ? (m + groups - 1) / groups * digits : CODES_ROWS;
    size_t bytes = kcall_bytes(call, whole, (size_t)to.padded), each = kcall_bytes(call, whole * to.steps, sizeof *to.scale);
    char *room = kenv_room(call->env, ROOM_B, bytes + 2 * each);
    to.scale = (float *)(void *)room;
    to.start = (int32_t *)(void *)(room + each);
    to.digit = (int8_t *)room + 2 * each;
    return to;
}

void codes_product(struct kcall *call, const struct codes *w, int64_t m, int digits, const float *a, float *c)
{
    struct tile_run r = {.w = w, .kernel = codes_best(), .digits = digits, .a = a, .c = c};
    if (digits == 1 && codes_many_pays(m)) {
        codes_many(call, codes_panel_best(), w, m, a, c);
        return;
    }
    r.rows = rows_new(call, w, m, digits);
    kenv_parallel_for(call->env, m, 4 * w->k * digits, code_range, &r);
    kenv_parallel_for(call->env, (w->n + CODES_WIDTH - 1) / CODES_WIDTH, m * digits * CODES_WIDTH * w->k / 64 + 1, tile_range, &r);
}
