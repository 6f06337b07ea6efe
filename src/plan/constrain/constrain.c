/* constrain: applies the requirements of the plan file (requirement.c) as restrictions of the space; the solver chooses the rest.
 *
 * A requirement on a node removes strategies; one on a value is a required placement (src/plan/space/required_placement.c). --strict allows
 * the communication that requirements request: of values that they place or read, of all values around a node whose strategy they fix, what
 * a style requests (style.c), and in the lowerings of nodes with a style or strategy. */
#include "plan/constrain/constrain.h"

#include "op/rule/rule.h"
#include "plan/facts/facts.h"
#include "plan/input/input.h"
#include "plan/plan.h"
#include "plan/solve/solve.h"
#include "plan/space/space.h"

/* ---- nodes: how many requirements a strategy does not meet ---------------------------------------------------------------- */

static bool is_of_operand(const struct requirement *d)
{
    return d->kind == REQUIREMENT_KEPT || d->kind == REQUIREMENT_OPERAND;
}

static int unmet(struct space *s, const struct requirement *d, const struct required_placement *read, const struct strategy *st)
{
    if (d->kind == REQUIREMENT_KEPT && st->in[d->operand].kind == PLACE_P)
        return 0;
    require(!is_of_operand(d) || d->operand < s->g->nodes.at[d->node]->nin);
    if (is_of_operand(d))
        return !required_fits(read, st->in[d->operand]);
    if (d->kind == REQUIREMENT_STRATEGY)
        return !glob_match(d->text, strategy_str(s->arena, s->g->nodes.at[d->node], st));
    return style_unmet(s, d->style, d->from->dim, d->node, st);
}

static const char *strategy_text(struct space *s, const struct requirement *d, const struct strategy *st)
{
    return is_of_operand(d) ? required_like(s->arena, d->text, st->in[d->operand])
                            : strategy_outline(s->arena, s->g->nodes.at[d->node], st);
}

static const char *nearest_strategy(struct space *s, const struct requirement *d)
{
    const struct strategies *list = &s->strategies[d->node];
    const char **texts = NEWN(s->arena, const char *, list->list.n + 1);
    int best = 0;
    require(list->list.n > 0);
    for (int k = 0; k < list->list.n; k++)
        texts[k] = strategy_text(s, d, list->list.at[k]);
    if (d->kind != REQUIREMENT_STYLE)
        return texts[did_you_mean(d->text, list->list.n, texts)];
    for (int k = 1; k < list->list.n; k++)
        if (unmet(s, d, NULL, list->list.at[k]) < unmet(s, d, NULL, list->list.at[best]))
            best = k;
    return texts[best];
}

/* beside: other requirements that conflict; nearest: a possible one. */
static _Noreturn void refuse_requirement(struct space *s, const struct requirement *d, const char *beside, const char *nearest)
{
    const struct node *n = d->kind <= REQUIREMENT_OPERAND ? s->g->nodes.at[d->node] : NULL;
    const char *want = d->kind == REQUIREMENT_STYLE ? plan_style_name(d->style) : d->text;
    if (is_of_operand(d))
        fail("%s: node '%s' (%s) can't read '%s' as '%s'%s; the nearest legal placement is '%s'", d->from->where, n->name, n->optype,
             d->value->name, want, beside, nearest);
    if (n)
        fail("%s: node '%s' (%s) can't be '%s'%s; the nearest legal strategy is '%s'", d->from->where, n->name, n->optype, want, beside,
             nearest);
    fail("%s: %s '%s' can't be '%s'%s; the nearest legal placement is '%s'", d->from->where, d->value->constant ? "weight" : "tensor",
         d->value->name, want, beside, nearest);
}

static void restrict_node(struct space *s, const struct requirement *d)
{
    struct strategies kept = {0}, *all = &s->strategies[d->node];
    struct required_placement read = is_of_operand(d) ? required_parse(s, d->from->where, d->value, d->text)
                                                      : (struct required_placement){0};
    for (int k = 0; k < all->list.n; k++)
        if (!unmet(s, d, &read, all->list.at[k]))
            VEC_PUSH(s->arena, &kept.list, all->list.at[k]);
    if (!kept.list.n && d->kind == REQUIREMENT_KEPT)
        return;
    if (!kept.list.n)
        refuse_requirement(s, d, "", nearest_strategy(s, d));
    require(kept.list.n > 0 && kept.list.n <= all->list.n);
    *all = kept;
}

/* ---- requested communication -------------------------------------------------------------------------------------------------------- */

static void request_all(struct space *s, int n, struct value *const *at)
{
    for (int i = 0; i < n; i++)
        if (at[i])
            s->limits.requested[at[i]->id] = true;
}

static void request(struct space *s, const struct requirement *d)
{
    if (d->kind == REQUIREMENT_KEPT)
        return;
    if (d->kind > REQUIREMENT_STRATEGY) {
        s->limits.requested[d->value->id] = true;
        return;
    }
    const struct node *n = s->g->nodes.at[d->node];
    s->limits.requested_within[d->node] = true;
    unsigned requests = d->kind == REQUIREMENT_STRATEGY ? REQUESTS_OPERANDS | REQUESTS_RESULTS : style_requests(s, d->style, d->node);
    if (requests & REQUESTS_OPERANDS)
        request_all(s, n->nin, n->in);
    if (requests & REQUESTS_RESULTS)
        request_all(s, n->nout, n->out);
}

/* ---- requirements ------------------------------------------------------------------------------------------------------------------- */

static void apply(struct space *s, const struct requirement *d)
{
    if (d->kind <= REQUIREMENT_OPERAND)
        restrict_node(s, d);
    else if (d->kind == REQUIREMENT_READ)
        required_add_read(s, d->from->where, d->value, d->text, true);
    else
        required_add(s, d->from->where, d->value, d->text, true);
    request(s, d);
}

static bool seed(struct space *s, const struct requirement *d)
{
    if (d->kind == REQUIREMENT_STYLE)
        return style_seed(s, d->style, d->from->dim, d->node);
    if (d->kind == REQUIREMENT_STRATEGY || d->kind == REQUIREMENT_KEPT)
        return false;
    struct required_placement w = required_parse(s, d->from->where, d->value, d->text);
    return required_seed(s, d->value, &w);
}

static void forget(struct space *s)
{
    for (int i = 0; i < s->g->nodes.n; i++) {
        s->strategies[i] = s->offered[i];
        s->limits.requested_within[i] = false;
    }
    for (int i = 0; i < s->g->values.n; i++) {
        s->limits.required[i].list.n = s->limits.required_read[i].list.n = 0;
        s->limits.requested[i] = false;
    }
}

/* Requires the placements of --state-from, whatever the constraints are. */
static void require_states(struct space *s, bool check)
{
    for (int i = 0; s->plan->state_placement && s->ranks > 1 && i < s->g->states.n; i++) {
        const struct value *end[] = {s->g->states.at[i].past, s->g->states.at[i].present};
        if (!s->plan->state_placement[i])
            continue;
        required_add(s, s->options->state_from->path, end[0] ? end[0] : end[1], s->plan->state_placement[i], check);
        for (int k = 0; k < 2; k++)
            if (end[k])
                s->limits.requested[end[k]->id] = true;
    }
}

bool constrain_seed(struct space *s)
{
    require_states(s, false);
    requirement_make_all(s);
    bool changed = false;
    for (int i = 0; i < s->g->nodes.n; i++)
        changed |= s->sequence.passes[i] && s->options->sp != SP_AUTO; /* under SP_AUTO splits pass all nodes, and the strategies exist */
    for (int i = 0; i < s->limits.requirements.n; i++)
        changed |= seed(s, s->limits.requirements.at[i]);
    return required_seed_all(s) || changed;
}

static void constrain_first(struct space *s, int count)
{
    require(count <= s->limits.requirements.n);
    forget(s);
    require_states(s, true);
    for (int i = 0; i < count; i++)
        apply(s, s->limits.requirements.at[i]);
}

void constrain_user(struct space *s)
{
    constrain_first(s, s->limits.requirements.n);
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
    return solve_space(s) < COST_NEVER;
}

void constrain_blame(struct space *s)
{
    int lo = 0, hi = s->limits.requirements.n;
    if (!hi || !possible(s, 0))
        return;
    while (lo + 1 < hi) {
        int middle = lo + (hi - lo) / 2;
        *(possible(s, middle) ? &lo : &hi) = middle;
    }
    require(possible(s, lo));
    const struct requirement *d = s->limits.requirements.at[lo];
    bool of_node = d->kind <= REQUIREMENT_OPERAND;
    refuse_requirement(s, d, " beside the constraints before it",
                       of_node ? strategy_text(s, d, s->g->nodes.at[d->node]->strategy) : placement_str(s->arena, d->value->place));
}
