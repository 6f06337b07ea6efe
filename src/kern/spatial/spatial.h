/* kern/spatial: kernels over spatial dimensions: pooling, resizing, sampling. */
#ifndef TPC_KERN_SPATIAL_H
#define TPC_KERN_SPATIAL_H

#include "kern/core/core.h"
#include "kern/core/window.h"

/* ---- pool.c: pooling windows. last: channels-last -------------------------------------- */
enum pooling { POOL_MAX, POOL_AVERAGE, POOL_NORM };
void pool_window(struct kcall *, enum pooling, bool last);
void pool_global(struct kcall *, enum pooling, bool last);

/* ---- pool_codes.c: GlobalAveragePool of channels-last bytes, whose scale and zero point the node has ---- */
void pool_codes(struct kcall *);

/* ---- pool_places.c: result 1 of MaxPool ---- */
void pool_places(struct kcall *);

/* ---- pool_type.c: the loops of a pool for one type of elements --------------------------------------------------------------- */
enum { POOL_LANES = 64 }; /* channels processed at a time by a thread */
/* Places of y of `lanes` elements; `step` elements of x between windows, and `gap` between two taps. */
struct pool_windows {
    int64_t places, lanes, step, taps, gap;
};
struct pool_type {
    size_t size;
    void (*start[POOL_NORM + 1])(void *y, int64_t n);
    /* Element i of y combines element i * stride of x. p: of the norm. */
    void (*combine[POOL_NORM + 1])(void *y, const void *x, int64_t places, int64_t stride, int64_t p);
    /* The lanes of each place combine the elements of its window. */
    void (*windows[POOL_NORM + 1])(void *y, const void *x, const struct pool_windows *, int64_t p);
    /* y[lanes] from all places of x, which are `step` elements apart; lanes <= POOL_LANES. */
    void (*whole[POOL_NORM + 1])(void *y, const void *x, int64_t places, int64_t step, int64_t lanes, int64_t p);
    void (*divide)(void *y, int64_t n, int64_t count);
    void (*root)(void *y, int64_t n, int64_t p);
};
/* NULL: none for this type. Integers have only the maximum. */
const struct pool_type *pool_type(enum dtype);

#endif
