/* insert: turns placements into nodes.
 *
 * An operand whose required placement differs from its value's gets a reshard before the first reader: collectives of domain tpc, local
 * slices, partial values. Readers with the same placement share one reshard. A placement that is cheaper to reach from another reader's
 * than from the source hangs below it in the reshard tree, as the solver assumed.
 *
 * Ops whose sharded form is another subgraph are lowered. Operands that steer control flow are broadcast from rank 0, unless they are not
 * computed: ranks in different branches would get different sizes. */
#include "op/control/control.h"
#include "op/op.h"
#include "op/rule/rule.h"
#include "passes/pass.h"
#include "plan/cost/cost.h"
#include "plan/space/space.h"

struct inserter {
    struct space *s;
    struct graph *g;
    struct reshards *of;
    struct value **sent;
    VEC(struct node *) nodes;
}; /* by value id: the broadcast of rank 0's value */

static struct value *insert_reshard(struct inserter *in, struct value *v, struct placement to)
{
    struct node *n = reshard_node(in->g, v, to);
    VEC_PUSH(in->g->arena, &in->nodes, n);
    return n->out[0];
}

/* ---- the placements that readers require ------------------------------------------------------------------------------------- */

static struct value *reach(struct inserter *in, struct value *v, int which)
{
    struct reshard *m = &in->of[v->id].list.at[which];
    if (m->value)
        return m->value;
    struct value *from = m->parent < 0 ? v : reach(in, v, m->parent);
    struct reshard_path path = reshard_find(in->s, v, from->place, m->place);
    if (path.has_via) {
        int shared = reshard_position(&in->of[v->id], path.via);
        from = shared >= 0 ? reach(in, v, shared) : insert_reshard(in, from, path.via);
    }
    return m->value = insert_reshard(in, from, m->place);
}

static struct value *want(struct inserter *in, struct value *v, struct placement p)
{
    return placement_eq(v->place, p) ? v : reach(in, v, reshard_position(&in->of[v->id], p));
}

/* ---- the graph ----------------------------------------------------------------------------------------------------------------- */

static struct value *of_first_rank(struct inserter *in, int id, struct value *v)
{
    bool computed = v->producer && v->producer->nin > 0;
    if (in->s->ranks == 1 || !computed)
        return v;
    if (in->sent[id])
        return in->sent[id];
    const char *name = arena_printf(in->g->arena, "%s/Broadcast", v->name);
    struct node *n = graph_node(in->g, op_find("tpc", "Broadcast"), name, 1, &v, 1);
    node_output(in->g, n, 0, graph_value(in->g, name, &v->type));
    n->out[0]->placed = true;
    VEC_PUSH(in->g->arena, &in->nodes, n);
    return in->sent[id] = n->out[0];
}

static void insert_node(struct inserter *in, struct node *n)
{
    const struct strategy *st = n->strategy;
    for (int i = 0; i < n->nin; i++) {
        if (!n->in[i])
            continue;
        int id = n->in[i]->id;
        n->in[i] = want(in, n->in[i], st->in[i]);
        if (i < control_steering_operands(n))
            n->in[i] = of_first_rank(in, id, n->in[i]);
    }
    VEC_PUSH(in->g->arena, &in->nodes, n);
}

/* A graph output that becomes a resharded value keeps its name. */
static void insert_output(struct inserter *in, int i)
{
    struct value *old = in->g->outputs.at[i], *now = want(in, old, in->s->chosen.output[i]);
    if (now != old)
        graph_move_output(in->g, i, now, old->place.kind == PLACE_P ? "/partial" : "/shard");
}

static void lower_nodes(struct graph *g)
{
    struct node **old = g->nodes.at;
    int n = g->nodes.n;
    g->nodes.at = NULL;
    g->nodes.n = g->nodes.cap = 0;
    for (int i = 0; i < n; i++) {
        const struct strategy *st = old[i]->strategy;
        if (st && st->lowered)
            lowering_append(g, old[i]);
        else
            graph_append(g, old[i]);
    }
}

void pass_insert(struct compile *c)
{
    struct graph *g = c->graph;
    struct inserter in = {.s = c->plan->space, .g = g, .of = NEWN(c->arena, struct reshards, g->values.n + 1)};
    int values = g->values.n;
    in.sent = NEWN(c->arena, struct value *, values + 1);
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
