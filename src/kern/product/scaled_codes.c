/* scaled_codes: QuantMatMul with a constant matrix of integers of up to 8 bits, packed into tiles (codes/codes.c), if all elements of a
 * column, or of a block of it, share a scale; and such a matrix without scales (integer_matmul.c). Signed numbers become unsigned ones with
 * a greater zero point. */
#include "ir/operands.h"
#include "kern/codes/codes.h"
#include "kern/core/core.h"
#include "kern/product/product.h"

#include <string.h>

struct scaled_weight scaled_weight(const struct tensor *x, bool transposed, int64_t block, const struct tensor *scale,
                                   const struct tensor *zero)
{
    struct scaled_weight w = {.x = x, .scale = scale, .zero = zero, .transposed = transposed};
    w.n = x->dim[!transposed];
    w.k = x->dim[transposed];
    w.one = !block && (!scale || tensor_elements(scale) == 1) && (!zero || tensor_elements(zero) == 1);
    w.block = block ? block : w.k > 0 ? (w.k + CODES_STEP - 1) / CODES_STEP * CODES_STEP : CODES_STEP;
    w.blocks = block ? (w.k + block - 1) / block : 1;
    w.bits = dtype_bits(x->dtype);
    w.bias = x->dtype == DT_I8 || x->dtype == DT_I4 || x->dtype == DT_I2 ? 1 << (w.bits - 1) : 0;
    return w;
}

static struct scaled_weight weight_of(const struct kcall *call)
{
    return scaled_weight(&call->in[IN_QuantMatMul_x], attr_int(call->node, "transposed") != 0, attr_int(call->node, "block_size"),
                         &call->in[IN_QuantMatMul_x_scale], kcall_in(call, IN_QuantMatMul_x_zero_point));
}

static bool has_codes(enum dtype t)
{
    return dtype_is_byte(t) || t == DT_I4 || t == DT_U4 || t == DT_I2 || t == DT_U2;
}

/* Whether each scale is for a column, or for a block of one. */
static bool fits_codes(const struct kcall *call, const struct scaled_weight *w)
{
    int64_t axis = attr_int(call->node, "axis"), block = attr_int(call->node, "block_size");
    bool along_k = (axis < 0 ? axis + 2 : axis) == w->transposed;
    bool shared = w->one || (block ? along_k && block % 16 == 0 : !along_k);
    return nbits_codes_allowed(call) && shared && w->n * w->k > 0 && has_codes(w->x->dtype);
}

/* ---- columns ------------------------------------------------------------------------------------------------------------------------- */

/* Element i of a tensor of codes, minus its bias. */
static uint8_t code_at(const struct tensor *t, int bits, int64_t i)
{
    const uint8_t *q = t->data;
    int packed = q[t->packed ? i * bits / 8 : i];
    return (uint8_t)(t->packed ? packed >> i * bits % 8 & ((1 << bits) - 1) : packed);
}

/* Two's complement and biased numbers differ in the highest bit. */
static uint8_t biased(const struct scaled_weight *w, uint8_t code)
{
    return (uint8_t)((code ^ w->bias) & ((1 << w->bits) - 1));
}

static void column_codes(const void *from, int64_t j, uint8_t *codes)
{
    const struct scaled_weight *w = from;
    int64_t first = w->transposed ? j * w->k : j, step = w->transposed ? 1 : w->n;
    const uint8_t *bytes = w->x->data;
    for (int64_t i = 0; i < w->k && w->bits == 8; i++)
        codes[i] = bytes[first + i * step] ^ (uint8_t)w->bias;
    for (int64_t i = 0; i < w->k && w->bits < 8; i++)
        codes[i] = biased(w, code_at(w->x, w->bits, first + i * step));
}

/* The index of the scale of block b of column j. */
static int64_t scale_place(const struct scaled_weight *w, int64_t j, int64_t b)
{
    return w->one ? 0 : w->transposed ? j * w->blocks + b : b * w->n + j;
}

/* They may be unaligned. */
static void column_scales(const void *from, int64_t j, float *scales)
{
    const struct scaled_weight *w = from;
    size_t size = dtype_size(w->scale->dtype);
    uint32_t bits;
    for (int64_t b = 0; b < w->blocks; b++) {
        memcpy(&bits, element_at_const(w->scale->data, size, scale_place(w, j, b)), size);
        convert_to_f32(w->scale->dtype, &bits, 1, scales + b);
    }
}

static void column_zeros(const void *from, int64_t j, uint8_t *zeros)
{
    const struct scaled_weight *w = from;
    for (int64_t b = 0; b < w->blocks; b++)
        zeros[b] = biased(w, code_at(w->zero, w->bits, scale_place(w, j, b)));
}

/* The common zero point, biased; -1: they differ. */
static int common_zero(const struct scaled_weight *w)
{
    if (!w->zero)
        return w->bias;
    int first = biased(w, code_at(w->zero, w->bits, 0));
    for (int64_t i = 1; i < tensor_elements(w->zero); i++)
        if (biased(w, code_at(w->zero, w->bits, i)) != first)
            return -1;
    return first;
}

struct codes_source scaled_source(const struct scaled_weight *w)
{
    int zero = common_zero(w);
    return (struct codes_source){.n = w->n,
                                 .k = w->k,
                                 .block = w->block,
                                 .bits = w->bits,
                                 .zero = zero,
                                 .zeros = zero < 0,
                                 .integers = !w->scale,
                                 .from = w,
                                 .read_codes = column_codes,
                                 .read_scales = column_scales,
                                 .read_zeros = column_zeros};
}

static void make_codes(struct kcall *call, const struct scaled_weight *w)
{
    struct codes_source from = scaled_source(w);
    *call->cache = (void *)(uintptr_t)codes_pack(call, &from);
}

const struct codes *scaled_codes(struct kcall *call)
{
    struct scaled_weight w = weight_of(call);
    if (!fits_codes(call, &w))
        return NULL;
    if (!*call->cache)
        make_codes(call, &w);
    return *call->cache;
}

/* ---- at load ------------------------------------------------------------------------------------------------------------------------- */

void scaled_key(const struct scaled_weight *w, struct packed_key *key)
{
    key->dtype = w->x->dtype;
    key->transposed = w->transposed;
    key->bits = w->bits;
    key->n = w->n;
    key->k = w->k;
}

bool scaled_packs(const struct kcall *call, struct packed_key *key)
{
    struct scaled_weight w = weight_of(call);
    const struct node *n = call->node;
    if (!fits_codes(call, &w))
        return false;
    key->weight = n->in[IN_QuantMatMul_x]->constant;
    key->scales = n->in[IN_QuantMatMul_x_scale]->constant;
    key->zeros = w.zero ? n->in[IN_QuantMatMul_x_zero_point]->constant : NULL;
    scaled_key(&w, key);
    return true;
}

bool scaled_pack(struct kcall *call, const struct packed_key *key)
{
    struct scaled_weight w = weight_of(call);
    (void)key;
    make_codes(call, &w);
    return true;
}
