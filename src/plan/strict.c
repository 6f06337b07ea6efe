/* strict: the plan with the least communication that nobody asked for names the first of it. */
#include "plan/space.h"

static struct placement wanted(const struct space *s, struct place_use u)
{
    return u.node < 0 ? s->output_place[u.operand] : ((const struct strategy *)s->g->nodes.at[u.node]->strategy)->in[u.operand];
}

/* The first step of a value that communicates; NULL: none does. */
static const char *communicates(const struct space *s, const struct value *v)
{
    struct placement at = v->place;
    const char *name = s->pin[v->id] ? reshard_name(at, *s->pin[v->id]) : NULL;
    if (s->pin[v->id])
        at = *s->pin[v->id];
    for (int i = 0; !name && i < s->uses[v->id].list.n; i++)
        if (!placement_eq(at, wanted(s, s->uses[v->id].list.at[i])))
            name = reshard_name(at, wanted(s, s->uses[v->id].list.at[i]));
    return name;
}

static void blame(const struct space *s, const struct value *v)
{
    const char *op = v->placed && !s->asked[v->id] ? communicates(s, v) : NULL;
    if (op)
        fail("%s: --strict: no constraint asks for the %s of '%s', as {\"tensor\": \"%s\", \"placement\": \"R\"} would", s->g->path ? s->g->path : s->g->name,
             op, v->name, v->name);
}

static void blame_lowering(const struct space *s, int i)
{
    const struct node *n = s->g->nodes.at[i];
    const char *op = s->asked_within[i] ? NULL : lowered_sends(n->strategy);
    if (op)
        fail("%s: --strict: no constraint asks for the %s within node '%s' (%s), as {\"match\": \"%s\", \"strategy\": \"%s\"} would",
             s->g->path ? s->g->path : s->g->name, op, n->name, n->optype, n->name, strategy_outline(s->arena, n, n->strategy));
}

void strict_blame(struct space *s)
{
    for (int i = 0; i < s->g->inputs.n; i++)
        blame(s, s->g->inputs.at[i]);
    for (int i = 0; i < s->g->nodes.n; i++) {
        for (int k = 0; k < s->g->nodes.at[i]->nout; k++)
            if (s->g->nodes.at[i]->out[k])
                blame(s, s->g->nodes.at[i]->out[k]);
        blame_lowering(s, i);
    }
    bug("--strict allows no plan, and nothing communicates unasked");
}
