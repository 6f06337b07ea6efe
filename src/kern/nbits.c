/* nbits: products with weights of 2, 4 or 8 bits in blocks that have a scale and a zero point: w = (q - zero) * scale in float32.
 *
 * A byte holds neighbours of a row, and a block of bytes unpacks best by the first number of every byte, then the second ones. Sums do
 * not depend on the order, so it is the rows of A, few against the weight, that are brought into this order, padded to whole blocks with
 * zeros. Scales and zero points are read a stretch of a row at a time. */
#include "kern/local.h"

#include <string.h>

enum { A, B, SCALES, ZEROS, GROUPS, BIAS };
enum { LANES = 16, PANEL = 1 << 17, MOST_WIDTH = 64 };      /* a panel: numbers that stay in the second-level cache */

struct nbits {
    struct panels panels;              /* first: columns of the product are rows of B */
    int64_t bits, block, bytes, blocks, zero_bytes;            /* bytes: of a block; blocks, zero_bytes: of a row */
    const uint8_t *q;
    const struct tensor *scales, *zeros;
    const int32_t *group;              /* scale of each number of a row, in the order above; NULL: a block's */
};

/* Blocks lo..hi, at most CHUNK, of row n: what their numbers are decoded by. */
struct stretch { float scale[CHUNK], zero[CHUNK]; };

static float packed_zero(const struct nbits *w, int64_t n, int64_t b)
{
    uint8_t byte = ((const uint8_t *)w->zeros->data)[n * w->zero_bytes + b * w->bits / 8];
    return (float)(byte >> b * w->bits % 8 & ((1 << w->bits) - 1));
}

static void read_stretch(const struct nbits *w, int64_t n, int64_t lo, int64_t hi, struct stretch *s)
{
    load_f32(w->scales->dtype, at_const(w->scales->data, dtype_size(w->scales->dtype), n * w->blocks + lo), hi - lo, s->scale);
    if (w->zeros && w->zeros->dtype != DT_U8) {
        load_f32(w->zeros->dtype, at_const(w->zeros->data, dtype_size(w->zeros->dtype), n * w->blocks + lo), hi - lo, s->zero);
        return;
    }
    for (int64_t b = lo; b < hi; b++)
        s->zero[b - lo] = w->zeros ? packed_zero(w, n, b) : (float)(1 << (w->bits - 1));
}

/* ---- blocks ----------------------------------------------------------------------------------------------------------------------- */

static SIMD void unpack_blocks(int bits, const uint8_t *q, int64_t blocks, int64_t bytes, const struct stretch *s, float *out)
{
    int mask = (1 << bits) - 1;
    for (int64_t b = 0; b < blocks; b++, q += bytes)
        for (int shift = 0; shift < 8; shift += bits, out += bytes) {
            float scale = s->scale[b], zero = s->zero[b];
            LOOP for (int64_t i = 0; i < bytes; i++)
                out[i] = ((float)(q[i] >> shift & mask) - zero) * scale;
        }
}

typedef float lanes __attribute__((vector_size(4 * LANES)));
typedef int32_t words __attribute__((vector_size(4 * LANES)));
typedef uint8_t octets __attribute__((vector_size(LANES)));

/* The product of blocks with numbers of A, for blocks of LANES bytes or a multiple. */
#define DOT_BLOCKS(BITS) \
    static SIMD float dot_blocks_##BITS(const uint8_t *q, int64_t blocks, int64_t bytes, const struct stretch *s, const float *a) \
    { \
        lanes sum = { 0 }, x; \
        octets o; \
        for (int64_t b = 0; b < blocks; b++, q += bytes, a += bytes * (8 / BITS)) { \
            lanes part = { 0 }; \
            for (int64_t i = 0; i < bytes; i += LANES) { \
                memcpy(&o, q + i, sizeof o); \
                words w = __builtin_convertvector(o, words); \
                for (int j = 0; j < 8 / BITS; j++) { \
                    memcpy(&x, a + j * bytes + i, sizeof x); \
                    part += x * (__builtin_convertvector(w >> j * BITS & ((1 << BITS) - 1), lanes) - s->zero[b]); \
                } \
            } \
            sum += part * s->scale[b]; \
        } \
        float total = 0; \
        for (int l = 0; l < LANES; l++) \
            total += sum[l]; \
        return total; \
    }
DOT_BLOCKS(2)
DOT_BLOCKS(4)
DOT_BLOCKS(8)

/* Blocks too small for that have fewer than 8 * LANES numbers. */
static float dot_small_blocks(int bits, const uint8_t *q, int64_t blocks, int64_t bytes, const struct stretch *s, const float *a)
{
    float w[8 * LANES], sum = 0;
    for (int64_t b = 0; b < blocks; b++) {
        struct stretch one = { { s->scale[b] }, { s->zero[b] } };
        unpack_blocks(bits, q + b * bytes, 1, bytes, &one, w);
        for (int64_t i = 0; i < bytes * (8 / bits); i++)
            sum += *a++ * w[i];
    }
    return sum;
}

static float dot_blocks(const struct nbits *w, const uint8_t *q, int64_t blocks, const struct stretch *s, const float *a)
{
    if (w->bytes % LANES)
        return dot_small_blocks((int)w->bits, q, blocks, w->bytes, s, a);
    return (w->bits == 2 ? dot_blocks_2 : w->bits == 4 ? dot_blocks_4 : dot_blocks_8)(q, blocks, w->bytes, s, a);
}

/* ---- columns of the product ------------------------------------------------------------------------------------------------------------ */

static const struct nbits *weight_of(const struct panels *panels) { return (const struct nbits *)(const void *)panels; }

static int64_t up_to(int64_t at, int64_t step, int64_t end) { return end - at < step ? end : at + step; }

/* Number i of row n, in the order of unpacked blocks, by the scale that g_idx names. */
static float grouped(const struct nbits *w, int64_t n, int64_t i)
{
    struct stretch s;
    int64_t b = i / w->block, in_block = i % w->block, shift = in_block / w->bytes * w->bits;
    uint8_t byte = w->q[(n * w->blocks + b) * w->bytes + in_block % w->bytes];
    read_stretch(w, n, w->group[i], w->group[i] + 1, &s);
    return ((float)(byte >> shift & ((1 << w->bits) - 1)) - s.zero[0]) * s.scale[0];
}

static void unpack_row(const struct nbits *w, int64_t n, float *out)
{
    struct stretch s;
    for (int64_t i = 0; w->group && i < w->panels.k; i++)
        out[i] = grouped(w, n, i);
    for (int64_t lo = 0, hi; !w->group && lo < w->blocks; lo = hi) {
        hi = up_to(lo, CHUNK, w->blocks);
        read_stretch(w, n, lo, hi, &s);
        unpack_blocks((int)w->bits, w->q + (n * w->blocks + lo) * w->bytes, hi - lo, w->bytes, &s, out + lo * w->block);
    }
}

static float dot_row(const struct nbits *w, int64_t n, const float *a)
{
    struct stretch s;
    float sum = 0;
    for (int64_t i = 0; w->group && i < w->panels.k; i++)
        sum += a[i] * grouped(w, n, i);
    for (int64_t lo = 0, hi; !w->group && lo < w->blocks; lo = hi) {
        hi = up_to(lo, CHUNK, w->blocks);
        read_stretch(w, n, lo, hi, &s);
        sum += dot_blocks(w, w->q + (n * w->blocks + lo) * w->bytes, hi - lo, &s, a + lo * w->block);
    }
    return sum;
}

static void nbits_unpack(const struct panels *panels, int64_t from, int64_t count, float *panel)
{
    for (int64_t j = 0; j < count; j++)
        unpack_row(weight_of(panels), from + j, panel + j * panels->k);
}

static void nbits_row(const struct panels *panels, const float *a, int64_t from, int64_t count, float *c)
{
    for (int64_t j = 0; j < count; j++)
        c[j] = dot_row(weight_of(panels), from + j, a);
}

/* ---- the order of A ----------------------------------------------------------------------------------------------------------------------- */

/* Where number i of a block stands once it is unpacked. */
static int64_t place_in_block(const struct nbits *w, int64_t i)
{
    int64_t per = 8 / w->bits;
    return i % per * w->bytes + i / per;
}

struct order { const struct nbits *w; const float *from; float *to; int64_t k; };

/* Rows lo..hi. */
static void order_range(void *data, int thread, int64_t lo, int64_t hi)
{
    const struct order *o = data;
    int64_t padded = o->w->panels.k, block = o->w->block;
    (void)thread;
    memset(o->to + lo * padded, 0, (size_t)((hi - lo) * padded) * sizeof *o->to);
    for (int64_t row = lo; row < hi; row++)
        for (int64_t i = 0; i < o->k; i++)
            o->to[row * padded + i / block * block + place_in_block(o->w, i % block)] = o->from[row * o->k + i];
}

static const float *ordered(struct kcall *call, const struct nbits *w, int64_t m, int64_t k)
{
    struct order o = { w, tensor_f32(call->env, &call->in[A], ROOM_A), NULL, k };
    if (w->bits == 8 && w->panels.k == k)
        return o.from;
    o.to = kenv_room(call->env, ROOM_B, call_bytes(call, m * w->panels.k, sizeof *o.to));
    parallel_for(call->env, m, 4 * k, order_range, &o);
    return o.to;
}

/* Numbers beyond K, which meet zeros, take the first scale. */
static const int32_t *ordered_groups(struct kcall *call, const struct nbits *w, int64_t k)
{
    const struct tensor *t = call_in(call, GROUPS);
    if (!t)
        return NULL;
    int32_t *to = kenv_scratch(call->env, call_bytes(call, w->panels.k, sizeof *to));
    memset(to, 0, (size_t)w->panels.k * sizeof *to);
    for (int64_t i = 0; i < k; i++) {
        int32_t g = ((const int32_t *)t->data)[i];
        if (g < 0 || g >= w->blocks)
            fail("%s: g_idx has %d at %lld, expected 0 to %lld", call_where(call), g, (long long)i, (long long)w->blocks - 1);
        to[i / w->block * w->block + place_in_block(w, i % w->block)] = g;
    }
    return to;
}

/* ---- MatMulNBits --------------------------------------------------------------------------------------------------------------------------- */

static struct nbits nbits_of(struct kcall *call)
{
    const struct tensor *b = &call->in[B];
    struct nbits w = { .bits = attr_int(call->node, "bits"), .block = attr_int(call->node, "block_size"), .bytes = b->dim[2], .blocks = b->dim[1],
                       .q = b->data, .scales = &call->in[SCALES], .zeros = call_in(call, ZEROS) };
    int64_t k = w.blocks * w.block, width = k ? PANEL / k : MOST_WIDTH;
    w.zero_bytes = (w.blocks * w.bits + 7) / 8;
    w.panels = (struct panels){ .n = b->dim[0], .k = k, .width = width < 1 ? 1 : width > MOST_WIDTH ? MOST_WIDTH : width, .by_column = true,
                                .unpack = nbits_unpack, .row = nbits_row };
    return w;
}

static void add_bias(struct kcall *call, int64_t m, int64_t n, float *y)
{
    const struct tensor *t = call_in(call, BIAS);
    const float *bias = t ? tensor_f32(call->env, t, ROOM_A) : NULL;
    for (int64_t i = 0; bias && i < m * n; i++)
        y[i] += bias[i % n];
}

void kern_MatMulNBits(struct kcall *call)
{
    const struct tensor *a = &call->in[A];
    struct tensor *y = &call->out[0];
    struct nbits w = nbits_of(call);
    int64_t k = a->dim[a->rank - 1], n = w.panels.n, m = dims_product(a->dim, 0, a->rank - 1);
    if (attr_int(call->node, "weight_prepacked"))
        fail("%s: its weight is packed for one machine, expected weight_prepacked = 0", call_where(call));
    if (m * n == 0)
        return;
    float *out = call_result_f32(call, y);
    if (k == 0) {
        memset(out, 0, call_bytes(call, m * n, sizeof *out));
    } else {
        w.group = ordered_groups(call, &w, k);
        panel_product(call, &w.panels, m, ordered(call, &w, m, k), out);
    }
    add_bias(call, m, n, out);
    call_result_store(out, y);
}
