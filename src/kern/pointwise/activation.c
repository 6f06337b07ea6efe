/* activation: functions of one operand with up to two parameters, which are attributes of the node. Like the other elementwise rows: f32
 * and f64 directly, f16 and bf16 in stretches through float32. NaN stays NaN. */
#include "kern/core/core.h"
#include "kern/core/mathf.h"

typedef void row_f32(const float *x, float *y, int64_t n, float a, float b);
typedef void row_f64(const double *x, double *y, int64_t n, double a, double b);
struct activation {
    row_f32 *f32;
    row_f64 *f64;
};

/* a and b are parameters; an expression that needs none reads neither. */
#define ACTIVATION_ROW(attribute, name, T, expr)                         \
    static attribute void name(const T *in, T *out, int64_t n, T a, T b) \
    {                                                                    \
        (void)a, (void)b;                                                \
        LOOP for (int64_t i = 0; i < n; i++)                             \
        {                                                                \
            T x = in[i];                                                 \
            out[i] = (expr);                                             \
        }                                                                \
    }
#define ACTIVATION(name, attribute, real32, real64)      \
    ACTIVATION_ROW(attribute, name##_f32, float, real32) \
    ACTIVATION_ROW(, name##_f64, double, real64) static const struct activation name = {name##_f32, name##_f64};

#define CLAMP_01(t) ((t) < 0 ? 0 : (t) > 1 ? 1 : (t))
#define SOFTPLUS_32(x) (((x) > 0 ? (x) : 0.0f) + log1pf(expf(-fabsf(x))))
#define SOFTPLUS_64(x) (((x) > 0 ? (x) : 0.0) + log1p(exp(-fabs(x))))

ACTIVATION(leaky_relu, SIMD, x < 0 ? a * x : x, x < 0 ? a * x : x)
ACTIVATION(shrink, SIMD, x<-a ? x + b : x> a ? x - b : x - x, x<-a ? x + b : x> a ? x - b : x - x)
ACTIVATION(thresholded_relu, SIMD, x <= a ? 0.0f : x, x <= a ? 0.0 : x)
ACTIVATION(hard_sigmoid, SIMD, CLAMP_01(a *x + b), CLAMP_01(a *x + b))
ACTIVATION(hard_swish, SIMD, x *CLAMP_01(x / 6.0f + 0.5f), x *CLAMP_01(x / 6.0 + 0.5))
ACTIVATION(softsign, SIMD, x / (1.0f + fabsf(x)), x / (1.0 + fabs(x)))
ACTIVATION(swish, SIMD, x *sigmoid_f32(a *x), x / (1.0 + exp(-a * x)))
ACTIVATION(elu, , x < 0 ? a * expm1f(x) : x, x < 0 ? a * expm1(x) : x)
ACTIVATION(celu, , x < 0 ? a * expm1f(x / a) : x, x < 0 ? a * expm1(x / a) : x)
ACTIVATION(selu, , b *(x < 0 ? a * expm1f(x) : x), b *(x < 0 ? a * expm1(x) : x))
ACTIVATION(softplus, , SOFTPLUS_32(x), SOFTPLUS_64(x))
ACTIVATION(mish, , x *tanh_f32(SOFTPLUS_32(x)), x *tanh(SOFTPLUS_64(x)))

struct activation_call {
    const struct activation *of;
    const struct tensor *x;
    struct tensor *y;
    double a, b;
};

static void activation_range(void *data, int thread, int64_t lo, int64_t hi)
{
    const struct activation_call *c = data;
    enum dtype t = c->x->dtype;
    size_t size = dtype_size(t);
    const void *x = at_const(c->x->data, size, lo);
    void *y = at(c->y->data, size, lo);
    float part[CHUNK], result[CHUNK];
    (void)thread;
    if (t == DT_F32)
        c->of->f32(x, y, hi - lo, (float)c->a, (float)c->b);
    else if (t == DT_F64)
        c->of->f64(x, y, hi - lo, c->a, c->b);
    for (int64_t i = lo; is_small_float(t) && i < hi; i += CHUNK) {
        int64_t m = hi - i < CHUNK ? hi - i : CHUNK;
        load_f32(t, at_const(c->x->data, size, i), m, part);
        c->of->f32(part, result, m, (float)c->a, (float)c->b);
        store_f32(t, result, m, at(c->y->data, size, i));
    }
}

static void activation_kernel(struct kcall *call, const struct activation *of, double a, double b)
{
    struct activation_call c = {of, &call->in[0], &call->out[0], a, b};
    if (!dtype_is_float(c.x->dtype) || !dtype_size(c.x->dtype))
        call_bad_type(call, c.x->dtype);
    parallel_for(call->env, tensor_elements(c.x), 8, activation_range, &c);
}

static double alpha_of(const struct kcall *call)
{
    return attr_float(call->node, "alpha");
}

void kern_LeakyRelu(struct kcall *call)
{
    activation_kernel(call, &leaky_relu, alpha_of(call), 0);
}
void kern_ThresholdedRelu(struct kcall *call)
{
    activation_kernel(call, &thresholded_relu, alpha_of(call), 0);
}
void kern_HardSigmoid(struct kcall *call)
{
    activation_kernel(call, &hard_sigmoid, alpha_of(call), attr_float(call->node, "beta"));
}
void kern_Shrink(struct kcall *call)
{
    activation_kernel(call, &shrink, attr_float(call->node, "lambd"), attr_float(call->node, "bias"));
}
void kern_HardSwish(struct kcall *call)
{
    activation_kernel(call, &hard_swish, 0, 0);
}
void kern_Softsign(struct kcall *call)
{
    activation_kernel(call, &softsign, 0, 0);
}
void kern_Swish(struct kcall *call)
{
    activation_kernel(call, &swish, alpha_of(call), 0);
}
void kern_Elu(struct kcall *call)
{
    activation_kernel(call, &elu, alpha_of(call), 0);
}
void kern_Celu(struct kcall *call)
{
    activation_kernel(call, &celu, alpha_of(call), 0);
}
void kern_Selu(struct kcall *call)
{
    activation_kernel(call, &selu, alpha_of(call), attr_float(call->node, "gamma"));
}
void kern_Softplus(struct kcall *call)
{
    activation_kernel(call, &softplus, 0, 0);
}
void kern_Mish(struct kcall *call)
{
    activation_kernel(call, &mish, 0, 0);
}
