/* op/expand: making the nodes of expansions. Each is appended to the graph; names are found again on every rank. */
#ifndef TPC_OP_EXPAND_H
#define TPC_OP_EXPAND_H

#include "op/op.h"

/* A node of domain ai.onnx with one result: out, or a new value (out NULL). type: of that, where no inference gives it; else NULL. */
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
/* A scalar constant, and zero; those of one name are made once. */
struct value *expand_scalar(struct graph *, const char *name, enum dtype, const void *bytes);
struct value *expand_zero(struct graph *, enum dtype);

#endif
