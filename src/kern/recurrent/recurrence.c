/* recurrence: one step of a recurrent net: what the hidden units of the step before add to the gates. */
#include "kern/recurrent/recurrent.h"

#include <string.h>

int64_t recurrence_columns(const struct recurrence *r)
{
    return r->cell->gates * r->own;
}

static void add_integers(const struct recurrence *r, int d, int64_t rows, const float *const *h, float *const *to, int8_t *digits)
{
    const struct codes *w = r->codes[d];
    struct rounding rounding = rounding_of(rows, r->hidden, h);
    for (int64_t i = 0; i < rows; i++)
        rounding_digits(rounding, r->hidden, integers_row(w), h[i], digits + i * integers_row(w));
    integers_product(w, rows, digits, (int)rounding.zero, rounding.scale, r->r_scale + d * recurrence_columns(r), to);
}

void recurrence_add(const struct recurrence *r, int d, int part, int64_t rows, const float *const *h, float *const *to, float *room)
{
    const struct tiles *w = &r->r[d][part];
    if (r->codes[d]) {
        require(r->cell->parts == 1);
        add_integers(r, d, rows, h, to, (int8_t *)room);
        return;
    }
    if (!r->quantized) {
        tiles_product(w, rows, h, to);
        return;
    }
    const float **a = (const float **)(void *)room, *scale = r->r_scale + d * recurrence_columns(r) + part * r->cell->split * r->own;
    float **sum = (float **)(void *)(room + rows * ROW_POINTER), *each = room + 2 * rows * ROW_POINTER;
    struct rounding rounding = rounding_of(rows, w->k, h);
    memset(each, 0, (size_t)(rows * (w->k + w->n)) * sizeof *each);
    for (int64_t i = 0; i < rows; i++, each += w->k + w->n) {
        rounding_apply(rounding, w->k, h[i], each);
        a[i] = each;
        sum[i] = each + w->k;
    }
    tiles_product(w, rows, a, sum);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < w->n; j++)
            to[i][j] += sum[i][j] * (rounding.scale * scale[j]);
}

void recurrence_gather(const struct recurrence *r, int64_t rows, const float *const *own, float *const *all)
{
    const struct units *units = r->call->units;
    if (units && rows > 0)
        units->gather(units, rows, own, all);
}
