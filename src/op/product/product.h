/* product: ops that multiply and add along contracted dimensions: matrix products, convolutions, pooling, quantised and expert products. */
#ifndef TPC_OP_PRODUCT_H
#define TPC_OP_PRODUCT_H

#include "op/rule/rule.h"

/* ---- window.c: windows that slide over n spatial dimensions; partial: ceil_mode, a last place may reach over the end ---- */
#define MOST_SPATIAL (MAX_RANK - 2)
struct window {
    int n;
    bool partial;
    int64_t kernel[MOST_SPATIAL], stride[MOST_SPATIAL], dilation[MOST_SPATIAL], pad[2 * MOST_SPATIAL];
};
/* From attributes strides, dilations and pads; unfit ones are a failure. */
struct window window_read(const struct graph *, const struct node *, int n, const int64_t *kernel);
/* Places along spatial dimension i of this extent; auto_pad as the node has it. */
const struct dim *window_result(struct graph *, const struct node *, const struct window *, int i, const struct dim *extent);
/* The padding in numbers, as in attribute pads; false: auto_pad decides, and sizes are not known. */
bool window_pads(const struct node *, const struct window *, int64_t *pads);
/* From the first element that a place reads to the last, both counted. */
int64_t window_reach(const struct window *, int i);
/* How the windows of result 0 slide over spatial dimension i of operand 0; false: that is not known when compiling, or not regular. */
typedef bool window_slides(struct graph *, const struct node *, const struct window *, int i, struct sliding *);
/* Those of convolutions and pools; ceil_mode may leave elements behind them. */
window_slides window_slides_over;
/* The spatial dimensions of operand 0 and result 0: the same where the window is pointwise; what windows read, where they slide; else,
 * replicated. */
void window_rule(struct graph *, const struct node *, struct rule *, const struct window *, window_slides *slides);
/* For SLIDE: a rank pads only where its windows reach over the ends. */
void window_slide(struct graph *, struct node *, const struct window *, const struct slide *);

/* ---- einsum.c: the equation; dimensions of "..." are labelled from the right ---- */
enum { ELLIPSIS = 256, LABELS = ELLIPSIS + MAX_RANK };
struct labels {
    int n, at[MAX_RANK];
};
struct einsum {
    int nin;
    struct labels in[2], out;
    const struct dim *size[LABELS];
};
/* Of a typed node; a malformed equation is a failure. */
struct einsum einsum_read(struct graph *, const struct node *);
bool einsum_has(const struct labels *, int label);

/* ---- resize.c ---- */
/* What is asked of dimension d: nothing, a size (NULL: it is not known) or a factor. */
struct resize_target {
    bool named;
    const struct dim *size;
    double scale;
};
struct resize_target resize_target_of(struct graph *, const struct node *, int d);
/* The canonical form of a Resize: sizes name only the dimensions that change, operands that say nothing go. */
void resize_canonical(struct graph *, struct node *);

/* ---- moe.c: operands and sizes of mixtures of experts; split in moe_rule.c ---- */
enum { INPUT, ROUTER, FIRST_WEIGHT, FC1 = 0, FC2 = 1, FC3 = 2, MATRICES = 3 };

struct moe_sizes {
    bool quantized;
    int gates;                     /* 2: fc1 holds gate and value; 1: not */
    bool interleaved;              /* gate and value in turn */
    int64_t bits[MATRICES], block; /* block 0: one scale per row */
    const struct dim *rows, *experts, *hidden, *inner, *result;
};
/* A node whose attributes no kernel can do is a failure. */
struct moe_sizes moe_read(struct graph *, const struct node *);
bool moe_has(const struct node *, int operand);
/* moe_rule.c: does every row go through every expert, with the weights given? */
bool moe_takes_all(const struct node *, const struct moe_sizes *);

/* Where operands stand; matrices are in the order fc1, fc2, fc3. */
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
} /* the weights of the choice, where they are given */

#endif
