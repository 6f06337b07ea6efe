/* norm: LayerNormalization, RMSNormalization and the two simplified forms, over the trailing axes from `axis`.
 *
 * A row is converted to float32 (float64 for f64), its mean and variance are computed in two passes, then it is scaled. Scale and bias
 * broadcast to the normalised shape; they are expanded to a full row once per call. */
#include "kern/chunk/chunk.h"
#include "kern/core/core.h"
#include "kern/reduce/reduce.h"

#include <math.h>

struct norm_call {
    bool centre; /* subtract the mean */
    bool chunks; /* deterministic: moments as lowered in op/reduce/norm.c */
    int rank;    /* of a row, and its sizes */
    const int64_t *dim;
    enum dtype dtype, to; /* of x and of y: with mixed precision those of the operand and of the scale */
    int64_t n;
    double epsilon;
    const void *x, *skip, *skip_bias; /* skip: added first */
    const void *scale, *bias;         /* rows of n in float or double; bias NULL: none */
    void *y, *sum;                    /* sum: output for x + skip + skip_bias, or NULL */
    struct tensor *mean, *invstd;     /* per row, or NULL */
    char *scratch;
    size_t scratch_each;
};

/* The gradients of a norm; addends, for the scale's gradient, may be NULL. scale: a row in float or double. */
struct norm_grad_call {
    bool centre;
    enum dtype dtype;
    int64_t n;
    double epsilon;
    const void *x, *scale, *dy;
    void *dx, *addends;
    float *scratch; /* per thread: 4 rows, for 16-bit types */
};

/* Moments of a row and the scaled result, in T. */
#define NORM_ROW(T, name, attribute, square_root)                                                                     \
    static attribute T name##_mean(const T *x, int64_t n)                                                             \
    {                                                                                                                 \
        T s = 0;                                                                                                      \
        _Pragma("omp simd reduction(+:s)") for (int64_t i = 0; i < n; i++) s += x[i];                                 \
        return s / (T)n;                                                                                              \
    }                                                                                                                 \
    static attribute T name##_spread(const T *x, T mean, int64_t n)                                                   \
    {                                                                                                                 \
        T s = 0;                                                                                                      \
        _Pragma("omp simd reduction(+:s)") for (int64_t i = 0; i < n; i++) s += (x[i] - mean) * (x[i] - mean);        \
        return s / (T)n;                                                                                              \
    }                                                                                                                 \
    static attribute void name##_scale(T *x, T mean, T inv, const T *scale, const T *bias, int64_t n)                 \
    {                                                                                                                 \
        if (bias) {                                                                                                   \
            LOOP for (int64_t i = 0; i < n; i++) x[i] = (x[i] - mean) * inv * scale[i] + bias[i];                     \
        } else {                                                                                                      \
            LOOP for (int64_t i = 0; i < n; i++) x[i] = (x[i] - mean) * inv * scale[i];                               \
        }                                                                                                             \
    }                                                                                                                 \
    static void name(const struct norm_call *p, T *x, T *mean, T *inv)                                                \
    {                                                                                                                 \
        *mean = p->centre ? name##_mean(x, p->n) : 0;                                                                 \
        *inv = 1 / square_root(name##_spread(x, *mean, p->n) + (T)p->epsilon);                                        \
        name##_scale(x, *mean, *inv, p->scale, p->bias, p->n);                                                        \
    }                                                                                                                 \
    /* With y normalised and g = dy scale: dx = (g - mean(g) - y mean(g y)) / deviation. */                           \
    static attribute void name##_grad(const struct norm_grad_call *p, const T *x, const T *dy, T *dx, T *addends)     \
    {                                                                                                                 \
        const T *scale = p->scale;                                                                                    \
        T mean = p->centre ? name##_mean(x, p->n) : 0;                                                                \
        T inv = 1 / square_root(name##_spread(x, mean, p->n) + (T)p->epsilon), sum = 0, along = 0;                    \
        _Pragma("omp simd reduction(+:sum, along)") for (int64_t i = 0; i < p->n; i++)                                \
        {                                                                                                             \
            T g = dy[i] * scale[i];                                                                                   \
            sum += g;                                                                                                 \
            along += g * ((x[i] - mean) * inv);                                                                       \
        }                                                                                                             \
        sum = p->centre ? sum / (T)p->n : 0;                                                                          \
        along /= (T)p->n;                                                                                             \
        LOOP for (int64_t i = 0; i < p->n; i++) dx[i] = (dy[i] * scale[i] - sum - (x[i] - mean) * inv * along) * inv; \
        if (addends) {                                                                                                \
            LOOP for (int64_t i = 0; i < p->n; i++) addends[i] = dy[i] * ((x[i] - mean) * inv);                       \
        }                                                                                                             \
    }
NORM_ROW(float, row_f32, SIMD, sqrtf)
NORM_ROW(double, row_f64, , sqrt)

/* ---- in a fixed order ---- */

/* Sums along one dimension after another, from the last; overwrites x. */
static double moment(const struct norm_call *p, double *x)
{
    for (int d = p->rank - 1; d >= 0; d--)
        for (int64_t i = 0; i < tensor_dims_product(p->dim, 0, d); i++)
            x[i] = chunk_sum_f64(x + i * p->dim[d], p->dim[d]);
    return x[0] / (double)p->n;
}

/* wide: scratch for a row. */
static void row_chunks(const struct norm_call *p, float *x, double *wide, float *mean, float *inv)
{
    for (int64_t i = 0; i < p->n; i++)
        wide[i] = (double)x[i] * (double)x[i];
    double variance = moment(p, wide), centre = 0;
    for (int64_t i = 0; p->centre && i < p->n; i++)
        wide[i] = (double)x[i];
    if (p->centre) {
        centre = moment(p, wide);
        variance -= centre * centre;
        variance = variance > 0 || variance != variance ? variance : 0;
    }
    *mean = (float)centre;
    *inv = (float)(1.0 / sqrt(variance + p->epsilon));
    row_f32_scale(x, *mean, *inv, p->scale, p->bias, p->n);
}

static void add_skip(const struct norm_call *p, float *x, int64_t row)
{
    size_t size = dtype_size(p->dtype);
    float part[CHUNK];
    for (int64_t i = 0; i < p->n; i += CHUNK) {
        int64_t m = p->n - i < CHUNK ? p->n - i : CHUNK;
        convert_to_f32(p->dtype, element_at_const(p->skip, size, row * p->n + i), m, part);
        for (int64_t j = 0; j < m; j++)
            x[i + j] += part[j];
        if (!p->skip_bias)
            continue;
        convert_to_f32(p->dtype, element_at_const(p->skip_bias, size, i), m, part);
        for (int64_t j = 0; j < m; j++)
            x[i + j] += part[j];
    }
    if (p->sum)
        convert_from_f32(p->dtype, x, p->n, element_at(p->sum, size, row * p->n));
}

/* In y's type. */
static void put_row(const struct norm_call *p, const float *x, int64_t row)
{
    if (p->to != DT_F64) {
        convert_from_f32(p->to, x, p->n, element_at(p->y, dtype_size(p->to), row * p->n));
        return;
    }
    for (int64_t i = 0; i < p->n; i++)
        ((double *)p->y)[row * p->n + i] = (double)x[i];
}

static void norm_one_f32(const struct norm_call *p, float *x, int64_t row)
{
    size_t size = dtype_size(p->dtype);
    float mean, inv;
    convert_to_f32(p->dtype, element_at_const(p->x, size, row * p->n), p->n, x);
    if (p->skip)
        add_skip(p, x, row);
    if (p->chunks)
        row_chunks(p, x, (double *)(void *)((char *)x + p->scratch_each / 2), &mean, &inv);
    else
        row_f32(p, x, &mean, &inv);
    put_row(p, x, row);
    if (p->mean)
        convert_from_f32(p->mean->dtype, &mean, 1, element_at(p->mean->data, dtype_size(p->mean->dtype), row));
    if (p->invstd)
        convert_from_f32(p->invstd->dtype, &inv, 1, element_at(p->invstd->data, dtype_size(p->invstd->dtype), row));
}

static void norm_one_f64(const struct norm_call *p, double *x, int64_t row)
{
    double mean, inv;
    convert_to_f64(p->dtype, element_at_const(p->x, 8, row * p->n), p->n, x);
    row_f64(p, x, &mean, &inv);
    convert_from_f64(p->to, x, p->n, element_at(p->y, dtype_size(p->to), row * p->n));
    if (p->mean)
        convert_from_f64(p->mean->dtype, &mean, 1, element_at(p->mean->data, dtype_size(p->mean->dtype), row));
    if (p->invstd)
        convert_from_f64(p->invstd->dtype, &inv, 1, element_at(p->invstd->data, dtype_size(p->invstd->dtype), row));
}

static void norm_range(void *data, int thread, int64_t lo, int64_t hi)
{
    const struct norm_call *p = data;
    void *x = p->scratch + (size_t)thread * p->scratch_each;
    for (int64_t row = lo; row < hi; row++) {
        if (p->dtype == DT_F64)
            norm_one_f64(p, x, row);
        else
            norm_one_f32(p, x, row);
    }
}

/* Whether it is float32 throughout with nothing added first. */
static bool is_plain(const struct norm_call *p)
{
    bool moments = (!p->mean || p->mean->dtype == DT_F32) && (!p->invstd || p->invstd->dtype == DT_F32);
    return p->dtype == DT_F32 && p->to == DT_F32 && !p->chunks && !p->skip && p->n > 0 && moments;
}

static void plain_range(void *data, int64_t lo, int64_t hi)
{
    norm_rows(data, lo, hi);
}

/* Scale or bias as a full row of the working type: broadcast to the normalised shape. */
static void *full_row(struct kcall *call, const struct norm_call *p, const struct tensor *t, int axis, void *row)
{
    const struct tensor *x = &call->in[0];
    struct tensor shape = {.dtype = p->dtype == DT_F64 ? DT_F64 : DT_F32, .rank = x->rank - axis, .data = row};
    size_t size = dtype_size(shape.dtype), from_size = dtype_size(t->dtype);
    const struct tensor *in[1] = {t};
    struct walk w;
    if (t->dtype == shape.dtype && tensor_elements(t) == p->n)
        return t->data;
    for (int d = axis; d < x->rank; d++)
        shape.dim[d - axis] = x->dim[d];
    if (t->dtype != DT_F64 && !(dtype_is_float(t->dtype) && dtype_size(t->dtype)))
        kcall_bad_type(call, t->dtype);
    walk_broadcast(call, &w, &shape, 1, in);
    for (int64_t i = 0; i < p->n; i++) {
        int64_t rest = i, from = 0;
        double value;
        for (int d = w.rank - 1; d >= 0; d--) {
            from += rest % w.dim[d] * w.stride[1][d];
            rest /= w.dim[d];
        }
        convert_to_f64(t->dtype, element_at_const(t->data, from_size, from), 1, &value);
        convert_from_f64(shape.dtype, &value, 1, element_at(row, size, i));
    }
    return row;
}

/* Runs p over all rows; operand numbers of scale and bias, -1 none. */
static void norm_kernel(struct kcall *call, struct norm_call *p, int64_t axis_attr, int scale, int bias)
{
    const struct tensor *x = &call->in[0], *b = bias < 0 ? NULL : kcall_in(call, bias);
    int axis = kcall_axis(call, axis_attr, x->rank);
    if (!dtype_is_float(x->dtype) || !dtype_size(x->dtype))
        kcall_bad_type(call, x->dtype);
    p->dtype = x->dtype;
    p->to = call->out[0].dtype;
    p->n = tensor_dims_product(x->dim, axis, x->rank);
    p->x = x->data;
    p->y = call->out[0].data;
    p->epsilon = attr_float(call->node, "epsilon");
    p->chunks = kenv_deterministic(call->env);
    p->rank = x->rank - axis;
    p->dim = x->dim + axis;
    int64_t rows = tensor_dims_product(x->dim, 0, axis);
    p->scratch_each = (kcall_bytes(call, p->n, 16) + 127) & ~(size_t)127;
    char *room = kenv_scratch(call->env, kcall_bytes(call, kenv_threads(call->env) + 2, p->scratch_each));
    p->scale = full_row(call, p, &call->in[scale], axis, room);
    p->bias = b ? full_row(call, p, b, axis, room + p->scratch_each) : NULL;
    p->scratch = room + 2 * p->scratch_each;
    struct norm_rows plain = {.centre = p->centre,
                              .n = p->n,
                              .epsilon = (float)p->epsilon,
                              .x = p->x,
                              .scale = p->scale,
                              .bias = p->bias,
                              .y = p->y,
                              .mean = p->mean ? p->mean->data : NULL,
                              .invstd = p->invstd ? p->invstd->data : NULL};
    if (is_plain(p))
        kenv_parallel_for(call->env, rows, p->n * 4 + 1, plain_range, &plain);
    else
        kenv_parallel_shares(call->env, rows, p->n * 4 + 1, norm_range, p);
}

void kern_LayerNormalization(struct kcall *call)
{
    struct norm_call p = {.centre = true, .mean = kcall_out(call, 1), .invstd = kcall_out(call, 2)};
    norm_kernel(call, &p, attr_int(call->node, "axis"), 1, 2);
}

void kern_RMSNormalization(struct kcall *call)
{
    struct norm_call p = {.centre = false};
    norm_kernel(call, &p, attr_int(call->node, "axis"), 1, -1);
}

void kern_SimplifiedLayerNormalization(struct kcall *call)
{
    struct norm_call p = {.centre = false, .invstd = kcall_out(call, 1)};
    norm_kernel(call, &p, attr_int(call->node, "axis"), 1, -1);
}

void kern_SkipSimplifiedLayerNormalization(struct kcall *call)
{
    const struct tensor *x = &call->in[0], *skip = &call->in[1], *bias = kcall_in(call, 3);
    struct tensor *sum = kcall_out(call, 3);
    struct norm_call p = {.centre = false, .mean = NULL, .invstd = kcall_out(call, 2)};
    require(!kcall_out(call, 1));
    if (x->dtype == DT_F64)
        kcall_bad_type(call, x->dtype);
    if (tensor_elements(skip) != tensor_elements(x) || skip->dtype != x->dtype)
        fail("%s: operands input and skip must have one shape and type", kcall_where(call));
    if (bias && (bias->dtype != x->dtype || tensor_elements(bias) != x->dim[x->rank - 1]))
        fail("%s: the bias must have %lld elements of %s", kcall_where(call), (long long)x->dim[x->rank - 1], dtype_name(x->dtype));
    p.skip = skip->data;
    p.skip_bias = bias ? bias->data : NULL;
    p.sum = sum ? sum->data : NULL;
    norm_kernel(call, &p, -1, 2, -1);
}

/* ---- gradient ------------------------------------------------------------------------------------------------------------------------ */

/* A row of 16 bits, in float. */
static void grad_converted(const struct norm_grad_call *p, int64_t row, float *x)
{
    size_t size = dtype_size(p->dtype);
    float *dy = x + p->n, *dx = dy + p->n, *addends = dx + p->n;
    convert_to_f32(p->dtype, element_at_const(p->x, size, row * p->n), p->n, x);
    convert_to_f32(p->dtype, element_at_const(p->dy, size, row * p->n), p->n, dy);
    row_f32_grad(p, x, dy, dx, addends);
    convert_from_f32(p->dtype, dx, p->n, element_at(p->dx, size, row * p->n));
    if (p->addends)
        convert_from_f32(p->dtype, addends, p->n, element_at(p->addends, size, row * p->n));
}

static void grad_range(void *data, int thread, int64_t lo, int64_t hi)
{
    const struct norm_grad_call *p = data;
    for (int64_t row = lo; row < hi; row++) {
        int64_t at = row * p->n;
        if (p->dtype == DT_F64)
            row_f64_grad(p, (const double *)p->x + at, (const double *)p->dy + at, (double *)p->dx + at,
                         p->addends ? (double *)p->addends + at : NULL);
        else if (p->dtype == DT_F32)
            row_f32_grad(p, (const float *)p->x + at, (const float *)p->dy + at, (float *)p->dx + at,
                         p->addends ? (float *)p->addends + at : NULL);
        else
            grad_converted(p, row, p->scratch + thread * 4 * p->n);
    }
}

void kern_NormGrad(struct kcall *call)
{
    const struct tensor *x = &call->in[0], *dy = &call->in[2];
    struct tensor *addends = kcall_out(call, 1);
    int axis = kcall_axis(call, attr_int(call->node, "axis"), x->rank);
    struct norm_call shape = {.dtype = x->dtype, .n = tensor_dims_product(x->dim, axis, x->rank)};
    if (!dtype_is_float(x->dtype) || !dtype_size(x->dtype))
        kcall_bad_type(call, x->dtype);
    if (dy->dtype != x->dtype || tensor_elements(dy) != tensor_elements(x))
        fail("%s: X and dY must have one shape and type", kcall_where(call));
    int64_t rows = 2 + (dtype_size(x->dtype) == 2 ? 4 * (int64_t)kenv_threads(call->env) : 0); /* the first two: the scale */
    float *room = kenv_scratch(call->env, kcall_bytes(call, shape.n, (size_t)rows * sizeof(float)));
    struct norm_grad_call p = {.centre = attr_int(call->node, "centred") != 0,
                               .dtype = x->dtype,
                               .n = shape.n,
                               .epsilon = attr_float(call->node, "epsilon"),
                               .x = x->data,
                               .scale = full_row(call, &shape, &call->in[1], axis, room),
                               .dy = dy->data,
                               .dx = call->out[0].data,
                               .addends = addends ? addends->data : NULL,
                               .scratch = room + 2 * shape.n};
    kenv_parallel_shares(call->env, tensor_dims_product(x->dim, 0, axis), p.n * 8 + 1, grad_range, &p);
}
