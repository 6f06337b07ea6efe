/* pool_codes: global averages of bytes that encode real numbers, channels-last: exact sums, scaled once. */
#include "kern/core/core.h"
#include "kern/spatial/spatial.h"

enum { LANES = 64, MANY = 256 /* bytes whose sum fits 16 bits */ };

struct averages {
    const uint8_t *x;
    float *y;
    int64_t channels, places, parts; /* parts of an image's channels */
    uint8_t flip;
    double zero, factor;
};

/* sum[n] += bytes of `places` rows that are `step` apart. */
static SIMD void add_bytes(const uint8_t *x, int64_t places, int64_t step, int64_t n, uint8_t flip, uint16_t *sum)
{
    for (int64_t i = 0; i < places; i++, x += step)
        LOOP for (int64_t j = 0; j < n; j++) sum[j] = (uint16_t)(sum[j] + (uint8_t)(x[j] ^ flip));
}

static SIMD void add_whole(const uint8_t *x, int64_t places, int64_t step, uint8_t flip, uint16_t *sum)
{
    for (int64_t i = 0; i < places; i++, x += step)
        LOOP for (int j = 0; j < LANES; j++) sum[j] = (uint16_t)(sum[j] + (uint8_t)(x[j] ^ flip));
}

/* At most LANES channels. */
static void average_part(const struct averages *a, const uint8_t *x, int64_t n, float *y)
{
    uint64_t all[LANES] = {0};
    for (int64_t i = 0; i < a->places; i += MANY) {
        uint16_t some[LANES] = {0};
        int64_t places = a->places - i < MANY ? a->places - i : MANY;
        if (n == LANES)
            add_whole(x + i * a->channels, places, a->channels, a->flip, some);
        else
            add_bytes(x + i * a->channels, places, a->channels, n, a->flip, some);
        for (int64_t j = 0; j < n; j++)
            all[j] += some[j];
    }
    for (int64_t j = 0; j < n; j++)
        y[j] = (float)(((double)all[j] - a->zero) * a->factor);
}

/* Parts lo..hi of all images. */
static void average_range(void *data, int64_t lo, int64_t hi)
{
    const struct averages *a = data;
    for (int64_t i = lo; i < hi; i++) {
        int64_t image = i / a->parts, from = i % a->parts * LANES, n = a->channels - from < LANES ? a->channels - from : LANES;
        average_part(a, a->x + image * a->places * a->channels + from, n, a->y + image * a->channels + from);
    }
}

void pool_codes(struct kcall *call)
{
    const struct tensor *x = &call->in[0], *y = &call->out[0];
    int last = x->rank - 1;
    bool is_signed = x->dtype == DT_I8;
    struct averages a = {.x = x->data, .y = y->data, .channels = x->dim[last], .flip = is_signed ? 0x80 : 0};
    a.places = tensor_dims_product(x->dim, 1, last);
    a.parts = (a.channels + LANES - 1) / LANES;
    a.zero = (double)a.places * (attr_float(call->node, "zero") + (is_signed ? 128 : 0));
    a.factor = (double)(float)attr_float(call->node, "scale") / (double)a.places;
    require(y->dtype == DT_F32 && tensor_elements(y) == x->dim[0] * a.channels);
    kenv_parallel_for(call->env, x->dim[0] * a.parts, a.places * LANES / 8 + 1, average_range, &a);
}
