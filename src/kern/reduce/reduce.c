/* reduce: ReduceMax, ReduceMean, ReduceMin, ReduceProd, ReduceSum, CumSum, CumProd.
 *
 * The operand is seen as kept and reduced dimensions, with adjacent ones of a kind merged. If the innermost is reduced, a result is
 * computed from contiguous rows; if it is kept, rows are accumulated elementwise. Accumulators are float for f32, f16 and bf16, double for
 * f64, int64 (modulo 2^64) for integers. An empty sum is 0, an empty product 1, an empty mean NaN, an empty maximum the least value of the
 * type, an empty minimum the greatest. */
#include "kern/reduce/reduce.h"

#include "kern/chunk/chunk.h"
#include "kern/core/core.h"

#include <math.h>
#include <string.h>

enum reduction { REDUCE_SUM, REDUCE_MEAN, REDUCE_MAX, REDUCE_MIN, REDUCE_PROD };
struct shape {
    int rank;
    int64_t dim[MAX_RANK], stride[MAX_RANK];
};
struct reduce {
    enum reduction how;
    const struct tensor *x;
    struct tensor *y;
    struct shape kept, reduced; /* kept: without the innermost dimension when that is kept */
    int64_t inner;              /* contiguous kept elements; 1 when the innermost dimension is reduced */
    int64_t run;                /* contiguous reduced elements; 1 when it is kept */
    int64_t count;              /* elements per result */
    char *scratch;
    size_t scratch_each;
};

/* ---- accumulating a stretch ------------------------------------------------------------------------------------------- */
static SIMD float sum_f32(const float *x, int64_t n)
{
    float s = 0;
    _Pragma("omp simd reduction(+:s)") for (int64_t i = 0; i < n; i++) s += x[i];
    return s;
}

static SIMD float max_f32(const float *x, int64_t n)
{
    float m = -INFINITY, nan = 0;
    _Pragma("omp simd reduction(max:m) reduction(+:nan)") for (int64_t i = 0; i < n; i++)
    {
        m = x[i] > m ? x[i] : m;
        nan += x[i] != x[i] ? 1.0f : 0.0f;
    }
    return nan > 0 ? NAN : m;
}

static SIMD void add_f32(float *acc, const float *x, int64_t n)
{
    LOOP for (int64_t i = 0; i < n; i++) acc[i] += x[i];
}

/* NaN wins over every number. */
#define EXTREME_INTO(name, T, beats, attributes, loop)                                                   \
    static attributes void name(T *acc, const T *x, int64_t n)                                           \
    {                                                                                                    \
        loop for (int64_t i = 0; i < n; i++) acc[i] = x[i] beats acc[i] || x[i] != x[i] ? x[i] : acc[i]; \
    }
EXTREME_INTO(max_into_f32, float, >, SIMD, LOOP)
EXTREME_INTO(max_into_f64, double, >, , )
EXTREME_INTO(max_into_i64, int64_t, >, , )
EXTREME_INTO(min_into_f32, float, <, SIMD, LOOP)
EXTREME_INTO(min_into_f64, double, <, , )
EXTREME_INTO(min_into_i64, int64_t, <, , )

static SIMD void mul_into_f32(float *acc, const float *x, int64_t n)
{
    LOOP for (int64_t i = 0; i < n; i++) acc[i] *= x[i];
}

/* Combines single elements, if vectorising gains nothing. */
static void into_f64(enum reduction how, double *acc, double x)
{
    switch (how) {
    case REDUCE_MAX: max_into_f64(acc, &x, 1); break;
    case REDUCE_MIN: min_into_f64(acc, &x, 1); break;
    case REDUCE_PROD: *acc *= x; break;
    default: *acc += x; break;
    }
}

static void into_i64(enum reduction how, int64_t *acc, int64_t x)
{
    switch (how) {
    case REDUCE_MAX: max_into_i64(acc, &x, 1); break;
    case REDUCE_MIN: min_into_i64(acc, &x, 1); break;
    case REDUCE_PROD: *acc = (int64_t)((uint64_t)*acc * (uint64_t)x); break;
    default: *acc = (int64_t)((uint64_t)*acc + (uint64_t)x); break;
    }
}

static void into_f32(enum reduction how, float *acc, const float *x, int64_t n)
{
    switch (how) {
    case REDUCE_MAX: max_into_f32(acc, x, n); break;
    case REDUCE_MIN: min_into_f32(acc, x, n); break;
    case REDUCE_PROD: mul_into_f32(acc, x, n); break;
    default: add_f32(acc, x, n); break;
    }
}

static void fold_f32(enum reduction how, float *acc, const float *x, int64_t n)
{
    if (how == REDUCE_SUM || how == REDUCE_MEAN)
        *acc += sum_f32(x, n);
    else if (how == REDUCE_MAX)
        max_into_f32(acc, (float[]){max_f32(x, n)}, 1);
    else
        for (int64_t i = 0; i < n; i++)
            into_f32(how, acc, x + i, 1);
}

/* One row of n elements from p into acc: into one accumulator (run) or elementwise (inner). */
static void accumulate_f32(const struct reduce *r, const void *p, int64_t n, bool run, float *acc)
{
    float part[CHUNK];
    for (int64_t i = 0; i < n; i += CHUNK) {
        int64_t m = n - i < CHUNK ? n - i : CHUNK;
        const float *x = part;
        if (r->x->dtype == DT_F32)
            x = (const float *)p + i;
        else
            convert_to_f32(r->x->dtype, element_at_const(p, 2, i), m, part);
        if (run)
            fold_f32(r->how, acc, x, m);
        else
            into_f32(r->how, acc + i, x, m);
    }
}

static void accumulate_f64(const struct reduce *r, const void *p, int64_t n, bool run, double *acc)
{
    const double *x = p;
    for (int64_t i = 0; i < n; i++)
        into_f64(r->how, acc + (run ? 0 : i), x[i]);
}

static void accumulate_i64(const struct reduce *r, const void *p, int64_t n, bool run, int64_t *acc)
{
    int64_t part[CHUNK];
    size_t size = dtype_size(r->x->dtype);
    for (int64_t i = 0; i < n; i++) {
        if (i % CHUNK == 0)
            convert_to_i64(r->x->dtype, element_at_const(p, size, i), n - i < CHUNK ? n - i : CHUNK, part);
        into_i64(r->how, acc + (run ? 0 : i), part[i % CHUNK]);
    }
}

/* ---- one block of results ------------------------------------------------------------------------------------------------ */
/* The value of no elements. */
static double real_start(enum reduction how)
{
    return how == REDUCE_MAX ? -INFINITY : how == REDUCE_MIN ? INFINITY : how == REDUCE_PROD ? 1.0 : 0.0;
}

static int64_t whole_start(enum reduction how, enum dtype t)
{
    int64_t lo = 0, hi = 1;
    if (t != DT_BOOL)
        dtype_range(t, &lo, &hi);
    return how == REDUCE_MAX ? lo : how == REDUCE_MIN ? hi : how == REDUCE_PROD;
}

static void block_begin(const struct reduce *r, void *acc)
{
    enum dtype t = r->x->dtype;
    for (int64_t i = 0; i < r->inner; i++) {
        if (t == DT_F64)
            ((double *)acc)[i] = real_start(r->how);
        else if (dtype_is_float(t))
            ((float *)acc)[i] = (float)real_start(r->how);
        else
            ((int64_t *)acc)[i] = whole_start(r->how, t);
    }
}

static void block_end(const struct reduce *r, void *acc, int64_t block)
{
    enum dtype t = r->x->dtype;
    bool mean = r->how == REDUCE_MEAN;
    void *out = element_at(r->y->data, dtype_size(t), block * r->inner);
    for (int64_t i = 0; mean && i < r->inner; i++) {
        if (t == DT_F64)
            ((double *)acc)[i] /= (double)r->count;
        else if (dtype_is_float(t))
            ((float *)acc)[i] /= (float)r->count;
        else
            ((int64_t *)acc)[i] = r->count ? ((int64_t *)acc)[i] / r->count : 0;
    }
    if (t == DT_F64)
        convert_from_f64(t, acc, r->inner, out);
    else if (dtype_is_float(t))
        convert_from_f32(t, acc, r->inner, out);
    else
        convert_from_i64(t, acc, r->inner, out);
}

static int64_t shape_offset(const struct shape *s, int64_t i)
{
    int64_t offset = 0;
    for (int d = s->rank - 1; d >= 0; d--) {
        offset += i % s->dim[d] * s->stride[d];
        i /= s->dim[d];
    }
    return offset;
}

static void reduce_range(void *data, int thread, int64_t lo, int64_t hi)
{
    const struct reduce *r = data;
    void *acc = r->scratch + (size_t)thread * r->scratch_each;
    int64_t rows = tensor_dims_product(r->reduced.dim, 0, r->reduced.rank), n = r->inner * r->run;
    enum dtype t = r->x->dtype;
    for (int64_t block = lo; block < hi; block++) {
        int64_t base = shape_offset(&r->kept, block);
        block_begin(r, acc);
        for (int64_t row = 0; row < rows && r->run; row++) {
            const void *p = element_at_const(r->x->data, dtype_size(t), base + shape_offset(&r->reduced, row));
            if (t == DT_F64)
                accumulate_f64(r, p, n, r->inner == 1, acc);
            else if (dtype_is_float(t))
                accumulate_f32(r, p, n, r->inner == 1, acc);
            else
                accumulate_i64(r, p, n, r->inner == 1, acc);
        }
        block_end(r, acc, block);
    }
}

/* Whether to sum neighbouring rows of float32: not so long that pairwise sums are more accurate. */
static bool sums_rows(const struct reduce *r)
{
    bool dense = r->kept.rank == 0 || (r->kept.rank == 1 && r->kept.stride[0] == r->run);
    return r->x->dtype == DT_F32 && (r->how == REDUCE_SUM || r->how == REDUCE_MEAN) && r->inner == 1 && r->run <= CHUNK &&
        r->reduced.rank == 0 && dense;
}

static void sum_range(void *data, int thread, int64_t lo, int64_t hi)
{
    const struct reduce *r = data;
    float *y = r->y->data;
    (void)thread;
    sum_rows((const float *)r->x->data + lo * r->run, r->run, hi - lo, y + lo);
    for (int64_t i = lo; r->how == REDUCE_MEAN && i < hi; i++)
        y[i] /= (float)r->count;
}

/* ---- setting up ----------------------------------------------------------------------------------------------------------- */
static void shape_add(struct shape *s, int64_t dim, int64_t stride)
{
    if (s->rank && s->stride[s->rank - 1] == dim * stride) {
        s->dim[s->rank - 1] *= dim;
        s->stride[s->rank - 1] = stride;
        return;
    }
    s->dim[s->rank] = dim;
    s->stride[s->rank++] = stride;
}

/* The reduced axes; false if the op returns its operand unchanged. */
static bool read_reduced_axes(const struct kcall *call, int rank, bool *reduced)
{
    int64_t axes[MAX_RANK];
    int n = kcall_sizes(call, 1, "axes", axes, MAX_RANK);
    if (n <= 0 && attr_int(call->node, "noop_with_empty_axes"))
        return false;
    for (int d = 0; d < rank; d++)
        reduced[d] = n <= 0;
    for (int i = 0; i < n; i++)
        reduced[kcall_axis(call, axes[i], rank)] = true;
    return true;
}

static void reduce_shape(struct reduce *r, const bool *reduced)
{
    const struct tensor *x = r->x;
    int64_t stride[MAX_RANK];
    tensor_dense_strides(x->rank, x->dim, stride);
    int last = x->rank - 1;
    while (last >= 0 && x->dim[last] == 1)
        last--;
    for (int d = 0; d <= last; d++)
        if (x->dim[d] != 1)
            shape_add(reduced[d] ? &r->reduced : &r->kept, x->dim[d], stride[d]);
    r->inner = r->run = r->count = 1;
    for (int d = 0; d < x->rank; d++)
        r->count *= reduced[d] ? x->dim[d] : 1;
    struct shape *inner = last < 0 ? NULL : reduced[last] ? &r->reduced : &r->kept;
    if (inner)
        *(reduced[last] ? &r->run : &r->inner) = inner->dim[--inner->rank];
}

/* In a fixed order, whichever rank holds which part. */
static void reduce_chunks(struct kcall *call, const struct reduce *r, const bool *reduced)
{
    int64_t n = tensor_elements(r->y);
    bool wide = r->y->dtype == DT_F64;
    float *y = wide ? NULL : kcall_result_f32(call, r->y);
    double *z = r->y->data;
    chunk_reduce(call, reduced, wide ? r->y->data : (void *)y);
    for (int64_t i = 0; r->how == REDUCE_MEAN && i < n; i++)
        if (wide)
            z[i] /= (double)r->count;
        else
            y[i] /= (float)r->count;
    if (!wide)
        kcall_result_store(y, r->y);
}

static void reduce_kernel(struct kcall *call, enum reduction how)
{
    struct reduce r = {.how = how, .x = &call->in[0], .y = &call->out[0]};
    bool reduced[MAX_RANK] = {false};
    if (!read_reduced_axes(call, r.x->rank, reduced)) {
        copy_dense(call->env, r.y->data, r.x->data, tensor_bytes(r.y));
        return;
    }
    if ((r.x->dtype == DT_BOOL && how != REDUCE_MAX && how != REDUCE_MIN) || !dtype_size(r.x->dtype))
        kcall_bad_type(call, r.x->dtype);
    reduce_shape(&r, reduced);
    int64_t blocks = tensor_dims_product(r.kept.dim, 0, r.kept.rank);
    if (blocks * r.inner == 0)
        return;
    if (kenv_deterministic(call->env) && (how == REDUCE_SUM || how == REDUCE_MEAN) && dtype_is_float(r.x->dtype)) {
        reduce_chunks(call, &r, reduced);
        return;
    }
    r.scratch_each = (kcall_bytes(call, r.inner, 8) + 63) & ~(size_t)63;
    r.scratch = kenv_scratch(call->env, kcall_bytes(call, kenv_threads(call->env), r.scratch_each));
    kenv_parallel_shares(call->env, blocks, r.inner * (r.count + 1), sums_rows(&r) ? sum_range : reduce_range, &r);
}

KERNEL_IS(ReduceMax, reduce_kernel(call, REDUCE_MAX))
KERNEL_IS(ReduceMin, reduce_kernel(call, REDUCE_MIN))
KERNEL_IS(ReduceProd, reduce_kernel(call, REDUCE_PROD))
KERNEL_IS(ReduceMean, reduce_kernel(call, REDUCE_MEAN))
KERNEL_IS(ReduceSum, reduce_kernel(call, REDUCE_SUM))

/* ---- CumSum, CumProd ----------------------------------------------------------------------------------------------------- */
struct running {
    const struct tensor *x;
    struct tensor *y;
    int64_t n, inner;
    bool exclusive, reverse;
};

#define RUNNING(T, load, store, first, op)                                                \
    do {                                                                                  \
        T all = first, value;                                                             \
        for (int64_t i = 0; i < c->n; i++) {                                              \
            int64_t at_i = base + (c->reverse ? c->n - 1 - i : i) * c->inner;             \
            load(t, element_at_const(c->x->data, size, at_i), 1, &value);                 \
            T next = (T)(all op value);                                                   \
            store(t, c->exclusive ? &all : &next, 1, element_at(c->y->data, size, at_i)); \
            all = next;                                                                   \
        }                                                                                 \
    } while (0)

#define RUNNING_RANGE(name, first, op)                                          \
    static void name(void *data, int64_t lo, int64_t hi)                        \
    {                                                                           \
        const struct running *c = data;                                         \
        enum dtype t = c->x->dtype;                                             \
        size_t size = dtype_size(t);                                            \
        for (int64_t line = lo; line < hi; line++) {                            \
            int64_t base = line / c->inner * c->n * c->inner + line % c->inner; \
            if (t == DT_F64)                                                    \
                RUNNING(double, convert_to_f64, convert_from_f64, first, op);   \
            else if (dtype_is_float(t))                                         \
                RUNNING(float, convert_to_f32, convert_from_f32, first, op);    \
            else                                                                \
                RUNNING(uint64_t, convert_to_u64, convert_from_u64, first, op); \
        }                                                                       \
    }
RUNNING_RANGE(cumsum_range, 0, +)
RUNNING_RANGE(cumprod_range, 1, *)

static void running_kernel(struct kcall *call, range_fn *range)
{
    const struct tensor *x = &call->in[0];
    int64_t axis = 0;
    if (kcall_sizes(call, 1, "axis", &axis, 1) != 1)
        fail("%s: axis must be one number", kcall_where(call));
    int a = kcall_axis(call, axis, x->rank);
    if (x->dtype == DT_BOOL || !dtype_size(x->dtype))
        kcall_bad_type(call, x->dtype);
    struct running c = {x,
                        &call->out[0],
                        x->dim[a],
                        tensor_dims_product(x->dim, a + 1, x->rank),
                        attr_int(call->node, "exclusive") != 0,
                        attr_int(call->node, "reverse") != 0};
    if (tensor_elements(x))
        kenv_parallel_for(call->env, tensor_elements(x) / c.n, 4 * c.n, range, &c);
}

KERNEL_IS(CumSum, running_kernel(call, cumsum_range))
KERNEL_IS(CumProd, running_kernel(call, cumprod_range))
