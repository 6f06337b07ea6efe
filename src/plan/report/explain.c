/* explain: why a node, tensor or weight is placed as it is (--explain). It lists the candidates and their origins. It also gives the cost
 * of each alternative at the node, and for the whole plan, by forcing the alternative and solving again. For an emitted plan, the rest is
 * solved freely under the plan's constraints. */
#include "op/rule/rule.h"
#include "plan/constrain/constrain.h"
#include "plan/cost/cost.h"
#include "plan/plan.h"
#include "plan/report/report.h"
#include "plan/solve/solve.h"
#include "plan/space/space.h"

#include <string.h>

struct explainer {
    FILE *f;
    struct space *s;
    int64_t least; /* the plan's cost, including memory at its byte price */
    bool fewer;    /* it has fewer collectives or bytes than other plans of nearly the same cost */
};

static double microseconds_text(const struct explainer *x, int64_t cost)
{
    return (double)cost * 1e-6 / cost_steps(x->s->plan);
}

static void explain_time(const struct explainer *x, int64_t cost)
{
    if (cost >= COST_NEVER)
        fprintf(x->f, " %12s", "never");
    else
        fprintf(x->f, " %12.2f", microseconds_text(x, cost));
}

/* Compares the plan with one thing forced with the chosen plan. */
static void show_total(const struct explainer *x, int64_t cost)
{
    if (cost >= COST_NEVER)
        fprintf(x->f, "  %s\n", "no plan");
    else
        fprintf(x->f, "  %+.2f (%+.2f%%)\n", microseconds_text(x, cost - x->least), 100 * ((double)cost / (double)x->least - 1));
}

/* ---- candidates ------------------------------------------------------------------------------------------------------------- */

static const char *source_text(const struct explainer *x, const struct candidate *c)
{
    return c->node < 0 ? c->source : arena_printf(x->s->arena, "%s %s", c->source, x->s->g->nodes.at[c->node]->name);
}

static void show_candidates(const struct explainer *x, const struct value *v)
{
    int n = 0;
    for (int d = 0; d < v->type.rank; d++)
        for (int k = 0; k < x->s->candidates[v->id][d].list.n; k++, n++) {
            const struct candidate *c = &x->s->candidates[v->id][d].list.at[k];
            fprintf(x->f, "      S(%d)  %s  (%s%s)\n", d, split_str(x->s->arena, c->split), source_text(x, c),
                    !c->sequence                       ? ""
                        : x->s->options->sp == SP_AUTO ? ", along a sequence"
                                                       : ", kept out of products");
        }
    if (!n && x->s->ranks > 1)
        fprintf(x->f, "      no split reaches it\n");
}

static const char *brief_place(const struct explainer *x, struct placement p)
{
    return p.kind == PLACE_S ? arena_printf(x->s->arena, "S(%d)", p.dim) : placement_str(x->s->arena, p);
}

static const char *left_text(const struct explainer *x, const struct value *v)
{
    const struct placement *read = x->s->chosen.read[v->id];
    const char *left = brief_place(x, v->place);
    return read ? arena_printf(x->s->arena, "%s, resharded to %s", left, brief_place(x, *read)) : left;
}

static void show_value(const struct explainer *x, const char *what, const struct value *v)
{
    fprintf(x->f, "  %s %s: %s, left as %s%s\n", what, v->name, type_str(x->s->arena, &v->type), left_text(x, v),
            space_partial(x->s, v, RED_SUM) ? ", can be partial" : "");
    show_candidates(x, v);
}

/* ---- nodes -------------------------------------------------------------------------------------------------------------------- */

static int64_t forced_strategy(const struct explainer *x, int node, struct strategy *st)
{
    struct strategies kept = x->s->strategies[node], one = {0};
    VEC_PUSH(x->s->arena, &one.list, st);
    x->s->strategies[node] = one;
    int64_t cost = solve_space(x->s);
    x->s->strategies[node] = kept;
    return cost;
}

/* Why the plan with this total was chosen. */
static const char *total_reason(const struct explainer *x)
{
    const struct plan *p = x->s->plan;
    if (p->objective <= p->least)
        return "the plan with it costs least in total";
    if (!p->proven)
        return "the plan with it is the best that was found";
    return arena_printf(x->s->arena, "the plan with it costs within %g %% of the least in total%s", 100 * PLAN_NEAR,
                        x->fewer ? ", and has fewer collectives or bytes than the cheapest" : "");
}

static const char *reason_of(const struct explainer *x, int node)
{
    const struct strategies *open = &x->s->strategies[node], *all = &x->s->offered[node];
    const char *missing = strategy_missing(x->s, node);
    if (missing)
        return arena_printf(x->s->arena, "replicated: %s", missing);
    if (all->list.n == 1)
        return x->s->ranks == 1 ? "there is one rank" : "replicated: no split reaches it that its rule can pass on, and no partial operand";
    if (open->list.n == 1)
        return "the plan file leaves nothing else";
    return total_reason(x);
}

/* The split that distinguishes a strategy from others of the same outline; NULL: none. */
static const struct split *telling_split(const struct space *s, int node, const struct strategy *st)
{
    const struct node *n = s->g->nodes.at[node];
    const struct strategies *all = &s->offered[node];
    const char *outline = strategy_outline(s->arena, n, st);
    bool again = false;
    for (int k = 0; k < all->list.n; k++)
        again = again || (all->list.at[k] != st && strcmp(strategy_outline(s->arena, n, all->list.at[k]), outline) == 0);
    for (int i = 0; again && i < n->nout; i++)
        if (n->out[i] && st->out[i].kind == PLACE_S)
            return st->out[i].split;
    for (int i = 0; again && i < n->nin; i++)
        if (n->in[i] && st->in[i].kind == PLACE_S)
            return st->in[i].split;
    return NULL;
}

/* Lists strategies. Costs around the node are the plan's: all are computed before the first alternative is solved. */
static void show_strategies(const struct explainer *x, int node)
{
    const struct node *n = x->s->g->nodes.at[node];
    const struct strategies *all = &x->s->offered[node];
    const struct strategy *chosen = n->strategy;
    int64_t *around = NEWN(x->s->arena, int64_t, all->list.n + 1);
    require(chosen && all->list.n > 0);
    for (int k = 0; k < all->list.n; k++)
        around[k] = alternative_around(x->s, node, all->list.at[k]);
    fprintf(x->f, "  %-50s %12s %12s  %s\n", "strategies, us a step", "the node", "reshards", "the plan with it");
    for (int k = 0; k < all->list.n; k++) {
        struct strategy *st = all->list.at[k];
        fprintf(x->f, "  %c %-48s", st == chosen ? '*' : ' ', strategy_outline(x->s->arena, n, st));
        explain_time(x, cost_of_strategy(x->s, n, x->s->rule[node], st));
        explain_time(x, around[k]);
        if (st == chosen)
            fprintf(x->f, "  chosen\n");
        else if (!alternative_allowed(x->s, node, st))
            fprintf(x->f, "  barred by the plan file\n");
        else
            show_total(x, forced_strategy(x, node, st));
        const struct split *split = telling_split(x->s, node, st);
        if (split)
            fprintf(x->f, "      by %s\n", split_str(x->s->arena, split));
    }
}

/* "h, a1" for factors that are split, "(h d)" for factors split together. */
static const char *factors_text(const struct explainer *x, const struct rule *r, const struct assignment *c, const struct split **split)
{
    const char *text = "";
    for (int f = 0; f < r->nfactor; f++)
        if (c->factor[f]) {
            text = arena_printf(x->s->arena, "%s%s%s", text, *text ? ", " : "", r->factor[f].name);
            *split = c->factor[f];
        }
    const char *open = *text ? ", (" : "(";
    for (int i = 0; i < c->nproduct; i++)
        text = arena_printf(x->s->arena, "%s%s%s%s", text, i ? " " : open, r->factor[c->product[i]].name, i + 1 < c->nproduct ? "" : ")");
    *split = c->nproduct ? c->product_split : *split;
    return text;
}

static void show_rejected(const struct explainer *x, int node)
{
    enum { MOST_SHOWN = 8 };
    struct rejections all = strategy_rejections(x->s, node);
    for (int i = 0; i < all.list.n && i < MOST_SHOWN; i++) {
        const struct rejection *r = &all.list.at[i];
        const struct split *split = r->split;
        const char *what = r->why ? factors_text(x, x->s->rule[node], &r->assignment, &split)
                                  : arena_printf(x->s->arena, "dimension %d of %s", r->dim, r->value->name);
        fprintf(x->f, "  a split of %s over %d ranks was rejected: %s\n", what, x->s->ranks,
                r->why ? r->why : "no factor of the rule takes it, or it cuts across several");
        if (split)
            fprintf(x->f, "      by %s\n", split_str(x->s->arena, split));
    }
    if (all.list.n > MOST_SHOWN)
        fprintf(x->f, "  and %d more splits were rejected\n", all.list.n - MOST_SHOWN);
}

/* The kernel in which the node runs; for the kernel's last node, all nodes that run in it. */
static void explain_kernel(const struct explainer *x, const struct node *n)
{
    struct space *s = x->s;
    double seconds = 0;
    int parts = 0;
    const char *names = "";
    for (int i = 0; i < s->g->nodes.n; i++) {
        const struct node *part = s->g->nodes.at[i];
        const char *into = fused_into(s, part);
        if (part != n && !(into && strcmp(into, n->name) == 0))
            continue;
        seconds += cost_step_seconds(s, i);
        if (part != n)
            names = arena_printf(s->arena, "%s%s%s", names, parts++ ? ", " : "", part->name);
    }
    if (fused_into(s, n))
        fprintf(x->f, "  runs inside %s\n", fused_into(s, n));
    else if (parts > 0)
        fprintf(x->f, "  its kernel takes %s a step and has %d more nodes: %s\n", units_seconds(s->arena, seconds), parts, names);
}

static void explain_node(const struct explainer *x, int node)
{
    struct space *s = x->s;
    const struct node *n = s->g->nodes.at[node];
    fprintf(x->f, "node %s (%s)\n", n->name, n->optype);
    if (s->rule[node])
        fprintf(x->f, "  rule: %s\n", rule_str(s->arena, s->rule[node]));
    fprintf(x->f, "  chosen: %s\n  because: %s\n", strategy_str(s->arena, n, n->strategy), reason_of(x, node));
    explain_kernel(x, n);
    for (int i = 0; i < n->nin; i++)
        if (n->in[i])
            show_value(x, s->weight[n->in[i]->id] ? "weight" : "operand", n->in[i]);
    for (int i = 0; i < n->nout; i++)
        if (n->out[i])
            show_value(x, "result", n->out[i]);
    show_strategies(x, node);
    show_rejected(x, node);
}

/* ---- values ------------------------------------------------------------------------------------------------------------------- */

static int64_t forced_place(const struct explainer *x, const struct value *v, struct placement p)
{
    required_add(x->s, "--explain", v, placement_str(x->s->arena, p), false);
    int64_t cost = solve_space(x->s);
    constrain_user(x->s); /* restores the user's constraints */
    return cost;
}

static void show_readers(const struct explainer *x, const struct value *v)
{
    enum { MOST_SHOWN = 8 };
    const struct place_uses *uses = &x->s->uses[v->id];
    for (int i = 0; i < uses->list.n && i < MOST_SHOWN; i++) {
        struct place_use u = uses->list.at[i];
        fprintf(x->f, "  read as %s by %s\n", brief_place(x, space_read_as(x->s, u)),
                u.node < 0 ? "whoever takes the output" : x->s->g->nodes.at[u.node]->name);
    }
    if (uses->list.n > MOST_SHOWN)
        fprintf(x->f, "  and by %d more\n", uses->list.n - MOST_SHOWN);
}

/* The collectives and slices of the value, and the reason for one at an output. */
static void show_reshards(const struct explainer *x, const struct value *v)
{
    const struct step_parts *step = &x->s->plan->step;
    EACH (const struct step_part, p, step->list) {
        if (p->to && strcmp(p->name, v->name) == 0)
            fprintf(x->f, "  brought to %s by %s, %s in workload 1\n", p->to, p->by ? collective_name(p->by) : "a slice",
                    units_seconds(x->s->arena, p->seconds[0]));
    }
    if (graph_output_number(x->s->g, v) >= 0)
        fprintf(x->f, "  an output is replicated unless --plan asks otherwise\n");
}

static void explain_value(const struct explainer *x, const struct value *v)
{
    struct space *s = x->s;
    int node = s->producer[v->id];
    struct places legal = space_legal(s, v);
    show_value(x, v->constant ? "weight" : node < 0 ? "graph input" : "tensor", v);
    if (node >= 0)
        fprintf(x->f, "  made by %s (%s): %s\n", s->g->nodes.at[node]->name, s->g->nodes.at[node]->optype, reason_of(x, node));
    show_readers(x, v);
    show_reshards(x, v);
    fprintf(x->f, "  %-50s %12s  %s\n", v->constant ? "placements, us a step" : "resharded to, us a step", v->constant ? "held" : "",
            "the plan with it");
    for (int i = 0; i < legal.list.n; i++) {
        struct placement p = legal.list.at[i];
        fprintf(x->f, "    %-48s", placement_str(s->arena, p));
        if (v->constant)
            fprintf(x->f, " %12s", units_bytes(s->arena, cost_resident_bytes(s, v, p)));
        else
            fprintf(x->f, " %12s", "");
        if (space_allows(s, v, p))
            show_total(x, forced_place(x, v, p));
        else
            fprintf(x->f, "  barred by the plan file\n");
    }
}

/* ---- names ---------------------------------------------------------------------------------------------------------------------- */

static bool is_used(const struct space *s, const struct value *v)
{
    return s->uses[v->id].list.n > 0;
}

static const struct value *value_named(const struct space *s, const char *name)
{
    const struct value *v = graph_find(s->g, name);
    for (int i = 0; !v && i < s->g->values.n; i++) {
        const struct constant *c = s->g->values.at[i]->constant;
        if (c && c->origin && strcmp(c->origin, name) == 0)
            v = s->g->values.at[i];
    }
    v = v ? v : explain_emitted(s, name);
    return v && is_used(s, v) ? v : NULL;
}

static _Noreturn void refuse_name(struct space *s, const char *name)
{
    bool *used = NEWN(s->arena, bool, s->g->values.n + 1);
    for (int i = 0; i < s->g->values.n; i++)
        used[i] = is_used(s, s->g->values.at[i]);
    const struct name_search search = {.where = "--explain", .what = "node, tensor or weight", .among = used};
    names_refuse(space_names(s), &search, NAMED_NODES | NAMED_TENSORS | NAMED_WEIGHTS, name);
}

static enum collective collective_in_any_case(const char *name)
{
    for (enum collective kind = COLL_NONE + 1; kind <= COLL_BROADCAST; kind++)
        if (glob_match_any_case(collective_name(kind), name))
            return kind;
    return COLL_NONE;
}

static void explain_named(FILE *f, struct space *s, const char *name, bool fewer)
{
    struct explainer x = {.f = f, .s = s, .least = s->plan->objective + encode_memory_cost(s), .fewer = fewer};
    const struct value *v = value_named(s, name);
    struct explained part;
    int node = 0;
    while (node < s->g->nodes.n && strcmp(s->g->nodes.at[node]->name, name) != 0)
        node++;
    constrain_user(s);
    if (node < s->g->nodes.n)
        explain_node(&x, node);
    else if (v)
        explain_value(&x, v);
    else if (collective_in_any_case(name))
        explain_collectives(f, s, collective_in_any_case(name));
    else if (!explain_part(f, s, name, &part))
        refuse_name(s, name);
    else if (part.node >= 0)
        explain_node(&x, part.node);
    else if (part.value)
        explain_value(&x, part.value);
}

/* Compares by time alone, or as --memory requires: by limits over time, or by the byte price. */
void plan_explain(FILE *f, struct space *s, const char *name)
{
    struct near_choice near = s->plan->near;
    s->plan->near = (struct near_choice){0};
    explain_named(f, s, name, near.collective_price > 0);
    s->plan->near = near;
}
