/* random: numbers drawn from a distribution. Number i of run k of a node is a function of its seed, k and i alone, so ranks agree
 * independent of threads. Without a seed, the node's name is the seed: every run of the program draws the same numbers. */
#include "kern/core/core.h"

#include <math.h>
#include <string.h>

struct draws {
    uint64_t base;
};

/* The number of earlier runs of this node. */
static uint64_t count_run(const struct kcall *call)
{
    if (!call->cache)
        return 0;
    if (!*call->cache)
        *call->cache = kenv_keep(call->env, sizeof(uint64_t));
    return (*(uint64_t *)*call->cache)++;
}

static struct draws draws_begin(const struct kcall *call)
{
    uint64_t seed = 0;
    if (attr_is_set(call->node, "seed")) {
        double given = attr_float(call->node, "seed");
        memcpy(&seed, &given, sizeof seed);
    } else
        for (const char *at = call->node->name ? call->node->name : ""; *at; at++)
            seed = splitmix(seed ^ (unsigned char)*at);
    return (struct draws){splitmix(splitmix(seed) + count_run(call))};
}

/* From 0 to below 1. */
static double draw_uniform(const struct draws *d, int64_t i, uint64_t stream)
{
    return (double)(splitmix(d->base ^ splitmix((uint64_t)i * 2 + stream)) >> 40) * 0x1p-24;
}

static double draw_normal(const struct draws *d, int64_t i)
{
    double angle = 6.283185307179586 * draw_uniform(d, i, 0);
    return sqrt(-2 * log(1 - draw_uniform(d, i, 1))) * cos(angle);
}

static void uniform(struct kcall *call)
{
    struct draws d = draws_begin(call);
    struct tensor *y = &call->out[0];
    double low = attr_float(call->node, "low"), width = attr_float(call->node, "high") - low;
    for (int64_t i = 0; i < tensor_elements(y); i++) {
        double value = low + width * draw_uniform(&d, i, 0);
        convert_from_f64(y->dtype, &value, 1, element_at(y->data, dtype_size(y->dtype), i));
    }
}

static void normal(struct kcall *call)
{
    struct draws d = draws_begin(call);
    struct tensor *y = &call->out[0];
    double mean = attr_float(call->node, "mean"), scale = attr_float(call->node, "scale");
    for (int64_t i = 0; i < tensor_elements(y); i++) {
        double value = mean + scale * draw_normal(&d, i);
        convert_from_f64(y->dtype, &value, 1, element_at(y->data, dtype_size(y->dtype), i));
    }
}

KERNEL_IS(RandomUniform, uniform(call))
KERNEL_IS(RandomUniformLike, uniform(call))
KERNEL_IS(RandomNormal, normal(call))
KERNEL_IS(RandomNormalLike, normal(call))

void kern_Bernoulli(struct kcall *call)
{
    struct draws d = draws_begin(call);
    const struct tensor *x = &call->in[0];
    struct tensor *y = &call->out[0];
    for (int64_t i = 0; i < tensor_elements(y); i++) {
        double chance, value;
        convert_to_f64(x->dtype, element_at_const(x->data, dtype_size(x->dtype), i), 1, &chance);
        value = draw_uniform(&d, i, 0) < chance;
        convert_from_f64(y->dtype, &value, 1, element_at(y->data, dtype_size(y->dtype), i));
    }
}
