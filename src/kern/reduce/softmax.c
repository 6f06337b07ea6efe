/* softmax: Softmax, LogSoftmax and Hardmax along any axis. A row of -inf gives NaN, as the formulas do. A result of Softmax is exp(x - max)
 * times the reciprocal of the sum; a result of LogSoftmax is x - max minus the logarithm of the sum. In deterministic mode they are
 * computed as lowered in op/reduce/softmax.c. */
#include "kern/chunk/chunk.h"
#include "kern/core/core.h"
#include "kern/core/mathf.h"
#include "kern/reduce/reduce.h"

static SIMD void softmax_f32(void *data, int64_t line, float *x, int64_t n)
{
    float max = -INFINITY, sum = 0;
    (void)data, (void)line;
    _Pragma("omp simd reduction(max:max)") for (int64_t i = 0; i < n; i++) max = x[i] > max ? x[i] : max;
    _Pragma("omp simd reduction(+:sum)") for (int64_t i = 0; i < n; i++)
    {
        x[i] = mathf_exp(x[i] - max);
        sum += x[i];
    }
    float scale = 1.0f / sum;
    LOOP for (int64_t i = 0; i < n; i++) x[i] *= scale;
}

static double max_f64(const double *x, int64_t n)
{
    double max = -INFINITY;
    for (int64_t i = 0; i < n; i++)
        max = x[i] > max ? x[i] : max;
    return max;
}

static void softmax_f64(void *data, int64_t line, double *x, int64_t n)
{
    double max = max_f64(x, n), sum = 0;
    (void)data, (void)line;
    for (int64_t i = 0; i < n; i++)
        sum += x[i] = exp(x[i] - max);
    for (int64_t i = 0; i < n; i++)
        x[i] /= sum;
}

SIMD void softmax_log_f32(float *x, int64_t n)
{
    float max = -INFINITY, sum = 0;
    _Pragma("omp simd reduction(max:max)") for (int64_t i = 0; i < n; i++) max = x[i] > max ? x[i] : max;
    _Pragma("omp simd reduction(+:sum)") for (int64_t i = 0; i < n; i++)
    {
        x[i] -= max;
        sum += mathf_exp(x[i]);
    }
    float less = logf(sum);
    LOOP for (int64_t i = 0; i < n; i++) x[i] -= less;
}

void softmax_log_f64(double *x, int64_t n)
{
    double max = max_f64(x, n), sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += exp(x[i] -= max);
    sum = log(sum);
    for (int64_t i = 0; i < n; i++)
        x[i] -= sum;
}

static void log_line_f32(void *data, int64_t line, float *x, int64_t n)
{
    (void)data, (void)line;
    softmax_log_f32(x, n);
}

static void log_line_f64(void *data, int64_t line, double *x, int64_t n)
{
    (void)data, (void)line;
    softmax_log_f64(x, n);
}

/* ---- in a fixed order ---- */

static SIMD void shift_f32(float *x, int64_t n)
{
    float max = -INFINITY;
    _Pragma("omp simd reduction(max:max)") for (int64_t i = 0; i < n; i++) max = x[i] > max ? x[i] : max;
    LOOP for (int64_t i = 0; i < n; i++) x[i] -= max;
}

static SIMD void exp_all_f32(const float *x, int64_t n, float *e)
{
    LOOP for (int64_t i = 0; i < n; i++) e[i] = mathf_exp(x[i]);
}

static SIMD void divide_f32(float *x, int64_t n, float by)
{
    LOOP for (int64_t i = 0; i < n; i++) x[i] /= by;
}

static void softmax_chunks(void *data, int64_t line, float *x, int64_t n)
{
    (void)data, (void)line;
    shift_f32(x, n);
    exp_all_f32(x, n, x);
    divide_f32(x, n, chunk_sum_f32(x, n));
}

static SIMD void less_f32(float *x, int64_t n, float less)
{
    LOOP for (int64_t i = 0; i < n; i++) x[i] -= less;
}

void softmax_log_chunks(float *x, int64_t n)
{
    float *e = x + n;
    shift_f32(x, n);
    exp_all_f32(x, n, e);
    less_f32(x, n, logf(chunk_sum_f32(e, n)));
}

static void log_chunks(void *data, int64_t line, float *x, int64_t n)
{
    (void)data, (void)line;
    softmax_log_chunks(x, n);
}

/* 1 at the first maximum, 0 elsewhere. */
#define HARDMAX(T)                        \
    int64_t best = 0;                     \
    (void)data, (void)line;               \
    for (int64_t i = 1; i < n; i++)       \
        best = x[i] > x[best] ? i : best; \
    for (int64_t i = 0; i < n; i++)       \
        x[i] = i == best ? (T)1 : (T)0;

static void hardmax_f32(void *data, int64_t line, float *x, int64_t n)
{
    HARDMAX(float)
}
static void hardmax_f64(void *data, int64_t line, double *x, int64_t n)
{
    HARDMAX(double)
}

/* ---- along an axis that is not the last: neighbouring lines together ---- */
enum { COLUMNS = 128 };
struct columns {
    const float *x;
    float *y;
    int64_t n, step, stretches; /* elements of a line, their stride, and groups of `step` lines */
};

static SIMD void softmax_columns(const struct columns *c, const float *x, float *y, int64_t count)
{
    float max[COLUMNS], sum[COLUMNS];
    LOOP for (int64_t j = 0; j < count; j++) max[j] = -INFINITY;
    LOOP for (int64_t j = 0; j < count; j++) sum[j] = 0;
    for (int64_t i = 0; i < c->n; i++)
        LOOP for (int64_t j = 0; j < count; j++) max[j] = x[i * c->step + j] > max[j] ? x[i * c->step + j] : max[j];
    for (int64_t i = 0; i < c->n; i++)
        LOOP for (int64_t j = 0; j < count; j++)
        {
            float e = mathf_exp(x[i * c->step + j] - max[j]);
            y[i * c->step + j] = e;
            sum[j] += e;
        }
    LOOP for (int64_t j = 0; j < count; j++) sum[j] = 1.0f / sum[j];
    for (int64_t i = 0; i < c->n; i++)
        LOOP for (int64_t j = 0; j < count; j++) y[i * c->step + j] *= sum[j];
}

static void columns_range(void *data, int64_t lo, int64_t hi)
{
    const struct columns *c = data;
    for (int64_t i = lo; i < hi; i++) {
        int64_t from = i % c->stretches * COLUMNS, at = i / c->stretches * c->n * c->step + from;
        softmax_columns(c, c->x + at, c->y + at, c->step - from < COLUMNS ? c->step - from : COLUMNS);
    }
}

static bool softmax_by_columns(struct kcall *call)
{
    const struct tensor *x = &call->in[0];
    int axis = kcall_axis(call, attr_int(call->node, "axis"), x->rank);
    struct columns c = {.x = x->data, .y = call->out[0].data, .n = x->dim[axis]};
    c.step = tensor_dims_product(x->dim, axis + 1, x->rank);
    if (x->dtype != DT_F32 || c.step < 2 || tensor_elements(x) == 0)
        return false;
    c.stretches = (c.step + COLUMNS - 1) / COLUMNS;
    kenv_parallel_for(call->env, tensor_dims_product(x->dim, 0, axis) * c.stretches, c.n * COLUMNS * 6, columns_range, &c);
    return true;
}

static void softmax_lines(struct kcall *call, const struct line_op *op)
{
    const struct tensor *x = &call->in[0];
    axis_line_run(call, op, NULL, x, &call->out[0], kcall_axis(call, attr_int(call->node, "axis"), x->rank));
}

void kern_Softmax(struct kcall *call)
{
    bool chunks = kenv_deterministic(call->env);
    if (chunks || !(softmax_by_rows(call) || softmax_by_columns(call)))
        softmax_lines(call, &(struct line_op){chunks ? softmax_chunks : softmax_f32, softmax_f64, 6});
}

KERNEL_IS(LogSoftmax, softmax_lines(call, &(struct line_op){kenv_deterministic(call->env) ? log_chunks : log_line_f32, log_line_f64, 6}))
KERNEL_IS(Hardmax, softmax_lines(call, &(struct line_op){hardmax_f32, hardmax_f64, 2}))
