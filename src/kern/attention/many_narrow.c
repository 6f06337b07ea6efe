/* many_narrow: bf16 products in attention of prompts. Queries, keys, values and exponentials are rounded; sums are float32. A stripe is a
 * few rows, multiplied by gemm/narrow_row.c, or the rows of two tiles if the processor has tile registers. */
#include "kern/attention/many_rows.h"
#include "kern/gemm/gemm.h"

#include <string.h>

_Static_assert((int)TILE_ROWS <= (int)NARROW_ROWS && (int)TILE == (int)NARROW_TILE_DEPTH, "a stripe is multiplied at once");
enum { GROUP = NARROW_TILE_ROWS, STEP = NARROW_TILE_DEPTH };

/* ---- keys, values and queries ------------------------------------------------------------------------------------------------ */

/* n keys or values as bf16, [n, width], padded with zeros after size; in place if they have this form. *step: row stride. */
static const uint16_t *rounded_rows(const struct unit *u, const struct head_rows *h, int64_t from, int64_t n, int64_t size, int64_t width,
                                    int64_t *step)
{
    bool lies_so = h->dtype == DT_BF16 && width == size && h->row % 2 == 0;
    int64_t apart;
    *step = lies_so ? h->row : width;
    if (lies_so)
        return head_rows_at(h, u->b, u->kv, from);
    const float *wide = attention_widened(h, u->b, u->kv, from, n, size, u->room, &apart);
    for (int64_t i = 0; i < n; i++) {
        narrow_row_best()->round(wide + i * apart, size, u->rounded + i * width);
        memset(u->rounded + i * width + size, 0, (size_t)(width - size) * sizeof *u->rounded);
    }
    return u->rounded;
}

void many_narrow_keys(const struct unit *u, int64_t from, int64_t n)
{
    int64_t step, width = 2 * u->pairs;
    const uint16_t *key = rounded_rows(u, &u->a->k, from, n, u->a->size, width, &step);
    for (int64_t j = 0; j < n; j += PANEL_COLUMNS) {
        uint16_t *panel = u->narrow_keys + j * width;
        if (n - j < PANEL_COLUMNS)
            memset(panel, 0, (size_t)(PANEL_COLUMNS * width) * sizeof *panel);
        transpose_words(n - j < PANEL_COLUMNS ? n - j : PANEL_COLUMNS, u->pairs, key + j * step, step / 2, panel, PANEL_COLUMNS);
    }
}

/* Values of keys that no row of the unit sees, and of those beyond n in a step, are 0, because their probabilities are. */
void many_narrow_values(const struct unit *u, int64_t from, int64_t n)
{
    static const uint16_t none[PANEL_COLUMNS];
    int64_t step, size = u->a->value_size, seen = u->lo > from ? u->lo - from : 0;
    const uint16_t *value = rounded_rows(u, &u->a->v, from, n, size, size, &step);
    for (int64_t column = 0; column < size; column += PANEL_COLUMNS)
        for (int64_t j = 0; j < (n + STEP - 1) / STEP * STEP; j += 2) {
            int64_t count = size - column < PANEL_COLUMNS ? size - column : PANEL_COLUMNS;
            uint16_t *to = u->narrow_values + column * KEYS + j * PANEL_COLUMNS;
            memset(to + 2 * count, 0, (size_t)(PANEL_COLUMNS - count) * 2 * sizeof *to);
            narrow_join_pairs(j >= seen && j < n ? value + j * step + column : none,
                              j + 1 >= seen && j + 1 < n ? value + (j + 1) * step + column : none, count, to);
        }
}

void many_narrow_queries(const struct unit *u, const struct stripe *s)
{
    const struct attention_core *a = u->a;
    const float *q = head_rows_at(&a->q, u->b, s->h, s->first);
    int64_t width = 2 * u->pairs;
    for (int64_t r = 0; r < s->rows; r++, q += a->q.row) {
        uint16_t *to = s->query + r * width;
        if (u->tiles) {
            narrow_part_best()->place(q, a->size, width, s->query + r / GROUP * width * GROUP + r % GROUP * STEP);
            continue;
        }
        narrow_row_best()->round(q, a->size, to);
        memset(to + a->size, 0, (size_t)(width - a->size) * sizeof *to);
    }
}

/* ---- a few rows -------------------------------------------------------------------------------------------------------------- */

static void rows_scores(const struct unit *u, const struct stripe *s, int64_t from, int64_t to)
{
    const struct narrow_row_kernel *kernel = narrow_row_best();
    for (int64_t j = from / PANEL_COLUMNS * PANEL_COLUMNS; j < to; j += PANEL_COLUMNS)
        kernel->sums(
            s->rows,
            &(struct narrow_tile){u->pairs, s->query, 2 * u->pairs, u->narrow_keys + j * 2 * u->pairs, u->scores + j, KEYS, false, 0});
}

/* The part of a pair before `from` or after `to` has probability or value 0. */
static void rows_values(const struct unit *u, const struct stripe *s, int64_t from, int64_t to)
{
    const struct narrow_row_kernel *kernel = narrow_row_best();
    from = from / 2 * 2;
    to = (to + 1) / 2 * 2;
    for (int r = 0; r < s->rows; r++)
        kernel->round(u->scores + r * KEYS + from, to - from, u->shares + r * KEYS + from);
    for (int64_t column = 0; column < u->wide; column += PANEL_COLUMNS)
        kernel->sums(s->rows,
                     &(struct narrow_tile){(to - from) / 2, u->shares + from, KEYS, u->narrow_values + column * KEYS + from * PANEL_COLUMNS,
                                           s->out + column, u->width, true, 0});
}

/* ---- in tiles ---------------------------------------------------------------------------------------------------------------- */
static void tile_scores(const struct unit *u, const struct stripe *s, int64_t from, int64_t to)
{
    int64_t start = from / PANEL_COLUMNS * PANEL_COLUMNS, steps = 2 * u->pairs / STEP;
    narrow_part_best()->product(&(struct narrow_part){.rows = (s->rows + GROUP - 1) / GROUP * GROUP,
                                                      .columns = (to - start + PANEL_COLUMNS - 1) / PANEL_COLUMNS * PANEL_COLUMNS,
                                                      .steps = steps,
                                                      .a = s->query,
                                                      .a_group = steps * GROUP * STEP,
                                                      .panel = u->narrow_keys + start * 2 * u->pairs,
                                                      .panels_apart = PANEL_COLUMNS * 2 * u->pairs,
                                                      .c = u->scores + start,
                                                      .c_row = KEYS});
}

static void tile_values(const struct unit *u, const struct stripe *s, int64_t from, int64_t to)
{
    int64_t start = from / STEP * STEP, steps = (to - start + STEP - 1) / STEP;
    uint16_t *shares = u->shares + start * GROUP;
    for (int64_t r = 0; r < s->rows; r++)
        narrow_part_best()->place(u->scores + r * KEYS + start, steps * STEP, steps * STEP,
                                  shares + r / GROUP * KEYS * GROUP + r % GROUP * STEP);
    narrow_part_best()->product(&(struct narrow_part){.rows = s->rows,
                                                      .columns = u->wide,
                                                      .steps = steps,
                                                      .a = shares,
                                                      .a_group = KEYS * GROUP,
                                                      .panel = u->narrow_values + start * PANEL_COLUMNS,
                                                      .panels_apart = PANEL_COLUMNS * KEYS,
                                                      .more = true,
                                                      .c = s->out,
                                                      .c_row = u->width});
}

void many_narrow_scores(const struct unit *u, const struct stripe *s, int64_t from, int64_t to)
{
    (u->tiles ? tile_scores : rows_scores)(u, s, from, to);
}

void many_narrow_add(const struct unit *u, const struct stripe *s, int64_t from, int64_t to)
{
    (u->tiles ? tile_values : rows_values)(u, s, from, to);
}
