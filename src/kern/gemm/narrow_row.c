/* narrow_row: products of a few rows of bf16 with panels of pairs. With a weight, [n / PANEL_COLUMNS][padded / 2][PANEL_COLUMNS][2], padded
 * with zeros, they take the time of reading it, so they prefetch it. */
#include "base/half.h"
#include "kern/core/core.h"
#include "kern/core/intrinsics.h"
#include "kern/gemm/gemm.h"

#include <string.h>

enum { PAIR = 2 };

static int64_t at_most(int64_t n, int64_t most)
{
    return n < most ? n : most;
}

static void plain_sums(int rows, const struct narrow_tile *t)
{
    for (int i = 0; i < rows * PANEL_COLUMNS; i++) {
        int row = i / PANEL_COLUMNS, column = i % PANEL_COLUMNS;
        float *to = t->c + row * t->c_row + column, sum = 0;
        for (int64_t l = 0; l < t->pairs * PAIR; l++)
            sum += bf16_to_f32(t->a[row * t->a_row + l]) * bf16_to_f32(t->panel[(l / PAIR * PANEL_COLUMNS + column) * PAIR + l % PAIR]);
        *to = t->more ? *to + sum : sum;
    }
}

static void plain_round(const float *from, int64_t n, uint16_t *to)
{
    convert_from_f32(DT_BF16, from, n, to);
}

#if X86
#define DOTS __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16")))
enum { LANES = 16, PARTS = PANEL_COLUMNS / LANES };

INLINE DOTS void dot_rows(int rows, const struct narrow_tile *t)
{
    __m512 sum[NARROW_ROWS][PARTS];
    const uint16_t *panel = t->panel;
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int p = 0; p < PARTS; p++)
        sum[r][p] = t->more ? _mm512_loadu_ps(t->c + r * t->c_row + p * LANES) : _mm512_setzero_ps();
    for (int64_t l = 0; l < t->pairs; l++, panel += PANEL_COLUMNS * PAIR) {
        __m512i w[PARTS];
        UNROLL for (int p = 0; p < PARTS; p++)
        {
            __builtin_prefetch((const char *)panel + t->ahead + p * 64, 0, 2);
            w[p] = _mm512_loadu_si512(panel + p * LANES * PAIR);
        }
        UNROLL for (int r = 0; r < rows; r++)
        {
            int32_t pair;
            memcpy(&pair, t->a + r * t->a_row + l * PAIR, sizeof pair);
            __m512bh x = (__m512bh)_mm512_set1_epi32(pair);
            UNROLL for (int p = 0; p < PARTS; p++) sum[r][p] = _mm512_dpbf16_ps(sum[r][p], x, (__m512bh)w[p]);
        }
    }
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int p = 0; p < PARTS; p++)
        _mm512_storeu_ps(t->c + r * t->c_row + p * LANES, sum[r][p]);
}

static DOTS void dot_sums(int rows, const struct narrow_tile *t)
{
    switch (rows) {
    case 1: dot_rows(1, t); break;
    case 2: dot_rows(2, t); break;
    case 3: dot_rows(3, t); break;
    case 4: dot_rows(4, t); break;
    case 5: dot_rows(5, t); break;
    case 6: dot_rows(6, t); break;
    default: bug("%d rows of a panel", rows);
    }
}

static DOTS void dot_round(const float *from, int64_t n, uint16_t *to)
{
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        _mm256_storeu_si256((__m256i *)(void *)(to + i), (__m256i)_mm512_cvtneps_pbh(_mm512_loadu_ps(from + i)));
    __mmask16 left = (__mmask16)((1U << (n - i)) - 1);
    if (left)
        _mm256_mask_storeu_epi16(to + i, left, (__m256i)_mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(left, from + i)));
}
#endif

const struct narrow_row_kernel narrow_row_kernels[] = {
#if X86
    {ISA_AVX512_BF16, dot_sums, dot_round},
#endif
    {ISA_PLAIN, plain_sums, plain_round},
};

ISA_BEST(narrow_row_best, narrow_row_kernel, narrow_row_kernels)

enum {
    PART_PAIRS = 64, /* what the L1 cache keeps for the next group of rows */
    AHEAD = 2048     /* bytes of the panel, for a single group */
};

/* sums[m][PANEL_COLUMNS] of one panel, one group of rows after another. Prefetches the next block while all groups use one. */
static void panel_sums(const struct narrow_row *p, const uint16_t *panel, float *sums)
{
    int64_t groups = (p->m + NARROW_GROUP - 1) / NARROW_GROUP, each = (p->m + groups - 1) / groups, width = PANEL_COLUMNS * PAIR;
    int64_t stretch = groups == 1 ? p->pairs : PART_PAIRS, ahead = groups == 1 ? AHEAD : PART_PAIRS * width * (int64_t)sizeof *panel;
    if (p->pairs == 0)
        memset(sums, 0, (size_t)(p->m * PANEL_COLUMNS) * sizeof *sums);
    for (int64_t from = 0; from < p->pairs; from += stretch)
        for (int64_t r = 0; r < p->m; r += each) {
            const uint16_t *a = p->a + (r * p->pairs + from) * PAIR;
            narrow_row_best()->sums((int)at_most(p->m - r, each),
                                    &(struct narrow_tile){at_most(p->pairs - from, stretch), a, p->pairs * PAIR, panel + from * width,
                                                          sums + r * PANEL_COLUMNS, PANEL_COLUMNS, from > 0, ahead});
        }
}

/* Panels lo..hi. */
static void panel_range(void *data, int64_t lo, int64_t hi)
{
    const struct narrow_row *p = data;
    float sums[NARROW_FEW_ROWS * PANEL_COLUMNS];
    for (int64_t from = lo * PANEL_COLUMNS; from < hi * PANEL_COLUMNS && from < p->n; from += PANEL_COLUMNS) {
        int64_t count = at_most(p->n - from, PANEL_COLUMNS);
        panel_sums(p, p->w + from * p->padded, sums);
        for (int64_t i = 0; i < p->m; i++)
            for (int64_t j = 0; j < count; j++)
                p->c[i * p->n + from + j] = sums[i * PANEL_COLUMNS + j] + (p->bias ? p->bias[from + j] : 0);
    }
}

void narrow_row_product(struct kenv *env, struct narrow_row *p)
{
    kenv_parallel_for(env, (p->n + PANEL_COLUMNS - 1) / PANEL_COLUMNS, PANEL_COLUMNS * p->pairs * p->m, panel_range, p);
}

/* ---- rows as bf16 -------------------------------------------------------------------------------------------------------------------- */
struct rounded {
    const struct tensor *a;
    int64_t k, width;
    uint16_t *to;
};

void narrow_stretch(const struct tensor *a, int64_t from, int64_t n, uint16_t *to)
{
    const void *at = element_at_const(a->data, dtype_size(a->dtype), from);
    float wide[CHUNK];
    if (a->dtype == DT_F32)
        narrow_row_best()->round(at, n, to);
    else if (a->dtype == DT_BF16)
        memcpy(to, at, (size_t)n * sizeof *to);
    else
        for (int64_t i = 0, part; i < n; i += part) {
            part = at_most(n - i, CHUNK);
            convert_to_f32(a->dtype, element_at_const(at, dtype_size(a->dtype), i), part, wide);
            narrow_row_best()->round(wide, part, to + i);
        }
}

/* Rows lo..hi. */
static void round_range(void *data, int64_t lo, int64_t hi)
{
    const struct rounded *r = data;
    for (int64_t i = lo; i < hi; i++) {
        uint16_t *to = r->to + i * r->width;
        narrow_stretch(r->a, i * r->k, r->k, to);
        memset(to + r->k, 0, (size_t)(r->width - r->k) * sizeof *to);
    }
}

/* ---- weights in panels --------------------------------------------------------------------------------------------------------------- */
enum { BESIDE = 8, STRETCH = 64 /* elements of k that are rounded before the transposition */ };
struct panelled {
    const struct tensor *w;
    int64_t n, k, padded;
    bool transposed;
    uint16_t *to;
};

SIMD void narrow_join_pairs(const uint16_t *a, const uint16_t *b, int64_t n, uint16_t *to)
{
    LOOP for (int64_t i = 0; i < n; i++)
    {
        to[PAIR * i] = a[i];
        to[PAIR * i + 1] = b[i];
    }
}

/* For a weight in rows of k: `count` columns of two rows at a time, for several panels, so that memory is read in long pieces. */
static void panels_of_rows(const struct panelled *p, int64_t column, int64_t count, uint16_t *to)
{
    uint16_t row[PAIR][BESIDE * PANEL_COLUMNS];
    for (int64_t l = 0; l < p->k; l += PAIR, to += PANEL_COLUMNS * PAIR) {
        memset(row[1], 0, sizeof row[1]);
        for (int64_t i = 0; i < PAIR && l + i < p->k; i++)
            narrow_stretch(p->w, (l + i) * p->n + column, count, row[i]);
        for (int64_t j = 0; j < count; j += PANEL_COLUMNS)
            narrow_join_pairs(row[0] + j, row[1] + j, at_most(count - j, PANEL_COLUMNS), to + j * p->padded);
    }
}

/* For a weight in columns: a block of each column. */
static void panel_of_columns(const struct panelled *p, int64_t column, int64_t count, uint16_t *to)
{
    uint16_t rows[PANEL_COLUMNS * STRETCH];
    for (int64_t l = 0; l < p->k; l += STRETCH, to += STRETCH * PANEL_COLUMNS) {
        int64_t depth = at_most(p->k - l, STRETCH);
        for (int64_t j = 0; j < count; j++) {
            narrow_stretch(p->w, (column + j) * p->k + l, depth, rows + j * STRETCH);
            if (depth % PAIR)
                rows[j * STRETCH + depth] = 0;
        }
        transpose_words(count, (depth + 1) / PAIR, rows, STRETCH / PAIR, to, PANEL_COLUMNS);
    }
}

/* Fills the rest of the panel that starts with this column with zeros. */
static void clear_rest(const struct panelled *p, int64_t column)
{
    uint16_t *panel = p->to + column * p->padded;
    int64_t filled = p->n - column < PANEL_COLUMNS ? 0 : (p->k + 1) / PAIR * PAIR;
    memset(panel + filled * PANEL_COLUMNS, 0, (size_t)((p->padded - filled) * PANEL_COLUMNS) * sizeof *panel);
}

/* Panels lo..hi. */
static void pack_range(void *data, int64_t lo, int64_t hi)
{
    const struct panelled *p = data;
    int64_t end = at_most(hi * PANEL_COLUMNS, p->n), step = (p->transposed ? 1 : BESIDE) * PANEL_COLUMNS;
    for (int64_t column = lo * PANEL_COLUMNS; column < end; column += PANEL_COLUMNS)
        clear_rest(p, column);
    for (int64_t column = lo * PANEL_COLUMNS; column < end; column += step)
        (p->transposed ? panel_of_columns : panels_of_rows)(p, column, at_most(end - column, step), p->to + column * p->padded);
}

void narrow_panels(struct kenv *env, const struct tensor *w, int64_t n, int64_t k, bool transposed, int64_t padded, uint16_t *to)
{
    struct panelled p = {w, n, k, padded, transposed, to};
    kenv_parallel_for(env, (n + PANEL_COLUMNS - 1) / PANEL_COLUMNS, PANEL_COLUMNS * k, pack_range, &p);
}

/* ---- rows ---------------------------------------------------------------------------------------------------------------------------- */

const uint16_t *narrow_rows(struct kenv *env, const struct tensor *a, int64_t m, int64_t k, int64_t width)
{
    if (a->dtype == DT_BF16 && width == k)
        return a->data;
    struct rounded r = {a, k, width, kenv_room(env, ROOM_NARROW, (size_t)(m * width) * sizeof(uint16_t))};
    kenv_parallel_for(env, m, k, round_range, &r);
    return r.to;
}
