/* channel_norm: norms whose scale and bias are per channel (dimension 1). Statistics are operands (batch), or taken over the spatial
 * elements of a channel (instance) or of a group of channels. Everything is computed in double: such models spend their time elsewhere. */
#include "kern/core/core.h"

#include <math.h>

struct channel_norm {
    const struct tensor *x;
    struct tensor *y;
    int64_t channels, each, group;
    double epsilon;
    const double *scale, *bias, *mean, *variance;
};

/* Operands from `first` on, one double per channel each. */
static void read_channels(struct kcall *call, int n, const double **out)
{
    int64_t channels = call->in[0].dim[1];
    double *room = kenv_scratch(call->env, kcall_bytes(call, n * channels, sizeof *room));
    for (int i = 0; i < n; i++) {
        const struct tensor *t = &call->in[1 + i];
        if (tensor_elements(t) != channels || !dtype_is_float(t->dtype))
            fail("%s: operand %d has %lld elements, expected one float per channel, %lld", kcall_where(call), 1 + i,
                 (long long)tensor_elements(t), (long long)channels);
        convert_to_f64(t->dtype, t->data, channels, room);
        out[i] = room;
        room += channels;
    }
}

static double load_element(const struct channel_norm *c, int64_t i)
{
    double value;
    convert_to_f64(c->x->dtype, element_at_const(c->x->data, dtype_size(c->x->dtype), i), 1, &value);
    return value;
}

static void moments(const struct channel_norm *c, int64_t base, int64_t n, double *mean, double *variance)
{
    double sum = 0, square = 0;
    for (int64_t i = 0; i < n; i++)
        sum += load_element(c, base + i);
    *mean = sum / (double)n;
    for (int64_t i = 0; i < n; i++) {
        double d = load_element(c, base + i) - *mean;
        square += d * d;
    }
    *variance = square / (double)n;
}

static void write_channel(const struct channel_norm *c, int64_t channel, int64_t base, double mean, double variance)
{
    double factor = c->scale[channel] / sqrt(variance + c->epsilon);
    for (int64_t i = base; i < base + c->each; i++) {
        double value = (load_element(c, i) - mean) * factor + c->bias[channel];
        convert_from_f64(c->y->dtype, &value, 1, element_at(c->y->data, dtype_size(c->y->dtype), i));
    }
}

/* Groups lo..hi, counted over the batch. */
static void channel_range(void *data, int thread, int64_t lo, int64_t hi)
{
    const struct channel_norm *c = data;
    int64_t groups = c->channels / c->group, n = c->group * c->each;
    (void)thread;
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
    read_channels(call, operands, given);
    struct channel_norm c = {
        x,        &call->out[0], x->dim[1], tensor_dims_product(x->dim, 2, x->rank), group, attr_float(call->node, "epsilon"), given[0],
        given[1], given[2],      given[3]};
    kenv_parallel_for(call->env, x->dim[0] * (c.channels / group), 8 * group * c.each, channel_range, &c);
}

void kern_BatchNormalization(struct kcall *call)
{
    channel_kernel(call, 4, 1);
}
void kern_InstanceNormalization(struct kcall *call)
{
    channel_kernel(call, 2, 1);
}

void kern_GroupNormalization(struct kcall *call)
{
    int64_t groups = attr_int(call->node, "num_groups"), channels = call->in[0].rank > 1 ? call->in[0].dim[1] : 0;
    if (channels && (groups < 1 || channels % groups))
        fail("%s: %lld channels do not form %lld groups", kcall_where(call), (long long)channels, (long long)groups);
    channel_kernel(call, 2, channels ? channels / groups : 1);
}
