/* op/product: matrix products, einsum, quantized products and mixtures of experts. */
#ifndef TPC_OP_PRODUCT_H
#define TPC_OP_PRODUCT_H

#include "ir/operands.h"
#include "op/rule/rule.h"

/* ---- einsum.c: the equation; dimensions of "..." are labelled from the right ---- */
enum { ELLIPSIS = 2 * 26, LABELS = ELLIPSIS + MAX_RANK }; /* before it: a to z, A to Z */
struct labels {
    int n, at[MAX_RANK];
};
struct einsum {
    int nin;
    struct labels *in, out;
    const struct dim *size[LABELS];
};
/* For a typed node; fails on a malformed equation. */
struct einsum einsum_read(struct graph *, const struct node *);
uint64_t einsum_set(const struct labels *); /* a bit for each label */

/* ---- contraction_order.c: the order of products of many operands, as sets of labels, two at a time ---- */
struct contraction {
    int a, b; /* operands from 0, or n + k: the result of step k */
};
/* n - 1 steps, for the result `out`; size: of each label. False: in every order that was tried, some result has more than MAX_RANK
 * labels. */
bool contraction_order(struct arena *, int n, const uint64_t *labels, uint64_t out, const double *size, struct contraction *);
/* The labels that a product of operands i and j of these n keeps: those of the result and of other operands. */
uint64_t contraction_kept(int n, const uint64_t *labels, uint64_t out, int i, int j);

/* ---- moe.c: operands and sizes of mixtures of experts; splits are in moe_rule.c ---- */
enum { INPUT = IN_MoE_input, ROUTER = IN_MoE_router_probs, FIRST_WEIGHT, FC1 = 0, FC2 = 1, FC3 = 2, MATRICES = 3 };

struct moe_sizes {
    bool quantized;
    int gates;                     /* 2: fc1 holds gate and value; 1: not */
    bool interleaved;              /* gate and value interleaved */
    bool transposed;               /* weights are [experts, in, out] */
    int64_t bits[MATRICES], block; /* block 0: one scale per row */
    const struct dim *rows, *experts, *hidden, *inner, *result;
};
/* Fails on a node whose attributes no kernel supports. */
struct moe_sizes moe_read(struct graph *, const struct node *);
/* moe_rule.c: whether every row goes through every expert, with given weights. */
bool moe_takes_all(const struct node *, const struct moe_sizes *);
/* The most experts that a row goes through: k, or fewer if its weights are zeros for more of them (the lowering of a split by experts). */
int64_t moe_chosen(const struct node *);
/* The most nonzero weights of a row, over its experts, as the lowering writes them; -1: unknown. */
int64_t moe_most_nonzero(const struct value *);

/* Positions of operands; matrices are in the order fc1, fc2, fc3. */
static inline int moe_weight_at(const struct moe_sizes *m, int j)
{
    return FIRST_WEIGHT + j * (m->quantized ? 3 : 2);
}
static inline int moe_scales_at(const struct moe_sizes *m, int j)
{
    return moe_weight_at(m, j) + 1;
}
static inline int moe_bias_at(const struct moe_sizes *m, int j)
{
    return moe_weight_at(m, j) + (m->quantized ? 2 : 1);
}
static inline int moe_zeros_at(int j)
{
    return 11 + j;
}
static inline int moe_mix_at(const struct moe_sizes *m)
{
    return m->quantized ? 14 : 8;
} /* the weights of the choice, if given */

#endif
