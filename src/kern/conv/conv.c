/* conv: convolution over 1 to 3 spatial dimensions through oneDNN or in tiles, f16 and bf16 converted; plain loops for other ranks, f64,
 * empty kernels and shapes without a primitive.
 *
 * In deterministic mode a convolution is a product in chunks of channels (chunk_gemm.c) whose right operand is the im2col matrix, built a
 * few columns at a time. */
#include "kern/conv/conv.h"

#include "ir/operands.h"
#include "kern/chunk/chunk.h"
#include "kern/core/core.h"
#include "kern/gemm/gemm.h"

#include <math.h>
#include <string.h>

/* The weight may have a narrower type: lower/quantized/fuse_weights.c. */
static void check_types(const struct kcall *call, const struct conv *c)
{
    const struct tensor *bias = kcall_in(call, 2);
    bool stored = c->dtype == DT_F32 && dtype_is_half(c->stored);
    if ((c->stored != c->dtype && !stored) || (bias && (bias->dtype != c->dtype || tensor_elements(bias) != c->out)))
        fail("%s: the kernel and the bias must have the type %s, the bias %lld elements", kcall_where(call), dtype_name(c->dtype),
             (long long)c->out);
}

/* The index in x, within one channel, that tap `tap` reads for result `place`; -1 in the padding. */
static int64_t conv_source(const struct conv *c, int64_t place, int64_t tap)
{
    const struct window_sizes w = {c->size, c->result, c->kernel, c->stride, c->dilation, c->before};
    return window_source(c->spatial, &w, place, tap);
}

/* ---- chunk by chunk ---------------------------------------------------------------------------------------------------------- */
struct patches {
    const struct conv *conv;
    const float *x;
    int64_t taps, pixels;
}; /* x: the channels of one group of one image */

/* The inputs of results from .. from + count: by channel and tap, 0 in the padding. */
static const float *patch_panel(const struct right *r, int64_t from, int64_t count, float *room)
{
    const struct patches *p = r->at;
    for (int64_t l = 0; l < r->k; l++)
        for (int64_t j = 0; j < count; j++) {
            int64_t source = conv_source(p->conv, from + j, l % p->taps);
            room[l * TILE + j] = source < 0 ? 0 : p->x[l / p->taps * p->pixels + source];
        }
    return room;
}

static void add_channel_bias(const struct conv *c, const float *bias, int64_t places, float *y)
{
    for (int64_t i = 0; bias && i < c->batch * c->out; i++)
        for (int64_t j = 0; j < places; j++)
            y[i * places + j] += bias[i % c->out];
}

static bool conv_chunks(struct kcall *call, const struct conv *c, const float *x, const float *bias, float *y)
{
    const float *w = tensor_f32(call->env, &call->in[1], ROOM_B);
    int64_t groups = c->groups > 0 ? c->groups : 1, in = c->in / groups, out = c->out / groups,
            places = tensor_dims_product(c->result, 0, c->spatial);
    struct patches p = {c, x, tensor_dims_product(c->kernel, 0, c->spatial), tensor_dims_product(c->size, 0, c->spatial)};
    struct chunks chunks = chunks_of(call, in * p.taps, p.taps);
    struct right right = {.panel = patch_panel, .k = in * p.taps, .at = &p};
    int64_t all = c->batch * c->out * places;
    float *partials = chunk_room(call, &chunks, DT_F32, all, y);
    for (int64_t i = 0; i < c->batch * groups; i++) {
        p.x = x + i * in * p.pixels;
        chunk_product(call,
                      &(struct chunk_product){&chunks, out, places, w + i % groups * out * right.k, right.k, &right,
                                              partials + i * out * places, places, all});
    }
    chunk_complete(call, &chunks, DT_F32, partials, all, y);
    add_channel_bias(c, bias, places, y);
    return true;
}

/* ---- through oneDNN, or in tiles ----------------------------------------------------------------------------------------------------- */

static void conv_results(const struct kcall *call, struct conv_shape *s)
{
    static const char *const name[] = {"", "LeakyRelu", "Clip", "Sigmoid", "Tanh", "Swish", "HardSwish", "HardSigmoid", "Gelu"};
    const char *activation = attr_string(call->node, "activation");
    s->last = true;
    s->adds = kcall_in(call, IN_ChannelsLastConv_Z) != NULL;
    s->activates_last = s->adds && attr_int(call->node, "activates_last");
    while (strcmp(name[s->activation], activation) != 0)
        require(++s->activation < sizeof name / sizeof *name);
    s->alpha = (float)attr_float(call->node, "alpha");
    s->beta = (float)attr_float(call->node, "beta");
    s->scale = (float)attr_float(call->node, "scale");
    s->shift = (float)attr_float(call->node, "shift");
}

/* A dimension of size one with a window of one is flat: [n, 512, 1] is a line. */
static bool is_flat(const struct conv *c, int d)
{
    return c->size[d] == 1 && c->kernel[d] == 1 && c->result[d] == 1 && c->before[d] == 0;
}

/* oneDNN's depthwise kernels are made for images: treats a line as an image of one row. */
static void line_as_image(struct conv_shape *s)
{
    int64_t *const of[] = {s->size, s->kernel, s->result, s->stride, s->dilation, s->before, s->after};
    enum { LENGTHS = 5 };
    for (int i = 0; i < (int)(sizeof of / sizeof *of); i++) {
        of[i][1] = of[i][0];
        of[i][0] = i < LENGTHS;
    }
    s->spatial = 2;
}

static void conv_shape_of(const struct kcall *call, const struct conv *c, struct conv_shape *s)
{
    memset(s, 0, sizeof *s);
    s->batch = c->batch;
    s->groups = c->groups;
    s->in = c->in;
    s->out = c->out;
    for (int d = 0; d < c->spatial; d++) {
        int e = s->spatial;
        if (is_flat(c, d) && (e > 0 || d < c->spatial - 1))
            continue;
        s->size[e] = c->size[d];
        s->kernel[e] = c->kernel[d];
        s->result[e] = c->result[d];
        s->stride[e] = c->stride[d];
        s->dilation[e] = c->dilation[d];
        s->before[e] = c->before[d];
        s->after[e] = (c->result[d] - 1) * c->stride[d] + (c->kernel[d] - 1) * c->dilation[d] + 1 - c->size[d] - c->before[d];
        s->spatial++;
    }
    if (s->spatial == 1 && s->groups > 1 && s->groups == s->in)
        line_as_image(s);
    if (c->last)
        conv_results(call, s);
}

/* With oneDNN, CONV_SWISH takes twice as long as conv_swish. */
static bool conv_fast(struct kcall *call, const struct conv *c, const float *x, const float *bias, float *y)
{
    struct conv_shape s, all;
    conv_shape_of(call, c, &s);
    all = s;
    bool swishes = s.activation == CONV_SWISH && (!s.adds || s.activates_last || call->in[IN_ChannelsLastConv_Z].dtype == DT_F32);
    if (swishes) {
        s.activation = CONV_LINEAR;
        s.alpha = s.beta = s.scale = s.shift = 0;
        s.adds = s.activates_last;
    }
    if (X86 && conv_patches_pay(&s))
        x = conv_patches(call, &s, x);
    const struct tensor *factor = c->last ? kcall_in(call, IN_ChannelsLastConv_factor) : NULL;
    const struct tensor *w = &call->in[1];
    bool constant = call->in_constant && call->in_constant[1] && (w->dtype == DT_F32 || dnnl_packs(call->env, w->dtype));
    if (s.adds && call->in[IN_ChannelsLastConv_Z].dtype == DT_F32)
        copy_dense(call->env, y, call->in[IN_ChannelsLastConv_Z].data, tensor_bytes(&call->out[0]));
    else if (s.adds)
        convert_to_f32(call->in[IN_ChannelsLastConv_Z].dtype, call->in[IN_ChannelsLastConv_Z].data,
                       tensor_elements(&call->in[IN_ChannelsLastConv_Z]), y);
    void **cache = constant ? call->cache : NULL;
    const float *by = factor ? factor->data : NULL;
    if (!X86)
        conv_tiles(call, cache, &s, x, tensor_f32(call->env, w, ROOM_B), by, bias, y);
    else if (!dnnl_convolve(call->env, cache, &s, x, w, by, bias, y))
        return false;
    if (swishes)
        conv_swish(call->env, &all, tensor_elements(&call->out[0]), all.adds && !s.adds ? call->in[IN_ChannelsLastConv_Z].data : NULL, y);
    return true;
}

static bool conv_short(struct kcall *call, const struct conv *c)
{
    const struct tensor *bias = kcall_in(call, 2);
    struct tensor *out = &call->out[0];
    bool chunks = kenv_deterministic(call->env);
    if ((c->spatial > 3 && !chunks) || (c->in == 0 && !call->share) || tensor_dims_product(c->kernel, 0, c->spatial) == 0 ||
        c->dtype == DT_F64 || !dtype_is_float(c->dtype))
        return false;
    const float *b = bias ? tensor_f32(call->env, bias, ROOM_TURN_K) : NULL;
    float *y = kcall_result_f32(call, out);
    if (!(chunks ? conv_chunks : conv_fast)(call, c, tensor_f32(call->env, &call->in[0], ROOM_A), b, y))
        return false;
    kcall_result_store(y, out);
    return true;
}

/* ---- plain loops ------------------------------------------------------------------------------------------------------------- */
/* The index of element `place` of a channel of an image. */
static int64_t conv_element(bool last, int64_t n, int64_t channels, int64_t channel, int64_t places, int64_t place)
{
    return last ? (n * places + place) * channels + channel : (n * channels + channel) * places + place;
}

static double conv_at(const struct conv *c, int64_t n, int64_t o, int64_t place)
{
    int64_t taps = tensor_dims_product(c->kernel, 0, c->spatial), pixels = tensor_dims_product(c->size, 0, c->spatial),
            per_group = c->in / c->groups;
    int64_t first = o / (c->out / c->groups) * per_group;
    size_t size = dtype_size(c->dtype);
    double sum = 0, x, w;
    for (int64_t i = 0; i < per_group; i++)
        for (int64_t tap = 0; tap < taps; tap++) {
            int64_t from = conv_source(c, place, tap);
            if (from < 0)
                continue;
            from = conv_element(c->last, n, c->in, first + i, pixels, from);
            convert_to_f64(c->dtype, element_at_const(c->x, size, from), 1, &x);
            convert_to_f64(c->stored, element_at_const(c->w, dtype_size(c->stored), (o * per_group + i) * taps + tap), 1, &w);
            sum += x * w;
        }
    return sum;
}

static double conv_function(const struct conv_shape *s, double x)
{
    double a = s->alpha, b = s->beta, line = a * x + b;
    switch (s->activation) {
    case CONV_LINEAR: return x;
    case CONV_RELU: return x > 0 ? x : a * x;
    case CONV_CLIP: return x < a ? a : x > b ? b : x;
    case CONV_SIGMOID: return 1 / (1 + exp(-x));
    case CONV_TANH: return tanh(x);
    case CONV_SWISH: return x / (1 + exp(-a * x));
    case CONV_HARD_SWISH: return x * (line < 0 ? 0 : line > 1 ? 1 : line);
    case CONV_HARD_SIGMOID: return line < 0 ? 0 : line > 1 ? 1 : line;
    case CONV_GELU: return x * 0.5 * (1 + erf(x * 0.70710678118654752440));
    }
    return x;
}

static double conv_activated(const struct conv_shape *s, double x)
{
    return s->activation == CONV_LINEAR ? x : s->scale * conv_function(s, x) + s->shift;
}

struct conv_loops {
    const struct kcall *call;
    const struct conv *conv;
    struct conv_shape shape;
};

/* Element i of an operand, or `otherwise` if it is absent. */
static double conv_operand(const struct conv_loops *l, int operand, int64_t i, double otherwise)
{
    const struct tensor *t = kcall_in(l->call, operand);
    if (t)
        convert_to_f64(t->dtype, element_at_const(t->data, dtype_size(t->dtype), i), 1, &otherwise);
    return otherwise;
}

static void conv_range(void *data, int64_t lo, int64_t hi)
{
    const struct conv_loops *l = data;
    const struct conv *c = l->conv;
    int64_t places = tensor_dims_product(c->result, 0, c->spatial);
    for (int64_t i = lo; i < hi; i++) {
        int64_t n = i / places / c->out, o = i / places % c->out, at = conv_element(c->last, n, c->out, o, places, i % places);
        double value = conv_at(c, n, o, i % places) * conv_operand(l, IN_ChannelsLastConv_factor, o, 1) + conv_operand(l, 2, o, 0);
        double more = conv_operand(l, IN_ChannelsLastConv_Z, at, 0);
        value = l->shape.activates_last ? conv_activated(&l->shape, value + more) : conv_activated(&l->shape, value) + more;
        convert_from_f64(c->dtype, &value, 1, element_at(c->y, dtype_size(c->dtype), at));
    }
}

static void conv_kernel(struct kcall *call, bool last)
{
    struct conv c;
    conv_read(call, &c, last);
    check_types(call, &c);
    int64_t n = tensor_elements(&call->out[0]);
    if (n == 0 || conv_short(call, &c))
        return;
    if (!dtype_is_float(c.dtype))
        kcall_bad_type(call, c.dtype);
    if (c.groups < 1)
        c.groups = 1;
    int64_t taps = tensor_dims_product(c.kernel, 0, c.spatial);
    struct conv_loops loops = {.call = call, .conv = &c};
    memset(&loops.shape, 0, sizeof loops.shape);
    if (last)
        conv_results(call, &loops.shape);
    kenv_parallel_for(call->env, n, 8 * (c.in / c.groups) * taps + 1, conv_range, &loops);
}

KERNEL_IS(Conv, conv_kernel(call, false))
KERNEL_IS(ChannelsLastConv, conv_kernel(call, true))
