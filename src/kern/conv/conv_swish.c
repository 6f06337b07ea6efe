/* conv_swish: x / (1 + exp(-alpha x)) on a convolution's results.
 *
 * Products and additions may be contracted to multiply-adds: they are computed in whole blocks, so that no remainder is contracted
 * differently. */
#if defined(__clang__)
#pragma clang fp contract(fast)
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=fast")
#endif
#include "kern/conv/conv.h"
#include "kern/core/core.h"
#include "kern/core/mathf.h"
#include "kern/gemm/gemm.h"

#include <string.h>

enum { STRETCH = 64 };
struct swish {
    float alpha, scale, shift;
    int64_t n;
    const float *z;
    float *y;
};

/* Bounds are applied first, in a separate loop: otherwise GCC would divide twice, for sums at a bound and for others. */
static SIMD void swish_stretches(const struct swish *s, int64_t stretches, const float *z, float *y)
{
    float x[STRETCH], alpha = -s->alpha * MATHF_LOG2E, scale = s->scale, shift = s->shift;
    for (int64_t i = 0; i < stretches; i++, y += STRETCH, z += z ? STRETCH : 0) {
        LOOP for (int j = 0; j < STRETCH; j++)
        {
            float t = alpha * y[j], low = t < -126.0f ? -126.0f : t;
            x[j] = low > 126.0f ? 126.0f : low;
        }
        LOOP for (int j = 0; j < STRETCH; j++) y[j] = y[j] * scale / (1.0f + mathf_exp2_near(x[j])) + shift;
        if (z)
            LOOP for (int j = 0; j < STRETCH; j++) y[j] += z[j];
    }
}

static void swish_range(void *data, int64_t lo, int64_t hi)
{
    const struct swish *s = data;
    int64_t whole = s->n / STRETCH, rest = s->n % STRETCH, at = whole * STRETCH;
    swish_stretches(s, (hi < whole ? hi : whole) - lo, s->z ? s->z + lo * STRETCH : NULL, s->y + lo * STRETCH);
    if (hi <= whole)
        return;
    float y[STRETCH] = {0}, z[STRETCH] = {0};
    memcpy(y, s->y + at, (size_t)rest * sizeof *y);
    if (s->z)
        memcpy(z, s->z + at, (size_t)rest * sizeof *z);
    swish_stretches(s, 1, z, y);
    memcpy(s->y + at, y, (size_t)rest * sizeof *y);
}

void conv_swish_run(const struct result_function *f, float *x, int64_t n)
{
    struct swish s = {f->alpha, f->scale, f->shift, n, NULL, x};
    swish_range(&s, 0, (n + STRETCH - 1) / STRETCH);
}

void conv_swish(struct kenv *env, const struct conv_shape *shape, int64_t n, const float *z, float *y)
{
    struct swish s = {shape->alpha, shape->scale, shape->shift, n, z, y};
    kenv_parallel_for(env, (n + STRETCH - 1) / STRETCH, 8 * STRETCH, swish_range, &s);
}
