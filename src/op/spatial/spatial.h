/* op/spatial: ops over spatial dimensions: convolutions, pooling, resizing, sampling. */
#ifndef TPC_OP_SPATIAL_H
#define TPC_OP_SPATIAL_H

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

#endif
