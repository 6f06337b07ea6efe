/* optimizer: AdamW (Loshchilov, Hutter 2019) and gradient descent with momentum, elementwise, as torch defines them. A replica updates only
 * its own range of the flat arrays. */
#include "kern/core/core.h"
#include "train/train.h"

#include <math.h>

int optimizer_moments(const struct settings *s)
{
    return s->optimizer == OPTIMIZER_ADAMW ? 2 : 1;
}

struct adamw {
    float *weight, *first, *second;
    const float *gradient;
    float scale, beta1, beta2, eps, kept, rate, correction; /* kept: factor of a weight that decays; correction: of the second moment */
};

SIMD static void adamw_range(float *restrict w, float *restrict m, float *restrict v, const float *restrict g, int64_t n,
                             const struct adamw *c)
{
    float scale = c->scale, beta1 = c->beta1, beta2 = c->beta2, eps = c->eps, kept = c->kept, rate = c->rate, correction = c->correction;
    LOOP for (int64_t i = 0; i < n; i++)
    {
        float x = g[i] * scale;
        m[i] = beta1 * m[i] + (1 - beta1) * x;
        v[i] = beta2 * v[i] + (1 - beta2) * x * x;
        w[i] = w[i] * kept - rate * m[i] / (sqrtf(v[i]) * correction + eps);
    }
}

static void adamw_part(void *data, int64_t lo, int64_t hi)
{
    const struct adamw *c = data;
    adamw_range(c->weight + lo, c->first + lo, c->second + lo, c->gradient + lo, hi - lo, c);
}

struct descent {
    float *weight, *moment;
    const float *gradient;
    float scale, momentum, decay, rate;
};

SIMD static void descent_range(float *restrict w, float *restrict m, const float *restrict g, int64_t n, const struct descent *c)
{
    float scale = c->scale, momentum = c->momentum, decay = c->decay, rate = c->rate;
    LOOP for (int64_t i = 0; i < n; i++)
    {
        m[i] = momentum * m[i] + g[i] * scale + decay * w[i];
        w[i] -= rate * m[i];
    }
}

static void descent_part(void *data, int64_t lo, int64_t hi)
{
    const struct descent *c = data;
    descent_range(c->weight + lo, c->moment + lo, c->gradient + lo, hi - lo, c);
}

/* Elements from .. to of the flat arrays, all of one parameter. weight, own: positions of the weights and of their moments. */
static void step_range(const struct parameters *p, const struct settings *s, double decay, double rate, double scale, int64_t step,
                       struct range r, float *weight, int64_t own, struct kenv *env)
{
    double t = (double)step + 1;
    if (s->optimizer == OPTIMIZER_SGD) {
        struct descent c = {weight, p->moment[0] + own, p->gradient + r.from, (float)scale, (float)s->momentum, (float)decay, (float)rate};
        kenv_parallel_for(env, r.to - r.from, 8, descent_part, &c);
        return;
    }
    struct adamw c = {.weight = weight,
                      .first = p->moment[0] + own,
                      .second = p->moment[1] + own,
                      .gradient = p->gradient + r.from,
                      .scale = (float)scale,
                      .beta1 = (float)s->beta1,
                      .beta2 = (float)s->beta2,
                      .eps = (float)s->eps,
                      .kept = (float)(1 - rate * decay),
                      .rate = (float)(rate / (1 - pow(s->beta1, t))),
                      .correction = (float)(1 / sqrt(1 - pow(s->beta2, t)))};
    kenv_parallel_for(env, r.to - r.from, 16, adamw_part, &c);
}

void optimizer_step(const struct parameters *p, const struct bucket *b, const struct settings *s, double rate, double scale, int64_t step,
                    struct kenv *env)
{
    EACH (const struct parameter, x, *p) {
        struct range r = parameters_meet(b->own, (struct range){x->from, x->from + x->count});
        int64_t in = r.from - b->own.from;
        if (r.from >= r.to)
            continue;
        step_range(p, s, x->decays ? s->decay : 0, rate, scale, step, r, parameters_own(p, b) + in, b->moment + in, env);
        parameters_round(p, b, r, env);
    }
}
