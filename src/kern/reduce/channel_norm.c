/* channel_norm: norms with scale and bias per channel (dimension 1, or the last one). Statistics are operands (batch), or computed over the
 * spatial elements of a channel (instance) or of a group of channels. Sums are in double; half precision is computed in float32. */
#include "kern/core/core.h"

#include <math.h>
#include <string.h>

struct channel_norm {
    bool wide; /* x and y are double; else float */
    const void *x;
    void *y;
    int64_t channels, each, group;
    double epsilon;
    const double *scale, *bias, *mean, *variance;
};

/* Operands from 1 on, one double per channel each. Returns scratch for `more` further doubles. */
static double *read_channels(struct kcall *call, int n, int64_t channels, int64_t more, const double **out)
{
    double *room = kenv_scratch(call->env, kcall_bytes(call, n * channels + more, sizeof *room));
    for (int i = 0; i < n; i++) {
        const struct tensor *t = &call->in[1 + i];
        if (tensor_elements(t) != channels || !dtype_is_float(t->dtype))
            fail("%s: operand %d has %lld elements, expected one float per channel, %lld", kcall_where(call), 1 + i,
                 (long long)tensor_elements(t), (long long)channels);
        convert_to_f64(t->dtype, t->data, channels, room);
        out[i] = room;
        room += channels;
    }
    return room;
}

/* ---- loops for either type -------------------------------------------------------------------------------------------------------- */
#define LOOPS(name, T)                                                                              \
    static SIMD void moments_##name(const T *x, int64_t n, double *mean, double *variance)          \
    {                                                                                               \
        double sum = 0, square = 0;                                                                 \
        _Pragma("omp simd reduction(+ : sum)") for (int64_t i = 0; i < n; i++) sum += (double)x[i]; \
        *mean = sum / (double)n;                                                                    \
        _Pragma("omp simd reduction(+ : square)") for (int64_t i = 0; i < n; i++)                   \
        {                                                                                           \
            double d = (double)x[i] - *mean;                                                        \
            square += d * d;                                                                        \
        }                                                                                           \
        *variance = square / (double)n;                                                             \
    }                                                                                               \
    static SIMD void scale_##name(const T *x, T *y, int64_t n, T mean, T factor, T bias)            \
    {                                                                                               \
        LOOP for (int64_t i = 0; i < n; i++) y[i] = (x[i] - mean) * factor + bias;                  \
    }
LOOPS(f32, float)
LOOPS(f64, double)

static void moments(const struct channel_norm *c, int64_t base, int64_t n, double *mean, double *variance)
{
    if (c->wide)
        moments_f64((const double *)c->x + base, n, mean, variance);
    else
        moments_f32((const float *)c->x + base, n, mean, variance);
}

static void write_channel(const struct channel_norm *c, int64_t channel, int64_t base, double mean, double variance)
{
    double factor = c->scale[channel] / sqrt(variance + c->epsilon), bias = c->bias[channel];
    if (c->wide)
        scale_f64((const double *)c->x + base, (double *)c->y + base, c->each, mean, factor, bias);
    else
        scale_f32((const float *)c->x + base, (float *)c->y + base, c->each, (float)mean, (float)factor, (float)bias);
}

/* Groups lo..hi, counted over the batch. */
static void channel_range(void *data, int64_t lo, int64_t hi)
{
    const struct channel_norm *c = data;
    int64_t groups = c->channels / c->group, n = c->group * c->each;
    for (int64_t i = lo; i < hi; i++) {
        int64_t first = i % groups * c->group;
        double mean = 0, variance = 0;
        if (!c->mean)
            moments(c, i * n, n, &mean, &variance);
        for (int64_t k = 0; k < c->group; k++)
            write_channel(c, first + k, i * n + k * c->each, c->mean ? c->mean[first + k] : mean,
                          c->mean ? c->variance[first + k] : variance);
    }
}

static void channel_kernel(struct kcall *call, int operands, int64_t group)
{
    const struct tensor *x = &call->in[0];
    const double *given[4] = {NULL, NULL, NULL, NULL};
    if (x->rank < 2 || !dtype_is_float(x->dtype) || !dtype_size(x->dtype))
        kcall_bad_type(call, x->dtype);
    if (tensor_elements(x) == 0)
        return;
    read_channels(call, operands, x->dim[1], 0, given);
    bool wide = x->dtype == DT_F64;
    struct channel_norm c = {.wide = wide,
                             .x = wide ? x->data : (const void *)tensor_f32(call->env, x, ROOM_A),
                             .y = wide ? call->out[0].data : (void *)kcall_result_f32(call, &call->out[0]),
                             .channels = x->dim[1],
                             .each = tensor_dims_product(x->dim, 2, x->rank),
                             .group = group,
                             .epsilon = attr_float(call->node, "epsilon"),
                             .scale = given[0],
                             .bias = given[1],
                             .mean = given[2],
                             .variance = given[3]};
    kenv_parallel_for(call->env, x->dim[0] * (c.channels / group), 2 * group * c.each, channel_range, &c);
    if (!wide)
        kcall_result_store(c.y, &call->out[0]);
}

KERNEL_IS(BatchNormalization, channel_kernel(call, 4, 1))
KERNEL_IS(InstanceNormalization, channel_kernel(call, 2, 1))

void kern_GroupNormalization(struct kcall *call)
{
    int64_t groups = attr_int(call->node, "num_groups"), channels = call->in[0].rank > 1 ? call->in[0].dim[1] : 0;
    if (channels && (groups < 1 || channels % groups))
        fail("%s: %lld channels do not form %lld groups", kcall_where(call), (long long)channels, (long long)groups);
    channel_kernel(call, 2, channels ? channels / groups : 1);
}

/* ---- channels last ------------------------------------------------------------------------------------------------------------------- */

enum { LEAST_CHANNELS = 64 }; /* channels normalised together, if there are so many: contiguous in memory */
struct last_norm {
    const float *x;
    float *y;
    int64_t channels, places, group, unit, units; /* unit: channels of some groups */
    double epsilon;
    const double *scale, *bias;
    double *scratch; /* 2 unit, per thread */
};

static SIMD void add_places(const struct last_norm *c, const float *x, int64_t n, double *sum)
{
    for (int64_t p = 0; p < c->places; p++)
        LOOP for (int64_t i = 0; i < n; i++) sum[i] += (double)x[p * c->channels + i];
}

static SIMD void add_squares(const struct last_norm *c, const float *x, int64_t n, const double *mean, double *sum)
{
    for (int64_t p = 0; p < c->places; p++)
        LOOP for (int64_t i = 0; i < n; i++)
        {
            double d = (double)x[p * c->channels + i] - mean[i];
            sum[i] += d * d;
        }
}

static SIMD void scale_places(const struct last_norm *c, const float *x, float *y, int64_t n, const float *mean, const float *factor,
                              const float *bias)
{
    for (int64_t p = 0; p < c->places; p++)
        LOOP for (int64_t i = 0; i < n; i++) y[p * c->channels + i] = (x[p * c->channels + i] - mean[i]) * factor[i] + bias[i];
}

/* Replaces each of n sums by the mean of its group. */
static void group_means(const struct last_norm *c, double *sum, int64_t n)
{
    for (int64_t i = 0; i < n; i += c->group) {
        double total = 0;
        for (int64_t k = i; k < i + c->group; k++)
            total += sum[k];
        for (int64_t k = i; k < i + c->group; k++)
            sum[k] = total / (double)(c->group * c->places);
    }
}

static void last_range(void *data, int thread, int64_t lo, int64_t hi)
{
    const struct last_norm *c = data;
    double *mean = c->scratch + thread * 4 * c->unit, *square = mean + c->unit;
    float *center = (float *)(square + c->unit), *factor = center + c->unit, *bias = factor + c->unit;
    for (int64_t i = lo; i < hi; i++) {
        int64_t first = i % c->units * c->unit, at = i / c->units * c->places * c->channels + first;
        int64_t n = c->channels - first < c->unit ? c->channels - first : c->unit;
        memset(mean, 0, (size_t)(2 * c->unit) * sizeof *mean);
        add_places(c, c->x + at, n, mean);
        group_means(c, mean, n);
        add_squares(c, c->x + at, n, mean, square);
        group_means(c, square, n);
        for (int64_t k = 0; k < n; k++) {
            center[k] = (float)mean[k];
            factor[k] = (float)(c->scale[first + k] / sqrt(square[k] + c->epsilon));
            bias[k] = (float)c->bias[first + k];
        }
        scale_places(c, c->x + at, c->y + at, n, center, factor, bias);
    }
}

void kern_ChannelsLastNorm(struct kcall *call)
{
    const struct tensor *x = &call->in[0];
    int64_t groups = attr_int(call->node, "num_groups"), channels = x->dim[x->rank - 1];
    const double *given[2];
    if (tensor_elements(x) == 0)
        return;
    if (groups < 0 || (groups && channels % groups))
        fail("%s: %lld channels do not form %lld groups", kcall_where(call), (long long)channels, (long long)groups);
    struct last_norm c = {
        .channels = channels, .places = tensor_dims_product(x->dim, 1, x->rank - 1), .group = groups ? channels / groups : 1};
    c.unit = (LEAST_CHANNELS + c.group - 1) / c.group * c.group;
    c.units = (channels + c.unit - 1) / c.unit;
    c.epsilon = attr_float(call->node, "epsilon");
    c.scratch = read_channels(call, 2, channels, kenv_threads(call->env) * 4 * c.unit, given);
    c.scale = given[0];
    c.bias = given[1];
    c.x = tensor_f32(call->env, x, ROOM_A);
    c.y = kcall_result_f32(call, &call->out[0]);
    kenv_parallel_shares(call->env, x->dim[0] * c.units, 4 * c.unit * c.places, last_range, &c);
    kcall_result_store(c.y, &call->out[0]);
}
