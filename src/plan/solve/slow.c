/* slow: values that no assignment cheaper than a given cost has. The bound tells (bound.c). A problem that elimination alone does not solve
 * is reduced first: variables with small tables are eliminated, and values dropped by a round of sweeps are removed before the next. */
#include "plan/plan.h"
#include "plan/solve/solve.h"

#include <string.h>

enum {
    SWEEPS = 8,
    SMALL_TABLE = 1 << 12,
    MOST_ROUNDS = 6,
    SHARE_DROPPED = 16
}; /* another round follows if at least one value in this many was dropped */
#define MOST_EFFORT 2e9

/* The reduced problem. at, left: by variable: its variable here, -1: none; which of its values remain. eliminated: nothing is known of its
 * values. known: the assignment of the core. */
struct shrinking {
    const struct problem *p, *core;
    struct arena *tmp;
    int *at, **left;
    bool *eliminated;
    struct known known;
};

/* False: nothing costs less than the known assignment. */
static bool sweep(struct bound *b, const struct known *known)
{
    bool open = true;
    for (int i = 0; open && i < SWEEPS; i++)
        open = bound_sweep(b, known);
    return open;
}

static struct shrinking start(const struct problem *p, struct arena *tmp, const struct known *known)
{
    struct shrinking s = {.p = p, .core = p, .tmp = tmp, .known = *known};
    int n = p->size.n;
    s.at = NEWN(tmp, int, n + 1);
    s.left = NEWN(tmp, int *, n + 1);
    s.eliminated = NEWN(tmp, bool, n + 1);
    for (int v = 0; v < n; v++) {
        s.at[v] = v;
        s.left[v] = NEWN(tmp, int, p->size.at[v]);
        for (int x = 0; x < p->size.at[v]; x++)
            s.left[v][x] = x;
    }
    return s;
}

/* Eliminates variables with small tables, unless these are all. */
static void eliminate_small(struct shrinking *s)
{
    struct elimination *e = elimination_new(s->p, s->tmp);
    if (elimination_run(e, SMALL_TABLE, MOST_EFFORT))
        return;
    int *value = NEWN(s->tmp, int, s->p->size.n + 1);
    s->core = elimination_rest(e, s->tmp);
    for (int v = 0; v < s->p->size.n; v++) {
        s->eliminated[v] = s->p->size.at[v] > 1 && s->core->size.at[v] == 1;
        value[v] = s->eliminated[v] ? 0 : s->known.value[v];
    }
    s->known.value = value;
}

/* Removes the values that the bound dropped. */
static void leave_out(struct shrinking *s, const struct bound *b)
{
    struct problem *moved = bound_problem(b, s->tmp);
    problem_copy_limits(s->core, moved); /* a value that takes less is not dominated */
    struct reduced r = reduce(moved, s->tmp, b, 1, true);
    require(r.possible); /* the known assignment remains */
    int *value = NEWN(s->tmp, int, r.p->size.n + 1);
    for (int k = 0; k < r.root.n; k++) {
        value[k] = r.into[k][s->known.value[r.root.at[k]]];
        require(value[k] >= 0);
    }
    for (int v = 0; v < s->p->size.n; v++) {
        int at = s->at[v], to = at >= 0 ? r.var[at] : -1, n = to >= 0 ? r.p->size.at[to] : 1, *left = NEWN(s->tmp, int, n);
        if (at < 0)
            continue;
        for (int x = 0; x < n; x++)
            left[x] = s->left[v][r.value[at][x]];
        s->left[v] = left;
        s->at[v] = to;
    }
    s->known.value = value;
    s->core = r.p;
}

/* Rounds continue while they remove many values; a problem that elimination solves is not worth a second one. */
static void shrink(struct shrinking *s)
{
    for (int round = 0, more = true; round < MOST_ROUNDS && more; round++) {
        struct bound *b = bound_new(s->core, s->tmp);
        if (!b || !sweep(b, &s->known))
            return;
        int64_t values = 0;
        for (int v = 0; v < s->core->size.n; v++)
            values += s->core->size.at[v];
        more = s->core != s->p && bound_dropped(b) > values / SHARE_DROPPED;
        leave_out(s, b);
    }
}

bool **slow_values(const struct problem *p, struct arena *a, const struct known *known)
{
    struct arena *tmp = arena_new();
    struct shrinking s = start(p, tmp, known);
    bool **slow = NEWN(a, bool *, p->size.n + 1);
    eliminate_small(&s);
    shrink(&s);
    for (int v = 0; v < p->size.n; v++) {
        int n = s.at[v] >= 0 ? s.core->size.at[s.at[v]] : 1;
        slow[v] = NEWN(a, bool, p->size.at[v]);
        memset(slow[v], !s.eliminated[v], (size_t)p->size.at[v]);
        for (int x = 0; !s.eliminated[v] && x < n; x++)
            slow[v][s.left[v][x]] = false;
    }
    arena_free(tmp);
    return slow;
}
