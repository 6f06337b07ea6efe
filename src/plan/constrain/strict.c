/* strict: unrequested communication: what no constraint of the plan file requests. */
#include "plan/constrain/constrain.h"
#include "plan/cost/cost.h"
#include "plan/space/space.h"

/* The first step of a value that communicates; COLL_NONE: none does. */
static enum collective communicates(const struct space *s, const struct value *v)
{
    const struct place_uses *uses = &s->uses[v->id];
    struct placement at = s->chosen.read[v->id] ? *s->chosen.read[v->id] : v->place;
    enum collective by = placement_transition(v->place, at).by;
    for (int i = 0; !by && i < uses->list.n; i++)
        by = placement_transition(at, space_read_as(s, uses->list.at[i])).by;
    return by;
}

/* As a sentence; NULL: it communicates nothing that is not requested. */
static const char *unrequested_of(const struct space *s, const struct value *v)
{
    enum collective by = v->placed && !s->limits.requested[v->id] ? communicates(s, v) : COLL_NONE;
    return by ? arena_printf(s->arena, "no constraint asks for the %s of '%s', as {\"tensor\": \"%s\", \"placement\": \"R\"} would",
                             collective_name(by), v->name, v->name)
              : NULL;
}

static const char *unrequested_within(const struct space *s, int i)
{
    const struct node *n = s->g->nodes.at[i];
    enum collective by = s->limits.requested_within[i] ? COLL_NONE : lowering_sends(n->strategy);
    return by
        ? arena_printf(s->arena, "no constraint asks for the %s within node '%s' (%s), as {\"match\": \"%s\", \"strategy\": \"%s\"} would",
                       collective_name(by), n->name, n->optype, n->name, strategy_outline(s->arena, n, n->strategy))
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

static struct sentences unrequested(const struct space *s)
{
    struct sentences out = {0};
    for (int i = 0; i < s->g->inputs.n; i++)
        note(s, &out, unrequested_of(s, s->g->inputs.at[i]));
    for (int i = 0; i < s->g->nodes.n; i++) {
        const struct node *n = s->g->nodes.at[i];
        for (int k = 0; k < n->nout; k++)
            if (n->out[k])
                note(s, &out, unrequested_of(s, n->out[k]));
        note(s, &out, unrequested_within(s, i));
    }
    return out;
}

void strict_blame(struct space *s)
{
    struct sentences all = unrequested(s);
    require(all.list.n);
    fail("%s: --strict: %s", graph_file(s->g), all.list.at[0]);
}

void strict_warn(struct space *s)
{
    struct sentences all = unrequested(s);
    for (int i = 0; i < all.list.n; i++)
        VEC_PUSH(s->arena, &s->plan->warnings, all.list.at[i]);
}
