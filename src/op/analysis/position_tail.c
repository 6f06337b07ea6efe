/* position_tail: the end of a graph in which every position is computed separately: the product with the vocabulary, the last norm, and the
 * nodes before these back to the last attention.
 *
 * From the output backwards, a symbol is treated as if its dimension were split over two ranks that exchange nothing. A node whose rule
 * carries that split from its results to its operands, and whose results have no other readers, computes each position from the same
 * position. Any subset of positions of the operands gives these positions of the output. */
#include "op/analysis/analysis.h"
#include "op/op.h"
#include "op/rule/rule.h"

#include <string.h>

struct tail_walk {
    struct arena *arena;
    struct graph *g;
    const struct dim *symbol, *rows;
    const struct value *output;
    const struct uses *uses;
    struct placement *at; /* by value id: the dimension of positions */
    bool *inside, *read;  /* by value id: made by a node of the tail; read by one */
    bool *outside;        /* by node position: cannot be in the tail */
};

static bool counts_positions(const struct tail_walk *w, const struct value *v)
{
    return w->at[v->id].kind == PLACE_S;
}

/* ---- one node ----------------------------------------------------------------------------------------------------------------------- */

static const struct value *first_result(const struct node *n)
{
    int k = 0;
    while (k < n->nout && !n->out[k])
        k++;
    return k < n->nout ? n->out[k] : NULL;
}

/* Whether all readers of the result are in the tail, or the result is its end. */
static bool only_for_tail(const struct tail_walk *w, const struct value *v)
{
    const struct uses *u = &w->uses[v->id];
    if (v == w->output)
        return u->n == 1;
    for (int i = 0; i < u->n; i++)
        if (!u->at[i].node || !w->inside[first_result(u->at[i].node)->id])
            return false;
    return true;
}

static bool makes_positions(const struct tail_walk *w, const struct node *n)
{
    bool some = false;
    for (int k = 0; k < n->nout; k++) {
        if (!n->out[k])
            continue;
        if (!only_for_tail(w, n->out[k]) || (symbol_in_type(w->g, w->symbol, n->out[k]) && !counts_positions(w, n->out[k])))
            return false;
        some = some || counts_positions(w, n->out[k]);
    }
    return some;
}

/* Whether a collective acts on other dimensions, in the same way for all positions. */
static bool passes_collective(const struct node *n, int dim)
{
    static const char *const axes[] = {"axis", "split_axis", "concat_axis"};
    int rank = n->out[0]->type.rank;
    for (int k = 0; k < n->nattr; k++)
        for (int i = 0; i < 3; i++)
            if (strcmp(n->attr[k].name, axes[i]) == 0 && (n->attr[k].i == dim || n->attr[k].i + rank == dim))
                return false;
    return true;
}

static bool project_back(struct tail_walk *w, const struct node *n, struct placement *in, struct placement *out)
{
    if (n->op->flags & OP_COLLECTIVE) {
        in[0] = out[0] = w->at[n->out[0]->id];
        return passes_collective(n, in[0].dim);
    }
    struct rule *r = rule_of(w->g, n);
    if (!r)
        return false;
    struct assignment c = {.factor = NEWN(w->arena, const struct split *, r->nfactor + 1)};
    for (int k = 0; k < n->nout; k++) {
        const struct placement *at = n->out[k] ? &w->at[n->out[k]->id] : NULL;
        if (at && at->kind == PLACE_S && !symbol_assign(w->g, r, &r->out[k].dim[at->dim], at->split, &c))
            return false;
    }
    return rule_project(w->g, r, SYMBOL_PARTS, &c, in, out, NULL);
}

/* Whether the operand has positions exactly where the node needs them. */
static bool operand_fits(const struct tail_walk *w, const struct value *v, struct placement in)
{
    int dim = -1, n = symbol_dims(w->g, w->symbol, v, &dim);
    if (n == 0)
        return in.kind == PLACE_R;
    return n == 1 && in.kind == PLACE_S && in.dim == dim && !v->constant && !v->dims &&
        (!counts_positions(w, v) || placement_eq(w->at[v->id], in)) &&
        dim_quotient(w->g->alg, dim_rewrite(w->g->alg, v->type.dim[dim]), w->symbol);
}

static bool joins(struct tail_walk *w, const struct node *n)
{
    if (!n->op || n->op->flags & (OP_CONTROL | OP_DRAWS) || symbol_in_sizes(w->g, w->symbol, n) || !makes_positions(w, n))
        return false;
    struct placement *in = NEWN(w->arena, struct placement, n->nin + 1), *out = NEWN(w->arena, struct placement, n->nout + 1);
    if (!project_back(w, n, in, out))
        return false;
    for (int k = 0; k < n->nout; k++)
        if (n->out[k] && !placement_eq(out[k], w->at[n->out[k]->id]))
            return false;
    for (int k = 0; k < n->nin; k++)
        for (int j = 0; n->in[k] && j <= k; j++)
            if (!operand_fits(w, n->in[k], in[k]) || (n->in[j] == n->in[k] && !placement_eq(in[j], in[k])))
                return false;
    for (int k = 0; k < n->nin; k++)
        if (n->in[k] && in[k].kind == PLACE_S)
            w->at[n->in[k]->id] = in[k];
    return true;
}

static void add_node(struct tail_walk *w, const struct node *n)
{
    for (int k = 0; k < n->nout; k++)
        if (n->out[k])
            w->inside[n->out[k]->id] = true;
    for (int k = 0; k < n->nin; k++)
        if (n->in[k])
            w->read[n->in[k]->id] = true;
}

/* ---- all nodes ---------------------------------------------------------------------------------------------------------------------- */

static void walk_back(struct tail_walk *w)
{
    int dim;
    for (int i = 0; i < w->g->values.n; i++) {
        w->at[i] = placement_replicated;
        w->inside[i] = w->read[i] = false;
    }
    if (!symbol_is_dim(w->g, w->symbol, w->output, &dim))
        return;
    w->at[w->output->id] = placement_split(dim, split_even(w->g->alg, SYMBOL_PARTS, w->symbol));
    for (int i = w->g->nodes.n - 1; i >= 0; i--)
        if (!w->outside[i] && joins(w, w->g->nodes.at[i]))
            add_node(w, w->g->nodes.at[i]);
}

static bool is_cut(const struct tail_walk *w, const struct value *v)
{
    return w->read[v->id] && counts_positions(w, v) && !w->inside[v->id];
}

/* Whether positions are a dimension of their own, after the dimension of rows. */
static bool cut_fits(const struct tail_walk *w, const struct value *v)
{
    int dim;
    return symbol_is_dim(w->g, w->symbol, v, &dim) && (!w->rows || (dim == 1 && dim_rewrite(w->g->alg, v->type.dim[0]) == w->rows));
}

/* Removes nodes that read positions of values that cannot be cut. True: there were some. */
static bool exclude_misfits(struct tail_walk *w)
{
    bool any = false;
    for (int i = 0; i < w->g->nodes.n; i++) {
        const struct node *n = w->g->nodes.at[i];
        const struct value *made = first_result(n);
        for (int k = 0; made && w->inside[made->id] && k < n->nin; k++)
            if (n->in[k] && is_cut(w, n->in[k]) && !cut_fits(w, n->in[k]))
                any = w->outside[i] = true;
    }
    return any;
}

bool position_tail_find(struct arena *a, struct graph *g, int output, const struct dim *symbol, const struct dim *rows,
                        struct position_tail *tail)
{
    struct tail_walk w = {.arena = a, .g = g, .symbol = symbol, .rows = rows, .output = g->outputs.at[output], .uses = graph_uses(g, a)};
    bool product = false;
    w.at = NEWN(a, struct placement, g->values.n + 1);
    w.inside = NEWN(a, bool, g->values.n + 1);
    w.read = NEWN(a, bool, g->values.n + 1);
    w.outside = NEWN(a, bool, g->nodes.n + 1);
    do
        walk_back(&w);
    while (exclude_misfits(&w));
    memset(tail, 0, sizeof *tail);
    for (int i = 0; i < g->nodes.n; i++) {
        const struct value *made = first_result(g->nodes.at[i]);
        if (!made || !w.inside[made->id])
            continue;
        VEC_PUSH(a, &tail->nodes, g->nodes.at[i]);
        product = product || g->nodes.at[i]->op->flags & OP_PRODUCT;
    }
    for (int i = 0; i < g->values.n; i++)
        if (is_cut(&w, g->values.at[i]))
            VEC_PUSH(a, &tail->cuts, ((struct position_cut){g->values.at[i], w.at[i].dim}));
    return product;
}
