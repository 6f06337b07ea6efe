/* deform_conv: deformable convolution: each tap reads at an offset position, interpolated between four pixels, times a mask. The pixels of
 * a place are interpolated once, for all output channels of their group. */
#include "kern/core/core.h"

#include <math.h>
#include <string.h>

struct deform {
    const struct tensor *x, *w;
    const float *in, *weight, *offset, *bias, *mask;
    float *out, *room;
    int64_t groups, sets, channels, filters, taps, height, width, rows, columns;
    int64_t kernel[2], stride[2], dilation[2], pad[4];
};

/* Bilinear interpolation; pixels outside the image are zero. */
static float pixel_between(const float *plane, int64_t height, int64_t width, double y, double x)
{
    if (!(y > -1 && y < (double)height && x > -1 && x < (double)width))
        return 0;
    int64_t top = (int64_t)floor(y), left = (int64_t)floor(x);
    double v = y - (double)top, h = x - (double)left, sum = 0;
    for (int k = 0; k < 4; k++) {
        int64_t i = top + k / 2, j = left + k % 2;
        if (i >= 0 && i < height && j >= 0 && j < width)
            sum += (k / 2 ? v : 1 - v) * (k % 2 ? h : 1 - h) * (double)plane[i * width + j];
    }
    return (float)sum;
}

/* The value of a channel at `tap` for one place, times the mask. */
static float read_tap(const struct deform *d, int64_t image, int64_t channel, int64_t place, int64_t tap)
{
    int64_t set = channel / (d->channels / d->sets), places = d->rows * d->columns, at = (image * d->sets + set) * d->taps + tap;
    double y = (double)(place / d->columns * d->stride[0] - d->pad[0] + tap / d->kernel[1] * d->dilation[0]);
    double x = (double)(place % d->columns * d->stride[1] - d->pad[1] + tap % d->kernel[1] * d->dilation[1]);
    y += (double)d->offset[2 * at * places + place];
    x += (double)d->offset[(2 * at + 1) * places + place];
    float value = pixel_between(d->in + (image * d->channels + channel) * d->height * d->width, d->height, d->width, y, x);
    return d->mask ? value * d->mask[at * places + place] : value;
}

static void deform_range(void *data, int thread, int64_t lo, int64_t hi)
{
    const struct deform *d = data;
    int64_t places = d->rows * d->columns, each = d->channels / d->groups, n = each * d->taps, filters = d->filters / d->groups;
    float *seen = d->room + thread * n;
    for (int64_t i = lo; i < hi; i++) {
        int64_t image = i / places, place = i % places;
        for (int64_t group = 0; group < d->groups; group++) {
            for (int64_t k = 0; k < n; k++)
                seen[k] = read_tap(d, image, group * each + k / d->taps, place, k % d->taps);
            for (int64_t f = group * filters; f < (group + 1) * filters; f++) {
                float sum = d->bias ? d->bias[f] : 0;
                for (int64_t k = 0; k < n; k++)
                    sum += seen[k] * d->weight[f * n + k];
                d->out[(image * d->filters + f) * places + place] = sum;
            }
        }
    }
}

void kern_DeformConv(struct kcall *call)
{
    const struct tensor *x = &call->in[0], *w = &call->in[1], *bias = kcall_in(call, 3), *mask = kcall_in(call, 4);
    struct tensor *y = &call->out[0];
    struct deform d = {.x = x,
                       .w = w,
                       .groups = attr_int(call->node, "group"),
                       .sets = attr_int(call->node, "offset_group"),
                       .channels = x->dim[1],
                       .filters = w->dim[0],
                       .taps = w->dim[2] * w->dim[3],
                       .height = x->dim[2],
                       .width = x->dim[3],
                       .rows = y->dim[2],
                       .columns = y->dim[3],
                       .kernel = {w->dim[2], w->dim[3]}};
    if (!dtype_fits_f32(x->dtype))
        kcall_bad_type(call, x->dtype);
    if (tensor_elements(y) == 0)
        return;
    if (d.channels % d.groups || d.channels % d.sets || d.filters % d.groups || w->dim[1] * d.groups != d.channels)
        fail("%s: %lld and %lld channels do not fit %lld groups and %lld groups of offsets", kcall_where(call), (long long)d.channels,
             (long long)d.filters, (long long)d.groups, (long long)d.sets);
    kcall_spatial(call, "strides", 2, 1, d.stride);
    kcall_spatial(call, "dilations", 2, 1, d.dilation);
    kcall_spatial(call, "pads", 4, 0, d.pad);
    d.in = tensor_f32(call->env, x, ROOM_A);
    d.weight = tensor_f32(call->env, w, ROOM_B);
    d.offset = tensor_f32(call->env, &call->in[2], ROOM_TURN_Q);
    d.bias = bias ? tensor_f32(call->env, bias, ROOM_TURN_K) : NULL;
    d.mask = mask ? tensor_f32(call->env, mask, ROOM_LIMITS) : NULL;
    d.out = kcall_result_f32(call, y);
    int64_t n = w->dim[1] * d.taps;
    d.room = kenv_room(call->env, ROOM_THREADS, kcall_bytes(call, n * kenv_threads(call->env), sizeof *d.room));
    kenv_parallel_shares(call->env, y->dim[0] * d.rows * d.columns, n * (d.groups * 16 + d.filters), deform_range, &d);
    kcall_result_store(d.out, y);
}
