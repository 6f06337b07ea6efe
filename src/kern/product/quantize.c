/* quantize: conversion between real numbers and integers with scales. Rounds to nearest even, adds the zero point, then saturates. */
#include "kern/core/core.h"
#include "kern/gemm/gemm.h"

#include <math.h>
#include <string.h>

/* ---- DequantizeLinear -------------------------------------------------------------------------------------------------------- */

struct decoding {
    struct scaled s;
    const struct tensor *x;
    struct tensor *y;
};

/* One scale for bytes; is_signed: of the codes. */
static struct byte_scale byte_scale_of(const struct scaled *s, bool is_signed)
{
    return (struct byte_scale){s->scale[0], s->zero ? s->zero[0] : 0, is_signed};
}

static bool is_byte_scale(const struct scaled *s, enum dtype codes, enum dtype real)
{
    return s->one && dtype_is_byte(codes) && real == DT_F32;
}

/* Rows lo..hi. */
static void decode_range(void *data, int64_t lo, int64_t hi)
{
    const struct decoding *d = data;
    float part[CHUNK];
    size_t size = dtype_size(d->y->dtype);
    if (is_byte_scale(&d->s, d->x->dtype, d->y->dtype)) {
        struct byte_scale s = byte_scale_of(&d->s, d->x->dtype == DT_I8);
        byte_codes_decode(&s, (const uint8_t *)d->x->data + lo * d->s.inner, (hi - lo) * d->s.inner, (float *)d->y->data + lo * d->s.inner);
        return;
    }
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

/* ---- QuantizeLinear ---------------------------------------------------------------------------------------------------------- */

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

/* Integers in the type's range. */
static SIMD void store_bytes(const float *x, int64_t n, uint8_t *to)
{
    LOOP for (int64_t i = 0; i < n; i++) to[i] = (uint8_t)(int32_t)x[i];
}

static void store_integers(enum dtype t, const float *x, int64_t n, void *to)
{
    double wide[CHUNK];
    if (dtype_size(t) == 1) {
        store_bytes(x, n, to);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        wide[i] = (double)x[i];
    convert_from_f64(t, wide, n, to);
}

struct quantize_call {
    struct scaled s;
    struct limits limits;
    const struct tensor *x;
    struct tensor *y;
    bool saturate; /* for small floats */
};

/* The scaled number is rounded by its new type. */
static void store_small(const struct quantize_call *e, const float *x, const float *scale, const float *zero, int64_t n, uint8_t *to)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = small_float_encode(e->y->dtype, x[i] / scale[i] + zero[i], e->saturate);
}

/* Rows lo..hi. */
static void encode_range(void *data, int64_t lo, int64_t hi)
{
    const struct quantize_call *e = data;
    float part[CHUNK], scale[CHUNK], zero[CHUNK];
    if (is_byte_scale(&e->s, e->y->dtype, e->x->dtype)) {
        struct byte_scale s = byte_scale_of(&e->s, e->y->dtype == DT_I8);
        byte_codes_encode(&s, (const float *)e->x->data + lo * e->s.inner, (hi - lo) * e->s.inner, (uint8_t *)e->y->data + lo * e->s.inner);
        return;
    }
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

/* ---- DynamicQuantizeLinear --------------------------------------------------------------------------------------------------- */

enum { PIECE = 4096 };
struct ranging {
    const float *x;
    int64_t n;
    struct limits *found; /* of each thread */
};

static struct limits wider(struct limits a, struct limits b)
{
    return (struct limits){a.lo < b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi};
}

/* Pieces lo..hi. */
static void range_of_pieces(void *data, int thread, int64_t lo, int64_t hi)
{
    const struct ranging *r = data;
    struct limits some;
    int64_t first = lo * PIECE, end = hi * PIECE < r->n ? hi * PIECE : r->n;
    byte_codes_range(r->x + first, end - first, &some.lo, &some.hi);
    r->found[thread] = wider(r->found[thread], some);
}

static struct limits range_of(struct kcall *call, const float *x, int64_t n)
{
    int threads = kenv_threads(call->env);
    struct ranging r = {x, n, kenv_room(call->env, ROOM_THREADS, kcall_bytes(call, threads, sizeof *r.found))};
    struct limits all = {0, 0};
    memset(r.found, 0, (size_t)threads * sizeof *r.found);
    kenv_parallel_shares(call->env, (n + PIECE - 1) / PIECE, PIECE, range_of_pieces, &r);
    for (int i = 0; i < threads; i++)
        all = wider(all, r.found[i]);
    return all;
}

void kern_DynamicQuantizeLinear(struct kcall *call)
{
    const struct limits all = {0, 255};
    struct tensor x = call->in[0], *y = &call->out[0], *scale = kcall_out(call, 1), *zero = kcall_out(call, 2);
    if (x.dtype != DT_F32)
        kcall_bad_type(call, x.dtype);
    struct limits found = range_of(call, x.data, tensor_elements(&x));
    float step = (found.hi - found.lo) / 255, offset;
    step = step > 0 ? step : 1;
    offset = rintf(-found.lo / step);
    struct quantize_call e = {{.inner = x.rank ? x.dim[x.rank - 1] : 1, .one = true, .scale = &step, .zero = &offset}, all, &x, y, true};
    if (tensor_elements(&x) > 0)
        kenv_parallel_for(call->env, tensor_elements(&x) / e.s.inner, 8 * e.s.inner, encode_range, &e);
    if (scale)
        memcpy(scale->data, &step, sizeof step);
    if (zero)
        *(uint8_t *)zero->data = (uint8_t)offset;
}
