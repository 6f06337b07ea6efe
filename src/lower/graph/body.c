/* body: a body of control flow as a canonical graph, for the types of its operands. */
#include "lower/lower.h"
#include "op/canon/canon.h"
#include "op/control/control.h"

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
