/* infer: types and shape information of results from those of operands: what the inference functions of all families share, the making
 * of typed nodes, and evaluation at compile time.
 *
 * Inference and value see both forms of a node: an operand that gives sizes is read through its dims value; where it is absent, the
 * attribute or the recorded output type tells. */
#ifndef TPC_OP_INFER_H
#define TPC_OP_INFER_H

#include "ir/ir.h"

/* Type of operand i; absent or untyped is a failure naming it. */
const struct type *op_operand(const struct graph *, const struct node *, int i);
/* The text after "the type is not known": the op to blame; "" if there is none. */
const char *op_why_untyped(struct arena *, const struct value *);
/* Sets the type of output i where the node has it. */
void op_result(struct graph *, struct node *, int i, enum dtype, int rank, const struct dim *const *dim);
/* The one size of two dims that must agree. Different symbolic ones are equated; a contradiction is a failure. what: "the inner
 * dimensions of A and B" ... */
const struct dim *op_same_dim(struct graph *, const struct node *, const struct dim *a, const struct dim *b, const char *what);
/* One dimension of a broadcast: 1 gives way, else they must agree. */
/* Is a >= b, perhaps under an assumption that a size of the inputs is not 0 (algebra/dim/not_zero.c)? */
bool op_assume_ge(struct graph *, const struct node *, const struct dim *a, const struct dim *b, const char *what);
const struct dim *op_broadcast_dim(struct graph *, const struct node *, const struct dim *a, const struct dim *b, const char *what);
/* Right-aligned broadcast of n types; dtype is that of the first. */
struct type op_broadcast(struct graph *, const struct node *, int n, const struct type *const *type);
/* Types whose elements share bytes are those of weights: a graph input or output of such a type is a failure. */
/* Operands a and b must have one element type. */
void op_same_dtype(const struct graph *, const struct node *, int a, int b);
/* Operand i must have least to most dimensions. */
void op_need_rank(const struct graph *, const struct node *, int i, int least, int most);
/* Operand i must hold indices: i32 or i64. */
void op_index_type(const struct graph *, const struct node *, int i);
/* An axis in [-rank, rank) as [0, rank); anything else is a failure. */
int op_axis(const struct graph *, const struct node *, int64_t axis, int rank);
/* Fails if one of n axes is named twice; done: what happens to an axis, as a participle. */
void op_distinct_axes(const struct graph *, const struct node *, int n, const int *axis, const char *done);
/* Entries of a vector of shape information; longer ones are data. */
enum { MOST_ENTRIES = 4096 };
bool op_carries_dims(enum dtype); /* sizes and truth values */
/* Shape information of a value: its dims, or those of a small integer or boolean constant (remembered); NULL when there is none. */
const struct dims_value *op_dims(struct graph *, struct value *);
/* The same of a value of up to 2 dimensions, row by row: pads of one exporter are a table of pairs that is transposed. Only ops that
 * move elements read and make such tables. */
const struct dims_value *op_entries(struct graph *, struct value *);
/* Gives output 0 of the node its shape information: room for n expressions, to be filled. */
const struct dim **op_set_dims(struct graph *, struct node *, int n);
/* Sizes as expressions: of shape operand i if the node still has it, else of the folded DIMS attribute. Returns the count; -1: present but
 * not known; -2: neither. */
int op_size_operand(struct graph *, const struct node *, int i, const char *attr, const struct dim *const **out);
/* The number in a constant of one element; a whole number in one, which no rounding of floats has made so. False: there is none. */
#define OP_LARGEST_WHOLE 1e15
bool op_constant_number(const struct value *, double *out);
bool op_constant_real(const struct value *, double *out); /* the same of floats */
bool op_whole_constant(const struct value *, int64_t *out);
/* Every element of a float constant has a magnitude between lo and hi; `absent` where its file is missing (a dry run needs no weights). */
bool op_constant_within(struct constant *, const char *name, double lo, double hi, bool absent);

/* Dimension d of output i is data-dependent: a symbol, the same one at every inference. */
const struct dim *op_unknown_dim(struct graph *, const struct node *, int i, int d);
/* Every dimension of output i, of that rank, is data-dependent. */
void op_unknown_result(struct graph *, struct node *, int i, enum dtype, int rank);
/* How many axes operand i names where their values are not known; a number that is not known either is a failure. */
int op_axes_count(struct graph *, const struct node *, int i);

/* infer_NAME and value_NAME, for ops.def, where they are a call of a function for several ops. */
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
/* Runs the node's kernel at compile time when every operand is a constant (or shape information that is all integers): its outputs
 * become constants and the node loses them (nout 0: the caller drops it). False, and nothing changed, when that can't be done. */
bool op_evaluate(struct graph *, struct node *);
/* By value id: a filter decoded from 8-bit integers. It is not evaluated, for a convolution may read the integers. */
const bool *op_decoded_filters(struct arena *, const struct graph *);
/* A node of constants, whose results become constants that are computed whenever they are read after a release. false: it is none. */
bool op_evaluate_later(struct graph *, struct node *);
/* The constant made of integer shape information; its dtype and rank are the value's. NULL when an entry is symbolic. */
struct constant *op_dims_constant(struct graph *, const struct value *);
/* Known shape information that is all integers. */
bool op_dims_are_static(const struct value *);

/* What a kernel's function counts on the operands in this set, the only ones it sees; -1 where one of them is known only at run time. */
struct kcall;
int64_t op_counted(struct graph *, const struct node *, uint32_t operands, int64_t (*count)(struct kcall *));
/* Dimension d of result 0 that is so counted. Once it is data-dependent it stays so, even when a later pass folds the operands: others have
 * its symbol in their types. */
const struct dim *op_counted_dim(struct graph *, const struct node *, int d, uint32_t operands, int64_t (*count)(struct kcall *));

/* ---- make_node.c: for passes and lowerings; appended to the graph by the caller ---- */
/* A node with one output, typed by its op's inference; not inserted. Where an attribute without default is still to be set, or the
 * output type is to be given (Reshape, Expand), the caller does that and calls op_infer. */
struct node *op_node(struct graph *, const char *domain, const char *op, const char *name, int nin, struct value *const *in);
/* Runs the row's inference (and value); unknown ops keep declared output types. */
void op_infer(struct graph *, struct node *);
/* The same, but g->undecided may be set; then the types of the results are not known. */
void op_try_infer(struct graph *, struct node *);

/* ---- undecided.c: forms that sizes or values of inputs decide ---- */
/* Notes in g->undecided what can't be told as long as the sizes of a type, or what values follow from, is not known. False: all of it is
 * known. */
bool op_undecided_by_type(struct graph *, const struct type *, const char *what);
bool op_undecided_by_values(struct graph *, int n, struct value *const *, const char *what);
/* It follows from this size, too. */
void op_undecided_also(struct graph *, const struct dim *);
void op_fail_undecided(const struct graph *) __attribute__((noreturn));

#endif
