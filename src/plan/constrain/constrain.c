/* constrain: the demands of the plan file (requirement.c) as restrictions of what may be chosen; the solver fills in the rest.
 *
 * A demand on a node drops strategies, one on a value is a wish (src/plan/space/placement_limits.c). --strict allows the communication of
 * values that demands ask for: those that they place or read, all around a node whose strategy they give, and what a style asks for
 * (src/plan/constrain/style.c); and that of the lowerings of nodes that have a style or a strategy. */
#include "plan/constrain/constrain.h"

#include "op/rule/rule.h"
#include "plan/facts/facts.h"
#include "plan/input/input.h"
#include "plan/plan.h"
#include "plan/solve/solve.h"
#include "plan/space/space.h"

/* ---- nodes: how many of its demands a strategy does not meet ---------------------------------------------------------------- */

static bool is_of_operand(const struct demand *d)
{
    return d->kind == DEMAND_KEPT || d->kind == DEMAND_READ;
}

static int unmet(struct space *s, const struct demand *d, const struct wish *read, const struct strategy *st)
{
    if (d->kind == DEMAND_KEPT && st->in[d->operand].kind == PLACE_P)
        return 0;
    if (is_of_operand(d))
        return !wish_fits(read, st->in[d->operand]);
    if (d->kind == DEMAND_STRATEGY)
        return !glob_match(d->text, strategy_str(s->arena, s->g->nodes.at[d->node], st));
    return style_unmet(s, d->style, d->from->dim, d->node, st);
}

static const char *choice_text(struct space *s, const struct demand *d, const struct strategy *st)
{
    return is_of_operand(d) ? placement_like(s->arena, d->text, st->in[d->operand])
                            : strategy_outline(s->arena, s->g->nodes.at[d->node], st);
}

static const char *nearest_choice(struct space *s, const struct demand *d)
{
    const struct strategies *list = &s->strategies[d->node];
    const char **texts = NEWN(s->arena, const char *, list->list.n + 1);
    int best = 0;
    for (int k = 0; k < list->list.n; k++)
        texts[k] = choice_text(s, d, list->list.at[k]);
    if (d->kind != DEMAND_STYLE)
        return texts[nearest_text(d->text, list->list.n, texts)];
    for (int k = 1; k < list->list.n; k++)
        if (unmet(s, d, NULL, list->list.at[k]) < unmet(s, d, NULL, list->list.at[best]))
            best = k;
    return texts[best];
}

/* beside: what else is demanded; nearest: what could be had. */
static _Noreturn void refuse_demand(struct space *s, const struct demand *d, const char *beside, const char *nearest)
{
    const struct node *n = d->kind <= DEMAND_READ ? s->g->nodes.at[d->node] : NULL;
    const char *want = d->kind == DEMAND_STYLE ? style_name(d->style) : d->text;
    if (is_of_operand(d))
        fail("%s: node '%s' (%s) can't read '%s' as '%s'%s; the nearest legal placement is '%s'", d->from->where, n->name, n->optype,
             d->value->name, want, beside, nearest);
    if (n)
        fail("%s: node '%s' (%s) can't be '%s'%s; the nearest legal strategy is '%s'", d->from->where, n->name, n->optype, want, beside,
             nearest);
    fail("%s: %s '%s' can't be '%s'%s; the nearest legal placement is '%s'", d->from->where, d->value->constant ? "weight" : "tensor",
         d->value->name, want, beside, nearest);
}

static void restrict_node(struct space *s, const struct demand *d)
{
    struct strategies kept = {0}, *all = &s->strategies[d->node];
    struct wish read = is_of_operand(d) ? wish_read(s, d->from->where, d->value, d->text) : (struct wish){0};
    for (int k = 0; k < all->list.n; k++)
        if (!unmet(s, d, &read, all->list.at[k]))
            VEC_PUSH(s->arena, &kept.list, all->list.at[k]);
    if (!kept.list.n && d->kind == DEMAND_KEPT)
        return;
    if (!kept.list.n)
        refuse_demand(s, d, "", nearest_choice(s, d));
    *all = kept;
}

/* ---- what is asked for -------------------------------------------------------------------------------------------------------- */

static void ask_all(struct space *s, int n, struct value *const *at)
{
    for (int i = 0; i < n; i++)
        if (at[i])
            s->asked[at[i]->id] = true;
}

static void ask(struct space *s, const struct demand *d)
{
    if (d->kind == DEMAND_KEPT)
        return;
    if (d->kind > DEMAND_STRATEGY) {
        s->asked[d->value->id] = true;
        return;
    }
    const struct node *n = s->g->nodes.at[d->node];
    s->asked_within[d->node] = true;
    unsigned asks = d->kind == DEMAND_STRATEGY ? ASKS_OPERANDS | ASKS_RESULTS : style_asks(s, d->style, d->node);
    if (asks & ASKS_OPERANDS)
        ask_all(s, n->nin, n->in);
    if (asks & ASKS_RESULTS)
        ask_all(s, n->nout, n->out);
}

/* ---- demands ------------------------------------------------------------------------------------------------------------------- */

static void apply(struct space *s, const struct demand *d)
{
    if (d->kind <= DEMAND_READ)
        restrict_node(s, d);
    else if (d->kind == DEMAND_BROUGHT)
        wish_bring(s, d->from->where, d->value, d->text, true);
    else
        wish_add(s, d->from->where, d->value, d->text, true);
    ask(s, d);
}

static bool seed(struct space *s, const struct demand *d)
{
    if (d->kind == DEMAND_STYLE)
        return style_seed(s, d->style, d->from->dim, d->node);
    if (d->kind == DEMAND_STRATEGY || d->kind == DEMAND_KEPT)
        return false;
    struct wish w = wish_read(s, d->from->where, d->value, d->text);
    return wish_seed(s, d->value, &w);
}

static void forget(struct space *s)
{
    for (int i = 0; i < s->g->nodes.n; i++) {
        s->strategies[i] = s->offered[i];
        s->asked_within[i] = false;
    }
    for (int i = 0; i < s->g->values.n; i++) {
        s->wish[i].list.n = s->before[i].list.n = 0;
        s->asked[i] = false;
    }
}

/* What --state-from demands holds whatever the constraints are. */
static void wish_states(struct space *s, bool check)
{
    for (int i = 0; s->plan->state_placement && s->ranks > 1 && i < s->g->states.n; i++) {
        const struct value *end[] = {s->g->states.at[i].past, s->g->states.at[i].present};
        if (!s->plan->state_placement[i])
            continue;
        wish_add(s, s->options->state_from->path, end[0] ? end[0] : end[1], s->plan->state_placement[i], check);
        for (int k = 0; k < 2; k++)
            if (end[k])
                s->asked[end[k]->id] = true;
    }
}

bool constrain_seed(struct space *s)
{
    wish_states(s, false);
    demands_make(s);
    bool changed = false;
    for (int i = 0; i < s->g->nodes.n; i++)
        changed |= s->through[i] && s->options->sp != SP_AUTO; /* there all are, and their strategies made */
    for (int i = 0; i < s->demands.n; i++)
        changed |= seed(s, s->demands.at[i]);
    return wishes_seed(s) || changed;
}

static void constrain_first(struct space *s, int count)
{
    forget(s);
    wish_states(s, true);
    for (int i = 0; i < count; i++)
        apply(s, s->demands.at[i]);
}

void constrain_user(struct space *s)
{
    constrain_first(s, s->demands.n);
}

void constrain_all(struct space *s)
{
    constrain_user(s);
    if (s->options->plan_file && s->options->plan_file->emitted)
        replay_plan(s);
}

/* ---- when together they leave nothing ------------------------------------------------------------------------------------------ */

static bool possible(struct space *s, int count)
{
    constrain_first(s, count);
    return space_solve(s) < COST_NEVER;
}

void constrain_blame(struct space *s)
{
    int lo = 0, hi = s->demands.n;
    if (!hi || !possible(s, 0))
        return;
    while (lo + 1 < hi) {
        int middle = lo + (hi - lo) / 2;
        *(possible(s, middle) ? &lo : &hi) = middle;
    }
    require(possible(s, lo));
    const struct demand *d = s->demands.at[lo];
    bool of_node = d->kind <= DEMAND_READ;
    refuse_demand(s, d, " beside the constraints before it",
                  of_node ? choice_text(s, d, s->g->nodes.at[d->node]->strategy) : placement_str(s->arena, d->value->place));
}
