/* localize: copies the global graph, with a placement on every value, into one graph per rank. All have the same nodes, names and order.
 *
 * Local types follow from placements. So do sizes in attributes, windows and positions (src/plan/apply/local_nodes.c). Then inference runs
 * on every node again: a result that differs from its local type shows a wrong rule or placement and is a bug. */
#include "op/infer/infer.h"
#include "op/op.h"
#include "passes/pass.h"
#include "plan/apply/apply.h"

#include <string.h>

/* ---- types ------------------------------------------------------------------------------------------------------------------ */

static struct graph *local_graph(struct compile *c, int ranks, int rank)
{
    struct graph *g = graph_copy(c->arena, c->graph);
    g->ranks = ranks;
    g->rank = rank;
    for (int i = 0; i < g->values.n; i++) {
        struct value *v = g->values.at[i];
        if (!v->placed)
            v->place = placement_replicated;
        v->placed = true;
        if (v->type.dtype != DT_NONE)
            v->type = placement_local(g->alg, &v->type, v->place, rank);
        if (v->place.kind != PLACE_R)
            v->dims = NULL;
    }
    return g;
}

/* ---- the check ----------------------------------------------------------------------------------------------------------------------- */

static struct type *types_of_results(struct graph *g, const struct node *node)
{
    struct type *list = NEWN(g->arena, struct type, node->nout + 1);
    for (int i = 0; i < node->nout; i++)
        if (node->out[i])
            list[i] = node->out[i]->type;
    return list;
}

static void check_node(struct graph *g, struct node *node, int equations)
{
    const struct type *local = types_of_results(g, node);
    const struct equation *eq;
    op_infer(g, node);
    if (alg_equations(g->alg, &eq) != equations)
        bug("%s on rank %d: types agree only if %s = %s", node_where(g, node), g->rank, dim_str(g->arena, eq[equations].left),
            dim_str(g->arena, eq[equations].right));
    for (int i = 0; i < node->nout; i++)
        if (node->out[i] && !type_eq(&local[i], &node->out[i]->type))
            bug("%s on rank %d: output %d is %s by its placement %s and %s by inference", node_where(g, node), g->rank, i,
                type_str(g->arena, &local[i]), placement_str(g->arena, node->out[i]->place), type_str(g->arena, &node->out[i]->type));
}

static bool reads_nothing(const struct node *node)
{
    for (int i = 0; i < node->nin; i++)
        for (int d = 0; node->in[i] && d < node->in[i]->type.rank; d++)
            if (dim_equals(node->in[i]->type.dim[d], 0))
                return true;
    return false;
}

/* The op's row says that the types of results tell its sizes. */
static bool typed_by_result(const struct node *node)
{
    for (int i = 0; i < node->op->nin; i++)
        if (node->op->in[i].size && strcmp(node->op->in[i].size, "@type") == 0)
            return true;
    return node->op->flags & OP_CONTROL;
}

/* A rank with empty shards must infer the same types from its file, where results are untyped; else its collectives would differ from the
 * other ranks'. */
static void check_idle(struct graph *g, struct node *node)
{
    if (!node->op || typed_by_result(node) || !reads_nothing(node))
        return;
    const struct type *local = types_of_results(g, node);
    for (int i = 0; i < node->nout; i++)
        if (node->out[i])
            node->out[i]->type = (struct type){.dtype = DT_NONE};
    op_infer(g, node);
    for (int i = 0; i < node->nout; i++)
        if (node->out[i] && !type_eq(&local[i], &node->out[i]->type))
            fail("%s: rank %d of %d has an operand without elements, and nothing tells it that '%s' is %s (it takes %s); use fewer ranks",
                 node_where(g, node), g->rank, g->ranks, node->out[i]->name, type_str(g->arena, &local[i]),
                 type_str(g->arena, &node->out[i]->type));
}

static void check_graph(struct graph *g, int equations)
{
    for (int i = 0; i < g->nodes.n; i++) {
        check_node(g, g->nodes.at[i], equations);
        check_idle(g, g->nodes.at[i]);
    }
}

void pass_localize(struct compile *c)
{
    const struct equation *eq;
    int ranks = c->graph->ranks > 0 ? c->graph->ranks : 1, equations = alg_equations(c->graph->alg, &eq);
    c->graph->ranks = ranks;
    struct local_nodes nodes = local_nodes_find(c->arena, c->graph);
    c->alike = alike_ranks_find(c->arena, &nodes);
    c->rank_graphs = NEWN(c->arena, struct graph *, ranks);
    for (int r = 0; r < ranks; r++) {
        if (c->plans_only && c->alike[r] != r)
            continue;
        struct graph *g = c->rank_graphs[r] = local_graph(c, ranks, r);
        local_nodes_set(&nodes, g);
        plan_note_ranks(g);
        check_graph(g, equations);
    }
}
