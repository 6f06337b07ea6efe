/* rows: which symbols count rows that a graph treats one by one, so that any of them can be computed alone (a batch).
 *
 * A symbol is taken as if its dimension were dealt out to two ranks that exchange nothing. By the rules of the nodes (rule.c, project.c)
 * that placement goes from the inputs to the outputs. A node that would need a whole value, leaves terms, or compares positions mixes
 * rows; one that has the symbol as a number knows how many there are. Whoever has some rows then runs the same graph on them, with
 * their number as the value of the symbol, and gets these rows of the results. */
#include "op/op.h"

#include <string.h>

enum { PARTS = 2 };

struct walk {
    struct graph *g;
    const struct dim *size;          /* the symbol */
    const struct split *split;       /* an even deal of it */
    struct placement *at;            /* by value id */
    const char *why;                 /* rows are not independent; NULL: no reason met */
};

/* How many dimensions have the symbol in their size; the last of them. */
static int dims_with(const struct walk *w, const struct value *v, int *dim)
{
    int n = 0;
    for (int d = 0; v && v->type.dtype != DT_NONE && d < v->type.rank; d++) {
        if (!dim_uses(dim_rewrite(w->g->alg, v->type.dim[d]), w->size->name))
            continue;
        *dim = d;
        n++;
    }
    return n;
}

static bool has_symbol(const struct walk *w, const struct value *v)
{
    int d;
    return dims_with(w, v, &d) > 0;
}

/* The only dimension that has the symbol is the symbol. */
static bool counts_rows(const struct walk *w, const struct value *v, int *dim)
{
    return dims_with(w, v, dim) == 1 && dim_rewrite(w->g->alg, v->type.dim[*dim]) == w->size;
}

static void check_end(struct walk *w, const char *kind, const struct value *v)
{
    int d;
    if (!w->why && has_symbol(w, v) && !counts_rows(w, v, &d))
        w->why = arena_printf(w->g->arena, "%s '%s' (%s) has no dimension of its own for them", kind, v->name, type_str(w->g->arena, &v->type));
}

static void start(struct walk *w)
{
    int d;
    for (int i = 0; i < w->g->inputs.n; i++) {
        const struct value *v = w->g->inputs.at[i];
        check_end(w, "input", v);
        if (has_symbol(w, v) && counts_rows(w, v, &d))
            w->at[v->id] = placement_split(d, w->split);
    }
}

/* ---- one node ---------------------------------------------------------------------------------------------------------------------- */

/* A size that an attribute states is no dimension: a bound of a slice, a number that is data. */
static bool states_symbol(const struct walk *w, const struct node *n)
{
    for (int i = 0; i < n->nattr; i++) {
        const struct attr *a = &n->attr[i];
        for (int k = 0; a->kind == ATTR_DIMS && a->set && k < a->n; k++)
            if (dim_uses(dim_rewrite(w->g->alg, a->dims[k]), w->size->name))
                return true;
    }
    return false;
}

static bool is_split(const struct walk *w, const struct value *v) { return v && w->at[v->id].kind == PLACE_S; }

static bool concerned(const struct walk *w, const struct node *n)
{
    for (int i = 0; i < n->nin; i++)
        if (is_split(w, n->in[i]))
            return true;
    for (int i = 0; i < n->nout; i++)
        if (has_symbol(w, n->out[i]))
            return true;
    return false;
}

/* The factor of the dimension on which the split falls gets it. */
static bool give(const struct walk *w, const struct rule *r, const struct rule_dim *dim, const struct split *split, struct choice *c)
{
    for (int i = 0; dim->n == 1 && i < dim->part[0].n; i++) {
        const int *factor = dim->part[0].factor, f = factor[i];
        const struct split *s = split_divide(w->g->alg, split, rule_sizes(w->g, r, factor, 0, i), rule_sizes(w->g, r, factor, i + 1, dim->part[0].n));
        if (!s || s->whole)
            continue;
        if ((r->factor[f].flags & (FACTOR_WHOLE | FACTOR_POSITION | FACTOR_LOWERED)) || (c->factor[f] && c->factor[f] != s))
            return false;
        c->factor[f] = s;
        return true;
    }
    return false;
}

/* Rows that the node makes of nothing (Expand) are a factor that counts them. */
static void give_new(const struct walk *w, const struct rule *r, struct choice *c)
{
    for (int f = 0; f < r->nfactor; f++)
        if (r->factor[f].size == w->size)
            c->factor[f] = w->split;
}

static bool choose(const struct walk *w, const struct node *n, const struct rule *r, struct choice *c)
{
    bool given = false;
    for (int i = 0; i < n->nin; i++) {
        if (!is_split(w, n->in[i]))
            continue;
        const struct placement at = w->at[n->in[i]->id];
        if (!give(w, r, &r->in[i].dim[at.dim], at.split, c))
            return false;
        given = true;
    }
    if (!given)
        give_new(w, r, c);
    return true;
}

/* A result is dealt out along the dimension that has the symbol, or has none. */
static bool result_fits(const struct walk *w, const struct value *v, struct placement out)
{
    int d = -1, n = dims_with(w, v, &d);
    return n == 0 ? out.kind == PLACE_R : n == 1 && out.kind == PLACE_S && out.dim == d;
}

static bool keeps_rows(struct walk *w, const struct node *n)
{
    struct rule *r = rule_of(w->g, n);
    if (!r)
        return false;
    struct choice c = {.factor = NEWN(w->g->arena, const struct split *, r->nfactor + 1)};
    struct placement *in = NEWN(w->g->arena, struct placement, n->nin + 1), *out = NEWN(w->g->arena, struct placement, n->nout + 1);
    if (!choose(w, n, r, &c) || !rule_project(w->g, r, PARTS, &c, in, out))
        return false;
    for (int i = 0; i < n->nin; i++)
        if (n->in[i] && !placement_eq(in[i], w->at[n->in[i]->id]))
            return false;
    for (int i = 0; i < n->nout; i++) {
        if (!n->out[i])
            continue;
        if (!result_fits(w, n->out[i], out[i]))
            return false;
        w->at[n->out[i]->id] = out[i];
    }
    return true;
}

static void visit(struct walk *w, const struct node *n)
{
    if (states_symbol(w, n))
        w->why = arena_printf(w->g->arena, "node '%s' (%s) depends on how many there are", n->name, n->optype);
    else if (concerned(w, n) && !keeps_rows(w, n))
        w->why = arena_printf(w->g->arena, "node '%s' (%s) mixes them", n->name, n->optype);
}

/* ---- all nodes ----------------------------------------------------------------------------------------------------------------------- */

static const char *mixed(struct graph *g, const struct dim *symbol)
{
    struct walk w = {.g = g, .size = symbol, .split = split_even(g->alg, PARTS, symbol), .at = NEWN(g->arena, struct placement, g->values.n + 1)};
    bool any = false;
    start(&w);
    for (int i = 0; i < g->nodes.n && !w.why; i++)
        visit(&w, g->nodes.at[i]);
    for (int i = 0; i < g->outputs.n && !w.why; i++) {
        check_end(&w, "output", g->outputs.at[i]);
        any |= has_symbol(&w, g->outputs.at[i]);
    }
    return w.why || any ? w.why : "no output has a dimension for them";
}

struct symbols { VEC(const struct dim *) list; };

static bool is_listed(const struct symbols *s, const struct dim *symbol)
{
    for (int i = 0; i < s->list.n; i++)
        if (s->list.at[i] == symbol)
            return true;
    return false;
}

void op_note_rows(struct graph *g)
{
    struct symbols seen = {{NULL, 0, 0}};
    for (int i = 0; i < g->inputs.n; i++)
        for (int d = 0; d < g->inputs.at[i]->type.rank; d++) {
            const struct dim *size = dim_rewrite(g->alg, g->inputs.at[i]->type.dim[d]);
            if (size->kind != DIM_SYM || is_listed(&seen, size))
                continue;
            VEC_PUSH(g->arena, &seen.list, size);
            const char *why = mixed(g, size);
            graph_set_meta(g, arena_printf(g->arena, OP_ROWS "%s", size->name), why ? why : OP_ROWS_INDEPENDENT);
        }
}
