/* body_types: the types of values in a body, for readers of the file. A copy of the body is inferred for the operands of its node; its
 * sizes are expressed in the main graph's symbols. */
#include "onnx/write/write.h"

#include <string.h>

struct body_types {
    struct subgraph typed;
    const struct body_types *around; /* NULL: the main graph */
};

static bool is_typed(const struct graph *g, const struct node *node)
{
    for (int i = 0; i < node->nin; i++)
        if (node->in[i] && g->values.at[node->in[i]->id]->type.dtype == DT_NONE)
            return false;
    for (int i = 0; i < node->nout; i++)
        if (node->out[i] && g->values.at[node->out[i]->id]->type.dtype == DT_NONE)
            return false;
    return true;
}

/* NULL: an If that was replaced by its branch. */
static const struct node *same_node(const struct graph *g, const struct node *node)
{
    for (int i = 0; i < g->nodes.n; i++)
        if (strcmp(g->nodes.at[i]->name, node->name) == 0 && g->nodes.at[i]->op == node->op)
            return g->nodes.at[i];
    return NULL;
}

const struct body_types *body_types_of(struct arena *a, struct graph *g, const struct body_types *around, const struct node *node, int k)
{
    struct graph *typed = around ? around->typed.graph : g;
    const struct node *of = around ? same_node(typed, node) : node;
    if (!of || !is_typed(typed, of))
        return NULL;
    struct body_types *b = NEW(a, struct body_types);
    *b = (struct body_types){control_typed_body(a, typed, of, k), around};
    return b;
}

struct type body_type(const struct body_types *b, const struct value *v)
{
    struct type t = b->typed.graph->values.at[v->id]->type;
    for (int d = 0; d < t.rank; d++)
        for (const struct body_types *from = b; from && t.dim[d]; from = from->around)
            t.dim[d] = subgraph_leave(&from->typed, t.dim[d]);
    return t;
}
