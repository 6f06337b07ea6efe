/* emit: makes a rank's graph standard ONNX again: sizes become tensors, and ops that exist only inside tpc become standard ops.
 *
 * All functions append to g->nodes in any order; graph_sort sorts them. Rank graphs get the same nodes and names: if sizes differ between
 * ranks, only a constant differs. */
#ifndef TPC_OP_EMIT_H
#define TPC_OP_EMIT_H

#include "ir/ir.h"

/* ---- shape_tensor.c ---- */
/* Integers or expressions as an i64[n] tensor; each expression is computed once per graph from Shape of graph inputs. */
struct value *shape_tensor(struct graph *, int n, const struct dim *const *);
/* The same for several ranks: dims[r] are the n expressions of rank r; the result is this rank's. */
struct value *shape_tensor_of_rank(struct graph *, int ranks, int rank, int n, const struct dim *const *const *dims);
/* An i64[n] tensor in another dtype, or (n = 1) as a scalar. */
struct value *shape_tensor_as(struct graph *, struct value *, enum dtype, bool scalar);

/* ---- expand.c, size_operands.c ---- */
/* Replaces nodes by their rows' expansions; keeps nodes of ops that stay, and of ops with one of the flags `but`. */
void expand_nodes(struct graph *, unsigned but);
/* peers[r]: the same node in the graph of rank r, in canonical form. Returns the rank's node with its size operands restored (peers are not
 * changed); the caller appends it. */
struct node *size_operands_restore(struct graph *, int ranks, int rank, struct node *const *peers);

/* ---- expand_make.c: nodes of expansions; each is appended to the graph, and names are the same on every rank ---- */
/* A node of domain ai.onnx with one result: out, or a new value (out NULL). type: of the result, if inference does not give it; else
 * NULL. */
struct node *expand_append(struct graph *, const char *op, const char *name, int nin, struct value *const *in, struct value *out,
                           const struct type *type);
/* The same, inferred; they return the result. */
struct value *expand_unary(struct graph *, const char *op, const char *name, struct value *x, struct value *out);
struct value *expand_binary(struct graph *, const char *op, const char *name, struct value *a, struct value *b, struct value *out);
struct value *expand_where(struct graph *, const char *name, struct value *c, struct value *a, struct value *b, struct value *out);
struct value *expand_gather(struct graph *, const char *name, struct value *x, struct value *index, int axis, struct value *out);
/* Reshape or Expand to a type. */
struct value *expand_shaped(struct graph *, const char *op, const char *name, struct value *x, struct value *out, const struct type *to);
/* "node/part". */
const char *expand_name(struct graph *, const struct node *, const char *part);
/* A scalar constant; a zero. Each name is made once. */
struct value *expand_scalar(struct graph *, const char *name, enum dtype, const void *bytes);
struct value *expand_zero(struct graph *, enum dtype);

#endif
