/* kern/product: kernels that contract dimensions: matrix products, quantized and of experts, convolutions, pooling, resizing. */
#ifndef TPC_KERN_PRODUCT_H
#define TPC_KERN_PRODUCT_H

#include "kern/gemm/gemm.h"

/* ---- matmul_nbits.c: a weight of 2, 4 or 8 bits in blocks
 * ------------------------------------------------------------------------------------ */
/* blocks: u8 [n, blocks, bytes]; scales, zeros (NULL: half of the range): of each block; groups: the scale of every number (NULL: its
 * block's) */
struct nbits_weight {
    const struct tensor *blocks, *scales, *zeros, *groups;
    int64_t bits;
};
/* c[m, n] = a[m, k] w^T. Uses ROOM_B and what packed_gemm does. */
void matmul_nbits_product(struct kcall *, const struct nbits_weight *, int64_t m, int64_t k, const float *a, float *c);
struct nbits_weight matmul_nbits_weight(const struct kcall *);

/* ---- nbits_codes.c: the weight of a MatMulNBits as tiles ---- */
/* NULL: it is none that tiles hold, or no constant. Packed at the first call, kept in call->cache. */
const struct codes *nbits_codes(struct kcall *, const struct nbits_weight *, int64_t k);
/* Digits of an activation that the node asks for. */
int nbits_level_digits(int64_t level); /* digits of 8 bits in which activations are rounded at an accuracy_level */
int nbits_codes_digits(const struct kcall *);
/* May a weight (operands 1 to 3: numbers, scales, zero points) become codes? Constants, and not --deterministic. Three digits take longer
 * than float32 where the instructions for dots are missing. */
bool nbits_codes_allowed(const struct kcall *);

/* ---- scaled_codes.c: the matrix of a QuantMatMul as codes; as above ---- */
const struct codes *scaled_codes(struct kcall *);
struct scaled_weight {
    const struct tensor *x, *scale, *zero; /* scale NULL: only the integers; zero NULL: none */
    int64_t n, k, block, blocks;           /* block: whole steps; of k where a column has one scale */
    int bits, bias;                        /* bias: makes numbers unsigned */
    bool transposed, one;                  /* x is [n, k]; one scale and zero point for all */
};
/* block 0: none. */
struct scaled_weight scaled_weight(const struct tensor *x, bool transposed, int64_t block, const struct tensor *scale,
                                   const struct tensor *zero);
struct codes_source scaled_source(const struct scaled_weight *);
/* The part of the key that is the same for whatever reads such a weight. */
void scaled_key(const struct scaled_weight *, struct packed_key *);

/* ---- pack.c packs by these: whether a kernel keeps its weight packed, and under which key; false: it will read the weight itself ---- */
bool matmul_packs(const struct kcall *, struct packed_key *);
bool matmul_pack(struct kcall *, const struct packed_key *);
bool nbits_packs(const struct kcall *, struct packed_key *);
bool nbits_pack(struct kcall *, const struct packed_key *);
bool scaled_packs(const struct kcall *, struct packed_key *);
bool scaled_pack(struct kcall *, const struct packed_key *);
bool integer_packs(const struct kcall *, struct packed_key *);
bool integer_pack(struct kcall *, const struct packed_key *);

/* ---- expert_gemm.c: one matrix of every expert, [experts, n, k], in any storage --------------------------------------------------------
 */
/* Integers of `bits` bits in bytes where there are scales: per row, or per block of a row. */
struct experts {
    struct panels panels; /* first: columns of the product are rows of the matrix */
    const struct tensor *weight, *scales, *zeros, *bias;
    int64_t bits, block, expert;
};
/* c[m, n] = a[m, k] w^T + bias, of the expert that is set. */
void expert_product(struct kcall *, const struct experts *, int64_t m, const float *a, float *c);

/* ---- windows over n dimensions, by dimension: elements, places, elements of a window, its steps, and the padding in front ---- */
struct window_sizes {
    const int64_t *size, *places, *kernel, *stride, *dilation, *before;
};
/* The element that tap of a place reads, both flattened; -1: it lies in the padding. */
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

/* ---- pool.c: pooling windows. last: channels are the last dimension, not the second one ------------------------------------------------
 */
enum pooling { POOL_MAX, POOL_AVERAGE, POOL_NORM };
void pool_window(struct kcall *, enum pooling, bool last);
void pool_global(struct kcall *, enum pooling, bool last);

/* ---- pool_places.c: result 1 of MaxPool ---- */
void pool_places(struct kcall *);

/* ---- pool_type.c: the loops of a pool for one type of elements --------------------------------------------------------------------------
 */
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
