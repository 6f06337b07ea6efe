/* few_tile: the kernels of few_rows.c for one instruction set, which includes this once for each. It defines:
 *   FEW(name), TARGET     a name and the attribute of a function for the instruction set
 *   vec, LANES, DOTS      a register of floats, its numbers, and how many dots are summed together
 *   VECTORS(queries)      registers of a row that are summed together
 *   CHAINS                sums of a dot, so that multiply-adds need not wait for each other
 *   FEW(load), FEW(set), FEW(fma), FEW(mul), FEW(store), FEW(sum_each)
 * A tile keeps all its sums in registers: a number of a row is widened once for up to FEW_QUERIES queries. */

/* Loads elements i + more .. of a row; they must not cross a block of CODED_BLOCK elements, which holds if i is a multiple of it. */
INLINE TARGET vec FEW(load_row)(enum dtype type, const char *row, int64_t i, int more, int64_t n)
{
    return FEW(load)(type, row + (size_t)(i + more) * bytes_of(type), scale_at(type, row, n, i / CODED_BLOCK + more / CODED_BLOCK));
}

/* Loads elements i.. of a row, fewer than LANES, padded with zeros. */
INLINE TARGET vec FEW(load_part)(enum dtype type, const char *row, int64_t i, int64_t n)
{
    char part[LANES * sizeof(float)] = {0};
    memcpy(part, row + (size_t)i * bytes_of(type), (size_t)(n - i) * bytes_of(type));
    return FEW(load)(type, part, scale_at(type, row, n, i / CODED_BLOCK));
}

/* sum[query][row][chain] += the products of elements i.. of both, in `vectors` registers. */
INLINE TARGET void FEW(products)(enum dtype type, int queries, int rows, int vectors, const float *const *query, const char *const *row,
                                 int64_t i, int64_t n, vec *sum)
{
    UNROLL for (int v = 0; v < vectors; v++)
    {
        vec x[FEW_QUERIES];
        UNROLL for (int q = 0; q < queries; q++) x[q] = FEW(load_row)(DT_F32, (const char *)query[q], i, v * LANES, n);
        UNROLL for (int r = 0; r < rows; r++)
        {
            vec y = FEW(load_row)(type, row[r], i, v * LANES, n);
            UNROLL for (int q = 0; q < queries; q++)
            {
                vec *to = &sum[(q * rows + r) * CHAINS + v % CHAINS];
                *to = FEW(fma)(x[q], y, *to);
            }
        }
    }
}

INLINE TARGET void FEW(last_products)(enum dtype type, int queries, int rows, const float *const *query, const char *const *row, int64_t i,
                                      int64_t n, vec *sum)
{
    vec x[FEW_QUERIES];
    UNROLL for (int q = 0; q < queries; q++) x[q] = FEW(load_part)(DT_F32, (const char *)query[q], i, n);
    UNROLL for (int r = 0; r < rows; r++)
    {
        vec y = FEW(load_part)(type, row[r], i, n);
        UNROLL for (int q = 0; q < queries; q++)
        {
            vec *to = &sum[(q * rows + r) * CHAINS];
            *to = FEW(fma)(x[q], y, *to);
        }
    }
}

/* to[query][row]: products, still to be summed over lanes. */
INLINE TARGET void FEW(lanes)(enum dtype type, int queries, int rows, const float *const *query, const char *const *row, int64_t n, vec *to)
{
    vec sum[DOTS * CHAINS];
    int64_t i = 0;
    UNROLL for (int d = 0; d < queries * rows * CHAINS; d++) sum[d] = FEW(set)(0);
    for (; i + CODED_BLOCK <= n; i += CODED_BLOCK)
        FEW(products)(type, queries, rows, CODED_BLOCK / LANES, query, row, i, n, sum);
    for (; i + LANES <= n; i += LANES)
        FEW(products)(type, queries, rows, 1, query, row, i, n, sum);
    if (i < n)
        FEW(last_products)(type, queries, rows, query, row, i, n, sum);
    UNROLL for (int d = 0; d < queries * rows; d++)
    {
        to[d] = sum[d * CHAINS];
        UNROLL for (int c = 1; c < CHAINS; c++) to[d] += sum[d * CHAINS + c];
    }
}

/* DOTS dot products of queries with rows: dots[query][row]. Rows that only one query reads are processed one by one, in memory order. */
INLINE TARGET void FEW(dots)(enum dtype type, int queries, const float *const *query, const char *const *row, int64_t n, float scale,
                             float *dots)
{
    vec sum[DOTS];
    if (queries > 1)
        FEW(lanes)(type, queries, DOTS / queries, query, row, n, sum);
    for (int r = 0; queries == 1 && r < DOTS; r++)
        FEW(lanes)(type, 1, 1, query, row + r, n, sum + r);
    FEW(store)(dots, FEW(mul)(FEW(sum_each)(sum), FEW(set)(scale)));
}

/* Prefetches a cache line of later rows: needed if several queries share the rows. Into the L2 cache: a core waits less than for the L1. */
INLINE void FEW(ask_for)(enum dtype type, int queries, const char *row, const struct few_rows *rows, int64_t i)
{
    if (type != DT_I8 && queries > 1)
        __builtin_prefetch(row + rows->count * rows->step + (size_t)i * bytes_of(type), 0, 2);
}

INLINE TARGET void FEW(scores_of)(enum dtype type, int queries, const struct few_rows *k, const float *const *query, float scale,
                                  float *const *to)
{
    int rows = DOTS / queries;
    for (int64_t j = 0; j < k->count; j += rows) {
        const char *row[DOTS];
        float dots[DOTS];
        int64_t some = k->count - j < rows ? k->count - j : rows;
        UNROLL for (int r = 0; r < rows; r++) row[r] = (const char *)k->at + (j + (r < some ? r : 0)) * k->step;
        for (int64_t r = 0; r < some; r++)
            for (int64_t i = 0; i < k->n; i += 64 / (int)bytes_of(type))
                FEW(ask_for)(type, queries, row[r], k, i);
        FEW(dots)(type, queries, query, row, k->n, scale, dots);
        UNROLL for (int q = 0; q < queries; q++) if (some == rows) /* a compile-time constant */
            memcpy(to[q] + j, dots + q * rows, (size_t)rows * sizeof *dots);
        else memcpy(to[q] + j, dots + q * rows, (size_t)some * sizeof *dots);
    }
}

/* sum[query] += weighted rows, in `vectors` registers of columns from i on. */
INLINE TARGET void FEW(sums)(enum dtype type, int queries, int vectors, const struct few_rows *v, const float *const *weight, int64_t i,
                             float *const *sum)
{
    vec all[FEW_QUERIES][8], x[8];
    UNROLL for (int q = 0; q < queries; q++) UNROLL for (int c = 0; c < vectors; c++)
        all[q][c] = FEW(load_row)(DT_F32, (const char *)sum[q], i, c * LANES, v->n);
    for (int64_t j = 0; j < v->count; j++) {
        const char *row = (const char *)v->at + j * v->step;
        UNROLL for (int c = 0; c < vectors * LANES; c += 64 / (int)bytes_of(type)) FEW(ask_for)(type, queries, row, v, i + c);
        UNROLL for (int c = 0; c < vectors; c++) x[c] = FEW(load_row)(type, row, i, c * LANES, v->n);
        UNROLL for (int q = 0; q < queries; q++)
        {
            vec w = FEW(set)(weight[q][j]);
            UNROLL for (int c = 0; c < vectors; c++) all[q][c] = FEW(fma)(w, x[c], all[q][c]);
        }
    }
    UNROLL for (int q = 0; q < queries; q++) UNROLL for (int c = 0; c < vectors; c++) FEW(store)(sum[q] + i + c * LANES, all[q][c]);
}

/* The last columns, fewer than LANES. */
INLINE TARGET void FEW(last_sums)(enum dtype type, const struct few_rows *v, const float *weight, int64_t i, float *sum)
{
    float last[LANES];
    vec all = FEW(load_part)(DT_F32, (const char *)sum, i, v->n);
    for (int64_t j = 0; j < v->count; j++)
        all = FEW(fma)(FEW(set)(weight[j]), FEW(load_part)(type, (const char *)v->at + j * v->step, i, v->n), all);
    FEW(store)(last, all);
    memcpy(sum + i, last, (size_t)(v->n - i) * sizeof *last);
}

INLINE TARGET void FEW(values_of)(enum dtype type, int queries, const struct few_rows *v, const float *const *weight, float *const *sum)
{
    int64_t i = 0;
    for (; i + VECTORS(queries) * LANES <= v->n; i += VECTORS(queries) * LANES)
        FEW(sums)(type, queries, VECTORS(queries), v, weight, i, sum);
    for (; i + LANES <= v->n; i += LANES)
        FEW(sums)(type, queries, 1, v, weight, i, sum);
    for (int q = 0; q < queries && i < v->n; q++)
        FEW(last_sums)(type, v, weight[q], i, sum[q]);
}

static TARGET void FEW(scores)(const struct few_rows *k, int queries, const float *const *query, float scale, float *const *to)
{
    CASES(FEW(scores_of), k->dtype, queries, k, query, scale, to)
}

static TARGET void FEW(values)(const struct few_rows *v, int queries, const float *const *weight, float *const *sum)
{
    CASES(FEW(values_of), v->dtype, queries, v, weight, sum)
}
