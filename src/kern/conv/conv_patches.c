/* conv_patches: a strided convolution of lines as a pointwise one over patches: the elements of each window become channels. oneDNN's
 * kernels read rows several channels' length apart, and power-of-two lengths map to few cache sets. */
#include "kern/conv/conv.h"
#include "kern/core/core.h"
#include "kern/gemm/gemm.h"

struct patches {
    const struct conv_shape *s;
    const float *x;
    float *to;
};

/* Rows lo to hi of [batch places, in kernel]. */
static void patch_range(void *data, int64_t lo, int64_t hi)
{
    const struct patches *p = data;
    const struct conv_shape *s = p->s;
    const int64_t in = s->in, kernel = s->kernel[0];
    for (int64_t i = lo; i < hi; i++) {
        int64_t start = i % s->result[0] * s->stride[0] - s->before[0], image = i / s->result[0] * s->size[0];
        for (int64_t tap = 0; tap < kernel; tap++) {
            int64_t place = start + tap * s->dilation[0];
            bool inside = place >= 0 && place < s->size[0];
            const float *from = p->x + (image + (inside ? place : 0)) * in;
            float *to = p->to + i * in * kernel + tap;
            for (int64_t c = 0; c < in; c++)
                to[c * kernel] = inside ? from[c] : 0;
        }
    }
}

bool conv_patches_pay(const struct conv_shape *s)
{
    enum { MANY = 256 };
    return s->last && s->spatial == 1 && s->groups == 1 && s->stride[0] > 1 && s->kernel[0] > 1 && s->out >= MANY && s->in > 1;
}

const float *conv_patches(struct kcall *call, struct conv_shape *s, const float *x)
{
    int64_t rows = s->batch * s->result[0], width = s->in * s->kernel[0];
    struct patches p = {s, x, kenv_room(call->env, ROOM_PANELS, kcall_bytes(call, rows * width, sizeof *p.to))};
    kenv_parallel_for(call->env, rows, 2 * width, patch_range, &p);
    s->in = width;
    s->size[0] = s->result[0];
    s->kernel[0] = s->stride[0] = s->dilation[0] = 1;
    s->before[0] = s->after[0] = 0;
    return p.to;
}
