/* lower: writes the split form of a node as a subgraph of other nodes, its lowering.
 *
 * A row's lowering writes the node's results by ordinary ops on global values: it computes the same when nothing is split. Placements
 * inside follow from those of the operands by the ordinary rules (src/plan/cost/lowering.c): reductions over the split axis come out
 * partial, and communication appears where they are read. A node that each rank runs on its shard, against its rule, is marked so
 * (lower_on_ranks). */
#ifndef TPC_OP_LOWER_H
#define TPC_OP_LOWER_H

#include "op/rule/rule.h"

struct lowering {
    struct graph *g;
    struct node *node;
    const char *name;
    VEC(struct node *) nodes;
};
/* One more node, named after the lowered one, with one untyped result; inferred unless something has still to be set (op_node). */
struct node *lower_node(struct lowering *, const char *domain, const char *op, const char *part, int nin, struct value *const *in);
/* A node, and the lowered node, with other operands, and results of its own. */
struct node *lower_copy_of(struct graph *, const struct node *, const char *name, int nin, struct value *const *in);
struct node *lower_copy(struct lowering *, const char *part, int nin, struct value *const *in);
/* Results of nodes of domain ai.onnx. */
struct value *lower_unary(struct lowering *, const char *op, const char *part, struct value *);
struct value *lower_binary(struct lowering *, const char *op, const char *part, struct value *, struct value *);
struct value *lower_where(struct lowering *, const char *part, struct value *condition, struct value *, struct value *);
struct value *lower_cast(struct lowering *, const char *part, struct value *, enum dtype);
/* At least float32, to compute in. */
struct value *lower_float(struct lowering *, const char *part, struct value *);
/* perm has an entry for each dimension. */
struct value *lower_reshape(struct lowering *, const char *part, struct value *, int rank, const struct dim *const *dim);
struct value *lower_transpose(struct lowering *, const char *part, struct value *, const int64_t *perm);
/* n dimensions of 1 before dimension axis (n 0: as it is); without dimension axis, of 1. */
struct value *lower_unsqueeze(struct lowering *, const char *part, struct value *, int axis, int n);
struct value *lower_squeeze(struct lowering *, const char *part, struct value *, int axis);
struct value *lower_concat(struct lowering *, const char *part, int n, struct value *const *in, int axis);
/* A Split with n results of these sizes; of size 1. */
struct node *lower_split(struct lowering *, const char *part, struct value *, int axis, int n, const struct dim *const *size);
struct node *lower_apart(struct lowering *, const char *part, struct value *, int axis, int n);
/* Values of one type with a size of 1 along the axis, replicated by one collective. */
void lower_together(struct lowering *, int axis, int n, struct value *const *in, struct value **out);
/* Over dimensions from to to - 1, which are kept as ones. */
struct value *lower_reduce(struct lowering *, const char *op, const char *part, struct value *, int from, int to);
/* A scalar; of a global size; of the product of dimensions from to to - 1. */
struct value *lower_scalar(struct lowering *, const char *part, enum dtype, double);
struct value *lower_size(struct lowering *, const char *part, const struct dim *, enum dtype);
struct value *lower_extent(struct lowering *, const char *part, const struct type *, int from, int to, enum dtype);
/* Does the lowering of a factor (FACTOR_LOWERED) accept this split? Every index is held once; one that counts positions (FACTOR_POSITION,
 * too) takes no splits inside a symbolic size. */
bool op_lowers(const struct rule *, int factor, const struct split *);
/* Result i of the lowered node is this value. */
void lower_result(struct lowering *, int i, struct value *);
/* Each rank runs the node on its shards. in, out: placements of all operands and results, whose global types are set. */
void lower_on_ranks(struct lowering *, struct node *, const struct placement *in, const struct placement *out);
/* The same on operands as they are placed (or replicated); all results have placement out. */
void lower_on_own(struct lowering *, struct node *, struct placement out);

/* table_lookup.c: lowerings of lookups in a split dimension. */
/* A value that is split along axis, with a spare element of zeros after the shard of every rank: always, or if some rank may hold nothing.
 */
struct value *lower_with_spare(struct lowering *, struct value *, int axis, bool always);
/* Indices of operand 1 into the split dimension of operand 0: known to be in range; to be checked; labels, which don't count from the end.
 */
enum indices { INDICES_KNOWN, INDICES_GIVEN, INDICES_LABELS };
/* Indices within the shard of each rank, and whether they are inside it. Those outside point at the spare element, or else at any. */
struct value *lower_local_index(struct lowering *, enum indices, struct value *, bool always, struct value **inside);
/* Result 0 of the lowered node run again, by each rank on other operands: its shards of those that are split. */
struct value *lower_again(struct lowering *, const char *part, struct value *const *in);
/* Result 0 of the lowered node is a sum. Each rank adds what it has found if that is inside, else zero. */
void lower_addends(struct lowering *, struct value *inside, struct value *found);
/* Result 0 of the lowered node, a scatter into operand 0, by each rank into its shard: what is outside goes to a spare element, which is
 * cut off. index: local indices with a spare. */
void lower_scattered(struct lowering *, struct value *index);
/* The same where updates are added: what is outside adds -0, which changes nothing, so the shard is not copied for a spare element. inside:
 * of each update. */
void lower_added(struct lowering *, struct value *index, struct value *inside);

/* position.c: positions 0 to n - 1 of a dimension, i64[n]; each rank its shard of them. */
struct value *lower_count(struct lowering *, const char *part, const struct dim *n);
struct value *lower_positions(struct lowering *, const char *part, const struct split *);
/* start + position * step */
struct value *lower_progression(struct lowering *, struct value *positions, const struct dim *start, const struct dim *step);
/* Those of dimension axis of such a type, to be broadcast; split NULL: all. */
struct value *lower_positions_along(struct lowering *, const char *part, const struct type *, int axis, const struct split *);

#endif
