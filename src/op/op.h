/* op: what an operation means: inference of types, shape values, factor rule, lowering. One row per op in schemas/ops.def names its
 * functions, which stand side by side in src/op/FAMILY; its kernels are in the twin folder src/kern/FAMILY.
 *
 * This header has what every user of rows needs: their flags and the look-up (registry.c). */
#ifndef TPC_OP_H
#define TPC_OP_H

#include "ir/ir.h"

#include <string.h>

enum op_flag {
    /* Planning: which splits are tried, which pass a node, and what else a plan may conclude. */
    OP_PRODUCT = 1 << 0,  /* multiplies and sums (MatMul, Gemm, Conv, fused attention): sequence splits do not pass */
    OP_BARRIER = 1 << 1,  /* needs whole rows (Softmax): sequence splits do not pass */
    OP_SEEDS = 1 << 2,    /* its weight operands seed splits (MatMul, Gemm, Conv, Gather) */
    OP_SCORES = 1 << 3,   /* operand 0 holds scores of classes, whose split the style loss-parallel asks for */
    OP_APPENDS = 1 << 4,  /* result = past + new along an axis (Concat, fused attention): a state pair may pass */
    OP_MOVES = 1 << 5,    /* only moves elements: the result has those of operand 0, each once (views, Transpose) */
    OP_CONVERTS = 1 << 6, /* keeps the place of every element of operand 0 and converts its type (Cast, QuantizeLinear) */
    OP_DECODES = 1 << 7,  /* the result for a weight is the same weight (DequantizeLinear): products read it as it is stored */
    OP_BOUNDED = 1 << 8,  /* its results are at most 1 in magnitude, or NaN, whatever its operands are */
    OP_COMMUTES = 1 << 9, /* operands 0 and 1 may be exchanged: equal nodes merge */
    OP_REPEATS = 1 << 18, /* the result has the elements of operand 0, each several times along a dimension (Repeat) */

    OP_DRAWS = 1 << 19, /* draws random numbers: two nodes, and two runs, draw others */

    /* Cost. */
    OP_ELEMENTWISE = 1 << 10, /* of an element of each operand, alike for all: fusable */
    OP_VIEW = 1 << 11,        /* the result has the bytes of operand 0 (Reshape, Squeeze, Identity): no cost, no memory */
    OP_FUNCTION = 1 << 22,    /* evaluates an exponential function, or its like, for each element of the result */
    OP_RECURS = 1 << 20,      /* every row of operand 0 goes through operands 1 and 2, one direction each */
    OP_CONVOLVES = 1 << 25,   /* windows of every channel: a vector of channels at once, which lie last in memory */
    OP_SPREADS = 1 << 26,     /* adds up products one by one where they belong (ConvTranspose) */
    OP_PERMUTES = 1 << 27,    /* exchanges dimensions, by attribute perm */
    OP_NARROW = 1 << 28,      /* operand 1 holds numbers of attribute bits each, several in a byte */
    OP_INTEGERS = 1 << 29,    /* multiplies integers, or numbers that it rounds to these */
    OP_ROUTES = 1 << 12,      /* a row passes attribute k of the experts that dimension 0 of its weights counts */

    /* Running. */
    OP_INTERNAL = 1 << 13,   /* exists only inside tpc: expanded at emit, or made by tpc-run */
    OP_COLLECTIVE = 1 << 14, /* communicates: of domain tpc */
    OP_CONTROL = 1 << 15,    /* runs its subgraphs */
    OP_IN_PLACE = 1 << 24,   /* its kernel makes the result in the memory of operand 0: nothing else reads that, or nothing changes */
    OP_CAPACITY = 1 << 16,   /* its kernel reads operands whose memory has capacity beyond their size (struct tensor) */
    OP_CHUNKS = 1 << 17,     /* its kernel makes the addends of an ordered sum (struct share, kern/kern.h) over a sharded dimension */
    OP_PACKED = 1 << 21      /* its kernel reads constants of 2 and 4 bits as they lie in files (struct tensor) */
};

/* The row of an op, or NULL. Domain "" and "ai.onnx" are one. */
const struct op *op_find(const char *domain, const char *name);
/* Rows of plug-ins (op/plugin): op becomes what the row says, which stays valid; then op_find finds it. One thread at a time. */
struct op_row;
void op_fill(struct op *, const struct op_row *);
void op_add(const struct op *);
int op_count(void);
const struct op *op_at(int index);
/* Of domain ai.onnx. Most ops differ in their first letter. */
static inline bool op_is_onnx(const struct node *n, const char *op)
{
    return n && n->op && n->op->name[0] == op[0] && !*n->op->domain && strcmp(n->op->name, op) == 0;
}
struct node *op_made_by(const struct value *, const char *op); /* that node of ai.onnx, or NULL; of no value NULL */
bool op_is_tpc(const struct node *, const char *op);           /* of domain tpc */
/* Does it communicate? A collective does, and so does a recurrent net whose hidden units are split. */
bool op_communicates(const struct node *);
/* No operand that only gives sizes is left: the node is in canonical form and its rule applies. Otherwise it is kept replicated. */
bool op_resolved(const struct node *);

/* A row of the table (table/table.c), the last one without a name: everything but what is parsed from its texts. */
struct op_row {
    const char *inputs, *outputs, *attributes;
    struct op op;
};
extern const struct op_row op_rows[];

#endif
