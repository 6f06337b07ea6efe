/* Names of values in a file. A file has one name space for a graph and its subgraphs, the IR one per graph. A subgraph's value keeps its
 * name if free, else gets the node's name as prefix; a captured value has its outer name. */
#include "onnx/write/write.h"

static const char *taken_name(struct arena *tmp, struct text_table **taken, const char *name)
{
    text_table_add(tmp, taken, name, taken);
    return name;
}

struct value_names names_of_graph(struct arena *tmp, const struct graph *g)
{
    const char **at = NEWN(tmp, const char *, g->values.n + 1);
    struct value_names names = {.at = at, .taken = NEW(tmp, struct text_table *)};
    for (int i = 0; i < g->values.n; i++)
        at[i] = taken_name(tmp, names.taken, g->values.at[i]->name);
    return names;
}

static const char *free_name(struct arena *tmp, struct text_table **taken, const char *owner, const char *own)
{
    const char *name = own;
    for (int i = 1; text_table_find(*taken, name); i++)
        name = i == 1 ? arena_printf(tmp, "%s/%s", owner, own) : arena_printf(tmp, "%s/%s_%d", owner, own, i);
    return taken_name(tmp, taken, name);
}

struct value_names names_of_body(struct arena *tmp, const struct value_names *around, const struct node *node, int k)
{
    const struct graph *body = node_body(node, k)->graph;
    const char **at = NEWN(tmp, const char *, body->values.n + 1),
               *owner = arena_printf(tmp, "%s/%s", node->name, node_body(node, k)->name);
    int own = body->inputs.n - body->captures;
    for (int i = 0; i < body->captures; i++)
        at[body->inputs.at[own + i]->id] = around->at[node->in[node_captured(node, k) + i]->id];
    for (int i = 0; i < body->values.n; i++)
        if (!at[i])
            at[i] = free_name(tmp, around->taken, owner, body->values.at[i]->name);
    return (struct value_names){.at = at, .taken = around->taken};
}
