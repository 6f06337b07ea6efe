/* strict: communication that no constraint of the plan file asks for. */
#include "op/rule/rule.h"
#include "plan/constrain/constrain.h"
#include "plan/cost/cost.h"
#include "plan/space/space.h"

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

/* As a sentence; NULL: it communicates nothing that is not asked for. */
static const char *unasked_of(const struct space *s, const struct value *v)
{
    const char *op = v->placed && !s->asked[v->id] ? communicates(s, v) : NULL;
    return op ? arena_printf(s->arena, "no constraint asks for the %s of '%s', as {\"tensor\": \"%s\", \"placement\": \"R\"} would", op,
                             v->name, v->name)
              : NULL;
}

static const char *unasked_within(const struct space *s, int i)
{
    const struct node *n = s->g->nodes.at[i];
    const char *op = s->asked_within[i] ? NULL : lowered_sends(n->strategy);
    return op
        ? arena_printf(s->arena, "no constraint asks for the %s within node '%s' (%s), as {\"match\": \"%s\", \"strategy\": \"%s\"} would",
                       op, n->name, n->optype, n->name, strategy_outline(s->arena, n, n->strategy))
        : NULL;
}

/* In the order of the graph. */
struct sentences {
    VEC(const char *) list;
};

static void note(const struct space *s, struct sentences *out, const char *sentence)
{
    if (sentence)
        VEC_PUSH(s->arena, &out->list, sentence);
}

static struct sentences unasked(const struct space *s)
{
    struct sentences out = {0};
    for (int i = 0; i < s->g->inputs.n; i++)
        note(s, &out, unasked_of(s, s->g->inputs.at[i]));
    for (int i = 0; i < s->g->nodes.n; i++) {
        const struct node *n = s->g->nodes.at[i];
        for (int k = 0; k < n->nout; k++)
            if (n->out[k])
                note(s, &out, unasked_of(s, n->out[k]));
        note(s, &out, unasked_within(s, i));
    }
    return out;
}

void strict_blame(struct space *s)
{
    struct sentences all = unasked(s);
    require(all.list.n);
    fail("%s: --strict: %s", graph_file(s->g), all.list.at[0]);
}

void strict_warn(struct space *s)
{
    struct sentences all = unasked(s);
    for (int i = 0; i < all.list.n; i++)
        VEC_PUSH(s->arena, &s->plan->warnings, all.list.at[i]);
}
