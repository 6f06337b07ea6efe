/* combine: how scatter ops combine an element with an update. Half precision is computed in double and rounded once; integers are added and
 * multiplied modulo 2^64. NaN wins over every number. */
#include "kern/core/core.h"

#include <string.h>

#define COMBINE(name, T, sum, product)                              \
    static void name(enum combine how, T *x, const T *y, int64_t n) \
    {                                                               \
        for (int64_t i = 0; i < n; i++) {                           \
            T a = x[i], b = y[i];                                   \
            x[i] = how == COMBINE_ADD ? sum                         \
                : how == COMBINE_MUL  ? product                     \
                : how == COMBINE_MAX  ? (a > b || a != a ? a : b)   \
                                      : (a < b || a != a ? a : b);   \
        }                                                           \
    }
COMBINE(combine_f32, float, a + b, a *b)
COMBINE(combine_f64, double, a + b, a *b)
COMBINE(combine_i64, int64_t, (int64_t)((uint64_t)a + (uint64_t)b), (int64_t)((uint64_t)a *(uint64_t)b))

static void combine_converted(enum combine how, enum dtype t, void *to, const void *from, int64_t n)
{
    if (dtype_is_float(t)) {
        double x[CHUNK], y[CHUNK];
        convert_to_f64(t, to, n, x);
        convert_to_f64(t, from, n, y);
        combine_f64(how, x, y, n);
        convert_from_f64(t, x, n, to);
    } else {
        int64_t x[CHUNK], y[CHUNK];
        convert_to_i64(t, to, n, x);
        convert_to_i64(t, from, n, y);
        combine_i64(how, x, y, n);
        convert_from_i64(t, x, n, to);
    }
}

void combine_elements(enum combine how, enum dtype t, void *to, const void *from, int64_t n)
{
    size_t size = dtype_size(t);
    if (how == COMBINE_SET)
        memcpy(to, from, (size_t)n * size);
    else if (t == DT_F32)
        combine_f32(how, to, from, n);
    else
        for (int64_t i = 0; i < n; i += CHUNK)
            combine_converted(how, t, element_at(to, size, i), element_at_const(from, size, i), n - i < CHUNK ? n - i : CHUNK);
}

enum combine combine_of(const struct kcall *call)
{
    static const char *const name[] = {"none", "add", "mul", "max", "min"};
    const char *reduction = attr_string(call->node, "reduction");
    int i = NAMED_ROW(name, reduction);
    if (i >= 0)
        return (enum combine)i;
    fail("%s: reduction must be none, add, mul, max or min, not %s", kcall_where(call), reduction);
}
