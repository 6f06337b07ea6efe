/* kern/product: matrix products: of floats, of quantised numbers, of experts. */
#ifndef TPC_KERN_PRODUCT_H
#define TPC_KERN_PRODUCT_H

#include "kern/codes/codes.h"

/* ---- matmul_nbits.c: a weight of 2, 4 or 8 bits in blocks -------------------------------------------------------------------- */
/* blocks: u8 [n, blocks, bytes]; scales, zeros (NULL: half of the range): per block; groups: the scale of every element (NULL: its
 * block's) */
struct nbits_weight {
    const struct tensor *blocks, *scales, *zeros, *groups;
    int64_t bits;
};
/* c[m, n] = a[m, k] w^T. Uses ROOM_B and the rooms of packed_gemm. */
void matmul_nbits_product(struct kcall *, const struct nbits_weight *, int64_t m, int64_t k, const float *a, float *c);

/* ---- nbits_codes.c: the weight of a MatMulNBits as tiles ---- */
struct nbits_weight nbits_weight_of(const struct kcall *);
enum { NBITS_SHORT = 256 };                                  /* elements of a short weight, at most */
bool nbits_is_short(const struct nbits_weight *, int64_t k); /* it is decoded in each product, and never packed */
/* NULL: the tiles cannot hold it, or it is not constant. Packed in the first call, kept in call->cache. */
const struct codes *nbits_codes(struct kcall *, const struct nbits_weight *, int64_t k);
/* Digits of an activation for the node. */
int nbits_level_digits(int64_t level); /* digits of 8 bits to which activations are rounded at an accuracy_level */
int nbits_codes_digits(const struct kcall *);
/* Whether a weight (operands 1 to 3: numbers, scales, zero points) may become codes: constants, and not --deterministic. Three digits take
 * longer than float32 without dot-product instructions. */
bool nbits_codes_allowed(const struct kcall *);

/* ---- scaled_codes.c: the matrix of a QuantMatMul as codes; as above ---- */
const struct codes *scaled_codes(struct kcall *);
struct scaled_weight {
    const struct tensor *x, *scale, *zero; /* scale NULL: integers only; zero NULL: none */
    int64_t n, k, block, blocks;           /* block: whole steps; k if a column has one scale */
    int bits, bias;                        /* bias: makes numbers unsigned */
    bool transposed, one;                  /* x is [n, k]; one scale and zero point for all */
};
/* block 0: none. */
struct scaled_weight scaled_weight(const struct tensor *x, bool transposed, int64_t block, const struct tensor *scale,
                                   const struct tensor *zero);
struct codes_source scaled_source(const struct scaled_weight *);
/* The part of the key that is the same for all readers of such a weight. */
void scaled_key(const struct scaled_weight *, struct packed_key *);

/* ---- for pack.c: whether a kernel keeps its weight packed, and under which key; false: it reads the weight itself ---- */
bool matmul_packs(const struct kcall *, struct packed_key *);
bool matmul_pack(struct kcall *, const struct packed_key *);
bool nbits_packs(const struct kcall *, struct packed_key *);
bool nbits_pack(struct kcall *, const struct packed_key *);
bool scaled_packs(const struct kcall *, struct packed_key *);
bool scaled_pack(struct kcall *, const struct packed_key *);
bool integer_packs(const struct kcall *, struct packed_key *);
bool integer_pack(struct kcall *, const struct packed_key *);

/* ---- expert_gemm.c: one matrix of every expert, [experts, n, k], or [experts, k, n] of floats, in any storage ---------------- */
/* Integers of `bits` bits in bytes if there are scales: per row, or per block of a row. */
struct experts {
    struct panels panels; /* first member; columns of the product are rows of the matrix */
    const struct tensor *weight, *scales, *zeros, *bias;
    int64_t bits, block, expert;
    bool transposed; /* it is [experts, k, n] */
};
/* c[m, n] = a[m, k] w^T + bias, for the current expert. */
void expert_product(struct kcall *, const struct experts *, int64_t m, const float *a, float *c);

#endif
