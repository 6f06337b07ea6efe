/* insert: placements become nodes.
 *
 * Wherever an operand's placement differs from how its value is left, the steps between are inserted just before the first reader:
 * collectives of domain tpc, local slices, terms. A reshard that several readers share is made once; targets that are cheaper to reach
 * from one another than from the source hang in a tree, as the solver assumed. Ops whose split form is another subgraph are lowered. */
#include "passes/pass.h"
#include "plan/space.h"

struct inserter { struct space *s; struct graph *g; struct reached *of; VEC(struct node *) nodes; };

/* ---- one step ------------------------------------------------------------------------------------------------------------- */

static struct node *step_node(struct inserter *in, const char *op, struct value *v)
{
    const char *name = arena_printf(in->g->arena, "%s/%s", v->name, op);
    struct node *n = graph_node(in->g, op_find("tpc", op), name, 1, &v, 1);
    struct value *out = graph_value(in->g, name, &v->type);
    node_output(in->g, n, 0, out);
    return n;
}

static void set_split(struct inserter *in, struct node *n, const char *attr, struct placement p)
{
    attr_set_string(n, attr, split_str(in->g->arena, p.split));
}

static void set_extent(struct inserter *in, struct node *n, const struct value *v, int count, const int *dim)
{
    const struct dim *at[2];
    for (int i = 0; i < count; i++)
        at[i] = v->type.dim[dim[i]];
    attr_set_dims(in->g, n, "extent", count, at);
}

static void describe(struct inserter *in, struct node *n, const struct value *v, struct placement from, struct placement to)
{
    int split = to.kind == PLACE_S ? to.dim : -1, joined = from.kind == PLACE_S ? from.dim : -1;
    if (from.kind == PLACE_P)
        attr_set_string(n, "op", redop_name(from.op));
    if (from.kind == PLACE_P && to.kind == PLACE_R)
        return;
    if (from.kind == PLACE_S && to.kind == PLACE_S && split != joined) {
        attr_set_int(n, "split_axis", split);
        attr_set_int(n, "concat_axis", joined);
        set_extent(in, n, v, 2, (int[]){ split, joined });
    } else {
        attr_set_int(n, "axis", split >= 0 ? split : joined);
        if (from.kind != PLACE_R)
            set_extent(in, n, v, 1, (int[]){ split >= 0 ? split : joined });
    }
    if (to.kind == PLACE_S)
        set_split(in, n, "to", to);
    if (from.kind == PLACE_S)
        set_split(in, n, "from", from);
}

static const char *step_op(struct placement from, struct placement to)
{
    const char *name = reshard_name(from, to);
    return name ? name : to.kind == PLACE_P ? "Term" : "Shard";
}

static struct value *step(struct inserter *in, struct value *v, struct placement from, struct placement to)
{
    struct node *n = step_node(in, step_op(from, to), v);
    if (to.kind != PLACE_P)
        describe(in, n, v, from, to);
    n->out[0]->place = to;
    n->out[0]->placed = true;
    VEC_PUSH(in->g->arena, &in->nodes, n);
    return n->out[0];
}

/* ---- all placements a value is wanted in ------------------------------------------------------------------------------------- */

static struct value *reach(struct inserter *in, struct value *v, int which)
{
    struct made *m = &in->of[v->id].list.at[which];
    if (m->value)
        return m->value;
    struct value *from = m->parent < 0 ? v : reach(in, v, m->parent);
    struct placement have = m->parent < 0 ? v->place : in->of[v->id].list.at[m->parent].place;
    struct reshard_path path = reshard_find(in->s, v, have, m->place);
    if (path.has_via) {
        int shared = reached_find(&in->of[v->id], path.via);
        from = shared >= 0 ? reach(in, v, shared) : step(in, from, have, path.via);
        have = path.via;
    }
    return m->value = step(in, from, have, m->place);
}

static struct value *want(struct inserter *in, struct value *v, struct placement p)
{
    return placement_eq(v->place, p) ? v : reach(in, v, reached_find(&in->of[v->id], p));
}

/* ---- the graph ----------------------------------------------------------------------------------------------------------------- */

static void insert_node(struct inserter *in, struct node *n)
{
    const struct strategy *st = n->strategy;
    for (int i = 0; i < n->nin; i++)
        if (n->in[i])
            n->in[i] = want(in, n->in[i], st->in[i]);
    VEC_PUSH(in->g->arena, &in->nodes, n);
}

/* An output that moves to a resharded value keeps its name. */
static void insert_output(struct inserter *in, int i)
{
    struct value *old = in->g->outputs.at[i], *now = want(in, old, in->s->output_place[i]);
    if (now != old)
        graph_move_output(in->g, i, now, old->place.kind == PLACE_P ? "/terms" : "/shard");
}

static void lower_nodes(struct graph *g)
{
    for (int i = 0; i < g->nodes.n; i++) {
        struct node *n = g->nodes.at[i];
        const struct strategy *st = n->strategy;
        if (st && st->lowered)
            n->op->lower(g, n);
    }
}

void pass_insert(struct compile *c)
{
    struct graph *g = c->graph;
    struct inserter in = { .s = c->plan->space, .g = g, .of = NEWN(c->arena, struct reached, g->values.n + 1) };
    int values = g->values.n;
    for (int i = 0; i < values; i++)
        if (in.s->uses[i].list.n && g->values.at[i]->placed)
            in.of[i] = reshard_chosen(in.s, g->arena, g->values.at[i]);
    for (int i = 0; i < g->nodes.n; i++)
        insert_node(&in, g->nodes.at[i]);
    for (int i = 0; i < g->outputs.n; i++)
        insert_output(&in, i);
    g->nodes.n = 0;
    for (int i = 0; i < in.nodes.n; i++)
        VEC_PUSH(g->arena, &g->nodes, in.nodes.at[i]);
    lower_nodes(g);
    graph_sort(g);
}
