/* lifetime: what a graph's values need of one slab. A view shares its operand's memory; a value lives from the node that makes it to the
 * last node that reads it or a view of it. The planner predicts memory by this, and the runtime lays its slab out by it. */
#include "op/analysis/analysis.h"
#include "op/op.h"

static bool is_view(const struct node *n)
{
    return n->op && (n->op->flags & OP_VIEW) && n->nin > 0 && n->in[0] && n->nout > 0 && n->out[0];
}

static void find_roots(const struct graph *g, int *root)
{
    for (int i = 0; i < g->values.n; i++)
        root[i] = i;
    for (int i = 0; i < g->nodes.n; i++) {
        const struct node *n = g->nodes.at[i];
        if (is_view(n))
            root[n->out[0]->id] = root[n->in[0]->id];
    }
}

static void add_item(struct lifetimes *life, const struct value *v, int step)
{
    life->items[life->nitem] = (struct slab_item){.first = step, .last = step};
    life->item[v->id] = life->nitem++;
}

static void extend(struct lifetimes *life, const struct value *v, int step)
{
    int item = life->item[life->root[v->id]];
    if (item >= 0 && life->items[item].last < step)
        life->items[item].last = step;
}

static void live_through(struct lifetimes *life, const struct node *n, int step)
{
    for (int k = 0; k < n->nin; k++)
        if (n->in[k])
            extend(life, n->in[k], step);
    for (int k = 0; k < n->nout && !is_view(n); k++)
        if (n->out[k])
            add_item(life, n->out[k], step);
}

struct lifetimes lifetime_items(struct arena *arena, const struct graph *g, const bool *copied)
{
    int n = g->values.n;
    struct lifetimes life = {NEWN(arena, int, n), NEWN(arena, int, n), 0, NEWN(arena, struct slab_item, n)};
    find_roots(g, life.root);
    for (int i = 0; i < n; i++)
        life.item[i] = -1;
    for (int i = 0; i < g->inputs.n; i++)
        if (copied[i])
            add_item(&life, g->inputs.at[i], 0);
    for (int i = 0; i < g->nodes.n; i++)
        live_through(&life, g->nodes.at[i], i);
    for (int i = 0; i < g->outputs.n; i++)
        extend(&life, g->outputs.at[i], g->nodes.n);
    return life;
}
