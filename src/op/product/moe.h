/* moe: what the two files about mixtures of experts share: their operands and sizes (moe.c), split in moe_rule.c. */
#ifndef TPC_OP_MOE_H
#define TPC_OP_MOE_H

#include "op/op.h"

enum { INPUT, ROUTER, FIRST_WEIGHT, FC1 = 0, FC2 = 1, FC3 = 2, MATRICES = 3 };

struct moe {
    bool quantized;
    int gates;                     /* 2: fc1 holds gate and value; 1: not */
    bool interleaved;              /* gate and value in turn */
    int64_t bits[MATRICES], block; /* block 0: one scale per row */
    const struct dim *rows, *experts, *hidden, *inner, *result;
};
/* A node whose attributes no kernel can do is a failure. */
struct moe moe_read(struct graph *, const struct node *);
bool moe_has(const struct node *, int operand);

/* Where operands stand; matrices are in the order fc1, fc2, fc3. */
static inline int weight_at(const struct moe *m, int j)
{
    return FIRST_WEIGHT + j * (m->quantized ? 3 : 2);
}
static inline int scales_at(const struct moe *m, int j)
{
    return weight_at(m, j) + 1;
}
static inline int bias_at(const struct moe *m, int j)
{
    return weight_at(m, j) + (m->quantized ? 2 : 1);
}
static inline int zeros_at(int j)
{
    return 11 + j;
}
static inline int mix_at(const struct moe *m)
{
    return m->quantized ? 14 : 8;
} /* the weights of the choice, where they are given */

#endif
