/* integer_depthwise: depthwise convolutions of 8-bit integers. Lanes are channels. A tap in the padding reads a row of zero points.
 * Consecutive places whose windows are inside x share pointers. */
#include "kern/conv/integer_conv.h"
#include "kern/core/core.h"

#include <string.h>

enum { ROWS = 32, LANES = BYTES_WIDTH, PAIR = 2 * LANES };

/* ---- packing ------------------------------------------------------------------------------------------------------------------------- */

static int number(const struct bytes_source *s, uint8_t x)
{
    return s->is_signed ? (int8_t)x : x;
}

struct bytes integer_depthwise_pack(struct kcall *call, const struct bytes_source *s, bool keep)
{
    struct bytes b = {.groups = s->groups, .n = 1, .k = s->k, .tiles = (s->groups + LANES - 1) / LANES};
    int64_t pairs = (s->k + 1) / 2;
    size_t weight = kcall_bytes(call, b.tiles * pairs, PAIR * sizeof(int16_t)), sums = kcall_bytes(call, b.tiles, LANES * sizeof(int32_t));
    char *room = keep ? kenv_weights(call->env, weight + sums) : kenv_room(call->env, ROOM_PANELS, weight + sums);
    int16_t *w = (int16_t *)(void *)room;
    int32_t *sum = (int32_t *)(void *)(room + weight);
    require(s->k <= BYTES_MOST);
    memset(room, 0, weight + sums);
    for (int64_t c = 0; c < s->groups; c++) {
        int zero = s->zero ? number(s, s->zero[s->zeros > 1 ? c : 0]) : 0;
        for (int64_t t = 0; t < s->k; t++) {
            int x = number(s, s->w[c * s->k + t]) - zero;
            w[c / LANES * pairs * PAIR + integer_depthwise_place(t, (int)(c % LANES))] = (int16_t)x;
            sum[c] += x;
        }
    }
    b.weight = (const int8_t *)room;
    b.sums = sum;
    return b;
}

/* ---- places -------------------------------------------------------------------------------------------------------------------------- */

/* Places that share pointers. */
struct segment {
    int64_t first, n;
};

struct depthwise_run {
    const struct integer_conv *v;
    const struct integer_results *results;
    const struct bytes *w;
    const struct depthwise_kernel *kernel;
    const struct results_kernel *store;
    int64_t pointers;       /* to taps: an even number */
    const uint8_t *padding; /* a zero point per channel */
    const uint8_t **taps;   /* per thread: [ROWS][pointers] */
    const struct integer_columns *columns;
};

static void find_taps(const struct depthwise_run *r, int64_t image, const int64_t *at, const uint8_t **tap)
{
    const struct integer_conv *v = r->v;
    const uint8_t **first = tap;
    for (int64_t i = 0; i < v->kernel[0]; i++)
        for (int64_t j = 0; j < v->kernel[1]; j++) {
            int64_t a = at[0] + i * v->dilation[0], b = at[1] + j * v->dilation[1];
            bool inside = a >= 0 && a < v->size[0] && b >= 0 && b < v->size[1];
            int64_t row = ((image * v->size[0] + a) * v->size[1] + b) * v->size[2];
            for (int64_t k = 0; k < v->kernel[2]; k++) {
                int64_t c = at[2] + k * v->dilation[2];
                *tap++ = inside && c >= 0 && c < v->size[2] ? v->x + (row + c) * v->in : r->padding;
            }
        }
    if (v->taps % 2)
        *tap = *first; /* its filter is 0 */
}

/* The number of consecutive places, at most n, starting at `at`, whose windows are inside x. */
static int64_t places_within(const struct integer_conv *v, const int64_t *at, int64_t n)
{
    int64_t left[3];
    for (int d = 0; d < 3; d++) {
        left[d] = v->size[d] - at[d] - (v->kernel[d] - 1) * v->dilation[d];
        if (at[d] < 0 || left[d] <= 0)
            return 0;
    }
    int64_t within = (left[2] - 1) / v->stride[2] + 1, place = (at[2] + v->before[2]) / v->stride[2];
    within = within < v->result[2] - place ? within : v->result[2] - place;
    return within < n ? within : n;
}

/* Divides places first..first + rows into segments; returns their number. */
static int find_segments(const struct depthwise_run *r, int64_t first, int64_t rows, struct segment *to, const uint8_t **tap)
{
    int count = 0;
    for (int64_t i = 0; i < rows; count++) {
        int64_t at[3];
        integer_conv_start(r->v, first + i, at);
        int64_t n = places_within(r->v, at, rows - i);
        to[count] = (struct segment){i, n > 1 ? n : 1};
        find_taps(r, (first + i) / r->v->places, at, tap + count * r->pointers);
        i += to[count].n;
    }
    return count;
}

/* Blocks lo..hi of places. */
static void place_range(void *data, int thread, int64_t lo, int64_t hi)
{
    const struct depthwise_run *r = data;
    const struct integer_conv *v = r->v;
    const uint8_t **tap = r->taps + thread * ROWS * r->pointers;
    struct segment segment[ROWS];
    _Alignas(64) int32_t sums[ROWS * LANES];
    for (int64_t b = lo; b < hi; b++) {
        int64_t first = b * ROWS, left = v->batch * v->places - first, rows = left < ROWS ? left : ROWS;
        int count = find_segments(r, first, rows, segment, tap);
        for (int64_t t = 0; t < r->w->tiles; t++) {
            const struct integer_columns *c = &r->columns[t];
            struct depthwise_tile tile = {.step = v->stride[2] * v->in, .taps = v->taps, .from = c->from, .n = c->n, .flip = v->flip};
            tile.w = (const int16_t *)(const void *)r->w->weight + t * r->pointers * LANES;
            for (int i = 0; i < count; i++) {
                tile.places = segment[i].n;
                tile.tap = tap + i * r->pointers;
                r->kernel->sums(&tile, sums + segment[i].first * LANES);
            }
            integer_results_store(r->store, r->results, c, first, rows, sums, NULL);
        }
    }
}

void integer_depthwise_run(const struct integer_conv *v, const struct integer_results *results, const struct bytes *w)
{
    struct kcall *call = v->call;
    struct depthwise_run r = {.v = v, .results = results, .w = w, .kernel = integer_depthwise_best(), .store = integer_results_best()};
    r.pointers = (v->taps + 1) / 2 * 2;
    size_t columns = kcall_bytes(call, w->tiles, sizeof *r.columns),
           taps = kcall_bytes(call, kenv_threads(call->env) * r.pointers, ROWS * sizeof *r.taps);
    char *room = kenv_room(call->env, ROOM_THREADS, columns + taps + (size_t)v->in);
    struct integer_columns *column = (struct integer_columns *)(void *)room;
    for (int64_t t = 0; t < w->tiles; t++)
        integer_conv_columns(v, t * LANES, v->in - t * LANES < LANES ? v->in - t * LANES : LANES, w->sums + t * LANES, NULL, &column[t]);
    memset(room + columns + taps, v->x_zero ^ v->flip, (size_t)v->in);
    r.columns = column;
    r.taps = (const uint8_t **)(void *)(room + columns);
    r.padding = (const uint8_t *)room + columns + taps;
    kenv_parallel_shares(call->env, (v->batch * v->places + ROWS - 1) / ROWS, ROWS * v->in * v->taps, place_range, &r);
}
