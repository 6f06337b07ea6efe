/* op: what an operation means: inference of types, shape values, factor rule, lowering. One row per op in schemas/ops.def names its
 * functions, which stand side by side in src/op/FAMILY; its kernels are in the twin folder src/kern/FAMILY.
 *
 * This header has what every user of rows needs: their flags and the look-up (registry.c). */
#ifndef TPC_OP_H
#define TPC_OP_H

#include "ir/ir.h"

enum op_flag {
    OP_PRODUCT = 1,     /* MatMul, Gemm, Conv, fused attention: sequence splits do not pass; a weight operand seeds splits */
    OP_BARRIER = 2,     /* Softmax and the like: sequence splits do not pass */
    OP_ELEMENTWISE = 4, /* fusable: costed as a third of its bytes */
    OP_VIEW = 8,        /* the output is the input's bytes: Reshape, Squeeze, Identity; no cost */
    OP_INTERNAL = 16,   /* exists only inside; has an emit expansion */
    OP_COLLECTIVE = 32, /* domain tpc */
    OP_COMMUTES = 64,   /* operands 0 and 1 may be exchanged (equal nodes merge) */
    OP_SEEDS = 128,     /* its weight operands seed splits: MatMul, Gemm, Conv, Gather */
    OP_GROWS = 256,     /* a state pair may pass: output = past + new along an axis (Concat, fused attention) */
    OP_STEPS = 512,     /* its kernel reads operands whose memory has room to grow (struct tensor) */
    OP_DECODES = 1024,  /* what it makes of a weight is the same weight (DequantizeLinear): products read it as it is stored */
    OP_BOUNDED = 2048,  /* its results are no larger than 1, or NaN, whatever it is given */
    OP_ROUTES = 4096,   /* a row goes through attribute k of the experts that dimension 0 of its weights counts */
    OP_CONTROL = 8192,  /* runs its bodies */
    OP_CHUNKS = 16384, /* its kernel makes the terms that struct share (kern/kern.h) tells of, where it sums floats over a dimension that is
                          dealt out */
    OP_SCORES = 32768  /* operand 0 are scores of classes, whose split style loss-parallel asks for */
};

/* The row of an op, or NULL. Domain "" and "ai.onnx" are one. */
const struct op *op_find(const char *domain, const char *name);
int op_count(void);
const struct op *op_at(int index);
bool op_is_onnx(const struct node *, const char *op); /* of domain ai.onnx */
bool op_is_tpc(const struct node *, const char *op);  /* of domain tpc */

/* A row of the table (table/table.c), the last one without a name: everything but what is parsed from its texts. */
struct op_row {
    const char *inputs, *outputs, *attributes;
    struct op op;
};
extern const struct op_row op_rows[];

#endif
