/* undecided: forms that depend on sizes or values of inputs: finds them, and tells the user which to give. */
#include "op/infer/infer.h"

static void note_symbol(void *data, const struct dim *symbol)
{
    struct graph *g = data;
    for (int i = 0; i < g->undecided.by.n; i++)
        if (g->undecided.by.at[i] == symbol)
            return;
    VEC_PUSH(g->arena, &g->undecided.by, symbol);
}

static void clear(struct graph *g)
{
    g->undecided.what = NULL;
    g->undecided.by.n = g->undecided.inputs.n = 0;
}

static bool note(struct graph *g, const char *what)
{
    g->undecided.what = g->undecided.by.n || g->undecided.inputs.n ? what : NULL;
    return g->undecided.what != NULL;
}

bool op_undecided_by_type(struct graph *g, const struct type *t, const char *what)
{
    clear(g);
    for (int d = 0; d < t->rank; d++)
        dim_each_symbol(t->dim[d], note_symbol, g);
    return note(g, what);
}

struct behind {
    struct arena *tmp;
    bool *seen;
    VEC(struct value *) list;
};

static void see(struct behind *b, struct value *v)
{
    if (!v || v->constant || b->seen[v->id])
        return;
    b->seen[v->id] = true;
    VEC_PUSH(b->tmp, &b->list, v);
}

static void note_value(struct graph *g, struct behind *b, struct value *v)
{
    for (int k = 0; v->dims && k < v->dims->n; k++)
        dim_each_symbol(v->dims->at[k], note_symbol, g);
    if (!v->dims && !v->producer)
        VEC_PUSH(g->arena, &g->undecided.inputs, v);
    for (int k = 0; !v->dims && v->producer && k < v->producer->nin; k++)
        see(b, v->producer->in[k]);
}

bool op_undecided_by_values(struct graph *g, int n, struct value *const *v, const char *what)
{
    struct behind b = {.tmp = arena_new()};
    b.seen = NEWN(b.tmp, bool, g->values.n + 1);
    clear(g);
    for (int i = 0; i < n; i++)
        see(&b, v[i]);
    for (int i = 0; i < b.list.n; i++)
        note_value(g, &b, b.list.at[i]);
    arena_free(b.tmp);
    return note(g, what);
}

void op_undecided_also(struct graph *g, const struct dim *size)
{
    dim_each_symbol(size, note_symbol, g);
}

static bool is_of_input(const struct graph *g, const struct dim *symbol)
{
    for (int i = 0; i < g->inputs.n; i++)
        if (type_uses(&g->inputs.at[i]->type, symbol->name))
            return true;
    return false;
}

static bool is_bindable(const struct value *v)
{
    return (dtype_is_integer(v->type.dtype) && v->type.dtype != DT_U64) || v->type.dtype == DT_BOOL;
}

void op_fail_undecided(const struct graph *g)
{
    const char *list = "";
    for (int i = 0; i < g->undecided.by.n; i++)
        if (is_of_input(g, g->undecided.by.at[i]))
            list = arena_printf(g->arena, "%s --dim %s=N", list, g->undecided.by.at[i]->name);
    for (int i = 0; i < g->undecided.inputs.n; i++)
        if (is_bindable(g->undecided.inputs.at[i]))
            list = arena_printf(g->arena, "%s --bind %s=VALUE", list, g->undecided.inputs.at[i]->name);
    if (!*list)
        fail("%s: that depends on data, which is not known yet", g->undecided.what);
    fail("%s: that depends on inputs that are not known yet; give it as%s", g->undecided.what, list);
}
