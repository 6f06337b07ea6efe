/* integer_depthwise: convolutions of 8-bit integers where each channel has a filter of its own. Lanes are channels. A tap in the padding
 * reads a row of zero points. Two taps at a time are multiplied and added in 16 bits each. */
#include "kern/core/core.h"
#include "kern/spatial/integer_conv.h"

#include <string.h>

enum { ROWS = 32, LANES = BYTES_WIDTH };

/* ---- packing ------------------------------------------------------------------------------------------------------------------------- */

static int number(const struct bytes_source *s, uint8_t x)
{
    return s->is_signed ? (int8_t)x : x;
}

struct bytes integer_depthwise_pack(struct kcall *call, const struct bytes_source *s, bool keep)
{
    struct bytes b = {.groups = s->groups, .n = 1, .k = s->k, .tiles = (s->groups + LANES - 1) / LANES};
    size_t weight = kcall_bytes(call, b.tiles * b.k, LANES * sizeof(int16_t)), sums = kcall_bytes(call, b.tiles, LANES * sizeof(int32_t));
    char *room = keep ? kenv_weights(call->env, weight + sums) : kenv_room(call->env, ROOM_PANELS, weight + sums);
    int16_t *w = (int16_t *)(void *)room;
    int32_t *sum = (int32_t *)(void *)(room + weight);
    require(s->k <= BYTES_MOST);
    memset(room, 0, weight + sums);
    for (int64_t c = 0; c < s->groups; c++) {
        int zero = s->zero ? number(s, s->zero[s->zeros > 1 ? c : 0]) : 0;
        for (int64_t t = 0; t < s->k; t++) {
            int x = number(s, s->w[c * s->k + t]) - zero;
            w[(c / LANES * s->k + t) * LANES + c % LANES] = (int16_t)x;
            sum[c] += x;
        }
    }
    b.weight = (const int8_t *)room;
    b.sums = sum;
    return b;
}

/* ---- sums ---------------------------------------------------------------------------------------------------------------------------- */

/* sums[n] over the taps, each of which reads n <= LANES channels from `from` on. */
static SIMD void sum_taps(const uint8_t *const *tap, int64_t taps, int64_t from, int64_t n, uint8_t flip, const int16_t *w, int32_t *sums)
{
    int32_t sum[LANES] = {0};
    if (n == LANES) {
        for (int64_t t = 0; t < taps; t++, w += LANES) {
            const uint8_t *x = tap[t] + from;
            LOOP for (int j = 0; j < LANES; j++) sum[j] += (int32_t)(uint8_t)(x[j] ^ flip) * w[j];
        }
    } else {
        for (int64_t t = 0; t < taps; t++, w += LANES)
            for (int64_t j = 0; j < n; j++)
                sum[j] += (int32_t)(uint8_t)(tap[t][from + j] ^ flip) * w[j];
    }
    memcpy(sums, sum, sizeof sum);
}

/* ---- places -------------------------------------------------------------------------------------------------------------------------- */

struct depthwise_run {
    const struct integer_conv *v;
    const struct integer_results *results;
    const struct bytes *w;
    const uint8_t *padding; /* a zero point for each channel */
    const uint8_t **taps;   /* per thread: [ROWS][taps] */
    const struct integer_columns *columns;
};

static void find_taps(const struct depthwise_run *r, int64_t place, const uint8_t **tap)
{
    const struct integer_conv *v = r->v;
    int64_t at[3], image = place / v->places;
    integer_conv_start(v, place, at);
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
}

/* Blocks lo..hi of places. */
static void place_range(void *data, int thread, int64_t lo, int64_t hi)
{
    const struct depthwise_run *r = data;
    const struct integer_conv *v = r->v;
    const uint8_t **tap = r->taps + thread * ROWS * v->taps;
    int32_t sums[ROWS * LANES];
    for (int64_t b = lo; b < hi; b++) {
        int64_t first = b * ROWS, left = v->batch * v->places - first, rows = left < ROWS ? left : ROWS;
        for (int64_t i = 0; i < rows; i++)
            find_taps(r, first + i, tap + i * v->taps);
        for (int64_t t = 0; t < r->w->tiles; t++) {
            const struct integer_columns *c = &r->columns[t];
            const int16_t *w = (const int16_t *)(const void *)r->w->weight + t * v->taps * LANES;
            for (int64_t i = 0; i < rows; i++)
                sum_taps(tap + i * v->taps, v->taps, c->from, c->n, v->flip, w, sums + i * LANES);
            integer_results_store(r->results, c, first, rows, sums, NULL);
        }
    }
}

void integer_depthwise_run(const struct integer_conv *v, const struct integer_results *results, const struct bytes *w)
{
    struct kcall *call = v->call;
    struct depthwise_run r = {.v = v, .results = results, .w = w};
    size_t columns = kcall_bytes(call, w->tiles, sizeof *r.columns),
           taps = kcall_bytes(call, kenv_threads(call->env) * v->taps, ROWS * sizeof *r.taps);
    char *room = kenv_room(call->env, ROOM_THREADS, columns + taps + (size_t)v->in);
    struct integer_columns *column = (struct integer_columns *)(void *)room;
    for (int64_t t = 0; t < w->tiles; t++)
        integer_conv_columns(v, t * LANES, v->in - t * LANES < LANES ? v->in - t * LANES : LANES, w->sums + t * LANES, NULL, &column[t]);
    memset(room + columns + taps, v->x_zero ^ v->flip, (size_t)v->in);
    r.columns = column;
    r.taps = (const uint8_t **)(void *)(room + columns);
    r.padding = (const uint8_t *)room + columns + taps;
    kenv_parallel_for(call->env, (v->batch * v->places + ROWS - 1) / ROWS, ROWS * v->in * v->taps, place_range, &r);
}
