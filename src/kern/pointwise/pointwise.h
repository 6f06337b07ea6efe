/* kern/pointwise: kernels that work element by element, and the code of a Chain node: elementwise float operations fused at load, run a
 * stretch of elements at a time so that what lies between them stays in the first-level cache. Attribute `code` holds triples (operation,
 * operand, operand); registers are the node's operands, then the numbers of attribute `imm`, then one result per triple. The last result is
 * the output. */
#ifndef TPC_KERN_POINTWISE_H
#define TPC_KERN_POINTWISE_H

#include <stdint.h>

enum chain_op {
    CHAIN_ADD,
    CHAIN_SUB,
    CHAIN_MUL,
    CHAIN_DIV,
    CHAIN_POW,
    CHAIN_MAX,
    CHAIN_MIN,
    CHAIN_LAST_BINARY = CHAIN_MIN,
    CHAIN_ABS,
    CHAIN_NEG,
    CHAIN_RELU,
    CHAIN_SQRT,
    CHAIN_RECIPROCAL,
    CHAIN_EXP,
    CHAIN_LOG,
    CHAIN_ERF,
    CHAIN_TANH,
    CHAIN_SIGMOID,
    CHAIN_GELU,
    CHAIN_GELU_TANH,
    CHAIN_SIN,
    CHAIN_COS,
    CHAIN_FLOOR,
    CHAIN_COUNT
};
enum { CHAIN_INPUTS = 7, CHAIN_LENGTH = 32, CHAIN_NUMBERS = 16 };

typedef void binary_row(const void *a, int sa, const void *b, int sb, void *out, int64_t n);
typedef void unary_row(const void *x, void *y, int64_t n);
/* The float32 row functions of elementwise.c; NULL where the operation has the other arity. */
extern binary_row *const chain_binary[CHAIN_COUNT];
extern unary_row *const chain_unary[CHAIN_COUNT];

#endif
