/* block: parts of graphs as models have them, built from standard ops. */
#ifndef TPC_TESTS_BLOCK_H
#define TPC_TESTS_BLOCK_H

#include "tests/graphs/sketch.h"

/* Any of them; nothing, or a part of it, where the draws don't suit. */
void make_block(struct sketch *);
/* A matrix [rows, columns] whose products keep their magnitude; contracted: the dimension that is summed over. (make_product.c) */
struct value *make_weight(struct sketch *, const struct dim *rows, const struct dim *columns, const struct dim *contracted);

/* ---- block.c ---- */
/* A hidden state [batch, rows, width], width an even integer. */
struct value *block_hidden(struct sketch *);
/* x W + b: the last dimension becomes `columns`. The bias may be missing. */
struct value *block_linear(struct sketch *, struct value *x, const struct dim *columns);
/* A slice of the last dimension. */
struct value *block_columns(struct sketch *, struct value *x, int64_t from, int64_t to);
struct value *block_reshape(struct sketch *, struct value *x, int rank, const struct dim *const *dim);
struct value *block_transpose(struct sketch *, struct value *x, int rank, const int64_t *perm);
struct value *block_norm(struct sketch *, struct value *x);
/* ---- block_attention.c ---- */
/* The residual stream after a layer of attention. */
struct value *block_attention(struct sketch *, struct value *x);

#endif
