/* expert_gemm: a product with one of many matrices [n, k] in their stored form: floats, or integers with a scale and a zero point per row
 * or per block of a row. Short parts of a row are decoded to float32. */
#include "kern/core/core.h"
#include "kern/gemm/gemm.h"
#include "kern/product/product.h"

#include <string.h>

enum { TURNED_WIDTH = 512 }; /* columns of a matrix [k, n] at a time: rows of pages, and sums that stay near */

static const struct experts *experts_of(const struct panels *panels)
{
    return (const struct experts *)(const void *)panels;
}

/* ---- stretches of a row -------------------------------------------------------------------------------------------------------------- */

#define DECODE(BITS)                                                                                 \
    static SIMD void decode_##BITS(const uint8_t *q, int64_t n, float scale, float zero, float *out) \
    {                                                                                                \
        enum { PER = 8 / BITS, MASK = (1 << BITS) - 1 };                                             \
        LOOP for (int64_t i = 0; i < n / PER; i++) for (int j = 0; j < PER; j++)                     \
            out[i * PER + j] = ((float)(q[i] >> j * BITS & MASK) - zero) * scale;                    \
        for (int64_t i = n / PER * PER; i < n; i++)                                                  \
            out[i] = ((float)(q[i / PER] >> i % PER * BITS & MASK) - zero) * scale;                  \
    }
DECODE(2)
DECODE(4)
DECODE(8)

static float packed_number(const struct tensor *t, int64_t byte, int64_t i, int64_t bits)
{
    const uint8_t *q = (const uint8_t *)t->data + byte;
    return (float)(q[i * bits / 8] >> i * bits % 8 & ((1 << bits) - 1));
}

/* The zero point of block b of a row: [experts, n, bytes], or packed along n, [experts, bytes]. */
static float expert_zero(const struct experts *w, int64_t row, int64_t b)
{
    const struct tensor *t = w->zeros;
    if (!t)
        return (float)(1 << (w->bits - 1));
    if (!w->block)
        return packed_number(t, w->expert * t->dim[1], row, w->bits);
    return packed_number(t, (w->expert * t->dim[1] + row) * t->dim[2], b, w->bits);
}

static float expert_scale(const struct experts *w, int64_t row, int64_t b)
{
    const struct tensor *t = w->scales;
    int64_t at = w->expert * t->dim[1] + row;
    float scale;
    convert_to_f32(t->dtype, element_at_const(t->data, dtype_size(t->dtype), w->block ? at * t->dim[2] + b : at), 1, &scale);
    return scale;
}

/* Elements from..from + n of a row; from is a multiple of CHUNK, and so does not split a byte. */
static void expert_decode(const struct experts *w, int64_t row, int64_t from, int64_t n, float *out)
{
    const uint8_t *q = (const uint8_t *)w->weight->data + (w->expert * w->weight->dim[1] + row) * w->weight->dim[2];
    int64_t block = w->block ? w->block : w->panels.k;
    for (int64_t lo = from, hi; lo < from + n; lo = hi) {
        hi = (lo / block + 1) * block < from + n ? (lo / block + 1) * block : from + n;
        float scale = expert_scale(w, row, lo / block), zero = expert_zero(w, row, lo / block);
        (w->bits == 2 ? decode_2 : w->bits == 4 ? decode_4 : decode_8)(q + lo * w->bits / 8, hi - lo, scale, zero, out + lo - from);
    }
}

static const void *expert_stored(const struct experts *w, int64_t row, int64_t from)
{
    return element_at_const(w->weight->data, dtype_size(w->weight->dtype), (w->expert * w->panels.n + row) * w->panels.k + from);
}

/* The elements in place, or decoded into scratch. */
static const float *expert_stretch(const struct experts *w, int64_t row, int64_t from, int64_t n, float *room)
{
    if (w->scales)
        expert_decode(w, row, from, n, room);
    else if (w->weight->dtype == DT_F32)
        return expert_stored(w, row, from);
    else
        convert_to_f32(w->weight->dtype, expert_stored(w, row, from), n, room);
    return room;
}

/* ---- columns of the product -------------------------------------------------------------------------------------------------- */

static void expert_unpack(const struct panels *panels, int64_t from, int64_t count, float *panel)
{
    for (int64_t j = 0; j < count; j++)
        for (int64_t lo = 0; lo < panels->k; lo += CHUNK) {
            int64_t n = panels->k - lo < CHUNK ? panels->k - lo : CHUNK;
            float *to = panel + j * panels->k + lo;
            const float *at = expert_stretch(experts_of(panels), from + j, lo, n, to);
            if (at != to)
                memcpy(to, at, (size_t)n * sizeof *to);
        }
}

static void expert_row(const struct panels *panels, const float *a, int64_t from, int64_t count, float *c)
{
    float room[CHUNK];
    for (int64_t j = 0; j < count; j++) {
        c[j] = 0;
        for (int64_t lo = 0; lo < panels->k; lo += CHUNK) {
            int64_t n = panels->k - lo < CHUNK ? panels->k - lo : CHUNK;
            c[j] += gemm_dot(a + lo, expert_stretch(experts_of(panels), from + j, lo, n, room), n);
        }
    }
}

static void expert_add_bias(const struct experts *w, int64_t m, float *c)
{
    int64_t n = w->panels.n;
    float part[CHUNK];
    for (int64_t lo = 0; lo < n; lo += CHUNK) {
        int64_t count = n - lo < CHUNK ? n - lo : CHUNK;
        convert_to_f32(w->bias->dtype, element_at_const(w->bias->data, dtype_size(w->bias->dtype), w->expert * n + lo), count, part);
        for (int64_t i = 0; i < m; i++)
            LOOP for (int64_t j = 0; j < count; j++) c[i * n + lo + j] += part[j];
    }
}

/* The part of a tensor for the current expert. */
static struct tensor of_expert(const struct experts *w, const struct tensor *t)
{
    struct tensor own = {.dtype = t->dtype, .rank = t->rank - 1, .dim = {t->dim[1], t->rank > 2 ? t->dim[2] : 0}};
    own.data = element_at(t->data, 1, w->expert * (int64_t)tensor_bytes(&own));
    return own;
}

/* Whether it has whole blocks, or rows of words that share a scale. */
static bool has_blocks(const struct experts *w)
{
    return w->block ? w->panels.k % w->block == 0 : w->scales && !w->zeros && w->panels.k % (32 / w->bits) == 0;
}

/* Multiplied like MatMulNBits. */
static void block_product(struct kcall *call, const struct experts *w, int64_t m, const float *a, float *c)
{
    struct tensor q = of_expert(w, w->weight), scales = of_expert(w, w->scales),
                  zeros = w->zeros ? of_expert(w, w->zeros) : (struct tensor){.rank = 0};
    int64_t block = w->block ? w->block : w->panels.k;
    q.rank = 3;
    q.dim[1] = w->panels.k / block;
    q.dim[2] = block * w->bits / 8;
    matmul_nbits_product(call, &(struct nbits_weight){&q, &scales, w->zeros ? &zeros : NULL, NULL, w->bits}, m, w->panels.k, a, c);
}

/* ---- a matrix [k, n] ------------------------------------------------------------------------------------------------------ */

/* Numbers from..from + count of row l. */
static const void *turned_stored(const struct experts *w, int64_t l, int64_t from)
{
    return element_at_const(w->weight->data, dtype_size(w->weight->dtype), (w->expert * w->panels.k + l) * w->panels.n + from);
}

static void turned_unpack(const struct panels *panels, int64_t from, int64_t count, float *panel)
{
    const struct experts *w = experts_of(panels);
    for (int64_t l = 0; l < panels->k; l++)
        convert_to_f32(w->weight->dtype, turned_stored(w, l, from), count, panel + l * panels->width);
}

/* sum[n] += a[0] x[n] + .. + a[3] x[3 apart + n] */
static SIMD void add_rows(const float *a, const float *x, int64_t apart, int64_t n, float *sum)
{
    const float *y = x + apart, *z = y + apart, *u = z + apart;
    LOOP for (int64_t j = 0; j < n; j++) sum[j] += a[0] * x[j] + a[1] * y[j] + a[2] * z[j] + a[3] * u[j];
}

static SIMD void add_row(float a, const float *x, int64_t n, float *sum)
{
    LOOP for (int64_t j = 0; j < n; j++) sum[j] += a * x[j];
}

static void turned_row(const struct panels *panels, const float *a, int64_t from, int64_t count, float *c)
{
    const struct experts *w = experts_of(panels);
    float x[TURNED_WIDTH];
    memset(c, 0, (size_t)count * sizeof *c);
    for (int64_t l = 0; l < panels->k; l++) {
        convert_to_f32(w->weight->dtype, turned_stored(w, l, from), count, x);
        add_row(a[l], x, count, c);
    }
}

struct turned {
    struct kenv *env;
    const struct experts *w;
    int64_t m;
    const float *a;
    float *c;
};

/* Columns of floats, for a few rows: the matrix is read once. */
static void turned_few(const struct turned *t, int64_t from, int64_t count)
{
    int64_t k = t->w->panels.k, n = t->w->panels.n, l = 0;
    for (int64_t i = 0; i < t->m; i++)
        memset(t->c + i * n + from, 0, (size_t)count * sizeof *t->c);
    for (; l + 4 <= k; l += 4)
        for (int64_t i = 0; i < t->m; i++)
            add_rows(t->a + i * k + l, turned_stored(t->w, l, from), n, count, t->c + i * n + from);
    for (; l < k; l++)
        for (int64_t i = 0; i < t->m; i++)
            add_row(t->a[i * k + l], turned_stored(t->w, l, from), count, t->c + i * n + from);
}

/* Blocks lo..hi of columns, where they lie. */
static void turned_range(void *data, int64_t lo, int64_t hi)
{
    const struct turned *t = data;
    int64_t k = t->w->panels.k, n = t->w->panels.n;
    for (int64_t b = lo; b < hi; b++) {
        int64_t from = b * TURNED_WIDTH, count = n - from < TURNED_WIDTH ? n - from : TURNED_WIDTH;
        if (t->m <= COLUMN_FEW_ROWS)
            turned_few(t, from, count);
        else
            dnnl_product(t->env, false, false, t->m, count, k, 1.0f, t->a, k, turned_stored(t->w, 0, from), n, 0.0f, t->c + from, n);
    }
}

static void turned_product(struct kcall *call, struct experts *w, int64_t m, const float *a, float *c)
{
    struct turned t = {call->env, w, m, a, c};
    w->panels.unpack = turned_unpack;
    w->panels.row = turned_row;
    w->panels.by_column = false;
    w->panels.width = kenv_deterministic(call->env) ? TILE : m <= PANEL_FEW_ROWS ? TURNED_WIDTH : 2 * TILE;
    if (w->weight->dtype != DT_F32 || kenv_deterministic(call->env))
        packed_gemm(call, &w->panels, m, a, c);
    else
        kenv_parallel_for(call->env, (w->panels.n + TURNED_WIDTH - 1) / TURNED_WIDTH, m * TURNED_WIDTH * w->panels.k / 8 + 1, turned_range,
                          &t);
}

void expert_product(struct kcall *call, const struct experts *w, int64_t m, const float *a, float *c)
{
    enum { PANEL = 1 << 16, MOST_WIDTH = 64, IN_PLACE_WIDTH = 256 };
    struct experts own = *w;
    int64_t width = own.panels.k > PANEL / MOST_WIDTH ? PANEL / own.panels.k : MOST_WIDTH;
    own.panels.width = width < 1 ? 1 : width;
    own.panels.by_column = true;
    own.panels.unpack = expert_unpack;
    own.panels.row = expert_row;
    if (m * own.panels.n == 0)
        return;
    if (!own.scales && !own.transposed && own.weight->dtype == DT_F32) { /* its columns are multiplied in place */
        own.panels.unpack = NULL;
        own.panels.weight = expert_stored(&own, 0, 0);
        own.panels.width = IN_PLACE_WIDTH;
    }
    if (own.panels.k == 0)
        memset(c, 0, kcall_bytes(call, m * own.panels.n, sizeof *c));
    else if (own.transposed)
        turned_product(call, &own, m, a, c);
    else if (has_blocks(&own))
        block_product(call, &own, m, a, c);
    else
        packed_gemm(call, &own.panels, m, a, c);
    if (own.bias)
        expert_add_bias(&own, m, c);
}
