/* The choice as a problem for the solver, and its solution as placements.
 *
 * A variable per node (its strategies), per constant and per graph input or output that may be split; a state pair is one variable,
 * so both ends agree. A value read once links its producer and its reader directly. A value read more often has a variable of its
 * own: how it is produced, and the set of placements it is made available in, so that a reshard shared by readers is paid once. */
#include "plan/space.h"

#include <fnmatch.h>
#include <string.h>

enum { SUBSET_TARGETS = 6, TABLE_CAP = 1 << 22 };

struct ends { int var; int n; struct placement *at; };          /* a variable and the placement each of its values means for a value */
struct availability { struct placement made; int n; struct placement have[SUBSET_TARGETS]; };
struct encoding {
    struct space *s;
    struct problem *p;
    int *node_var;                       /* by node position */
    struct ends *source, *sink;          /* by value id: inputs, constants; by output number */
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

static struct ends fixed_end(struct encoding *e)
{
    struct ends out = { .var = problem_variable(e->p, 1), .n = 1, .at = NEWN(e->s->arena, struct placement, 1) };
    out.at[0] = placement_whole;
    return out;
}

static struct ends constant_end(struct encoding *e, const struct value *v)
{
    struct ends out = { .n = 0 };
    out.n = space_placements(e->s, v, &out.at);
    out.var = problem_variable(e->p, out.n);
    int64_t *cost = problem_unary(e->p, out.var);
    for (int k = 0; k < out.n; k++)
        cost[k] = cost_of_holding(e->s, v, out.at[k]);
    return out;
}

static void add_unless_there(struct ends *e, struct placement p)
{
    for (int i = 0; i < e->n; i++)
        if (placement_eq(e->at[i], p))
            return;
    e->at[e->n++] = p;
}

/* One variable for both ends of a state, or for the one that it has; never split on its growing dimension. */
static struct ends state_end(struct encoding *e, const struct state *st)
{
    struct placement *past, *present;
    int n = st->past ? space_placements(e->s, st->past, &past) : 0, m = st->present ? space_placements(e->s, st->present, &present) : 0;
    struct ends out = { .at = NEWN(e->s->arena, struct placement, n + m) };
    for (int i = 0; i < n + m; i++) {
        struct placement p = i < n ? past[i] : present[i - n];
        if (p.kind == PLACE_R || (p.dim != st->dim && p.split->partition + p.split->cover > 0))
            add_unless_there(&out, p);
    }
    out.var = problem_variable(e->p, out.n);
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
            e->source[g->inputs.at[i]->id] = fixed_end(e);
    for (int i = 0; i < g->outputs.n; i++)
        if (!e->sink[i].at)
            e->sink[i] = fixed_end(e);
    for (int i = 0; i < g->values.n; i++)
        if (g->values.at[i]->constant && e->s->uses[i].list.n)
            e->source[i] = constant_end(e, g->values.at[i]);
}

/* ---- the two ends of a value ----------------------------------------------------------------------------------------------- */

static struct ends node_end(struct encoding *e, int node, bool result, int i)
{
    const struct strategies *list = &e->s->strategies[node];
    struct ends out = { .var = e->node_var[node], .n = list->list.n, .at = NEWN(e->s->arena, struct placement, list->list.n + 1) };
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
    struct ends out = { .at = NEWN(e->s->arena, struct placement, from->n + 1) };
    for (int i = 0; i < from->n; i++)
        add_unless_there(&out, from->at[i]);
    return out;
}

static struct ends wanted_by_all(struct encoding *e, const struct ends *reader, int n)
{
    int total = 0;
    for (int i = 0; i < n; i++)
        total += reader[i].n;
    struct ends out = { .at = NEWN(e->s->arena, struct placement, total + 1) };
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

/* made, with every subset of the other wanted placements that it can be turned into: readers need no more than one each. */
static void subsets_from(struct encoding *e, const struct value *v, struct placement made, const struct ends *wanted, int readers, availabilities *out)
{
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
    int most = readers < SUBSET_TARGETS ? readers : SUBSET_TARGETS;
    if (n > SUBSET_TARGETS && most > 3) {
        most = 3;
        e->complete = false;
    }
    for (unsigned set = 0; set < 1u << (n < 20 ? n : 20); set++) {
        if (bits(set) > most)
            continue;
        struct availability a = { .made = made };
        for (int i = 0; i < n; i++)
            if (set >> i & 1)
                a.have[a.n++] = other[i];
        VEC_PUSH(e->s->arena, out, a);
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
        subsets_from(e, v, made.at[i], &wanted, nreader, &list);
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
    struct ends *reader = NEWN(e->s->arena, struct ends, uses->list.n + 1);
    for (int i = 0; i < uses->list.n; i++)
        reader[i] = reader_end(e, uses->list.at[i]);
    if (uses->list.n == 1)
        link_directly(e, v, &from, &reader[0]);
    else
        link_shared(e, v, &from, reader, uses->list.n);
}

/* ---- the test hook that forces strategies -------------------------------------------------------------------------------------- */

/* A line of the file: node-name glob, tab, glob over the strategy's text. Strategies that do not match are not allowed. */
static void force_line(struct encoding *e, char *line, int number)
{
    char *tab = strchr(line, '\t');
    int nodes = 0;
    if (!tab)
        fail("%s:%d: expected a node glob, a tab and a strategy glob", e->s->options->force_file, number);
    *tab = '\0';
    for (int i = 0; i < e->s->g->nodes.n; i++) {
        const struct node *n = e->s->g->nodes.at[i];
        if (fnmatch(line, n->name, 0))
            continue;
        int64_t *cost = problem_unary(e->p, e->node_var[i]);
        int allowed = 0;
        nodes++;
        for (int k = 0; k < e->s->strategies[i].list.n; k++) {
            bool ok = !fnmatch(tab + 1, strategy_str(e->s->arena, n, e->s->strategies[i].list.at[k]), 0);
            cost[k] = ok ? 0 : COST_NEVER;
            allowed += ok;
        }
        if (!allowed)
            fail("%s:%d: node '%s' has no strategy like '%s'", e->s->options->force_file, number, n->name, tab + 1);
    }
    if (!nodes)
        fail("%s:%d: no node is named like '%s'", e->s->options->force_file, number, line);
}

static void force_strategies(struct encoding *e)
{
    char line[1024];
    FILE *f = fopen(e->s->options->force_file, "r");
    if (!f)
        fail("%s: can't be read", e->s->options->force_file);
    for (int number = 1; fgets(line, sizeof line, f); number++) {
        line[strcspn(line, "\n")] = '\0';
        if (*line && *line != '#')
            force_line(e, line, number);
    }
    fclose(f);
}

/* ---- encode, solve, decode ------------------------------------------------------------------------------------------------------ */

static struct encoding encode(struct space *s, bool hints)
{
    struct encoding e = { .s = s, .p = problem_new(s->arena), .complete = true, .hints = hints };
    e.node_var = NEWN(s->arena, int, s->g->nodes.n + 1);
    e.source = NEWN(s->arena, struct ends, s->g->values.n + 1);
    e.sink = NEWN(s->arena, struct ends, s->g->outputs.n + 1);
    e.value_var = NEWN(s->arena, int, s->g->values.n + 1);
    for (int i = 0; i < s->g->nodes.n; i++)
        node_variable(&e, i);
    end_variables(&e);
    if (s->options->force_file)
        force_strategies(&e);
    for (int i = 0; i < s->g->values.n; i++) {
        const struct value *v = s->g->values.at[i];
        if (s->uses[i].list.n && (s->producer[i] >= 0 || e.source[i].at))
            link_value(&e, v);
    }
    return e;
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
    }
}

static double predicted(struct space *s, const struct encoding *e, int64_t objective, const int *value)
{
    int64_t holding = 0;
    for (int i = 0; i < s->g->values.n; i++)
        if (s->g->values.at[i]->constant && e->source[i].at)
            holding += cost_of_holding(s, s->g->values.at[i], e->source[i].at[value[e->source[i].var]]);
    return (double)(objective - holding) * 1e-12 / cost_steps(s->plan);
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
    struct encoding greedy = encode(s, true);
    struct solution first = solve_first(greedy.p);
    first.cost = problem_cost(p, first.value);
    return first;
}

void space_choose(struct space *s)
{
    cost_prepare(s);
    struct encoding e = encode(s, false);
    struct solution exact = solve_exact(e.p, TABLE_CAP), best = s->options->solver_first ? first_solution(s, e.p) : exact;
    if (best.cost >= COST_NEVER)
        fail("%s: no plan satisfies every constraint", s->g->path ? s->g->path : s->g->name);
    place_values(&e, best.value);
    for (int i = 0; i < s->g->outputs.n; i++)
        s->output_place[i] = e.sink[i].at[best.value[e.sink[i].var]];
    s->plan->objective = best.cost;
    s->plan->proven = exact.proven && e.complete && best.cost == exact.cost;
    s->plan->seconds = predicted(s, &e, best.cost, best.value);
    s->plan->unsharded_seconds = predicted_whole(s);
    s->plan->lower_bound = exact.proven && e.complete ? (double)exact.cost / (double)best.cost * s->plan->seconds : 0;
    explain("solver: %d variables, %d tables, largest %lld entries", e.p->size.n, e.p->tables.n, (long long)exact.largest_table);
}
