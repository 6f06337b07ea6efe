/* position: positions in a global dimension, for lowerings of ops in which the index has a meaning. */
#include "op/infer/infer.h"
#include "op/lower/lower.h"

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

struct value *lower_positions(struct lowering *l, const char *part, const struct split *split)
{
    struct node *node = lower_node(l, "tpc", "Positions", part, 0, NULL);
    attr_set_string(node, "to", split_str(l->g->arena, split));
    op_infer(l->g, node);
    lower_on_own(l, node, placement_split(0, split));
    return node->out[0];
}

struct value *lower_positions_along(struct lowering *l, const char *part, const struct type *type, int axis, const struct split *split)
{
    struct value *at = split ? lower_positions(l, part, split) : lower_count(l, part, type->dim[axis]);
    return lower_unsqueeze(l, arena_printf(l->g->arena, "%s.along", part), at, 1, type->rank - 1 - axis);
}

struct value *lower_progression(struct lowering *l, struct value *at, const struct dim *start, const struct dim *step)
{
    if (!dim_equals(step, 1))
        at = lower_binary(l, "Mul", "steps", at, lower_size(l, "step", step, DT_I64));
    return dim_equals(start, 0) ? at : lower_binary(l, "Add", "from", at, lower_size(l, "start", start, DT_I64));
}
