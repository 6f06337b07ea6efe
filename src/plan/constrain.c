/* constrain: the plan file's constraints as restrictions of what may be chosen; the solver fills in the rest.
 *
 * A constraint on nodes drops strategies, one on values is a wish (src/plan/wishes.c). A style speaks of the nodes that multiply or look up
 * a weight, and asks for communication (--strict):
 *
 *     colwise    the weight and the result are split, other operands whole        that gathers its operands
 *     rowwise    the weight is split, the result is terms of a sum                that reduces its result
 *     replicate  everything whole, of any node                                    that gathers its operands */
#include "plan/space.h"

#include <limits.h>
#include <string.h>

/* ---- styles: how many of its demands a strategy does not meet --------------------------------------------------------------- */

static bool operands_are(const struct space *s, const struct node *n, const struct strategy *st, bool weights, bool all, enum place kind)
{
    for (int i = 0; i < n->nin; i++)
        if (n->in[i] && s->weight[n->in[i]->id] == weights && (st->in[i].kind == kind) != all)
            return !all;
    return all;
}

static int unmet_by_style(const struct space *s, const struct node *n, const struct strategy *st, const char *style)
{
    if (strcmp(style, "replicate") == 0)
        return strategy_splits(n, st);
    bool column = strcmp(style, "colwise") == 0;
    return !operands_are(s, n, st, true, false, PLACE_S) + (column && !operands_are(s, n, st, false, true, PLACE_R)) +
           (st->out[0].kind != (column ? PLACE_S : PLACE_P));
}

static bool meets(struct space *s, const struct node *n, const struct strategy *st, const struct constraint *c)
{
    return (!c->style || !unmet_by_style(s, n, st, c->style)) && (!c->strategy || glob_match(c->strategy, strategy_str(s->arena, n, st)));
}

static const char *nearest_strategy(struct space *s, int node, const struct constraint *c)
{
    const struct node *n = s->g->nodes.at[node];
    const struct strategies *list = &s->strategies[node];
    const char **texts = NEWN(s->arena, const char *, list->list.n + 1);
    int best = 0;
    for (int k = 0; k < list->list.n; k++)
        texts[k] = strategy_outline(s->arena, n, list->list.at[k]);
    if (c->strategy)
        return texts[nearest_text(c->strategy, list->list.n, texts)];
    for (int k = 1; k < list->list.n; k++)
        if (unmet_by_style(s, n, list->list.at[k], c->style) < unmet_by_style(s, n, list->list.at[best], c->style))
            best = k;
    return texts[best];
}

/* ---- nodes ------------------------------------------------------------------------------------------------------------------ */

static void restrict_node(struct space *s, int node, const struct constraint *c)
{
    const struct node *n = s->g->nodes.at[node];
    struct strategies kept = { 0 };
    for (int k = 0; k < s->strategies[node].list.n; k++)
        if (meets(s, n, s->strategies[node].list.at[k], c))
            VEC_PUSH(s->arena, &kept.list, s->strategies[node].list.at[k]);
    if (!kept.list.n)
        fail("%s: node '%s' (%s) can't be '%s%s%s'; the nearest legal strategy is '%s'", c->where, n->name, n->optype,
             c->style ? c->style : "", c->style && c->strategy ? "' and '" : "", c->strategy ? c->strategy : "", nearest_strategy(s, node, c));
    s->strategies[node] = kept;
}

static const struct value *activation(const struct space *s, const struct node *n)
{
    for (int i = 0; i < n->nin; i++)
        if (n->in[i] && !s->weight[n->in[i]->id])
            return n->in[i];
    return NULL;
}

static void ask(struct space *s, const struct node *n, const struct constraint *c)
{
    bool row = c->style && strcmp(c->style, "rowwise") == 0;
    for (int i = 0; i < n->nin; i++)
        if (n->in[i])
            s->asked[n->in[i]->id] |= c->input || c->strategy || (c->style && !row);
    for (int i = 0; i < n->nout; i++)
        if (n->out[i])
            s->asked[n->out[i]->id] |= c->output || c->strategy || row;
}

static void wish_ends(struct space *s, const struct node *n, const struct constraint *c, bool check)
{
    const struct value *in = c->input ? activation(s, n) : NULL;
    if (c->input && !in)
        fail("%s: node '%s' (%s) reads nothing but weights, expected an operand for 'input'", c->where, n->name, n->optype);
    if (in)
        wish_add(s, c->where, in, c->input, check);
    if (c->output && n->nout > 0 && n->out[0])
        wish_add(s, c->where, n->out[0], c->output, check);
}

/* Do constraints of this style pass over the node? */
static bool passed_over(const struct space *s, const struct node *n, const struct constraint *c)
{
    bool product = n->op && (n->op->flags & OP_SEEDS) && n->nout > 0 && n->out[0] && space_has_weight(s, n);
    return c->style && strcmp(c->style, "replicate") != 0 && !product;
}

static _Noreturn void refuse_glob(const struct constraint *c, const char *what, int n, const char *const *names)
{
    int near = nearest_text(c->glob, n, names);
    fail("%s: no %s is named like '%s'%s%s%s", c->where, what, c->glob, near < 0 ? "" : "; the nearest is '", near < 0 ? "" : names[near],
         near < 0 ? "" : "'");
}

/* Both return how many nodes or values the constraint speaks of; it is applied to the first of them, at most targets. */
static int constrain_nodes(struct space *s, const struct constraint *c, int targets, bool seeding)
{
    const char **names = NEWN(s->arena, const char *, s->g->nodes.n + 1);
    int named = 0, met = 0;
    for (int i = 0; i < s->g->nodes.n; i++) {
        const struct node *n = s->g->nodes.at[i];
        names[i] = n->name;
        if (!glob_match(c->glob, n->name))
            continue;
        named++;
        if (passed_over(s, n, c) || met++ >= targets)
            continue;
        if (!seeding) {
            restrict_node(s, i, c);
            ask(s, n, c);
        }
        s->through[i] |= c->strategy || c->input || c->output;
        wish_ends(s, n, c, !seeding);
    }
    if (!named)
        refuse_glob(c, "node", s->g->nodes.n, names);
    if (!met)
        fail("%s: of %d nodes named like '%s' none multiplies or looks up a weight, as style %s expects", c->where, named, c->glob, c->style);
    return met;
}

static bool is_meant(const struct space *s, const struct constraint *c, const struct value *v)
{
    bool weight = v->constant != NULL;
    return s->uses[v->id].list.n > 0 && weight == (c->on == ON_WEIGHTS);
}

static bool is_named(const struct constraint *c, const struct value *v)
{
    return glob_match(c->glob, v->name) || (v->constant && v->constant->origin && glob_match(c->glob, v->constant->origin));
}

static int constrain_values(struct space *s, const struct constraint *c, int targets, bool seeding)
{
    const char **names = NEWN(s->arena, const char *, s->g->values.n + 1);
    int n = 0, met = 0;
    for (int i = 0; i < s->g->values.n; i++) {
        const struct value *v = s->g->values.at[i];
        if (!is_meant(s, c, v))
            continue;
        names[n++] = v->name;
        if (!is_named(c, v) || met++ >= targets)
            continue;
        s->asked[v->id] = true;
        wish_add(s, c->where, v, c->placement, !seeding);
    }
    if (!met)
        refuse_glob(c, c->on == ON_WEIGHTS ? "weight" : "tensor", n, names);
    return met;
}

static int constrain(struct space *s, const struct constraint *c, int targets, bool seeding)
{
    return c->on == ON_NODES ? constrain_nodes(s, c, targets, seeding) : constrain_values(s, c, targets, seeding);
}

/* ---- all of them -------------------------------------------------------------------------------------------------------------- */

static void forget(struct space *s)
{
    for (int i = 0; i < s->g->nodes.n; i++)
        s->strategies[i] = s->offered[i];
    for (int i = 0; i < s->g->values.n; i++) {
        s->wish[i].list.n = 0;
        s->asked[i] = false;
    }
}

/* What --state-from demands holds whatever the constraints are. */
static void wish_states(struct space *s, bool check)
{
    for (int i = 0; s->plan->state_placement && s->ranks > 1 && i < s->g->states.n; i++) {
        const struct value *end[] = { s->g->states.at[i].past, s->g->states.at[i].present };
        if (!s->plan->state_placement[i])
            continue;
        wish_add(s, s->options->state_from->path, end[0] ? end[0] : end[1], s->plan->state_placement[i], check);
        for (int k = 0; k < 2; k++)
            if (end[k])
                s->asked[end[k]->id] = true;
    }
}

/* With one rank everything is whole whatever is wished. */
static int constraint_count(const struct space *s)
{
    return s->options->plan_file && s->ranks > 1 ? s->options->plan_file->constraints.n : 0;
}

bool constrain_seed(struct space *s)
{
    wish_states(s, false);
    for (int i = 0; i < constraint_count(s); i++)
        constrain(s, s->options->plan_file->constraints.at[i], INT_MAX, true);
    bool through = false;
    for (int i = 0; i < s->g->nodes.n; i++)
        through |= s->through[i];
    return wishes_seed(s) || through;
}

/* The first count constraints and nothing else, the last of them to its first targets nodes or values only; returns how many it has. */
static int constrain_first(struct space *s, int count, int targets)
{
    int met = 0;
    forget(s);
    wish_states(s, true);
    for (int i = 0; i < count; i++)
        met = constrain(s, s->options->plan_file->constraints.at[i], i + 1 < count ? INT_MAX : targets, false);
    return met;
}

void constrain_user(struct space *s)
{
    constrain_first(s, constraint_count(s), INT_MAX);
}

void constrain_all(struct space *s)
{
    constrain_user(s);
    if (s->options->plan_file && s->options->plan_file->emitted)
        replay_plan(s);
}

/* ---- when together they leave nothing ------------------------------------------------------------------------------------------ */

/* The least k in (lo, hi] so that the constraints up to `count` (its first k targets), or the first k constraints, cannot be met. */
static int least_impossible(struct space *s, int count, int lo, int hi)
{
    while (lo + 1 < hi) {
        int middle = lo + (hi - lo) / 2;
        if (count)
            constrain_first(s, count, middle);
        else
            constrain_first(s, middle, INT_MAX);
        if (space_solve(s) < COST_NEVER)
            lo = middle;
        else
            hi = middle;
    }
    return hi;
}

/* The k-th node or value, from 1, that the constraint speaks of. */
static int target(const struct space *s, const struct constraint *c, int k)
{
    int all = c->on == ON_NODES ? s->g->nodes.n : s->g->values.n;
    for (int i = 0; i < all; i++) {
        bool meant = c->on == ON_NODES ? glob_match(c->glob, s->g->nodes.at[i]->name) && !passed_over(s, s->g->nodes.at[i], c)
                                       : is_meant(s, c, s->g->values.at[i]) && is_named(c, s->g->values.at[i]);
        if (meant && --k == 0)
            return i;
    }
    bug("a constraint has fewer targets than it had");
}

void constrain_blame(struct space *s)
{
    int all = constraint_count(s), count, k;
    constrain_first(s, 0, 0);
    if (!all || space_solve(s) >= COST_NEVER)
        return;
    count = least_impossible(s, 0, 0, all);
    const struct constraint *c = s->options->plan_file->constraints.at[count - 1];
    k = least_impossible(s, count, 0, constrain_first(s, count, INT_MAX));
    constrain_first(s, count, k - 1);
    require(space_solve(s) < COST_NEVER);
    int at = target(s, c, k);
    const struct node *n = c->on == ON_NODES ? s->g->nodes.at[at] : NULL;
    const struct value *v = n ? NULL : s->g->values.at[at];
    fail("%s: %s '%s' can't be '%s' beside the constraints before it; the nearest legal %s is '%s'", c->where,
         n ? "node" : c->on == ON_WEIGHTS ? "weight" : "tensor", n ? n->name : v->name,
         n ? c->style ? c->style : c->strategy ? c->strategy : c->output ? c->output : c->input : c->placement, n ? "strategy" : "placement",
         n ? strategy_outline(s->arena, n, n->strategy) : placement_str(s->arena, v->place));
}
