/* binary: the functions of two operands of pointwise.def, on operands that broadcast.
 *
 * A function is a table of row functions by storage type, made from one expression. f16 and bf16 rows are computed in float32, block by
 * block; integers are computed modulo 2^64 and narrowed. The walk does the broadcasting. */
#include "kern/core/core.h"
#include "kern/pointwise/pointwise.h"

#include <math.h>
#include <string.h>

/* ---- binary rows ------------------------------------------------------------------------------------------------------------- */
/* Strides sa and sb are 1, or 0 for an operand that is constant along the row. */
#define BINARY_ROW(set, name, T, U, expr)                                                     \
    static set void name(const void *pa, int sa, const void *pb, int sb, void *po, int64_t n) \
    {                                                                                         \
        const T *a = pa, *b = pb;                                                             \
        U *o = po;                                                                            \
        if (sa && sb) {                                                                       \
            LOOP for (int64_t i = 0; i < n; i++)                                              \
            {                                                                                 \
                T x = a[i], y = b[i];                                                         \
                o[i] = (U)(expr);                                                             \
            }                                                                                 \
        } else if (sa) {                                                                      \
            T y = b[0];                                                                       \
            LOOP for (int64_t i = 0; i < n; i++)                                              \
            {                                                                                 \
                T x = a[i];                                                                   \
                o[i] = (U)(expr);                                                             \
            }                                                                                 \
        } else if (sb) {                                                                      \
            T x = a[0];                                                                       \
            LOOP for (int64_t i = 0; i < n; i++)                                              \
            {                                                                                 \
                T y = b[i];                                                                   \
                o[i] = (U)(expr);                                                             \
            }                                                                                 \
        } else {                                                                              \
            T x = a[0], y = b[0];                                                             \
            for (int64_t i = 0; i < n; i++)                                                   \
                o[i] = (U)(expr);                                                             \
        }                                                                                     \
    }

struct binary {
    binary_row *f32, *f64, *integer[DT_I2 + 1]; /* by type, whatever it is */
};

#define SCALAR
#define W(x) ((uint64_t)(x))

/* Python's modulus: the sign of the divisor, also for zeros. */
static inline double floor_mod(double x, double y)
{
    double r = fmod(x, y);
    return r < 0.0 || r > 0.0 ? ((r < 0.0) != (y < 0.0) ? r + y : r) : copysign(r, y);
}

/* Integer division of signed and unsigned operands, y != 0; the one overflow wraps. */
/* clang-format off */
#define INTEGER(op, x, y)                                                                                            \
    (_Generic((x), uint8_t: op##_unsigned, uint16_t: op##_unsigned, uint32_t: op##_unsigned, uint64_t: op##_unsigned, \
              default: op##_signed)((x), (y)))
/* clang-format on */
#define DIVISION(name, T, result)         \
    static inline uint64_t name(T x, T y) \
    {                                     \
        return W(result);                 \
    }
DIVISION(div_unsigned, uint64_t, x / y)
DIVISION(rem_unsigned, uint64_t, x % y)
DIVISION(mod_unsigned, uint64_t, x % y)
DIVISION(div_signed, int64_t, y == -1 ? W(0) - W(x) : W(x / y))
DIVISION(rem_signed, int64_t, y == -1 ? 0 : x % y)
DIVISION(mod_signed, int64_t, y == -1 ? 0 : i64_floor_mod(x, y))

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

#define INT_ENTRY(dtype, T, t, name) [dtype] = name##_##t,
#define FUNCTION(name) static const struct binary name##_op = {name##_f32, name##_f64, {INT_TYPES(INT_ENTRY, name)}};
#define INT_ROW(dtype, T, t, name, expr) BINARY_ROW(SCALAR, name##_##t, T, T, expr)
#define BINARY(name, kernel, chain, real32, real64, integer) \
    BINARY_ROW(SIMD, name##_f32, float, float, real32)       \
    BINARY_ROW(SCALAR, name##_f64, double, double, real64)   \
    INT_TYPES(INT_ROW, name, integer)                        \
    FUNCTION(name)
#define INT_TEST(dtype, T, t, name, expr) BINARY_ROW(SCALAR, name##_##t, T, uint8_t, expr)
#define COMPARE(name, kernel, any)                       \
    BINARY_ROW(SCALAR, name##_f32, float, uint8_t, any)  \
    BINARY_ROW(SCALAR, name##_f64, double, uint8_t, any) \
    INT_TYPES(INT_TEST, name, any)                       \
    FUNCTION(name)
#include "kern/pointwise/pointwise.def"

/* ---- running a binary op --------------------------------------------------------------------------------------------- */
enum { SHORT_ROW = 256 }; /* elements: such rows are joined */
struct binary_call {
    struct walk walk;
    binary_row *row;
    const struct tensor *in[2];
    struct tensor *out;
    size_t wide;             /* bytes per element as the function reads it */
    int64_t period;          /* walk rows consist of several rows of this many elements; 0: of one */
    struct joined joined[2]; /* how operands continue in these */
};
typedef double binary_room[CHUNK + SHORT_ROW];

/* n elements from `at`, in the type that the function reads: in place, or copied to scratch. */
static const void *binary_read(const struct binary_call *c, int k, int64_t at, int64_t n, void *room)
{
    const void *from = element_at_const(c->in[k]->data, dtype_size(c->in[k]->dtype), at);
    if (!dtype_is_half(c->in[k]->dtype))
        return from;
    convert_to_f32(c->in[k]->dtype, from, n, room);
    return room;
}

/* Repeats the elements of a repeating operand, for blocks that start anywhere in a period. */
static void fill_periods(const struct binary_call *c, int k, int64_t at, void *room)
{
    int64_t all = CHUNK + c->period, n = c->period;
    const void *from = binary_read(c, k, at, n, room);
    if (from != room)
        memcpy(room, from, (size_t)n * c->wide);
    for (; n < all; n += c->period) {
        int64_t m = all - n < c->period ? all - n : c->period;
        memcpy(element_at(room, c->wide, n), room, (size_t)m * c->wide);
    }
}

static void binary_stretch(const struct binary_call *c, const int64_t *offset, int64_t from, int64_t n, binary_room *room)
{
    const void *in[2];
    int step[2], last = c->walk.rank - 1;
    for (int k = 0; k < 2; k++) {
        step[k] = c->joined[k].repeats || c->walk.stride[k + 1][last] != 0;
        in[k] = c->joined[k].repeats ? element_at_const(room[k], c->wide, (offset[0] + from) % c->period)
                                     : binary_read(c, k, offset[k + 1] + step[k] * from, step[k] ? n : 1, room[k]);
    }
    float result[CHUNK];
    void *to = element_at(c->out->data, dtype_size(c->out->dtype), offset[0] + from);
    bool half = dtype_is_half(c->out->dtype);
    c->row(in[0], step[0], in[1], step[1], half ? (void *)result : to, n);
    if (half)
        convert_from_f32(c->out->dtype, result, n, to);
}

/* At once, or in blocks: f16 and bf16 are computed in float32. */
static void binary_rows(void *data, const int64_t *offset, int64_t n)
{
    const struct binary_call *c = data;
    int64_t each = c->period || dtype_is_half(c->in[0]->dtype) ? CHUNK : n;
    binary_room room[2];
    for (int k = 0; k < 2; k++)
        if (c->joined[k].repeats)
            fill_periods(c, k, offset[k + 1], room[k]);
    for (int64_t from = 0; from < n; from += each)
        binary_stretch(c, offset, from, n - from < each ? n - from : each, room);
}

static void binary_run(struct kcall *call, const struct binary *op, const struct tensor *a, const struct tensor *b, struct tensor *out)
{
    enum dtype t = a->dtype;
    struct binary_call c = {.in = {a, b}, .out = out, .wide = dtype_is_half(t) ? sizeof(float) : dtype_size(t)};
    if (b->dtype != t)
        fail("%s: operands must have one type, found %s and %s", kcall_where(call), dtype_name(t), dtype_name(b->dtype));
    c.row = dtype_fits_f32(t) ? op->f32 : t == DT_F64 ? op->f64 : op->integer[t == DT_BOOL ? DT_U8 : t == DT_STRING ? DT_I64 : (int)t];
    if (!c.row)
        kcall_bad_type(call, t);
    walk_broadcast(call, &c.walk, out, 2, c.in);
    c.period = walk_join_rows(&c.walk, SHORT_ROW, false, c.joined);
    walk_run(call->env, &c.walk, dtype_is_half(t) ? 4 : 2, binary_rows, &c);
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

/* Fails on integer division by zero. */
static void refuse_zero(const struct kcall *call)
{
    const struct tensor *b = &call->in[1];
    if (dtype_is_float(b->dtype) || tensor_elements(&call->out[0]) == 0)
        return;
    int64_t part[CHUNK], n = tensor_elements(b);
    for (int64_t i = 0; i < n; i += CHUNK) {
        int64_t m = n - i < CHUNK ? n - i : CHUNK;
        convert_to_i64(b->dtype, element_at_const(b->data, dtype_size(b->dtype), i), m, part);
        for (int64_t j = 0; j < m; j++)
            if (part[j] == 0)
                fail("%s: integer division by zero (element %lld of the divisor)", kcall_where(call), (long long)(i + j));
    }
}

static void nonzero_kernel(struct kcall *call, const struct binary *op)
{
    refuse_zero(call);
    binary_kernel(call, op);
}

/* ---- kernels --------------------------------------------------------------------------------------------------------- */
#define KERNEL(name, run)                \
    void kern_##name(struct kcall *call) \
    {                                    \
        run(call, &name##_op);           \
    }
#define DIRECT(name) KERNEL(name, binary_kernel)
#define FOLDED(name) KERNEL(name, variadic_kernel)
#define NONZERO(name) KERNEL(name, nonzero_kernel)
#define OWN(name)
#define BINARY(name, kernel, chain, real32, real64, integer) kernel(name)
#define COMPARE(name, kernel, any) kernel(name)
#include "kern/pointwise/pointwise.def"

KERNEL_IS(Sum, variadic_kernel(call, &Add_op))
KERNEL_IS(Mod, nonzero_kernel(call, attr_int(call->node, "fmod") ? &Fmod_op : &Mod_op))

/* min(max(x, low), high): if the bounds cross, the upper one wins. */
void kern_Clip(struct kcall *call)
{
    const struct tensor *x = &call->in[0], *low = kcall_in(call, 1), *high = kcall_in(call, 2);
    struct tensor *out = &call->out[0];
    if (low)
        binary_run(call, &Max_op, x, low, out);
    if (high)
        binary_run(call, &Min_op, low ? out : x, high, out);
    if (!low && !high)
        copy_dense(call->env, out->data, x->data, tensor_bytes(out));
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
        convert_to_f64(t->dtype, element_at_const(t->data, from, i), m, part);
        convert_from_f64(to, part, m, element_at(r.data, size, i));
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
    a.data = kenv_room(call->env, ROOM_B, kcall_bytes(call, m, 8));
    o.data = kenv_room(call->env, ROOM_C, kcall_bytes(call, n, 8));
    convert_to_f64(x->dtype, x->data, m, a.data);
    binary_run(call, &Pow_op, &a, &b, &o);
    convert_from_f64(out->dtype, o.data, n, out->data);
}

static bool is_scalar_value(const struct tensor *t, double value)
{
    double x;
    if (tensor_elements(t) != 1 || dtype_size(t->dtype) == 0)
        return false;
    convert_to_f64(t->dtype, t->data, 1, &x);
    return x >= value && x <= value;
}

void kern_Pow(struct kcall *call)
{
    const struct tensor *x = &call->in[0], *y = &call->in[1];
    if (is_scalar_value(y, 2.0) && tensor_elements(x) == tensor_elements(&call->out[0])) {
        binary_run(call, &Mul_op, x, x, &call->out[0]);
    } else if (is_scalar_value(y, 3.0) && x->dtype == DT_F32 && tensor_elements(x) == tensor_elements(&call->out[0])) {
        binary_run(call, &Mul_op, x, x, &call->out[0]); /* as in a chain */
        binary_run(call, &Mul_op, &call->out[0], x, &call->out[0]);
    } else if (x->dtype == y->dtype) {
        binary_kernel(call, &Pow_op);
    } else if (!dtype_is_float(x->dtype) && dtype_is_float(y->dtype)) {
        pow_through_f64(call);
    } else {
        struct tensor b = converted(call, y, x->dtype);
        binary_run(call, &Pow_op, x, &b, &call->out[0]);
    }
}

/* ---- steps of fused chains ------------------------------------------------------------------------------------------- */
#define FUSED(name) [CHAIN_##name] = name##_f32,
#define ALONE(name)
binary_row *const chain_binary[CHAIN_COUNT] = {
#define BINARY(name, kernel, chain, real32, real64, integer) chain(name)
#include "kern/pointwise/pointwise.def"
};
