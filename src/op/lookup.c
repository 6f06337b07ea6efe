/* Lookups in a dimension of which each rank holds a part: indices become local, and what a rank does not hold it answers with zero. */
#include "op/op.h"

/* Each rank has its own of what is not the same on all; the whole types hold. */
static void on_own(struct lowering *l, struct node *node, struct placement out)
{
    struct placement *in = NEWN(l->g->arena, struct placement, node->nin + 1), *outs = NEWN(l->g->arena, struct placement, node->nout + 1);
    for (int i = 0; i < node->nin; i++)
        in[i] = node->in[i] && node->in[i]->placed ? node->in[i]->place : placement_whole;
    for (int i = 0; i < node->nout; i++)
        outs[i] = out;
    lower_on_ranks(l, node, in, outs);
}

struct value *lower_local_index(struct lowering *l, struct value *indices, const struct split *split, struct value **inside)
{
    struct graph *g = l->g;
    const char *name = arena_printf(g->arena, "%s/local", l->name);
    struct type untyped = {.dtype = DT_NONE};
    struct node *node = graph_node(g, op_find("tpc", "LocalIndex"), name, 1, &indices, 2);
    const struct dim *extent = split_size(g->alg, split);
    node_output(g, node, 0, graph_value(g, name, &untyped));
    node_output(g, node, 1, graph_value(g, arena_printf(g->arena, "%s/inside", l->name), &untyped));
    attr_set_string(node, "to", split_str(g->arena, split));
    attr_set_dims(g, node, "extent", 1, &extent);
    op_infer(g, node);
    VEC_PUSH(g->arena, &l->nodes, node);
    on_own(l, node, placement_whole);
    *inside = node->out[1];
    return node->out[0];
}

static bool may_be_empty(struct graph *g, const struct split *split)
{
    for (int r = 0; r < split->ranks; r++)
        if (!dim_ge(g->alg, split_extent(g->alg, split, r), dim_int(g->alg, 1)))
            return true;
    return false;
}

/* The split with one index more for every rank. A balanced one of n + ranks indices is just that. */
static const struct split *with_one_more(struct graph *g, const struct split *split)
{
    const struct split *both[2] = {split, split_whole(g->alg, split->ranks, dim_int(g->alg, 1))};
    return split->balanced ? split_even(g->alg, split->ranks, dim_add(g->alg, split->n, dim_int(g->alg, split->ranks))) : split_concat(g->alg, 2, both);
}

/* Zeros like x, but for a size of 1 along the axis. */
static struct value *spare(struct lowering *l, const struct value *x, int axis)
{
    struct value *zero = lower_scalar(l, "nothing", x->type.dtype, 0);
    struct node *node = lower_node(l, "", "Expand", "spare", 1, &zero);
    node->out[0]->type = x->type;
    node->out[0]->type.dim[axis] = dim_int(l->g->alg, 1);
    op_infer(l->g, node);
    return node->out[0];
}

struct value *lower_with_spare(struct lowering *l, struct value *x, int axis)
{
    const struct split *split = x->place.split;
    require(x->place.kind == PLACE_S && x->place.dim == axis);
    if (!may_be_empty(l->g, split))
        return x;
    struct value *part[2] = {x, spare(l, x, axis)};
    struct node *node = lower_node(l, "", "Concat", "table", 2, part);
    attr_set_int(node, "axis", axis);
    op_infer(l->g, node);
    const struct split *more = with_one_more(l->g, split);
    node->out[0]->type.dim[axis] = split_size(l->g->alg, more);
    on_own(l, node, placement_split(axis, more));
    return node->out[0];
}

struct value *lower_count(struct lowering *l, const char *part, const struct dim *n)
{
    struct node *range = lower_node(l, "", "Range", part, 0, NULL);
    const struct dim *first = dim_int(l->g->alg, 0), *step = dim_int(l->g->alg, 1);
    attr_set_dims(l->g, range, "start", 1, &first);
    attr_set_dims(l->g, range, "limit", 1, &n);
    attr_set_dims(l->g, range, "delta", 1, &step);
    range->out[0]->type = (struct type){.dtype = DT_I64, .rank = 1, .dim = {n}};
    op_infer(l->g, range);
    return range->out[0];
}

struct value *lower_positions(struct lowering *l, const char *part, const struct dim *n, const struct split *split)
{
    struct value *own = lower_unary(l, "Identity", part, lower_count(l, arena_printf(l->g->arena, "%s.all", part), n));
    struct placement place = placement_split(0, split);
    lower_on_ranks(l, own->producer, &place, &place);
    return own;
}

struct value *lower_again(struct lowering *l, const char *part, struct value *const *in)
{
    struct node *node = lower_copy(l, part, l->node->nin, in);
    on_own(l, node, placement_whole);
    return node->out[0];
}

void lower_terms(struct lowering *l, struct value *inside, struct value *found)
{
    struct value *zero = lower_scalar(l, "zero", found->type.dtype, 0);
    struct value *terms = lower_where(l, "terms", inside, found, zero);
    on_own(l, terms->producer, placement_partial(RED_SUM));
    lower_result(l, 0, terms);
}
