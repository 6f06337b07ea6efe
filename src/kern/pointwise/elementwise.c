/* elementwise: unary functions, broadcasting binary ones, comparisons.
 *
 * An op is a table of row functions by storage type, made from one expression. f16 and bf16 rows are converted to float32 in stretches,
 * integers are computed modulo 2^64 and narrowed, division by zero is refused before the loop. The walk does the broadcasting. */
#include "kern/core/core.h"
#include "kern/core/mathf.h"
#include "kern/pointwise/pointwise.h"

#include <string.h>

/* ---- binary rows ------------------------------------------------------------------------------------------------------
 * Steps sa and sb are 1, or 0 for an operand that stays the same along the row. */
#define BINARY_BODY(T, U, expr)              \
    const T *a = pa, *b = pb;                \
    U *o = po;                               \
    if (sa && sb) {                          \
        LOOP for (int64_t i = 0; i < n; i++) \
        {                                    \
            T x = a[i], y = b[i];            \
            o[i] = (U)(expr);                \
        }                                    \
    } else if (sa) {                         \
        T y = b[0];                          \
        LOOP for (int64_t i = 0; i < n; i++) \
        {                                    \
            T x = a[i];                      \
            o[i] = (U)(expr);                \
        }                                    \
    } else if (sb) {                         \
        T x = a[0];                          \
        LOOP for (int64_t i = 0; i < n; i++) \
        {                                    \
            T y = b[i];                      \
            o[i] = (U)(expr);                \
        }                                    \
    } else {                                 \
        T x = a[0], y = b[0];                \
        for (int64_t i = 0; i < n; i++)      \
            o[i] = (U)(expr);                \
    }
#define BINARY_ROW(attribute, name, T, U, expr)                                                     \
    static attribute void name(const void *pa, int sa, const void *pb, int sb, void *po, int64_t n) \
    {                                                                                               \
        BINARY_BODY(T, U, expr)                                                                     \
    }

struct binary {
    binary_row *f32, *f64, *integer[DT_BF16 + 1];
};

/* Arithmetic: W is the unsigned type in which integers wrap. */
#define W(x) ((uint64_t)(x))
#define ARITHMETIC_ROW(dt, T, t, name, expr) BINARY_ROW(, name##_row_##t, T, T, expr)
#define TABLE_ENTRY(name, dt, t) [dt] = name##_row_##t
#define INT_TABLE(name)                                                                                                                    \
    {                                                                                                                                      \
        TABLE_ENTRY(name, DT_I8, i8), TABLE_ENTRY(name, DT_U8, u8), TABLE_ENTRY(name, DT_I16, i16), TABLE_ENTRY(name, DT_U16, u16),        \
            TABLE_ENTRY(name, DT_I32, i32), TABLE_ENTRY(name, DT_U32, u32), TABLE_ENTRY(name, DT_I64, i64), TABLE_ENTRY(name, DT_U64, u64) \
    }
#define INT_ROWS(name, expr)                                                                                                             \
    ARITHMETIC_ROW(0, int8_t, i8, name, expr)                                                                                            \
    ARITHMETIC_ROW(0, uint8_t, u8, name, expr)                                                                                           \
    ARITHMETIC_ROW(0, int16_t, i16, name, expr)                                                                                          \
    ARITHMETIC_ROW(0, uint16_t, u16, name, expr)                                                                                         \
    ARITHMETIC_ROW(0, int32_t, i32, name, expr) ARITHMETIC_ROW(0, uint32_t, u32, name, expr) ARITHMETIC_ROW(0, int64_t, i64, name, expr) \
        ARITHMETIC_ROW(0, uint64_t, u64, name, expr)
#define BINARY(name, real32, real64, integer_expr)         \
    BINARY_ROW(SIMD, name##_row_f32, float, float, real32) \
    BINARY_ROW(, name##_row_f64, double, double, real64)   \
    INT_ROWS(name, integer_expr) static const struct binary name##_op = {name##_row_f32, name##_row_f64, INT_TABLE(name)};

/* Python's modulus: the sign of the divisor, of zeros too. */
static inline double floor_mod(double x, double y)
{
    double r = fmod(x, y);
    return r < 0.0 || r > 0.0 ? ((r < 0.0) != (y < 0.0) ? r + y : r) : copysign(r, y);
}

/* Integer division of signed and unsigned operands, y != 0; the one overflow wraps. */
#define INTEGER(op, x, y)               \
    (_Generic((x), uint8_t              \
              : op##_unsigned, uint16_t \
              : op##_unsigned, uint32_t \
              : op##_unsigned, uint64_t \
              : op##_unsigned, default  \
              : op##_signed)((x), (y)))
static inline uint64_t div_unsigned(uint64_t x, uint64_t y)
{
    return x / y;
}
static inline uint64_t rem_unsigned(uint64_t x, uint64_t y)
{
    return x % y;
}
static inline uint64_t mod_unsigned(uint64_t x, uint64_t y)
{
    return x % y;
}
static inline uint64_t div_signed(int64_t x, int64_t y)
{
    return y == -1 ? W(0) - W(x) : W(x / y);
}
static inline int64_t rem_signed(int64_t x, int64_t y)
{
    return y == -1 ? 0 : x % y;
}
static inline int64_t mod_signed(int64_t x, int64_t y)
{
    return y == -1 ? 0 : floormod_i64(x, y);
}

/* x to the power of an integer, modulo 2^64; negative powers of integers other than 1 and -1 are 0. */
static uint64_t pow_wrap(uint64_t x, int64_t y)
{
    if (y < 0)
        return x == 1 ? 1 : x == UINT64_MAX ? (y % 2 ? x : 1) : 0;
    uint64_t result = 1;
    for (; y; y >>= 1, x *= x)
        if (y & 1)
            result *= x;
    return result;
}

BINARY(add, x + y, x + y, W(x) + W(y))
BINARY(sub, x - y, x - y, W(x) - W(y))
BINARY(mul, x *y, x *y, W(x) * W(y))
BINARY(div, x / y, x / y, INTEGER(div, x, y))
BINARY(fmod, fmodf(x, y), fmod(x, y), INTEGER(rem, x, y))
BINARY(mod, (float)floor_mod((double)x, (double)y), floor_mod(x, y), INTEGER(mod, x, y))
BINARY(max, x > y || x != x ? x : y, x > y || x != x ? x : y, x > y ? x : y)
BINARY(min, x < y || x != x ? x : y, x < y || x != x ? x : y, x < y ? x : y)
BINARY(prelu, x < 0 ? x * y : x, x<0 ? x * y : x, x> 0 ? W(x) : W(x) * W(y))
BINARY(pow, (float)pow((double)x, (double)y), pow(x, y), pow_wrap(W(x), (int64_t)y))

/* Comparisons and logic give booleans. */
#define COMPARE_ROWS(name, expr)                                                                               \
    BINARY_ROW(, name##_row_i8, int8_t, uint8_t, expr)                                                         \
    BINARY_ROW(, name##_row_u8, uint8_t, uint8_t, expr)                                                        \
    BINARY_ROW(, name##_row_i16, int16_t, uint8_t, expr)                                                       \
    BINARY_ROW(, name##_row_u16, uint16_t, uint8_t, expr)                                                      \
    BINARY_ROW(, name##_row_i32, int32_t, uint8_t, expr) BINARY_ROW(, name##_row_u32, uint32_t, uint8_t, expr) \
        BINARY_ROW(, name##_row_i64, int64_t, uint8_t, expr) BINARY_ROW(, name##_row_u64, uint64_t, uint8_t, expr)
#define COMPARE(name, expr)                             \
    BINARY_ROW(, name##_row_f32, float, uint8_t, expr)  \
    BINARY_ROW(, name##_row_f64, double, uint8_t, expr) \
    COMPARE_ROWS(name, expr) static const struct binary name##_op = {name##_row_f32, name##_row_f64, INT_TABLE(name)};
COMPARE(less, x < y)
COMPARE(lessorequal, x <= y)
COMPARE(greater, x > y)
COMPARE(greaterorequal, x >= y)
COMPARE(equal, x >= y && x <= y)
COMPARE(and, x != 0 && y != 0)
COMPARE(or, x != 0 || y != 0)
COMPARE(xor, (x != 0) != (y != 0))

/* ---- running a binary op --------------------------------------------------------------------------------------------- */
struct binary_call {
    const struct walk *walk;
    binary_row *row;
    const struct tensor *a, *b;
    struct tensor *out;
    size_t in_size, out_size;
};

static int step_of(const struct binary_call *c, int k)
{
    return c->walk->stride[k][c->walk->rank - 1] != 0;
}

static void binary_direct(void *data, const int64_t *offset, int64_t n)
{
    const struct binary_call *c = data;
    c->row(at_const(c->a->data, c->in_size, offset[1]), step_of(c, 1), at_const(c->b->data, c->in_size, offset[2]), step_of(c, 2),
           at(c->out->data, c->out_size, offset[0]), n);
}

/* f16 and bf16: rows of CHUNK elements through float32. */
static void binary_small(void *data, const int64_t *offset, int64_t n)
{
    const struct binary_call *c = data;
    float a[CHUNK], b[CHUNK], o[CHUNK];
    int sa = step_of(c, 1), sb = step_of(c, 2);
    for (int64_t i = 0; i < n; i += CHUNK) {
        int64_t m = n - i < CHUNK ? n - i : CHUNK;
        load_f32(c->a->dtype, at_const(c->a->data, 2, offset[1] + i * sa), sa ? m : 1, a);
        load_f32(c->b->dtype, at_const(c->b->data, 2, offset[2] + i * sb), sb ? m : 1, b);
        void *out = at(c->out->data, c->out_size, offset[0] + i);
        c->row(a, sa, b, sb, c->out_size == 2 ? (void *)o : out, m);
        if (c->out_size == 2)
            store_f32(c->out->dtype, o, m, out);
    }
}

static void binary_run(struct kcall *call, const struct binary *op, const struct tensor *a, const struct tensor *b, struct tensor *out)
{
    enum dtype t = a->dtype;
    struct walk w;
    struct binary_call c = {&w, NULL, a, b, out, dtype_size(t), dtype_size(out->dtype)};
    if (b->dtype != t)
        fail("%s: operands must have one type, found %s and %s", call_where(call), dtype_name(t), dtype_name(b->dtype));
    c.row = t == DT_F32 || is_small_float(t) ? op->f32 : t == DT_F64 ? op->f64 : op->integer[t == DT_BOOL ? DT_U8 : (int)t];
    if (!c.row)
        call_bad_type(call, t);
    const struct tensor *in[2] = {a, b};
    walk_broadcast(call, &w, out, 2, in);
    walk_run(call->env, &w, is_small_float(t) ? 4 : 2, is_small_float(t) ? binary_small : binary_direct, &c);
}

static void binary_kernel(struct kcall *call, const struct binary *op)
{
    binary_run(call, op, &call->in[0], &call->in[1], &call->out[0]);
}

/* Folds a variadic op from the left, in place after the first pair. */
static void variadic_kernel(struct kcall *call, const struct binary *op)
{
    struct tensor *out = &call->out[0];
    if (call->nin == 1)
        copy_dense(call->env, out->data, call->in[0].data, tensor_bytes(out));
    else
        binary_kernel(call, op);
    for (int i = 2; i < call->nin; i++)
        binary_run(call, op, out, &call->in[i], out);
}

/* Integer division by zero has no value: refuse it. */
static void refuse_zero(const struct kcall *call)
{
    const struct tensor *b = &call->in[1];
    if (dtype_is_float(b->dtype) || tensor_elements(&call->out[0]) == 0)
        return;
    int64_t part[CHUNK], n = tensor_elements(b);
    for (int64_t i = 0; i < n; i += CHUNK) {
        int64_t m = n - i < CHUNK ? n - i : CHUNK;
        load_i64(b->dtype, at_const(b->data, dtype_size(b->dtype), i), m, part);
        for (int64_t j = 0; j < m; j++)
            if (part[j] == 0)
                fail("%s: integer division by zero (element %lld of the divisor)", call_where(call), (long long)(i + j));
    }
}

void kern_Add(struct kcall *call)
{
    binary_kernel(call, &add_op);
}
void kern_Sub(struct kcall *call)
{
    binary_kernel(call, &sub_op);
}
void kern_Mul(struct kcall *call)
{
    binary_kernel(call, &mul_op);
}
void kern_Max(struct kcall *call)
{
    variadic_kernel(call, &max_op);
}
void kern_Min(struct kcall *call)
{
    variadic_kernel(call, &min_op);
}
void kern_And(struct kcall *call)
{
    binary_kernel(call, &and_op);
}
void kern_Or(struct kcall *call)
{
    binary_kernel(call, &or_op);
}
void kern_Xor(struct kcall *call)
{
    binary_kernel(call, &xor_op);
}
void kern_PRelu(struct kcall *call)
{
    binary_kernel(call, &prelu_op);
}
void kern_Sum(struct kcall *call)
{
    variadic_kernel(call, &add_op);
}

/* min(max(x, low), high): where the bounds cross, the upper one wins. */
void kern_Clip(struct kcall *call)
{
    const struct tensor *x = &call->in[0], *low = call_in(call, 1), *high = call_in(call, 2);
    struct tensor *out = &call->out[0];
    if (low)
        binary_run(call, &max_op, x, low, out);
    if (high)
        binary_run(call, &min_op, low ? out : x, high, out);
    if (!low && !high)
        copy_dense(call->env, out->data, x->data, tensor_bytes(out));
}
void kern_Equal(struct kcall *call)
{
    binary_kernel(call, &equal_op);
}
void kern_Greater(struct kcall *call)
{
    binary_kernel(call, &greater_op);
}
void kern_GreaterOrEqual(struct kcall *call)
{
    binary_kernel(call, &greaterorequal_op);
}
void kern_Less(struct kcall *call)
{
    binary_kernel(call, &less_op);
}
void kern_LessOrEqual(struct kcall *call)
{
    binary_kernel(call, &lessorequal_op);
}

void kern_Div(struct kcall *call)
{
    refuse_zero(call);
    binary_kernel(call, &div_op);
}

void kern_Mod(struct kcall *call)
{
    refuse_zero(call);
    binary_kernel(call, attr_int(call->node, "fmod") ? &fmod_op : &mod_op);
}

/* ---- Pow: the exponent may have another type ------------------------------------------------------------------------ */
static struct tensor converted(struct kcall *call, const struct tensor *t, enum dtype to)
{
    struct tensor r = *t;
    int64_t n = tensor_elements(t);
    size_t from = dtype_size(t->dtype), size = dtype_size(to);
    double part[CHUNK];
    r.dtype = to;
    r.data = kenv_room(call->env, ROOM_A, (size_t)n * size);
    for (int64_t i = 0; i < n; i += CHUNK) {
        int64_t m = n - i < CHUNK ? n - i : CHUNK;
        load_f64(t->dtype, at_const(t->data, from, i), m, part);
        store_f64(to, part, m, at(r.data, size, i));
    }
    return r;
}

/* Floating-point powers of integers: computed in double, stored as the base's type. */
static void pow_through_f64(struct kcall *call)
{
    const struct tensor *x = &call->in[0], *y = &call->in[1];
    struct tensor *out = &call->out[0];
    struct tensor b = converted(call, y, DT_F64), o = *out, a = *x;
    a.dtype = o.dtype = DT_F64;
    int64_t n = tensor_elements(out), m = tensor_elements(x);
    a.data = kenv_room(call->env, ROOM_B, call_bytes(call, m, 8));
    o.data = kenv_room(call->env, ROOM_C, call_bytes(call, n, 8));
    load_f64(x->dtype, x->data, m, a.data);
    binary_run(call, &pow_op, &a, &b, &o);
    store_f64(out->dtype, o.data, n, out->data);
}

static bool is_scalar_value(const struct tensor *t, double value)
{
    double x;
    if (tensor_elements(t) != 1 || dtype_size(t->dtype) == 0)
        return false;
    load_f64(t->dtype, t->data, 1, &x);
    return x >= value && x <= value;
}

void kern_Pow(struct kcall *call)
{
    const struct tensor *x = &call->in[0], *y = &call->in[1];
    if (is_scalar_value(y, 2.0) && tensor_elements(x) == tensor_elements(&call->out[0])) {
        binary_run(call, &mul_op, x, x, &call->out[0]);
    } else if (is_scalar_value(y, 3.0) && x->dtype == DT_F32 && tensor_elements(x) == tensor_elements(&call->out[0])) {
        binary_run(call, &mul_op, x, x, &call->out[0]); /* as a chain does it */
        binary_run(call, &mul_op, &call->out[0], x, &call->out[0]);
    } else if (x->dtype == y->dtype) {
        binary_kernel(call, &pow_op);
    } else if (!dtype_is_float(x->dtype) && dtype_is_float(y->dtype)) {
        pow_through_f64(call);
    } else {
        struct tensor b = converted(call, y, x->dtype);
        binary_run(call, &pow_op, x, &b, &call->out[0]);
    }
}

/* ---- unary ------------------------------------------------------------------------------------------------------------- */
struct unary {
    unary_row *f32, *f64, *integer[DT_BF16 + 1];
};

#define UNARY_ROW(attribute, name, T, U, expr)                      \
    static attribute void name(const void *px, void *py, int64_t n) \
    {                                                               \
        const T *in = px;                                           \
        U *o = py;                                                  \
        LOOP for (int64_t i = 0; i < n; i++)                        \
        {                                                           \
            T x = in[i];                                            \
            o[i] = (U)(expr);                                       \
        }                                                           \
    }
#define UNARY_REAL(name, attribute, real32, real64) \
    UNARY_ROW(attribute, name##_row_f32, float, float, real32) UNARY_ROW(, name##_row_f64, double, double, real64)
#define UNARY(name, attribute, real32, real64) \
    UNARY_REAL(name, attribute, real32, real64) static const struct unary name##_op = {.f32 = name##_row_f32, .f64 = name##_row_f64};
#define UNARY_INT(name, real32, real64, expr)                                                                                            \
    UNARY_REAL(name, SIMD, real32, real64)                                                                                               \
    UNARY_ROW(, name##_row_i8, int8_t, int8_t, expr)                                                                                     \
    UNARY_ROW(, name##_row_u8, uint8_t, uint8_t, expr)                                                                                   \
    UNARY_ROW(, name##_row_i16, int16_t, int16_t, expr)                                                                                  \
    UNARY_ROW(, name##_row_u16, uint16_t, uint16_t, expr)                                                                                \
    UNARY_ROW(, name##_row_i32, int32_t, int32_t, expr) UNARY_ROW(, name##_row_u32, uint32_t, uint32_t, expr)                            \
        UNARY_ROW(, name##_row_i64, int64_t, int64_t, expr)                                                                              \
            UNARY_ROW(, name##_row_u64, uint64_t, uint64_t, expr) static const struct unary name##_op = {name##_row_f32, name##_row_f64, \
                                                                                                         INT_TABLE(name)};

#define SQRT_HALF 0.70710678118654752440
#define SQRT_2_OVER_PI 0.79788456080286535588

UNARY_INT(abs, fabsf(x), fabs(x), x > 0 ? W(x) : W(0) - W(x))
UNARY_INT(neg, -x, -x, W(0) - W(x))
UNARY_INT(relu, x > 0.0f || x != x ? x : 0.0f, x > 0.0 || x != x ? x : 0.0, x > 0 ? x : 0)
UNARY(cos, , cosf(x), cos(x))
UNARY(sin, , sinf(x), sin(x))
UNARY(log, , logf(x), log(x))
UNARY(floor, , floorf(x), floor(x))
UNARY(ceil, , ceilf(x), ceil(x))
UNARY(round, , rintf(x), rint(x))
UNARY(tan, , tanf(x), tan(x))
UNARY(asin, , asinf(x), asin(x))
UNARY(acos, , acosf(x), acos(x))
UNARY(atan, , atanf(x), atan(x))
UNARY(sinh, , sinhf(x), sinh(x))
UNARY(cosh, , coshf(x), cosh(x))
UNARY(asinh, , asinhf(x), asinh(x))
UNARY(acosh, , acoshf(x), acosh(x))
UNARY(atanh, , atanhf(x), atanh(x))
UNARY_INT(sign, x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : x, x > 0.0 ? 1.0 : x < 0.0 ? -1.0 : x, x > 0 ? W(1) : x ? W(0) - W(1) : W(0))
UNARY(sqrt, SIMD, sqrtf(x), sqrt(x))
UNARY(reciprocal, SIMD, 1.0f / x, 1.0 / x)
UNARY(exp, SIMD, exp_f32(x), exp(x))
UNARY(erf, SIMD, erf_f32(x), erf(x))
UNARY(tanh, SIMD, tanh_f32(x), tanh(x))
UNARY(sigmoid, SIMD, sigmoid_f32(x), 1.0 / (1.0 + exp(-x)))
UNARY(gelu, SIMD, 0.5f * x * (1.0f + erf_f32(x * (float)SQRT_HALF)), 0.5 * x * (1.0 + erf(x * SQRT_HALF)))
UNARY(gelutanh, SIMD, 0.5f * x * (1.0f + tanh_f32((float)SQRT_2_OVER_PI * (x + 0.044715f * x * x * x))),
      0.5 * x * (1.0 + tanh(SQRT_2_OVER_PI * (x + 0.044715 * x * x * x))))
UNARY_ROW(SIMD, isnan_f32, float, uint8_t, x != x)
UNARY_ROW(, isnan_f64, double, uint8_t, x != x)
UNARY_ROW(, isinf_f32, float, uint8_t, isinf(x) != 0)
UNARY_ROW(, isinf_f64, double, uint8_t, isinf(x) != 0)
UNARY_ROW(, ispos_f32, float, uint8_t, isinf(x) && x > 0)
UNARY_ROW(, ispos_f64, double, uint8_t, isinf(x) && x > 0)
UNARY_ROW(, isneg_f32, float, uint8_t, isinf(x) && x < 0)
UNARY_ROW(, isneg_f64, double, uint8_t, isinf(x) && x < 0)
UNARY_ROW(, never_f32, float, uint8_t, ((void)x, 0))
UNARY_ROW(, never_f64, double, uint8_t, ((void)x, 0))
/* By detect_negative + 2 * detect_positive. */
static const struct unary isinf_op[4] = {{.f32 = never_f32, .f64 = never_f64},
                                         {.f32 = isneg_f32, .f64 = isneg_f64},
                                         {.f32 = ispos_f32, .f64 = ispos_f64},
                                         {.f32 = isinf_f32, .f64 = isinf_f64}};
static const struct unary isnan_op = {.f32 = isnan_f32, .f64 = isnan_f64};

struct unary_call {
    unary_row *row;
    const struct tensor *x;
    struct tensor *y;
    size_t in_size, out_size;
};

static void unary_direct(void *data, int thread, int64_t lo, int64_t hi)
{
    const struct unary_call *c = data;
    (void)thread;
    c->row(at_const(c->x->data, c->in_size, lo), at(c->y->data, c->out_size, lo), hi - lo);
}

static void unary_small(void *data, int thread, int64_t lo, int64_t hi)
{
    const struct unary_call *c = data;
    float x[CHUNK], y[CHUNK];
    (void)thread;
    for (int64_t i = lo; i < hi; i += CHUNK) {
        int64_t m = hi - i < CHUNK ? hi - i : CHUNK;
        void *out = at(c->y->data, c->out_size, i);
        load_f32(c->x->dtype, at_const(c->x->data, 2, i), m, x);
        c->row(x, c->out_size == 2 ? (void *)y : out, m);
        if (c->out_size == 2)
            store_f32(c->y->dtype, y, m, out);
    }
}

static void unary_kernel(struct kcall *call, const struct unary *op, int64_t cost)
{
    const struct tensor *x = &call->in[0];
    enum dtype t = x->dtype;
    struct unary_call c = {NULL, x, &call->out[0], dtype_size(t), dtype_size(call->out[0].dtype)};
    c.row = t == DT_F32 || is_small_float(t) ? op->f32 : t == DT_F64 ? op->f64 : op->integer[t];
    if (!c.row)
        call_bad_type(call, t);
    parallel_for(call->env, tensor_elements(x), cost, is_small_float(t) ? unary_small : unary_direct, &c);
}

void kern_Abs(struct kcall *call)
{
    unary_kernel(call, &abs_op, 1);
}
void kern_Cos(struct kcall *call)
{
    unary_kernel(call, &cos_op, 20);
}
void kern_Sin(struct kcall *call)
{
    unary_kernel(call, &sin_op, 20);
}
void kern_Log(struct kcall *call)
{
    unary_kernel(call, &log_op, 20);
}
void kern_Erf(struct kcall *call)
{
    unary_kernel(call, &erf_op, 8);
}
void kern_Exp(struct kcall *call)
{
    unary_kernel(call, &exp_op, 4);
}
void kern_Tanh(struct kcall *call)
{
    unary_kernel(call, &tanh_op, 8);
}
void kern_Sigmoid(struct kcall *call)
{
    unary_kernel(call, &sigmoid_op, 6);
}
void kern_Floor(struct kcall *call)
{
    unary_kernel(call, &floor_op, 2);
}
void kern_Ceil(struct kcall *call)
{
    unary_kernel(call, &ceil_op, 2);
}
void kern_Round(struct kcall *call)
{
    unary_kernel(call, &round_op, 2);
}
void kern_Sign(struct kcall *call)
{
    unary_kernel(call, &sign_op, 1);
}
void kern_Tan(struct kcall *call)
{
    unary_kernel(call, &tan_op, 20);
}
void kern_Asin(struct kcall *call)
{
    unary_kernel(call, &asin_op, 20);
}
void kern_Acos(struct kcall *call)
{
    unary_kernel(call, &acos_op, 20);
}
void kern_Atan(struct kcall *call)
{
    unary_kernel(call, &atan_op, 20);
}
void kern_Sinh(struct kcall *call)
{
    unary_kernel(call, &sinh_op, 20);
}
void kern_Cosh(struct kcall *call)
{
    unary_kernel(call, &cosh_op, 20);
}
void kern_Asinh(struct kcall *call)
{
    unary_kernel(call, &asinh_op, 20);
}
void kern_Acosh(struct kcall *call)
{
    unary_kernel(call, &acosh_op, 20);
}
void kern_Atanh(struct kcall *call)
{
    unary_kernel(call, &atanh_op, 20);
}
void kern_Neg(struct kcall *call)
{
    unary_kernel(call, &neg_op, 1);
}
void kern_Relu(struct kcall *call)
{
    unary_kernel(call, &relu_op, 1);
}
void kern_Sqrt(struct kcall *call)
{
    unary_kernel(call, &sqrt_op, 4);
}
void kern_Reciprocal(struct kcall *call)
{
    unary_kernel(call, &reciprocal_op, 4);
}
void kern_IsNaN(struct kcall *call)
{
    unary_kernel(call, &isnan_op, 1);
}

void kern_IsInf(struct kcall *call)
{
    bool negative = attr_int(call->node, "detect_negative") != 0, positive = attr_int(call->node, "detect_positive") != 0;
    unary_kernel(call, &isinf_op[negative + 2 * positive], 1);
}

void kern_Gelu(struct kcall *call)
{
    const char *how = attr_string(call->node, "approximate");
    bool tanh_form = strcmp(how, "tanh") == 0;
    if (!tanh_form && strcmp(how, "none") != 0)
        fail("%s: attribute approximate must be none or tanh, not %s", call_where(call), how);
    unary_kernel(call, tanh_form ? &gelutanh_op : &gelu_op, 10);
}

UNARY_ROW(, not_u8, uint8_t, uint8_t, !x)

void kern_Not(struct kcall *call)
{
    struct unary_call c = {not_u8, &call->in[0], &call->out[0], 1, 1};
    if (call->in[0].dtype != DT_BOOL)
        call_bad_type(call, call->in[0].dtype);
    parallel_for(call->env, tensor_elements(c.x), 1, unary_direct, &c);
}

/* ---- rows for fused chains (kern/pointwise/pointwise.h)
 * ---------------------------------------------------------------------------------- */
binary_row *const chain_binary[CHAIN_COUNT] = {
    [CHAIN_ADD] = add_row_f32, [CHAIN_SUB] = sub_row_f32, [CHAIN_MUL] = mul_row_f32, [CHAIN_DIV] = div_row_f32,
    [CHAIN_POW] = pow_row_f32, [CHAIN_MAX] = max_row_f32, [CHAIN_MIN] = min_row_f32,
};
unary_row *const chain_unary[CHAIN_COUNT] = {
    [CHAIN_ABS] = abs_row_f32,
    [CHAIN_NEG] = neg_row_f32,
    [CHAIN_RELU] = relu_row_f32,
    [CHAIN_SQRT] = sqrt_row_f32,
    [CHAIN_RECIPROCAL] = reciprocal_row_f32,
    [CHAIN_EXP] = exp_row_f32,
    [CHAIN_LOG] = log_row_f32,
    [CHAIN_ERF] = erf_row_f32,
    [CHAIN_TANH] = tanh_row_f32,
    [CHAIN_SIGMOID] = sigmoid_row_f32,
    [CHAIN_GELU] = gelu_row_f32,
    [CHAIN_GELU_TANH] = gelutanh_row_f32,
    [CHAIN_SIN] = sin_row_f32,
    [CHAIN_COS] = cos_row_f32,
    [CHAIN_FLOOR] = floor_row_f32,
};
