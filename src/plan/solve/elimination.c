/* elimination: variable elimination (Bertele and Brioschi, "Nonserial Dynamic Programming", 1972).
 *
 * Every variable is eliminated once: the tables that mention it are summed, minimised over it, and replaced by one table over its
 * neighbours; the minimising value is remembered and read back in reverse order. The variable with the smallest next table goes first.
 * Variables with one value are left out of every scope: a mask that all layers read costs no width. */
#include "plan/plan.h"
#include "plan/solve/solve.h"

#include <math.h>
#include <string.h>

struct elimination_step {
    int var, nvar, *scope, *best;
}; /* best[assignment of scope] */
struct queued {
    int64_t weight;
    int var;
};
/* A heap, smallest first; an entry is stale if its variable has another weight now. */
struct queue {
    VEC(struct queued) list;
};
struct elimination {
    const struct problem *p;
    struct arena *arena;
    VEC(struct cost_table) tables;
    struct index_list *tables_of, *near; /* by variable */
    int64_t *weight;                     /* entries of the table that its elimination makes */
    bool *done, *held;                   /* held: by variable: it takes of points; NULL: no limits */
    struct queue queue, widest;          /* widest: by table width with noise, widest first */
    uint64_t noise;
    bool ranked; /* whether the queue `widest` exists */
    VEC(struct elimination_step) steps;
    bool **forbidden;          /* by variable and value; NULL: not computed */
    struct index_list changed; /* tables that may forbid more */
    VEC(bool) waits;           /* by table: whether it is one of them */
    int64_t largest;
    double spent;
};

static bool list_has(const struct index_list *l, int x)
{
    for (int i = 0; i < l->list.n; i++)
        if (l->list.at[i] == x)
            return true;
    return false;
}

static void list_drop(struct index_list *l, int x)
{
    for (int i = 0; i < l->list.n; i++)
        if (l->list.at[i] == x) {
            memmove(l->list.at + i, l->list.at + i + 1, sizeof(int) * (size_t)(--l->list.n - i));
            return;
        }
    bug("the solver's lists of neighbours and tables disagree");
}

static void link_variables(struct elimination *e, int a, int b)
{
    if (a == b || list_has(&e->near[a], b))
        return;
    VEC_PUSH(e->arena, &e->near[a].list, b);
    VEC_PUSH(e->arena, &e->near[b].list, a);
}

static void take_table(struct elimination *e, struct cost_table t)
{
    for (int i = 0; i < t.nvar; i++) {
        VEC_PUSH(e->arena, &e->tables_of[t.var[i]].list, e->tables.n);
        for (int j = 0; j < i; j++)
            link_variables(e, t.var[i], t.var[j]);
    }
    VEC_PUSH(e->arena, &e->tables, t);
}

/* The same table without variables that have one value. */
static struct cost_table drop_fixed(struct elimination *e, const struct cost_table *t)
{
    struct cost_table out = {.var = NEWN(e->arena, int, t->nvar + 1), .cost = t->cost};
    for (int i = 0; i < t->nvar; i++)
        if (e->p->size.at[t->var[i]] > 1)
            out.var[out.nvar++] = t->var[i];
    return out;
}

/* ---- the order ------------------------------------------------------------------------------------------------------------------ */

static bool goes_before(const struct queued *a, const struct queued *b)
{
    return a->weight != b->weight ? a->weight < b->weight : a->var < b->var;
}

static void queue_push(struct arena *arena, struct queue *queue, struct queued q)
{
    VEC_PUSH(arena, &queue->list, q);
    struct queued *at = queue->list.at;
    int i = queue->list.n - 1;
    for (; i > 0 && goes_before(&q, &at[(i - 1) / 2]); i = (i - 1) / 2)
        at[i] = at[(i - 1) / 2];
    at[i] = q;
}

static void queue_pop(struct queue *queue)
{
    struct queued *at = queue->list.at, last = at[--queue->list.n];
    int i = 0;
    for (int child; (child = 2 * i + 1) < queue->list.n; i = child) {
        if (child + 1 < queue->list.n && goes_before(&at[child + 1], &at[child]))
            child++;
        if (!goes_before(&at[child], &last))
            break;
        at[i] = at[child];
    }
    at[i] = last;
}

/* Decreases with the width of the table; the bits of nonnegative doubles sort like the doubles. */
static int64_t narrowness(const struct elimination *e, int v)
{
    uint64_t h = ((uint64_t)v + 1) * 0x9E3779B97F4A7C15u ^ e->noise * 0xBF58476D1CE4E5B9u;
    h = (h ^ h >> 31) * 0x94D049BB133111EBu;
    double noise = e->noise ? 1 + (double)(h >> 40) * 0x1p-24 : 1, width = log((double)e->weight[v] + 1) * noise;
    int64_t bits;
    memcpy(&bits, &width, sizeof bits);
    return -bits;
}

static int64_t table_weight(const struct problem *p, const struct index_list *near)
{
    int64_t w = 1;
    for (int i = 0; i < near->list.n && w < INT64_MAX / 4096; i++)
        w *= p->size.at[near->list.at[i]];
    return w;
}

/* Variables that take of limits are not eliminated: limits are no tables. */
static void weigh_variable(struct elimination *e, int var)
{
    e->weight[var] = e->held && e->held[var] ? INT64_MAX : table_weight(e->p, &e->near[var]);
    queue_push(e->arena, &e->queue, (struct queued){e->weight[var], var});
    if (e->ranked)
        queue_push(e->arena, &e->widest, (struct queued){narrowness(e, var), var});
}

int elimination_next(struct elimination *e, int64_t *entries)
{
    const struct queued *first = e->queue.list.at;
    while (e->queue.list.n && (e->done[first->var] || e->weight[first->var] != first->weight))
        queue_pop(&e->queue);
    if (!e->queue.list.n)
        return -1;
    *entries = first->weight;
    return first->var;
}

static void unlink_variable(struct elimination *e, int var)
{
    for (int i = 0; i < e->near[var].list.n; i++)
        list_drop(&e->near[e->near[var].list.at[i]], var);
    e->done[var] = true;
}

static void reweigh(struct elimination *e, int n, const int *var)
{
    for (int i = 0; i < n; i++)
        weigh_variable(e, var[i]);
}

/* ---- what can't be any more ------------------------------------------------------------------------------------------------------- */

static int position_of(const struct cost_table *t, int var)
{
    int i = 0;
    while (i < t->nvar && t->var[i] != var)
        i++;
    require(i < t->nvar);
    return i;
}

static void mark_changed(struct elimination *e, int table)
{
    while (e->waits.n <= table)
        VEC_PUSH(e->arena, &e->waits, false);
    if (!e->waits.at[table])
        VEC_PUSH(e->arena, &e->changed.list, table);
    e->waits.at[table] = true;
}

/* Forbids values of var in all tables except `but`, where they are forbidden already. */
static void forbid(struct elimination *e, int var, const bool *values, int but)
{
    for (int i = 0; i < e->tables_of[var].list.n; i++) {
        int table = e->tables_of[var].list.at[i];
        const struct cost_table *t = &e->tables.at[table];
        struct table_layout l = problem_layout(e->p, t, position_of(t, var));
        int64_t *cost = t->cost;
        if (table == but)
            continue;
        e->spent += (double)problem_entries(e->p, t);
        for (int64_t o = 0; o < l.outer; o++)
            for (int x = 0; x < l.size; x++, cost += l.inner)
                for (int64_t k = 0; values[x] && k < l.inner; k++)
                    cost[k] = COST_NEVER;
        mark_changed(e, table);
    }
}

/* Finds values of var for which a table allows nothing. */
static bool find_forbidden(struct elimination *e, int table, int var, bool *values)
{
    const struct cost_table *t = &e->tables.at[table];
    int size = e->p->size.at[var];
    int64_t *least = NEWN(e->arena, int64_t, size);
    bool any = false;
    problem_least(e->p, t, position_of(t, var), least);
    e->spent += (double)problem_entries(e->p, t);
    for (int x = 0; x < size; x++) {
        values[x] = least[x] >= COST_NEVER && !e->forbidden[var][x];
        e->forbidden[var][x] |= values[x];
        any = any || values[x];
    }
    return any;
}

/* A value forbidden by a changed table is forbidden in all tables, which may then forbid more. */
static void propagate(struct elimination *e)
{
    while (e->changed.list.n) {
        int table = e->changed.list.at[--e->changed.list.n];
        e->waits.at[table] = false;
        for (int i = 0; i < e->tables.at[table].nvar; i++) {
            int var = e->tables.at[table].var[i];
            bool *values = NEWN(e->arena, bool, e->p->size.at[var]);
            if (find_forbidden(e, table, var, values))
                forbid(e, var, values, table);
        }
    }
}

/* From here on, entries of the tables may be overwritten. */
void elimination_forbid_early(struct elimination *e)
{
    e->forbidden = NEWN(e->arena, bool *, e->p->size.n + 1);
    for (int v = 0; v < e->p->size.n; v++)
        e->forbidden[v] = NEWN(e->arena, bool, e->p->size.at[v]);
    for (int i = 0; i < e->tables.n; i++)
        mark_changed(e, i);
    propagate(e);
}

/* ---- one step -------------------------------------------------------------------------------------------------------------------- */

/* Steps through a table in the order of the scope: strides of the scope's variables and of var. */
struct stride {
    const int64_t *cost;
    int64_t *scope, var;
};

static struct stride strides_of(struct elimination *e, const struct cost_table *t, const int *scope, int n, int var)
{
    struct stride s = {.cost = t->cost, .scope = NEWN(e->arena, int64_t, n + 1)};
    int64_t step = 1;
    for (int i = t->nvar - 1; i >= 0; i--) {
        if (t->var[i] == var)
            s.var = step;
        for (int j = 0; j < n; j++)
            if (scope[j] == t->var[i])
                s.scope[j] = step;
        step *= e->p->size.at[t->var[i]];
    }
    return s;
}

static void minimise(const struct problem *p, const struct stride *at, int ntable, const int64_t *base, int var, int64_t *cost, int *best)
{
    *cost = COST_NEVER;
    *best = 0;
    for (int x = 0; x < p->size.at[var]; x++) {
        int64_t sum = 0;
        for (int i = 0; i < ntable && sum < COST_NEVER; i++)
            sum = cost_plus(sum, at[i].cost[base[i] + x * at[i].var]);
        if (sum < *cost) {
            *cost = sum;
            *best = x;
        }
    }
}

static void fill_table(struct elimination *e, struct elimination_step *s, const struct stride *at, int ntable, int64_t entries,
                       int64_t *cost)
{
    int *digit = NEWN(e->arena, int, s->nvar + 1);
    int64_t *base = NEWN(e->arena, int64_t, ntable + 1);
    for (int64_t k = 0; k < entries; k++) {
        minimise(e->p, at, ntable, base, s->var, &cost[k], &s->best[k]);
        for (int j = s->nvar - 1; j >= 0; j--) { /* the next assignment, odometer-wise */
            bool carry = ++digit[j] == e->p->size.at[s->scope[j]];
            for (int i = 0; i < ntable; i++)
                base[i] += carry ? -(int64_t)(digit[j] - 1) * at[i].scope[j] : at[i].scope[j];
            if (!carry)
                break;
            digit[j] = 0;
        }
    }
}

static void retire_table(struct elimination *e, int table)
{
    const struct cost_table *t = &e->tables.at[table];
    for (int i = 0; i < t->nvar; i++)
        list_drop(&e->tables_of[t->var[i]], table);
}

static int *list_copy(struct arena *a, const struct index_list *l)
{
    int *copy = NEWN(a, int, l->list.n + 1);
    if (l->list.n)
        memcpy(copy, l->list.at, sizeof(int) * (size_t)l->list.n);
    return copy;
}

static void eliminate(struct elimination *e, int var)
{
    struct elimination_step s = {.var = var, .nvar = e->near[var].list.n, .scope = list_copy(e->arena, &e->near[var])};
    int ntable = e->tables_of[var].list.n, *mine = list_copy(e->arena, &e->tables_of[var]);
    require(!e->done[var] && e->weight[var] == table_weight(e->p, &e->near[var])); /* the size of the next table */
    struct stride *at = NEWN(e->arena, struct stride, ntable + 1);
    for (int i = 0; i < ntable; i++)
        at[i] = strides_of(e, &e->tables.at[mine[i]], s.scope, s.nvar, var);
    int64_t entries = e->weight[var];
    s.best = NEWN(e->arena, int, entries);
    struct cost_table made = {.nvar = s.nvar, .var = s.scope, .cost = NEWN(e->arena, int64_t, entries)};
    fill_table(e, &s, at, ntable, entries, made.cost);
    e->largest = entries > e->largest ? entries : e->largest;
    for (int i = 0; i < ntable; i++)
        retire_table(e, mine[i]);
    unlink_variable(e, var);
    take_table(e, made);
    VEC_PUSH(e->arena, &e->steps, s);
    reweigh(e, s.nvar, s.scope);
    if (e->forbidden) {
        mark_changed(e, e->tables.n - 1);
        propagate(e);
    }
}

/* ---- a variable with a given value ----------------------------------------------------------------------------------------------- */

int elimination_locally_best(struct elimination *e, int var)
{
    int size = e->p->size.at[var], best = 0;
    int64_t *sum = NEWN(e->arena, int64_t, size), *least = NEWN(e->arena, int64_t, size);
    for (int i = 0; i < e->tables_of[var].list.n; i++) {
        const struct cost_table *t = &e->tables.at[e->tables_of[var].list.at[i]];
        problem_least(e->p, t, position_of(t, var), least);
        for (int x = 0; x < size; x++)
            sum[x] = cost_plus(sum[x], least[x]);
    }
    for (int x = 1; x < size; x++)
        best = sum[x] < sum[best] ? x : best;
    return best;
}

/* The table for var = x, without var. */
static struct cost_table cut_table(struct elimination *e, const struct cost_table *t, int var, int x)
{
    struct table_layout l = problem_layout(e->p, t, position_of(t, var));
    struct cost_table cut = {.var = NEWN(e->arena, int, t->nvar + 1), .cost = NEWN(e->arena, int64_t, l.outer * l.inner)};
    for (int i = 0; i < t->nvar; i++)
        if (t->var[i] != var)
            cut.var[cut.nvar++] = t->var[i];
    for (int64_t o = 0; o < l.outer; o++)
        memcpy(cut.cost + o * l.inner, t->cost + (o * l.size + x) * l.inner, sizeof *t->cost * (size_t)l.inner);
    return cut;
}

void elimination_fix(struct elimination *e, int var, int value)
{
    require(var >= 0 && !e->done[var] && value >= 0 && value < e->p->size.at[var]);
    struct elimination_step fixed = {.var = var, .best = NEWN(e->arena, int, 1)};
    int n = e->near[var].list.n, *around = list_copy(e->arena, &e->near[var]);
    fixed.best[0] = value;
    for (int i = 0; i < e->tables_of[var].list.n; i++) {
        struct cost_table *t = &e->tables.at[e->tables_of[var].list.at[i]];
        *t = cut_table(e, t, var, fixed.best[0]);
        if (e->forbidden)
            mark_changed(e, e->tables_of[var].list.at[i]);
    }
    VEC_PUSH(e->arena, &e->steps, fixed);
    unlink_variable(e, var);
    reweigh(e, n, around);
    propagate(e);
}

/* ---- all variables ---------------------------------------------------------------------------------------------------------------- */

struct elimination *elimination_new(const struct problem *p, struct arena *a)
{
    struct elimination *e = NEW(a, struct elimination);
    int n = p->size.n;
    *e = (struct elimination){.p = p, .arena = a};
    e->tables_of = NEWN(a, struct index_list, n + 1);
    e->near = NEWN(a, struct index_list, n + 1);
    e->weight = NEWN(a, int64_t, n + 1);
    e->done = NEWN(a, bool, n + 1);
    e->held = p->takes.n ? NEWN(a, bool, n + 1) : NULL;
    for (int i = 0; i < p->takes.n; i++)
        e->held[p->takes.at[i].var] = true;
    for (int i = 0; i < p->tables.n; i++)
        take_table(e, drop_fixed(e, &p->tables.at[i]));
    for (int v = 0; v < n; v++) {
        e->done[v] = p->size.at[v] == 1;
        if (!e->done[v])
            weigh_variable(e, v);
    }
    return e;
}

/* The number of sums needed to eliminate var. */
static double effort(const struct elimination *e, int var)
{
    return (double)e->weight[var] * e->p->size.at[var] * (e->tables_of[var].list.n + 1);
}

bool elimination_run(struct elimination *e, int64_t cap, double most)
{
    int64_t entries;
    for (int v; (v = elimination_next(e, &entries)) >= 0;) {
        if (entries > cap || e->spent + effort(e, v) > most)
            return false;
        e->spent += effort(e, v);
        eliminate(e, v);
    }
    return true;
}

/* Simulates the order on copies of the neighbour lists, by approximate numbers of tables. */
double elimination_effort(const struct elimination *of, int64_t cap, double most)
{
    struct arena *tmp = arena_new();
    int n = of->p->size.n;
    struct elimination e = {
        .p = of->p, .arena = tmp, .held = of->held, .weight = NEWN(tmp, int64_t, n + 1), .done = NEWN(tmp, bool, n + 1)};
    e.near = NEWN(tmp, struct index_list, n + 1);
    double sum = 0;
    int64_t entries;
    for (int v = 0; v < n; v++) {
        e.done[v] = of->done[v];
        for (int i = 0; !e.done[v] && i < of->near[v].list.n; i++)
            VEC_PUSH(tmp, &e.near[v].list, of->near[v].list.at[i]);
        if (!e.done[v])
            weigh_variable(&e, v);
    }
    for (int v; sum <= most && (v = elimination_next(&e, &entries)) >= 0;) {
        const struct index_list *near = &e.near[v];
        sum += entries > cap ? INFINITY : 3.0 * (double)entries * e.p->size.at[v];
        for (int i = 0; sum <= most && i < near->list.n; i++)
            for (int j = 0; j < i; j++)
                link_variables(&e, near->list.at[i], near->list.at[j]);
        unlink_variable(&e, v);
        reweigh(&e, near->list.n, near->list.at);
    }
    arena_free(tmp);
    return sum;
}

static void rank(struct elimination *e, uint64_t seed)
{
    e->noise = seed;
    e->ranked = true;
    e->widest.list.n = 0;
    for (int v = 0; v < e->p->size.n; v++)
        if (!e->done[v])
            queue_push(e->arena, &e->widest, (struct queued){narrowness(e, v), v});
}

int elimination_widest(struct elimination *e, uint64_t seed)
{
    if (!e->ranked || e->noise != seed)
        rank(e, seed);
    const struct queued *first = e->widest.list.at;
    while (e->widest.list.n && (e->done[first->var] || narrowness(e, first->var) != first->weight))
        queue_pop(&e->widest);
    return e->widest.list.n ? first->var : -1;
}

void elimination_read_back(const struct elimination *e, int *value)
{
    for (int i = e->steps.n - 1; i >= 0; i--) {
        const struct elimination_step *s = &e->steps.at[i];
        int64_t at = 0;
        for (int j = 0; j < s->nvar; j++)
            at = at * e->p->size.at[s->scope[j]] + value[s->scope[j]];
        value[s->var] = s->best[at];
        require(value[s->var] >= 0 && value[s->var] < e->p->size.at[s->var]);
    }
}

double elimination_spent(const struct elimination *e)
{
    return e->spent;
}

int64_t elimination_largest(const struct elimination *e)
{
    return e->largest;
}

/* Whether all variables of t are in the other table. */
static bool within(const struct cost_table *t, const struct cost_table *other)
{
    for (int i = 0; i < t->nvar; i++) {
        bool found = false;
        for (int k = 0; k < other->nvar && !found; k++)
            found = other->var[k] == t->var[i];
        if (!found)
            return false;
    }
    return true;
}

/* Adds table t to another, which has all of its variables. */
static void add_into(struct elimination *e, const struct cost_table *t, struct cost_table *to)
{
    struct stride s = strides_of(e, t, to->var, to->nvar, -1);
    int *digit = NEWN(e->arena, int, to->nvar + 1);
    int64_t base = 0;
    for (int64_t k = 0, n = problem_entries(e->p, to); k < n; k++) {
        to->cost[k] = cost_plus(to->cost[k], s.cost[base]);
        for (int j = to->nvar - 1; j >= 0; j--) {
            bool carry = ++digit[j] == e->p->size.at[to->var[j]];
            base += carry ? -(int64_t)(digit[j] - 1) * s.scope[j] : s.scope[j];
            if (!carry)
                break;
            digit[j] = 0;
        }
    }
}

/* The shortest of its variables' table lists: a wider table is in the list of each variable. */
static const struct index_list *shortest_list(const struct elimination *e, const struct cost_table *t)
{
    const struct index_list *least = &e->tables_of[t->var[0]];
    for (int i = 1; i < t->nvar; i++)
        least = e->tables_of[t->var[i]].list.n < least->list.n ? &e->tables_of[t->var[i]] : least;
    return least;
}

/* A remaining table with all variables of the given one; -1: none. Of two tables with the same variables, the first. */
static int wider_table(const struct elimination *e, int of, const bool *gone)
{
    const struct cost_table *t = &e->tables.at[of];
    const struct index_list *mine = shortest_list(e, t);
    for (int i = 0; i < mine->list.n; i++) {
        int k = mine->list.at[i];
        const struct cost_table *other = &e->tables.at[k];
        if (k != of && !gone[k] && (other->nvar > t->nvar || k < of) && within(t, other))
            return k;
    }
    return -1;
}

/* Adds narrow tables to wider ones. A table that is added to becomes the elimination's own; others remain the problem's. */
static void add_narrow_tables(struct elimination *e, const bool *alive, bool *gone)
{
    bool *own = NEWN(e->arena, bool, e->tables.n + 1);
    for (int i = 0; i < e->tables.n; i++) {
        int at = alive[i] && e->tables.at[i].nvar ? wider_table(e, i, gone) : -1;
        if (at < 0)
            continue;
        struct cost_table *to = &e->tables.at[at];
        if (!own[at]) {
            size_t bytes = sizeof *to->cost * (size_t)problem_entries(e->p, to);
            to->cost = memcpy(arena_alloc(e->arena, bytes), to->cost, bytes);
        }
        own[at] = true;
        add_into(e, &e->tables.at[i], to);
        gone[i] = true;
    }
}

struct problem *elimination_rest(struct elimination *e, struct arena *a)
{
    struct problem *rest = problem_new(a);
    bool *alive = NEWN(e->arena, bool, e->tables.n + 1), *gone = NEWN(e->arena, bool, e->tables.n + 1);
    for (int v = 0; v < e->p->size.n; v++) {
        problem_variable(rest, e->done[v] ? 1 : e->p->size.at[v]);
        for (int i = 0; i < e->tables_of[v].list.n; i++)
            alive[e->tables_of[v].list.at[i]] = true;
    }
    for (int i = 0; i < e->tables.n; i++)
        alive[i] = alive[i] || !e->tables.at[i].nvar;
    add_narrow_tables(e, alive, gone);
    for (int i = 0; i < e->tables.n; i++)
        if (alive[i] && !gone[i])
            VEC_PUSH(a, &rest->tables, e->tables.at[i]);
    problem_copy_limits(e->p, rest);
    return rest;
}
