/* lifetime: the lifetimes of a graph's values in one slab. A view shares its operand's memory, and a result computed in place takes it
 * over; a value lives from its producer to the last node that reads it or a view of it. The planner predicts memory from this, and the
 * runtime lays out its slab by it. */
#include "op/analysis/analysis.h"
#include "op/op.h"

/* The result has the memory of operand 0. */
static bool shares(const struct node *n)
{
    return n->op && (n->op->flags & (OP_VIEW | OP_IN_PLACE)) && node_operand(n, 0) && node_result(n, 0);
}

static void find_roots(const struct graph *g, int *root)
{
    for (int i = 0; i < g->values.n; i++)
        root[i] = i;
    for (int i = 0; i < g->nodes.n; i++) {
        const struct node *n = g->nodes.at[i];
        if (shares(n))
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

static void live_through(struct lifetimes *life, const struct node *n, int step, const bool *leaves)
{
    for (int k = 0; k < n->nin; k++)
        if (n->in[k])
            extend(life, n->in[k], step);
    for (int k = 0; k < n->nout && !shares(n); k++)
        if (n->out[k] && !leaves[n->out[k]->id])
            add_item(life, n->out[k], step);
}

/* By value id: whether its bytes are a gradient that nodes compute. */
static bool *find_gradients(struct arena *arena, const struct graph *g, const int *root)
{
    bool *is = NEWN(arena, bool, g->values.n + 1);
    for (int i = 0; i < g->trained.n; i++) {
        int bytes = root[g->outputs.at[g->trained.at[i].output]->id];
        is[bytes] = g->values.at[bytes]->producer != NULL;
    }
    return is;
}

struct lifetimes lifetime_items(struct arena *arena, const struct graph *g, const bool *copied, enum gradients_go go)
{
    int n = g->values.n;
    struct lifetimes life = {NEWN(arena, int, n), NEWN(arena, int, n), 0, NEWN(arena, struct slab_item, n)};
    find_roots(g, life.root);
    const bool *none = NEWN(arena, bool, n + 1), *gradient = go == GRADIENTS_STAY ? none : find_gradients(arena, g, life.root);
    for (int i = 0; i < n; i++)
        life.item[i] = -1;
    for (int i = 0; i < g->inputs.n; i++)
        if (copied[i])
            add_item(&life, g->inputs.at[i], 0);
    for (int i = 0; i < g->nodes.n; i++)
        live_through(&life, g->nodes.at[i], i, go == GRADIENTS_LEAVE ? gradient : none);
    for (int i = 0; i < g->outputs.n; i++)
        if (!gradient[life.root[g->outputs.at[i]->id]])
            extend(&life, g->outputs.at[i], g->nodes.n);
    return life;
}

/* Items by step: those of step s are at[start[s]] to at[start[s + 1]]. */
struct step_items {
    int *start, *at;
};
struct lifetime_ends {
    struct step_items first, last;
};

static struct step_items items_of_steps(struct arena *arena, const struct lifetimes *life, int steps, bool last)
{
    struct step_items s = {NEWN(arena, int, steps + 3), NEWN(arena, int, life->nitem + 1)};
    int *end = s.start + 1; /* of each step while they are filled; finally the start of the next step */
    for (int i = 0; i < life->nitem; i++)
        end[(last ? life->items[i].last : life->items[i].first) + 1]++;
    for (int i = 1; i <= steps + 1; i++)
        end[i] += end[i - 1];
    for (int i = 0; i < life->nitem; i++)
        s.at[end[last ? life->items[i].last : life->items[i].first]++] = i;
    return s;
}

struct lifetime_ends *lifetime_ends_find(struct arena *arena, const struct lifetimes *life, int steps)
{
    struct lifetime_ends *ends = NEW(arena, struct lifetime_ends);
    ends->first = items_of_steps(arena, life, steps, false);
    ends->last = items_of_steps(arena, life, steps, true);
    return ends;
}

void lifetime_stretch_all(struct lifetimes *life, const struct lifetime_ends *ends, int first, int last)
{
    const struct step_items *lists[] = {&ends->first, &ends->last};
    for (int k = 0; k < 2; k++)
        for (int i = lists[k]->start[first]; i < lists[k]->start[last + 1]; i++)
            lifetime_stretch(&life->items[lists[k]->at[i]], first, last);
}

void lifetime_stretch(struct slab_item *item, int first, int last)
{
    if (item->first >= first && item->first <= last)
        item->first = first;
    if (item->last >= first && item->last <= last)
        item->last = last;
}
