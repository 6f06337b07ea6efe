/* canon: rewrites a graph so that equal computations have equal forms, independent of the exporter, in ops that have rules. */
#ifndef TPC_OP_CANON_H
#define TPC_OP_CANON_H

#include "ir/ir.h"

/* ---- canonical.c ---- */
/* Rewrites a typed node to canonical form: size operands with known content move into attributes or the output type (all of them or none),
 * axes become nonnegative, defaults that depend on the rank are written out. */
void canon_node(struct graph *, struct node *);

/* ---- fold.c ---- */
/* Evaluates nodes of a typed graph whose operands are all constants, if the results are small; merges equal small constants. */
void canon_fold(struct graph *);

/* ---- shape_data.c ---- */
/* Replaces shape arithmetic of a typed graph that is read as data by constants and Dims nodes. The rest is then dead. */
void canon_shape_data(struct graph *);

/* ---- rewrite.c, equal_nodes.c, dequantize_pattern.c, einsum_to_matmul.c, ms_attention_to_onnx.c, quantized_scales.c ---------- */
/* The list of nodes being written. A rewrite looks at one node; true: nodes pushed since then replace it, the last one with its result. */
struct rewrite {
    struct graph *g;
    VEC(struct node *) nodes;
    bool changed; /* also set by a rewrite that changes a node's operands */
};
/* Whether anything changed. */
bool rewrite_all(struct graph *, bool (*)(struct rewrite *, struct node *));
/* A new node with one result still to be set, named after the node that it replaces. */
struct node *rewrite_node(struct rewrite *, const char *domain, const char *op, const struct node *root, int nin, struct value *const *in);
/* Gives it a result of its own and infers its type; type: for ops whose result type is given (NULL otherwise). */
struct value *rewrite_value(struct rewrite *, struct node *, const struct type *);
void canon_remove_noops(struct graph *);
struct value *canon_whole_scatter(const struct node *); /* whole_scatter.c: the value that equals its result; NULL: none */
void canon_merge_equal_nodes(struct graph *);
bool canon_slices_to_splits(struct graph *); /* whether there were any */
bool canon_merge_reshapes(struct rewrite *, struct node *);
bool canon_gather_to_slice(struct rewrite *, struct node *);
bool canon_tile_to_expand(struct rewrite *, struct node *);
bool canon_find_repeat(struct rewrite *, struct node *);
bool canon_unflatten_product(struct rewrite *, struct node *);
bool canon_einsum_to_matmul(struct rewrite *, struct node *);
bool canon_ms_attention_to_onnx(struct rewrite *, struct node *);
bool canon_find_dequantize(struct rewrite *, struct node *);
bool canon_quantized_scales(struct rewrite *, struct node *);

/* ---- hoist_row_scalar.c: in a graph with placements and explicit reshards ---- */
/* Rewrites the partial value v of elements looked up in x - r or x / r so that it depends on x alone, not on r. after: by value id, the
 * values that would wait. False: v is no such value, or x would wait, too. */
bool canon_hoist_row_scalar(struct graph *, struct value *v, const bool *after);

/* ---- bind_input.c: graph inputs fixed to constants (--bind), as texts NAME=VALUE[,VALUE...] ---- */
struct bound_inputs {
    VEC(const char *) list;
};
/* Replaces the input by a constant, and notes that in the metadata. Fails on wrong names, types and counts. */
void op_bind_input(struct graph *, const char *text);
/* Whether the input's value controls a branch or a loop, or becomes a size. */
bool op_decides_form(const struct graph *, const struct value *input);
/* Removes inputs that nothing reads; the metadata names them. */
void op_drop_unread(struct graph *);
/* The elements of a list of values, and their number. */
void *op_bound_data(struct arena *, const char *name, enum dtype, const char *values, int64_t *n);
/* The fixed inputs, as such texts. */
struct bound_inputs op_bound_inputs(const struct graph *);

#endif
