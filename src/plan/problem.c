/* The choice as a problem for the solver, and its solution as placements.
 *
 * A variable per node (its strategies), per constant and per graph input or output that may be split; a state pair is one variable,
 * so both ends agree. A value read once links its producer and its reader directly. A value read more often has a variable of its
 * own: how it is produced, and the set of placements it is made available in, so that a reshard shared by readers is paid once. */
#include "plan/space.h"

#include <string.h>

enum { SUBSET_TARGETS = 6, TABLE_CAP = 1 << 22 };

struct ends { int var; int n; struct placement *at; };          /* a variable and the placement each of its values means for a value */
struct availability { struct placement made; int n; struct placement have[SUBSET_TARGETS]; };
struct encoding {
    struct space *s;
    struct arena *arena;
    struct problem *p;
    int *node_var;                       /* by node position */
    struct ends *source, *sink;          /* by value id: inputs, constants; by output number */
    struct ends *pin;                    /* by value id: what wishes leave of where it is brought before it is read; .at NULL: no wishes */
    int *value_var;                      /* by value id, -1 none */
    bool complete;                       /* no subset was left out */
    bool hints;                          /* for the greedy baseline: what a reader of a shared value costs alone */
};

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

static void node_variable(struct encoding *e, int i)
{
    struct space *s = e->s;
    const struct node *n = s->g->nodes.at[i];
    int count = s->strategies[i].list.n;
    e->node_var[i] = problem_variable(e->p, count);
    int64_t *cost = problem_unary(e->p, e->node_var[i]);
    for (int k = 0; k < count; k++)
        cost[k] = s->options->random_seed ? random_cost(s, n->name, k, !strategy_splits(n, s->strategies[i].list.at[k]))
                                          : cost_of_strategy(s, n, s->rule[i], s->strategies[i].list.at[k]);
}

static struct ends end_at(struct encoding *e, int n, const struct placement *at)
{
    struct ends out = { .var = problem_variable(e->p, n), .n = n, .at = NEWN(e->arena, struct placement, n + 1) };
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

static void add_unless_there(struct ends *e, struct placement p)
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

static int output_number(const struct graph *g, const struct value *v)
{
    for (int i = 0; i < g->outputs.n; i++)
        if (g->outputs.at[i] == v)
            return i;
    return -1;
}

static void end_variables(struct encoding *e)
{
    struct graph *g = e->s->g;
    for (int i = 0; i < g->states.n; i++) {
        const struct state *st = &g->states.at[i];
        int out = st->present ? output_number(g, st->present) : -1;
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
    for (int i = 0; i < g->values.n; i++)
        if (e->s->wish[i].list.n && e->s->producer[i] >= 0 && output_number(g, g->values.at[i]) < 0)
            e->pin[i] = free_end(e, g->values.at[i]);
}

/* ---- the two ends of a value ----------------------------------------------------------------------------------------------- */

static struct ends node_end(struct encoding *e, int node, bool result, int i)
{
    const struct strategies *list = &e->s->strategies[node];
    struct ends out = { .var = e->node_var[node], .n = list->list.n, .at = NEWN(e->arena, struct placement, list->list.n + 1) };
    for (int k = 0; k < out.n; k++)
        out.at[k] = result ? list->list.at[k]->out[i] : list->list.at[k]->in[i];
    return out;
}

static struct ends producer_end(struct encoding *e, const struct value *v)
{
    int node = e->s->producer[v->id];
    return node >= 0 ? node_end(e, node, true, v->index) : e->source[v->id];
}

static struct ends reader_end(struct encoding *e, struct place_use u)
{
    return u.node >= 0 ? node_end(e, u.node, false, u.operand) : e->sink[u.operand];
}

/* ---- tables ------------------------------------------------------------------------------------------------------------------ */

/* A state can pass its variable to its own output: a table needs two different ones. */
static int64_t *pair_table(struct encoding *e, const struct ends *a, const struct ends *b)
{
    return a->var == b->var ? NULL : problem_pair(e->p, a->var, b->var);
}

static void link_directly(struct encoding *e, const struct value *v, const struct ends *from, const struct ends *to)
{
    int64_t *cost = pair_table(e, from, to);
    for (int i = 0; cost && i < from->n; i++)
        for (int j = 0; j < to->n; j++)
            cost[i * to->n + j] = reshard_find(e->s, v, from->at[i], to->at[j]).cost;
}

static struct ends distinct(struct encoding *e, const struct ends *from)
{
    struct ends out = { .at = NEWN(e->arena, struct placement, from->n + 1) };
    for (int i = 0; i < from->n; i++)
        add_unless_there(&out, from->at[i]);
    return out;
}

static struct ends wanted_by_all(struct encoding *e, const struct ends *reader, int n)
{
    int total = 0;
    for (int i = 0; i < n; i++)
        total += reader[i].n;
    struct ends out = { .at = NEWN(e->arena, struct placement, total + 1) };
    for (int i = 0; i < n; i++)
        for (int k = 0; k < reader[i].n; k++)
            add_unless_there(&out, reader[i].at[k]);
    return out;
}

static int bits(unsigned x)
{
    int n = 0;
    for (; x; x &= x - 1)
        n++;
    return n;
}

typedef VEC(struct availability) availabilities;

/* Does a reader take nothing but p? */
static bool only_choice(const struct ends *reader, int n, struct placement p)
{
    for (int i = 0; i < n; i++) {
        bool other = false;
        for (int k = 0; k < reader[i].n; k++)
            other = other || !placement_eq(reader[i].at[k], p);
        if (!other)
            return true;
    }
    return false;
}

/* made, with every subset of the other wanted placements that it can be turned into: readers need no more than one each. */
static void subsets_from(struct encoding *e, const struct value *v, struct placement made, const struct ends *wanted, const struct ends *reader, int readers, availabilities *out)
{
    unsigned needed = 0;
    struct placement other[32];
    int n = 0;
    for (int i = 0; i < wanted->n && n < 32; i++)
        if (!placement_eq(made, wanted->at[i]) && reshard_find(e->s, v, made, wanted->at[i]).cost < COST_NEVER) {
            other[n] = wanted->at[i];
            if (other[n].kind == PLACE_R && n > 0) {          /* first, so that the limits below never lose it */
                other[n] = other[0];
                other[0] = wanted->at[i];
            }
            n++;
        }
    for (int i = 0; i < n; i++)
        needed |= (unsigned)only_choice(reader, readers, other[i]) << i;
    int most = readers < SUBSET_TARGETS ? readers : SUBSET_TARGETS;
    if (n > SUBSET_TARGETS && most > 3) {
        most = 3;
        e->complete = false;
    }
    for (unsigned set = 0; set < 1u << (n < 20 ? n : 20); set++) {
        if (bits(set) > most || (set & needed) != needed)
            continue;
        struct availability a = { .made = made };
        for (int i = 0; i < n; i++)
            if (set >> i & 1)
                a.have[a.n++] = other[i];
        VEC_PUSH(e->arena, out, a);
    }
}

static bool offers(const struct availability *a, struct placement p)
{
    if (placement_eq(a->made, p))
        return true;
    for (int i = 0; i < a->n; i++)
        if (placement_eq(a->have[i], p))
            return true;
    return false;
}

static void link_shared(struct encoding *e, const struct value *v, const struct ends *from, const struct ends *reader, int nreader)
{
    struct ends made = distinct(e, from), wanted = wanted_by_all(e, reader, nreader);
    availabilities list = { 0 };
    int parent[64];
    for (int i = 0; i < made.n; i++)
        subsets_from(e, v, made.at[i], &wanted, reader, nreader, &list);
    int var = e->value_var[v->id] = problem_variable(e->p, list.n);
    int64_t *cost = problem_unary(e->p, var);
    for (int k = 0; k < list.n; k++)
        cost[k] = reshard_tree(e->s, v, list.at[k].made, list.at[k].n, list.at[k].have, parent);
    cost = problem_pair(e->p, from->var, var);
    for (int i = 0; i < from->n; i++)
        for (int k = 0; k < list.n; k++)
            cost[i * list.n + k] = placement_eq(from->at[i], list.at[k].made) ? 0 : COST_NEVER;
    for (int r = 0; r < nreader; r++) {
        cost = problem_pair(e->p, var, reader[r].var);
        for (int k = 0; k < list.n; k++)
            for (int j = 0; j < reader[r].n; j++)
                cost[k * reader[r].n + j] = offers(&list.at[k], reader[r].at[j]) ? 0 : COST_NEVER;
        if (e->hints)
            link_directly(e, v, from, &reader[r]);
    }
}

static void link_value(struct encoding *e, const struct value *v)
{
    const struct place_uses *uses = &e->s->uses[v->id];
    struct ends from = producer_end(e, v);
    if (e->pin[v->id].at) {
        link_directly(e, v, &from, &e->pin[v->id]);
        from = e->pin[v->id];
    }
    struct ends *reader = NEWN(e->arena, struct ends, uses->list.n + 1);
    for (int i = 0; i < uses->list.n; i++)
        reader[i] = reader_end(e, uses->list.at[i]);
    if (uses->list.n == 1)
        link_directly(e, v, &from, &reader[0]);
    else
        link_shared(e, v, &from, reader, uses->list.n);
}

/* ---- encode, solve, decode ------------------------------------------------------------------------------------------------------ */

static struct encoding encode(struct space *s, struct arena *a, bool hints)
{
    struct encoding e = { .s = s, .arena = a, .p = problem_new(a), .complete = true, .hints = hints };
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
            link_value(&e, v);
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
        struct ends from = producer_end(e, v);
        v->place = from.at[value[from.var]];
        v->placed = true;
        place_pin(e, v, value);
    }
    for (int i = 0; i < s->g->outputs.n; i++)
        s->output_place[i] = e->sink[i].at[value[e->sink[i].var]];
}

/* Weights and state at their chosen places: what holding them costs by the machine's price and by the plan's, and their bytes. */
struct holding { int64_t weights, memory; double bytes; };

static void hold(struct holding *h, struct space *s, const struct value *v, const struct ends *end, const int *value)
{
    if (!end->at)
        return;
    struct placement at = end->at[value[end->var]];
    h->weights += cost_of_holding(s, v, at);
    h->memory += cost_of_memory(s, v, at);
    h->bytes += cost_held(s, v, at);
}

static struct holding holding_of(struct space *s, const struct encoding *e, const int *value)
{
    const struct graph *g = s->g;
    struct holding h = { 0 };
    for (int i = 0; i < g->values.n; i++)
        if (g->values.at[i]->constant)
            hold(&h, s, g->values.at[i], &e->source[i], value);
    for (int i = 0; i < g->states.n; i++) {
        const struct state *st = &g->states.at[i];
        int out = st->present ? output_number(g, st->present) : -1;
        if (st->past || out >= 0)
            hold(&h, s, state_value(st), st->past ? &e->source[st->past->id] : &e->sink[out], value);
    }
    return h;
}

static double predicted_whole(struct space *s)
{
    int64_t sum = 0;
    for (int i = 0; i < s->g->nodes.n; i++) {
        const struct strategies *list = &s->strategies[i];
        sum += cost_of_strategy(s, s->g->nodes.at[i], s->rule[i], list->list.at[list->list.n - 1]);
    }
    return (double)sum * 1e-12 / cost_steps(s->plan);
}

/* The baseline's assignment, priced like any other; the exact minimum tells its gap. */
static struct solution first_solution(struct space *s, const struct problem *p)
{
    struct encoding greedy = encode(s, s->arena, true);
    struct solution first = solve_first(greedy.p);
    first.cost = problem_cost(p, first.value);
    return first;
}

int64_t space_solve(struct space *s)
{
    struct arena *tmp = arena_new();
    struct encoding e = encode(s, tmp, false);
    struct solution best = solve_exact(e.p, TABLE_CAP);
    if (best.cost < COST_NEVER)
        place_values(&e, best.value);
    arena_free(tmp);
    return best.cost;
}

static _Noreturn void refuse(struct space *s)
{
    enum { DEAR = 1 << 30 };             /* so that the plan has no more unasked communication than it must; 2^50 is a quarter of an hour */
    if (s->unasked) {
        s->unasked = (int64_t)DEAR << 20;
        if (space_solve(s) < COST_NEVER)
            strict_blame(s);
    }
    constrain_blame(s);
    fail("%s: no plan satisfies every constraint", s->g->path ? s->g->path : s->g->name);
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
}

/* For plan.json: insert and fuse take the nodes apart. */
static void note_choice(struct space *s)
{
    struct plan *p = s->plan;
    for (int i = 0; i < s->g->nodes.n; i++)
        VEC_PUSH(s->arena, &p->nodes.list, ((struct named){ s->g->nodes.at[i]->name, strategy_str(s->arena, s->g->nodes.at[i], s->g->nodes.at[i]->strategy) }));
    for (int i = 0; i < s->g->values.n; i++)
        if (s->pin[i])
            VEC_PUSH(s->arena, &p->pinned.list, ((struct named){ s->g->values.at[i]->name, placement_str(s->arena, *s->pin[i]) }));
}

void space_choose(struct space *s)
{
    cost_prepare(s);
    s->plan->unsharded_seconds = predicted_whole(s);
    constrain_all(s);
    struct encoding e = encode(s, s->arena, false);
    struct solution exact = solve_exact(e.p, TABLE_CAP), best = s->options->solver_first ? first_solution(s, e.p) : exact;
    if (best.cost >= COST_NEVER)
        refuse(s);
    place_values(&e, best.value);
    struct holding held = holding_of(s, &e, best.value);
    s->plan->objective = best.cost - held.memory;
    s->plan->held = held.bytes;
    s->plan->seconds = (double)(s->plan->objective - held.weights) * 1e-12 / cost_steps(s->plan);
    judge(s, exact.cost - held.memory, exact.proven && e.complete);
    note_choice(s);
    explain("solver: %d variables, %d tables, largest %lld entries", variables(e.p), e.p->tables.n, (long long)exact.largest_table);
}
