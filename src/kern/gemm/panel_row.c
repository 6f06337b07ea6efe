/* panel_row: a product of one row with a weight of f32 in panels, [n / PANEL_COLUMNS][k padded][PANEL_COLUMNS], the last one filled with
 * zeros. It takes the time of reading the weight, so it asks for the weight ahead. */
#include "kern/core/core.h"
#include "kern/gemm/gemm.h"

#include <string.h>

enum { LANES = 16, PARTS = PANEL_COLUMNS / LANES, AHEAD = 1024 / sizeof(float) };
typedef float lanes __attribute__((vector_size(LANES * sizeof(float))));

/* sum[PANEL_COLUMNS] of one panel. */
static SIMD void panel_sums(const float *w, const float *a, int64_t k, float *sums)
{
    lanes sum[PARTS] = {0}, part;
    for (int64_t i = 0; i < k; i++, w += PANEL_COLUMNS)
        _Pragma("GCC unroll 8") for (int p = 0; p < PARTS; p++)
        {
            __builtin_prefetch(w + AHEAD + p * LANES, 0, 2);
            memcpy(&part, w + p * LANES, sizeof part);
            sum[p] += a[i] * part;
        }
    memcpy(sums, sum, sizeof sum);
}

/* Panels lo..hi. */
static void panel_range(void *data, int64_t lo, int64_t hi)
{
    const struct panel_row *r = data;
    for (int64_t p = lo; p < hi; p++) {
        float sums[PANEL_COLUMNS];
        int64_t from = p * PANEL_COLUMNS, count = r->n - from < PANEL_COLUMNS ? r->n - from : PANEL_COLUMNS;
        panel_sums(r->w + from * r->padded, r->a, r->k, sums);
        for (int64_t j = 0; r->bias && j < count; j++)
            sums[j] += r->bias[from + j];
        memcpy(r->c + from, sums, (size_t)count * sizeof *sums);
    }
}

void panel_row_product(struct kenv *env, struct panel_row *r)
{
    kenv_parallel_for(env, (r->n + PANEL_COLUMNS - 1) / PANEL_COLUMNS, PANEL_COLUMNS * r->k, panel_range, r);
}
