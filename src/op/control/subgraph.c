/* subgraph: a body prepared for the operands of its node, and the conversion of sizes between its interner and the enclosing graph's.
 *
 * A size that is an integer stays one; any other is a symbol inside, the same one for equal sizes. Assumptions inside about such symbols
 * are checked whenever the body runs, and hold nowhere else. */
#include "op/control/control.h"
#include "op/infer/infer.h"
#include "op/op.h"

static int position_outside(const struct subgraph *r, const struct dim *outside)
{
    for (int i = 0; i < r->outside.n; i++)
        if (r->outside.at[i] == outside)
            return i;
    return -1;
}

/* A size of the enclosing graph, inside. */
static const struct dim *subgraph_enter(struct subgraph *r, const struct dim *outside)
{
    struct arena *a = r->graph->arena;
    outside = dim_rewrite(r->around->alg, outside);
    int at = position_outside(r, outside);
    if (outside->kind == DIM_INT)
        return dim_int(r->graph->alg, outside->k);
    if (at >= 0)
        return r->inside.at[at];
    const char *name = arena_printf(a, "(%s)", dim_str_compact(a, outside)); /* no data-dependent size inside has such a name */
    if (outside->kind == DIM_SYM && *outside->name == '(')
        name = outside->name;
    const struct dim *inside = dim_has_data(outside) ? dim_data_sym(r->graph->alg, name)
                                                     : dim_sym(r->graph->alg, name, dim_usual_lo(r->around->alg, outside));
    dim_at_least(r->graph->alg, inside, outside->lo);
    VEC_PUSH(a, &r->inside, inside);
    VEC_PUSH(a, &r->outside, outside);
    return inside;
}

static const struct dim *leave_symbol(void *subgraph, const struct dim *d)
{
    const struct subgraph *r = subgraph;
    for (int i = 0; i < r->inside.n; i++)
        if (r->inside.at[i] == d)
            return r->outside.at[i];
    return NULL;
}

const struct dim *subgraph_leave(const struct subgraph *r, const struct dim *d)
{
    return dim_replace(r->around->alg, d, leave_symbol, (void *)(uintptr_t)r);
}

/* The outer value for which an input of the body stands; NULL: another in each iteration. */
static struct value *captured_value(const struct subgraph *r, const struct value *inside)
{
    const struct graph *g = r->graph;
    int own = g->inputs.n - g->captures;
    for (int i = 0; i < g->captures; i++)
        if (g->inputs.at[own + i] == inside)
            return r->node->in[node_captured(r->node, r->body) + i];
    return NULL;
}

bool subgraph_is_undecided(const struct subgraph *r)
{
    const struct undecided *inside = &r->graph->undecided;
    struct graph *around = r->around;
    if (!inside->what)
        return false;
    const char *what = arena_strdup(around->arena, inside->what);
    struct value **from = NEWN(around->arena, struct value *, inside->inputs.n + 1);
    for (int i = 0; i < inside->inputs.n; i++)
        from[i] = captured_value(r, inside->inputs.at[i]);
    op_undecided_by_values(around, inside->inputs.n, from, what);
    for (int i = 0; i < inside->by.n; i++) {
        const struct dim *size = subgraph_leave(r, inside->by.at[i]);
        if (size)
            op_undecided_also(around, size);
    }
    around->undecided.what = what;
    return true;
}

struct type subgraph_type(struct subgraph *r, const struct type *outside)
{
    struct type t = *outside;
    for (int d = 0; d < t.rank; d++)
        t.dim[d] = subgraph_enter(r, outside->dim[d]);
    return t;
}

/* Shape information that is all integers counts as a constant. */
static struct constant *captured_constant(struct graph *around, struct value *v)
{
    return v->constant ? v->constant : op_dims_constant(around, v);
}

/* Nodes read a constant instead of an input that is one. */
static void enter_captures(struct subgraph *r, int body)
{
    struct graph *g = r->graph;
    struct value **to = NEWN(g->arena, struct value *, g->inputs.n + g->values.n + 1);
    int first = node_captured(r->node, body), own = g->inputs.n - g->captures;
    for (int i = 0; i < g->captures; i++) {
        struct value *inside = g->inputs.at[own + i], *outside = r->node->in[first + i];
        struct constant *c = captured_constant(r->around, outside);
        inside->type = subgraph_type(r, op_operand(r->around, r->node, first + i));
        if (!c)
            continue;
        to[inside->id] = graph_value(g, inside->name, &inside->type);
        to[inside->id]->constant = c;
    }
    graph_rewire(g, to, false);
}

static void check_nodes(const struct graph *g)
{
    for (int i = 0; i < g->nodes.n; i++)
        if (op_communicates(g->nodes.at[i]))
            fail("%s: a body can't communicate", node_where(g, g->nodes.at[i]));
}

struct subgraph subgraph_new(struct arena *arena, struct graph *around, const struct node *node, int body)
{
    struct subgraph r = {
        .graph = graph_copy_to(arena, alg_new(arena), node_body(node, body)->graph), .around = around, .node = node, .body = body};
    r.graph->properties = PROP_LOADED;
    check_nodes(r.graph);
    enter_captures(&r, body);
    return r;
}
