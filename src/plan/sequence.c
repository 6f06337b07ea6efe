/* Which dimensions --sp splits, found without names.
 *
 * A sequence dimension is a row dimension of products that attention contracts over: its symbol also occurs in a contracted
 * dimension (the key length), or, where it is static, its own factor is contracted between two activations. The batch never is. It
 * is seeded at the results of row-split products: where terms of a sum appear, ReduceScatter can leave each rank its rows. */
#include "plan/space.h"

#include <string.h>

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
                if (class_factor(&r->in[i], d) == f)
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
    int f = class_factor(&r->out[0], d);
    bool activation = false;
    for (int i = 0; f >= 0 && i < r->nin; i++)
        for (int k = 0; n->in[i] && k < n->in[i]->type.rank; k++)
            if (class_factor(&r->in[i], k) == f) {
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
            space_add(s, v, d, (struct candidate){ split_even(s->g->alg, s->ranks, v->type.dim[d]), true, "--sp at", node });
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
    int *up = classes_new(s), n = s->g->values.n * MAX_RANK + 1;
    struct contracted c = { .class_seen = NEWN(s->arena, bool, n) };
    bool *class_on = NEWN(s->arena, bool, n), found = false;
    for (int i = 0; i < s->g->nodes.n; i++)
        if (s->rule[i] && (s->g->nodes.at[i]->op->flags & OP_PRODUCT) && between_activations(s, s->g->nodes.at[i]))
            note_contracted(s, i, up, &c);
    classes_spread(s, up, c.class_seen);          /* the new keys behind the past ones */
    for (int i = 0; i < s->g->nodes.n; i++)
        if (s->rule[i] && (s->g->nodes.at[i]->op->flags & OP_PRODUCT) && space_has_weight(s, s->g->nodes.at[i]) && leaves_terms(s, i))
            found |= seed_product(s, i, &c, up, class_on);
    if (!found)
        fail("%s: --sp%s%s: no dimension qualifies: none is a row of a row-split product and attended over", s->g->path ? s->g->path : s->g->name,
             s->options->sp_symbol ? "=" : "", s->options->sp_symbol ? s->options->sp_symbol : "");
    mark_values(s, up, class_on);
    s->sequence_on = true;
}
