/* window: windows over several dimensions. */
#ifndef TPC_KERN_WINDOW_H
#define TPC_KERN_WINDOW_H

#include <stdint.h>

/* By dimension: elements, places, elements of a window, its steps, and the padding at the start. */
struct window_sizes {
    const int64_t *size, *places, *kernel, *stride, *dilation, *before;
};
/* The element that a tap of a place reads, both as flat indices; -1: in the padding. */
static inline int64_t window_source(int n, const struct window_sizes *w, int64_t place, int64_t tap)
{
    int64_t source = 0, step = 1;
    for (int d = n - 1; d >= 0; d--) {
        int64_t i = place % w->places[d] * w->stride[d] + tap % w->kernel[d] * w->dilation[d] - w->before[d];
        place /= w->places[d];
        tap /= w->kernel[d];
        if (i < 0 || i >= w->size[d])
            return -1;
        source += i * step;
        step *= w->size[d];
    }
    return source;
}

#endif
