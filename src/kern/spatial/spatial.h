/* kern/spatial: kernels over spatial dimensions: pooling, resizing, sampling. */
#ifndef TPC_KERN_SPATIAL_H
#define TPC_KERN_SPATIAL_H

#include "kern/core/core.h"
#include "kern/core/window.h"

/* ---- pool.c: pooling windows. last: channels are the last dimension, not the second one -------------------------------------- */
enum pooling { POOL_MAX, POOL_AVERAGE, POOL_NORM };
void pool_window(struct kcall *, enum pooling, bool last);
void pool_global(struct kcall *, enum pooling, bool last);

/* ---- pool_codes.c: GlobalAveragePool of bytes with channels last, of which the node has the scale and the zero point ---- */
void pool_codes(struct kcall *);

/* ---- pool_places.c: result 1 of MaxPool ---- */
void pool_places(struct kcall *);

/* ---- pool_type.c: the loops of a pool for one type of elements --------------------------------------------------------------- */
enum { POOL_LANES = 64 }; /* channels that a thread takes at a time */
/* Places of y of `lanes` elements, `step` elements of x from one window to the next, and `gap` between two taps of a window. */
struct pool_windows {
    int64_t places, lanes, step, taps, gap;
};
struct pool_type {
    size_t size;
    void (*start[POOL_NORM + 1])(void *y, int64_t n);
    /* Element i of y takes in element i * stride of x. p: of the norm. */
    void (*combine[POOL_NORM + 1])(void *y, const void *x, int64_t places, int64_t stride, int64_t p);
    /* The lanes of each place take in what its window reads. */
    void (*windows[POOL_NORM + 1])(void *y, const void *x, const struct pool_windows *, int64_t p);
    /* y[lanes] from all places of x, which are `step` elements apart; lanes <= POOL_LANES. */
    void (*whole[POOL_NORM + 1])(void *y, const void *x, int64_t places, int64_t step, int64_t lanes, int64_t p);
    void (*divide)(void *y, int64_t n, int64_t count);
    void (*root)(void *y, int64_t n, int64_t p);
};
/* NULL: none for this type. Integers have the greatest element only. */
const struct pool_type *pool_type(enum dtype);

#endif
