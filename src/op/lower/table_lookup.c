/* table_lookup: lookups in a split dimension: indices become local, and a rank returns zero for elements that it does not hold. */
#include "op/infer/infer.h"
#include "op/lower/lower.h"
#include "op/op.h"

static bool may_hold_nothing(struct graph *g, const struct split *split)
{
    for (int r = 0; r < split->ranks; r++)
        if (!dim_ge(g->alg, split_extent(g->alg, split, r), dim_int(g->alg, 1)))
            return true;
    return false;
}

struct value *lower_local_index(struct lowering *l, enum indices kind, struct value *indices, bool always, struct value **inside)
{
    struct graph *g = l->g;
    const struct placement *table = &l->node->in[0]->place;
    const struct split *split = table->split;
    const char *name = arena_printf(g->arena, "%s/local", l->name);
    struct node *node = graph_node(g, op_find("tpc", "LocalIndex"), name, 1, &indices, 2);
    const struct dim *extent = split_size(g->alg, split);
    node_output(g, node, 0, graph_value(g, name, NULL));
    node_output(g, node, 1, graph_value(g, arena_printf(g->arena, "%s/inside", l->name), NULL));
    attr_set_string(node, "to", split_str(g->arena, split));
    attr_set_dims(g, node, "extent", 1, &extent);
    attr_set_int(node, "spare", always || may_hold_nothing(g, split));
    if (kind != INDICES_KNOWN) {
        attr_set_string(node, "lookup", node_lookup(g, l->node, 1));
        attr_set_int(node, "dimension", table->dim);
    }
    if (kind == INDICES_LABELS)
        attr_set_int(node, "labels", 1);
    op_infer(g, node);
    VEC_PUSH(g->arena, &l->nodes, node);
    lower_on_own(l, node, placement_replicated);
    *inside = node->out[1];
    return node->out[0];
}

/* The split with one more index for every rank, the same one. A balanced split of n + ranks indices is exactly that. */
static const struct split *with_one_more(struct graph *g, const struct split *split)
{
    const struct split *both[2] = {split, split_replicated(g->alg, split->ranks, dim_int(g->alg, 1))};
    return split->balanced ? split_even(g->alg, split->ranks, dim_add(g->alg, split->n, dim_int(g->alg, split->ranks)))
                           : split_concat(g->alg, 2, both);
}

/* Zeros like x, with size 1 along the axis. */
static struct value *spare(struct lowering *l, const struct value *x, int axis)
{
    struct value *zero = lower_scalar(l, "nothing", x->type.dtype, 0);
    struct node *node = lower_node(l, "", "Expand", "spare", 1, &zero);
    node->out[0]->type = x->type;
    node->out[0]->type.dim[axis] = dim_int(l->g->alg, 1);
    op_infer(l->g, node);
    return node->out[0];
}

struct value *lower_with_spare(struct lowering *l, struct value *x, int axis, bool always)
{
    require(x->place.kind == PLACE_S && x->place.dim == axis);
    if (!always && !may_hold_nothing(l->g, x->place.split))
        return x;
    struct value *part[2] = {x, spare(l, x, axis)}, *table = lower_concat(l, "table", 2, part, axis);
    const struct split *more = with_one_more(l->g, x->place.split);
    table->type.dim[axis] = split_size(l->g->alg, more);
    lower_on_own(l, table->producer, placement_split(axis, more));
    return table;
}

static struct value *without_spare(struct lowering *l, struct value *x, int axis, const struct split *split)
{
    struct alg *alg = l->g->alg;
    const struct dim *size[2] = {split_size(alg, split), dim_sub(alg, x->type.dim[axis], split_size(alg, split))};
    struct placement out[2] = {placement_split(axis, split), placement_replicated};
    struct node *cut = lower_split(l, "kept", x, axis, 2, size);
    if (split->balanced)
        out[1] = placement_split(axis, split_even(alg, split->ranks, size[1]));
    lower_on_ranks(l, cut, &x->place, out);
    return cut->out[0];
}

struct value *lower_again(struct lowering *l, const char *part, struct value *const *in)
{
    struct node *node = lower_copy(l, part, l->node->nin, in);
    if (op_is_onnx(node, "GatherND") || op_is_onnx(node, "ScatterND"))
        attr_set_string(node, "lookup", node_lookup(l->g, l->node, 1)); /* other entries of the tuples are checked at run time */
    lower_on_own(l, node, placement_replicated);
    return node->out[0];
}

void lower_addends(struct lowering *l, struct value *inside, struct value *found)
{
    struct value *zero = lower_scalar(l, "zero", found->type.dtype, 0);
    struct value *partial = lower_where(l, "partial", inside, found, zero);
    lower_on_own(l, partial->producer, placement_partial(RED_SUM));
    lower_result(l, 0, partial);
}

static void scatter(struct lowering *l, struct value *table, struct value *index, struct value *updates)
{
    const struct value *data = l->node->in[0];
    struct value *y = lower_again(l, "scattered", (struct value *[]){table, index, updates});
    y->type = table->type;
    lower_on_own(l, y->producer, table->place);
    lower_result(l, 0, table == data ? y : without_spare(l, y, data->place.dim, data->place.split));
}

void lower_scattered(struct lowering *l, struct value *index)
{
    struct value *data = l->node->in[0];
    scatter(l, lower_with_spare(l, data, data->place.dim, true), index, l->node->in[2]);
}

void lower_added(struct lowering *l, struct value *index, struct value *inside)
{
    struct value *data = l->node->in[0], *updates = l->node->in[2];
    struct value *added = lower_where(l, "added", inside, updates, lower_scalar(l, "nothing", updates->type.dtype, -0.0));
    lower_on_own(l, added->producer, placement_replicated);
    scatter(l, lower_with_spare(l, data, data->place.dim, false), index, added);
}
