/* reshard_node: a single step from a placement of a value to another, and the step as a node: a collective of domain tpc, a local slice, or
 * an addend. */
#include "op/op.h"
#include "plan/cost/cost.h"

struct transition reshard_transition(const struct value *v, bool weight, struct placement from, struct placement to)
{
    struct transition t = placement_transition(from, to);
    bool stays = placement_eq(from, to), packed = v->constant && dtype_is_packed(v->type.dtype),
         travels = !(weight && from.kind == PLACE_S) && !packed;
    return (struct transition){t.possible && (stays || travels), t.by};
}

static void set_split(struct graph *g, struct node *n, const char *attr, struct placement p)
{
    attr_set_string(n, attr, split_str(g->arena, p.split));
}

static void set_extent(struct graph *g, struct node *n, const struct value *v, int count, const int *dim)
{
    const struct dim *at[2];
    for (int i = 0; i < count; i++)
        at[i] = v->type.dim[dim[i]];
    attr_set_dims(g, n, "extent", count, at);
}

static void set_attributes(struct graph *g, struct node *n, const struct value *v, struct placement from, struct placement to)
{
    int split = to.kind == PLACE_S ? to.dim : -1, joined = from.kind == PLACE_S ? from.dim : -1;
    if (from.kind == PLACE_P)
        attr_set_string(n, "op", redop_name(from.op));
    if (from.kind == PLACE_P && to.kind == PLACE_R)
        return;
    if (from.kind == PLACE_S && to.kind == PLACE_S && split != joined) {
        attr_set_int(n, "split_axis", split);
        attr_set_int(n, "concat_axis", joined);
        set_extent(g, n, v, 2, (int[]){split, joined});
    } else {
        attr_set_int(n, "axis", split >= 0 ? split : joined);
        if (from.kind != PLACE_R)
            set_extent(g, n, v, 1, (int[]){split >= 0 ? split : joined});
    }
    if (to.kind == PLACE_S)
        set_split(g, n, "to", to);
    if (from.kind == PLACE_S)
        set_split(g, n, "from", from);
}

struct node *reshard_node(struct graph *g, struct value *v, struct placement to)
{
    struct transition t = placement_transition(v->place, to);
    const char *op = t.by ? collective_name(t.by) : to.kind == PLACE_P ? "Term" : "Shard";
    require(t.possible && !placement_eq(v->place, to));
    const char *name = arena_printf(g->arena, "%s/%s", v->name, op);
    struct node *n = graph_node(g, op_find("tpc", op), name, 1, &v, 1);
    struct value *out = graph_value(g, name, &v->type);
    node_output(g, n, 0, out);
    if (to.kind != PLACE_P)
        set_attributes(g, n, v, v->place, to);
    out->place = to;
    out->placed = true;
    return n;
}
