/* matmul_nbits: products with weights of 2, 4 or 8 bits in blocks with a scale and a zero point: w = (q - zero) * scale in float32.
 *
 * A row of B is read as words of 32 bits, LANES at a time: the first numbers of all words, then the second ones, and so on, each with the
 * scale and zero point of its word. The rows of A, few compared with the weight, are permuted into that order and padded with zeros to full
 * groups of LANES words. In deterministic mode the order of additions matters, so the numbers of B are restored to theirs. */
#if defined(__aarch64__) && defined(__clang__)
#pragma clang fp contract(fast)
#elif defined(__aarch64__)
#pragma GCC optimize("fp-contract=fast") /* for sums whose bits may vary: the compiler's vectors differ between processors */
#endif
#include "ir/operands.h"
#include "kern/chunk/chunk.h"
#include "kern/codes/codes.h"
#include "kern/core/core.h"
#include "kern/product/product.h"

#include <string.h>

enum { LANES = X86 ? 8 : 4, PANEL = 1 << 17, MOST_WIDTH = 64 }; /* LANES: of AVX2, NEON; a panel: elements that stay in the L2 cache */

struct nbits_panels {
    struct panels panels;                       /* first member; columns of the product are rows of B */
    int64_t bits, k, blocks, words, zero_bytes; /* k: without padding; per row: blocks, words, bytes of zero points */
    int log;                                    /* a block has 2^log words */
    const uint8_t *q;
    const struct tensor *scales, *zeros;
    const int32_t *group; /* g_idx: the scale of each element of a row; NULL: its block's */
};

/* How to decode some words of a row. Whole lanes are read at the end. */
struct coding {
    float scale[CHUNK + LANES], zero[CHUNK + LANES];
};

/* ---- groups of LANES words ---------------------------------------------------------------------------------------------------------- */
typedef float lanes __attribute__((vector_size(4 * LANES)));
typedef uint32_t words __attribute__((vector_size(4 * LANES)));
typedef int32_t numbers __attribute__((vector_size(4 * LANES)));

static inline int64_t at_most(int64_t n, int64_t most)
{
    return n < most ? n : most;
}

#define NUMBER(w, j, BITS) __builtin_convertvector((numbers)((w) >> (j) * (BITS) & ((1u << (BITS)) - 1)), lanes)

/* With a constant size, it is one instruction. */
#define READ_WORDS(w, from, n) ((n) < LANES ? memcpy(&(w), from, 4 * (size_t)(n)) : memcpy(&(w), from, sizeof(w)))

/* Shifts by constants. */

#define GROUPS_OF(BITS)                                                                               \
    static SIMD void unpack_##BITS(const uint8_t *q, int64_t n, const struct coding *s, float *out)   \
    {                                                                                                 \
        for (int64_t i = 0; i < n; i += LANES) {                                                      \
            words w = {0};                                                                            \
            lanes scale, zero, x;                                                                     \
            READ_WORDS(w, q + 4 * i, n - i);                                                          \
            memcpy(&scale, s->scale + i, sizeof scale);                                               \
            memcpy(&zero, s->zero + i, sizeof zero);                                                  \
            UNROLL for (int j = 0; j < 32 / BITS; j++, out += LANES)                                  \
            {                                                                                         \
                x = (NUMBER(w, j, BITS) - zero) * scale;                                              \
                memcpy(out, &x, sizeof x);                                                            \
            }                                                                                         \
        }                                                                                             \
    }                                                                                                 \
    static SIMD float dot_##BITS(const uint8_t *q, int64_t n, const struct coding *s, const float *a) \
    {                                                                                                 \
        lanes sum = {0};                                                                              \
        float total = 0;                                                                              \
        for (int64_t i = 0; i < n; i += LANES) {                                                      \
            words w = {0};                                                                            \
            lanes scale, zero, x, part = {0};                                                         \
            READ_WORDS(w, q + 4 * i, n - i);                                                          \
            memcpy(&scale, s->scale + i, sizeof scale);                                               \
            memcpy(&zero, s->zero + i, sizeof zero);                                                  \
            UNROLL for (int j = 0; j < 32 / BITS; j++, a += LANES)                                    \
            {                                                                                         \
                memcpy(&x, a, sizeof x);                                                              \
                part += x * (NUMBER(w, j, BITS) - zero);                                              \
            }                                                                                         \
            sum += part * scale;                                                                      \
        }                                                                                             \
        for (int l = 0; l < LANES; l++)                                                               \
            total += sum[l];                                                                          \
        return total;                                                                                 \
    }
GROUPS_OF(2)
GROUPS_OF(4)
GROUPS_OF(8)

/* ---- scales and zero points ---------------------------------------------------------------------------------------------------------- */

static SIMD void fill_lanes(float x, int64_t n, float *to)
{
    LOOP for (int64_t i = 0; i < n; i++) to[i] = x;
}

static float default_zero(const struct nbits_panels *w)
{
    return (float)(1 << (w->bits - 1));
}

/* Zero points lo..hi of a row that packs them. */
static void unpack_zeros(int bits, const uint8_t *row, int64_t lo, int64_t hi, float *to)
{
    int mask = (1 << bits) - 1;
    for (int64_t b = lo; b < hi; b++)
        *to++ = (float)(row[b * bits / 8] >> (int)(b * bits % 8) & mask);
}

/* Zero points of blocks lo..hi of row n. */
static void read_zeros(const struct nbits_panels *w, int64_t n, int64_t lo, int64_t hi, float *to)
{
    const struct tensor *t = w->zeros;
    if (t && t->dtype == DT_U8)
        unpack_zeros((int)w->bits, (const uint8_t *)t->data + n * w->zero_bytes, lo, hi, to);
    else if (t)
        convert_to_f32(t->dtype, element_at_const(t->data, dtype_size(t->dtype), n * w->blocks + lo), hi - lo, to);
    else
        fill_lanes(default_zero(w), hi - lo, to);
}

static void nbits_scales(const struct nbits_panels *w, int64_t n, int64_t lo, int64_t hi, float *to)
{
    convert_to_f32(w->scales->dtype, element_at_const(w->scales->data, dtype_size(w->scales->dtype), n * w->blocks + lo), hi - lo, to);
}

/* From one number per block of 2^log words to one per word, n words. Every store fills all lanes: a later one overwrites the excess. */
static SIMD void spread_blocks(int log, const float *from, int64_t n, float *to)
{
    int64_t step = 1 << log < LANES ? 1 << log : LANES;
    for (int64_t i = 0; i < n; i += step)
        LOOP for (int l = 0; l < LANES; l++) to[i + l] = from[i >> log];
}

/* For words lo..hi of row n; lo is a multiple of CHUNK, hi at most CHUNK above. */
static void read_stretch(const struct nbits_panels *w, int64_t n, int64_t lo, int64_t hi, struct coding *s)
{
    float each[CHUNK];
    int64_t first = lo >> w->log, end = ((hi - 1) >> w->log) + 1;
    nbits_scales(w, n, first, end, each);
    spread_blocks(w->log, each, hi - lo, s->scale);
    if (!w->zeros) {
        fill_lanes(default_zero(w), hi - lo + LANES, s->zero);
        return;
    }
    read_zeros(w, n, first, end, each);
    spread_blocks(w->log, each, hi - lo, s->zero);
}

/* ---- columns of the product -------------------------------------------------------------------------------------------------- */

static const struct nbits_panels *nbits_of(const struct panels *panels)
{
    return (const struct nbits_panels *)(const void *)panels;
}

/* The position of element i of a row in the order above. */
static int64_t packed_place(int64_t bits, int64_t i)
{
    int64_t per = 32 / bits, word = i / per;
    return (word / LANES * per + i % per) * LANES + word % LANES;
}

/* Element i of row n, with the scale of g_idx. */
static float grouped(const struct nbits_panels *w, int64_t n, int64_t i)
{
    float scale, zero;
    uint8_t byte = w->q[n * w->words * 4 + i * w->bits / 8];
    nbits_scales(w, n, w->group[i], w->group[i] + 1, &scale);
    read_zeros(w, n, w->group[i], w->group[i] + 1, &zero);
    return ((float)(byte >> i * w->bits % 8 & ((1 << w->bits) - 1)) - zero) * scale;
}

static void unpack_grouped(const struct nbits_panels *w, int64_t n, float *out)
{
    memset(out, 0, (size_t)w->panels.k * sizeof *out);
    for (int64_t i = 0; i < w->k; i++)
        out[packed_place(w->bits, i)] = grouped(w, n, i);
}

static float dot_grouped(const struct nbits_panels *w, int64_t n, const float *a)
{
    float sum = 0;
    for (int64_t i = 0; i < w->k; i++)
        sum += a[packed_place(w->bits, i)] * grouped(w, n, i);
    return sum;
}

static void unpack_row(const struct nbits_panels *w, int64_t n, float *out)
{
    struct coding s;
    for (int64_t lo = 0, hi; lo < w->words; lo = hi) {
        hi = at_most(lo + CHUNK, w->words);
        read_stretch(w, n, lo, hi, &s);
        (w->bits == 2       ? unpack_2
             : w->bits == 4 ? unpack_4
                            : unpack_8)(w->q + (n * w->words + lo) * 4, hi - lo, &s, out + lo * 32 / w->bits);
    }
}

static float dot_row(const struct nbits_panels *w, int64_t n, const float *a)
{
    struct coding s;
    float sum = 0;
    for (int64_t lo = 0, hi; lo < w->words; lo = hi) {
        hi = at_most(lo + CHUNK, w->words);
        read_stretch(w, n, lo, hi, &s);
        sum += (w->bits == 2 ? dot_2 : w->bits == 4 ? dot_4 : dot_8)(w->q + (n * w->words + lo) * 4, hi - lo, &s, a + lo * 32 / w->bits);
    }
    return sum;
}

static void nbits_unpack(const struct panels *panels, int64_t from, int64_t count, float *panel)
{
    const struct nbits_panels *w = nbits_of(panels);
    for (int64_t j = 0; j < count; j++)
        (w->group ? unpack_grouped : unpack_row)(w, from + j, panel + j * panels->k);
}

static void nbits_row(const struct panels *panels, const float *a, int64_t from, int64_t count, float *c)
{
    const struct nbits_panels *w = nbits_of(panels);
    for (int64_t j = 0; j < count; j++)
        c[j] = (w->group ? dot_grouped : dot_row)(w, from + j, a);
}

/* ---- chunk by chunk: columns in the order of K, without padding ---------------------------------------------------------------- */

static void plain_row(const struct nbits_panels *w, int64_t n, float *out)
{
    float part[(CHUNK + LANES) * 16];
    struct coding s;
    int64_t per = 32 / w->bits;
    for (int64_t lo = 0, hi; lo < w->words; lo = hi) {
        hi = at_most(lo + CHUNK, w->words);
        read_stretch(w, n, lo, hi, &s);
        (w->bits == 2 ? unpack_2 : w->bits == 4 ? unpack_4 : unpack_8)(w->q + (n * w->words + lo) * 4, hi - lo, &s, part);
        for (int64_t word = lo; word < hi; word++) {
            const float *from = part + packed_place(w->bits, (word - lo) * per);
            for (int64_t j = 0; j < at_most(per, w->k - word * per); j++)
                out[word * per + j] = from[j * LANES];
        }
    }
}

static void plain_unpack(const struct panels *panels, int64_t from, int64_t count, float *panel)
{
    const struct nbits_panels *w = nbits_of(panels);
    for (int64_t j = 0; j < count; j++, panel += w->k) {
        if (!w->group)
            plain_row(w, from + j, panel);
        for (int64_t i = 0; w->group && i < w->k; i++)
            panel[i] = grouped(w, from + j, i);
    }
}

/* A rank has whole blocks, as many as fill bytes of zero points. */
static void product_by_chunks(struct kcall *call, struct nbits_panels *w, int64_t m, const float *a, float *out)
{
    int64_t block = 32 / w->bits << w->log, per = w->zeros && w->zeros->dtype == DT_U8 ? 8 / w->bits : 1,
            unit = call->share ? block * per : 1;
    struct chunks chunks = chunks_of(call, w->k, unit);
    chunks.width = at_most(chunk_width(call->share ? call->share->size * unit : w->k), block);
    w->panels.k = w->k;
    w->panels.unpack = plain_unpack;
    packed_gemm_chunks(call, &chunks, &w->panels, m, a, out);
}

/* ---- the product with rows, not columns -------------------------------------------------------------------------------------- */

/* c[m, k] = a[m, n] w, some rows of w at a time. */
static void turned_product(struct kcall *call, const struct nbits_panels *w, int64_t m, const float *a, float *c)
{
    int64_t n = w->panels.n, k = w->k;
    float *panel = kenv_room(call->env, ROOM_B, kcall_bytes(call, w->panels.width * k, sizeof *panel));
    for (int64_t from = 0; from < n; from += w->panels.width) {
        int64_t count = at_most(w->panels.width, n - from);
        plain_unpack(&w->panels, from, count, panel);
        dnnl_product(call->env, false, false, m, k, count, 1, a + from, n, panel, k, from > 0, c, k);
    }
}

/* ---- a short weight ---- */

static void short_product(struct kcall *call, const struct nbits_panels *w, int64_t m, const float *a, float *c)
{
    float panel[NBITS_SHORT];
    plain_unpack(&w->panels, 0, w->panels.n, panel);
    dnnl_product(call->env, false, true, m, w->panels.n, w->k, 1, a, w->k, panel, w->k, 0, c, w->panels.n);
}

/* ---- the order of A ---------------------------------------------------------------------------------------------------------- */

struct order {
    const struct nbits_panels *w;
    const float *from;
    float *to;
};

/* Rows lo..hi. */
static void order_range(void *data, int64_t lo, int64_t hi)
{
    const struct order *o = data;
    int64_t padded = o->w->panels.k, k = o->w->k;
    memset(o->to + lo * padded, 0, (size_t)((hi - lo) * padded) * sizeof *o->to);
    for (int64_t row = lo; row < hi; row++)
        for (int64_t i = 0; i < k; i++)
            o->to[row * padded + packed_place(o->w->bits, i)] = o->from[row * k + i];
}

static const float *ordered(struct kcall *call, const struct nbits_panels *w, int64_t m, const float *a)
{
    struct order o = {w, a, kenv_room(call->env, ROOM_B, kcall_bytes(call, m * w->panels.k, sizeof *o.to))};
    kenv_parallel_for(call->env, m, 4 * w->k, order_range, &o);
    return o.to;
}

static void check_group_indices(const struct kcall *call, const struct nbits_panels *w)
{
    for (int64_t i = 0; w->group && i < w->k; i++)
        if (w->group[i] < 0 || w->group[i] >= w->blocks)
            fail("%s: g_idx has %d at %lld, expected 0 to %lld", kcall_where(call), w->group[i], (long long)i, (long long)w->blocks - 1);
}

/* ---- the product ------------------------------------------------------------------------------------------------------------- */

static struct nbits_panels nbits_new(const struct nbits_weight *from, int64_t k)
{
    const struct tensor *b = from->blocks;
    struct nbits_panels w = {.bits = from->bits,
                             .k = k,
                             .blocks = b->dim[1],
                             .words = b->dim[1] * b->dim[2] / 4,
                             .q = b->data,
                             .scales = from->scales,
                             .zeros = from->zeros,
                             .group = from->groups ? from->groups->data : NULL};
    int64_t padded = (w.words + LANES - 1) / LANES * LANES * 32 / w.bits, width = padded ? PANEL / padded : MOST_WIDTH;
    w.zero_bytes = (w.blocks * w.bits + 7) / 8;
    while (4 << w.log < b->dim[2])
        w.log++;
    w.panels = (struct panels){.n = b->dim[0],
                               .k = padded,
                               .width = width < 1 ? 1 : at_most(width, MOST_WIDTH),
                               .by_column = true,
                               .unpack = nbits_unpack,
                               .row = nbits_row};
    return w;
}

void matmul_nbits_product(struct kcall *call, const struct nbits_weight *from, int64_t m, int64_t k, const float *a, float *c)
{
    struct nbits_panels w = nbits_new(from, k);
    if (kenv_deterministic(call->env)) {
        check_group_indices(call, &w);
        product_by_chunks(call, &w, m, a, c);
        return;
    }
    if (k == 0) {
        memset(c, 0, kcall_bytes(call, m * w.panels.n, sizeof *c));
        return;
    }
    check_group_indices(call, &w);
    if (nbits_is_short(from, k))
        short_product(call, &w, m, a, c);
    else
        packed_gemm(call, &w.panels, m, ordered(call, &w, m, a), c);
}

/* ---- MatMulNBits ------------------------------------------------------------------------------------------------------------- */

static void nbits_add_bias(struct kcall *call, int64_t m, int64_t n, float *y)
{
    const struct tensor *t = kcall_in(call, IN_MatMulNBits_bias);
    const float *bias = t ? tensor_f32(call->env, t, ROOM_A) : NULL;
    for (int64_t i = 0; bias && i < m * n; i++)
        y[i] += bias[i % n];
}

void kern_MatMulNBits(struct kcall *call)
{
    const struct tensor *a = &call->in[IN_MatMulNBits_A];
    struct tensor *y = &call->out[0];
    struct nbits_weight w = nbits_weight_of(call);
    int64_t n = w.blocks->dim[0], k = a->dim[a->rank - 1], m = tensor_dims_product(a->dim, 0, a->rank - 1);
    if (attr_int(call->node, "weight_prepacked"))
        fail("%s: its weight is packed for one machine, expected weight_prepacked = 0", kcall_where(call));
    if (m * n == 0)
        return;
    float *out = kcall_result_f32(call, y);
    const struct codes *tiles = nbits_codes(call, &w, k);
    if (tiles)
        codes_product(call, tiles, m, nbits_codes_digits(call), tensor_f32(call->env, a, ROOM_A), out);
    else
        matmul_nbits_product(call, &w, m, k, tensor_f32(call->env, a, ROOM_A), out);
    nbits_add_bias(call, m, n, out);
    kcall_result_store(out, y);
}

void kern_MatMulNBitsGrad(struct kcall *call)
{
    const struct tensor *dy = &call->in[IN_MatMulNBits_A];
    struct tensor *dx = &call->out[0];
    struct nbits_weight from = nbits_weight_of(call);
    int64_t m = tensor_dims_product(dy->dim, 0, dy->rank - 1), k = dx->dim[dx->rank - 1];
    struct nbits_panels w = nbits_new(&from, k);
    if (m * k == 0)
        return;
    float *out = kcall_result_f32(call, dx);
    check_group_indices(call, &w);
    if (w.panels.n == 0)
        memset(out, 0, (size_t)(m * k) * sizeof *out);
    turned_product(call, &w, m, tensor_f32(call->env, dy, ROOM_A), out);
    kcall_result_store(out, dx);
}
