/* reduce: reductions and running sums. A reduced dimension is a factor that only the operand has; if split, it leaves partial values. The
 * mean of parts is no part of the mean: ReduceMean is lowered to a sum. */
#include "op/infer/infer.h"
#include "op/lower/lower.h"
#include "op/op.h"
#include "op/rule/rule.h"
#include "op/table/table.h"

/* The reduced axes, in the order of dimensions. False: they are data-dependent. */
static bool axes_to_reduce(struct graph *g, const struct node *node, int rank, bool *reduced)
{
    const struct dim *const *axes = NULL;
    int n = op_size_operand(g, node, 1, "axes", &axes);
    if (n == -1)
        return false;
    bool none = n <= 0, all = none && attr_int(node, "noop_with_empty_axes") == 0;
    for (int d = 0; d < rank; d++)
        reduced[d] = all;
    for (int i = 0; i < n; i++) {
        int64_t axis;
        if (!dim_is_int(axes[i], &axis))
            fail("%s: axis %s is not a number", node_where(g, node), dim_str(g->arena, axes[i]));
        reduced[op_axis(g, node, axis, rank)] = true;
    }
    return true;
}

void infer_reduce(struct graph *g, struct node *node)
{
    const struct type *x = op_operand(g, node, 0);
    bool reduced[MAX_RANK], keep = attr_int(node, "keepdims") != 0;
    const struct dim *dim[MAX_RANK];
    int rank = 0;
    if (!axes_to_reduce(g, node, x->rank, reduced)) {
        op_unknown_result(g, node, 0, x->dtype, keep ? x->rank : x->rank - op_axes_count(g, node, 1));
        return;
    }
    for (int d = 0; d < x->rank; d++)
        if (!reduced[d])
            dim[rank++] = x->dim[d];
        else if (keep)
            dim[rank++] = dim_int(g->alg, 1);
    op_result(g, node, 0, x->dtype, rank, dim);
}

/* ---- shape arithmetic --------------------------------------------------------------------------------------------------------- */

/* A vector reduced over its only axis; anything else is unchanged or unknown. */
static void value_reduce(struct graph *g, struct node *node, const struct dim *(*f)(struct alg *, const struct dim *, const struct dim *),
                         const struct dim *start)
{
    const struct type *type = op_operand(g, node, 0);
    bool whole = type->dtype == DT_I64 || type->dtype == DT_I32, reduced[MAX_RANK] = {false};
    const struct dims_value *x = whole && type->rank == 1 ? op_dims(g, node->in[0]) : NULL;
    if (!x || (x->n == 0 && !start))
        return;
    if (!axes_to_reduce(g, node, 1, reduced) || !reduced[0])
        return;
    const struct dim *sum = x->n > 0 ? x->at[0] : start;
    for (int i = 1; i < x->n; i++)
        sum = f(g->alg, sum, x->at[i]);
    op_set_dims(g, node, 1)[0] = sum;
}

VALUE_IS(reducesum, value_reduce(g, node, dim_add, dim_int(g->alg, 0)))
VALUE_IS(reducemin, value_reduce(g, node, dim_min, NULL))
VALUE_IS(reduceprod, value_reduce(g, node, dim_mul, dim_int(g->alg, 1)))
VALUE_IS(reducemax, value_reduce(g, node, dim_max, NULL))

/* ---- rules ------------------------------------------------------------------------------------------------------------------------ */

uint32_t over_reduced(struct graph *g, const struct node *node)
{
    bool reduced[MAX_RANK];
    uint32_t set = 0;
    axes_to_reduce(g, node, node->in[0]->type.rank, reduced);
    for (int d = 0; d < node->in[0]->type.rank; d++)
        set |= (uint32_t)reduced[d] << d;
    return set;
}

/* The sum over the ranks of each rank's sum divided by the global count. */
void lower_reducemean(struct lowering *l)
{
    const struct node *node = l->node;
    struct value *x = lower_float(l, "wide", node->in[0]);
    struct type counted = {.dtype = DT_F32};
    bool reduced[MAX_RANK];
    axes_to_reduce(l->g, node, x->type.rank, reduced);
    for (int d = 0; d < x->type.rank; d++)
        if (reduced[d])
            counted.dim[counted.rank++] = x->type.dim[d];
    struct node *sum = lower_node(l, "", "ReduceSum", "sum", 1, &x);
    *node_attr(sum, "axes") = *node_attr(node, "axes");
    attr_set_int(sum, "keepdims", attr_int(node, "keepdims"));
    op_infer(l->g, sum);
    struct value *count = lower_extent(l, "count", &counted, 0, counted.rank, x->type.dtype);
    lower_result(l, 0, lower_cast(l, "narrow", lower_binary(l, "Div", "mean", sum->out[0], count), node->out[0]->type.dtype));
}

/* The axis of the running sum; -1: unknown. */
static int running_axis(struct graph *g, const struct node *node, int rank)
{
    const struct dim *const *axis = NULL;
    int64_t at;
    if (op_size_operand(g, node, 1, "axis", &axis) != 1 || !dim_is_int(axis[0], &at))
        return -1;
    return op_axis(g, node, at, rank);
}

/* None: the axis is known only at run time, so it may be any. */
uint32_t over_running(struct graph *g, const struct node *node)
{
    int axis = running_axis(g, node, node->in[0]->type.rank);
    return axis < 0 ? 0 : UINT32_C(1) << axis;
}

static struct value *running(struct lowering *l, const char *part, struct value *x, int64_t axis, bool exclusive)
{
    const struct dim *at = dim_int(l->g->alg, axis);
    struct node *node = lower_node(l, "", "CumSum", part, 1, &x);
    attr_set_dims(l->g, node, "axis", 1, &at);
    attr_set_int(node, "exclusive", exclusive);
    attr_set_int(node, "reverse", attr_int(l->node, "reverse"));
    op_infer(l->g, node);
    return node->out[0];
}

/* own + before: each rank adds one element, the sum before its shard, to its shard; the global types do not show that. */
static struct value *shifted(struct lowering *l, struct value *own, struct value *before, struct placement before_place)
{
    const char *name = arena_printf(l->g->arena, "%s/sum", l->name);
    struct node *node = graph_node(l->g, op_find("", "Add"), name, 2, (struct value *[]){own, before}, 1);
    node_output(l->g, node, 0, graph_value(l->g, name, &own->type));
    VEC_PUSH(l->g->arena, &l->nodes, node);
    lower_on_ranks(l, node, (struct placement[]){own->place, before_place}, &own->place);
    return node->out[0];
}

/* Each rank sums its shard; the totals, in a dimension of one element per rank, give the sum before each shard. */
void lower_cumsum(struct lowering *l)
{
    struct graph *g = l->g;
    const struct node *node = l->node;
    const struct placement place = node->in[0]->place;
    const struct dim *ranks = dim_int(g->alg, place.split->ranks);
    const struct placement each = placement_split(place.dim, split_even(g->alg, place.split->ranks, ranks));
    bool wide = dtype_is_float(node->in[0]->type.dtype);
    struct value *x = wide ? lower_float(l, "wide", node->in[0]) : node->in[0];
    struct value *own = running(l, "own", x, place.dim, attr_int(node, "exclusive") != 0);
    lower_on_ranks(l, own->producer, &place, &place);
    struct value *total = lower_reduce(l, "ReduceSum", "total", x, place.dim, place.dim + 1);
    total->type.dim[place.dim] = ranks;
    lower_on_ranks(l, total->producer, &place, &each);
    struct value *y = shifted(l, own, running(l, "before", total, place.dim, true), each);
    lower_result(l, 0, wide ? lower_cast(l, "narrow", y, node->out[0]->type.dtype) : y);
}
