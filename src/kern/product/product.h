/* kern/product: matrix products: of floats, of quantised numbers, of experts. */
#ifndef TPC_KERN_PRODUCT_H
#define TPC_KERN_PRODUCT_H

#include "kern/codes/codes.h"

/* ---- matmul_nbits.c: a weight of 2, 4 or 8 bits in blocks -------------------------------------------------------------------- */
/* blocks: u8 [n, blocks, bytes]; scales, zeros (NULL: half of the range): of each block; groups: the scale of every number (NULL: its
 * block's) */
struct nbits_weight {
    const struct tensor *blocks, *scales, *zeros, *groups;
    int64_t bits;
};
/* c[m, n] = a[m, k] w^T. Uses ROOM_B and what packed_gemm does. */
void matmul_nbits_product(struct kcall *, const struct nbits_weight *, int64_t m, int64_t k, const float *a, float *c);
struct nbits_weight matmul_nbits_weight(const struct kcall *);
bool matmul_nbits_is_short(const struct nbits_weight *, int64_t k); /* it is decoded at each product, and never packed */

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

/* ---- expert_gemm.c: one matrix of every expert, [experts, n, k], in any storage ---------------------------------------------- */
/* Integers of `bits` bits in bytes where there are scales: per row, or per block of a row. */
struct experts {
    struct panels panels; /* first: columns of the product are rows of the matrix */
    const struct tensor *weight, *scales, *zeros, *bias;
    int64_t bits, block, expert;
};
/* c[m, n] = a[m, k] w^T + bias, of the expert that is set. */
void expert_product(struct kcall *, const struct experts *, int64_t m, const float *a, float *c);

#endif
