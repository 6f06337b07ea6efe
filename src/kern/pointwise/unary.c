/* unary: the functions of one operand of pointwise.def. A function is a table of row functions by storage type, made from one expression.
 */
#include "kern/core/core.h"
#include "kern/core/mathf.h"
#include "kern/pointwise/pointwise.h"

#include <string.h>

struct unary {
    unary_row *f32, *f64, *integer[DT_I2 + 1]; /* by type, whatever it is */
};

static SIMD bool all_near(const float *x, int64_t n)
{
    int far = 0;
    _Pragma("omp simd reduction(|:far)") for (int64_t i = 0; i < n; i++) far |= !(fabsf(x[i]) < 0x1p20f);
    return !far;
}

#define UNARY_ROW(set, name, T, U, expr)                      \
    static set void name(const void *px, void *py, int64_t n) \
    {                                                         \
        const T *in = px;                                     \
        U *o = py;                                            \
        LOOP for (int64_t i = 0; i < n; i++)                  \
        {                                                     \
            T x = in[i];                                      \
            o[i] = (U)(expr);                                 \
        }                                                     \
    }
#define W(x) ((uint64_t)(x))

#define INT_ROW(dtype, T, t, name, expr) UNARY_ROW(, name##_##t, T, T, expr)
#define INT_ENTRY(dtype, T, t, name) [dtype] = name##_##t,
#define VECTOR_ROW(name, real32, real64) UNARY_ROW(SIMD, name##_f32, float, float, real32)
#define SCALAR_ROW(name, real32, real64) UNARY_ROW(, name##_f32, float, float, real32)
#define NEAR_ROW(name, real32, real64)                          \
    UNARY_ROW(SIMD, name##_near, float, float, real32)          \
    static float name##_far(double x)                           \
    {                                                           \
        return (float)(real64);                                 \
    }                                                           \
    static void name##_f32(const void *px, void *py, int64_t n) \
    {                                                           \
        const float *x = px;                                    \
        float *y = py;                                          \
        if (all_near(x, n))                                     \
            name##_near(px, py, n);                             \
        else                                                    \
            for (int64_t i = 0; i < n; i++)                     \
                if (all_near(x + i, 1))                         \
                    name##_near(x + i, y + i, 1);               \
                else                                            \
                    y[i] = name##_far((double)x[i]);            \
    }
#define SMOOTH_ROW(name, real32, real64)                      \
    static void name##_f32(const void *x, void *y, int64_t n) \
    {                                                         \
        smooth_##name(x, y, n);                               \
    }
#define FLOAT_ROWS(name, set, real32, real64) set##_ROW(name, real32, real64) UNARY_ROW(, name##_f64, double, double, real64)
#define UNARY(name, kernel, chain, cost, set, real32, real64) \
    FLOAT_ROWS(name, set, real32, real64)                     \
    static const struct unary name##_op = {.f32 = name##_f32, .f64 = name##_f64};
#define UNARY_INT(name, kernel, chain, cost, set, real32, real64, integer) \
    FLOAT_ROWS(name, set, real32, real64)                                  \
    INT_TYPES(INT_ROW, name, integer)                                      \
    static const struct unary name##_op = {name##_f32, name##_f64, {INT_TYPES(INT_ENTRY, name)}};
#define TEST(name, real)                              \
    UNARY_ROW(SIMD, name##_f32, float, uint8_t, real) \
    UNARY_ROW(, name##_f64, double, uint8_t, real)    \
    static const struct unary name##_op = {.f32 = name##_f32, .f64 = name##_f64};
#include "kern/pointwise/pointwise.def"

struct unary_call {
    unary_row *row;
    const struct tensor *x;
    struct tensor *y;
    size_t in_size, out_size;
};

static void unary_direct(void *data, int64_t lo, int64_t hi)
{
    const struct unary_call *c = data;
    c->row(element_at_const(c->x->data, c->in_size, lo), element_at(c->y->data, c->out_size, lo), hi - lo);
}

static void unary_small(void *data, int64_t lo, int64_t hi)
{
    const struct unary_call *c = data;
    float x[CHUNK], y[CHUNK];
    for (int64_t i = lo; i < hi; i += CHUNK) {
        int64_t m = hi - i < CHUNK ? hi - i : CHUNK;
        void *out = element_at(c->y->data, c->out_size, i);
        convert_to_f32(c->x->dtype, element_at_const(c->x->data, c->in_size, i), m, x);
        c->row(x, c->out_size == 2 ? (void *)y : out, m);
        if (c->out_size == 2)
            convert_from_f32(c->y->dtype, y, m, out);
    }
}

static void unary_kernel(struct kcall *call, const struct unary *op, int64_t cost)
{
    const struct tensor *x = &call->in[0];
    enum dtype t = x->dtype;
    struct unary_call c = {NULL, x, &call->out[0], dtype_size(t), dtype_size(call->out[0].dtype)};
    c.row = dtype_fits_f32(t) ? op->f32 : t == DT_F64 ? op->f64 : op->integer[t];
    if (!c.row)
        kcall_bad_type(call, t);
    kenv_parallel_for(call->env, tensor_elements(x), cost, dtype_is_half(t) ? unary_small : unary_direct, &c);
}

/* ---- kernels --------------------------------------------------------------------------------------------------------- */
#define DIRECT(name, cost)                    \
    void kern_##name(struct kcall *call)      \
    {                                         \
        unary_kernel(call, &name##_op, cost); \
    }
#define OWN(name, cost)
#define UNARY(name, kernel, chain, cost, set, real32, real64) kernel(name, cost)
#include "kern/pointwise/pointwise.def"

/* 8-bit floats have NaN or infinities, too: E4M3 and E5M2, in both forms. */
static void test_kernel(struct kcall *call, const struct unary *op)
{
    const struct tensor *x = &call->in[0];
    struct unary_call c = {op->f32, x, &call->out[0], dtype_size(x->dtype), dtype_size(DT_BOOL)};
    if (x->dtype >= DT_F8E4M3FN && x->dtype <= DT_F8E5M2FNUZ)
        kenv_parallel_for(call->env, tensor_elements(x), 1, unary_small, &c);
    else
        unary_kernel(call, op, 1);
}

void kern_IsNaN(struct kcall *call)
{
    test_kernel(call, &IsNaN_op);
}

void kern_IsInf(struct kcall *call)
{
    bool negative = attr_int(call->node, "detect_negative") != 0, positive = attr_int(call->node, "detect_positive") != 0;
    const struct unary *of[] = {&IsNothing_op, &IsNegativeInf_op, &IsPositiveInf_op, &IsInf_op};
    test_kernel(call, of[negative + 2 * positive]);
}

void kern_Gelu(struct kcall *call)
{
    const char *how = attr_string(call->node, "approximate");
    bool tanh_form = strcmp(how, "tanh") == 0;
    if (!tanh_form && strcmp(how, "none") != 0)
        fail("%s: attribute approximate must be none or tanh, not %s", kcall_where(call), how);
    unary_kernel(call, tanh_form ? &GeluTanh_op : &Gelu_op, 10);
}

UNARY_ROW(, not_u8, uint8_t, uint8_t, !x)

void kern_Not(struct kcall *call)
{
    struct unary_call c = {not_u8, &call->in[0], &call->out[0], 1, 1};
    if (call->in[0].dtype != DT_BOOL)
        kcall_bad_type(call, call->in[0].dtype);
    kenv_parallel_for(call->env, tensor_elements(c.x), 1, unary_direct, &c);
}

/* ---- steps of fused chains ------------------------------------------------------------------------------------------- */
#define FUSED(name) [CHAIN_##name] = name##_f32,
#define ALONE(name)
unary_row *const chain_unary[CHAIN_COUNT] = {
#define UNARY(name, kernel, chain, cost, set, real32, real64) chain(name)
#include "kern/pointwise/pointwise.def"
};
