/* quantize: between real numbers and integers with scales, and products of integers.
 *
 * Rounding is to nearest even, then the zero point is added, then the result saturates. A product of 8-bit integers less their zero
 * points has a magnitude below 2^16, so float32 sums 256 of them exactly: MatMulInteger is float32 products of that depth, added up as
 * 32-bit integers. */
#include "kern/core/core.h"
#include "kern/gemm/gemm.h"

#include <math.h>
#include <string.h>

/* ---- DequantizeLinear -----------------------------------------------------------------------------------------------------------------
 */

struct decoding {
    struct scaled s;
    const struct tensor *x;
    struct tensor *y;
};

/* Rows lo..hi. */
static void decode_range(void *data, int thread, int64_t lo, int64_t hi)
{
    const struct decoding *d = data;
    float part[CHUNK];
    size_t size = dtype_size(d->y->dtype);
    (void)thread;
    for (int64_t row = lo; row < hi; row++)
        for (int64_t j = 0; j < d->s.inner; j += CHUNK) {
            int64_t n = d->s.inner - j < CHUNK ? d->s.inner - j : CHUNK;
            scaled_decode(&d->s, d->x, row, j, n, part);
            convert_from_f32(d->y->dtype, part, n, element_at(d->y->data, size, row * d->s.inner + j));
        }
}

void kern_DequantizeLinear(struct kcall *call)
{
    struct decoding d = {scaled_of(call, 0), &call->in[0], &call->out[0]};
    if (d.y->dtype != DT_F32 && !dtype_is_half(d.y->dtype))
        kcall_bad_type(call, d.y->dtype);
    if (tensor_elements(d.y) > 0)
        kenv_parallel_for(call->env, tensor_elements(d.y) / d.s.inner, 4 * d.s.inner, decode_range, &d);
}

/* ---- QuantizeLinear -------------------------------------------------------------------------------------------------------------------
 */

struct limits {
    float lo, hi;
};

static struct limits limits_of(const struct kcall *call, enum dtype t)
{
    int64_t lo = 0, hi = 0;
    if (dtype_is_integer(t) && dtype_bits(t) <= 16)
        dtype_range(t, &lo, &hi);
    else if (!dtype_is_small_float(t))
        kcall_bad_type(call, t);
    return (struct limits){(float)lo, (float)hi};
}

/* NaN, which the standard leaves open (a mask of -inf by an infinite scale), becomes the lowest value, as in ONNX Runtime. */
static SIMD void round_to(float *x, const float *scale, const float *zero, int64_t n, struct limits l)
{
    LOOP for (int64_t i = 0; i < n; i++)
    {
        float r = rintf(x[i] / scale[i]) + zero[i];
        r = r > l.lo ? r : l.lo;
        x[i] = r < l.hi ? r : l.hi;
    }
}

static void store_integers(enum dtype t, const float *x, int64_t n, void *to)
{
    double wide[CHUNK];
    for (int64_t i = 0; i < n; i++)
        wide[i] = (double)x[i];
    convert_from_f64(t, wide, n, to);
}

struct quantize_call {
    struct scaled s;
    struct limits limits;
    const struct tensor *x;
    struct tensor *y;
    bool saturate; /* small floats */
};

/* What is scaled is rounded by its new type. */
static void store_small(const struct quantize_call *e, const float *x, const float *scale, const float *zero, int64_t n, uint8_t *to)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = small_float_encode(e->y->dtype, x[i] / scale[i] + zero[i], e->saturate);
}

/* Rows lo..hi. */
static void encode_range(void *data, int thread, int64_t lo, int64_t hi)
{
    const struct quantize_call *e = data;
    float part[CHUNK], scale[CHUNK], zero[CHUNK];
    (void)thread;
    for (int64_t row = lo; row < hi; row++)
        for (int64_t j = 0; j < e->s.inner; j += CHUNK) {
            int64_t n = e->s.inner - j < CHUNK ? e->s.inner - j : CHUNK, first = row * e->s.inner + j;
            convert_to_f32(e->x->dtype, element_at_const(e->x->data, dtype_size(e->x->dtype), first), n, part);
            scaled_read(&e->s, row, j, n, scale, zero);
            if (dtype_is_small_float(e->y->dtype)) {
                store_small(e, part, scale, zero, n, (uint8_t *)e->y->data + first);
                continue;
            }
            round_to(part, scale, zero, n, e->limits);
            store_integers(e->y->dtype, part, n, element_at(e->y->data, dtype_size(e->y->dtype), first));
        }
}

void kern_QuantizeLinear(struct kcall *call)
{
    struct quantize_call e = {scaled_of(call, 0), limits_of(call, call->out[0].dtype), &call->in[0], &call->out[0],
                              attr_int(call->node, "saturate") != 0};
    if (e.x->dtype != DT_F32 && !dtype_is_half(e.x->dtype))
        kcall_bad_type(call, e.x->dtype);
    if (tensor_elements(e.y) > 0)
        kenv_parallel_for(call->env, tensor_elements(e.y) / e.s.inner, 8 * e.s.inner, encode_range, &e);
}

/* ---- DynamicQuantizeLinear
 * ---------------------------------------------------------------------------------------------------------------- */

static SIMD struct limits range_of(const float *x, int64_t n)
{
    float lo = 0, hi = 0;
    _Pragma("omp simd reduction(min:lo) reduction(max:hi)") for (int64_t i = 0; i < n; i++)
    {
        lo = x[i] < lo ? x[i] : lo;
        hi = x[i] > hi ? x[i] : hi;
    }
    return (struct limits){lo, hi};
}

void kern_DynamicQuantizeLinear(struct kcall *call)
{
    const struct limits all = {0, 255};
    struct tensor x = call->in[0], *y = &call->out[0], *scale = kcall_out(call, 1), *zero = kcall_out(call, 2);
    if (x.dtype != DT_F32)
        kcall_bad_type(call, x.dtype);
    struct limits found = range_of(x.data, tensor_elements(&x));
    float step = (found.hi - found.lo) / 255, offset;
    step = step > 0 ? step : 1;
    offset = rintf(-found.lo / step);
    struct quantize_call e = {{.inner = tensor_elements(&x), .one = true, .scale = &step, .zero = &offset}, all, &x, y, true};
    if (e.s.inner > 0)
        encode_range(&e, 0, 0, 1);
    if (scale)
        memcpy(scale->data, &step, sizeof step);
    if (zero)
        *(uint8_t *)zero->data = (uint8_t)offset;
}

/* ---- MatMulInteger
 * ------------------------------------------------------------------------------------------------------------------------ */

enum { DEPTH = 256, WIDTH = 128 }; /* of a panel of B; DEPTH products of 8-bit numbers are exact in float32 */

struct integers {
    struct kenv *env;
    int64_t m, n, k;
    const float *a;
    const struct tensor *b, *b_zero;
    int32_t *y;
    float *room; /* per thread: a panel, and its products */
};

static float zero_point(const struct tensor *t, int64_t i)
{
    float zero = 0;
    if (t)
        dequant_load(t, tensor_elements(t) == 1 ? 0 : i, 1, &zero);
    return zero;
}

static void b_panel(const struct integers *p, int64_t l, int64_t depth, int64_t from, int64_t count, float *panel)
{
    float zero[WIDTH];
    for (int64_t j = 0; j < count; j++)
        zero[j] = zero_point(p->b_zero, from + j);
    for (int64_t i = 0; i < depth; i++, panel += WIDTH) {
        dequant_load(p->b, (l + i) * p->n + from, count, panel);
        for (int64_t j = 0; j < count; j++)
            panel[j] -= zero[j];
    }
}

static void add_products(const struct integers *p, int64_t from, int64_t count, const float *sum, bool first)
{
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < count; j++) {
            int32_t *y = p->y + i * p->n + from + j;
            uint32_t before = first ? 0 : (uint32_t)*y, more = (uint32_t)(int32_t)sum[i * WIDTH + j];
            *y = (int32_t)(before + more);
        }
}

/* Panels lo..hi of WIDTH columns. */
static void integer_range(void *data, int thread, int64_t lo, int64_t hi)
{
    const struct integers *p = data;
    float *panel = p->room + thread * (DEPTH + p->m) * WIDTH, *sum = panel + DEPTH * WIDTH;
    for (int64_t t = lo; t < hi; t++)
        for (int64_t l = 0; l < p->k; l += DEPTH) {
            int64_t from = t * WIDTH, count = p->n - from < WIDTH ? p->n - from : WIDTH, depth = p->k - l < DEPTH ? p->k - l : DEPTH;
            b_panel(p, l, depth, from, count, panel);
            dnnl_product(p->env, false, false, p->m, count, depth, 1.0f, p->a + l, p->k, panel, WIDTH, 0.0f, sum, WIDTH);
            add_products(p, from, count, sum, l == 0);
        }
}

/* A zero point of A per row repeats with its operand's batch only where there is none: [m] or [.., m, 1]. */
static const float *rows_less_zero(struct kcall *call, int64_t m, int64_t k)
{
    const struct tensor *a = &call->in[0], *zero = kcall_in(call, 2);
    float *to = kenv_room(call->env, ROOM_A, kcall_bytes(call, m * k, sizeof *to));
    dequant_load(a, 0, m * k, to);
    for (int64_t i = 0; zero && i < m; i++) {
        float z = zero_point(zero, i % a->dim[a->rank - 2]);
        for (int64_t l = 0; l < k; l++)
            to[i * k + l] -= z;
    }
    return to;
}

void kern_MatMulInteger(struct kcall *call)
{
    const struct tensor *a = &call->in[0], *b = &call->in[1];
    int64_t m = tensor_dims_product(a->dim, 0, a->rank - 1), k = b->dim[0], n = b->dim[1], panels = (n + WIDTH - 1) / WIDTH;
    if (m * n == 0)
        return;
    memset(call->out[0].data, 0, tensor_bytes(&call->out[0]));
    struct integers p = {call->env, m, n, k, rows_less_zero(call, m, k), b, kcall_in(call, 3), call->out[0].data, NULL};
    p.room = kenv_room(call->env, ROOM_THREADS, kcall_bytes(call, kenv_threads(call->env) * (DEPTH + m), WIDTH * sizeof *p.room));
    kenv_parallel_for(call->env, panels, m * k * WIDTH / 8 + 1, integer_range, &p);
}
