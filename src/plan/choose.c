/* The choice as a problem for the solver, and its solution as placements.
 *
 * A variable per node (its strategies), per constant and per graph input or output that may be split; a state pair is one variable,
 * so both ends agree. What hangs them together is src/plan/solve/edge_tables.c. */
#include "plan/solve/links.h"

#include <string.h>

enum { TABLE_CAP = 1 << 22 };

/* ---- variables ------------------------------------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t h, uint64_t x)
{
    h = (h ^ x) * 0x9E3779B97F4A7C15u;
    return h ^ h >> 29;
}

/* The test hook: costs drawn from a seed instead of predicted, so that the best plan is a random legal one. */
static int64_t random_cost(const struct space *s, const char *name, int k, bool whole)
{
    uint64_t h = s->options->random_seed;
    for (const char *c = name; *c; c++)
        h = mix(h, (uint64_t)(unsigned char)*c);
    h = mix(mix(h, (uint64_t)k), 77);
    return (int64_t)(h % 1000000000000u) + (whole && s->options->random_split_only ? 10000000000000 : 0);
}

static int whole_strategy(const struct space *s, int i)
{
    for (int k = 0; k < s->strategies[i].list.n; k++)
        if (!strategy_splits(s->g->nodes.at[i], s->strategies[i].list.at[k]))
            return k;
    return 0;
}

/* Of the k-th strategy of node i. */
static int64_t strategy_cost(struct space *s, int i, int k)
{
    const struct node *n = s->g->nodes.at[i];
    const struct strategy *st = s->strategies[i].list.at[k];
    int64_t unasked = s->unasked && !s->asked_within[i] && lowered_sends(st) ? s->unasked : 0;
    if (unasked >= COST_NEVER)
        return COST_NEVER;
    return unasked +
        (s->options->random_seed ? random_cost(s, n->name, k, !strategy_splits(n, st)) : cost_of_strategy(s, n, s->rule[i], st));
}

static void node_variable(struct encoding *e, int i)
{
    int count = e->s->strategies[i].list.n;
    e->node_var[i] = links_variable(e, count, whole_strategy(e->s, i));
    int64_t *cost = problem_unary(e->p, e->node_var[i]);
    for (int k = 0; k < count; k++)
        cost[k] = strategy_cost(e->s, i, k);
}

static struct ends end_at(struct encoding *e, int n, const struct placement *at)
{
    int whole = 0;
    while (whole < n && at[whole].kind != PLACE_R)
        whole++;
    struct ends out = {.var = links_variable(e, n, whole < n ? whole : 0), .n = n, .at = NEWN(e->arena, struct placement, n + 1)};
    memcpy(out.at, at, sizeof *at * (size_t)n);
    return out;
}

/* Whole, or as wished. */
static struct ends free_end(struct encoding *e, const struct value *v)
{
    if (!e->s->wish[v->id].list.n)
        return end_at(e, 1, &placement_whole);
    struct places allowed = space_allowed(e->s, v);
    return end_at(e, allowed.list.n, allowed.list.at);
}

static struct ends constant_end(struct encoding *e, const struct value *v)
{
    struct places allowed = space_allowed(e->s, v);
    struct ends out = end_at(e, allowed.list.n, allowed.list.at);
    int64_t *cost = problem_unary(e->p, out.var);
    for (int k = 0; k < out.n; k++)
        cost[k] = cost_of_holding(e->s, v, out.at[k]) + cost_of_memory(e->s, v, out.at[k]);
    return out;
}

void ends_add(struct ends *e, struct placement p)
{
    for (int i = 0; i < e->n; i++)
        if (placement_eq(e->at[i], p))
            return;
    e->at[e->n++] = p;
}

/* What a state has grown to after a step. */
static const struct value *state_value(const struct state *st)
{
    return st->present ? st->present : st->past;
}

/* One variable for both ends of a state, or for the one that it has. */
static struct ends state_end(struct encoding *e, const struct state *st)
{
    struct places allowed = space_allowed(e->s, st->past ? st->past : st->present);
    struct ends out = end_at(e, allowed.list.n, allowed.list.at);
    int64_t *cost = problem_unary(e->p, out.var);
    for (int k = 0; k < out.n; k++)
        cost[k] = cost_of_memory(e->s, state_value(st), out.at[k]);
    return out;
}

static void end_variables(struct encoding *e)
{
    struct graph *g = e->s->g;
    for (int i = 0; i < g->states.n; i++) {
        const struct state *st = &g->states.at[i];
        int out = st->present ? graph_output_number(g, st->present) : -1;
        if (st->present && (out < 0 || e->sink[out].at))
            continue;
        struct ends end = state_end(e, st);
        if (st->past)
            e->source[st->past->id] = end;
        if (st->present)
            e->sink[out] = end;
    }
    for (int i = 0; i < g->inputs.n; i++)
        if (!e->source[g->inputs.at[i]->id].at)
            e->source[g->inputs.at[i]->id] = free_end(e, g->inputs.at[i]);
    for (int i = 0; i < g->outputs.n; i++)
        if (!e->sink[i].at)
            e->sink[i] = free_end(e, g->outputs.at[i]);
    for (int i = 0; i < g->values.n; i++)
        if (g->values.at[i]->constant && e->s->uses[i].list.n)
            e->source[i] = constant_end(e, g->values.at[i]);
    for (int i = 0; i < g->values.n; i++) {
        struct places brought = space_brought(e->s, g->values.at[i]);
        if (brought.list.n)
            e->pin[i] = end_at(e, brought.list.n, brought.list.at);
    }
}

/* ---- encode, solve, decode ------------------------------------------------------------------------------------------------------ */

static struct encoding encode(struct space *s, struct arena *a)
{
    struct encoding e = {.s = s, .arena = a, .p = problem_new(a), .complete = true};
    e.node_var = NEWN(a, int, s->g->nodes.n + 1);
    e.source = NEWN(a, struct ends, s->g->values.n + 1);
    e.sink = NEWN(a, struct ends, s->g->outputs.n + 1);
    e.pin = NEWN(a, struct ends, s->g->values.n + 1);
    e.value_var = NEWN(a, int, s->g->values.n + 1);
    for (int i = 0; i < s->g->nodes.n; i++)
        node_variable(&e, i);
    end_variables(&e);
    for (int i = 0; i < s->g->values.n; i++) {
        const struct value *v = s->g->values.at[i];
        if (s->uses[i].list.n && (s->producer[i] >= 0 || e.source[i].at))
            links_make(&e, v);
    }
    return e;
}

static void place_pin(struct encoding *e, const struct value *v, const int *value)
{
    const struct ends *pin = &e->pin[v->id];
    struct placement *at = NULL;
    if (pin->at) {
        at = NEW(e->s->arena, struct placement);
        *at = pin->at[value[pin->var]];
    }
    e->s->pin[v->id] = at;
}

static void place_values(struct encoding *e, const int *value)
{
    struct space *s = e->s;
    for (int i = 0; i < s->g->nodes.n; i++)
        s->g->nodes.at[i]->strategy = s->strategies[i].list.at[value[e->node_var[i]]];
    for (int i = 0; i < s->g->values.n; i++) {
        struct value *v = s->g->values.at[i];
        if (s->producer[i] < 0 && !e->source[i].at)
            continue;
        struct ends from = ends_made(e, v);
        v->place = from.at[value[from.var]];
        v->placed = true;
        place_pin(e, v, value);
    }
    for (int i = 0; i < s->g->outputs.n; i++)
        s->output_place[i] = e->sink[i].at[value[e->sink[i].var]];
}

/* Weights and state at their chosen places: what holding them costs by the plan's price, and their bytes. */
struct holding {
    int64_t memory;
    double bytes;
};

static void hold(struct holding *h, struct space *s, const struct value *v, const struct ends *end, const int *value)
{
    if (!end->at)
        return;
    struct placement at = end->at[value[end->var]];
    h->memory += cost_of_memory(s, v, at);
    h->bytes += cost_held(s, v, at);
}

static struct holding holding_of(struct space *s, const struct encoding *e, const int *value)
{
    const struct graph *g = s->g;
    struct holding h = {0};
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

int64_t space_solve(struct space *s)
{
    struct arena *tmp = arena_new();
    struct encoding e = encode(s, tmp);
    struct solution best = solve_exact(e.p, TABLE_CAP, e.whole.at);
    if (best.cost < COST_NEVER)
        place_values(&e, best.value);
    arena_free(tmp);
    return best.cost;
}

static _Noreturn void refuse(struct space *s)
{
    enum { DEAR = 1 << 30 }; /* so that the plan has no more unasked communication than it must; 2^50 is a quarter of an hour */
    if (s->unasked) {
        s->unasked = (int64_t)DEAR << 20;
        if (space_solve(s) < COST_NEVER)
            strict_blame(s);
    }
    constrain_blame(s);
    fail("%s: no plan satisfies every constraint", graph_file(s->g));
}

static int variables(const struct problem *p)
{
    int n = 0;
    for (int i = 0; i < p->size.n; i++)
        n += p->size.at[i] > 1;
    return n;
}

/* What is known of the optimum. An emitted plan is not searched: it says so itself, as long as it costs what it says. */
static void judge(struct space *s, int64_t least, bool proven)
{
    const struct emitted *e = s->options->plan_file ? s->options->plan_file->emitted : NULL;
    struct plan *p = s->plan;
    p->proven = e ? e->proven && replay_holds(s) : proven && p->objective == least && p->memory_gap <= 0;
    p->lower_bound = e ? replay_holds(s) * e->lower_bound : proven ? (double)least / (double)p->objective * p->seconds - p->memory_gap : 0;
    if (e && e->memory) {
        p->byte_price = e->byte_price;
        p->memory_gap = e->memory_gap;
    }
}

/* For plan.json: insert and fuse take the nodes apart. */
static void note_choice(struct space *s)
{
    struct plan *p = s->plan;
    for (int i = 0; i < s->g->nodes.n; i++)
        VEC_PUSH(s->arena, &p->nodes.list,
                 ((struct named){s->g->nodes.at[i]->name, strategy_str(s->arena, s->g->nodes.at[i], s->g->nodes.at[i]->strategy)}));
    for (int i = 0; i < s->g->values.n; i++)
        if (s->pin[i])
            VEC_PUSH(s->arena, &p->pinned.list, ((struct named){s->g->values.at[i]->name, placement_str(s->arena, *s->pin[i])}));
}

/* Nothing that the plan file or a test's seed decides. */
static bool is_searched(const struct options *o)
{
    return !(o->plan_file && o->plan_file->emitted) && !o->random_seed;
}

/* What the first assignment that fits would take per step; 0: under the constraints there is none. Leaves what may be chosen as it was. */
static double first_seconds(struct space *s)
{
    size_t bytes = sizeof *s->strategies * (size_t)s->g->nodes.n;
    struct strategies *kept = arena_alloc(s->arena, bytes + 1);
    memcpy(kept, s->strategies, bytes);
    first_assignment(s);
    bool found = space_solve(s) < COST_NEVER;
    memcpy(s->strategies, kept, bytes);
    if (!found)
        return 0;
    plan_predict(s);
    return s->plan->seconds;
}

/* The first assignment that fits instead of the best. */
static void settle_for_first(struct space *s, struct encoding *e, struct solution *best)
{
    first_assignment(s);
    *e = encode(s, s->arena);
    *best = solve_exact(e->p, TABLE_CAP, e->whole.at);
    if (best->cost >= COST_NEVER)
        fail("%s: --solver first finds no plan, --solver exact does", graph_file(s->g));
}

void space_choose(struct space *s)
{
    cost_prepare(s);
    constrain_all(s);
    struct encoding e = encode(s, s->arena);
    struct solution exact = solve_exact(e.p, TABLE_CAP, e.whole.at), best = exact;
    bool proven = exact.proven && e.complete, searched = is_searched(s->options) && s->ranks > 1;
    if (exact.cost >= COST_NEVER)
        refuse(s);
    explain("solver: %d variables, %d tables, largest %lld entries", variables(e.p), e.p->tables.n, (long long)exact.largest_table);
    if (searched && s->options->solver_first)
        settle_for_first(s, &e, &best);
    else if (searched)
        s->plan->first_seconds = first_seconds(s);
    place_values(&e, best.value);
    struct holding held = holding_of(s, &e, best.value);
    s->plan->objective = best.cost - held.memory;
    s->plan->held = held.bytes;
    plan_predict(s);
    judge(s, exact.cost - held.memory, proven);
    note_choice(s);
    if (s->options->strict == STRICT_WARN)
        strict_warn(s);
    if (s->options->sp == SP_AUTO && s->ranks > 1)
        sequence_note_choice(s);
}
