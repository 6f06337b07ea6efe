/* many_rows: attention of prompts. A unit of work is a block of rows of query heads that share one head of keys. It processes one block of
 * keys at a time, packed in tiles: a stripe, a few rows of a head, multiplies them, masks and exponentiates its scores in the L1 cache, and
 * accumulates values. If a later block has a larger score, earlier sums are scaled down (online softmax, Milakov and Gimelshein 2018).
 * Blocks of keys begin at multiples of their size, so a row gets the same bits whatever unit it is in.
 *
 * Products may use bf16 (many_narrow.c).
 *
 * Exponentials may be contracted to multiply-adds: they are computed in whole tiles, so that no remainder is contracted differently. */
#if defined(__clang__)
#pragma clang fp contract(fast)
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=fast")
#endif
#include "kern/attention/many_rows.h"

#include "kern/core/mathf.h"
#include "kern/gemm/gemm.h"

#include <string.h>

enum { MOST_ROWS = 144, MOST_TOGETHER = 512 };
struct many {
    const struct attention_core *a;
    int64_t together, block, blocks, wide, width; /* heads and rows per unit, units per head; value_size in whole tiles, plus one tile */
    int64_t pairs;                                /* of elements of a key */
    int64_t stripe;                               /* rows per stripe */
    bool tiles;
    char *scratch;
    size_t scratch_each;
};
/* ---- softmax ------------------------------------------------------------------------------------------------------------------------ */

/* exp(x) for x <= 0; 0 below the least normal number. */
static inline float exp_down(float x)
{
    float y = mathf_exp2_near(x * MATHF_LOG2E);
    return x < -87.0f ? 0 : y;
}

/* Combines elements h to 2h of x with those before them. GCC vectorises this only for constant h. */
#define HALVE(x, h, WITH) LOOP for (int l = 0; l < (h); l++) x[l] = WITH(x[l], x[l + (h)]);
#define REDUCE(x, WITH) HALVE(x, 16, WITH) HALVE(x, 8, WITH) HALVE(x, 4, WITH) HALVE(x, 2, WITH) HALVE(x, 1, WITH)
#define LARGER(a, b) ((b) > (a) ? (b) : (a))
#define SUM(a, b) ((a) + (b))

/* The largest number of `tiles` tiles, or max. */
static SIMD float max_of(const float *x, int64_t tiles, float max)
{
    float most[TILE];
    LOOP for (int l = 0; l < TILE; l++) most[l] = max;
    for (int64_t t = 0; t < tiles; t++)
        LOOP for (int l = 0; l < TILE; l++) most[l] = LARGER(most[l], x[t * TILE + l]);
    REDUCE(most, LARGER)
    return most[0];
}

/* x = exp(x - max); adds x to the sums by position in a tile. */
static SIMD void exp_of(float *x, int64_t tiles, float max, float *sums)
{
    float sum[TILE];
    memcpy(sum, sums, sizeof sum);
    for (int64_t t = 0; t < tiles; t++)
        LOOP for (int l = 0; l < TILE; l++)
        {
            float y = exp_down(x[t * TILE + l] - max);
            x[t * TILE + l] = y;
            sum[l] += y;
        }
    memcpy(sums, sum, sizeof sum);
}

static SIMD float sum_of(float *sums)
{
    REDUCE(sums, SUM)
    return sums[0];
}

static SIMD void multiply(float *x, int64_t n, float by)
{
    LOOP for (int64_t i = 0; i < n; i++) x[i] *= by;
}

/* Converts the scores of row r with `tiles` tiles of keys, from key `from` on, to unnormalised probabilities. */
static void soften(const struct unit *u, struct stripe *s, int r, int64_t from, int64_t tiles, float *x)
{
    const struct attention_core *a = u->a;
    float *out = s->out + r * u->width;
    if (a->narrow)
        multiply(x, tiles * TILE, a->scale);
    if (a->softcap > 0)
        attention_cap(x, tiles * TILE, a->softcap);
    s->any[r] |= attention_mask(a, u->b, s->h, s->first + r, from, tiles * TILE, x);
    float max = max_of(x, tiles, s->max[r]);
    if (max > s->max[r] && s->max[r] > -INFINITY)
        multiply(out, u->width, exp_down(s->max[r] - max));
    s->max[r] = max;
    exp_of(x, tiles, max > -INFINITY ? max : 0, out + u->wide);
}

/* ---- a stripe with a block of keys --------------------------------------------------------------------------------------------------- */

static void stripe_scores(const struct unit *u, const struct stripe *s, int64_t from, int64_t to)
{
    const struct attention_core *a = u->a;
    const float *q = head_rows_at(&a->q, u->b, s->h, s->first);
    for (int64_t t = from / TILE; t < (to + TILE - 1) / TILE; t++) {
        struct tile tile = {.panel = u->keys + t * TILE * a->size, .k = a->size};
        tile_at_rows(&tile, s->rows, q, a->q.row, u->scores + t * TILE, KEYS);
        tile_product(s->rows, &tile);
    }
}

static void stripe_values(const struct unit *u, const struct stripe *s, int64_t from, int64_t to)
{
    for (int64_t column = 0; column < u->wide; column += TILE) {
        struct tile tile = {.panel = u->values + column * KEYS + from * TILE, .k = to - from, .more = true};
        tile_at_rows(&tile, s->rows, u->scores + from, KEYS, s->out + column, u->width);
        tile_product(s->rows, &tile);
    }
}

static void stripe_meets(const struct unit *u, struct stripe *s, int64_t first)
{
    int64_t from = s->lo > first ? s->lo - first : 0, to = s->hi < first + KEYS ? s->hi - first : KEYS;
    if (from >= to)
        return;
    (u->a->narrow ? many_narrow_scores : stripe_scores)(u, s, from, to);
    int64_t start = from / TILE * TILE;
    for (int r = 0; r < s->rows; r++)
        soften(u, s, r, first + start, (to - start + TILE - 1) / TILE, u->scores + r * KEYS + start);
    (u->a->narrow ? many_narrow_add : stripe_values)(u, s, from, to);
}

/* ---- a unit -------------------------------------------------------------------------------------------------------------------------- */

static void pack_keys(const struct unit *u, int64_t from, int64_t n)
{
    const struct attention_core *a = u->a;
    int64_t step;
    const float *key = attention_widened(&a->k, u->b, u->kv, from, n, a->size, u->room, &step);
    for (int64_t j = 0; j < n; j += TILE) {
        float *tile = u->keys + j * a->size;
        if (n - j < TILE)
            memset(tile, 0, (size_t)(TILE * a->size) * sizeof *tile);
        transpose_words(n - j < TILE ? n - j : TILE, a->size, key + j * step, step, tile, TILE);
        multiply(tile, TILE * a->size, a->scale);
    }
}

/* The size of a whole tile is a compile-time constant, for speed. */
static void pack_row(const float *from, int64_t count, float *to)
{
    if (count >= TILE) {
        memcpy(to, from, TILE * sizeof *to);
        return;
    }
    memset(to, 0, TILE * sizeof *to);
    memcpy(to, from, (size_t)count * sizeof *to);
}

static void pack_values(const struct unit *u, int64_t from, int64_t n)
{
    int64_t step, size = u->a->value_size;
    const float *value = attention_widened(&u->a->v, u->b, u->kv, from, n, size, u->room, &step);
    for (int64_t column = 0; column < size; column += TILE)
        for (int64_t j = 0; j < n; j++)
            pack_row(value + j * step + column, size - column, u->values + column * KEYS + j * TILE);
}

static void stripe_finish(const struct unit *u, const struct stripe *s)
{
    const struct attention_core *a = u->a;
    size_t each = dtype_size(a->y->dtype);
    for (int r = 0; r < s->rows; r++) {
        float *out = s->out + r * u->width, sum = sum_of(out + u->wide) + (a->sink ? exp_down(a->sink[s->h] - s->max[r]) : 0);
        bool none = a->keys == 0 || (!s->any[r] && !a->nan_rows) || (a->nan_to_zero && !(sum > 0));
        if (none)
            memset(out, 0, (size_t)a->value_size * sizeof *out);
        else
            multiply(out, a->value_size, 1.0f / sum);
        int64_t at = u->b * a->y_batch + s->h * a->y_head + (s->first + r) * a->y_row;
        convert_from_f32(a->y->dtype, out, a->value_size, element_at(a->y->data, each, at));
    }
}

/* A stripe sees the same keys as the same rows of the previous head, `before` stripes back, if heads share one mask. */
static void stripe_seen(const struct unit *u, struct stripe *s, int64_t before)
{
    const struct attention_core *a = u->a;
    const struct stripe *same = u->count >= before && a->mask_step[1] == 0 ? s - before : NULL;
    if (!same) {
        attention_seen(a, u->b, s->h, s->first, s->rows, &s->lo, &s->hi);
        return;
    }
    s->lo = same->lo;
    s->hi = same->hi;
}

static void unit_stripes(struct unit *u, int64_t h, int64_t heads, int64_t first, int64_t rows)
{
    const struct attention_core *a = u->a;
    int64_t stripe = u->tiles ? MOST_STRIPE : TILE_ROWS;
    u->lo = a->keys;
    for (int64_t i = 0; i < heads * rows; i += u->stripe[u->count++].rows) {
        struct stripe *s = &u->stripe[u->count];
        int64_t left = rows - i % rows;
        *s = (struct stripe){.h = h + i / rows, .first = first + i % rows, .rows = (int)(left < stripe ? left : stripe)};
        s->out = u->out + i * u->width;
        s->query = u->queries + u->count * stripe * 2 * u->pairs;
        if (a->narrow)
            many_narrow_queries(u, s);
        stripe_seen(u, s, (rows + stripe - 1) / stripe);
        for (int r = 0; r < s->rows; r++)
            s->max[r] = a->sink ? a->sink[s->h] : -INFINITY;
        u->lo = s->lo < u->lo ? s->lo : u->lo;
        u->hi = s->hi > u->hi ? s->hi : u->hi;
    }
    memset(u->out, 0, (size_t)(heads * rows * u->width) * sizeof *u->out);
}

static void unit_run(struct unit *u)
{
    for (int64_t first = u->lo / KEYS * KEYS; first < u->hi; first += KEYS) {
        int64_t n = u->hi - first < KEYS ? u->hi - first : KEYS;
        (u->a->narrow ? many_narrow_keys : pack_keys)(u, first, n);
        (u->a->narrow ? many_narrow_values : pack_values)(u, first, n);
        for (int64_t i = 0; i < u->count; i++)
            stripe_meets(u, &u->stripe[i], first);
    }
    for (int64_t i = 0; i < u->count; i++)
        stripe_finish(u, &u->stripe[i]);
}

static int64_t stripes_of(const struct many *t)
{
    return t->together * ((t->block + t->stripe - 1) / t->stripe);
}

/* Elements of KEYS rounded rows. */
static int64_t rounded_of(const struct many *t)
{
    return KEYS * (2 * t->pairs > t->wide ? 2 * t->pairs : t->wide);
}

/* Elements of bf16 in addition to keys and values: probabilities, rounded rows and queries, in whole words of 8 bytes. */
static int64_t narrow_numbers(const struct many *t)
{
    return t->a->narrow ? (t->stripe * KEYS + rounded_of(t) + stripes_of(t) * t->stripe * 2 * t->pairs + 3) / 4 * 4 : 0;
}

/* Floats per key, for either type. */
static int64_t key_floats(const struct many *t)
{
    return t->a->size > t->pairs ? t->a->size : t->pairs;
}

static void many_range(void *data, int thread, int64_t lo, int64_t hi)
{
    const struct many *t = data;
    const struct attention_core *a = t->a;
    struct unit room = {.a = a, .wide = t->wide, .width = t->width, .pairs = t->pairs, .tiles = t->tiles};
    room.keys = (float *)(void *)(t->scratch + (size_t)thread * t->scratch_each);
    room.values = room.keys + KEYS * key_floats(t);
    room.scores = room.values + KEYS * t->wide;
    room.room = room.scores + KEYS * t->stripe;
    room.out = room.room + KEYS * (a->size > t->wide ? a->size : t->wide);
    room.narrow_keys = (uint16_t *)(void *)room.keys;
    room.narrow_values = (uint16_t *)(void *)room.values;
    room.shares = (uint16_t *)(void *)(room.out + t->together * t->block * t->width);
    room.rounded = room.shares + (a->narrow ? t->stripe * KEYS : 0);
    room.queries = room.rounded + (a->narrow ? rounded_of(t) : 0);
    room.stripe = (struct stripe *)(void *)(room.shares + narrow_numbers(t));
    for (int64_t i = lo; i < hi; i++) {
        struct unit u = room;
        int64_t first = i % t->blocks * t->block, h = i / t->blocks * t->together % a->q_heads;
        u.b = i / t->blocks * t->together / a->q_heads;
        u.kv = h / (a->q_heads / a->kv_heads);
        unit_stripes(&u, h, t->together, first, a->rows - first < t->block ? a->rows - first : t->block);
        unit_run(&u);
    }
}

/* Rows per unit: many, so that packing pays off, but every thread gets several units. */
static int64_t rows_of_unit(const struct many *t, int threads)
{
    int64_t most = t->a->rows < MOST_ROWS ? t->a->rows : MOST_ROWS, units = t->a->batch * t->a->q_heads / t->together;
    while (most > t->stripe && (most * t->together > MOST_TOGETHER || units * (t->a->rows / most) < 4 * (threads - 1)))
        most = (most / 2 + t->stripe - 1) / t->stripe * t->stripe;
    return most;
}

void attention_many_rows(struct kcall *call, const struct attention_core *a)
{
    int threads = kenv_threads(call->env);
    int64_t tile = a->narrow ? PANEL_COLUMNS : TILE;
    struct many t = {.a = a, .together = attention_together(a, threads), .wide = (a->value_size + tile - 1) / tile * tile};
    t.width = t.wide + TILE;
    t.tiles = a->narrow && narrow_tiles_fast();
    t.stripe = t.tiles ? MOST_STRIPE : TILE_ROWS;
    t.pairs = !a->narrow ? 0 : t.tiles ? (a->size + TILE - 1) / TILE * TILE / 2 : (a->size + 1) / 2;
    t.block = rows_of_unit(&t, threads);
    t.blocks = (a->rows + t.block - 1) / t.block;
    int64_t widest = a->size > t.wide ? a->size : t.wide;
    int64_t floats = KEYS * (key_floats(&t) + t.wide + t.stripe + widest) + t.together * t.block * t.width;
    t.scratch_each = (kcall_bytes(call, floats, sizeof(float)) + kcall_bytes(call, stripes_of(&t), sizeof(struct stripe)) +
                      kcall_bytes(call, narrow_numbers(&t), sizeof(uint16_t)) + 63) &
        ~(size_t)63;
    t.scratch = kenv_scratch(call->env, kcall_bytes(call, threads, t.scratch_each));
    kenv_parallel_shares(call->env, a->batch * a->q_heads / t.together * t.blocks, t.together * t.block * a->keys * (a->size + 8),
                         many_range, &t);
}
