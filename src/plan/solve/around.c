/* around: improves assignments by large-neighbourhood search (Shaw, 1998): solves a part exactly while the rest stays fixed.
 *
 * A part is a variable with neighbours. Its tables are restricted to the values of the rest, what it takes is charged at the points'
 * prices, and elimination finds the best values; if the tables would grow too large, some of the part stays fixed, too. If the result
 * exceeds a limit, the prices of those points rise, and the part is solved again.
 *
 * Two threads make proposals from the same assignment; proposals are accepted one after another, so the result does not depend on the
 * number of threads. */
#include "plan/plan.h"
#include "plan/solve/solve.h"

#include <math.h>
#include <string.h>

/* Proposals per assignment; prices tried for each; variables of a small and a large part; one part in this many is large; tables of a
 * variable that are followed to neighbours; variables of problems that are worth a second thread. */
enum { BATCH = 8, TRIES = 5, SMALL_PART = 40, LARGE_PART = 400, ONE_WHOLE = 16, MOST_NEAR = 24, WORTH_THREADS = 128 };

struct proposal {
    struct arena *arena;
    uint64_t seed;
    VEC(int) part;
    VEC(int) value;        /* of the part */
    int *at, *seen, stamp; /* at: by variable, its position in the part, or -1; seen: by table, stamp of the last visit */
    double effort;
};
struct placed_values {
    int *value;
    int64_t cost, *taken;
    double excess;
};
struct around {
    const struct problem *p;
    struct arena *arena;
    struct problem_index of;
    int **order; /* by variable: its values, most promising first */
    struct placed_values now, best;
    int64_t *change, stamp, *seen; /* seen: by table, stamp of the last visit */
    double effort, room;           /* room: excess over the best cost that is still accepted */
    const double *price;
    double usual; /* average of the nonzero prices */
    int64_t most_entries;
    bool whole; /* some parts are as large as possible */
    uint64_t seed;
    struct proposal proposal[BATCH];
};

static uint64_t draw(uint64_t *seed)
{
    return splitmix(*seed += SPLITMIX_STEP);
}

static double excess_of(const struct problem *p, const int64_t *taken)
{
    double sum = 0;
    for (int i = 0; i < p->points; i++)
        sum += taken[i] > p->limit[i] ? (double)(taken[i] - p->limit[i]) : 0;
    return sum;
}

static struct placed_values new_state(const struct around *s)
{
    return (struct placed_values){.value = NEWN(s->arena, int, s->p->size.n + 1), .taken = NEWN(s->arena, int64_t, s->p->points + 1)};
}

static void copy_state(const struct around *s, struct placed_values *to, const struct placed_values *from)
{
    memcpy(to->value, from->value, sizeof(int) * (size_t)s->p->size.n);
    memcpy(to->taken, from->taken, sizeof(int64_t) * (size_t)s->p->points);
    to->cost = from->cost;
    to->excess = from->excess;
}

/* Orders values by the bound; without one, keeps their order. */
static int *order_values(const struct around *s, const struct bound *b, int v, int64_t *least)
{
    int n = s->p->size.at[v], *order = NEWN(s->arena, int, n);
    for (int x = 0; x < n; x++)
        order[x] = x;
    if (b)
        bound_values(b, v, least);
    for (int i = 1; b && i < n; i++) {
        int x = order[i], at = i;
        for (; at > 0 && least[order[at - 1]] > least[x]; at--)
            order[at] = order[at - 1];
        order[at] = x;
    }
    return order;
}

struct around *around_new(const struct problem *p, struct arena *a, const struct bound *b, const int *value, uint64_t seed)
{
    struct around *s = NEW(a, struct around);
    int most = 0;
    *s = (struct around){.p = p, .arena = a, .seed = seed};
    s->of = problem_index(p, a);
    s->now = new_state(s);
    s->best = new_state(s);
    memcpy(s->now.value, value, sizeof(int) * (size_t)p->size.n);
    s->now.cost = problem_cost(p, value);
    problem_taken(p, value, s->now.taken);
    s->now.excess = excess_of(p, s->now.taken);
    copy_state(s, &s->best, &s->now);
    s->change = NEWN(a, int64_t, p->points + 1);
    s->seen = NEWN(a, int64_t, p->tables.n + 1);
    s->order = NEWN(a, int *, p->size.n + 1);
    for (int v = 0; v < p->size.n; v++)
        most = p->size.at[v] > most ? p->size.at[v] : most;
    int64_t *least = NEWN(a, int64_t, most + 1);
    for (int v = 0; v < p->size.n; v++)
        s->order[v] = order_values(s, b, v, least);
    for (int i = 0; i < BATCH; i++) {
        s->proposal[i] = (struct proposal){
            .arena = arena_new_within(a), .at = NEWN(a, int, p->size.n + 1), .seen = NEWN(a, int, p->tables.n + 1)};
        for (int v = 0; v < p->size.n; v++)
            s->proposal[i].at[v] = -1;
    }
    return s;
}

/* ---- a part -------------------------------------------------------------------------------------------------------------------- */

struct local {
    const struct around *s;
    struct arena *a;
    struct proposal *out;
    int **kept, *count, *current; /* by position: the values to choose from, and the current one */
    bool whole;                   /* as many variables as can be reached */
    int from, to;
    double *price, *sum;   /* of points from..to-1 */
    int64_t *taken;        /* by the fixed rest */
    struct problem *fixed; /* tables without charges */
    int *value;            /* of the part */
};

static void join_part(struct local *l, int v)
{
    if (l->out->at[v] >= 0)
        return;
    l->out->at[v] = l->out->part.n;
    VEC_PUSH(l->a, &l->out->part, v);
}

/* A variable that takes of a point; -1: none found. */
static int taking_at(const struct around *s, int point, uint64_t *seed)
{
    for (int i = 0; i < 100; i++) {
        const struct take *o = &s->p->takes.at[draw(seed) % (uint64_t)s->p->takes.n];
        if (o->from <= point && point < o->to)
            return o->var;
    }
    return -1;
}

/* A point of which v takes; -1: none. */
static int point_of(const struct around *s, int v, uint64_t *seed)
{
    const struct index_list *mine = &s->of.takes[v];
    if (!mine->list.n)
        return -1;
    const struct take *t = &s->p->takes.at[mine->list.at[draw(seed) % (uint64_t)mine->list.n]];
    return t->from + (int)(draw(seed) % (uint64_t)(t->to - t->from));
}

/* A point whose limit is exceeded. */
static int point_over(const struct around *s, uint64_t *seed)
{
    int n = s->p->points, first = (int)(draw(seed) % (uint64_t)n);
    for (int i = 0; i < n; i++) {
        int point = (first + i) % n;
        if (s->now.taken[point] > s->p->limit[point])
            return point;
    }
    return -1;
}

/* Starts with one variable, or with several that take of the same point, preferably one whose limit is exceeded. */
static void seed_part(struct local *l, uint64_t *seed)
{
    const struct around *s = l->s;
    int v = (int)(draw(seed) % (uint64_t)s->p->size.n), point = s->now.excess > 0 ? point_over(s, seed) : point_of(s, v, seed);
    int others = (int)(draw(seed) % 4) + (s->now.excess > 0);
    if (s->now.excess <= 0)
        join_part(l, v);
    for (; point >= 0 && others > 0; others--) {
        int w = taking_at(s, point, seed);
        if (w >= 0)
            join_part(l, w);
    }
    if (!l->out->part.n)
        join_part(l, v);
}

/* Grows the part from its start, randomised breadth first. */
static void choose_part(struct local *l, uint64_t *seed)
{
    const struct around *s = l->s;
    int n = s->p->size.n, most = l->whole ? n : 2 + (int)(draw(seed) % (uint64_t)(draw(seed) % 4 ? SMALL_PART : LARGE_PART));
    seed_part(l, seed);
    for (int i = 0; i < l->out->part.n && l->out->part.n < most; i++) {
        struct index_list *mine = &s->of.tables[l->out->part.at[i]];
        int tables = mine->list.n, near = tables < MOST_NEAR ? tables : MOST_NEAR;
        uint64_t first = tables ? draw(seed) % (uint64_t)tables : 0;
        for (int k = 0; k < near && l->out->part.n < most; k++) {
            const struct cost_table *t = &s->p->tables.at[mine->list.at[(first + (uint64_t)k) % (uint64_t)tables]];
            for (int j = 0; j < t->nvar; j++)
                join_part(l, t->var[j]);
        }
    }
}

/* Keeps the most promising values and the current one. */
static void choose_values(struct local *l, int most)
{
    const struct around *s = l->s;
    int n = l->out->part.n;
    l->kept = NEWN(l->a, int *, n);
    l->count = NEWN(l->a, int, n);
    l->current = NEWN(l->a, int, n);
    for (int i = 0; i < n; i++) {
        int v = l->out->part.at[i], size = s->p->size.at[v], few = size < most ? size : most;
        l->kept[i] = NEWN(l->a, int, few + 1);
        memcpy(l->kept[i], s->order[v], sizeof(int) * (size_t)few);
        l->count[i] = few;
        l->current[i] = few;
        for (int x = 0; x < few; x++)
            if (l->kept[i][x] == s->now.value[v])
                l->current[i] = x;
        if (l->current[i] == few)
            l->kept[i][l->count[i]++] = s->now.value[v];
    }
}

/* Adds a table, restricted to the fixed values. */
static void cut_into(struct local *l, const struct cost_table *t)
{
    const struct problem *p = l->s->p;
    int *var = NEWN(l->a, int, t->nvar + 1), *digit = NEWN(l->a, int, t->nvar + 1), n = 0;
    int64_t *stride = NEWN(l->a, int64_t, t->nvar + 1), step = 1, base = 0;
    for (int i = t->nvar - 1; i >= 0; i--) {
        int at = l->out->at[t->var[i]];
        if (at >= 0) {
            var[n] = at;
            stride[n++] = step;
        }
        base += step * (at >= 0 ? l->kept[at][0] : l->s->now.value[t->var[i]]);
        step *= p->size.at[t->var[i]];
    }
    int64_t *cost = n == 1 ? l->fixed->tables.at[var[0]].cost : problem_table(l->fixed, n, var);
    for (bool more = true; more; cost++) {
        *cost = cost_plus(*cost, t->cost[base]);
        more = false;
        for (int i = n - 1; i >= 0 && !more; i--) {
            const int *kept = l->kept[var[i]];
            int old = kept[digit[i]];
            more = ++digit[i] < l->count[var[i]];
            digit[i] = more ? digit[i] : 0;
            base += stride[i] * (kept[digit[i]] - old);
        }
    }
}

static void cut_tables(struct local *l)
{
    const struct around *s = l->s;
    int *seen = l->out->seen, now = ++l->out->stamp;
    l->fixed = problem_new(l->a);
    for (int i = 0; i < l->out->part.n; i++)
        problem_unary(l->fixed, problem_variable(l->fixed, l->count[i]));
    for (int i = 0; i < l->out->part.n; i++) {
        const struct index_list *mine = &s->of.tables[l->out->part.at[i]];
        for (int k = 0; k < mine->list.n; k++) {
            int t = mine->list.at[k];
            if (seen[t] != now)
                cut_into(l, &s->p->tables.at[t]);
            seen[t] = now;
        }
    }
}

/* ---- what it takes -------------------------------------------------------------------------------------------------------------- */

static void copy_points(struct local *l, double times)
{
    const struct around *s = l->s;
    l->from = s->p->points;
    l->to = 0;
    for (int i = 0; i < l->out->part.n; i++) {
        const struct index_list *mine = &s->of.takes[l->out->part.at[i]];
        for (int k = 0; k < mine->list.n; k++) {
            const struct take *t = &s->p->takes.at[mine->list.at[k]];
            l->from = t->from < l->from ? t->from : l->from;
            l->to = t->to > l->to ? t->to : l->to;
        }
    }
    int n = l->to > l->from ? l->to - l->from : 0;
    l->price = NEWN(l->a, double, n + 1);
    l->sum = NEWN(l->a, double, n + 1);
    l->taken = NEWN(l->a, int64_t, n + 1);
    for (int i = 0; i < n; i++) {
        bool over = s->now.taken[l->from + i] > s->p->limit[l->from + i];
        l->price[i] = over ? 4 * s->price[l->from + i] + 4 * s->usual : times * s->price[l->from + i];
    }
}

/* The part's uses with the new values minus its current uses. */
static void taken_by(struct local *l)
{
    const struct around *s = l->s;
    int n = l->to - l->from;
    if (n <= 0)
        return;
    memset(l->taken, 0, sizeof *l->taken * ((size_t)n + 1));
    for (int i = 0; i < l->out->part.n; i++) {
        int v = l->out->part.at[i];
        for (int k = 0; l->value[i] != l->current[i] && k < s->of.takes[v].list.n; k++) {
            const struct take *t = &s->p->takes.at[s->of.takes[v].list.at[k]];
            int64_t more = t->amount[l->kept[i][l->value[i]]] - t->amount[s->now.value[v]];
            l->taken[t->from - l->from] += more;
            l->taken[t->to - l->from] -= more;
        }
    }
    for (int i = 1; i <= n; i++)
        l->taken[i] += l->taken[i - 1];
}

/* The growth of the excess; raises the prices of points whose limit is exceeded. */
static double judge_taken(struct local *l)
{
    const struct around *s = l->s;
    double more = 0;
    for (int i = 0; i < l->to - l->from; i++) {
        int64_t now = s->now.taken[l->from + i], over = now + l->taken[i] - s->p->limit[l->from + i];
        int64_t was = now - s->p->limit[l->from + i];
        more += (double)(over > 0 ? over : 0) - (double)(was > 0 ? was : 0);
        if (over > 0)
            l->price[i] = 2 * l->price[i] + s->usual;
    }
    return more;
}

static void charge(struct local *l, struct problem *q)
{
    const struct around *s = l->s;
    for (int i = 0; i < l->to - l->from; i++)
        l->sum[i + 1] = l->sum[i] + l->price[i];
    for (int i = 0; i < l->out->part.n; i++) {
        int v = l->out->part.at[i];
        int64_t *cost = q->tables.at[i].cost;
        for (int k = 0; k < s->of.takes[v].list.n; k++) {
            const struct take *t = &s->p->takes.at[s->of.takes[v].list.at[k]];
            double each = l->sum[t->to - l->from] - l->sum[t->from - l->from];
            for (int x = 0; each > 0 && x < l->count[i]; x++)
                cost[x] = cost_plus(cost[x], (int64_t)((double)t->amount[l->kept[i][x]] * each));
        }
    }
}

/* The same tables, with a copy of those of single variables. */
static struct problem *charged(struct local *l, struct arena *a)
{
    struct problem *q = problem_new(a);
    for (int i = 0; i < l->fixed->size.n; i++) {
        int size = l->fixed->size.at[i];
        memcpy(problem_unary(q, problem_variable(q, size)), l->fixed->tables.at[i].cost, sizeof(int64_t) * (size_t)size);
    }
    for (int i = q->tables.n; i < l->fixed->tables.n; i++)
        VEC_PUSH(a, &q->tables, l->fixed->tables.at[i]);
    charge(l, q);
    return q;
}

static void solve_part(struct local *l, uint64_t seed)
{
    struct arena *tmp = arena_new_within(l->a);
    struct problem *q = charged(l, tmp);
    struct elimination *e = elimination_new(q, tmp);
    while (!elimination_run(e, l->s->most_entries, INFINITY)) {
        int v = elimination_widest(e, seed);
        elimination_fix(e, v, l->current[v]);
    }
    for (int i = 0; i < q->size.n; i++)
        l->value[i] = 0;
    elimination_read_back(e, l->value);
    l->out->effort += elimination_spent(e) + 100.0 * q->size.n;
    arena_free(tmp);
}

/* ---- proposals ------------------------------------------------------------------------------------------------------------------- */

static void propose(const struct around *s, struct proposal *out)
{
    uint64_t seed = out->seed;
    static const double times[] = {1, 1, 1, 0.5, 0.25, 0, 2};
    static const int most[] = {3, 5, 8, 16, 1 << 16};
    for (int i = 0; i < out->part.n; i++)
        out->at[out->part.at[i]] = -1;
    arena_reset(out->arena);
    out->part.at = out->value.at = NULL;
    out->part.cap = out->value.cap = out->part.n = out->value.n = 0;
    struct local l = {.s = s, .a = out->arena, .out = out};
    l.whole = s->whole && draw(&seed) % ONE_WHOLE == 0;
    choose_part(&l, &seed);
    choose_values(&l, most[draw(&seed) % (l.whole ? 3 : 5)]);
    cut_tables(&l);
    l.value = NEWN(l.a, int, out->part.n);
    copy_points(&l, times[draw(&seed) % 7]);
    int64_t before = problem_cost(l.fixed, l.current);
    for (int k = 0; k < TRIES; k++) {
        solve_part(&l, draw(&seed));
        taken_by(&l);
        double more = judge_taken(&l);
        if (more > 0 || (s->now.excess > 0 && more >= 0))
            continue;
        int64_t after = problem_cost(l.fixed, l.value);
        if (more < 0 || (double)(s->now.cost - before + after) <= (double)s->best.cost + s->room)
            for (int i = 0; i < out->part.n; i++)
                VEC_PUSH(l.a, &out->value, l.kept[i][l.value[i]]);
        return;
    }
}

/* The cost of the tables of a proposal's variables. */
static int64_t cost_around(struct around *s, const struct proposal *o)
{
    int64_t sum = 0;
    s->stamp++;
    for (int i = 0; i < o->part.n; i++) {
        const struct index_list *mine = &s->of.tables[o->part.at[i]];
        for (int k = 0; k < mine->list.n; k++) {
            int t = mine->list.at[k];
            sum = s->seen[t] == s->stamp ? sum : cost_plus(sum, problem_entry(s->p, &s->p->tables.at[t], s->now.value));
            s->seen[t] = s->stamp;
        }
    }
    return sum;
}

/* Swaps the values of a proposal and the assignment, and updates what is taken. */
static void swap_values(struct around *s, struct proposal *o)
{
    const struct problem *p = s->p;
    int from = p->points, to = 0;
    for (int i = 0; i < o->part.n; i++) {
        int v = o->part.at[i], x = s->now.value[v], y = o->value.at[i];
        for (int k = 0; x != y && k < s->of.takes[v].list.n; k++) {
            const struct take *t = &p->takes.at[s->of.takes[v].list.at[k]];
            s->change[t->from] += t->amount[y] - t->amount[x];
            s->change[t->to] -= t->amount[y] - t->amount[x];
            from = t->from < from ? t->from : from;
            to = t->to > to ? t->to : to;
        }
        s->now.value[v] = y;
        o->value.at[i] = x;
    }
    int64_t more = 0;
    for (int i = from; i < to; i++) {
        int64_t over = s->now.taken[i] - p->limit[i];
        s->now.excess -= over > 0 ? (double)over : 0;
        s->now.taken[i] += more += s->change[i];
        over = s->now.taken[i] - p->limit[i];
        s->now.excess += over > 0 ? (double)over : 0;
        s->change[i] = 0;
    }
    if (from < to)
        s->change[to] = 0;
}

/* Accepts a proposal if it is still good enough. */
static void take(struct around *s, struct proposal *o)
{
    if (!o->value.n)
        return;
    int64_t before = cost_around(s, o);
    double excess = s->now.excess;
    swap_values(s, o);
    int64_t after = cost_around(s, o), cost = s->now.cost - before + after;
    if (s->now.excess < excess || (s->now.excess <= excess && (double)cost <= (double)s->best.cost + s->room)) {
        s->now.cost = cost;
        if (s->now.excess < s->best.excess || (s->now.excess <= s->best.excess && cost < s->best.cost))
            copy_state(s, &s->best, &s->now);
        return;
    }
    swap_values(s, o);
    s->now.excess = excess;
}

void around_search(struct around *s, const double *price, int proposals, int64_t most_entries, double room, bool whole, double most)
{
    int priced = 0;
    double sum = 0;
    s->price = price;
    s->most_entries = most_entries;
    s->whole = whole;
    for (int i = 0; i < s->p->points; i++) {
        priced += price[i] > 0;
        sum += price[i];
    }
    s->usual = priced ? sum / priced : 1e-6;
    copy_state(s, &s->now, &s->best);
    for (int done = 0; done < proposals && s->effort < most; done += BATCH) {
        s->room = room * (double)(proposals - done) / proposals * (double)s->best.cost;
        for (int i = 0; i < BATCH; i++)
            s->proposal[i].seed = draw(&s->seed);
#pragma omp parallel for num_threads(2) schedule(dynamic, 1) if (s->p->size.n >= WORTH_THREADS)
        for (int i = 0; i < BATCH; i++)
            propose(s, &s->proposal[i]);
        for (int i = 0; i < BATCH; i++) {
            s->effort += s->proposal[i].effort;
            s->proposal[i].effort = 0;
            take(s, &s->proposal[i]);
        }
    }
}

double around_effort(const struct around *s)
{
    return s->effort;
}

const int *around_value(const struct around *s)
{
    return s->best.value;
}

int64_t around_cost(const struct around *s)
{
    return s->best.cost;
}

double around_excess(const struct around *s)
{
    return s->best.excess;
}
