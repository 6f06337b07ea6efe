/* pool_type: the loops of pooling for each type of elements. NaN is above every number. */
#include "kern/spatial/spatial.h"

#include <math.h>

enum { BLOCK = 32 }; /* places summed before their sum is added to the total, so that long sums keep their precision */

#define GREATER(a, x) ((x) > (a) || (x) != (x) ? (x) : (a))
#define SUM(a, x) ((a) + (x))
#define SQUARE(a, x) ((a) + (x) * (x))
#define MAGNITUDE(a, x) ((a) + ((x) < 0 ? -(x) : (x)))

/* y combines every stride-th element of x. */
#define TAKE_IN(T, OP)                                                   \
    T *y = to;                                                           \
    const T *x = from;                                                   \
    (void)p;                                                             \
    if (stride == 1)                                                     \
        LOOP for (int64_t i = 0; i < places; i++) y[i] = OP(y[i], x[i]); \
    else                                                                 \
        LOOP for (int64_t i = 0; i < places; i++) y[i] = OP(y[i], x[i * stride]);

/* The lanes of each place combine the taps of its window, two at a time. */
#define TAKE_WINDOWS(T, OP)                                                 \
    T *y = to;                                                              \
    const T *x = from;                                                      \
    const int64_t lanes = w->lanes;                                         \
    (void)p;                                                                \
    for (int64_t i = 0; i < w->places; i++, y += lanes, x += w->step) {     \
        const T *a = x;                                                     \
        int64_t left = w->taps;                                             \
        for (; left >= 2; left -= 2, a += 2 * w->gap) {                     \
            const T *b = a + w->gap;                                        \
            LOOP for (int64_t j = 0; j < lanes; j++)                        \
            {                                                               \
                T both = OP(y[j], a[j]);                                    \
                y[j] = OP(both, b[j]);                                      \
            }                                                               \
        }                                                                   \
        if (left > 0)                                                       \
            LOOP for (int64_t j = 0; j < lanes; j++) y[j] = OP(y[j], a[j]); \
    }

/* One line: POOL_LANES running results, then the result of these. */
#define WHOLE_LINE(T, OP, JOIN, INIT)                                              \
    T part[POOL_LANES], total = INIT;                                              \
    int64_t i = 0;                                                                 \
    for (int j = 0; j < POOL_LANES; j++)                                           \
        part[j] = INIT;                                                            \
    for (; i + POOL_LANES <= places; i += POOL_LANES)                              \
        LOOP for (int j = 0; j < POOL_LANES; j++) part[j] = OP(part[j], x[i + j]); \
    for (; i < places; i++)                                                        \
        total = OP(total, x[i]);                                                   \
    for (int j = 0; j < POOL_LANES; j++)                                           \
        total = JOIN(total, part[j]);                                              \
    y[0] = total;

#define WHOLE_LANES(T, OP, JOIN, INIT)                                                       \
    T total[POOL_LANES];                                                                     \
    for (int64_t j = 0; j < lanes; j++)                                                      \
        total[j] = INIT;                                                                     \
    for (int64_t i = 0; i < places; i += BLOCK) {                                            \
        T part[POOL_LANES];                                                                  \
        for (int64_t j = 0; j < lanes; j++)                                                  \
            part[j] = INIT;                                                                  \
        for (int64_t k = i; k < places && k < i + BLOCK; k++)                                \
            LOOP for (int64_t j = 0; j < lanes; j++) part[j] = OP(part[j], x[k * step + j]); \
        for (int64_t j = 0; j < lanes; j++)                                                  \
            total[j] = JOIN(total[j], part[j]);                                              \
    }                                                                                        \
    for (int64_t j = 0; j < lanes; j++)                                                      \
        y[j] = total[j];

#define POOLING(name, T, OP, JOIN, INIT)                                                                         \
    static SIMD void combine_##name(void *to, const void *from, int64_t places, int64_t stride, int64_t p)       \
    {                                                                                                            \
        TAKE_IN(T, OP)                                                                                           \
    }                                                                                                            \
    static SIMD void windows_##name(void *to, const void *from, const struct pool_windows *w, int64_t p)         \
    {                                                                                                            \
        TAKE_WINDOWS(T, OP)                                                                                      \
    }                                                                                                            \
    static SIMD void whole_line_##name(T *y, const T *x, int64_t places)                                         \
    {                                                                                                            \
        WHOLE_LINE(T, OP, JOIN, INIT)                                                                            \
    }                                                                                                            \
    static SIMD void whole_lanes_##name(T *y, const T *x, int64_t places, int64_t step, int64_t lanes)           \
    {                                                                                                            \
        WHOLE_LANES(T, OP, JOIN, INIT)                                                                           \
    }                                                                                                            \
    static void whole_##name(void *to, const void *from, int64_t places, int64_t step, int64_t lanes, int64_t p) \
    {                                                                                                            \
        (void)p;                                                                                                 \
        if (lanes == 1 && step == 1)                                                                             \
            whole_line_##name(to, from, places);                                                                 \
        else                                                                                                     \
            whole_lanes_##name(to, from, places, step, lanes);                                                   \
    }

#define START(name, T, INIT)                              \
    static SIMD void start_##name(void *to, int64_t n)    \
    {                                                     \
        T *y = to;                                        \
        LOOP for (int64_t i = 0; i < n; i++) y[i] = INIT; \
    }

/* ---- maxima of every type ----------------------------------------------------------------------------------------- */
#define MAXIMA(name, T, INIT)                      \
    POOLING(max_##name, T, GREATER, GREATER, INIT) \
    START(max_##name, T, INIT)

MAXIMA(f32, float, -INFINITY)
MAXIMA(f64, double, -INFINITY)
MAXIMA(i8, int8_t, INT8_MIN)
MAXIMA(u8, uint8_t, 0)
MAXIMA(i16, int16_t, INT16_MIN)
MAXIMA(u16, uint16_t, 0)
MAXIMA(i32, int32_t, INT32_MIN)
MAXIMA(u32, uint32_t, 0)
MAXIMA(i64, int64_t, INT64_MIN)
MAXIMA(u64, uint64_t, 0)

/* ---- sums and norms of floating-point types ---------------------------------------------------------------------------------- */
#define POWERS(name, T, power)                                                                                        \
    POOLING(square_##name, T, SQUARE, SUM, 0)                                                                         \
    POOLING(magnitude_##name, T, MAGNITUDE, SUM, 0)                                                                   \
    static void combine_norm_##name(void *to, const void *from, int64_t places, int64_t stride, int64_t p)            \
    {                                                                                                                 \
        T *y = to;                                                                                                    \
        const T *x = from;                                                                                            \
        if (p == 1 || p == 2) {                                                                                       \
            (p == 1 ? combine_magnitude_##name : combine_square_##name)(to, from, places, stride, p);                 \
            return;                                                                                                   \
        }                                                                                                             \
        for (int64_t i = 0; i < places; i++)                                                                          \
            y[i] += power(x[i * stride] < 0 ? -x[i * stride] : x[i * stride], (T)p);                                  \
    }                                                                                                                 \
    static void windows_norm_##name(void *to, const void *from, const struct pool_windows *w, int64_t p)              \
    {                                                                                                                 \
        T *y = to;                                                                                                    \
        const T *x = from;                                                                                            \
        if (p == 1 || p == 2) {                                                                                       \
            (p == 1 ? windows_magnitude_##name : windows_square_##name)(to, from, w, p);                              \
            return;                                                                                                   \
        }                                                                                                             \
        for (int64_t i = 0; i < w->places; i++)                                                                       \
            for (int64_t t = 0; t < w->taps; t++)                                                                     \
                combine_norm_##name(y + i * w->lanes, x + i * w->step + t * w->gap, w->lanes, 1, p);                  \
    }                                                                                                                 \
    static void whole_norm_##name(void *to, const void *from, int64_t places, int64_t step, int64_t lanes, int64_t p) \
    {                                                                                                                 \
        if (p == 1 || p == 2) {                                                                                       \
            (p == 1 ? whole_magnitude_##name : whole_square_##name)(to, from, places, step, lanes, p);                \
            return;                                                                                                   \
        }                                                                                                             \
        start_sum_##name(to, lanes);                                                                                  \
        for (int64_t i = 0; i < places; i++)                                                                          \
            combine_norm_##name(to, (const T *)from + i * step, lanes, 1, p);                                         \
    }                                                                                                                 \
    static void divide_##name(void *to, int64_t n, int64_t count)                                                     \
    {                                                                                                                 \
        T *y = to;                                                                                                    \
        for (int64_t i = 0; i < n; i++)                                                                               \
            y[i] /= (T)count;                                                                                         \
    }                                                                                                                 \
    static void root_##name(void *to, int64_t n, int64_t p)                                                           \
    {                                                                                                                 \
        T *y = to;                                                                                                    \
        for (int64_t i = 0; p != 1 && i < n; i++)                                                                     \
            y[i] = power(y[i], (T)1 / (T)p);                                                                          \
    }
#define SUMS(name, T, power)            \
    POOLING(sum_##name, T, SUM, SUM, 0) \
    START(sum_##name, T, 0)             \
    POWERS(name, T, power)

SUMS(f32, float, powf)
SUMS(f64, double, pow)

/* ---- the table --------------------------------------------------------------------------------------------------------------- */
#define REAL(name, T)                                                                                                                     \
    {                                                                                                                                     \
        sizeof(T), {start_max_##name, start_sum_##name, start_sum_##name}, {combine_max_##name, combine_sum_##name, combine_norm_##name}, \
            {windows_max_##name, windows_sum_##name, windows_norm_##name}, {whole_max_##name, whole_sum_##name, whole_norm_##name},       \
            divide_##name, root_##name                                                                                                    \
    }
#define WHOLE(dtype, T, name, ...)               \
    [dtype] = {sizeof(T),                        \
               {start_max_##name, NULL, NULL},   \
               {combine_max_##name, NULL, NULL}, \
               {windows_max_##name, NULL, NULL}, \
               {whole_max_##name, NULL, NULL},   \
               NULL,                             \
               NULL},

const struct pool_type *pool_type(enum dtype t)
{
    static const struct pool_type type[] = {[DT_F32] = REAL(f32, float), [DT_F64] = REAL(f64, double), INT_TYPES(WHOLE, )};
    return (size_t)t < sizeof type / sizeof *type && type[t].size ? &type[t] : NULL;
}
