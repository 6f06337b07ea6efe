/* recompute: the backward pass recomputes values of the forward pass (Chen et al. 2016), so that few of them are kept: those through which
 * every path from a trained weight passes, such as the residual stream between the halves of a layer.
 *
 * A value is kept if no other value that depends on a trained weight is live after its node. Other values that a node of the backward pass
 * reads are recomputed just before the first such node, by copies of their nodes. Again(x) is x: it makes the copies differ from the
 * originals, so that they are not merged. Values after the last kept one are read at once, and stay. */
#include "op/backward/backward.h"
#include "op/infer/infer.h"
#include "op/op.h"

#include <string.h>

struct recompute {
    struct arena *tmp;
    struct graph *g;
    int forward;          /* the number of nodes of the forward pass, the first ones of list */
    struct node **node;   /* the original nodes */
    bool *active, *kept;  /* by value id */
    int *position;        /* by value id: position of its producer in the forward pass; -1: outside of it, or it stays */
    struct value **again; /* by value id; NULL: not yet */
    struct nodes made;    /* the new list of nodes */
};

/* Moves the nodes that the loss depends on to the front, in order. */
static void split_halves(struct recompute *r)
{
    struct graph *g = r->g;
    bool *needed = NEWN(r->tmp, bool, g->values.n + 1);
    needed[g->outputs.at[0]->id] = true;
    const bool *is = graph_leads_to(g, r->tmp, needed);
    r->node = NEWN(r->tmp, struct node *, g->nodes.n + 1);
    for (int half = 0, at = 0; half < 2; half++) {
        for (int i = 0; i < g->nodes.n; i++)
            if (is[i] == (half == 0))
                r->node[at++] = g->nodes.at[i];
        r->forward = half == 0 ? at : r->forward;
    }
}

/* Marks values of any type that depend on a trained weight. */
static void find_active(struct recompute *r)
{
    for (int i = 0; i < r->g->trained.n; i++)
        r->active[r->g->trained.at[i].weight->id] = true;
    for (int i = 0; i < r->forward; i++) {
        bool reached = false;
        for (int k = 0; k < r->node[i]->nin; k++)
            reached = reached || (r->node[i]->in[k] && r->active[r->node[i]->in[k]->id]);
        for (int k = 0; reached && k < r->node[i]->nout; k++)
            if (r->node[i]->out[k])
                r->active[r->node[i]->out[k]->id] = true;
    }
}

/* By value id: the last node of the forward pass that reads it. */
static int *last_readers(const struct recompute *r)
{
    int *last = NEWN(r->tmp, int, r->g->values.n + 1);
    for (int i = 0; i < r->forward; i++)
        for (int k = 0; k < r->node[i]->nin; k++)
            if (r->node[i]->in[k])
                last[r->node[i]->in[k]->id] = i;
    return last;
}

/* The number of active results of node i that are read later; *v: one of them. */
static int results_read_later(const struct recompute *r, const int *last, int i, struct value **v)
{
    int n = 0;
    for (int k = 0; k < r->node[i]->nout; k++) {
        struct value *y = r->node[i]->out[k];
        if (y && r->active[y->id] && last[y->id] > i) {
            *v = y;
            n++;
        }
    }
    return n;
}

/* Returns the position of the last kept value; -1: none. */
static int find_kept(struct recompute *r)
{
    const int *last = last_readers(r);
    int *ends = NEWN(r->tmp, int, r->forward + 1), live = 0, at = -1;
    for (int i = 0; i < r->forward; i++) {
        struct value *v = NULL;
        int made = results_read_later(r, last, i, &v);
        live += made - ends[i];
        for (int k = 0; k < r->node[i]->nout; k++) {
            const struct value *y = r->node[i]->out[k];
            if (y && r->active[y->id] && last[y->id] > i)
                ends[last[y->id]]++;
        }
        if (live == 1 && made == 1) {
            r->kept[v->id] = true;
            at = i;
        }
    }
    return at;
}

struct size_search {
    const struct node *node;
    bool found;
};

static void find_own_size(void *search, const struct dim *symbol)
{
    struct size_search *s = search;
    bool given = !dim_has_data(symbol);
    for (int k = 0; k < s->node->nin; k++)
        given = given || (s->node->in[k] && type_uses(&s->node->in[k]->type, symbol->name));
    s->found = s->found || !given;
}

/* Whether its data gives a size its name: a copy would give it another one. */
static bool decides_size(const struct node *n)
{
    struct size_search s = {n, false};
    for (int k = 0; k < n->nout; k++)
        for (int d = 0; n->out[k] && d < n->out[k]->type.rank; d++)
            dim_each_symbol(n->out[k]->type.dim[d], find_own_size, &s);
    return s.found;
}

static bool repeatable(const struct node *n)
{
    return n->op && !(n->op->flags & (OP_DRAWS | OP_CONTROL | OP_COLLECTIVE)) && !decides_size(n);
}

/* Values up to the last kept one may be recomputed. */
static void find_positions(struct recompute *r, int end)
{
    for (int i = 0; i < r->g->values.n; i++)
        r->position[i] = -1;
    for (int i = 0; i <= end; i++)
        for (int k = 0; k < r->node[i]->nout; k++)
            if (r->node[i]->out[k] && r->active[r->node[i]->out[k]->id] && repeatable(r->node[i]))
                r->position[r->node[i]->out[k]->id] = i;
}

static void add_node(struct recompute *r, struct node *n)
{
    VEC_PUSH(r->g->arena, &r->made.list, n);
}

static struct value *kept_again(struct recompute *r, struct value *v)
{
    struct node *n = op_node(r->g, "tpc", "Again", arena_printf(r->g->arena, "%s/again", v->name), 1, &v);
    n->forward = v;
    n->again = true;
    add_node(r, n);
    return n->out[0];
}

static void copy_node(struct recompute *r, const struct node *n)
{
    struct node *copy = lower_copy_of(r->g, n, arena_printf(r->g->arena, "%s/again", n->name ? n->name : n->optype), n->nin, n->in);
    copy->forward = n->out[0];
    copy->again = true;
    for (int k = 0; k < copy->nin; k++)
        if (copy->in[k] && r->again[copy->in[k]->id])
            copy->in[k] = r->again[copy->in[k]->id];
    for (int k = 0; k < n->nout; k++)
        if (n->out[k] && copy->out[k] && !r->again[n->out[k]->id])
            r->again[n->out[k]->id] = copy->out[k];
    add_node(r, copy);
}

/* Marks the nodes to recompute v from, back to kept values. Returns the first position. */
static int mark_needed(struct recompute *r, struct value *v, bool *needed)
{
    VEC(struct value *) todo = {NULL, 0, 0};
    int first = r->position[v->id];
    VEC_PUSH(r->tmp, &todo, v);
    while (todo.n) {
        struct value *x = todo.at[--todo.n];
        int at = r->position[x->id];
        if (at < 0 || r->again[x->id] || needed[at])
            continue;
        if (r->kept[x->id]) {
            r->again[x->id] = kept_again(r, x);
            continue;
        }
        needed[at] = true;
        first = at < first ? at : first;
        for (int k = 0; k < r->node[at]->nin; k++)
            if (r->node[at]->in[k])
                VEC_PUSH(r->tmp, &todo, r->node[at]->in[k]);
    }
    return first;
}

static struct value *value_again(struct recompute *r, struct value *v, bool *needed)
{
    if (r->position[v->id] < 0)
        return v;
    int to = r->position[v->id];
    for (int i = mark_needed(r, v, needed); i <= to; i++)
        if (needed[i]) {
            copy_node(r, r->node[i]);
            needed[i] = false;
        }
    return r->again[v->id];
}

static void replace_reads(struct recompute *r, int values)
{
    bool *needed = NEWN(r->tmp, bool, r->forward + 1);
    for (int i = 0; i < r->forward; i++)
        add_node(r, r->node[i]);
    for (int i = r->forward, n = r->g->nodes.n; i < n; i++) {
        struct node *node = r->node[i];
        for (int k = 0; k < node->nin; k++)
            if (node->in[k] && node->in[k]->id < values)
                node->in[k] = value_again(r, node->in[k], needed);
        add_node(r, node);
    }
}

void recompute_forward(struct graph *g)
{
    struct arena *tmp = arena_new();
    int n = g->values.n;
    struct recompute r = {.tmp = tmp, .g = g, .active = NEWN(tmp, bool, n + 1), .kept = NEWN(tmp, bool, n + 1)};
    r.position = NEWN(tmp, int, n + 1);
    r.again = NEWN(tmp, struct value *, n + 1);
    split_halves(&r);
    find_active(&r);
    find_positions(&r, find_kept(&r));
    replace_reads(&r, n);
    g->nodes.n = 0;
    for (int i = 0; i < r.made.list.n; i++)
        graph_append(g, r.made.list.at[i]);
    arena_free(tmp);
    graph_prune(g);
}
