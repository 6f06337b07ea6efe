/* collective: result types of AllGather, ReduceScatter, AllToAll, Redistribute, Dispatch and Combine.
 *
 * On the global graph (rank -1) types are global and a collective changes none of them. On a rank's graph the splits `from` and `to`
 * determine this rank's part, and `extent` is the global size of the dimension: of the axis; for AllToAll of concat_axis, the gathered
 * dimension (two entries: split_axis first). */
#include "op/infer/infer.h"
#include "op/runtime/runtime.h"
#include "op/table/table.h"

#include <string.h>

static const struct split *split_attribute(const struct graph *g, const struct node *node, const char *name)
{
    const char *error = NULL, *text = attr_is_set(node, name) ? attr_string(node, name) : NULL;
    if (!text)
        fail("%s: attribute '%s' is missing", node_where(g, node), name);
    const struct split *split = split_parse(g->alg, text, &error);
    if (!split)
        fail("%s: attribute '%s' is not a split: %s", node_where(g, node), name, error ? error : text);
    if (g->rank >= 0 && split->ranks != g->ranks)
        fail("%s: attribute '%s' is for %d ranks, the graph for %d", node_where(g, node), name, split->ranks, g->ranks);
    return split;
}

/* The last entry of extent, which is the last operand; NULL if its content is unknown. */
static const struct dim *global_extent(struct graph *g, const struct node *node)
{
    const struct dim *const *at;
    int n = op_size_operand(g, node, node->op->nin - 1, "extent", &at);
    if (n == -2)
        fail("%s: the extent is missing", node_where(g, node));
    return n > 0 ? at[n - 1] : NULL;
}

/* This rank's part of a dimension of global size n, checked against the split. */
static const struct dim *held_extent(struct graph *g, const struct node *node, const struct split *split, const struct dim *n)
{
    if (n)
        op_same_dim(g, node, split_size(g->alg, split), n, "the split and the extent");
    return split_extent(g->alg, split, g->rank);
}

/* Copies x's type if types are global; true if the caller must compute local types. */
static bool copy_type(struct graph *g, struct node *node, struct type *type)
{
    *type = *op_operand(g, node, 0);
    if (g->rank < 0)
        op_result(g, node, 0, type->dtype, type->rank, type->dim);
    return g->rank >= 0;
}

/* The extents of all ranks (extent_of) add up to the split's size. */
void value_allreduce(struct graph *g, struct node *node)
{
    const struct type *t = &node->out[0]->type;
    if (attr_is_set(node, "extent_of") && t->dtype == DT_I64 && t->rank == 1 && dim_equals(t->dim[0], 1))
        op_set_dims(g, node, 1)[0] = split_size(g->alg, split_attribute(g, node, "extent_of"));
}

static int axis_attribute(const struct graph *g, const struct node *node, const char *name, const struct type *type)
{
    return op_axis(g, node, attr_int(node, name), type->rank);
}

/* For rows that travel: a weight per row and expert. */
static void check_travel(struct graph *g, const struct node *node, int axis)
{
    const struct type *x = op_operand(g, node, 0);
    if (node->op->nin == 2)
        return;
    split_attribute(g, node, "experts");
    for (int i = 1; i <= 2; i++) {
        op_need_rank(g, node, i, 2, 2);
        op_same_dtype(g, node, 0, i);
    }
    if (!dtype_is_float(x->dtype) || axis > x->rank - 2)
        fail("%s: axis is %d of %s, expected one of the rows of floats", node_where(g, node), axis, type_str(g->arena, x));
}

/* The axis is split by `from`; the result is split by `to`, or has the whole axis. */
static void infer_gathered(struct graph *g, struct node *node, bool split)
{
    struct type type;
    if (!copy_type(g, node, &type))
        return;
    int axis = axis_attribute(g, node, "axis", &type);
    const struct dim *n = global_extent(g, node);
    check_travel(g, node, axis);
    op_same_dim(g, node, type.dim[axis], held_extent(g, node, split_attribute(g, node, "from"), n), "the operand and what the rank holds");
    if (split)
        type.dim[axis] = held_extent(g, node, split_attribute(g, node, "to"), n);
    else
        type.dim[axis] = n ? n : op_unknown_dim(g, node, 0, axis);
    op_result(g, node, 0, type.dtype, type.rank, type.dim);
}

INFER_IS(allgather, infer_gathered(g, node, false))
INFER_IS(redistribute, infer_gathered(g, node, true))

void infer_reducescatter(struct graph *g, struct node *node)
{
    struct type type;
    if (!copy_type(g, node, &type))
        return;
    int axis = axis_attribute(g, node, "axis", &type);
    const struct dim *n = global_extent(g, node);
    check_travel(g, node, axis);
    if (n)
        op_same_dim(g, node, type.dim[axis], n, "the operand and the extent");
    type.dim[axis] = held_extent(g, node, split_attribute(g, node, "to"), n);
    op_result(g, node, 0, type.dtype, type.rank, type.dim);
}

void infer_alltoall(struct graph *g, struct node *node)
{
    struct type type;
    if (!copy_type(g, node, &type))
        return;
    int cut = axis_attribute(g, node, "split_axis", &type), join = axis_attribute(g, node, "concat_axis", &type);
    const struct dim *n = global_extent(g, node);
    op_same_dim(g, node, type.dim[join], held_extent(g, node, split_attribute(g, node, "from"), n), "the operand and what the rank holds");
    type.dim[cut] = held_extent(g, node, split_attribute(g, node, "to"), type.dim[cut]);
    type.dim[join] = n ? n : op_unknown_dim(g, node, 0, join);
    op_result(g, node, 0, type.dtype, type.rank, type.dim);
}

bool collective_in_strips(const struct node *node)
{
    static const char *const at_once[] = {"AllToAll", "Redistribute", "Dispatch", "Combine"};
    for (size_t i = 0; i < sizeof at_once / sizeof *at_once; i++)
        if (strcmp(node->op->name, at_once[i]) == 0)
            return false;
    return true;
}
