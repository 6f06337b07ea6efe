/* body: lowers the bodies of control flow like the enclosing graph, for the types of their operands. */
#include "lower/lower.h"
#include "op/canon/canon.h"
#include "op/control/control.h"
#include "op/op.h"

struct graph *lower_body(struct arena *a, struct graph *around, const struct node *n, int k)
{
    struct graph *g = control_typed_body(a, around, n, k).graph;
    for (int i = 0; i < g->nodes.n; i++)
        canon_node(g, g->nodes.at[i]);
    canon_shape_data(g);
    graph_prune(g);
    canon_fold(g);
    lower_canonical(g);
    g->properties |= PROP_TYPED | PROP_CANONICAL;
    graph_name_nodes(g);
    graph_verify(g, "canonical body");
    return g;
}

void lower_bodies(struct graph *g, const struct lower_options *o)
{
    const struct lower_options inside = {.deterministic = o->deterministic, .fast = o->fast};
    for (int i = 0; i < g->nodes.n; i++) {
        struct node *n = g->nodes.at[i];
        for (int k = 0; n->op && k < node_bodies(n); k++) {
            node_body(n, k)->graph = lower_body(g->arena, g, n, k);
            lower_graph(node_body(n, k)->graph, &inside);
        }
    }
}
