/* lowering: the subgraph that a row of ops.def writes for a node, with placements.
 *
 * Node by node, from the operands on: partial values stay partial through linear ops, splits pass where the node's own rule lets them, and
 * every other operand is resharded once to the placement that the rule needs. Each result gets the placement of the lowered node's
 * strategy. The same body, in a graph of its own, gives the cost of the strategy. */
#include "op/lower/lower.h"
#include "op/op.h"
#include "op/recurrent/recurrent.h"
#include "op/rule/rule.h"
#include "plan/cost/cost.h"
#include "plan/space/space.h"

#include <string.h>

struct body {
    struct graph *g;
    VEC(struct node *) nodes;
};

/* ---- steps ---------------------------------------------------------------------------------------------------------------- */

/* In one step, or in two through R. */
static struct value *resharded(struct body *b, struct value *v, struct placement to)
{
    if (placement_eq(v->place, to))
        return v;
    for (int i = 0; i < b->nodes.n; i++)
        if (explicit_is_reshard(b->nodes.at[i]) && b->nodes.at[i]->in[0] == v && placement_eq(b->nodes.at[i]->out[0]->place, to))
            return b->nodes.at[i]->out[0];
    bool direct = reshard_transition(v, v->constant, v->place, to).possible;
    require(direct || (v->place.kind != PLACE_R && to.kind != PLACE_R));
    struct node *step = reshard_node(b->g, direct ? v : resharded(b, v, placement_replicated), to);
    VEC_PUSH(b->g->arena, &b->nodes, step);
    return step->out[0];
}

/* ---- a strategy from what the operands are -------------------------------------------------------------------------------- */

static bool reads_as_placed(const struct node *n, const struct strategy *st)
{
    for (int i = 0; i < n->nin; i++)
        if (n->in[i] && !placement_eq(n->in[i]->place, st->in[i]))
            return false;
    return true;
}

/* Whether partial operands may stay partial by the rule, with the others replicated. A maximum is reduced before any node computes with it:
 * several nodes read it, and each would reduce it again. */
static bool stays_partial(const struct body *b, const struct node *n, const struct rule *r, struct strategy *st)
{
    struct rule_pass pass[MOST_PASSES];
    int passes = rule_passes(r, pass);
    for (int k = 0; k < passes; k++) {
        if (pass[k].from != RED_SUM && !r->moves)
            continue;
        *st = strategy_partial(b->g->arena, n, r, &pass[k]);
        if (reads_as_placed(n, st))
            return true;
    }
    return false;
}

/* Every sharded operand keeps its split; replicated ones may be sliced to match. */
static bool stays_sharded(const struct body *b, const struct node *n, const struct rule *r, struct strategy *st)
{
    struct assignment c = strategy_replicated(b->g->arena, n, r).assignment;
    for (int i = 0; i < n->nin; i++) {
        if (!n->in[i] || n->in[i]->place.kind != PLACE_S)
            continue;
        int f = rule_factor_at(&r->in[i], n->in[i]->place.dim);
        if (f < 0)
            return false;
        c.factor[f] = n->in[i]->place.split;
    }
    if (!strategy_assigned(b->g->arena, b->g, n, r, b->g->ranks, &c, st, NULL) || st->lowered)
        return false;
    for (int i = 0; i < n->nin; i++)
        if (n->in[i] && n->in[i]->place.kind == PLACE_S && !placement_eq(n->in[i]->place, st->in[i]))
            return false;
    return true;
}

static struct strategy *strategy_for_operands(const struct body *b, const struct node *n)
{
    const struct rule *r = n->op->rule ? rule_of(b->g, n) : NULL;
    struct strategy *st = NEW(b->g->arena, struct strategy);
    if (!r || (!stays_partial(b, n, r, st) && !stays_sharded(b, n, r, st)))
        *st = strategy_replicated(b->g->arena, n, r);
    return st;
}

/* ---- the body --------------------------------------------------------------------------------------------------------------- */

/* Places a result of the lowered node; adds a reshard if the body leaves it in another placement. */
static void place_result(struct body *b, struct node *n, int i, struct placement left)
{
    struct value *result = n->out[i];
    if (result->placed && !placement_eq(result->place, left)) {
        struct value *own = graph_value(b->g, arena_printf(b->g->arena, "%s/left", result->name), &result->type);
        node_output(b->g, n, i, own);
        own->place = left;
        own->placed = true;
        struct value *v = resharded(b, own, result->place);
        node_output(b->g, v->producer, v->index, result);
    }
    n->out[i]->place = left;
    n->out[i]->placed = true;
}

static void place_node(struct body *b, struct node *n)
{
    struct strategy *st = n->strategy ? n->strategy : strategy_for_operands(b, n);
    for (int i = 0; i < n->nin; i++)
        if (n->in[i])
            n->in[i] = resharded(b, n->in[i], st->in[i]);
    VEC_PUSH(b->g->arena, &b->nodes, n);
    for (int i = 0; i < n->nout; i++)
        if (n->out[i])
            place_result(b, n, i, st->out[i]);
    n->strategy = st;
}

void lowering_append(struct graph *g, struct node *node)
{
    const char *name = node->name && *node->name ? node->name : node->out[0]->name;
    struct lowering l = {.g = g, .node = node, .name = name};
    struct body b = {.g = g};
    require(node->op && node->op->lower);
    node->op->lower(&l);
    for (int i = 0; i < l.nodes.n; i++)
        place_node(&b, l.nodes.at[i]);
    for (int i = 0; i < b.nodes.n; i++)
        graph_append(g, b.nodes.at[i]);
    for (int i = 0; i < node->nout; i++)
        require(!node->out[i] || (node->out[i]->placed && node->out[i]->producer != node)); /* the body makes every result */
}

/* ---- what it sends ----------------------------------------------------------------------------------------------------------- */

enum collective lowering_sends(const struct strategy *st)
{
    for (int i = 0; st->body && i < st->body->g->nodes.n; i++) {
        const struct node *n = st->body->g->nodes.at[i];
        struct recurrent_exchange exchange;
        if (n->op->flags & OP_COLLECTIVE)
            return collective_parse(n->optype);
        if (recurrent_exchanges(st->body->g, n, &exchange))
            return COLL_ALLGATHER;
    }
    return COLL_NONE;
}

int lowering_collectives(const struct strategy *st)
{
    int n = 0;
    for (int i = 0; st->body && i < st->body->g->nodes.n; i++)
        n += (st->body->g->nodes.at[i]->op->flags & OP_COLLECTIVE) != 0;
    return n;
}

/* ---- what it costs ----------------------------------------------------------------------------------------------------------- */

static struct value *value_alone(struct graph *g, const struct value *v, struct placement place)
{
    struct value *copy = graph_value(g, v->name, &v->type);
    copy->constant = v->constant;
    copy->stored = v->stored;
    copy->outside = v;
    copy->place = place;
    copy->placed = true;
    return copy;
}

static struct node *node_alone(struct graph *g, const struct node *n, const struct strategy *st)
{
    struct node *copy = NEW(g->arena, struct node);
    *copy = *n;
    copy->in = NEWN(g->arena, struct value *, n->nin + 1);
    copy->out = NEWN(g->arena, struct value *, n->nout + 1);
    for (int i = 0; i < n->nin; i++)
        copy->in[i] = n->in[i] ? value_alone(g, n->in[i], st->in[i]) : NULL;
    for (int i = 0; i < n->nout; i++)
        if (n->out[i])
            node_output(g, copy, i, value_alone(g, n->out[i], st->out[i]));
    return copy;
}

struct space *lowering_space(struct space *s, const struct node *n, const struct strategy *st)
{
    struct graph *g = graph_new(s->arena, s->g->alg, s->g->name);
    g->opset = s->g->opset;
    g->ranks = s->ranks;
    struct node *node = node_alone(g, n, st);
    lowering_append(g, node);
    for (int i = 0; i < n->nin; i++)
        if (n->in[i] && !n->in[i]->constant)
            VEC_PUSH(g->arena, &g->inputs, node->in[i]);
    for (int i = 0; i < n->nout; i++)
        if (n->out[i])
            graph_add_output(g, node->out[i]);
    struct space *alone = explicit_space(s, g, s->plan, s->ranks);
    for (int i = 0; i < n->nin; i++)
        if (n->in[i])
            alone->weight[node->in[i]->id] = s->weight[n->in[i]->id];
    for (int i = 0; i < g->nodes.n; i++)
        require(explicit_is_reshard(g->nodes.at[i]) || g->nodes.at[i]->strategy);
    fused_find(alone, cost_graph_that_runs(s->arena, g));
    return alone;
}
