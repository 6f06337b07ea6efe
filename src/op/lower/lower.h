/* lower: writes the split form of a node as a subgraph of other nodes, its lowering.
 *
 * A row's lowering writes the node's results by ordinary ops on global values: it computes the same if nothing is split. Placements inside
 * follow from those of the operands by the ordinary rules (src/plan/cost/lowering.c): reductions over the split axis are partial, and their
 * readers require communication. A node that each rank runs on its shard, against its rule, is marked (lower_on_ranks). */
#ifndef TPC_OP_LOWER_H
#define TPC_OP_LOWER_H

#include "op/rule/rule.h"

struct lowering {
    struct graph *g;
    struct node *node;
    const char *name;
    VEC(struct node *) nodes;
};
/* A further node, named after the lowered one, with one untyped result; inferred unless something is still to be set (op_node). */
struct node *lower_node(struct lowering *, const char *domain, const char *op, const char *part, int nin, struct value *const *in);
/* A copy of a node, or of the lowered node, with other operands and its own results. */
struct node *lower_copy_of(struct graph *, const struct node *, const char *name, int nin, struct value *const *in);
struct node *lower_copy(struct lowering *, const char *part, int nin, struct value *const *in);
/* Results of nodes of domain ai.onnx. */
struct value *lower_unary(struct lowering *, const char *op, const char *part, struct value *);
struct value *lower_binary(struct lowering *, const char *op, const char *part, struct value *, struct value *);
struct value *lower_where(struct lowering *, const char *part, struct value *condition, struct value *, struct value *);
struct value *lower_cast(struct lowering *, const char *part, struct value *, enum dtype);
/* At least float32, for computing. */
struct value *lower_float(struct lowering *, const char *part, struct value *);
/* perm has an entry per dimension. */
struct value *lower_reshape(struct lowering *, const char *part, struct value *, int rank, const struct dim *const *dim);
struct value *lower_transpose(struct lowering *, const char *part, struct value *, const int64_t *perm);
/* Inserts n dimensions of 1 before dimension axis (n 0: unchanged); removes dimension axis, of size 1. */
struct value *lower_unsqueeze(struct lowering *, const char *part, struct value *, int axis, int n);
struct value *lower_squeeze(struct lowering *, const char *part, struct value *, int axis);
struct value *lower_concat(struct lowering *, const char *part, int n, struct value *const *in, int axis);
/* A Split with n results of these sizes; or each of size 1. */
struct node *lower_split(struct lowering *, const char *part, struct value *, int axis, int n, const struct dim *const *size);
struct node *lower_apart(struct lowering *, const char *part, struct value *, int axis, int n);
/* Values of one type with a size of 1 along the axis, replicated by one collective. */
void lower_together(struct lowering *, int axis, int n, struct value *const *in, struct value **out);
/* Over dimensions from .. to - 1, which stay as ones. */
struct value *lower_reduce(struct lowering *, const char *op, const char *part, struct value *, int from, int to);
/* A scalar; one with a global size; one with the product of dimensions from .. to - 1. */
struct value *lower_scalar(struct lowering *, const char *part, enum dtype, double);
struct value *lower_size(struct lowering *, const char *part, const struct dim *, enum dtype);
struct value *lower_extent(struct lowering *, const char *part, const struct type *, int from, int to, enum dtype);
/* Whether the lowering of a factor (FACTOR_LOWERED) accepts this split. Every index must be held once; a factor of positions (also
 * FACTOR_POSITION) takes no splits inside a symbolic size. */
bool op_lowers(const struct rule *, int factor, const struct split *);
/* Result i of the lowered node is this value. */
void lower_result(struct lowering *, int i, struct value *);
/* Each rank runs the node on its shards. in, out: placements of all operands and results, whose global types are set. */
void lower_on_ranks(struct lowering *, struct node *, const struct placement *in, const struct placement *out);
/* The same on operands with their own placements (or replicated); all results have placement out. */
void lower_on_own(struct lowering *, struct node *, struct placement out);

/* table_lookup.c: lowerings of lookups in a split dimension. */
/* A value split along axis, with a spare element of zeros after every rank's shard: always, or if some rank may hold nothing. */
struct value *lower_with_spare(struct lowering *, struct value *, int axis, bool always);
/* Indices of operand 1 into the split dimension of operand 0: known to be in range; to be checked; labels, which do not count from the
 * end. */
enum indices { INDICES_KNOWN, INDICES_GIVEN, INDICES_LABELS };
/* Indices relative to each rank's shard, and whether they are inside it. Others point at the spare element, or else at any. */
struct value *lower_local_index(struct lowering *, enum indices, struct value *, bool always, struct value **inside);
/* Result 0 of the lowered node, run again by each rank with other operands: its shards of those that are split. */
struct value *lower_again(struct lowering *, const char *part, struct value *const *in);
/* Result 0 of the lowered node is a sum: each rank adds what it found if that is inside, else zero. */
void lower_addends(struct lowering *, struct value *inside, struct value *found);
/* Result 0 of the lowered node, a scatter into operand 0, by each rank into its shard: updates outside go to a spare element, which is
 * removed. index: local indices with a spare. */
void lower_scattered(struct lowering *, struct value *index);
/* The same if updates are added: outside, -0 is added, which changes nothing, so the shard is not copied for a spare element. inside: for
 * each update. */
void lower_added(struct lowering *, struct value *index, struct value *inside);

/* position.c: positions 0 to n - 1 of a dimension, i64[n]; each rank its shard of them. */
struct value *lower_count(struct lowering *, const char *part, const struct dim *n);
struct value *lower_positions(struct lowering *, const char *part, const struct split *);
/* start + position * step */
struct value *lower_progression(struct lowering *, struct value *positions, const struct dim *start, const struct dim *step);
/* Positions along dimension axis of such a type, to be broadcast; split NULL: all. */
struct value *lower_positions_along(struct lowering *, const char *part, const struct type *, int axis, const struct split *);

#endif
