/* strict: the plan that would be made without --strict names the communication that nobody asked for. */
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

void strict_blame(struct space *s)
{
    for (int i = 0; i < s->g->values.n; i++) {
        const struct value *v = s->g->values.at[i];
        const char *op = v->placed && !s->asked[i] ? communicates(s, v) : NULL;
        if (op)
            fail("%s: --strict: no constraint asks for the %s of '%s'; {\"tensor\": \"%s\", \"placement\": \"R\"} would", s->g->path ? s->g->path : s->g->name,
                 op, v->name, v->name);
    }
    bug("--strict allows nothing, and nothing communicates unasked");
}
