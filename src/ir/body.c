/* body: the graphs of a node, and the operands that they capture. */
#include "ir/ir.h"

bool op_has_bodies(const struct op *op)
{
    for (int i = 0; i < op->nattr; i++)
        if (op->attr[i].kind == ATTR_GRAPH)
            return true;
    return false;
}

int node_bodies(const struct node *n)
{
    int bodies = 0;
    for (int i = 0; i < n->nattr; i++)
        bodies += n->attr[i].kind == ATTR_GRAPH;
    return bodies;
}

struct attr *node_body(const struct node *n, int k)
{
    for (int i = 0; i < n->nattr; i++)
        if (n->attr[i].kind == ATTR_GRAPH && k-- == 0)
            return &n->attr[i];
    bug("node '%s' (%s) has no body %d", n->name, n->optype, k);
}

int node_captured(const struct node *n, int k)
{
    int at = n->nin;
    for (int i = k; i < node_bodies(n); i++)
        at -= node_body(n, i)->graph->captures;
    return at;
}

/* Whether every output is the result of its own node. */
static bool outputs_are_results(const struct graph *body)
{
    struct arena *tmp = arena_new();
    bool *seen = NEWN(tmp, bool, body->values.n + 1), good = true;
    for (int i = 0; i < body->outputs.n; i++) {
        const struct value *v = body->outputs.at[i];
        good = good && v->producer && !seen[v->id];
        seen[v->id] = true;
    }
    arena_free(tmp);
    return good;
}

const char *node_bodies_fault(const struct node *n)
{
    int64_t captures = 0;
    for (int k = 0; k < node_bodies(n); k++) {
        const struct graph *body = node_body(n, k)->graph;
        if (!node_body(n, k)->set || !body)
            return "lacks a body";
        if (body->captures < 0 || body->captures > body->inputs.n)
            return "has a body that captures more than its inputs";
        if (!outputs_are_results(body))
            return "has a body with an output that is not the result of a node of its own";
        captures += body->captures;
    }
    for (int64_t i = 0; i < captures; i++)
        if (i >= n->nin || !n->in[n->nin - 1 - i])
            return "lacks an operand that its bodies capture";
    return NULL;
}
