/* integer_matmul: products of matrices of 8-bit integers minus their zero points, by tiles (codes/codes.c): MatMulInteger, and
 * IntegerMatMul, which scales the sums and adds a bias. A constant matrix B is packed once, any other in every call. */
#include "ir/operands.h"
#include "kern/codes/codes.h"
#include "kern/core/core.h"
#include "kern/product/product.h"

#include <string.h>

static bool is_scaled(const struct kcall *call)
{
    return call->node->op->kernel == kern_IntegerMatMul;
}

static struct scaled_weight weight_of(const struct kcall *call)
{
    return scaled_weight(&call->in[IN_IntegerMatMul_B], is_scaled(call) && attr_int(call->node, "transposed"), 0, NULL,
                         kcall_in(call, IN_IntegerMatMul_b_zero_point));
}

static bool keeps_codes(const struct kcall *call)
{
    bool zero = call->nin > IN_IntegerMatMul_b_zero_point && call->node->in[IN_IntegerMatMul_b_zero_point];
    return call->cache && call->in_constant && call->in_constant[IN_IntegerMatMul_B] &&
        (!zero || call->in_constant[IN_IntegerMatMul_b_zero_point]);
}

static const struct codes *kept_codes(struct kcall *call, const struct scaled_weight *w)
{
    struct codes_source from;
    if (!*call->cache) {
        from = scaled_source(w);
        *call->cache = (void *)(uintptr_t)codes_pack(call, &from);
    }
    return *call->cache;
}

/* A zero point of A per row, [m] or [.., m, 1], repeats with its operand's batch. */
static struct codes_integers rows_of(const struct kcall *call)
{
    const struct tensor *a = &call->in[IN_IntegerMatMul_A], *zero = kcall_in(call, IN_IntegerMatMul_a_zero_point);
    return (struct codes_integers){.m = tensor_dims_product(a->dim, 0, a->rank - 1),
                                   .is_signed = a->dtype == DT_I8,
                                   .a = a->data,
                                   .zero = zero ? zero->data : NULL,
                                   .zeros = zero ? tensor_elements(zero) : 1};
}

static void product(struct kcall *call, const struct codes *w)
{
    struct codes_integers a = rows_of(call);
    struct codes_result to = {.whole = call->out[0].data};
    const struct tensor *factor = kcall_in(call, IN_IntegerMatMul_scale), *bias = kcall_in(call, IN_IntegerMatMul_bias);
    require(!is_scaled(call) || call->out[0].dtype == DT_F32);
    if (is_scaled(call))
        to = (struct codes_result){
            .real = call->out[0].data, .scale = factor->data, .step = tensor_elements(factor) > 1, .bias = bias ? bias->data : NULL};
    codes_sums(call, w, &a, &to);
}

void kern_MatMulInteger(struct kcall *call)
{
    struct scaled_weight w = weight_of(call);
    if (tensor_elements(&call->out[0]) == 0)
        return;
    if (keeps_codes(call)) {
        product(call, kept_codes(call, &w));
        return;
    }
    struct codes_source from = scaled_source(&w);
    struct codes once = codes_pack_once(call, &from);
    product(call, &once);
}

void kern_IntegerMatMul(struct kcall *call)
{
    kern_MatMulInteger(call);
}

/* ---- at load ------------------------------------------------------------------------------------------------------------------------- */

bool integer_packs(const struct kcall *call, struct packed_key *key)
{
    struct scaled_weight w = weight_of(call);
    if (!keeps_codes(call) || w.n * w.k == 0)
        return false;
    key->weight = call->node->in[IN_IntegerMatMul_B]->constant;
    key->zeros = w.zero ? call->node->in[IN_IntegerMatMul_b_zero_point]->constant : NULL;
    scaled_key(&w, key);
    return true;
}

bool integer_pack(struct kcall *call, const struct packed_key *key)
{
    struct scaled_weight w = weight_of(call);
    (void)key;
    (void)kept_codes(call, &w);
    return true;
}
