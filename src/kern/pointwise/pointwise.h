/* kern/pointwise: kernels that work element by element, and the code of a Chain node: elementwise float operations fused at load, run on a
 * block of elements at a time so that intermediate values stay in the L1 cache. Attribute `code` holds triples (operation, operand,
 * operand); registers are the node's operands, then the numbers of attribute `imm`, then one result per triple. The last result is the
 * output; without a triple it is operand 0.
 *
 * Operands and the output may be bytes that stand for real numbers. Attribute `scales` then has a triple for each operand, for the output,
 * and for each CHAIN_RECODE: scale, zero point, and the least code. A scale of 0: no codes. CHAIN_RECODE rounds to codes and decodes them
 * again; its second operand is the number of its triple, counted after the output's. */
#ifndef TPC_KERN_POINTWISE_H
#define TPC_KERN_POINTWISE_H

#include <stdint.h>

#define SQRT_HALF 0.70710678118654752440
#define SQRT_2_OVER_PI 0.79788456080286535588

/* CHAIN_Add, ... of pointwise.def. */
#define FUSED(name) CHAIN_##name,
#define ALONE(name)
enum chain_op {
#define BINARY(name, kernel, chain, real32, real64, integer) chain(name)
#define UNARY(name, kernel, chain, cost, set, real32, real64) chain(name)
#include "kern/pointwise/pointwise.def"
    CHAIN_COUNT,
    CHAIN_RECODE = CHAIN_COUNT
};
#undef FUSED
#undef ALONE
enum { CHAIN_INPUTS = 7, CHAIN_LENGTH = 32, CHAIN_NUMBERS = 16, CHAIN_SCALES = CHAIN_INPUTS + 1 + CHAIN_LENGTH };

typedef void binary_row(const void *a, int sa, const void *b, int sb, void *out, int64_t n);
typedef void unary_row(const void *x, void *y, int64_t n);
/* smooth.c: row functions of set SMOOTH. */
#define VECTOR_ROW(name)
#define SCALAR_ROW(name)
#define NEAR_ROW(name)
#define SMOOTH_ROW(name) unary_row smooth_##name;
#define UNARY(name, kernel, chain, cost, set, real32, real64) set##_ROW(name)
#include "kern/pointwise/pointwise.def"
#undef VECTOR_ROW
#undef SCALAR_ROW
#undef NEAR_ROW
#undef SMOOTH_ROW
/* The float32 row functions of binary.c and unary.c; NULL if the operation has the other arity. */
extern binary_row *const chain_binary[CHAIN_COUNT];
extern unary_row *const chain_unary[CHAIN_COUNT];
/* The operation of an operator of ai.onnx, -1: none. Gelu's second form is CHAIN_GeluTanh. */
int chain_find(const char *optype);

#endif
