/* Convolutions in tiles (kern/conv/conv_tiles.c): for random shapes they equal plain loops'. Numbers are small integers, so sums are
 * exact. */
#include "kern/conv/conv.h"
#include "kern/gemm/gemm.h"
#include "tests/unit/draw.h"
#include "tests/unit/kernel.h"

#include <string.h>

enum { ROOM = 60000, PRODUCTS = 1 << 19, SPATIAL = 3 };
static void fill(float *to)
{
    for (int64_t i = 0; i < ROOM; i++)
        to[i] = (float)(draw(9) - 4);
}

/* With a size that fits all arrays; false: it does not. */
static bool draw_shape(struct conv_shape *s)
{
    bool depthwise = draw(3) == 0;
    int64_t pixels = 1, places = 1, taps = 1, groups = draw(3) ? 1 : 2 + draw(3);
    *s = (struct conv_shape){
        .spatial = 1 + (int)draw(SPATIAL), .batch = 1 + draw(3), .last = draw(2), .groups = depthwise ? 2 + draw(70) : groups};
    s->in = s->groups * (depthwise ? 1 : 1 + draw(draw(2) ? 4 : 40));
    s->out = s->groups * (depthwise ? 1 : 1 + draw(draw(2) ? 4 : 70));
    for (int d = 0; d < s->spatial; d++) {
        s->kernel[d] = 1 + draw(4);
        s->stride[d] = 1 + draw(3);
        s->dilation[d] = 1 + draw(2);
        s->before[d] = draw(4);
        s->result[d] = 1 + draw(s->spatial == 1 ? 120 : s->spatial == 2 ? 12 : 4);
        s->size[d] = (s->result[d] - 1) * s->stride[d] + (s->kernel[d] - 1) * s->dilation[d] + 1 - s->before[d] - draw(3);
        if (s->size[d] < 1)
            return false;
        pixels *= s->size[d];
        places *= s->result[d];
        taps *= s->kernel[d];
    }
    s->adds = s->last && draw(2);
    s->activation = s->last && draw(2) ? CONV_RELU : CONV_LINEAR;
    s->activates_last = s->adds && draw(2);
    return s->batch * s->in * pixels <= ROOM && s->batch * s->out * places <= ROOM && s->out * s->in / s->groups * taps <= ROOM &&
        s->batch * s->out * places * s->in / s->groups * taps <= PRODUCTS;
}

static int64_t place_of(bool last, int64_t image, int64_t channels, int64_t channel, int64_t places, int64_t place)
{
    return last ? (image * places + place) * channels + channel : (image * channels + channel) * places + place;
}

static float sum_at(const struct conv_shape *s, const float *x, const float *w, int64_t image, int64_t o, int64_t place)
{
    const struct window_sizes sizes = {s->size, s->result, s->kernel, s->stride, s->dilation, s->before};
    int64_t in = s->in / s->groups, first = o / (s->out / s->groups) * in, taps = tensor_dims_product(s->kernel, 0, s->spatial);
    int64_t pixels = tensor_dims_product(s->size, 0, s->spatial);
    float sum = 0;
    for (int64_t i = 0; i < in; i++)
        for (int64_t tap = 0; tap < taps; tap++) {
            int64_t from = window_source(s->spatial, &sizes, place, tap);
            sum += from < 0 ? 0 : x[place_of(s->last, image, s->in, first + i, pixels, from)] * w[(o * in + i) * taps + tap];
        }
    return sum;
}

static float slope(const struct conv_shape *s, float x)
{
    return s->activation == CONV_RELU && x < 0 ? x * 0.5f : x;
}

static void check(const struct conv_shape *s, const float *x, const float *w, const float *factor, const float *bias, const float *z,
                  const float *y)
{
    int64_t places = tensor_dims_product(s->result, 0, s->spatial);
    for (int64_t i = 0; i < s->batch * s->out * places; i++) {
        int64_t image = i / places / s->out, o = i / places % s->out, at = place_of(s->last, image, s->out, o, places, i % places);
        float sum = sum_at(s, x, w, image, o, i % places) * (factor ? factor[o] : 1) + (bias ? bias[o] : 0), more = s->adds ? z[at] : 0;
        float want = s->activates_last ? slope(s, sum + more) : slope(s, sum) + more;
        if (!(y[at] >= want && y[at] <= want)) /* an assertion would tell a file of each number */
            ck_abort_msg("spatial %d, in %d, out %d, groups %d, last %d: element %d is %g, not %g", s->spatial, (int)s->in, (int)s->out,
                         (int)s->groups, s->last, (int)i, (double)y[at], (double)want);
    }
    for (int64_t i = s->batch * s->out * places; i < ROOM; i++)
        if (!(y[i] >= z[i] && y[i] <= z[i]))
            ck_abort_msg("element %d behind the result is %g", (int)i, (double)y[i]);
}

START_TEST(convolutions_in_tiles)
{
    static float x[ROOM], w[ROOM], factor[ROOM], bias[ROOM], y[ROOM], z[ROOM];
    struct node *node = node_new("tpc", "ChannelsLastConv");
    struct kcall call = {.node = node, .graph = graph, .env = env};
    struct conv_shape s;
    attr_set_string(node, "activation", "LeakyRelu");
    attr_set_float(node, "alpha", 0.5);
    state = (uint32_t)_i;
    for (int round = 0; round < 30; round++) {
        void *cache = NULL;
        if (!draw_shape(&s))
            continue;
        fill(x);
        fill(w);
        fill(factor);
        fill(bias);
        fill(z);
        const float *by = draw(2) ? factor : NULL, *more = draw(2) ? bias : NULL;
        for (int again = 0; again < 2; again++) { /* with the packed weight, where it is kept */
            memcpy(y, z, sizeof y);
            conv_tiles(&call, _i % 2 ? &cache : NULL, &s, x, w, by, more, y);
            check(&s, x, w, by, more, z, y);
        }
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("conv_tiles");
    TCase *c = unit_case(suite, "tiles", setup, teardown);
    tcase_add_loop_test(c, convolutions_in_tiles, 0, 20);
    return unit_run(suite);
}
