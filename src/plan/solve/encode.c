/* encode: encodes the choice of a plan as a problem for the solver, and decodes its solution to placements. A variable per node (its
 * strategies), per constant and per graph input or output that may be split; a state pair is one variable, so both ends agree.
 * src/plan/solve/edge_tables.c makes the tables between them. */
#include "op/rule/rule.h"
#include "plan/cost/cost.h"
#include "plan/plan.h"
#include "plan/solve/solve.h"
#include "plan/space/space.h"

#include <string.h>

#define EFFORT_KNOWN 0.125  /* if a good plan is known already */
#define EFFORT_WITHIN 0.025 /* within limits over time, where many problems are solved */

/* ---- variables ------------------------------------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t h, uint64_t x)
{
    h = (h ^ x) * 0x9E3779B97F4A7C15u;
    return h ^ h >> 29;
}

/* Test hook: costs are drawn from a seed instead of predicted, so that the best plan is a random legal one. */
static int64_t random_cost(const struct space *s, const char *name, int k, bool replicated)
{
    uint64_t h = s->options->random_seed;
    for (const char *c = name; *c; c++)
        h = mix(h, (uint64_t)(unsigned char)*c);
    h = mix(mix(h, (uint64_t)k), 77);
    return (int64_t)(h % 1000000000000u) + (replicated && s->options->random_split_only ? 10000000000000 : 0);
}

static int replicated_strategy(const struct space *s, int i)
{
    for (int k = 0; k < s->strategies[i].list.n; k++)
        if (!strategy_splits(s->g->nodes.at[i], s->strategies[i].list.at[k]))
            return k;
    return 0;
}

/* The cost of strategy k of node i. */
static int64_t strategy_cost(struct space *s, int i, int k)
{
    const struct node *n = s->g->nodes.at[i];
    const struct strategy *st = s->strategies[i].list.at[k];
    int64_t unrequested = s->limits.unrequested && !s->limits.requested_within[i] && lowering_sends(st) ? s->limits.unrequested : 0;
    if (unrequested >= COST_NEVER)
        return COST_NEVER;
    return unrequested + s->plan->near.collective_price * lowering_collectives(st) +
        (s->options->random_seed ? random_cost(s, n->name, k, !strategy_splits(n, st)) : cost_of_strategy(s, n, s->rule[i], st));
}

static void node_variable(struct choice_problem *e, int i)
{
    int count = e->s->strategies[i].list.n;
    e->node_var[i] = solve_variable(e, count, replicated_strategy(e->s, i));
    int64_t *cost = problem_unary(e->p, e->node_var[i]);
    for (int k = 0; k < count; k++)
        cost[k] = strategy_cost(e->s, i, k);
    for (int k = 0; k < count; k++)
        require(cost[k] >= 0 && cost[k] <= COST_NEVER);
}

static struct endpoint end_at(struct choice_problem *e, int n, const struct placement *at)
{
    require(n > 0);
    int replicated = 0;
    while (replicated < n && at[replicated].kind != PLACE_R)
        replicated++;
    struct endpoint out = {
        .var = solve_variable(e, n, replicated < n ? replicated : 0), .n = n, .at = NEWN(e->arena, struct placement, n + 1)};
    memcpy(out.at, at, sizeof *at * (size_t)n);
    return out;
}

/* An end that is replicated, or has its required placement. */
static struct endpoint free_end(struct choice_problem *e, const struct value *v)
{
    if (!e->s->limits.required[v->id].list.n)
        return end_at(e, 1, &placement_replicated);
    struct places allowed = space_allowed(e->s, v);
    return end_at(e, allowed.list.n, allowed.list.at);
}

static struct endpoint constant_end(struct choice_problem *e, const struct value *v)
{
    struct places allowed = space_allowed(e->s, v);
    struct endpoint out = end_at(e, allowed.list.n, allowed.list.at);
    int64_t *cost = problem_unary(e->p, out.var);
    for (int k = 0; k < out.n; k++)
        cost[k] = cost_of_memory(e->s, v, out.at[k]) + cost_of_nearness(e->s, v, out.at[k]);
    return out;
}

/* The value of a state after a step. */
static const struct value *state_value(const struct state *st)
{
    return st->present ? st->present : st->past;
}

/* One variable for both ends of a state, or for its only end. */
static struct endpoint state_end(struct choice_problem *e, const struct state *st)
{
    struct places allowed = space_allowed(e->s, st->past ? st->past : st->present);
    struct endpoint out = end_at(e, allowed.list.n, allowed.list.at);
    int64_t *cost = problem_unary(e->p, out.var);
    for (int k = 0; k < out.n; k++)
        cost[k] = cost_of_memory(e->s, state_value(st), out.at[k]) + cost_of_nearness(e->s, state_value(st), out.at[k]);
    return out;
}

static bool is_gradient(const struct graph *g, int output)
{
    for (int i = 0; i < g->trained.n; i++)
        if (g->trained.at[i].output == output)
            return true;
    return false;
}

static void end_variables(struct choice_problem *e)
{
    struct graph *g = e->s->g;
    for (int i = 0; i < g->states.n; i++) {
        const struct state *st = &g->states.at[i];
        int out = st->present ? graph_output_number(g, st->present) : -1;
        if (st->present && (out < 0 || e->sink[out].at))
            continue;
        struct endpoint end = state_end(e, st);
        if (st->past)
            e->source[st->past->id] = end;
        if (st->present)
            e->sink[out] = end;
    }
    for (int i = 0; i < g->inputs.n; i++)
        if (!e->source[g->inputs.at[i]->id].at)
            e->source[g->inputs.at[i]->id] = free_end(e, g->inputs.at[i]);
    for (int i = 0; i < g->outputs.n; i++)
        if (!e->sink[i].at && !is_gradient(g, i))
            e->sink[i] = free_end(e, g->outputs.at[i]);
    for (int i = 0; i < g->values.n; i++)
        if (g->values.at[i]->constant && e->s->uses[i].list.n)
            e->source[i] = constant_end(e, g->values.at[i]);
    for (int i = 0; i < g->trained.n; i++) /* a gradient has its weight's placement */
        e->sink[g->trained.at[i].output] = e->source[g->trained.at[i].weight->id];
    for (int i = 0; i < g->outputs.n; i++)
        require(e->sink[i].n > 0);
    for (int i = 0; i < g->values.n; i++) {
        struct places read = space_read_places(e->s, g->values.at[i]);
        if (read.list.n)
            e->read_place[i] = end_at(e, read.list.n, read.list.at);
    }
}

/* ---- encode, solve, decode ------------------------------------------------------------------------------------------------------ */

struct choice_problem encode_space(struct space *s, struct arena *a)
{
    struct choice_problem e = {.s = s, .arena = a, .p = problem_new(a), .complete = true};
    const bool *open = whole_kernels_open(s, a);
    e.node_var = NEWN(a, int, s->g->nodes.n + 1);
    e.source = NEWN(a, struct endpoint, s->g->values.n + 1);
    e.sink = NEWN(a, struct endpoint, s->g->outputs.n + 1);
    e.read_place = NEWN(a, struct endpoint, s->g->values.n + 1);
    for (int i = 0; i < s->g->nodes.n; i++)
        node_variable(&e, i);
    end_variables(&e);
    if (!s->options->random_seed)
        whole_kernels_make(&e, open);
    for (int i = 0; i < s->g->values.n; i++) {
        const struct value *v = s->g->values.at[i];
        if (s->uses[i].list.n && (s->producer[i] >= 0 || e.source[i].at))
            edge_tables_make(&e, v);
    }
    if (s->plan->room.bytes > 0)
        room_limit(&e);
    e.known = room_knows(&e) ? s->plan->room.known : NULL;
    require(e.replicated.n == e.p->size.n);
    return e;
}

static void set_read_place(struct choice_problem *e, const struct value *v, const int *value)
{
    const struct endpoint *read = &e->read_place[v->id];
    struct placement *at = NULL;
    if (read->at) {
        at = NEW(e->s->arena, struct placement);
        *at = read->at[value[read->var]];
    }
    e->s->chosen.read[v->id] = at;
}

/* Both ends of a state have one placement, and a gradient has its weight's. */
static void require_ends_agree(const struct space *s)
{
    const struct graph *g = s->g;
    EACH (const struct state, st, g->states) {
        int out = st->past && st->present ? graph_output_number(g, st->present) : -1;
        require(out < 0 || placement_eq(st->past->place, s->chosen.output[out]));
    }
    EACH (const struct trained, t, g->trained) {
        require(placement_eq(t->weight->place, s->chosen.output[t->output]));
    }
}

void encode_place_values(struct choice_problem *e, const int *value)
{
    struct space *s = e->s;
    for (int i = 0; i < s->g->nodes.n; i++)
        require(value[e->node_var[i]] >= 0 && value[e->node_var[i]] < s->strategies[i].list.n);
    for (int i = 0; i < s->g->nodes.n; i++)
        s->g->nodes.at[i]->strategy = s->strategies[i].list.at[value[e->node_var[i]]];
    for (int i = 0; i < s->g->values.n; i++) {
        struct value *v = s->g->values.at[i];
        if (s->producer[i] < 0 && !e->source[i].at)
            continue;
        struct endpoint from = edge_source(e, v);
        require(value[from.var] < from.n);
        v->place = from.at[value[from.var]];
        v->placed = true;
        set_read_place(e, v, value);
    }
    for (int i = 0; i < s->g->outputs.n; i++)
        s->chosen.output[i] = e->sink[i].at[value[e->sink[i].var]];
    require_ends_agree(s);
    fused_settle(s);
}

static void hold(struct resident *h, struct space *s, const struct value *v, const struct endpoint *end, const int *value)
{
    if (!end->at)
        return;
    struct placement at = end->at[value[end->var]];
    h->memory += cost_of_memory(s, v, at);
    h->nearness += cost_of_nearness(s, v, at);
    h->bytes += cost_resident_bytes(s, v, at);
}

struct resident encode_resident(const struct choice_problem *e, const int *value)
{
    struct space *s = e->s;
    const struct graph *g = s->g;
    struct resident h = {0};
    for (int i = 0; i < g->values.n; i++)
        if (g->values.at[i]->constant)
            hold(&h, s, g->values.at[i], &e->source[i], value);
    for (int i = 0; i < g->states.n; i++) {
        const struct state *st = &g->states.at[i];
        int out = st->present ? graph_output_number(g, st->present) : -1;
        if (st->past || out >= 0)
            hold(&h, s, state_value(st), st->past ? &e->source[st->past->id] : &e->sink[out], value);
    }
    return h;
}

int64_t encode_memory_cost(struct space *s)
{
    const struct graph *g = s->g;
    int64_t cost = 0;
    for (int i = 0; i < g->values.n; i++)
        if (g->values.at[i]->constant && s->uses[i].list.n)
            cost += cost_of_memory(s, g->values.at[i], g->values.at[i]->place);
    for (int i = 0; i < g->states.n; i++) {
        const struct state *st = &g->states.at[i];
        int out = st->present ? graph_output_number(g, st->present) : -1;
        if (st->past || out >= 0)
            cost += cost_of_memory(s, state_value(st), st->past ? st->past->place : s->chosen.output[out]);
    }
    return cost;
}

double encode_all_bytes(const struct choice_problem *e)
{
    const struct graph *g = e->s->g;
    double bytes = 0;
    for (int i = 0; i < g->values.n; i++)
        if (g->values.at[i]->constant && e->source[i].at)
            bytes += cost_resident_bytes(e->s, g->values.at[i], placement_replicated);
    for (int i = 0; i < g->states.n; i++)
        bytes += cost_resident_bytes(e->s, state_value(&g->states.at[i]), placement_replicated);
    return bytes;
}

static int path_collectives(struct space *s, const struct value *v, struct placement from, struct placement to)
{
    struct reshard_path path = reshard_find(s, v, from, to);
    if (!path.has_via)
        return placement_transition(from, to).by != COLL_NONE;
    return (placement_transition(from, path.via).by != COLL_NONE) + (placement_transition(path.via, to).by != COLL_NONE);
}

int encode_collectives(struct space *s)
{
    struct arena *tmp = arena_new();
    int n = 0;
    for (int i = 0; i < s->g->nodes.n; i++)
        n += lowering_collectives(s->g->nodes.at[i]->strategy);
    for (int i = 0; i < s->g->values.n; i++) {
        const struct value *v = s->g->values.at[i];
        struct reshards r = {.list = {NULL, 0, 0}};
        if (s->uses[i].list.n && v->placed)
            r = reshard_chosen(s, tmp, v);
        for (int k = 0; k < r.list.n; k++)
            n += path_collectives(s, v, r.list.at[k].parent < 0 ? v->place : r.list.at[r.list.at[k].parent].place, r.list.at[k].place);
    }
    arena_free(tmp);
    return n;
}

struct solution encode_solve(struct choice_problem *e)
{
    struct solve_limits limits = solve_default;
    limits.effort *= e->s->plan->room.bytes > 0 ? EFFORT_WITHIN : e->known ? EFFORT_KNOWN : 1;
    struct solution best = solve_exact(e->p, limits, e->known ? e->known : e->replicated.at);
    for (int i = 0; i < e->relaxed.n && best.cost < COST_NEVER; i++) {
        const struct relaxed_value *r = &e->relaxed.at[i];
        int64_t real = edge_reshards(e, r->v, best.value);
        require(real >= 0 && real < COST_NEVER);
        best.cost += real - r->cost[best.value[r->var]];
    }
    if (!e->complete)
        best.bound = 0;
    best.proven = best.bound >= best.cost;
    return best;
}

int64_t solve_space(struct space *s)
{
    struct arena *tmp = arena_new();
    struct choice_problem e = encode_space(s, tmp);
    struct solution best = encode_solve(&e);
    if (best.cost < COST_NEVER)
        encode_place_values(&e, best.value);
    arena_free(tmp);
    return best.cost;
}
