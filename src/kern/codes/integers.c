/* integers: products of integers of 8 bits with a weight in tiles (codes.c), exact modulo 2^32. A number of a is a digit as it is,
 * less 128 if it is unsigned. Zero points are taken off the sums of rows and columns, so any of them costs the same:
 *
 *     sum (a - s)(w - t) = sum a w - t sum a - s sum (w - t)
 */
#include "kern/codes/codes.h"
#include "kern/core/core.h"

#include <string.h>

enum { PART = 1 << 20 }; /* numbers whose sum is below 2^31 */

struct integer_run {
    const struct codes *w;
    const struct codes_whole_kernel *kernel;
    const struct codes_integers *a;
    int8_t *digit; /* [m][w->block] */
    int32_t *row;  /* sums of rows */
    const struct codes_result *to;
};

/* ---- rows of a ----------------------------------------------------------------------------------------------------------------------- */

/* n digits; their sum. */
static SIMD int32_t place_digits(const uint8_t *a, int64_t n, uint8_t flip, int8_t *to)
{
    int32_t sum = 0;
    _Pragma("omp simd reduction(+:sum)") for (int64_t i = 0; i < n; i++)
    {
        to[i] = (int8_t)(a[i] ^ flip);
        sum += to[i];
    }
    return sum;
}

/* The sum is modulo 2^32. */
static void place_row(const struct integer_run *r, int64_t i)
{
    int64_t k = r->w->k;
    const uint8_t *a = r->a->a + i * k;
    int8_t *to = r->digit + i * r->w->block;
    uint32_t sum = 0;
    for (int64_t l = 0; l < k; l += PART) {
        int64_t n = k - l < PART ? k - l : PART;
        sum += (uint32_t)place_digits(a + l, n, r->a->is_signed ? 0 : 0x80, to + l);
    }
    memset(to + k, 0, (size_t)(r->w->block - k));
    r->row[i] = (int32_t)sum;
}

static void place_range(void *data, int64_t lo, int64_t hi)
{
    const struct integer_run *r = data;
    for (int64_t i = lo; i < hi; i++)
        place_row(r, i);
}

/* ---- tiles --------------------------------------------------------------------------------------------------------------------------- */

/* The zero point of row i, as a digit. */
static int32_t row_zero(const struct codes_integers *a, int64_t i)
{
    uint8_t zero = a->zero ? a->zero[a->zeros > 1 ? i % a->zeros : 0] : 0;
    return a->is_signed ? (int8_t)zero : zero - 128;
}

/* The data of a tile's columns. */
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

/* Sums of rows from `first` on, minus the zero points. */
static SIMD void less_zeros(const struct integer_run *r, const struct columns *c, int64_t first, int64_t rows, int32_t *sums)
{
    for (int64_t i = 0; i < rows; i++) {
        int32_t row = r->row[first + i], zero = row_zero(r->a, first + i), *sum = sums + i * CODES_WIDTH;
        LOOP for (int j = 0; j < CODES_WIDTH; j++) sum[j] = codes_less_zeros(sum[j], row, zero, c->sum[j], c->zero[j]);
    }
}

/* Stores rows of y, `apart` apart. */
static SIMD void scale_rows(const struct columns *c, int64_t rows, const int32_t *sums, float *y, int64_t apart)
{
    for (int64_t i = 0; i < rows; i++) {
        const int32_t *sum = sums + i * CODES_WIDTH;
        float *to = y + i * apart;
        LOOP for (int j = 0; j < CODES_WIDTH; j++) to[j] = (float)sum[j] * c->scale[j] + c->bias[j];
    }
}

static void store_rows(const struct integer_run *r, const struct columns *c, int64_t first, int64_t rows, int32_t *sums)
{
    int64_t n = r->w->n, at = first * n + c->from;
    float real[CODES_WHOLE_ROWS * CODES_WIDTH];
    bool part = c->n < CODES_WIDTH;
    less_zeros(r, c, first, rows, sums);
    if (!r->to->whole)
        scale_rows(c, rows, sums, part ? real : r->to->real + at, part ? CODES_WIDTH : n);
    for (int64_t i = 0; i < rows && r->to->whole; i++)
        memcpy(r->to->whole + at + i * n, sums + i * CODES_WIDTH, (size_t)c->n * sizeof *sums);
    for (int64_t i = 0; i < rows && !r->to->whole && part; i++)
        memcpy(r->to->real + at + i * n, real + i * CODES_WIDTH, (size_t)c->n * sizeof *real);
}

/* Tiles lo..hi. */
static void tile_range(void *data, int64_t lo, int64_t hi)
{
    const struct integer_run *r = data;
    int32_t sums[CODES_WHOLE_ROWS * CODES_WIDTH];
    for (int64_t t = lo; t < hi; t++) {
        struct columns c = columns_of(r, t);
        for (int64_t i = 0; i < r->a->m; i += r->kernel->rows) {
            int64_t rows = r->a->m - i < r->kernel->rows ? r->a->m - i : r->kernel->rows;
            r->kernel->whole(r->w, t, r->digit + i * r->w->block, (int)rows, sums, CODES_WIDTH);
            store_rows(r, &c, i, rows, sums);
        }
    }
}

void codes_sums(struct kcall *call, const struct codes *w, const struct codes_integers *a, const struct codes_result *to)
{
    struct integer_run r = {.w = w, .kernel = codes_whole_best(w, a->m), .a = a, .to = to};
    size_t digits = kcall_bytes(call, a->m, (size_t)w->block), rows = kcall_bytes(call, a->m, sizeof *r.row);
    require(w->sums);
    r.row = kenv_room(call->env, ROOM_B, digits + rows);
    r.digit = (int8_t *)(r.row + a->m);
    kenv_parallel_for(call->env, a->m, w->k, place_range, &r);
    kenv_parallel_for(call->env, (w->n + CODES_WIDTH - 1) / CODES_WIDTH, a->m * CODES_WIDTH * w->k / 64 + 1, tile_range, &r);
}
