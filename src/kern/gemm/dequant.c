/* dequant: decodes integers with scales and zero points to real numbers. */
#include "kern/core/core.h"
#include "kern/gemm/gemm.h"

#include <string.h>

/* ---- integers ------------------------------------------------------------------------------------------------------------------------ */

#define LOADER(T, name)                                             \
    static SIMD void load_##name(const T *q, int64_t n, float *out) \
    {                                                               \
        LOOP for (int64_t i = 0; i < n; i++) out[i] = (float)q[i];  \
    }
LOADER(uint8_t, u8)
LOADER(int8_t, i8)
LOADER(uint16_t, u16)
LOADER(int16_t, i16)
LOADER(int32_t, i32)

/* flip 8 reads 4-bit two's complement, 0 unsigned. */
static SIMD void load_pairs(const uint8_t *q, int64_t pairs, int flip, float *out)
{
    LOOP for (int64_t i = 0; i < pairs; i++)
    {
        out[2 * i] = (float)(((q[i] & 15) ^ flip) - flip);
        out[2 * i + 1] = (float)((q[i] >> 4 ^ flip) - flip);
    }
}

static void load_packed(const uint8_t *q, int64_t i, int64_t n, int flip, float *out)
{
    for (; n > 0 && i % 2; i++, n--)
        *out++ = (float)((q[i / 2] >> 4 ^ flip) - flip);
    load_pairs(q + i / 2, n / 2, flip, out);
    if (n % 2)
        out[n - 1] = (float)(((q[(i + n - 1) / 2] & 15) ^ flip) - flip);
}

static void load_bytes(enum dtype t, const void *q, int64_t i, int64_t n, float *out)
{
    switch (t) {
    case DT_U2:
    case DT_U4:
    case DT_U8: load_u8((const uint8_t *)q + i, n, out); break;
    case DT_I2:
    case DT_I4:
    case DT_I8: load_i8((const int8_t *)q + i, n, out); break;
    case DT_U16: load_u16((const uint16_t *)q + i, n, out); break;
    case DT_I16: load_i16((const int16_t *)q + i, n, out); break;
    case DT_I32: load_i32((const int32_t *)q + i, n, out); break;
    default: convert_to_f32(t, (const uint8_t *)q + i, n, out); /* small floats */
    }
}

/* Other few-bit types: first unpacked to a byte each. */
static void load_unpacked(const struct tensor *q, int64_t i, int64_t n, float *out)
{
    uint8_t part[CHUNK];
    for (int64_t j = 0; j < n; j += CHUNK) {
        int64_t m = n - j < CHUNK ? n - j : CHUNK;
        dtype_unpack(q->dtype, q->data, i + j, m, part);
        load_bytes(q->dtype, part, 0, m, out + j);
    }
}

void dequant_load(const struct tensor *q, int64_t i, int64_t n, float *out)
{
    if (!q->packed)
        load_bytes(q->dtype, q->data, i, n, out);
    else if (q->dtype == DT_U4 || q->dtype == DT_I4)
        load_packed(q->data, i, n, q->dtype == DT_I4 ? 8 : 0, out);
    else
        load_unpacked(q, i, n, out);
}

/* ---- scales ------------------------------------------------------------------------------------------------------------------ */

static const float *zeros_f32(struct kcall *call, const struct tensor *t)
{
    int64_t n = tensor_elements(t);
    float *to = kenv_room(call->env, ROOM_B, kcall_bytes(call, n, sizeof *to));
    dequant_load(t, 0, n, to);
    return to;
}

static void take_axis(struct scaled *s, const struct tensor *x, int axis)
{
    s->axis = x->dim[axis];
    s->blocks = (s->axis + s->block - 1) / s->block;
    s->below = axis == x->rank - 1 ? 0 : tensor_dims_product(x->dim, axis + 1, x->rank - 1);
}

struct scaled scaled_of(struct kcall *call, int first)
{
    const struct tensor *x = &call->in[first], *scale = &call->in[first + 1], *zero = kcall_in(call, first + 2);
    int64_t block = attr_int(call->node, "block_size");
    struct scaled s = {.inner = x->rank ? x->dim[x->rank - 1] : 1,
                       .block = block ? block : 1,
                       .wide = block != 0,
                       .one = !block && tensor_elements(scale) == 1,
                       .scale = tensor_f32(call->env, scale, ROOM_A),
                       .zero = zero ? zeros_f32(call, zero) : NULL};
    if (!s.one)
        take_axis(&s, x, kcall_axis(call, attr_int(call->node, "axis"), x->rank));
    return s;
}

/* The scale of number j of a row; *run: the count of numbers from there on; *step: the distance of their scales. */
static int64_t scaled_at(const struct scaled *s, int64_t row, int64_t j, int64_t *run, int64_t *step)
{
    *run = s->inner - j;
    *step = 0;
    if (s->one)
        return 0;
    if (s->below == 0) {
        *step = s->block == 1;
        *run = s->block == 1 ? *run : s->block - j % s->block;
        return (s->wide ? row * s->blocks : 0) + j / s->block;
    }
    int64_t block = row / s->below % s->axis / s->block;
    if (!s->wide)
        return block;
    *step = 1;
    return ((row / s->below / s->axis * s->blocks + block) * s->below + row % s->below) * s->inner + j;
}

/* Copies n elements (step 1), or repeats one (step 0). */
static SIMD void repeat_or_copy(const float *from, int64_t step, int64_t n, float *to)
{
    float first = *from;
    if (step)
        memcpy(to, from, (size_t)n * sizeof *to);
    else
        LOOP for (int64_t i = 0; i < n; i++) to[i] = first;
}

void scaled_read(const struct scaled *s, int64_t row, int64_t from, int64_t n, float *scale, float *zero)
{
    static const float none = 0;
    for (int64_t j = 0, run, step; j < n; j += run) {
        int64_t at = scaled_at(s, row, from + j, &run, &step);
        run = run < n - j ? run : n - j;
        repeat_or_copy(s->scale + at, step, run, scale + j);
        repeat_or_copy(s->zero ? s->zero + at : &none, s->zero ? step : 0, run, zero + j);
    }
}

SIMD void scaled_apply(float *x, const float *scale, const float *zero, int64_t n)
{
    LOOP for (int64_t i = 0; i < n; i++) x[i] = (x[i] - zero[i]) * scale[i];
}

void scaled_decode(const struct scaled *s, const struct tensor *q, int64_t row, int64_t from, int64_t n, float *out)
{
    float scale[CHUNK], zero[CHUNK];
    dequant_load(q, row * s->inner + from, n, out);
    scaled_read(s, row, from, n, scale, zero);
    scaled_apply(out, scale, zero, n);
}
