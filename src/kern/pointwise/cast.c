/* cast: converts elements to another type, block by block through a type that holds both. */
#include "kern/string/string.h"

#include <math.h>

struct cast_call {
    enum dtype from, to;
    const void *x;
    void *y;
    bool saturate;     /* for a small float type */
    const char *round; /* for a power-of-two type */
};

static bool through_f32(enum dtype t)
{
    return dtype_fits_f32(t) || dtype_is_small_float(t);
}

/* ---- between integers and f32 ------------------------------------------------------------------------------------------------------- */
/* To integers: truncated and saturated, 0 for NaN; bounds are exact, `hi` is one above the largest number. */
#define WHOLE(dt, T, name, unused)                                                                     \
    static SIMD void f32_of_##name(const void *from, int64_t n, void *to)                              \
    {                                                                                                  \
        const T *x = from;                                                                             \
        float *y = to;                                                                                 \
        LOOP for (int64_t i = 0; i < n; i++) y[i] = (float)x[i];                                       \
    }                                                                                                  \
    static SIMD void name##_of_f32(const void *from, int64_t n, void *to)                              \
    {                                                                                                  \
        const bool is_signed = (T)-1 < (T)1;                                                           \
        const int bits = 8 * (int)sizeof(T) - is_signed;                                               \
        const float hi = ldexpf(1, bits), lo = is_signed ? -hi : 0;                                    \
        const T top = (T)(UINT64_MAX >> (64 - bits)), bottom = is_signed ? (T)(-(int64_t)(top)-1) : 0; \
        const float *x = from;                                                                         \
        T *y = to;                                                                                     \
        LOOP for (int64_t i = 0; i < n; i++)                                                           \
        {                                                                                              \
            T inside = (T)(x[i] > lo && x[i] < hi ? x[i] : 0);                                         \
            y[i] = x[i] >= hi ? top : x[i] <= lo ? bottom : inside;                                    \
        }                                                                                              \
    }
INT_TYPES(WHOLE, )

typedef void cast_fn(const void *from, int64_t n, void *to);
/* NULL: between other types. */
static cast_fn *whole_cast(enum dtype from, enum dtype to)
{
#define CASES(dt, T, name, unused) \
    case dt: return to == DT_F32 ? f32_of_##name : name##_of_f32;
    if (from != DT_F32 && to != DT_F32)
        return NULL;
    switch (to == DT_F32 ? from : to) {
        INT_TYPES(CASES, )
    default: return NULL;
    }
}

/* ---- all -------------------------------------------------------------------------------------------------------------------------- */

static void encode(const struct cast_call *c, const float *x, uint8_t *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = c->to == DT_F8E8M0 ? small_float_power(x[i], c->round) : small_float_encode(c->to, x[i], c->saturate);
}

static void cast_stretch(const struct cast_call *c, const void *x, void *y, int64_t n)
{
    union {
        float f[CHUNK];
        double d[CHUNK];
        int64_t i[CHUNK];
    } part;
    cast_fn *whole = whole_cast(c->from, c->to);
    if (whole)
        whole(x, n, y);
    else if (through_f32(c->from) && through_f32(c->to)) {
        convert_to_f32(c->from, x, n, part.f);
        if (dtype_is_small_float(c->to))
            encode(c, part.f, y, n);
        else
            convert_from_f32(c->to, part.f, n, y);
    } else if (dtype_is_float(c->from) || dtype_is_small_float(c->from) || dtype_is_small_float(c->to)) {
        convert_to_f64(c->from, x, n, part.d);
        convert_from_f64(c->to, part.d, n, y);
    } else if (c->from == DT_U64 && dtype_is_float(c->to)) {
        convert_to_f64(c->from, x, n, part.d);
        convert_from_f64(c->to, part.d, n, y);
    } else {
        convert_to_i64(c->from, x, n, part.i);
        convert_from_i64(c->to, part.i, n, y);
    }
}

static void cast_range(void *data, int64_t lo, int64_t hi)
{
    const struct cast_call *c = data;
    for (int64_t i = lo; i < hi; i += CHUNK)
        cast_stretch(c, element_at_const(c->x, dtype_size(c->from), i), element_at(c->y, dtype_size(c->to), i),
                     hi - i < CHUNK ? hi - i : CHUNK);
}

void kern_Cast(struct kcall *call)
{
    const struct tensor *x = &call->in[0];
    struct tensor *y = &call->out[0];
    struct cast_call c = {x->dtype,
                          y->dtype,
                          x->data,
                          y->data,
                          attr_int(call->node, "saturate") != 0,
                          attr_is_set(call->node, "round_mode") ? attr_string(call->node, "round_mode") : "up"};
    if (!dtype_size(x->dtype))
        kcall_bad_type(call, x->dtype);
    if (!dtype_size(y->dtype))
        kcall_bad_type(call, y->dtype);
    if (x->dtype == y->dtype)
        copy_dense(call->env, y->data, x->data, tensor_bytes(y));
    else if (y->dtype == DT_STRING)
        string_from_numbers(x, y);
    else if (x->dtype == DT_STRING)
        string_to_numbers(call, x, y);
    else
        kenv_parallel_for(call->env, tensor_elements(x), 4, cast_range, &c);
}

void kern_CastLike(struct kcall *call)
{
    kern_Cast(call);
}

/* Keeps the bits. */
void kern_BitCast(struct kcall *call)
{
    const struct tensor *x = &call->in[0];
    struct tensor *y = &call->out[0];
    copy_dense(call->env, y->data, x->data, tensor_bytes(y));
    uint8_t *byte = y->data;
    for (int64_t i = 0; dtype_is_packed(y->dtype) && i < tensor_elements(y); i++)
        byte[i] = dtype_low_bits(y->dtype, byte[i]);
}
