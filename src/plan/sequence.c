/* Which dimensions --sp splits, found without names.
 *
 * A sequence dimension is a row dimension of products that attention contracts over: its symbol also occurs in a contracted
 * dimension (the key length), or, where it is static, its own factor is contracted between two activations. The batch never is. It
 * is seeded at the results of row-split products: where terms of a sum appear, ReduceScatter can leave each rank its rows. */
#include "plan/space.h"

#include <string.h>

/* ---- classes of dimensions that are one factor wherever they go (union-find over value * MAX_RANK + dim) ------------------ */

static int class_of(int *up, int x)
{
    while (up[x] != x)
        x = up[x] = up[up[x]];
    return x;
}

static int lone_factor(const struct rule_operand *o, int d)
{
    return o->present && d < o->rank && o->dim[d].n == 1 && o->dim[d].part[0].n == 1 ? o->dim[d].part[0].factor[0] : -1;
}

static void join_node(const struct space *s, int node, int *up, int *first)
{
    const struct rule *r = s->rule[node];
    for (int f = 0; f < r->nfactor; f++)
        first[f] = -1;
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < (side ? r->nout : r->nin); i++) {
            const struct value *v = space_value(s->g->nodes.at[node], side, i);
            for (int d = 0; v && d < v->type.rank; d++) {
                int f = lone_factor(side ? &r->out[i] : &r->in[i], d);
                if (f < 0)
                    continue;
                int at = v->id * MAX_RANK + d;
                if (first[f] < 0)
                    first[f] = at;
                else
                    up[class_of(up, at)] = class_of(up, first[f]);
            }
        }
}

static int *dimension_classes(struct space *s)
{
    int n = s->g->values.n * MAX_RANK, most = 1;
    int *up = NEWN(s->arena, int, n + 1);
    for (int i = 0; i < n; i++)
        up[i] = i;
    for (int i = 0; i < s->g->nodes.n; i++)
        if (s->rule[i] && s->rule[i]->nfactor > most)
            most = s->rule[i]->nfactor;
    int *first = NEWN(s->arena, int, most + 1);
    for (int i = 0; i < s->g->nodes.n; i++)
        if (s->rule[i])
            join_node(s, i, up, first);
    return up;
}

/* ---- what is contracted between activations ------------------------------------------------------------------------------- */

struct contracted { VEC(const char *) symbols; bool *class_seen; };

static void note_symbols(struct space *s, struct contracted *c, const struct dim *size)
{
    const char *name[32];
    int n = dim_symbols(size, name, 32);
    for (int i = 0; i < n && i < 32; i++)
        VEC_PUSH(s->arena, &c->symbols, name[i]);
}

static bool between_activations(const struct space *s, const struct node *n)
{
    int count = 0;
    for (int i = 0; i < n->nin; i++)
        count += n->in[i] && !s->weight[n->in[i]->id];
    return count > 1 || (n->op->flags & OP_GROWS);
}

static void note_contracted(struct space *s, int node, int *up, struct contracted *c)
{
    const struct node *n = s->g->nodes.at[node];
    const struct rule *r = s->rule[node];
    for (int f = 0; f < r->nfactor; f++) {
        if (!(r->factor[f].flags & FACTOR_CONTRACTED))
            continue;
        note_symbols(s, c, r->factor[f].size);
        for (int i = 0; i < r->nin; i++)
            for (int d = 0; n->in[i] && d < n->in[i]->type.rank; d++)
                if (lone_factor(&r->in[i], d) == f)
                    c->class_seen[class_of(up, n->in[i]->id * MAX_RANK + d)] = true;
    }
}

/* What is laid into a contracted dimension is contracted with it: the new keys behind the past ones. */
static void reach_parts(struct space *s, int node, int *up, struct contracted *c)
{
    const struct rule *r = s->rule[node];
    const struct node *n = s->g->nodes.at[node];
    for (int d = 0; d < r->out[0].rank && n->out[0]; d++)
        for (int p = 0; r->out[0].dim[d].n > 1 && c->class_seen[class_of(up, n->out[0]->id * MAX_RANK + d)] && p < r->out[0].dim[d].n; p++) {
            const struct rule_part *part = &r->out[0].dim[d].part[p];
            for (int i = 0; part->n == 1 && i < r->nin; i++)
                if (n->in[i] && lone_factor(&r->in[i], d) == part->factor[0])
                    c->class_seen[class_of(up, n->in[i]->id * MAX_RANK + d)] = true;
        }
}

static bool symbol_known(const struct contracted *c, const char *name)
{
    for (int i = 0; i < c->symbols.n; i++)
        if (!strcmp(c->symbols.at[i], name))
            return true;
    return false;
}

/* ---- marking ---------------------------------------------------------------------------------------------------------------- */

static bool dimension_qualifies(struct space *s, const struct contracted *c, int *up, const struct value *v, int d)
{
    const struct dim *size = v->type.dim[d];
    const char *only = s->options->sp_symbol;
    if (size->kind == DIM_SYM)
        return symbol_known(c, size->name) && (!only || !strcmp(only, size->name));
    return size->kind == DIM_INT && size->k > 1 && !only && c->class_seen[class_of(up, v->id * MAX_RANK + d)];
}

/* Is dimension d of the result a row: does it come from an activation, and from no weight? */
static bool is_row(const struct space *s, int node, int d)
{
    const struct node *n = s->g->nodes.at[node];
    const struct rule *r = s->rule[node];
    int f = lone_factor(&r->out[0], d);
    bool activation = false;
    for (int i = 0; f >= 0 && i < r->nin; i++)
        for (int k = 0; n->in[i] && k < n->in[i]->type.rank; k++)
            if (lone_factor(&r->in[i], k) == f) {
                if (s->weight[n->in[i]->id])
                    return false;
                activation = true;
            }
    return activation;
}

static bool leaves_terms(const struct space *s, int node)
{
    for (int k = 0; k < s->strategies[node].list.n; k++)
        if (s->strategies[node].list.at[k]->out[0].kind == PLACE_P)
            return true;
    return false;
}

static bool has_weight(const struct space *s, const struct node *n)
{
    for (int i = 0; i < n->nin; i++)
        if (n->in[i] && s->weight[n->in[i]->id])
            return true;
    return false;
}

static void note_sequence(struct space *s, const struct dim *size)
{
    const char *text = dim_str(s->arena, size);
    if (!s->plan->sequence)
        s->plan->sequence = text;
    else if (!strstr(s->plan->sequence, text))
        s->plan->sequence = arena_printf(s->arena, "%s, %s", s->plan->sequence, text);
}

static bool seed_product(struct space *s, int node, const struct contracted *c, int *up, bool *class_on)
{
    const struct node *n = s->g->nodes.at[node];
    const struct value *v = n->out[0];
    bool found = false;
    for (int d = 0; v && d < v->type.rank; d++)
        if (is_row(s, node, d) && dimension_qualifies(s, c, up, v, d)) {
            space_add(s, v, d, split_even(s->g->alg, s->ranks, v->type.dim[d]), true);
            class_on[class_of(up, v->id * MAX_RANK + d)] = true;
            note_sequence(s, v->type.dim[d]);
            found = true;
        }
    return found;
}

static void mark_values(struct space *s, int *up, const bool *class_on)
{
    for (int i = 0; i < s->g->values.n; i++)
        for (int d = 0; d < s->g->values.at[i]->type.rank; d++)
            if (class_on[class_of(up, i * MAX_RANK + d)])
                s->sequence[i] = d;
}

void sequence_seed(struct space *s)
{
    int *up = dimension_classes(s), n = s->g->values.n * MAX_RANK + 1;
    struct contracted c = { .class_seen = NEWN(s->arena, bool, n) };
    bool *class_on = NEWN(s->arena, bool, n), found = false;
    for (int i = 0; i < s->g->nodes.n; i++)
        if (s->rule[i] && (s->g->nodes.at[i]->op->flags & OP_PRODUCT) && between_activations(s, s->g->nodes.at[i]))
            note_contracted(s, i, up, &c);
    for (int i = s->g->nodes.n - 1; i >= 0; i--)
        if (s->rule[i] && s->rule[i]->nout == 1)
            reach_parts(s, i, up, &c);
    for (int i = 0; i < s->g->nodes.n; i++)
        if (s->rule[i] && (s->g->nodes.at[i]->op->flags & OP_PRODUCT) && has_weight(s, s->g->nodes.at[i]) && leaves_terms(s, i))
            found |= seed_product(s, i, &c, up, class_on);
    if (!found)
        fail("%s: --sp%s%s: no dimension qualifies: none is a row of a row-split product and attended over", s->g->path ? s->g->path : s->g->name,
             s->options->sp_symbol ? "=" : "", s->options->sp_symbol ? s->options->sp_symbol : "");
    mark_values(s, up, class_on);
    s->sequence_on = true;
}
