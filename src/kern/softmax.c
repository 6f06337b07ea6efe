/* softmax: along any axis, by rows where it is the last one and by stretches of columns elsewhere. A row of -inf gives NaN, as the formula
 * does. Each result is exp(x - max) times the reciprocal of the sum. */
#include "kern/local.h"
#include "kern/mathf.h"

struct softmax { const struct tensor *x; struct tensor *y; int64_t n, inner; char *scratch; size_t scratch_each; };

/* In place. */
static SIMD void softmax_row(float *x, int64_t n)
{
    float max = -INFINITY, sum = 0;
    _Pragma("omp simd reduction(max:max)") for (int64_t i = 0; i < n; i++)
        max = x[i] > max ? x[i] : max;
    _Pragma("omp simd reduction(+:sum)") for (int64_t i = 0; i < n; i++) {
        x[i] = exp_f32(x[i] - max);
        sum += x[i];
    }
    float scale = 1.0f / sum;
    LOOP for (int64_t i = 0; i < n; i++)
        x[i] *= scale;
}

static void softmax_row_f64(double *x, int64_t n)
{
    double max = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++)
        max = x[i] > max ? x[i] : max;
    for (int64_t i = 0; i < n; i++)
        sum += x[i] = exp(x[i] - max);
    for (int64_t i = 0; i < n; i++)
        x[i] /= sum;
}

/* A line of n elements, step apart: gathered, worked on, scattered. */
static void softmax_line(const struct softmax *s, void *line, int64_t base, int64_t step)
{
    enum dtype t = s->x->dtype;
    size_t size = dtype_size(t), wide = t == DT_F64 ? 8 : 4;
    int64_t run = step == 1 ? s->n : 1;
    for (int64_t i = 0; i < s->n; i += run) {
        const void *from = at_const(s->x->data, size, base + i * step);
        t == DT_F64 ? load_f64(t, from, run, at(line, wide, i)) : load_f32(t, from, run, at(line, wide, i));
    }
    t == DT_F64 ? softmax_row_f64(line, s->n) : softmax_row(line, s->n);
    for (int64_t i = 0; i < s->n; i += run) {
        void *to = at(s->y->data, size, base + i * step);
        t == DT_F64 ? store_f64(t, at(line, wide, i), run, to) : store_f32(t, at(line, wide, i), run, to);
    }
}

static void softmax_range(void *data, int thread, int64_t lo, int64_t hi)
{
    const struct softmax *s = data;
    void *line = s->scratch + (size_t)thread * s->scratch_each;
    for (int64_t i = lo; i < hi; i++)
        softmax_line(s, line, i / s->inner * s->n * s->inner + i % s->inner, s->inner);
}

void kern_Softmax(struct kcall *call)
{
    const struct tensor *x = &call->in[0];
    int axis = call_axis(call, attr_int(call->node, "axis"), x->rank);
    struct softmax s = { x, &call->out[0], x->dim[axis], dims_product(x->dim, axis + 1, x->rank), NULL, 0 };
    int64_t n = tensor_elements(x);
    if (!dtype_is_float(x->dtype) || !dtype_size(x->dtype))
        call_bad_type(call, x->dtype);
    if (n == 0)
        return;
    s.scratch_each = (call_bytes(call, s.n, 8) + 63) & ~(size_t)63;
    s.scratch = kenv_scratch(call->env, call_bytes(call, kenv_threads(call->env), s.scratch_each));
    parallel_for(call->env, n / s.n, s.n * 6, softmax_range, &s);
}
