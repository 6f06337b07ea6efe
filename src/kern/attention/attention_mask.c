/* attention_mask: the keys that a row of attention sees, by causality, window, length, and a mask of booleans or addends. */
#include "kern/attention/attention.h"
#include "kern/core/core.h"

#include <float.h>
#include <math.h>

#define MASKED -1e37f /* a key with a bias not above it has probability 0 if another key's bias is above it */

void attention_visible(const struct attention_core *a, int64_t b, int64_t i, int64_t *lo, int64_t *hi)
{
    *lo = 0;
    *hi = a->limit ? a->limit[b] : a->keys;
    int64_t edge = i + (a->offset ? a->offset[b] : 0) + 1;
    if (a->causal && edge < *hi)
        *hi = edge;
    if (a->window >= 0 && edge - a->window > 0)
        *lo = edge - a->window;
    if (*hi > a->keys)
        *hi = a->keys;
    if (*hi < 0)
        *hi = 0;
    if (*lo > *hi)
        *lo = *hi;
}

/* Of the keys that a row sees without a mask, those that the mask covers. */
static void mask_span(const struct attention_core *a, int64_t b, int64_t i, int64_t *lo, int64_t *hi)
{
    attention_visible(a, b, i, lo, hi);
    if ((a->allowed || a->bias) && *hi > a->mask_keys)
        *hi = a->mask_keys > *lo ? a->mask_keys : *lo;
}

static int64_t mask_at(const struct attention_core *a, int64_t b, int64_t h, int64_t i, int64_t j)
{
    return b * a->mask_step[0] + h * a->mask_step[1] + i * a->mask_step[2] + j * a->mask_step[3];
}

/* ---- keys that a mask keeps ------------------------------------------------------------------------------------------------------- */

static bool leaves(const struct attention_core *a, int64_t at)
{
    return a->allowed ? a->allowed[at] : !(a->bias[at] <= MASKED);
}

static SIMD bool leaves_any(const struct attention_core *a, int64_t at, int64_t n)
{
    int any = 0;
    if (a->allowed) {
        const uint8_t *allowed = a->allowed + at;
        _Pragma("omp simd reduction(|:any)") for (int64_t j = 0; j < n; j++) any |= allowed[j];
        return any;
    }
    const float *bias = a->bias + at;
    _Pragma("omp simd reduction(|:any)") for (int64_t j = 0; j < n; j++) any |= !(bias[j] <= MASKED);
    return any;
}

/* Shrinks [lo, hi) at both ends by masked keys, maybe not all of them; an empty range if all are masked. */
static void unmasked_span(const struct attention_core *a, int64_t row, int64_t *lo, int64_t *hi)
{
    enum { STRIDE = 32 };
    for (int64_t n; *hi > *lo && !leaves(a, row + *hi - 1); *hi -= n) {
        n = *hi - *lo < STRIDE ? *hi - *lo : STRIDE;
        if (leaves_any(a, row + *hi - n, n))
            break;
    }
    for (int64_t n; *hi > *lo && !leaves(a, row + *lo); *lo += n) {
        n = *hi - *lo < STRIDE ? *hi - *lo : STRIDE;
        if (leaves_any(a, row + *lo, n))
            break;
    }
}

void attention_seen(const struct attention_core *a, int64_t b, int64_t h, int64_t first, int64_t rows, int64_t *lo, int64_t *hi)
{
    int64_t all_lo, all_hi;
    bool trims = (a->allowed || a->bias) && a->mask_step[3] == 1;
    attention_visible(a, b, first, lo, &all_hi);
    attention_visible(a, b, first + rows - 1, &all_lo, hi);
    all_lo = *hi;
    all_hi = *lo;
    for (int64_t i = first; trims && i < first + rows; i++) {
        int64_t from, to;
        mask_span(a, b, i, &from, &to);
        unmasked_span(a, mask_at(a, b, h, i, 0), &from, &to);
        if (from == to && a->bias)
            return;
        all_lo = from < to && from < all_lo ? from : all_lo;
        all_hi = from < to && to > all_hi ? to : all_hi;
    }
    if (trims) {
        *hi = all_hi;
        *lo = all_lo < all_hi ? all_lo : all_hi;
    }
}

/* ---- masking ------------------------------------------------------------------------------------------------------------------------ */

/* s += bias; true if some bias is above -inf. */
static SIMD bool add_score_bias(float *s, const float *bias, int64_t step, int64_t n)
{
    int any = 0;
    if (step == 1) {
        _Pragma("omp simd reduction(|:any)") for (int64_t j = 0; j < n; j++)
        {
            s[j] += bias[j];
            any |= !(bias[j] < -FLT_MAX);
        }
        return any;
    }
    for (int64_t j = 0; j < n; j++) {
        s[j] += bias[j * step];
        any |= !(bias[j * step] < -FLT_MAX);
    }
    return any;
}

bool attention_mask(const struct attention_core *a, int64_t b, int64_t h, int64_t i, int64_t from, int64_t n, float *s)
{
    int64_t lo, hi;
    bool any = false;
    mask_span(a, b, i, &lo, &hi);
    lo = lo > from ? lo < from + n ? lo - from : n : 0;
    hi = hi > from + n ? n : hi > from + lo ? hi - from : lo;
    for (int64_t j = 0; j < lo; j++)
        s[j] = -INFINITY;
    for (int64_t j = hi; j < n; j++)
        s[j] = -INFINITY;
    if (!a->allowed && !a->bias)
        return hi > lo;
    int64_t mask = mask_at(a, b, h, i, from + lo), step = a->mask_step[3];
    for (int64_t j = lo; a->allowed && j < hi; j++) {
        bool allowed = a->allowed[mask + (j - lo) * step];
        s[j] = allowed ? s[j] : -INFINITY;
        any = any || allowed;
    }
    return a->bias ? add_score_bias(s + lo, a->bias + mask, step, hi - lo) : any;
}
