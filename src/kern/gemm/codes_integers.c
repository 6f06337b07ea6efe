/* codes_integers: products of integers of 8 bits with a weight in tiles (codes.c), exact modulo 2^32. A number of a is a digit as it is,
 * less 128 if it is unsigned. Zero points are taken off the sums of rows and columns, so any of them costs the same:
 *
 *     sum (a - s)(w - t) = sum a w - t sum a - s sum (w - t)
 */
#include "kern/core/core.h"
#include "kern/gemm/gemm.h"

#include <string.h>

struct integer_run {
    const struct codes *w;
    const struct codes_kernel *kernel;
    const struct codes_integers *a;
    struct codes_rows rows; /* start: sums of rows */
    const struct codes_result *to;
};

/* ---- rows of a ----------------------------------------------------------------------------------------------------------------------- */

static SIMD int32_t digits_sum(const uint8_t *a, int64_t n, uint8_t flip)
{
    int64_t sum = 0;
    _Pragma("omp simd reduction(+:sum)") for (int64_t i = 0; i < n; i++) sum += (int8_t)(a[i] ^ flip);
    return (int32_t)(uint32_t)(uint64_t)sum;
}

/* Row i, 4 digits to a word. */
static int32_t place_row(const struct integer_run *r, int64_t i)
{
    int64_t k = r->w->k;
    const uint8_t *a = r->a->a + i * k;
    uint32_t word, flip = r->a->is_signed ? 0 : 0x80808080;
    int8_t *to = r->rows.digit + i / CODES_ROWS * r->rows.padded * CODES_ROWS + i % CODES_ROWS * 4;
    for (int64_t l = 0; l < r->rows.padded; l += 4, to += 4 * CODES_ROWS) {
        int64_t left = k - l < 4 ? k - l : 4;
        word = flip; /* becomes 0 */
        if (left == 4)
            memcpy(&word, a + l, sizeof word);
        else if (left > 0)
            memcpy(&word, a + l, (size_t)left);
        word ^= flip;
        memcpy(to, &word, sizeof word);
    }
    return digits_sum(a, k, (uint8_t)flip);
}

static void place_range(void *data, int thread, int64_t lo, int64_t hi)
{
    const struct integer_run *r = data;
    (void)thread;
    for (int64_t i = lo; i < hi; i++)
        r->rows.start[i] = place_row(r, i);
}

/* ---- tiles --------------------------------------------------------------------------------------------------------------------------- */

/* The zero point of row i, as a digit. */
static int32_t row_zero(const struct codes_integers *a, int64_t i)
{
    uint8_t zero = a->zero ? a->zero[i % a->zeros] : 0;
    return a->is_signed ? (int8_t)zero : zero - 128;
}

/* What the columns of a tile have. */
struct columns {
    int64_t from, n;
    int32_t sum[CODES_WIDTH], zero[CODES_WIDTH];
    float scale[CODES_WIDTH], bias[CODES_WIDTH];
};

static struct columns columns_of(const struct integer_run *r, int64_t tile)
{
    const struct codes *w = r->w;
    struct columns c = {.from = tile * CODES_WIDTH};
    c.n = w->n - c.from < CODES_WIDTH ? w->n - c.from : CODES_WIDTH;
    memcpy(c.sum, w->sums + c.from, (size_t)c.n * sizeof *c.sum);
    for (int64_t j = 0; j < c.n; j++) {
        c.zero[j] = w->zeros ? w->zeros[c.from + j] : w->zero;
        c.scale[j] = r->to->whole ? 1 : r->to->scale[(c.from + j) * r->to->step];
        c.bias[j] = r->to->bias ? r->to->bias[c.from + j] : -0.0f; /* adding it changes nothing */
    }
    return c;
}

static SIMD void less_zeros(const struct columns *c, uint32_t row, uint32_t zero, uint32_t *sum)
{
    LOOP for (int j = 0; j < CODES_WIDTH; j++) sum[j] -= zero * (uint32_t)c->sum[j] + row * (uint32_t)c->zero[j];
}

static SIMD void finish_row(const struct columns *c, uint32_t row, uint32_t zero, const int32_t *sum, float *y)
{
    LOOP for (int j = 0; j < CODES_WIDTH; j++)
    {
        uint32_t more = zero * (uint32_t)c->sum[j] + row * (uint32_t)c->zero[j];
        float real = (float)(int32_t)((uint32_t)sum[j] - more) * c->scale[j];
        y[j] = real + c->bias[j];
    }
}

static void store_row(const struct integer_run *r, const struct columns *c, int64_t i, int32_t *sum)
{
    uint32_t row = (uint32_t)r->rows.start[i], zero = (uint32_t)row_zero(r->a, i);
    int64_t at = i * r->w->n + c->from;
    float real[CODES_WIDTH];
    if (r->to->whole) {
        less_zeros(c, row, zero, (uint32_t *)sum);
        memcpy(r->to->whole + at, sum, (size_t)c->n * sizeof *sum);
        return;
    }
    finish_row(c, row, zero, sum, c->n == CODES_WIDTH ? r->to->real + at : real);
    if (c->n < CODES_WIDTH)
        memcpy(r->to->real + at, real, (size_t)c->n * sizeof *real);
}

/* Tiles lo..hi. */
static void tile_range(void *data, int thread, int64_t lo, int64_t hi)
{
    const struct integer_run *r = data;
    int32_t sums[CODES_ROWS * CODES_WIDTH];
    (void)thread;
    for (int64_t t = lo; t < hi; t++) {
        struct columns c = columns_of(r, t);
        for (int64_t i = 0; i < r->a->m; i += CODES_ROWS) {
            int64_t rows = r->a->m - i < CODES_ROWS ? r->a->m - i : CODES_ROWS;
            r->kernel->whole(r->w, t, &r->rows, i / CODES_ROWS, (int)rows, sums, CODES_WIDTH);
            for (int64_t k = 0; k < rows; k++)
                store_row(r, &c, i + k, sums + k * CODES_WIDTH);
        }
    }
}

void codes_sums(struct kcall *call, const struct codes *w, const struct codes_integers *a, const struct codes_result *to)
{
    struct integer_run r = {.w = w, .kernel = codes_best(), .a = a, .to = to, .rows = {.padded = w->block}};
    int64_t whole = (a->m + CODES_ROWS - 1) / CODES_ROWS * CODES_ROWS;
    size_t digits = kcall_bytes(call, whole, (size_t)w->block), starts = kcall_bytes(call, whole, sizeof *r.rows.start);
    require(w->sums);
    r.rows.start = kenv_room(call->env, ROOM_B, digits + starts);
    r.rows.digit = (int8_t *)(r.rows.start + whole);
    kenv_parallel_for(call->env, a->m, w->k, place_range, &r);
    kenv_parallel_for(call->env, (w->n + CODES_WIDTH - 1) / CODES_WIDTH, a->m * CODES_WIDTH * w->k / 64 + 1, tile_range, &r);
}
