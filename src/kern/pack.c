/* pack: packs the constant matrices that products keep packed when a session is made. */
#include "ir/operands.h"
#include "kern/conv/conv.h"
#include "kern/core/core.h"
#include "kern/product/product.h"

#include <string.h>

static const struct packer {
    void (*kernel)(struct kcall *);
    bool (*packs)(const struct kcall *, struct packed_key *);
    bool (*pack)(struct kcall *, const struct packed_key *);
    unsigned operands; /* not read any more, as bits */
} packers[] = {
    {kern_MatMul, matmul_packs, matmul_pack, 1 << IN_MatMul_B},
    {kern_Gemm, matmul_packs, matmul_pack, 1 << IN_Gemm_B},
    {kern_MatMulNBits, nbits_packs, nbits_pack, 1 << IN_MatMulNBits_B | 1 << IN_MatMulNBits_scales | 1 << IN_MatMulNBits_zero_points},
    {kern_QuantMatMul, scaled_packs, scaled_pack, 1 << IN_QuantMatMul_x | 1 << IN_QuantMatMul_x_scale | 1 << IN_QuantMatMul_x_zero_point},
    {kern_MatMulInteger, integer_packs, integer_pack, 1 << IN_MatMulInteger_B | 1 << IN_MatMulInteger_b_zero_point},
    {kern_IntegerMatMul, integer_packs, integer_pack, 1 << IN_IntegerMatMul_B | 1 << IN_IntegerMatMul_b_zero_point},
    {kern_IntegerConv, integer_conv_packs, integer_conv_pack, 1 << IN_IntegerConv_W | 1 << IN_IntegerConv_W_zero}};

static const struct packer *packer_of(const struct kcall *call)
{
    for (size_t i = 0; i < sizeof packers / sizeof *packers; i++)
        if (packers[i].kernel == call->node->op->kernel)
            return &packers[i];
    return NULL;
}

unsigned kern_pack(struct kcall *call)
{
    const struct packer *packer = packer_of(call);
    struct packed_key key;
    memset(&key, 0, sizeof key); /* so that padding compares equal */
    if (!packer || !packer->packs(call, &key))
        return 0;
    void **kept = kenv_packed(call->env, &key);
    *call->cache = *kept;
    if (!*kept && !packer->pack(call, &key))
        return 0;
    *kept = *call->cache;
    return packer->operands;
}
