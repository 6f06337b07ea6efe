/* prune: drops nodes that nothing needs. A node is needed for its results or for a data-dependent size. Such a size is a symbol in types
 * and shape information, and the node that determines it must run even if nothing reads its results. */
#include "ir/ir.h"

struct prune {
    struct graph *g;
    struct arena *arena;
    bool *reached; /* by value id: all results of a needed node */
    VEC(struct node *) work;
};

static void reach_value(struct prune *p, const struct value *v)
{
    if (!v || !v->producer || p->reached[v->id])
        return;
    for (int i = 0; i < v->producer->nout; i++)
        if (v->producer->out[i])
            p->reached[v->producer->out[i]->id] = true;
    VEC_PUSH(p->arena, &p->work, v->producer);
}

static void follow_producers(struct prune *p)
{
    while (p->work.n) {
        const struct node *n = p->work.at[--p->work.n];
        for (int i = 0; i < n->nin; i++)
            reach_value(p, n->in[i]);
    }
}

static bool is_needed(const struct prune *p, const struct node *n)
{
    for (int i = 0; i < n->nout; i++)
        if (n->out[i] && p->reached[n->out[i]->id])
            return true;
    return false;
}

/* ---- sizes that data decides ------------------------------------------------------------------------------------------------------- */

static bool value_uses(const struct value *v, const char *symbol)
{
    if (!v)
        return false;
    for (int i = 0; v->dims && i < v->dims->n; i++)
        if (v->dims->at[i] && dim_uses(v->dims->at[i], symbol))
            return true;
    return v->type.dtype != DT_NONE && type_uses(&v->type, symbol);
}

static bool node_uses(const struct node *n, const char *symbol)
{
    for (int i = 0; i < n->nattr; i++)
        for (int k = 0; n->attr[i].kind == ATTR_DIMS && n->attr[i].set && k < n->attr[i].n; k++)
            if (dim_uses(n->attr[i].dims[k], symbol))
                return true;
    for (int i = 0; i < n->nout; i++)
        if (value_uses(n->out[i], symbol))
            return true;
    return false;
}

static bool operands_know(const struct node *n, const char *symbol)
{
    for (int i = 0; i < n->nin; i++)
        if (value_uses(n->in[i], symbol))
            return true;
    return false;
}

/* Inputs and needed nodes before it may define the size, too. */
static bool told_before(const struct prune *p, const char *symbol, int node)
{
    for (int i = 0; i < p->g->inputs.n; i++)
        if (value_uses(p->g->inputs.at[i], symbol))
            return true;
    for (int i = 0; i < node; i++)
        if (is_needed(p, p->g->nodes.at[i]) && node_uses(p->g->nodes.at[i], symbol))
            return true;
    return false;
}

static bool used_after(const struct prune *p, const char *symbol, int node)
{
    for (int i = node + 1; i < p->g->nodes.n; i++)
        if (is_needed(p, p->g->nodes.at[i]) && node_uses(p->g->nodes.at[i], symbol))
            return true;
    return false;
}

/* A needed symbol, which nothing else defines, is a size of a result. */
static bool decides_a_size(const struct prune *p, int node)
{
    const struct node *n = p->g->nodes.at[node];
    for (int i = 0; i < n->nout; i++)
        for (int d = 0; n->out[i] && n->out[i]->type.dtype != DT_NONE && d < n->out[i]->type.rank; d++) {
            const struct dim *size = n->out[i]->type.dim[d];
            if (size->kind == DIM_SYM && !operands_know(n, size->name) && used_after(p, size->name, node) &&
                !told_before(p, size->name, node))
                return true;
        }
    return false;
}

static void reach_deciders(struct prune *p)
{
    for (int i = p->g->nodes.n - 1; i >= 0; i--) {
        const struct node *n = p->g->nodes.at[i];
        if (is_needed(p, n) || !decides_a_size(p, i))
            continue;
        for (int k = 0; k < n->nout; k++)
            reach_value(p, n->out[k]);
        follow_producers(p);
    }
}

/* ---- the graph --------------------------------------------------------------------------------------------------------------------- */

static void drop_node(struct node *n)
{
    for (int i = 0; i < n->nout; i++)
        if (n->out[i] && n->out[i]->producer == n)
            n->out[i]->producer = NULL;
}

void graph_prune(struct graph *g)
{
    struct prune p = {.g = g, .arena = arena_new()};
    int kept = 0;
    p.reached = NEWN(p.arena, bool, g->values.n + 1);
    for (int i = 0; i < g->outputs.n; i++)
        reach_value(&p, g->outputs.at[i]);
    follow_producers(&p);
    reach_deciders(&p);
    for (int i = 0; i < g->nodes.n; i++) {
        struct node *n = g->nodes.at[i];
        if (is_needed(&p, n))
            g->nodes.at[kept++] = n;
        else
            drop_node(n);
    }
    g->nodes.n = kept;
    arena_free(p.arena);
}
