/* panel_row: a product of a few rows with an f32 weight in panels, [n / PANEL_COLUMNS][k padded][PANEL_COLUMNS], the last one padded with
 * zeros. It takes the time of reading the weight, so it prefetches the weight. Each row has the same sums as alone, bit for bit. */
#include "kern/core/core.h"
#include "kern/core/intrinsics.h"
#include "kern/gemm/gemm.h"

#include <string.h>

enum {
    STRETCH = 64, /* of k: what the L1 cache keeps for the next group of rows */
    AHEAD = 512   /* elements of the panel, for a single group */
};

static SIMD void plain_add(int rows, const struct panel_part *t)
{
    for (int64_t i = 0; i < t->depth; i++)
        for (int r = 0; r < rows; r++)
            LOOP for (int j = 0; j < PANEL_COLUMNS; j++)
                t->sums[r * PANEL_COLUMNS + j] += t->a[i * t->rows + r] * t->w[i * PANEL_COLUMNS + j];
}

#if X86
#define FMA __attribute__((target("avx512f")))
enum { LANES = 16, PARTS = PANEL_COLUMNS / LANES };

/* All sums are in registers. */
INLINE FMA void fma_rows(int rows, const struct panel_part *t)
{
    __m512 sum[PANEL_GROUP][PARTS], part[PARTS];
    const float *w = t->w, *a = t->a;
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int p = 0; p < PARTS; p++)
        sum[r][p] = _mm512_loadu_ps(t->sums + r * PANEL_COLUMNS + p * LANES);
    for (int64_t i = 0; i < t->depth; i++, w += PANEL_COLUMNS, a += t->rows) {
        UNROLL for (int p = 0; p < PARTS; p++)
        {
            __builtin_prefetch(w + t->ahead + p * LANES, 0, 3);
            part[p] = _mm512_loadu_ps(w + p * LANES);
        }
        UNROLL for (int r = 0; r < rows; r++)
        {
            __m512 x = _mm512_set1_ps(a[r]);
            UNROLL for (int p = 0; p < PARTS; p++) sum[r][p] = _mm512_fmadd_ps(x, part[p], sum[r][p]);
        }
    }
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int p = 0; p < PARTS; p++)
        _mm512_storeu_ps(t->sums + r * PANEL_COLUMNS + p * LANES, sum[r][p]);
}

static FMA void fma_add(int rows, const struct panel_part *t)
{
    switch (rows) {
    case 1: fma_rows(1, t); break;
    case 2: fma_rows(2, t); break;
    case 3: fma_rows(3, t); break;
    case 4: fma_rows(4, t); break;
    case 5: fma_rows(5, t); break;
    case 6: fma_rows(6, t); break;
    default: bug("%d rows of a panel", rows);
    }
}
#endif

const struct panel_row_kernel panel_row_kernels[] = {
#if X86
    {ISA_AVX512, fma_add},
#endif
    {ISA_PLAIN, plain_add},
};

ISA_BEST(panel_row_best, panel_row_kernel, panel_row_kernels)

/* sums[rows][PANEL_COLUMNS] of one panel, one group of rows after another. Prefetches the next block while all groups use one. */
static void panel_sums(const struct panel_row *p, const float *panel, float *sums)
{
    int64_t groups = (p->m + PANEL_GROUP - 1) / PANEL_GROUP, each = (p->m + groups - 1) / groups, stretch = groups == 1 ? p->k : STRETCH;
    struct panel_part t = {.rows = p->m, .ahead = groups == 1 ? AHEAD : STRETCH * PANEL_COLUMNS};
    memset(sums, 0, (size_t)(p->m * PANEL_COLUMNS) * sizeof *sums);
    for (int64_t from = 0; from < p->k; from += stretch) {
        t.depth = p->k - from < stretch ? p->k - from : stretch;
        t.w = panel + from * PANEL_COLUMNS;
        for (int64_t r = 0; r < p->m; r += each) {
            t.a = p->a + from * p->m + r;
            t.sums = sums + r * PANEL_COLUMNS;
            panel_row_best()->add((int)(p->m - r < each ? p->m - r : each), &t);
        }
    }
}

/* Panels lo..hi. */
static void panel_range(void *data, int64_t lo, int64_t hi)
{
    const struct panel_row *r = data;
    float sums[PANEL_ROWS * PANEL_COLUMNS];
    for (int64_t p = lo; p < hi; p++) {
        int64_t from = p * PANEL_COLUMNS, count = r->n - from < PANEL_COLUMNS ? r->n - from : PANEL_COLUMNS;
        panel_sums(r, r->w + from * r->padded, sums);
        for (int64_t i = 0; i < r->m; i++)
            for (int64_t j = 0; j < count; j++)
                r->c[i * r->n + from + j] = sums[i * PANEL_COLUMNS + j] + (r->bias ? r->bias[from + j] : 0);
    }
}

/* Transposes the rows: long rows would map to few cache sets. */
void panel_row_product(struct kenv *env, const struct panel_row *given)
{
    struct panel_row r = *given;
    float *turned = kenv_room(env, ROOM_TURN_Q, (size_t)(r.m * r.k) * sizeof *turned);
    if (r.m > 1) {
        transpose_words(r.m, r.k, r.a, r.k, turned, r.m);
        r.a = turned;
    }
    kenv_parallel_for(env, (r.n + PANEL_COLUMNS - 1) / PANEL_COLUMNS, PANEL_COLUMNS * r.k * r.m, panel_range, &r);
}
