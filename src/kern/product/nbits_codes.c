/* nbits_codes: MatMulNBits with a constant weight, packed into tiles (codes/codes.c). Its accuracy_level is the least accuracy of a
 * product: 4 allows activations of 8 bits, 2 and 3 of 16 bits; with three digits a product is as accurate as in float32. */
#include "ir/operands.h"
#include "kern/codes/codes.h"
#include "kern/core/core.h"
#include "kern/product/product.h"

#include <string.h>

static int64_t row_blocks(const struct nbits_weight *w)
{
    return w->blocks->dim[1];
}

static SIMD void codes_8(const uint8_t *q, int64_t bytes, uint8_t *codes)
{
    LOOP for (int64_t i = 0; i < bytes; i++) codes[i] = q[i];
}

static SIMD void codes_4(const uint8_t *q, int64_t bytes, uint8_t *codes)
{
    LOOP for (int64_t i = 0; i < bytes; i++)
    {
        codes[2 * i] = q[i] & 15;
        codes[2 * i + 1] = q[i] >> 4;
    }
}

static SIMD void codes_2(const uint8_t *q, int64_t bytes, uint8_t *codes)
{
    LOOP for (int64_t i = 0; i < bytes; i++) for (int j = 0; j < 4; j++) codes[4 * i + j] = q[i] >> 2 * j & 3;
}

/* Whole blocks: what is beyond k is multiplied with zero digits. */
static void nbits_column_codes(const void *from, int64_t j, uint8_t *codes)
{
    const struct nbits_weight *w = from;
    int64_t bytes = row_blocks(w) * w->blocks->dim[2];
    (w->bits == 2 ? codes_2 : w->bits == 4 ? codes_4 : codes_8)((const uint8_t *)w->blocks->data + j * bytes, bytes, codes);
}

/* They may be unaligned. */
static void nbits_column_scales(const void *from, int64_t j, float *scales)
{
    const struct nbits_weight *w = from;
    uint32_t part[CHUNK];
    size_t size = dtype_size(w->scales->dtype);
    for (int64_t b = 0; b < row_blocks(w); b += CHUNK) {
        int64_t n = row_blocks(w) - b < CHUNK ? row_blocks(w) - b : CHUNK;
        memcpy(part, element_at_const(w->scales->data, size, j * row_blocks(w) + b), size * (size_t)n);
        convert_to_f32(w->scales->dtype, part, n, scales + b);
    }
}

static void nbits_column_zeros(const void *from, int64_t j, uint8_t *zeros)
{
    const struct nbits_weight *w = from;
    const uint8_t *row = (const uint8_t *)w->zeros->data + j * ((row_blocks(w) * w->bits + 7) / 8);
    for (int64_t b = 0; b < row_blocks(w); b++)
        zeros[b] = (uint8_t)(row[b * w->bits / 8] >> b * w->bits % 8 & ((1 << w->bits) - 1));
}

int nbits_level_digits(int64_t level)
{
    return level == 4 ? 1 : level == 2 || level == 3 ? 2 : 3;
}

int nbits_codes_digits(const struct kcall *call)
{
    return nbits_level_digits(attr_int(call->node, "accuracy_level"));
}

static bool is_constant(const struct kcall *call, int operand)
{
    return operand >= call->nin || !call->node->in[operand] || call->in_constant[operand];
}

bool nbits_codes_allowed(const struct kcall *call)
{
    bool constant = call->cache && call->in_constant && is_constant(call, 1) && is_constant(call, 2) && is_constant(call, 3);
    return constant && !kenv_deterministic(call->env) && (nbits_codes_digits(call) == 1 || codes_fast());
}

/* Blocks in order, with zero points that are codes. A short weight is multiplied in float32: rounding the activations would take longer. */
static bool fits_codes(const struct kcall *call, const struct nbits_weight *w, int64_t k)
{
    return nbits_codes_allowed(call) && !w->groups && (!w->zeros || w->zeros->dtype == DT_U8) && !nbits_is_short(w, k);
}

static void make_codes(struct kcall *call, const struct nbits_weight *w, int64_t k)
{
    struct codes_source from = {.n = w->blocks->dim[0],
                                .k = k,
                                .block = w->blocks->dim[2] * 8 / w->bits,
                                .bits = (int)w->bits,
                                .zero = 1 << (w->bits - 1),
                                .zeros = w->zeros != NULL,
                                .from = w,
                                .read_codes = nbits_column_codes,
                                .read_scales = nbits_column_scales,
                                .read_zeros = nbits_column_zeros};
    *call->cache = (void *)(uintptr_t)codes_pack(call, &from);
}

const struct codes *nbits_codes(struct kcall *call, const struct nbits_weight *w, int64_t k)
{
    if (!fits_codes(call, w, k) || k == 0)
        return NULL;
    if (!*call->cache)
        make_codes(call, w, k);
    return *call->cache;
}

/* ---- at load ------------------------------------------------------------------------------------------------------------------------- */

bool nbits_packs(const struct kcall *call, struct packed_key *key)
{
    const struct node *n = call->node;
    struct nbits_weight w = nbits_weight_of(call);
    if (!fits_codes(call, &w, attr_int(n, "K")) || attr_int(n, "weight_prepacked"))
        return false;
    key->weight = n->in[1]->constant;
    key->scales = n->in[2]->constant;
    key->zeros = w.zeros ? n->in[3]->constant : NULL;
    key->bits = (int)w.bits;
    key->n = w.blocks->dim[0];
    key->k = attr_int(n, "K");
    return key->n * key->k > 0;
}

bool nbits_pack(struct kcall *call, const struct packed_key *key)
{
    struct nbits_weight w = nbits_weight_of(call);
    make_codes(call, &w, key->k);
    return true;
}

bool nbits_is_short(const struct nbits_weight *w, int64_t k)
{
    return w->blocks->dim[0] * k <= NBITS_SHORT;
}

struct nbits_weight nbits_weight_of(const struct kcall *call)
{
    return (struct nbits_weight){&call->in[IN_MatMulNBits_B], &call->in[IN_MatMulNBits_scales], kcall_in(call, IN_MatMulNBits_zero_points),
                                 kcall_in(call, IN_MatMulNBits_g_idx), attr_int(call->node, "bits")};
}
