/* ranked: the first elements of a line in order: ArgMax, ArgMin, TopK. Equal elements keep the order of their indices. TopK sorts NaN above
 * every number; for ArgMax and ArgMin NaN is the most extreme, as in ReduceMax and ReduceMin.
 *
 * Lines of floats are read as f32 and compared as such. */
#include "kern/core/core.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct axis_lines {
    int64_t n, inner, count;
}; /* elements of a line, their stride, number of lines */

static struct axis_lines lines_of(const struct tensor *x, int axis)
{
    struct axis_lines l = {x->dim[axis], tensor_dims_product(x->dim, axis + 1, x->rank), tensor_dims_product(x->dim, 0, axis)};
    l.count *= l.inner;
    return l;
}

/* Integers beyond 2^53 do not fit a double: elements are compared in a type that holds them. */
struct ranked_element {
    double real;
    int64_t whole, index;
};

struct ranking {
    const struct tensor *x;
    struct axis_lines l;
    size_t size;
    bool floats; /* lines are read as f32 */
    float *line; /* per thread: scratch for a line */
    /* for ArgMax and ArgMin: */
    int sign;
    bool last;
    int64_t *y;
    /* for TopK: */
    int (*order)(const void *, const void *);
    int64_t k;
    bool largest;
    struct tensor *values, *indices;
    struct ranked_element *kept; /* per thread: k */
};

static void ranking_begin(struct kcall *call, struct ranking *r, int64_t k)
{
    const struct tensor *x = &call->in[0];
    r->x = x;
    r->size = dtype_size(x->dtype);
    r->l = lines_of(x, kcall_axis(call, attr_int(call->node, "axis"), x->rank));
    r->floats = x->dtype == DT_F32 || dtype_is_half(x->dtype);
    r->k = k;
    int64_t threads = kenv_threads(call->env), kept, lines;
    if (!i64_mul(threads, k, &kept) || !i64_mul(threads, r->floats ? r->l.n : 0, &lines))
        fail("%s: %lld elements do not fit in memory", kcall_where(call), (long long)r->l.n);
    r->kept = kenv_scratch(call->env, kcall_bytes(call, kept, sizeof *r->kept));
    r->line = kenv_room(call->env, ROOM_A, kcall_bytes(call, lines, sizeof *r->line));
}

static int64_t line_start(const struct ranking *r, int64_t line)
{
    return line / r->l.inner * r->l.n * r->l.inner + line % r->l.inner;
}

/* In place, or copied. */
static const float *float_line(const struct ranking *r, int thread, int64_t line)
{
    const void *from = element_at_const(r->x->data, r->size, line_start(r, line));
    float *to = r->line + thread * r->l.n;
    if (r->x->dtype == DT_F32 && r->l.inner == 1)
        return from;
    if (r->l.inner == 1)
        convert_to_f32(r->x->dtype, from, r->l.n, to);
    else
        for (int64_t i = 0; i < r->l.n; i++)
            convert_to_f32(r->x->dtype, element_at_const(from, r->size, i * r->l.inner), 1, to + i);
    return to;
}

static struct ranked_element element_of(const struct ranking *r, int64_t start, int64_t i)
{
    struct ranked_element e = {.index = i};
    const void *from = element_at_const(r->x->data, r->size, start + i * r->l.inner);
    if (dtype_is_float(r->x->dtype))
        convert_to_f64(r->x->dtype, from, 1, &e.real);
    else
        convert_to_i64(r->x->dtype, from, 1, &e.whole);
    return e;
}

/* -1, 0, 1: a below, equal to, above b. */
static int compare_elements(const struct ranked_element *a, const struct ranked_element *b)
{
    bool nan_a = a->real != a->real, nan_b = b->real != b->real;
    if (nan_a || nan_b)
        return nan_a - nan_b;
    if (a->real < b->real || a->whole < b->whole)
        return -1;
    return a->real > b->real || a->whole > b->whole;
}

/* ---- ArgMax, ArgMin ------------------------------------------------------------------------------------------------------------------ */
/* NaN is the most extreme element in both directions. */
static int more_extreme(const struct ranked_element *a, const struct ranked_element *b, int sign)
{
    bool nan = a->real != a->real || b->real != b->real;
    return (nan ? 1 : sign) * compare_elements(a, b);
}

/* The largest of sign * x; NaN if there is one. */
static SIMD float extreme_of(const float *x, int64_t n, float sign)
{
    float most = -INFINITY;
    int nans = 0;
    _Pragma("omp simd reduction(max:most) reduction(+:nans)") for (int64_t i = 0; i < n; i++)
    {
        float v = sign * x[i];
        nans += v != v;
        most = v > most ? v : most;
    }
    return nans ? NAN : most;
}

static int64_t extreme_float(const struct ranking *r, const float *x)
{
    float sign = (float)r->sign, most = extreme_of(x, r->l.n, sign);
    bool nan = isnan(most);
    int64_t step = r->last ? -1 : 1, i = r->last ? r->l.n - 1 : 0;
    while (nan ? !isnan(x[i]) : sign * x[i] < most)
        i += step;
    return i;
}

static int64_t extreme_element(const struct ranking *r, int64_t start)
{
    struct ranked_element best = element_of(r, start, 0);
    for (int64_t i = 1; i < r->l.n; i++) {
        struct ranked_element e = element_of(r, start, i);
        int c = more_extreme(&e, &best, r->sign);
        if (c > 0 || (c == 0 && r->last))
            best = e;
    }
    return best.index;
}

static void extreme_range(void *data, int thread, int64_t lo, int64_t hi)
{
    const struct ranking *r = data;
    for (int64_t line = lo; line < hi; line++)
        r->y[line] = r->floats ? extreme_float(r, float_line(r, thread, line)) : extreme_element(r, line_start(r, line));
}

static void arg_kernel(struct kcall *call, int sign)
{
    struct ranking r = {.sign = sign, .last = attr_int(call->node, "select_last_index") != 0, .y = call->out[0].data};
    ranking_begin(call, &r, 0);
    if (r.l.n == 0 && r.l.count > 0)
        fail("%s: there is no extreme element of a line without elements", kcall_where(call));
    if (!r.size)
        kcall_bad_type(call, r.x->dtype);
    kenv_parallel_shares(call->env, r.l.count, 2 * r.l.n, extreme_range, &r);
}

KERNEL_IS(ArgMax, arg_kernel(call, 1))
KERNEL_IS(ArgMin, arg_kernel(call, -1))

/* ---- TopK ---------------------------------------------------------------------------------------------------------------------------- */
static int ascending(const void *pa, const void *pb)
{
    const struct ranked_element *a = pa, *b = pb;
    int c = compare_elements(a, b);
    return c ? c : (a->index > b->index) - (a->index < b->index);
}

static int descending(const void *pa, const void *pb)
{
    const struct ranked_element *a = pa, *b = pb;
    int c = compare_elements(b, a);
    return c ? c : (a->index > b->index) - (a->index < b->index);
}

/* A heap of the first k so far, whose root comes last in order. Sifts element i down. */
static void sift_down(const struct ranking *r, struct ranked_element *heap, int64_t i)
{
    for (int64_t child; (child = 2 * i + 1) < r->k; i = child) {
        child += child + 1 < r->k && r->order(&heap[child], &heap[child + 1]) < 0;
        if (r->order(&heap[i], &heap[child]) >= 0)
            return;
        struct ranked_element e = heap[i];
        heap[i] = heap[child];
        heap[child] = e;
    }
}

/* Whether x certainly comes after the root. Later elements come after equal ones. */
static bool is_behind(const struct ranking *r, float x, double root)
{
    return r->largest ? (double)x <= root : (double)x >= root;
}

static void select_first(const struct ranking *r, int64_t start, const float *x, struct ranked_element *heap)
{
    for (int64_t i = 0; i < r->k; i++)
        heap[i] = element_of(r, start, i);
    for (int64_t i = r->k / 2 - 1; i >= 0; i--)
        sift_down(r, heap, i);
    for (int64_t i = r->k; i < r->l.n; i++) {
        if (x && is_behind(r, x[i], heap[0].real))
            continue;
        struct ranked_element e = element_of(r, start, i);
        if (r->order(&e, &heap[0]) >= 0)
            continue;
        heap[0] = e;
        sift_down(r, heap, 0);
    }
    qsort(heap, (size_t)r->k, sizeof *heap, r->order);
}

static void top_range(void *data, int thread, int64_t lo, int64_t hi)
{
    const struct ranking *r = data;
    struct ranked_element *kept = r->kept + thread * r->k;
    for (int64_t line = lo; line < hi; line++) {
        int64_t from = line_start(r, line), to = line / r->l.inner * r->k * r->l.inner + line % r->l.inner;
        select_first(r, from, r->floats ? float_line(r, thread, line) : NULL, kept);
        for (int64_t i = 0; i < r->k; i++, to += r->l.inner) {
            if (r->values)
                memcpy(element_at(r->values->data, r->size, to), element_at_const(r->x->data, r->size, from + kept[i].index * r->l.inner),
                       r->size);
            if (r->indices)
                ((int64_t *)r->indices->data)[to] = kept[i].index;
        }
    }
}

void kern_TopK(struct kcall *call)
{
    struct tensor *values = kcall_out(call, 0), *indices = kcall_out(call, 1), *any = values ? values : indices;
    int axis = kcall_axis(call, attr_int(call->node, "axis"), call->in[0].rank);
    int64_t k = any ? any->dim[axis] : 0, n = call->in[0].dim[axis];
    bool largest = attr_int(call->node, "largest") != 0;
    struct ranking r = {.order = largest ? descending : ascending, .largest = largest, .values = values, .indices = indices};
    if (k < 0 || k > n)
        fail("%s: K is %lld for %lld elements", kcall_where(call), (long long)k, (long long)n);
    if (k == 0)
        return;
    ranking_begin(call, &r, k);
    kenv_parallel_shares(call->env, r.l.count, 4 * n, top_range, &r);
}
