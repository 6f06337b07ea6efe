/* prices: the numbers of a machine profile. schemas/prices.def has a row for each. */
#ifndef TPC_BASE_PRICES_H
#define TPC_BASE_PRICES_H

enum price_unit {
    PRICE_OPERATIONS, /* per second */
    PRICE_BYTES,      /* per second */
    PRICE_SECONDS,    /* of one */
    PRICE_SPEED,      /* of products by another kernel: times `flops` */
    PRICE_LANES,      /* numbers of a vector */
    PRICE_COUNT,      /* a number above 0 */
    PRICE_TIMES       /* a number that may be 0 */
};

/* Numbers that are rounded for a result of a convolution of integers: a sum of products is more work than a number. */
#define PRICE_CONV_CODES 1.4
/* Operations of a product that decoding a number of an expert's matrix takes as long as: once for each row, at most twice for several. */
#define PRICE_EXPERT_DECODED 14
#define PRICE_EXPERT_TIMES 2
/* The overhead of a convolution, in those of other kernels: its weights are in no near cache. */
#define PRICE_CONV_OVERHEADS 5

/* The prices of kernels, which tpc-run --calibrate measures in this order. */
enum price {
#define PRICE(key, ...) PRICE_OF_##key,
#define SHARED(key, ...) PRICE_OF_##key,
#include "schemas/prices.def"
    PRICES
};

#endif
