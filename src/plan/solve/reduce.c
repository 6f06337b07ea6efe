/* reduce: a smaller problem with the same minimum.
 *
 *     forbidden   a value that some table forbids is removed
 *     merged      where a table of two variables leaves each value of one exactly one of the other, both are one variable
 *     dominated   a value is removed if another never costs more, whatever the other variables are, and takes no more of any point
 *                 (Goldstein, "Efficient rotamer elimination applied to protein side-chains and related spin glasses", 1994)
 *
 * Tables over the same variables are added up. */
#include "plan/plan.h"
#include "plan/solve/solve.h"

#include <string.h>

#define MOST_COMPARED ((int64_t)1 << 17) /* entries read to compare the values of one variable */

struct reducing {
    const struct problem *p;
    struct arena *arena, *tmp;
    bool **keep;     /* by variable and value */
    int *root, **of; /* by variable: the one it is merged into, maybe itself; by the root's values: its own, -1: none */
    int **instead;   /* by variable and value: the value that dominates it */
    bool changed;
};

static bool is_never(int64_t cost)
{
    return cost >= COST_NEVER / 2;
}

/* ---- forbidden ---------------------------------------------------------------------------------------------------------------- */

static int count_kept(const struct reducing *r, const struct cost_table *t)
{
    int n = 0;
    for (int i = 0; i < t->nvar; i++)
        for (int x = 0; x < r->p->size.at[t->var[i]]; x++)
            n += r->keep[t->var[i]][x];
    return n;
}

/* By position and value: whether the table allows it with some kept values of the others. Stops once all kept values have one. */
static void find_left(const struct reducing *r, const struct cost_table *t, bool **left)
{
    int n = t->nvar, open = count_kept(r, t), *digit = NEWN(r->tmp, int, n + 1);
    for (int64_t k = 0, all = problem_entries(r->p, t); k < all && open; k++) {
        bool kept = !is_never(t->cost[k]);
        for (int i = 0; kept && i < n; i++)
            kept = r->keep[t->var[i]][digit[i]];
        for (int i = 0; kept && i < n; i++) {
            open -= !left[i][digit[i]];
            left[i][digit[i]] = true;
        }
        for (int i = n - 1; i >= 0 && ++digit[i] == r->p->size.at[t->var[i]]; i--)
            digit[i] = 0;
    }
}

/* Removes values that a table forbids; true if there were any. waits: by table: whether it may forbid more. */
static bool forbid_by(struct reducing *r, const struct problem_index *a, int table, bool *waits)
{
    const struct cost_table *t = &r->p->tables.at[table];
    bool any = false, **left = NEWN(r->tmp, bool *, t->nvar + 1);
    for (int k = 0; k < t->nvar; k++)
        left[k] = NEWN(r->tmp, bool, r->p->size.at[t->var[k]]);
    find_left(r, t, left);
    for (int k = 0; k < t->nvar; k++) {
        int v = t->var[k];
        bool lost = false;
        for (int x = 0; x < r->p->size.at[v]; x++)
            if (r->keep[v][x] && !left[k][x]) {
                r->keep[v][x] = false;
                lost = true;
            }
        for (int i = 0; lost && i < a->tables[v].list.n; i++)
            waits[a->tables[v].list.at[i]] = true;
        any = any || lost;
    }
    arena_reset(r->tmp);
    return any;
}

static void forbid(struct reducing *r, const struct problem_index *a)
{
    bool *waits = NEWN(r->arena, bool, r->p->tables.n + 1);
    memset(waits, true, (size_t)r->p->tables.n);
    for (bool again = true; again;) {
        again = false;
        for (int i = 0; i < r->p->tables.n; i++) {
            if (!waits[i])
                continue;
            waits[i] = false;
            again |= forbid_by(r, a, i, waits);
        }
        r->changed |= again;
    }
}

/* ---- merged ------------------------------------------------------------------------------------------------------------------- */

/* For each kept value of a, the only compatible one of b; false: some has several, or two have the same. */
static bool pairs_up(const struct reducing *r, const struct cost_table *t, int *partner)
{
    int a = t->var[0], b = t->var[1], nb = r->p->size.at[b];
    bool *taken = NEWN(r->tmp, bool, nb);
    for (int x = 0; x < r->p->size.at[a]; x++) {
        partner[x] = -1;
        for (int y = 0; r->keep[a][x] && y < nb; y++) {
            if (!r->keep[b][y] || is_never(t->cost[(int64_t)x * nb + y]))
                continue;
            if (partner[x] >= 0 || taken[y])
                return false;
            taken[y] = true;
            partner[x] = y;
        }
    }
    return true;
}

/* The value of the root for which v has value y; -1: none. */
static int root_value(const struct reducing *r, int v, int y)
{
    for (int x = 0; x < r->p->size.at[r->root[v]]; x++)
        if (r->of[v][x] == y)
            return x;
    return -1;
}

struct members {
    VEC(int) list;
};

/* Moves the variables of b's root to a's. */
static void move_members(struct reducing *r, struct members *of, int a, int b, const int *partner)
{
    int to = r->root[a], from = r->root[b], n = r->p->size.at[to], *at = NEWN(r->tmp, int, n);
    for (int x = 0; x < n; x++) {
        int y = r->keep[to][x] && r->of[a][x] >= 0 ? partner[r->of[a][x]] : -1;
        at[x] = y >= 0 ? root_value(r, b, y) : -1;
        at[x] = at[x] >= 0 && r->keep[from][at[x]] ? at[x] : -1;
        r->keep[to][x] = at[x] >= 0;
    }
    for (int i = 0; i < of[from].list.n; i++) {
        int v = of[from].list.at[i], *values = NEWN(r->arena, int, n);
        for (int x = 0; x < n; x++)
            values[x] = at[x] >= 0 ? r->of[v][at[x]] : -1;
        r->of[v] = values;
        r->root[v] = to;
        VEC_PUSH(r->arena, &of[to].list, v);
    }
    of[from].list.n = 0;
}

static void merge_pair(struct reducing *r, struct members *of, const struct cost_table *t)
{
    int a = t->var[0], b = t->var[1], *partner = NEWN(r->tmp, int, r->p->size.at[a]);
    if (!pairs_up(r, t, partner))
        return;
    int root = r->root[a];
    if (root != r->root[b]) {
        move_members(r, of, a, b, partner);
        r->changed = true;
        return;
    }
    for (int x = 0; x < r->p->size.at[root]; x++)
        r->keep[root][x] = r->keep[root][x] && partner[r->of[a][x]] == r->of[b][x];
}

/* Removes the values that the root lost from all members. */
static void spread_loss(struct reducing *r)
{
    for (int v = 0; v < r->p->size.n; v++) {
        int root = r->root[v], n = r->p->size.at[v];
        require(r->root[root] == root);
        bool *left = NEWN(r->arena, bool, n);
        for (int x = 0; x < r->p->size.at[root]; x++)
            if (r->keep[root][x] && r->of[v][x] >= 0)
                left[r->of[v][x]] = true;
        if (v != root)
            memcpy(r->keep[v], left, (size_t)n);
    }
}

static void merge(struct reducing *r)
{
    struct members *of = NEWN(r->arena, struct members, r->p->size.n + 1);
    for (int v = 0; v < r->p->size.n; v++)
        VEC_PUSH(r->arena, &of[v].list, v);
    for (int i = 0; i < r->p->tables.n; i++) {
        if (r->p->tables.at[i].nvar == 2)
            merge_pair(r, of, &r->p->tables.at[i]);
        arena_reset(r->tmp);
    }
    spread_loss(r);
}

/* ---- dominated ---------------------------------------------------------------------------------------------------------------- */

/* The least difference of the costs of x and y in a table; minus infinity if only y is forbidden somewhere. Wider tables are compared over
 * all values of the others, kept or not. */
static int64_t least_more(const struct reducing *r, const struct cost_table *t, int v, int x, int y)
{
    int position = 0, other;
    int64_t least = COST_NEVER;
    while (t->var[position] != v)
        position++;
    other = t->nvar == 2 ? t->var[1 - position] : -1;
    struct table_layout l = problem_layout(r->p, t, position);
    for (int64_t o = 0; o < l.outer; o++)
        for (int64_t i = 0; i < l.inner; i++) {
            int64_t cx = t->cost[(o * l.size + x) * l.inner + i], cy = t->cost[(o * l.size + y) * l.inner + i];
            if (is_never(cx) || (other >= 0 && !r->keep[other][position ? o : i]))
                continue;
            if (is_never(cy))
                return -COST_NEVER;
            least = cx - cy < least ? cx - cy : least;
        }
    return least;
}

static bool dominates(const struct reducing *r, const struct problem_index *a, int v, int y, int x)
{
    int64_t more = 0;
    for (int i = 0; i < a->takes[v].list.n; i++) {
        const int64_t *amount = r->p->takes.at[a->takes[v].list.at[i]].amount;
        if (amount[y] > amount[x])
            return false;
    }
    for (int i = 0; i < a->tables[v].list.n; i++) {
        int64_t by = least_more(r, &r->p->tables.at[a->tables[v].list.at[i]], v, x, y);
        if (by <= -COST_NEVER)
            return false;
        more = cost_plus(more, by);
    }
    return more >= 0;
}

static int64_t entries_around(const struct reducing *r, const struct problem_index *a, int v)
{
    int64_t n = 1;
    for (int i = 0; i < a->tables[v].list.n; i++)
        n += problem_entries(r->p, &r->p->tables.at[a->tables[v].list.at[i]]);
    return n;
}

static void dominate(struct reducing *r, const struct problem_index *a)
{
    for (int v = 0; v < r->p->size.n; v++) {
        int n = r->p->size.at[v];
        if (n * entries_around(r, a, v) > MOST_COMPARED)
            continue;
        for (int x = 0; x < n; x++)
            for (int y = 0; r->keep[v][x] && y < n; y++)
                if (y != x && r->keep[v][y] && dominates(r, a, v, y, x)) {
                    r->keep[v][x] = false;
                    r->instead[v][x] = y;
                    r->changed = true;
                }
    }
}

/* ---- the smaller problem ------------------------------------------------------------------------------------------------------ */

static void number_variables(struct reducing *r, struct reduced *out)
{
    for (int v = 0; v < r->p->size.n; v++) {
        int kept = 0, last = -1;
        for (int x = 0; x < r->p->size.at[v]; x++)
            if (r->keep[v][x]) {
                kept++;
                last = x;
            }
        out->possible = out->possible && kept;
        out->var[v] = r->root[v] == v && kept > 1 ? problem_variable(out->p, kept) : -1;
        out->value[v] = NEWN(r->arena, int, kept > 1 ? kept : 1);
        out->value[v][0] = last;
        if (out->var[v] >= 0)
            VEC_PUSH(r->arena, &out->root, v);
    }
    for (int v = 0; v < r->p->size.n; v++) {
        int root = r->root[v], k = 0;
        if (out->var[root] < 0)
            continue;
        out->var[v] = out->var[root];
        for (int x = 0; x < r->p->size.at[root]; x++)
            if (r->keep[root][x])
                out->value[v][k++] = r->of[v][x];
        require(k == out->p->size.at[out->var[v]]);
    }
    require(out->root.n == out->p->size.n);
}

/* The distinct new variables of a table, ascending. */
static int scope_of(const struct reduced *out, const struct cost_table *t, int *scope)
{
    int n = 0;
    for (int i = 0; i < t->nvar; i++) {
        int v = out->var[t->var[i]], at = n;
        bool there = v < 0;
        for (int k = 0; k < n; k++)
            there = there || scope[k] == v;
        for (; !there && at > 0 && scope[at - 1] > v; at--)
            scope[at] = scope[at - 1];
        scope[at] = there ? scope[at] : v;
        n += !there;
    }
    return n;
}

/* The new table of this scope; -1: none. */
static int find_table(const struct reduced *out, const struct index_list *mine, int n, const int *scope)
{
    for (int i = 0; i < mine->list.n; i++) {
        const struct cost_table *t = &out->p->tables.at[mine->list.at[i]];
        if (t->nvar == n && (!n || memcmp(t->var, scope, sizeof(int) * (size_t)n) == 0))
            return mine->list.at[i];
    }
    return -1;
}

/* Whether a table is unchanged, over these new variables. */
static bool stays(const struct reducing *r, const struct reduced *out, const struct cost_table *t, int n, const int *scope)
{
    bool same = n == t->nvar;
    for (int i = 0; same && i < n; i++)
        same = out->var[t->var[i]] == scope[i] && r->root[t->var[i]] == t->var[i] && out->p->size.at[scope[i]] == r->p->size.at[t->var[i]];
    return same;
}

/* Offsets of the new variables' values in a table; returns the offset of the values that are fixed. */
static int64_t find_offsets(const struct reducing *r, const struct reduced *out, const struct cost_table *t, int n, const int *scope,
                            int64_t **offset)
{
    int64_t step = 1, fixed = 0;
    for (int i = 0; i < n; i++)
        offset[i] = NEWN(r->tmp, int64_t, out->p->size.at[scope[i]]);
    for (int i = t->nvar - 1; i >= 0; i--) {
        int v = t->var[i], at = 0;
        while (at < n && scope[at] != out->var[v])
            at++;
        for (int x = 0; at < n && x < out->p->size.at[scope[at]]; x++)
            offset[at][x] += step * out->value[v][x];
        fixed += at < n ? 0 : step * out->value[v][0];
        step *= r->p->size.at[v];
    }
    return fixed;
}

/* Adds the kept values of a table to one over these new variables. */
static void add_entries(const struct reducing *r, const struct reduced *out, const struct cost_table *t, int64_t scale, int n,
                        const int *scope, int64_t *cost)
{
    int64_t **offset = NEWN(r->tmp, int64_t *, n + 1), base = find_offsets(r, out, t, n, scope, offset);
    int *value = NEWN(r->tmp, int, n + 1), inner = n ? out->p->size.at[scope[n - 1]] : 1;
    for (bool more = true; more; cost += inner) {
        int64_t from = base;
        for (int i = 0; i + 1 < n; i++)
            from += offset[i][value[i]];
        for (int x = 0; x < inner; x++) {
            int64_t add = t->cost[from + (n ? offset[n - 1][x] : 0)];
            cost[x] = is_never(add) ? COST_NEVER : cost_plus(cost[x], add * scale);
        }
        more = false;
        for (int i = n - 2; i >= 0 && !more; i--) {
            more = ++value[i] < out->p->size.at[scope[i]];
            value[i] = more ? value[i] : 0;
        }
    }
}

/* An unchanged table that is the only one of its scope is shared; when another comes, it is copied. shared: by new table. */
static void add_table(const struct reducing *r, struct reduced *out, struct index_list *of, const struct cost_table *t, int64_t scale,
                      bool *shared)
{
    int *scope = NEWN(r->tmp, int, t->nvar + 1), n = scope_of(out, t, scope);
    struct index_list *mine = &of[n ? scope[0] + 1 : 0];
    int at = find_table(out, mine, n, scope);
    if (at < 0) {
        at = out->p->tables.n;
        VEC_PUSH(out->p->arena, &mine->list, at);
        shared[at] = scale == 1 && stays(r, out, t, n, scope);
        if (shared[at]) {
            VEC_PUSH(out->p->arena, &out->p->tables, *t);
            out->p->tables.at[at].var = memcpy(NEWN(out->p->arena, int, n + 1), scope, sizeof *scope * (size_t)n);
            return;
        }
        (void)problem_table(out->p, n, scope);
    }
    struct cost_table *to = &out->p->tables.at[at];
    if (shared[at]) {
        size_t bytes = sizeof *to->cost * (size_t)problem_entries(out->p, to);
        to->cost = memcpy(arena_alloc(out->p->arena, bytes), to->cost, bytes);
        shared[at] = false;
    }
    add_entries(r, out, t, scale, n, scope, to->cost);
}

static void add_take(const struct reduced *out, const struct take *t)
{
    int v = out->var[t->var];
    if (v < 0) {
        for (int i = t->from; i < t->to; i++)
            out->p->limit[i] -= t->amount[out->value[t->var][0]];
        return;
    }
    int64_t *amount = problem_take(out->p, v, t->from, t->to);
    for (int x = 0; x < out->p->size.at[v]; x++)
        amount[x] = t->amount[out->value[t->var][x]];
}

static void find_into(const struct reducing *r, struct reduced *out)
{
    out->into = NEWN(r->arena, int *, out->root.n + 1);
    for (int k = 0; k < out->root.n; k++) {
        int v = out->root.at[k], n = r->p->size.at[v];
        out->into[k] = NEWN(r->arena, int, n);
        int kept = 0;
        for (int x = 0; x < n; x++)
            out->into[k][x] = r->keep[v][x] ? kept++ : -1;
        require(kept == out->p->size.at[k]);
        for (int x = 0; x < n; x++) {
            int y = x;
            while (!r->keep[v][y] && r->instead[v][y] >= 0)
                y = r->instead[v][y];
            out->into[k][x] = out->into[k][y];
        }
    }
}

static struct reduced make_smaller(struct reducing *r, int64_t scale)
{
    int n = r->p->size.n;
    struct reduced out = {.p = problem_new(r->arena), .possible = true};
    out.var = NEWN(r->arena, int, n + 1);
    out.value = NEWN(r->arena, int *, n + 1);
    number_variables(r, &out);
    if (!out.possible)
        return out;
    struct index_list *of = NEWN(r->arena, struct index_list, out.p->size.n + 2);
    bool *shared = NEWN(r->arena, bool, r->p->tables.n + 1);
    for (int i = 0; i < r->p->tables.n; i++) {
        add_table(r, &out, of, &r->p->tables.at[i], scale, shared);
        arena_reset(r->tmp);
    }
    if (r->p->points)
        memcpy(problem_limits(out.p, r->p->points), r->p->limit, sizeof *r->p->limit * (size_t)r->p->points);
    for (int i = 0; i < r->p->takes.n; i++)
        add_take(&out, &r->p->takes.at[i]);
    out.point = points_reduce(out.p, r->arena);
    for (int i = 0; i < out.p->points; i++)
        out.possible = out.possible && out.p->limit[i] >= 0; /* all may take 0 now */
    find_into(r, &out);
    return out;
}

struct reduced reduce(const struct problem *p, struct arena *a, const struct bound *b, int64_t scale, bool by_pairs)
{
    struct reducing r = {.p = p, .arena = a, .tmp = arena_new()};
    int n = p->size.n;
    r.keep = NEWN(a, bool *, n + 1);
    r.root = NEWN(a, int, n + 1);
    r.of = NEWN(a, int *, n + 1);
    r.instead = NEWN(a, int *, n + 1);
    for (int v = 0; v < n; v++) {
        r.keep[v] = NEWN(a, bool, p->size.at[v]);
        r.of[v] = NEWN(a, int, p->size.at[v]);
        r.instead[v] = NEWN(a, int, p->size.at[v]);
        r.root[v] = v;
        for (int x = 0; x < p->size.at[v]; x++) {
            r.keep[v][x] = !b || bound_keeps(b, v, x);
            r.of[v][x] = x;
            r.instead[v][x] = -1;
        }
    }
    const struct problem_index near = problem_index(r.p, r.arena);
    forbid(&r, &near);
    if (by_pairs)
        merge(&r);
    else
        dominate(&r, &near);
    struct reduced out = make_smaller(&r, scale);
    out.changed = r.changed;
    arena_free(r.tmp);
    return out;
}
