/* prices: the numbers of a machine profile; schemas/prices.def has a row for each. */
#ifndef TPC_BASE_PRICES_H
#define TPC_BASE_PRICES_H

enum price_unit {
    PRICE_OPERATIONS, /* per second */
    PRICE_BYTES,      /* per second */
    PRICE_SECONDS,    /* per occurrence */
    PRICE_SPEED,      /* of products by another kernel, relative to `flops` */
    PRICE_LANES,      /* elements per vector */
    PRICE_COUNT,      /* a number above 0 */
    PRICE_TIMES       /* a number that may be 0 */
};

/* Rounded numbers per result of an integer convolution: a sum of products is more work than a number. */
#define PRICE_CONV_CODES 1.4
/* Operations of a product that take as long as decoding an element of an expert's matrix: once per row, at most twice for several rows. */
#define PRICE_EXPERT_DECODED 14
#define PRICE_EXPERT_TIMES 2
/* The overhead of a convolution, in units of other kernels' overhead: its weights are in no near cache. */
#define PRICE_CONV_OVERHEADS 5
/* The speedup of products in bf16 from which users are told of --fast. */
#define PRICE_TOLD 1.25

/* The prices of kernels, in the order in which tpc-run --calibrate measures them. */
enum price {
#define PRICE(key, ...) PRICE_OF_##key,
#define SHARED(key, ...) PRICE_OF_##key,
#include "schemas/prices.def"
    PRICES
};

#endif
