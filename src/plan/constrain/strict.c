/* strict: finds unrequested communication: collectives that no constraint of the plan file requests. */
#include "plan/constrain/constrain.h"
#include "plan/cost/cost.h"
#include "plan/space/space.h"

#include <string.h>

/* The first collective of a reshard of the value; COLL_NONE: none. */
static enum collective communicates(const struct space *s, const struct value *v)
{
    const struct place_uses *uses = &s->uses[v->id];
    struct placement at = s->chosen.read[v->id] ? *s->chosen.read[v->id] : v->place;
    enum collective by = placement_transition(v->place, at).by;
    for (int i = 0; !by && i < uses->list.n; i++)
        by = placement_transition(at, space_read_as(s, uses->list.at[i])).by;
    return by;
}

/* An unrequested collective: what it moves, and where; pattern: its name with layer numbers as *. */
struct unrequested {
    enum collective by;
    const char *name, *pattern, *within; /* within: the op of the lowered node that contains it; NULL: it reshards a value */
    const char *strategy;                /* of that node */
    int count;
};
/* In graph order. */
struct all_unrequested {
    VEC(struct unrequested) list;
};

static const char *sentence(struct arena *a, const struct unrequested *u, const char *name)
{
    const char *times = u->count > 1 ? arena_printf(a, "%d ", u->count) : "", *several = u->count > 1 ? "s" : "";
    const char *asked = arena_printf(a, "no constraint asks for the %s%s%s", times, collective_name(u->by), several);
    return u->within ? arena_printf(a, "%s within node%s '%s' (%s), as {\"match\": \"%s\", \"strategy\": \"%s\"} would", asked, several,
                                    name, u->within, name, u->strategy)
                     : arena_printf(a, "%s of '%s', as {\"tensor\": \"%s\", \"placement\": \"R\"} would", asked, name, name);
}

static void add_value(struct space *s, struct all_unrequested *out, const struct value *v)
{
    enum collective by = v->placed && !s->limits.requested[v->id] ? communicates(s, v) : COLL_NONE;
    if (by)
        VEC_PUSH(s->arena, &out->list, ((struct unrequested){by, v->name, label_pattern(s->arena, v->name), NULL, "", 1}));
}

static void add_within(struct space *s, struct all_unrequested *out, int i)
{
    const struct node *n = s->g->nodes.at[i];
    enum collective by = s->limits.requested_within[i] ? COLL_NONE : lowering_sends(n->strategy);
    if (by)
        VEC_PUSH(s->arena, &out->list,
                 ((struct unrequested){by, n->name, label_pattern(s->arena, n->name), n->optype, strategy_outline(s->arena, n, n->strategy),
                                       1}));
}

static struct all_unrequested unrequested(struct space *s)
{
    struct all_unrequested out = {.list = {NULL, 0, 0}};
    for (int i = 0; i < s->g->inputs.n; i++)
        add_value(s, &out, s->g->inputs.at[i]);
    for (int i = 0; i < s->g->nodes.n; i++) {
        const struct node *n = s->g->nodes.at[i];
        for (int k = 0; k < n->nout; k++)
            if (n->out[k])
                add_value(s, &out, n->out[k]);
        add_within(s, &out, i);
    }
    return out;
}

void strict_blame(struct space *s)
{
    struct all_unrequested all = unrequested(s);
    require(all.list.n);
    fail("%s: --strict: %s", graph_file(s->g), sentence(s->arena, &all.list.at[0], all.list.at[0].name));
}

static bool is_alike(const struct unrequested *a, const struct unrequested *b)
{
    return a->by == b->by && strcmp(a->pattern, b->pattern) == 0 && !a->within == !b->within &&
        (!a->within || strcmp(a->within, b->within) == 0) && strcmp(a->strategy, b->strategy) == 0;
}

/* Makes one warning for the same collective of all layers. */
void strict_warn(struct space *s)
{
    struct all_unrequested all = unrequested(s);
    for (int i = 0; i < all.list.n; i++) {
        struct unrequested *first = &all.list.at[i];
        for (int k = i + 1; k < all.list.n && first->count > 0; k++)
            if (all.list.at[k].count > 0 && is_alike(first, &all.list.at[k])) {
                all.list.at[k].count = 0;
                first->count++;
            }
        if (first->count > 0)
            VEC_PUSH(s->arena, &s->plan->warnings, sentence(s->arena, first, first->count > 1 ? first->pattern : first->name));
    }
}
