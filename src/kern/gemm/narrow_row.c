/* narrow_row: products of a few rows with a weight of bf16 in panels of pairs, [n / PANEL_COLUMNS][padded / 2][PANEL_COLUMNS][2], filled up
 * with zeros. They take the time of reading the weight, so they ask for it ahead. */
#include "base/half.h"
#include "kern/core/core.h"
#include "kern/core/intrinsics.h"
#include "kern/gemm/gemm.h"

#include <string.h>

enum { PAIR = 2 };

static void plain_sums(int rows, int64_t pairs, const uint16_t *a, int64_t step, const uint16_t *panel, float *sums)
{
    memset(sums, 0, (size_t)rows * PANEL_COLUMNS * sizeof *sums);
    for (int64_t l = 0; l < pairs * PAIR; l++)
        for (int r = 0; r < rows; r++)
            for (int j = 0; j < PANEL_COLUMNS; j++)
                sums[r * PANEL_COLUMNS + j] += bf16_to_f32(a[r * step + l]) *
                    bf16_to_f32(panel[(l / PAIR * PANEL_COLUMNS + j) * PAIR + l % PAIR]);
}

#if X86
#define DOTS __attribute__((target("avx512f,avx512bf16")))
enum { LANES = 16, PARTS = PANEL_COLUMNS / LANES, AHEAD = 2048 };

INLINE DOTS void dot_rows(int rows, int64_t pairs, const uint16_t *a, int64_t step, const uint16_t *panel, float *sums)
{
    __m512 sum[NARROW_FEW_ROWS][PARTS];
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int p = 0; p < PARTS; p++) sum[r][p] = _mm512_setzero_ps();
    for (int64_t l = 0; l < pairs; l++, panel += PANEL_COLUMNS * PAIR) {
        __m512i w[PARTS];
        UNROLL for (int p = 0; p < PARTS; p++)
        {
            __builtin_prefetch((const char *)panel + AHEAD + p * 64, 0, 2);
            w[p] = _mm512_loadu_si512(panel + p * LANES * PAIR);
        }
        UNROLL for (int r = 0; r < rows; r++)
        {
            int32_t pair;
            memcpy(&pair, a + r * step + l * PAIR, sizeof pair);
            __m512bh x = (__m512bh)_mm512_set1_epi32(pair);
            UNROLL for (int p = 0; p < PARTS; p++) sum[r][p] = _mm512_dpbf16_ps(sum[r][p], x, (__m512bh)w[p]);
        }
    }
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int p = 0; p < PARTS; p++)
        _mm512_storeu_ps(sums + r * PANEL_COLUMNS + p * LANES, sum[r][p]);
}

static DOTS void dot_sums(int rows, int64_t pairs, const uint16_t *a, int64_t step, const uint16_t *panel, float *sums)
{
    switch (rows) {
    case 1: dot_rows(1, pairs, a, step, panel, sums); break;
    case 2: dot_rows(2, pairs, a, step, panel, sums); break;
    case 3: dot_rows(3, pairs, a, step, panel, sums); break;
    case 4: dot_rows(4, pairs, a, step, panel, sums); break;
    default: bug("%d rows of a panel", rows);
    }
}
#endif

const struct narrow_row_kernel narrow_row_kernels[] = {
#if X86
    {ISA_AVX512_BF16, dot_sums},
#endif
    {ISA_PLAIN, plain_sums},
};

ISA_BEST(narrow_row_best, narrow_row_kernel, narrow_row_kernels)

/* Panels lo..hi. */
static void panel_range(void *data, int64_t lo, int64_t hi)
{
    const struct narrow_row *p = data;
    const struct narrow_row_kernel *kernel = narrow_row_best();
    float sums[NARROW_FEW_ROWS * PANEL_COLUMNS];
    for (int64_t from = lo * PANEL_COLUMNS; from < hi * PANEL_COLUMNS && from < p->n; from += PANEL_COLUMNS) {
        int64_t count = p->n - from < PANEL_COLUMNS ? p->n - from : PANEL_COLUMNS;
        kernel->sums((int)p->m, p->pairs, p->a, p->pairs * PAIR, p->w + from * p->padded, sums);
        for (int64_t i = 0; i < p->m; i++)
            for (int64_t j = 0; j < count; j++)
                p->c[i * p->n + from + j] = sums[i * PANEL_COLUMNS + j] + (p->bias ? p->bias[from + j] : 0);
    }
}

void narrow_row_product(struct kenv *env, struct narrow_row *p)
{
    kenv_parallel_for(env, (p->n + PANEL_COLUMNS - 1) / PANEL_COLUMNS, PANEL_COLUMNS * p->pairs, panel_range, p);
}

/* ---- rows as bf16 -------------------------------------------------------------------------------------------------------------------- */
struct rounded {
    const struct tensor *a;
    int64_t k, width;
    uint16_t *to;
};

/* Numbers from.. from + n of the operand. */
static void round_stretch(const struct tensor *a, int64_t from, int64_t n, uint16_t *to)
{
    const void *at = element_at_const(a->data, dtype_size(a->dtype), from);
    float wide[CHUNK];
    if (a->dtype == DT_F32)
        convert_from_f32(DT_BF16, at, n, to);
    else if (a->dtype == DT_BF16)
        memcpy(to, at, (size_t)n * sizeof *to);
    else
        for (int64_t i = 0, part; i < n; i += part) {
            part = n - i < CHUNK ? n - i : CHUNK;
            convert_to_f32(a->dtype, element_at_const(at, dtype_size(a->dtype), i), part, wide);
            convert_from_f32(DT_BF16, wide, part, to + i);
        }
}

/* Rows lo..hi. */
static void round_range(void *data, int64_t lo, int64_t hi)
{
    const struct rounded *r = data;
    for (int64_t i = lo; i < hi; i++) {
        uint16_t *to = r->to + i * r->width;
        round_stretch(r->a, i * r->k, r->k, to);
        memset(to + r->k, 0, (size_t)(r->width - r->k) * sizeof *to);
    }
}

const uint16_t *narrow_rows(struct kenv *env, const struct tensor *a, int64_t m, int64_t k, int64_t width)
{
    if (a->dtype == DT_BF16 && width == k)
        return a->data;
    struct rounded r = {a, k, width, kenv_room(env, ROOM_NARROW, (size_t)(m * width) * sizeof(uint16_t))};
    kenv_parallel_for(env, m, k, round_range, &r);
    return r.to;
}
