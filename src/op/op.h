/* op: the semantics of an operation: inference of types, shape values, factor rule, lowering. One row per op in schemas/ops.def names its
 * functions, which are together in src/op/FAMILY; its kernels are in src/kern/FAMILY.
 *
 * This header has what every user of rows needs: their flags and the look-up (registry.c). */
#ifndef TPC_OP_H
#define TPC_OP_H

#include "ir/ir.h"

#include <string.h>

enum op_flag {
    /* Planning: splits to try, splits that pass a node, and what else a plan may infer. */
    OP_PRODUCT = 1 << 0,  /* multiplies and sums (MatMul, Gemm, Conv, fused attention): sequence splits do not pass */
    OP_BARRIER = 1 << 1,  /* needs whole rows (Softmax): sequence splits do not pass */
    OP_SEEDS = 1 << 2,    /* its weight operands seed splits (MatMul, Gemm, Conv, Gather) */
    OP_SCORES = 1 << 3,   /* operand 0 holds scores of classes, which style loss-parallel splits */
    OP_APPENDS = 1 << 4,  /* result = past + new along an axis (Concat, fused attention): a state pair may pass */
    OP_MOVES = 1 << 5,    /* only moves elements: the result has all elements of operand 0, each once (views, Transpose) */
    OP_CONVERTS = 1 << 6, /* keeps the position of every element of operand 0 and converts its type (Cast, QuantizeLinear) */
    OP_DECODES = 1 << 7,  /* the result for a weight is the same weight (DequantizeLinear): products read it as stored */
    OP_BOUNDED = 1 << 8,  /* its results are at most 1 in magnitude, or NaN, for any operands */
    OP_COMMUTES = 1 << 9, /* operands 0 and 1 may be swapped: equal nodes merge */
    OP_REPEATS = 1 << 18, /* the result has every element of operand 0 several times along a dimension (Repeat) */

    OP_DRAWS = 1 << 19, /* draws random numbers: two nodes, and two runs, draw different ones */

    /* Cost. */
    OP_ELEMENTWISE = 1 << 10, /* a function of one element of each operand: fusable */
    OP_VIEW = 1 << 11,        /* the result has the bytes of operand 0 (Reshape, Squeeze, Identity): no cost, no memory */
    OP_FUNCTION = 1 << 22,    /* evaluates an exponential or similar function for each element of the result */
    OP_RECURS = 1 << 20,      /* multiplies every row of operand 0 by operands 1 and 2, one direction each */
    OP_CONVOLVES = 1 << 25,   /* windows of every channel: a vector of channels at once, which are last in memory */
    OP_SPREADS = 1 << 26,     /* adds each product at its position (ConvTranspose) */
    OP_PERMUTES = 1 << 27,    /* permutes dimensions, by attribute perm */
    OP_NARROW = 1 << 28,      /* operand 1 holds elements of attribute `bits` bits, several per byte */
    OP_INTEGERS = 1 << 29,    /* multiplies integers, or numbers that it rounds to integers */
    OP_ROUTES = 1 << 12,      /* a row uses attribute k of the experts that dimension 0 of its weights counts */

    /* Running. */
    OP_INTERNAL = 1 << 13,   /* exists only inside tpc: expanded at emit, or made by tpc-run */
    OP_COLLECTIVE = 1 << 14, /* communicates: of domain tpc */
    OP_CONTROL = 1 << 15,    /* runs its subgraphs */
    OP_IN_PLACE = 1 << 24,   /* its kernel overwrites operand 0 with the result: operand 0 has no other readers, or does not change */
    OP_CAPACITY = 1 << 16,   /* its kernel reads operands whose memory has capacity beyond their size (struct tensor) */
    OP_CHUNKS = 1 << 17,     /* its kernel computes the addends of an ordered sum (struct share, kern/kern.h) over a sharded dimension */
    OP_PACKED = 1 << 21      /* its kernel reads constants of 2 and 4 bits packed as in files (struct tensor) */
};

/* The row of an op, or NULL. Domains "" and "ai.onnx" are the same. */
const struct op *op_find(const char *domain, const char *name);
/* Rows of plug-ins (op/plugin): fills op from the row, which stays valid; then op_find finds it. One thread at a time. */
struct op_row;
void op_fill(struct op *, const struct op_row *);
void op_add(const struct op *);
int op_count(void);
const struct op *op_at(int index);
/* In domain ai.onnx. Most ops differ in their first letter. */
static inline bool op_is_onnx(const struct node *n, const char *op)
{
    return n && n->op && n->op->name[0] == op[0] && !*n->op->domain && strcmp(n->op->name, op) == 0;
}
struct node *op_made_by(const struct value *, const char *op); /* the producer if it is that op of ai.onnx, or NULL; NULL for no value */
bool op_is_tpc(const struct node *, const char *op);           /* of domain tpc */
/* Whether it communicates: a collective, or a recurrent net with split hidden units. */
bool op_communicates(const struct node *);
/* Whether no size operands are left: the node is in canonical form and its rule applies. Otherwise it stays replicated. */
bool op_resolved(const struct node *);

/* A row of the table (table/table.c), the last one without a name: everything except what is parsed from its texts. */
struct op_row {
    const char *inputs, *outputs, *attributes;
    struct op op;
};
extern const struct op_row op_rows[];

#endif
