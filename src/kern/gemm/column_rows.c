/* column_rows: a few rows times a column-major f32 matrix. Columns are multiplied with all rows while they are in the cache, so the product
 * takes the time of reading the matrix once. Each sum is computed as for one row alone, bit for bit. */
#include "kern/core/core.h"
#include "kern/gemm/gemm.h"

#include <string.h>

enum { LANES = 16, COLUMNS = 4, ROWS = 4 };
typedef float lanes __attribute__((vector_size(LANES * sizeof(float))));

INLINE void read_lanes(const float *x, int64_t n, lanes *v)
{
    *v = (lanes){0};
    memcpy(v, x, (size_t)n * sizeof *x);
}

static float sum_of(const lanes *v)
{
    float x[LANES];
    memcpy(x, v, sizeof x);
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            x[i] += x[i + half];
    return x[0];
}

struct column_tile {
    const float *a[ROWS], *w[COLUMNS];
    int64_t k, ahead; /* ahead: elements of a column from here to the next tile's */
    lanes sum[ROWS][COLUMNS];
};

INLINE void add_products(int rows, const struct column_tile *t, int64_t i, int64_t n, lanes sum[ROWS][COLUMNS])
{
    lanes w[COLUMNS];
    UNROLL for (int j = 0; j < COLUMNS; j++)
    {
        read_lanes(t->w[j] + i, n, &w[j]);
        __builtin_prefetch(t->w[j] + i + t->ahead, 0, 2);
    }
    UNROLL for (int r = 0; r < rows; r++)
    {
        lanes a;
        read_lanes(t->a[r] + i, n, &a);
        UNROLL for (int j = 0; j < COLUMNS; j++) sum[r][j] += a * w[j];
    }
}

INLINE void multiply_tile(int rows, struct column_tile *t)
{
    lanes sum[ROWS][COLUMNS] = {0};
    int64_t whole = t->k / LANES * LANES;
    for (int64_t i = 0; i < whole; i += LANES)
        add_products(rows, t, i, LANES, sum);
    if (whole < t->k)
        add_products(rows, t, whole, t->k - whole, sum);
    memcpy(t->sum, sum, sizeof sum);
}

static SIMD void multiply(int rows, struct column_tile *t)
{
    switch (rows) {
    case 1: multiply_tile(1, t); break;
    case 2: multiply_tile(2, t); break;
    case 3: multiply_tile(3, t); break;
    default: multiply_tile(4, t);
    }
}

/* Rows of a tile of columns, from row r on. */
static void row_group(const struct column_rows *p, struct column_tile *t, int64_t from, int64_t count, int64_t r)
{
    int rows = (int)(p->m - r < ROWS ? p->m - r : ROWS);
    for (int i = 0; i < rows; i++)
        t->a[i] = p->a + (r + i) * p->k;
    multiply(rows, t);
    for (int i = 0; i < rows; i++)
        for (int64_t j = 0; j < count; j++)
            p->c[(r + i) * p->stride + from + j] = sum_of(&t->sum[i][j]);
}

/* The last tile may have fewer columns: its first column fills it. */
void column_rows_product(const struct column_rows *p)
{
    struct column_tile t = {.k = p->k, .ahead = COLUMNS * p->k};
    for (int64_t from = 0; from < p->count; from += COLUMNS) {
        int64_t count = p->count - from < COLUMNS ? p->count - from : COLUMNS;
        for (int j = 0; j < COLUMNS; j++)
            t.w[j] = p->w + (from + (j < count ? j : 0)) * p->k;
        for (int64_t r = 0; r < p->m; r += ROWS)
            row_group(p, &t, from, count, r);
    }
}
