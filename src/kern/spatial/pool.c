/* pool: the maximum, average or p-norm of the elements in a window, per channel, in any number of spatial dimensions. A global pool is one
 * window over everything. An average counts the elements in the window, with count_include_pad also the padding.
 *
 * A tensor is [outer, spatial.., inner]: inner is 1, or the channels of channels-last data. A thread computes whole rows of the result: for
 * each tap of the other spatial dimensions, it combines a row of x along the last one with the result's row. A window over the whole
 * operand is one reduction instead. */
#include "kern/spatial/spatial.h"

#include <math.h>
#include <string.h>

struct pool {
    enum pooling how;
    bool last, count_padding, whole; /* last: channels-last; whole: one window over everything */
    int64_t p;                       /* of the norm */
    int n;
    int64_t outer, inner;
    int64_t size[MOST_SPATIAL], kernel[MOST_SPATIAL], stride[MOST_SPATIAL], dilation[MOST_SPATIAL], before[MOST_SPATIAL],
        after[MOST_SPATIAL], result[MOST_SPATIAL];
    const struct pool_type *type;
    const void *x;
    void *y;
};

/* ---- attributes ------------------------------------------------------------------------------------------------------------------ */
static void read_pads(const struct kcall *call, struct pool *p)
{
    const char *how = attr_string(call->node, "auto_pad");
    int64_t pads[2 * MOST_SPATIAL];
    bool upper = strcmp(how, "SAME_UPPER") == 0, lower = strcmp(how, "SAME_LOWER") == 0;
    if (strcmp(how, "VALID") == 0)
        memset(pads, 0, sizeof pads);
    else
        kcall_spatial(call, "pads", 2 * p->n, 0, pads);
    for (int d = 0; d < p->n; d++) {
        int64_t total = (p->result[d] - 1) * p->stride[d] + (p->kernel[d] - 1) * p->dilation[d] + 1 - p->size[d];
        total = total < 0 ? 0 : total;
        p->before[d] = upper ? total / 2 : lower ? total - total / 2 : pads[d];
        p->after[d] = upper || lower ? total - p->before[d] : pads[p->n + d];
    }
}

static void pool_begin(const struct kcall *call, struct pool *p, enum pooling how, bool last)
{
    const struct tensor *x = &call->in[0], *y = &call->out[0];
    *p = (struct pool){.how = how, .last = last, .n = x->rank - 2};
    if (p->n < 1 || y->rank != p->n + 2)
        fail("%s: expected a tensor of 3 or more dimensions, found %d", kcall_where(call), x->rank);
    if (!dtype_size(x->dtype) || (how != POOL_MAX && !dtype_is_float(x->dtype)))
        kcall_bad_type(call, x->dtype);
    int first = last ? 1 : 2;
    p->outer = tensor_dims_product(x->dim, 0, first);
    p->inner = last ? x->dim[x->rank - 1] : 1;
    memcpy(p->size, x->dim + first, (size_t)p->n * sizeof *p->size);
    memcpy(p->result, y->dim + first, (size_t)p->n * sizeof *p->result);
}

/* ---- windows that slide ------------------------------------------------------------------------------------------------------ */
/* The places of the last dimension whose tap k is inside: lo..hi. */
static void places_inside(const struct pool *p, int d, int64_t k, int64_t *lo, int64_t *hi)
{
    int64_t shift = k * p->dilation[d] - p->before[d], s = p->stride[d]; /* place i reads i * s + shift */
    *lo = shift >= 0 ? 0 : (-shift + s - 1) / s;
    *hi = shift >= p->size[d] ? 0 : (p->size[d] - 1 - shift) / s + 1;
    *hi = *hi > p->result[d] ? p->result[d] : *hi;
}

/* How many elements the window at this place counts along one dimension. */
static int64_t counted_along(const struct pool *p, int d, int64_t place)
{
    int64_t count = 0, start = place * p->stride[d] - p->before[d];
    for (int64_t k = 0; k < p->kernel[d]; k++) {
        int64_t i = start + k * p->dilation[d];
        count += p->count_padding ? i < p->size[d] + p->after[d] : i >= 0 && i < p->size[d];
    }
    return count;
}

/* The row of x that a tap of the leading dimensions reads; -1: in the padding. */
static int64_t source_row(const struct pool *p, int64_t row, int64_t tap)
{
    const struct window_sizes w = {p->size, p->result, p->kernel, p->stride, p->dilation, p->before};
    return window_source(p->n - 1, &w, row, tap);
}

/* Combines a row of x into row y of one channel, tap by tap. */
static void combine_channel(const struct pool *p, const void *x, void *y)
{
    int e = p->n - 1;
    for (int64_t k = 0; k < p->kernel[e]; k++) {
        int64_t lo, hi;
        places_inside(p, e, k, &lo, &hi);
        if (lo >= hi)
            continue;
        int64_t from = lo * p->stride[e] + k * p->dilation[e] - p->before[e];
        p->type->combine[p->how](element_at(y, p->type->size, lo), element_at_const(x, p->type->size, from), hi - lo, p->stride[e], p->p);
    }
}

/* The taps of the last dimension that are inside for the window at this place: tap[0]..tap[1]. */
static void taps_inside(const struct pool *p, int64_t place, int64_t *tap)
{
    int e = p->n - 1;
    int64_t start = place * p->stride[e] - p->before[e], step = p->dilation[e], left = p->size[e] - start;
    tap[0] = start >= 0 ? 0 : (-start + step - 1) / step;
    tap[1] = left <= 0 ? 0 : (left - 1) / step + 1;
    tap[1] = tap[1] > p->kernel[e] ? p->kernel[e] : tap[1];
}

/* The same for many channels: for neighbouring places with the same taps inside, all taps of a window at once. */
static void combine_channels(const struct pool *p, const void *x, void *y)
{
    int e = p->n - 1;
    for (int64_t i = 0, end, tap[2], next[2]; i < p->result[e]; i = end) {
        taps_inside(p, i, tap);
        for (end = i + 1; end < p->result[e]; end++) {
            taps_inside(p, end, next);
            if (next[0] != tap[0] || next[1] != tap[1])
                break;
        }
        int64_t from = i * p->stride[e] - p->before[e] + tap[0] * p->dilation[e];
        struct pool_windows w = {end - i, p->inner, p->stride[e] * p->inner, tap[1] - tap[0], p->dilation[e] * p->inner};
        if (w.taps > 0)
            p->type->windows[p->how](element_at(y, p->type->size, i * p->inner), element_at_const(x, p->type->size, from * p->inner), &w,
                                     p->p);
    }
}

static void finish_row(const struct pool *p, int64_t row, void *y)
{
    int64_t others = 1;
    int e = p->n - 1;
    if (p->how == POOL_NORM)
        p->type->root(y, p->result[e] * p->inner, p->p);
    if (p->how != POOL_AVERAGE)
        return;
    for (int d = e - 1; d >= 0; d--) {
        others *= counted_along(p, d, row % p->result[d]);
        row /= p->result[d];
    }
    for (int64_t i = 0, end; i < p->result[e]; i = end) { /* neighbours with the same count */
        int64_t own = counted_along(p, e, i);
        for (end = i + 1; end < p->result[e] && counted_along(p, e, end) == own;)
            end++;
        p->type->divide(element_at(y, p->type->size, i * p->inner), (end - i) * p->inner, others * own);
    }
}

static void pool_range(void *data, int64_t lo, int64_t hi)
{
    const struct pool *p = data;
    int e = p->n - 1;
    int64_t rows = tensor_dims_product(p->result, 0, e), taps = tensor_dims_product(p->kernel, 0, e),
            places = tensor_dims_product(p->size, 0, e), width = p->size[e] * p->inner, out = p->result[e] * p->inner;
    for (int64_t i = lo; i < hi; i++) {
        void *y = element_at(p->y, p->type->size, i * out);
        const void *x = element_at_const(p->x, p->type->size, i / rows * places * width);
        p->type->start[p->how](y, out);
        for (int64_t tap = 0; tap < taps; tap++) {
            int64_t from = source_row(p, i % rows, tap);
            if (from >= 0)
                (p->inner == 1 ? combine_channel : combine_channels)(p, element_at_const(x, p->type->size, from * width), y);
        }
        finish_row(p, i % rows, y);
    }
}

/* ---- one window over everything ---------------------------------------------------------------------------------------------- */
static void whole_range(void *data, int64_t lo, int64_t hi)
{
    const struct pool *p = data;
    int64_t places = tensor_dims_product(p->size, 0, p->n), parts = (p->inner + POOL_LANES - 1) / POOL_LANES;
    for (int64_t i = lo; i < hi; i++) {
        int64_t c = i % parts * POOL_LANES, lanes = p->inner - c < POOL_LANES ? p->inner - c : POOL_LANES;
        void *y = element_at(p->y, p->type->size, i / parts * p->inner + c);
        const void *x = element_at_const(p->x, p->type->size, i / parts * places * p->inner + c);
        p->type->whole[p->how](y, x, places, p->inner, lanes, p->p);
        if (p->how == POOL_AVERAGE)
            p->type->divide(y, lanes, places);
        else if (p->how == POOL_NORM)
            p->type->root(y, lanes, p->p);
    }
}

static bool is_whole(const struct pool *p)
{
    for (int d = 0; d < p->n; d++)
        if (p->kernel[d] != p->size[d] || p->result[d] != 1 || p->dilation[d] != 1 || p->before[d] != 0)
            return false;
    return tensor_dims_product(p->size, 0, p->n) > 0;
}

/* ---- kernels ----------------------------------------------------------------------------------------------------------------- */
static void pool_run(struct kcall *call, struct pool *p)
{
    const struct tensor *x = &call->in[0];
    struct tensor *y = &call->out[0];
    bool half = dtype_is_half(x->dtype);
    if (tensor_elements(y) == 0)
        return;
    p->type = pool_type(half ? DT_F32 : x->dtype);
    if (!p->type)
        kcall_bad_type(call, x->dtype);
    p->x = half ? (const void *)tensor_f32(call->env, x, ROOM_A) : x->data;
    p->y = half ? (void *)kcall_result_f32(call, y) : y->data;
    if (is_whole(p)) {
        int64_t places = tensor_dims_product(p->size, 0, p->n);
        kenv_parallel_for(call->env, p->outer * ((p->inner + POOL_LANES - 1) / POOL_LANES),
                          places * (p->inner < POOL_LANES ? p->inner : POOL_LANES), whole_range, p);
    } else {
        int64_t rows = p->outer * tensor_dims_product(p->result, 0, p->n - 1), taps = tensor_dims_product(p->kernel, 0, p->n);
        kenv_parallel_for(call->env, rows, (taps + 1) * p->result[p->n - 1] * p->inner, pool_range, p);
    }
    if (half)
        kcall_result_store(p->y, y);
}

void pool_window(struct kcall *call, enum pooling how, bool last)
{
    struct pool p;
    pool_begin(call, &p, how, last);
    p.count_padding = how == POOL_AVERAGE && attr_int(call->node, "count_include_pad") != 0;
    p.p = how == POOL_NORM ? attr_int(call->node, "p") : 0;
    kcall_spatial(call, "kernel_shape", p.n, 1, p.kernel);
    kcall_spatial(call, "strides", p.n, 1, p.stride);
    kcall_spatial(call, "dilations", p.n, 1, p.dilation);
    read_pads(call, &p);
    pool_run(call, &p);
}

void pool_global(struct kcall *call, enum pooling how, bool last)
{
    struct pool p;
    pool_begin(call, &p, how, last);
    p.p = how == POOL_NORM ? attr_int(call->node, "p") : 0;
    for (int d = 0; d < p.n; d++) {
        p.kernel[d] = p.size[d];
        p.stride[d] = p.dilation[d] = 1;
    }
    pool_run(call, &p);
}

void kern_MaxPool(struct kcall *call)
{
    pool_window(call, POOL_MAX, false);
    pool_places(call);
}
KERNEL_IS(AveragePool, pool_window(call, POOL_AVERAGE, false))
KERNEL_IS(LpPool, pool_window(call, POOL_NORM, false))
KERNEL_IS(GlobalMaxPool, pool_global(call, POOL_MAX, false))
KERNEL_IS(GlobalAveragePool, pool_global(call, POOL_AVERAGE, false))
KERNEL_IS(GlobalLpPool, pool_global(call, POOL_NORM, false))

void kern_ChannelsLastPool(struct kcall *call)
{
    static const char *const name[] = {"MaxPool", "AveragePool", "LpPool", "GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool"};
    const char *kind = attr_string(call->node, "kind");
    size_t i = 0;
    while (strcmp(name[i], kind) != 0)
        require(++i < sizeof name / sizeof *name);
    if (i == 4 && dtype_is_byte(call->in[0].dtype)) {
        pool_codes(call);
        return;
    }
    (i < 3 ? pool_window : pool_global)(call, (enum pooling)(i % 3), true);
}
