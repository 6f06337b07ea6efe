/* infer: types and shape information of results from the operands': functions for the inference of all families, typed nodes, and
 * evaluation at compile time.
 *
 * Inference and value functions see both forms of a node: a size operand is read through its dims value; if it is absent, from the
 * attribute or the recorded output type. */
#ifndef TPC_OP_INFER_H
#define TPC_OP_INFER_H

#include "ir/ir.h"

/* The type of operand i; fails, with its name, if it is absent or untyped. */
const struct type *op_operand(const struct graph *, const struct node *, int i);
/* The text after "the type is not known": the op at fault; "" if there is none. */
const char *op_why_untyped(struct arena *, const struct value *);
/* Sets the type of output i if the node has it. */
void op_result(struct graph *, struct node *, int i, enum dtype, int rank, const struct dim *const *dim);
/* The size of two dims that must be equal. Equates different symbolic ones; fails on a contradiction. what: "the inner dimensions of A and
 * B" ... */
const struct dim *op_same_dim(struct graph *, const struct node *, const struct dim *a, const struct dim *b, const char *what);
/* One dimension of a broadcast: 1 yields, else they must be equal. */
/* Whether a >= b, maybe assuming that a size of the inputs is not 0 (algebra/dim/not_zero.c). */
bool op_assume_ge(struct graph *, const struct node *, const struct dim *a, const struct dim *b, const char *what);
const struct dim *op_broadcast_dim(struct graph *, const struct node *, const struct dim *a, const struct dim *b, const char *what);
/* Right-aligned broadcast of n types, with the dtype of the first. */
struct type op_broadcast(struct graph *, const struct node *, int n, const struct type *const *type);
/* Types whose elements share bytes are for weights: fails if a graph input or output has such a type. */
/* Operands a and b must have one element type. */
void op_same_dtype(const struct graph *, const struct node *, int a, int b);
/* Operand i must have `least` to `most` dimensions. */
void op_need_rank(const struct graph *, const struct node *, int i, int least, int most);
/* Operand i must hold indices: i32 or i64. */
void op_index_type(const struct graph *, const struct node *, int i);
/* An axis in [-rank, rank) as [0, rank); fails otherwise. */
int op_axis(const struct graph *, const struct node *, int64_t axis, int rank);
/* Fails if one of n axes is named twice; done: what is done to an axis, as a participle. */
void op_distinct_axes(const struct graph *, const struct node *, int n, const int *axis, const char *done);
/* Most entries of a vector of shape information; longer ones are data. */
enum { MOST_ENTRIES = 4096 };
bool op_carries_dims(enum dtype); /* for sizes and truth values */
/* Shape information of a value: its dims, or the values of a small integer or boolean constant (cached); NULL: none. */
const struct dims_value *op_dims(struct graph *, struct value *);
/* The same of a value of up to 2 dimensions, row by row: an exporter's pads may be a transposed table of pairs. Only ops that move elements
 * read and make such tables. */
const struct dims_value *op_entries(struct graph *, struct value *);
/* Gives output 0 of the node shape information: an array of n expressions, to be filled in. */
const struct dim **op_set_dims(struct graph *, struct node *, int n);
/* Sizes as expressions: from shape operand i if the node still has it, else from the folded DIMS attribute. Returns the count; -1: present
 * but unknown; -2: neither. */
int op_size_operand(struct graph *, const struct node *, int i, const char *attr, const struct dim *const **out);
/* The number in a constant of one element; an integer in one, not made by rounding floats. False: none. */
#define OP_LARGEST_WHOLE 1e15
bool op_constant_number(const struct value *, double *out);
bool op_constant_real(const struct value *, double *out); /* the same for floats */
bool op_whole_constant(const struct value *, int64_t *out);
/* Whether every element of a float constant has a magnitude between lo and hi; `absent` if its file is missing (a dry run needs no
 * weights). */
bool op_constant_within(struct constant *, const char *name, double lo, double hi, bool absent);

/* Makes dimension d of output i data-dependent: a symbol, the same in every inference. */
const struct dim *op_unknown_dim(struct graph *, const struct node *, int i, int d);
/* Makes every dimension of output i, of that rank, data-dependent. */
void op_unknown_result(struct graph *, struct node *, int i, enum dtype, int rank);
/* The number of axes that operand i names if their values are unknown; fails if the number is unknown, too. */
int op_axes_count(struct graph *, const struct node *, int i);

/* infer_NAME and value_NAME, for ops.def, as a call of a function common to several ops. */
#define INFER_IS(name, is)                                \
    void infer_##name(struct graph *g, struct node *node) \
    {                                                     \
        is;                                               \
    }
#define VALUE_IS(name, is)                                \
    void value_##name(struct graph *g, struct node *node) \
    {                                                     \
        is;                                               \
    }

/* ---- evaluate.c ---- */
/* Runs the node's kernel at compile time if every operand is a constant (or shape information that is all integers): its outputs become
 * constants and the node loses them (nout 0: the caller drops it). False, without changes, if that is not possible. */
bool op_evaluate(struct graph *, struct node *);
/* By value id: whether it is a filter decoded from 8-bit integers. It is not evaluated, because a convolution may read the integers. */
const bool *op_decoded_filters(struct arena *, const struct graph *);
/* A node of constants whose results become constants that are computed on demand, again after each release. False: it is none. */
bool op_evaluate_later(struct graph *, struct node *);
/* The constant for integer shape information, with the value's dtype and rank. NULL if an entry is symbolic. */
struct constant *op_dims_constant(struct graph *, const struct value *);
/* Whether shape information is known and all integers. */
bool op_dims_are_static(const struct value *);

/* What a kernel's function counts, given only the operands in this set; -1 if one of them is known only at run time. */
struct kcall;
int64_t op_counted(struct graph *, const struct node *, uint32_t operands, int64_t (*count)(struct kcall *));
/* Dimension d of result 0, counted in this way. Once it is data-dependent it stays so, even if a later pass folds the operands: other types
 * contain its symbol. */
const struct dim *op_counted_dim(struct graph *, const struct node *, int d, uint32_t operands, int64_t (*count)(struct kcall *));

/* ---- make_node.c: for passes and lowerings; appended to the graph by the caller ---- */
/* A node with one output, typed by its op's inference; not inserted. If an attribute without default is still to be set, or the output type
 * is given (Reshape, Expand), the caller sets it and calls op_infer. */
struct node *op_node(struct graph *, const char *domain, const char *op, const char *name, int nin, struct value *const *in);
/* Runs the row's inference (and value function); unknown ops keep declared output types. */
void op_infer(struct graph *, struct node *);
/* The same, but may set g->undecided; then the types of the results are unknown. */
void op_try_infer(struct graph *, struct node *);

/* ---- undecided.c: forms that depend on sizes or values of inputs ---- */
/* Notes in g->undecided what is unknown because the sizes of a type, or a value's sources, are unknown. False: all of it is known. */
bool op_undecided_by_type(struct graph *, const struct type *, const char *what);
bool op_undecided_by_values(struct graph *, int n, struct value *const *, const char *what);
/* It also depends on this size. */
void op_undecided_also(struct graph *, const struct dim *);
void op_fail_undecided(const struct graph *) __attribute__((noreturn));

#endif
