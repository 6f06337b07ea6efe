/* Forms that sizes decide: which sizes, and what the user is told of them. */
#include "op/infer/infer.h"

static void note_symbol(void *data, const struct dim *symbol)
{
    struct graph *g = data;
    for (int i = 0; i < g->undecided.by.n; i++)
        if (g->undecided.by.at[i] == symbol)
            return;
    VEC_PUSH(g->arena, &g->undecided.by, symbol);
}

bool op_undecided_by_type(struct graph *g, const struct type *t, const char *what)
{
    g->undecided.by.n = 0;
    for (int d = 0; d < t->rank; d++)
        dim_each_symbol(t->dim[d], note_symbol, g);
    g->undecided.what = g->undecided.by.n ? what : NULL;
    return g->undecided.what != NULL;
}

struct behind {
    struct arena *tmp;
    bool *seen;
    VEC(const struct value *) list;
};

static void see(struct behind *b, const struct value *v)
{
    if (!v || v->constant || b->seen[v->id])
        return;
    b->seen[v->id] = true;
    VEC_PUSH(b->tmp, &b->list, v);
}

bool op_undecided_by_value(struct graph *g, const struct value *v, const char *what)
{
    struct behind b = {.tmp = arena_new()};
    b.seen = NEWN(b.tmp, bool, g->values.n + 1);
    g->undecided.by.n = 0;
    see(&b, v);
    for (int i = 0; i < b.list.n; i++) {
        const struct value *at = b.list.at[i];
        for (int k = 0; at->dims && k < at->dims->n; k++)
            dim_each_symbol(at->dims->at[k], note_symbol, g);
        for (int k = 0; !at->dims && at->producer && k < at->producer->nin; k++)
            see(&b, at->producer->in[k]);
    }
    arena_free(b.tmp);
    g->undecided.what = g->undecided.by.n ? what : NULL;
    return g->undecided.what != NULL;
}

static bool is_of_input(const struct graph *g, const struct dim *symbol)
{
    for (int i = 0; i < g->inputs.n; i++)
        for (int d = 0; d < g->inputs.at[i]->type.rank; d++)
            if (dim_uses(g->inputs.at[i]->type.dim[d], symbol->name))
                return true;
    return false;
}

void op_fail_undecided(const struct graph *g)
{
    const char *list = "";
    for (int i = 0; i < g->undecided.by.n; i++)
        if (is_of_input(g, g->undecided.by.at[i]))
            list = arena_printf(g->arena, "%s --dim %s=N", list, g->undecided.by.at[i]->name);
    if (!*list)
        fail("%s: that follows from data, which is not known here", g->undecided.what);
    fail("%s: that follows from sizes which are not known here: give them as%s", g->undecided.what, list);
}
