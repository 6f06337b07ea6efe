/* pool: the greatest or the average element under a window, or its p-norm, channel by channel, in any number of spatial dimensions. A
 * global pool is one window over everything. An average counts the elements it sees, with count_include_pad those of the padding too. */
#include "kern/core/core.h"

#include <math.h>
#include <string.h>

enum pooling { POOL_MAX, POOL_AVERAGE, POOL_NORM };
struct pool {
    enum pooling how;
    bool count_padding;
    double p; /* of the norm */
    int n;
    int64_t size[MOST_SPATIAL], kernel[MOST_SPATIAL], stride[MOST_SPATIAL], dilation[MOST_SPATIAL], before[MOST_SPATIAL],
        after[MOST_SPATIAL], result[MOST_SPATIAL];
    const struct tensor *x;
    struct tensor *y;
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

static void pool_begin(const struct kcall *call, struct pool *p, enum pooling how)
{
    *p = (struct pool){.how = how, .n = call->in[0].rank - 2, .x = &call->in[0], .y = &call->out[0]};
    if (p->n < 1 || p->y->rank != p->n + 2)
        fail("%s: expected a tensor of 3 or more dimensions, found %d", kcall_where(call), p->x->rank);
    if (!dtype_size(p->x->dtype) || (how != POOL_MAX && !dtype_is_float(p->x->dtype)))
        kcall_bad_type(call, p->x->dtype);
    memcpy(p->size, p->x->dim + 2, (size_t)p->n * sizeof *p->size);
    memcpy(p->result, p->y->dim + 2, (size_t)p->n * sizeof *p->result);
}

/* ---- one window ---------------------------------------------------------------------------------------------------------------------- */
/* The first element the window at this place reads along each dimension, before padding is taken off. */
static void window_start(const struct pool *p, int64_t place, int64_t *start)
{
    for (int d = p->n - 1; d >= 0; d--) {
        start[d] = place % p->result[d] * p->stride[d] - p->before[d];
        place /= p->result[d];
    }
}

/* Where tap number `tap` reads, within a channel; -1: in the padding, -2: beyond the padding. */
static int64_t tap_source(const struct pool *p, const int64_t *start, int64_t tap)
{
    int64_t source = 0, step = 1;
    bool inside = true;
    for (int d = p->n - 1; d >= 0; d--) {
        int64_t i = start[d] + tap % p->kernel[d] * p->dilation[d];
        tap /= p->kernel[d];
        if (i >= p->size[d] + p->after[d])
            return -2;
        inside = inside && i >= 0 && i < p->size[d];
        source += i * step;
        step *= p->size[d];
    }
    return inside ? source : -1;
}

static double pooled(const struct pool *p, const void *channel, int64_t place, int64_t taps)
{
    int64_t start[MOST_SPATIAL], count = 0;
    double best = -INFINITY, sum = 0, value;
    window_start(p, place, start);
    for (int64_t tap = 0; tap < taps; tap++) {
        int64_t source = tap_source(p, start, tap);
        count += source >= 0 || (p->count_padding && source == -1);
        if (source < 0)
            continue;
        convert_to_f64(p->x->dtype, element_at_const(channel, dtype_size(p->x->dtype), source), 1, &value);
        sum += p->how == POOL_NORM ? pow(fabs(value), p->p) : value;
        best = value > best || value != value ? value : best;
    }
    return p->how == POOL_MAX ? best : p->how == POOL_AVERAGE ? sum / (double)count : pow(sum, 1 / p->p);
}

static void pool_range(void *data, int thread, int64_t lo, int64_t hi)
{
    const struct pool *p = data;
    size_t size = dtype_size(p->x->dtype);
    int64_t places = tensor_dims_product(p->result, 0, p->n), elements = tensor_dims_product(p->size, 0, p->n),
            taps = tensor_dims_product(p->kernel, 0, p->n);
    (void)thread;
    for (int64_t i = lo; i < hi; i++) {
        double value = pooled(p, element_at_const(p->x->data, size, i / places * elements), i % places, taps);
        convert_from_f64(p->x->dtype, &value, 1, element_at(p->y->data, size, i));
    }
}

static void pool_run(struct kcall *call, struct pool *p)
{
    int64_t cost = 4 * tensor_dims_product(p->kernel, 0, p->n) + 1;
    kenv_parallel_for(call->env, tensor_elements(p->y), cost, pool_range, p);
}

static void pool_kernel(struct kcall *call, enum pooling how)
{
    struct pool p;
    pool_begin(call, &p, how);
    p.count_padding = how == POOL_AVERAGE && attr_int(call->node, "count_include_pad") != 0;
    p.p = how == POOL_NORM ? (double)attr_int(call->node, "p") : 0;
    kcall_spatial(call, "kernel_shape", p.n, 1, p.kernel);
    kcall_spatial(call, "strides", p.n, 1, p.stride);
    kcall_spatial(call, "dilations", p.n, 1, p.dilation);
    read_pads(call, &p);
    pool_run(call, &p);
}

static void global_kernel(struct kcall *call, enum pooling how)
{
    struct pool p;
    pool_begin(call, &p, how);
    p.p = how == POOL_NORM ? (double)attr_int(call->node, "p") : 0;
    for (int d = 0; d < p.n; d++) {
        p.kernel[d] = p.size[d];
        p.stride[d] = p.dilation[d] = 1;
    }
    pool_run(call, &p);
}

void kern_MaxPool(struct kcall *call)
{
    pool_kernel(call, POOL_MAX);
}
void kern_AveragePool(struct kcall *call)
{
    pool_kernel(call, POOL_AVERAGE);
}
void kern_LpPool(struct kcall *call)
{
    pool_kernel(call, POOL_NORM);
}
void kern_GlobalMaxPool(struct kcall *call)
{
    global_kernel(call, POOL_MAX);
}
void kern_GlobalAveragePool(struct kcall *call)
{
    global_kernel(call, POOL_AVERAGE);
}
void kern_GlobalLpPool(struct kcall *call)
{
    global_kernel(call, POOL_NORM);
}
