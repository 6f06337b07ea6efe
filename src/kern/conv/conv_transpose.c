/* conv_transpose: transposed convolution. For every image and group, one product computes what each position of X adds to the positions in
 * its window, [output channels x window, positions of X]; these are then added up, channel by channel, in float32. */
#include "kern/conv/conv_transpose.h"

#include "kern/chunk/chunk.h"
#include "kern/core/core.h"
#include "kern/gemm/gemm.h"

#include <string.h>

struct transposing {
    struct conv_transpose t;
    const float *sent; /* the products of one image and group */
    const float *bias; /* of the group; NULL: none */
    float *y;
};

/* With a given or SAME output size, divides the excess between both ends. */
static void read_before(const struct kcall *call, struct conv_transpose *t)
{
    const char *mode = attr_string(call->node, "auto_pad");
    bool upper = strcmp(mode, "SAME_UPPER") == 0, same = upper || strcmp(mode, "SAME_LOWER") == 0;
    int64_t pads[2 * MOST_SPATIAL], more[MOST_SPATIAL];
    const int64_t *given;
    bool stated = attr_is_set(call->node, "output_shape") && attr_ints(call->graph, call->node, "output_shape", &given) > 0;
    kcall_spatial(call, "pads", 2 * t->n, 0, pads);
    kcall_spatial(call, "output_padding", t->n, 0, more);
    for (int d = 0; d < t->n; d++) {
        int64_t total = (t->size[d] - 1) * t->stride[d] + more[d] + (t->kernel[d] - 1) * t->dilation[d] + 1 - t->result[d];
        total = total < 0 ? 0 : total;
        t->before[d] = stated || same ? (upper ? total / 2 : total - total / 2) : strcmp(mode, "VALID") == 0 ? 0 : pads[d];
    }
}

void conv_transpose_read(const struct kcall *call, struct conv_transpose *t, bool last)
{
    const struct tensor *x = &call->in[0], *w = &call->in[1], *y = &call->out[0], *bias = kcall_in(call, 2);
    int64_t groups = attr_int(call->node, "group");
    if (w->rank != x->rank || x->rank < 3 || w->dtype != x->dtype || (bias && bias->dtype != x->dtype))
        fail("%s: expected operands of one type and one rank of 3 or more", kcall_where(call));
    if (x->dtype != DT_F32 && !dtype_is_half(x->dtype))
        kcall_bad_type(call, x->dtype);
    int first = last ? 1 : 2, channel = last ? x->rank - 1 : 1;
    int64_t in = x->dim[channel], out = w->dim[channel];
    if (groups < 1 || in != w->dim[0] || in % groups || y->dim[channel] != out * groups || (bias && tensor_elements(bias) != out * groups))
        fail("%s: %lld channels in %lld groups do not fit a kernel of %lld x %lld", kcall_where(call), (long long)in, (long long)groups,
             (long long)w->dim[0], (long long)out);
    *t = (struct conv_transpose){.n = x->rank - 2, .batch = x->dim[0], .groups = groups, .in = in / groups, .out = out};
    memcpy(t->size, x->dim + first, (size_t)t->n * sizeof *t->size);
    memcpy(t->kernel, w->dim + first, (size_t)t->n * sizeof *t->kernel);
    memcpy(t->result, y->dim + first, (size_t)t->n * sizeof *t->result);
    t->places = tensor_dims_product(t->size, 0, t->n);
    t->taps = tensor_dims_product(t->kernel, 0, t->n);
    t->results = tensor_dims_product(t->result, 0, t->n);
    kcall_spatial(call, "strides", t->n, 1, t->stride);
    kcall_spatial(call, "dilations", t->n, 1, t->dilation);
    read_before(call, t);
}

/* The start of the result row to which a row of X (all dimensions but the last) contributes through a tap; -1: padding. */
static int64_t landing_row(const struct conv_transpose *t, int64_t row, int64_t tap)
{
    int64_t at = 0, step = t->result[t->n - 1];
    tap /= t->kernel[t->n - 1];
    for (int d = t->n - 2; d >= 0; d--) {
        int64_t i = row % t->size[d] * t->stride[d] + tap % t->kernel[d] * t->dilation[d] - t->before[d];
        if (i < 0 || i >= t->result[d])
            return -1;
        at += i * step;
        step *= t->result[d];
        row /= t->size[d];
        tap /= t->kernel[d];
    }
    return at;
}

/* Adds the contributions of a row of places through a tap to a row of the result. */
static void add_row(const struct conv_transpose *t, int64_t tap, const float *sent, float *y)
{
    int e = t->n - 1;
    int64_t s = t->stride[e], shift = tap % t->kernel[e] * t->dilation[e] - t->before[e]; /* place i contributes to i * s + shift */
    int64_t lo = shift >= 0 ? 0 : (-shift + s - 1) / s, hi = shift >= t->result[e] ? 0 : (t->result[e] - 1 - shift) / s + 1;
    hi = hi > t->size[e] ? t->size[e] : hi;
    for (int64_t i = lo; i < hi; i++)
        y[i * s + shift] += sent[i];
}

static void gather_columns_range(void *data, int64_t lo, int64_t hi)
{
    const struct transposing *c = data;
    const struct conv_transpose *t = &c->t;
    int64_t width = t->size[t->n - 1], rows = width ? t->places / width : 0;
    for (int64_t m = lo; m < hi; m++) {
        float *y = c->y + m * t->results;
        for (int64_t i = 0; i < t->results; i++)
            y[i] = c->bias ? c->bias[m] : 0;
        for (int64_t tap = 0; tap < t->taps; tap++)
            for (int64_t row = 0; row < rows; row++) {
                int64_t to = landing_row(t, row, tap);
                if (to >= 0)
                    add_row(t, tap, c->sent + (m * t->taps + tap) * t->places + row * width, y + to);
            }
    }
}

/* to[columns, places] = w[in, columns]^T x[in, places]. */
static void send(struct kcall *call, const struct conv_transpose *t, int64_t columns, const float *w, const float *x, float *to)
{
    if (!kenv_deterministic(call->env)) {
        dnnl_product(call->env, true, false, columns, t->places, t->in, 1, w, columns, x, t->places, 0, to, t->places);
        return;
    }
    struct chunks chunks = chunks_of(call, t->in, 1);
    struct right right = right_strided(x, t->in, t->places, 1);
    int64_t all = columns * t->places;
    float *partials = chunk_room(call, &chunks, DT_F32, all, to);
    chunk_product(call,
                  &(struct chunk_product){&chunks, columns, t->places, packed_gemm_transposed(call, w, t->in, columns), t->in, &right,
                                          partials, t->places, all});
    chunk_complete(call, &chunks, DT_F32, partials, all, to);
}

void kern_ConvTranspose(struct kcall *call)
{
    struct transposing c;
    struct conv_transpose *t = &c.t;
    struct tensor *out = &call->out[0];
    const struct tensor *bias = kcall_in(call, 2);
    if (tensor_elements(out) == 0)
        return;
    conv_transpose_read(call, t, false);
    int64_t columns = t->out * t->taps, sent;
    if (!i64_mul(columns, t->places, &sent))
        fail("%s: a window of %lld over %lld places does not fit in memory", kcall_where(call), (long long)t->taps, (long long)t->places);
    const float *x = tensor_f32(call->env, &call->in[0], ROOM_A), *w = tensor_f32(call->env, &call->in[1], ROOM_B);
    const float *b = bias ? tensor_f32(call->env, bias, ROOM_TURN_K) : NULL;
    float *y = kcall_result_f32(call, out), *room = kenv_room(call->env, ROOM_KERNEL, kcall_bytes(call, sent, sizeof(float)));
    for (int64_t i = 0; i < t->batch * t->groups; i++) {
        int64_t group = i % t->groups;
        send(call, t, columns, w + group * t->in * columns, x + i * t->in * t->places, room);
        c.sent = room;
        c.bias = b ? b + group * t->out : NULL;
        c.y = y + i * t->out * t->results;
        kenv_parallel_for(call->env, t->out, t->taps * t->places * 4 + t->results, gather_columns_range, &c);
    }
    kcall_result_store(y, out);
}
