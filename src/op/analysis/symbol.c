/* symbol: occurrences of a symbol in types and attributes, and the factor of a node's rule that has it. */
#include "op/analysis/analysis.h"

enum { MOST_LISTED = 16 };

struct noted_symbols {
    struct arena *arena;
    struct name_index names;
    const char *list; /* NULL: empty so far */
};

static void note_symbol_name(void *noted_symbols, const struct dim *symbol)
{
    struct noted_symbols *s = noted_symbols;
    name_index_put(s->arena, &s->names, symbol->name, 0);
}

struct name_index symbol_of_inputs(struct arena *arena, const struct graph *g)
{
    struct noted_symbols s = {.arena = arena};
    for (int i = 0; i < g->inputs.n; i++)
        for (int d = 0; d < g->inputs.at[i]->type.rank; d++)
            dim_each_symbol(g->inputs.at[i]->type.dim[d], note_symbol_name, &s);
    return s.names;
}

static void list_symbol_name(void *noted_symbols, const struct dim *symbol)
{
    struct noted_symbols *s = noted_symbols;
    if (name_index_find(&s->names, symbol->name) >= 0)
        return;
    name_index_put(s->arena, &s->names, symbol->name, s->names.n);
    if (s->names.n <= MOST_LISTED)
        s->list = arena_printf(s->arena, "%s%s%s", s->list ? s->list : "", s->list ? ", " : "", symbol->name);
}

const char *symbol_list(struct arena *arena, int n, const struct type *const *types)
{
    struct noted_symbols s = {.arena = arena};
    for (int i = 0; i < n; i++)
        for (int d = 0; d < types[i]->rank; d++)
            dim_each_symbol(types[i]->dim[d], list_symbol_name, &s);
    const char *more = s.names.n > MOST_LISTED ? arena_printf(arena, " and %d more", s.names.n - MOST_LISTED) : "";
    return s.list ? arena_printf(arena, "it has %s%s", s.list, more) : "all sizes of its inputs are fixed";
}

const char *symbol_list_of_inputs(struct arena *arena, const struct graph *g)
{
    const struct type **types = NEWN(arena, const struct type *, g->inputs.n + 1);
    for (int i = 0; i < g->inputs.n; i++)
        types[i] = &g->inputs.at[i]->type;
    return symbol_list(arena, g->inputs.n, types);
}

int symbol_dims(struct graph *g, const struct dim *symbol, const struct value *v, int *dim)
{
    int n = 0;
    for (int d = 0; v && v->type.dtype != DT_NONE && d < v->type.rank; d++) {
        if (!dim_uses(dim_rewrite(g->alg, v->type.dim[d]), symbol->name))
            continue;
        *dim = d;
        n++;
    }
    return n;
}

bool symbol_in_type(struct graph *g, const struct dim *symbol, const struct value *v)
{
    int d;
    return symbol_dims(g, symbol, v, &d) > 0;
}

bool symbol_is_dim(struct graph *g, const struct dim *symbol, const struct value *v, int *dim)
{
    return symbol_dims(g, symbol, v, dim) == 1 && dim_rewrite(g->alg, v->type.dim[*dim]) == symbol;
}

bool symbol_in_sizes(struct graph *g, const struct dim *symbol, const struct node *n)
{
    for (int i = 0; i < n->nattr; i++) {
        const struct attr *a = &n->attr[i];
        for (int k = 0; a->kind == ATTR_DIMS && a->set && k < a->n; k++)
            if (dim_uses(dim_rewrite(g->alg, a->dims[k]), symbol->name))
                return true;
    }
    return false;
}

bool symbol_assign(struct graph *g, const struct rule *r, const struct rule_dim *dim, const struct split *split, struct assignment *c)
{
    for (int i = 0; dim->n == 1 && !dim->window && i < dim->part[0].n; i++) {
        const int *factor = dim->part[0].factor, f = factor[i];
        const struct split *s = split_divide(g->alg, split, rule_sizes(g, r, factor, 0, i),
                                             rule_sizes(g, r, factor, i + 1, dim->part[0].n));
        if (!s || s->replicated)
            continue;
        if ((r->factor[f].flags & (FACTOR_REPLICATED | FACTOR_POSITION | FACTOR_LOWERED)) || (c->factor[f] && c->factor[f] != s))
            return false;
        c->factor[f] = s;
        return true;
    }
    return false;
}
