/* op/spatial: ops over spatial dimensions: convolutions, pooling, resizing, sampling. */
#ifndef TPC_OP_SPATIAL_H
#define TPC_OP_SPATIAL_H

#include "op/rule/rule.h"

/* ---- window.c: windows that slide over n spatial dimensions; partial: ceil_mode, the last window may exceed the end ---- */
#define MOST_SPATIAL (MAX_RANK - 2)
struct window {
    int n;
    bool partial;
    int64_t kernel[MOST_SPATIAL], stride[MOST_SPATIAL], dilation[MOST_SPATIAL], pad[2 * MOST_SPATIAL];
};
/* From attributes strides, dilations and pads; fails if they are invalid. */
struct window window_read(const struct graph *, const struct node *, int n, const int64_t *kernel);
/* Number of windows along spatial dimension i of this extent, by the node's auto_pad. */
const struct dim *window_result(struct graph *, const struct node *, const struct window *, int i, const struct dim *extent);
/* The padding in numbers, as in attribute pads; false: auto_pad applies, and sizes are unknown. */
bool window_pads(const struct node *, const struct window *, int64_t *pads);
/* The distance from the first to the last element of a window, inclusive. */
int64_t window_reach(const struct window *, int i);
/* How the windows of result 0 slide over spatial dimension i of operand 0; false: unknown at compile time, or irregular. */
typedef bool window_slides(struct graph *, const struct node *, const struct window *, int i, struct sliding *);
/* For convolutions and pools; with ceil_mode, elements may remain after the last window. */
window_slides window_slides_over;
/* The spatial dimensions of operand 0 and result 0: shared factors if the window is pointwise; windows if they slide; else replicated. */
void window_rule(struct graph *, const struct node *, struct rule *, const struct window *, window_slides *slides);
/* For SLIDE: a rank pads only where its windows exceed the global ends. */
void window_slide(struct graph *, struct node *, const struct window *, const struct slide *);

/* ---- resize.c ---- */
/* The target of dimension d: none, a size (NULL: unknown) or a factor. */
struct resize_target {
    bool named;
    const struct dim *size;
    double scale;
};
struct resize_target resize_target_of(struct graph *, const struct node *, int d);
/* The canonical form of a Resize: sizes name only the dimensions that change, and unused operands are removed. */
void resize_canonical(struct graph *, struct node *);

#endif
