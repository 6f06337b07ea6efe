/* families: for every op of the table, how legal operands are made for it, or why it is not generated. An op that is in neither list fails
 * the test of random graphs, so that a new row of schemas/ops.def comes with operands. */
#ifndef TPC_TESTS_FAMILIES_H
#define TPC_TESTS_FAMILIES_H

#include "tests/graphs/sketch.h"

/* Adds a node of this op, and maybe some that make its operands fit; nothing where the op does not take what was drawn. */
typedef void make_op(struct sketch *, const struct op *);
struct family {
    make_op *make;
    bool exact;
    const char *ops;
}; /* exact: integers stay integers; ops: names between blanks */
/* NULL: none. */
const struct family *family_of(const struct op *);
bool family_is_exact(const struct op *);
/* Why the op has no family; NULL: no reason is known. */
const char *family_reason(const struct op *);

/* ---- make_elementwise.c ---- */
make_op make_unary, make_binary, make_quotient, make_power, make_modulo, make_several, make_compare, make_logic, make_not, make_bitnot,
    make_bits, make_shift, make_where, make_clip, make_cast, make_castlike, make_prelu;
/* A value that broadcasts to x or, if wider, takes x to more dimensions. */
struct value *make_partner(struct sketch *, const struct value *x, enum dtype, bool wider);
/* ---- make_move.c ---- */
make_op make_identity, make_transpose, make_concat, make_split, make_slice, make_tile, make_trilu, make_repeat, make_pad, make_depth,
    make_resize;
/* ---- make_shape.c ---- */
make_op make_reshape, make_flatten, make_squeeze, make_unsqueeze, make_expand, make_fill, make_range, make_shape;
/* ---- make_index.c ---- */
make_op make_gather, make_gathernd, make_scatternd, make_gatherelements, make_scatterelements, make_arg, make_topk, make_onehot,
    make_cumsum, make_nonzero;
/* ---- make_reduce.c ---- */
make_op make_reduce, make_softmax, make_norm, make_skipnorm, make_channelnorm, make_globalpool, make_lrn, make_loss;
/* ---- make_product.c ---- */
make_op make_matmul, make_gemm, make_einsum, make_convtranspose;
/* Of weights: scaled so that products keep their magnitude; small integers in an exact graph. */
struct fill weight_fill(struct sketch *, const struct dim *contracted);
/* ---- make_window.c ---- */
make_op make_conv, make_pool;
/* ---- make_experts.c ---- */
make_op make_moe, make_qmoe;
/* ---- make_quantized.c ---- */
make_op make_quantize, make_dequantize, make_dynamicquantize, make_matmulinteger, make_matmulnbits, make_gatherblock;
/* ---- make_recurrent.c ---- */
make_op make_recurrent;
/* ---- make_signal.c ---- */
make_op make_dft, make_stft, make_reverse;
/* ---- make_attention.c ---- */
make_op make_attention, make_gqa, make_rotary;

/* Einsum has no kernel: it is written out before anything runs. */
void einsum_compute(struct kcall *);

#endif
