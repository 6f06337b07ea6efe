/* axis_lower: lowerings of ops along a split axis: ArgMax, ArgMin, TopK, OneHot, GatherElements, ScatterElements. */
#include "op/infer/infer.h"
#include "op/lower/lower.h"
#include "op/op.h"
#include "op/table/table.h"

/* ---- ArgMax, ArgMin ---------------------------------------------------------------------------------------------------------- */

/* Elements that equal the most extreme one. NaN is the most extreme, and equals nothing. */
static struct value *extreme(struct lowering *l, const char *most, int axis)
{
    struct value *x = l->node->in[0];
    struct value *equal = lower_binary(l, "Equal", "equal", x, lower_reduce(l, most, "most", x, axis, axis + 1));
    return dtype_is_float(x->type.dtype) ? lower_binary(l, "Or", "extreme", equal, lower_unary(l, "IsNaN", "nan", x)) : equal;
}

/* The first, or last, position of the extreme elements. */
static void lower_arg(struct lowering *l, const char *most)
{
    const struct node *node = l->node;
    const struct value *x = node->in[0];
    int axis = op_axis(l->g, node, attr_int(node, "axis"), x->type.rank);
    bool last = attr_int(node, "select_last_index") != 0;
    struct value *found = extreme(l, most, axis), *at = lower_positions_along(l, "position", &x->type, axis, x->place.split);
    struct value *none = last ? lower_scalar(l, "none", DT_I64, -1) : lower_size(l, "none", x->type.dim[axis], DT_I64);
    struct value *where = lower_where(l, "candidates", found, at, none);
    struct value *best = lower_reduce(l, last ? "ReduceMax" : "ReduceMin", "index", where, axis, axis + 1);
    attr_set_int(best->producer, "keepdims", attr_int(node, "keepdims"));
    op_infer(l->g, best->producer);
    lower_result(l, 0, best);
}

void lower_argmax(struct lowering *l)
{
    lower_arg(l, "ReduceMax");
}

void lower_argmin(struct lowering *l)
{
    lower_arg(l, "ReduceMin");
}

/* ---- TopK ---------------------------------------------------------------------------------------------------------------------- */

/* A type that holds values of this type and positions below n exactly. */
static enum dtype carrier(enum dtype dtype, int64_t n)
{
    if (!dtype_is_float(dtype))
        return DT_I64;
    return dtype == DT_F64 || n > 1 << 24 ? DT_F64 : DT_F32;
}

/* How many of the k best each rank contributes. */
static const struct split *candidate_split(struct graph *g, const struct split *split, int64_t k)
{
    int *count = NEWN(g->arena, int, split->ranks);
    struct interval *at = NEWN(g->arena, struct interval, split->ranks);
    const struct interval **list = NEWN(g->arena, const struct interval *, split->ranks);
    int64_t n = 0, held;
    for (int r = 0; r < split->ranks; r++) {
        require(dim_is_int(split_extent(g->alg, split, r), &held));
        at[r] = (struct interval){n, n + (held < k ? held : k)};
        n = at[r].hi;
        count[r] = at[r].hi > at[r].lo;
        list[r] = &at[r];
    }
    return split_list(g->alg, split->ranks, n, count, list);
}

/* The best of each rank's shard, best first, and their indices in the global dimension. */
static struct node *best_of_ranks(struct lowering *l, struct value *x, int axis, int64_t k)
{
    struct graph *g = l->g;
    const struct split *split = x->place.split;
    const char *name = arena_printf(g->arena, "%s/best", l->name);
    const struct dim *most = dim_int(g->alg, k);
    struct node *node = graph_node(g, op_find("tpc", "LocalTopK"), name, 1, &x, 2);
    for (int i = 0; i < 2; i++)
        node_output(g, node, i, graph_value(g, name, NULL));
    attr_set_int(node, "axis", axis);
    attr_set_int(node, "largest", attr_int(l->node, "largest"));
    attr_set_dims(g, node, "k", 1, &most);
    attr_set_string(node, "to", split_str(g->arena, split));
    op_infer(g, node);
    VEC_PUSH(g->arena, &l->nodes, node);
    lower_on_own(l, node, placement_split(axis, candidate_split(g, split, k)));
    return node;
}

/* Gathers values and positions in one message, and separates them again. */
static void gather_pairs(struct lowering *l, const struct node *best, int64_t n, struct value *out[2])
{
    static const char *const name[2] = {"value", "position"};
    struct value *column[2];
    int rank = best->out[0]->type.rank;
    for (int i = 0; i < 2; i++) {
        struct value *carried = lower_cast(l, arena_printf(l->g->arena, "%s.carried", name[i]), best->out[i],
                                           carrier(best->out[0]->type.dtype, n));
        column[i] = lower_unsqueeze(l, arena_printf(l->g->arena, "%s.column", name[i]), carried, rank, 1);
    }
    lower_together(l, rank, 2, column, column);
    for (int i = 0; i < 2; i++) {
        struct value *flat = lower_squeeze(l, arena_printf(l->g->arena, "%s.flat", name[i]), column[i], rank);
        out[i] = lower_cast(l, name[i], flat, best->out[i]->type.dtype);
    }
}

/* Among equal elements the lower index comes first: candidates are in the order of their ranks, which is the order of positions. */
void lower_topk(struct lowering *l)
{
    struct graph *g = l->g;
    const struct node *node = l->node;
    const struct type *x = &node->in[0]->type;
    const struct dim **k;
    int64_t most, n;
    int axis = op_axis(g, node, attr_int(node, "axis"), x->rank);
    struct value *candidate[2];
    require(attr_dims(node, "k", &k) == 1 && dim_is_int(k[0], &most) && dim_is_int(x->dim[axis], &n));
    gather_pairs(l, best_of_ranks(l, node->in[0], axis, most), n, candidate);
    struct node *top = lower_copy(l, "top", 1, candidate);
    if (node->out[0])
        lower_result(l, 0, top->out[0]);
    if (!node->out[1])
        return;
    struct node *index = lower_node(l, "", "GatherElements", "index", 2, (struct value *[]){candidate[1], top->out[1]});
    attr_set_int(index, "axis", axis);
    op_infer(g, index);
    lower_result(l, 1, index->out[0]);
}

/* ---- OneHot -------------------------------------------------------------------------------------------------------------------- */

/* The indices, counted from the start, with a dimension of 1 for the depth. */
static struct value *nonnegative_indices(struct lowering *l, const struct type *y, int axis)
{
    struct value *x = lower_cast(l, "wide", l->node->in[0], DT_I64), *zero = lower_scalar(l, "zero", DT_I64, 0);
    struct value *wrapped = lower_binary(l, "Add", "wrapped", x, lower_size(l, "depth", y->dim[axis], DT_I64));
    x = lower_where(l, "index", lower_binary(l, "Less", "below", x, zero), wrapped, x);
    return lower_unsqueeze(l, "compared", x, axis, 1);
}

/* Positions of the depth compared with the indices; those below zero count from the end. */
void lower_onehot(struct lowering *l)
{
    const struct node *node = l->node;
    const struct value *y = node->out[0];
    int axis = op_axis(l->g, node, attr_int(node, "axis"), y->type.rank);
    struct value *at = lower_positions_along(l, "position", &y->type, axis, y->place.split);
    struct value *hot = lower_binary(l, "Equal", "hot", nonnegative_indices(l, &y->type, axis), at);
    struct node *values = lower_apart(l, "values", node->in[2], 0, 2);
    lower_result(l, 0, lower_where(l, "choice", hot, values->out[1], values->out[0]));
}

/* ---- GatherElements, ScatterElements -------------------------------------------------------------------------------------------- */

void lower_gatherelements(struct lowering *l)
{
    struct value *x = l->node->in[0], *inside, *in[2] = {lower_with_spare(l, x, x->place.dim, false), NULL};
    in[1] = lower_local_index(l, INDICES_GIVEN, l->node->in[1], false, &inside);
    lower_addends(l, inside, lower_again(l, "found", in));
}

void lower_scatterelements(struct lowering *l)
{
    struct value *inside;
    lower_scattered(l, lower_local_index(l, INDICES_GIVEN, l->node->in[1], true, &inside));
}
