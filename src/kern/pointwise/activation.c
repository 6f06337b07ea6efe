/* activation: functions of one operand with up to two parameters, which are attributes of the node (pointwise.def). */
#include "kern/core/core.h"
#include "kern/core/mathf.h"

typedef void row_f32(const float *x, float *y, int64_t n, float a, float b);
typedef void row_f64(const double *x, double *y, int64_t n, double a, double b);
struct activation {
    row_f32 *f32;
    row_f64 *f64;
};

/* a and b are parameters; an expression without parameters reads neither. */
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
#define CLAMP_01(t) ((t) < 0 ? 0 : (t) > 1 ? 1 : (t))
#define SOFTPLUS_64(x) (((x) > 0 ? (x) : 0.0) + log1p(exp(-fabs(x))))
#define SCALAR
#define ACTIVATION(name, p, q, set, real32, real64) \
    ACTIVATION_ROW(set, name##_f32, float, real32)  \
    ACTIVATION_ROW(SCALAR, name##_f64, double, real64)
#include "kern/pointwise/pointwise.def"

struct activation_call {
    const struct activation *of;
    const struct tensor *x;
    struct tensor *y;
    double a, b;
};

static void activation_range(void *data, int64_t lo, int64_t hi)
{
    const struct activation_call *c = data;
    enum dtype t = c->x->dtype;
    size_t size = dtype_size(t);
    const void *x = element_at_const(c->x->data, size, lo);
    void *y = element_at(c->y->data, size, lo);
    float part[CHUNK], result[CHUNK];
    if (t == DT_F32)
        c->of->f32(x, y, hi - lo, (float)c->a, (float)c->b);
    else if (t == DT_F64)
        c->of->f64(x, y, hi - lo, c->a, c->b);
    for (int64_t i = lo; dtype_is_half(t) && i < hi; i += CHUNK) {
        int64_t m = hi - i < CHUNK ? hi - i : CHUNK;
        convert_to_f32(t, element_at_const(c->x->data, size, i), m, part);
        c->of->f32(part, result, m, (float)c->a, (float)c->b);
        convert_from_f32(t, result, m, element_at(c->y->data, size, i));
    }
}

static void activation_kernel(struct kcall *call, const struct activation *of, double a, double b)
{
    struct activation_call c = {of, &call->in[0], &call->out[0], a, b};
    if (!dtype_is_float(c.x->dtype) || !dtype_size(c.x->dtype))
        kcall_bad_type(call, c.x->dtype);
    kenv_parallel_for(call->env, tensor_elements(c.x), 8, activation_range, &c);
}

static double parameter(const struct kcall *call, const char *attribute)
{
    return attribute ? attr_float(call->node, attribute) : 0;
}

#define ACTIVATION(name, p, q, set, real32, real64)                             \
    void kern_##name(struct kcall *call)                                        \
    {                                                                           \
        static const struct activation rows = {name##_f32, name##_f64};         \
        activation_kernel(call, &rows, parameter(call, p), parameter(call, q)); \
    }
#include "kern/pointwise/pointwise.def"
