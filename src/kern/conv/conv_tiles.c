/* conv_tiles: tiled convolutions for processors other than x86, where oneDNN has only plain loops. Works on channels-last data; other
 * images are transposed before and after.
 *
 * The windows of several places are gathered into rows, which are multiplied with the weight tile by tile: [group][tile of
 * channels][tap][channel of x][TILE]. For depthwise convolutions, lanes are channels, and the weight is [tap][channel]. */
#if defined(__clang__)
#pragma clang fp contract(fast)
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=fast") /* each product is added to exactly one sum */
#endif
#include "kern/conv/conv.h"
#include "kern/core/core.h"
#include "kern/gemm/gemm.h"

#include <string.h>

enum { SPATIAL = 3, PLACES = 8 * TILE_ROWS, DEPTH = 256, FEW = 4, LANES = 4, VECTORS = 4, BLOCK = LANES * VECTORS };

struct conv_tiles {
    const struct conv_shape *s;
    struct result_function function;
    int64_t in, out, taps, places, pixels; /* in, out: per group */
    int64_t tiles, blocks;                 /* tiles of a group's results; blocks of PLACES of an image */
    const float *x, *w, *bias;
    float *y, *rows;    /* rows: per thread, the windows of PLACES */
    const float **seen; /* per thread, pointers to each tap's input for FEW places */
};

/* ---- where a place reads ------------------------------------------------------------------------------------------------------------- */

/* Splits i into the coordinates of a box. */
static void coordinates(int n, const int64_t *size, int64_t i, int64_t *at)
{
    for (int d = n - 1; d >= 0; d--) {
        at[d] = i % size[d];
        i /= size[d];
    }
}

static void next_coordinates(int n, const int64_t *size, int64_t *at)
{
    for (int d = n - 1; d >= 0 && ++at[d] == size[d]; d--)
        at[d] = 0;
}

/* The pixel that `tap` reads for the place whose window starts at `start`; -1 in the padding. */
static int64_t pixel_of(const struct conv_shape *s, const int64_t *start, const int64_t *tap)
{
    int64_t pixel = 0;
    for (int d = 0; d < s->spatial; d++) {
        int64_t i = start[d] + tap[d] * s->dilation[d];
        if (i < 0 || i >= s->size[d])
            return -1;
        pixel = pixel * s->size[d] + i;
    }
    return pixel;
}

static void start_of(const struct conv_shape *s, int64_t place, int64_t *start)
{
    coordinates(s->spatial, s->result, place, start);
    for (int d = 0; d < s->spatial; d++)
        start[d] = start[d] * s->stride[d] - s->before[d];
}

/* ---- the weight ---------------------------------------------------------------------------------------------------------------------- */

static bool is_depthwise(const struct conv_shape *s)
{
    return s->groups > 1 && s->groups == s->in && s->groups == s->out;
}

static int64_t packed_size(const struct conv_tiles *t)
{
    return is_depthwise(t->s) ? t->taps * t->s->out : t->s->groups * t->tiles * t->taps * t->in * TILE;
}

/* Index in the packed weight of element i of tap `tap` of output channel o. */
static int64_t packed_place(const struct conv_tiles *t, int64_t o, int64_t i, int64_t tap)
{
    int64_t in_group = o % t->out;
    if (is_depthwise(t->s))
        return tap * t->s->out + o;
    return (((o / t->out * t->tiles + in_group / TILE) * t->taps + tap) * t->in + i) * TILE + in_group % TILE;
}

static void pack_weight(const struct conv_tiles *t, const float *w, const float *factor, float *to)
{
    memset(to, 0, (size_t)packed_size(t) * sizeof *to);
    for (int64_t o = 0; o < t->s->out; o++)
        for (int64_t i = 0; i < t->in; i++)
            for (int64_t tap = 0; tap < t->taps; tap++)
                to[packed_place(t, o, i, tap)] = w[(o * t->in + i) * t->taps + tap] * (factor ? factor[o] : 1);
}

static const float *packed_weight(struct kcall *call, void **cache, const struct conv_tiles *t, const float *w, const float *factor)
{
    size_t bytes = kcall_bytes(call, packed_size(t), sizeof *w);
    if (cache && *cache)
        return *cache;
    float *to = cache ? kenv_weights(call->env, bytes) : kenv_room(call->env, ROOM_DNNL, bytes);
    pack_weight(t, w, factor, to);
    if (cache)
        *cache = to;
    return to;
}

/* ---- results ------------------------------------------------------------------------------------------------------------------------- */

/* Converts rows of `count` sums, `apart` apart, to results from channel `o` of a place on. */
static void store_rows(const struct conv_tiles *t, int64_t rows, int64_t count, float *sums, int64_t apart, int64_t place, int64_t o)
{
    const struct conv_shape *s = t->s;
    bool first = s->adds && s->activates_last;
    for (int64_t r = 0; r < rows; r++) {
        float *y = t->y + (place + r) * s->out + o, *sum = sums + r * apart;
        for (int64_t j = 0; t->bias && j < count; j++)
            sum[j] += t->bias[o + j];
        for (int64_t j = 0; first && j < count; j++)
            sum[j] += y[j];
        if (t->function.run)
            t->function.run(&t->function, sum, count);
        for (int64_t j = 0; s->adds && !first && j < count; j++)
            sum[j] += y[j];
        memcpy(y, sum, (size_t)count * sizeof *y);
    }
}

/* ---- products ------------------------------------------------------------------------------------------------------------------------ */

/* row[tap][channel]: a place's window in a group. */
static void gather_row(const struct conv_tiles *t, int64_t image, int64_t group, int64_t place, float *row)
{
    const struct conv_shape *s = t->s;
    const float *x = t->x + image * t->pixels * s->in + group * t->in;
    int64_t start[SPATIAL], at[SPATIAL] = {0};
    start_of(s, place, start);
    for (int64_t tap = 0; tap < t->taps; tap++, row += t->in, next_coordinates(s->spatial, s->kernel, at)) {
        int64_t pixel = pixel_of(s, start, at);
        if (pixel < 0)
            memset(row, 0, (size_t)t->in * sizeof *row);
        else
            memcpy(row, x + pixel * s->in, (size_t)t->in * sizeof *row);
    }
}

/* sums[rows][TILE] = rows times the panel of k numbers, in blocks of k that stay in the cache. */
static void multiply(int64_t rows, int64_t k, const float *row, const float *panel, float *sums)
{
    if (k == 0)
        memset(sums, 0, (size_t)(rows * TILE) * sizeof *sums);
    for (int64_t from = 0; from < k; from += DEPTH)
        for (int64_t r = 0; r < rows; r += TILE_ROWS) {
            int some = (int)(rows - r < TILE_ROWS ? rows - r : TILE_ROWS);
            struct tile tile = {.panel = panel + from * TILE, .k = k - from < DEPTH ? k - from : DEPTH, .more = from > 0};
            tile_at_rows(&tile, some, row + r * k + from, k, sums + r * TILE, TILE);
            tile_product(some, &tile);
        }
}

/* Items: tiles of each block of places of each group of each image. */
static void product_share(void *data, int thread, int64_t lo, int64_t hi)
{
    const struct conv_tiles *t = data;
    int64_t k = t->taps * t->in, gathered = -1;
    float *row = t->rows + thread * PLACES * k, sums[PLACES * TILE];
    for (int64_t item = lo; item < hi; item++) {
        int64_t tile = item % t->tiles, block = item / t->tiles, place = block % t->blocks * PLACES,
                group = block / t->blocks % t->s->groups;
        int64_t image = block / t->blocks / t->s->groups, rows = t->places - place < PLACES ? t->places - place : PLACES;
        int64_t count = t->out - tile * TILE < TILE ? t->out - tile * TILE : TILE;
        for (int64_t r = 0; r < rows && gathered != block; r++)
            gather_row(t, image, group, place + r, row + r * k);
        gathered = block;
        multiply(rows, k, row, t->w + (group * t->tiles + tile) * k * TILE, sums);
        store_rows(t, rows, count, sums, TILE, image * t->places + place, group * t->out + tile * TILE);
    }
}

/* ---- depthwise ----------------------------------------------------------------------------------------------------------------------- */
typedef float lanes __attribute__((vector_size(LANES * sizeof(float))));
#define ALL(ROWS) UNROLL for (int r = 0; r < (ROWS); r++) UNROLL for (int v = 0; v < VECTORS; v++)

/* sums[FEW][BLOCK] of channels from o on. */
INLINE void depthwise_block(const struct conv_tiles *t, const float *const *seen, int64_t o, float *sums)
{
    lanes sum[FEW][VECTORS], w[VECTORS], x;
    ALL(FEW) sum[r][v] = (lanes){0};
    for (int64_t tap = 0; tap < t->taps; tap++, seen += FEW) {
        UNROLL for (int v = 0; v < VECTORS; v++) memcpy(&w[v], t->w + tap * t->s->out + o + v * LANES, sizeof w[v]);
        ALL(FEW)
        {
            memcpy(&x, seen[r] + o + v * LANES, sizeof x);
            sum[r][v] += x * w[v];
        }
    }
    ALL(FEW) memcpy(sums + r * BLOCK + v * LANES, &sum[r][v], sizeof sum[r][v]);
}

/* The last channels, fewer than BLOCK. */
static void depthwise_rest(const struct conv_tiles *t, const float *const *seen, int64_t o, float *sums)
{
    memset(sums, 0, FEW * BLOCK * sizeof *sums);
    for (int64_t tap = 0; tap < t->taps; tap++)
        for (int64_t i = 0; i < FEW * BLOCK; i++)
            if (o + i % BLOCK < t->s->out)
                sums[i] += seen[tap * FEW + i / BLOCK][o + i % BLOCK] * t->w[tap * t->s->out + o + i % BLOCK];
}

/* Pointers to each tap's input for FEW places; to zeros in the padding, and for missing places. */
static void depthwise_taps(const struct conv_tiles *t, int64_t image, int64_t place, const float *zeros, const float **seen)
{
    const struct conv_shape *s = t->s;
    for (int64_t r = 0; r < FEW; r++) {
        int64_t start[SPATIAL], at[SPATIAL] = {0};
        start_of(s, place + r < t->places ? place + r : place, start);
        for (int64_t tap = 0; tap < t->taps; tap++, next_coordinates(s->spatial, s->kernel, at)) {
            int64_t pixel = pixel_of(s, start, at);
            seen[tap * FEW + r] = pixel < 0 ? zeros : t->x + (image * t->pixels + pixel) * s->in;
        }
    }
}

/* Items: FEW places of an image. */
static void depthwise_share(void *data, int thread, int64_t lo, int64_t hi)
{
    const struct conv_tiles *t = data;
    const float **seen = t->seen + thread * FEW * t->taps;
    for (int64_t item = lo; item < hi; item++) {
        int64_t place = item % t->blocks * FEW, image = item / t->blocks, rows = t->places - place < FEW ? t->places - place : FEW;
        depthwise_taps(t, image, place, t->rows, seen);
        for (int64_t o = 0; o < t->s->out; o += BLOCK) {
            float sums[FEW * BLOCK];
            int64_t count = t->s->out - o < BLOCK ? t->s->out - o : BLOCK;
            if (count == BLOCK)
                depthwise_block(t, seen, o, sums);
            else
                depthwise_rest(t, seen, o, sums);
            store_rows(t, rows, count, sums, BLOCK, image * t->places + place, o);
        }
    }
}

/* ---- the convolution ----------------------------------------------------------------------------------------------------------------- */

static void convolve(struct kcall *call, struct conv_tiles *t)
{
    const struct conv_shape *s = t->s;
    int64_t threads = kenv_threads(call->env), each = 2 * t->taps * t->in;
    if (is_depthwise(s)) {
        t->blocks = (t->places + FEW - 1) / FEW;
        t->seen = kenv_room(call->env, ROOM_NARROW, kcall_bytes(call, threads * FEW * t->taps, sizeof *t->seen));
        t->rows = memset(kenv_room(call->env, ROOM_THREADS, kcall_bytes(call, s->in, sizeof *t->rows)), 0, (size_t)s->in * sizeof *t->rows);
        kenv_parallel_shares(call->env, s->batch * t->blocks, FEW * s->out * each, depthwise_share, t);
        return;
    }
    t->blocks = (t->places + PLACES - 1) / PLACES;
    t->rows = kenv_room(call->env, ROOM_THREADS, kcall_bytes(call, threads * PLACES * t->taps * t->in, sizeof *t->rows));
    kenv_parallel_shares(call->env, s->batch * s->groups * t->blocks * t->tiles, PLACES * TILE * each, product_share, t);
}

/* Transposes each image to to[columns][rows]. */
static float *turned(int64_t images, int64_t rows, int64_t columns, const float *x, float *to)
{
    for (int64_t i = 0; i < images; i++)
        transpose_words(rows, columns, x + i * rows * columns, columns, to + i * rows * columns, rows);
    return to;
}

void conv_tiles(struct kcall *call, void **cache, const struct conv_shape *s, const float *x, const float *w, const float *factor,
                const float *bias, float *y)
{
    struct conv_tiles t = {.s = s, .in = s->in / s->groups, .out = s->out / s->groups, .x = x, .bias = bias, .y = y};
    t.taps = tensor_dims_product(s->kernel, 0, s->spatial);
    t.places = tensor_dims_product(s->result, 0, s->spatial);
    t.pixels = tensor_dims_product(s->size, 0, s->spatial);
    t.tiles = (t.out + TILE - 1) / TILE;
    t.w = packed_weight(call, cache, &t, w, factor);
    if (s->activation != CONV_LINEAR)
        t.function = result_function_of(call->node);
    if (!s->last) {
        t.x = turned(s->batch, s->in, t.pixels, x,
                     kenv_room(call->env, ROOM_TURN_Q, kcall_bytes(call, s->batch * s->in * t.pixels, sizeof *x)));
        t.y = kenv_room(call->env, ROOM_KERNEL, kcall_bytes(call, s->batch * s->out * t.places, sizeof *y));
    }
    convolve(call, &t);
    if (!s->last)
        turned(s->batch, t.places, s->out, t.y, y);
}
