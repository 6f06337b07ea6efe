/* points: reduces the points of the same limits. Unconditional uses are subtracted. A limit that cannot be exceeded is dropped. Points
 * between which no lifetime begins or ends are merged, and a point whose uses are a subset of its neighbour's needs no limit. */
#include "plan/solve/solve.h"

#include <stdlib.h>
#include <string.h>

struct thinning {
    struct problem *p;
    struct arena *tmp;
    bool *begins, *ends, *keep, *to_before; /* by point: a take begins; ends before it; kept; merged into the previous one */
    int64_t *most;
};

static int64_t least_amount(const struct problem *p, const struct take *t)
{
    int64_t least = t->amount[0];
    for (int x = 1; x < p->size.at[t->var]; x++)
        least = t->amount[x] < least ? t->amount[x] : least;
    return least;
}

static int64_t most_amount(const struct problem *p, const struct take *t)
{
    int64_t most = t->amount[0];
    for (int x = 1; x < p->size.at[t->var]; x++)
        most = t->amount[x] > most ? t->amount[x] : most;
    return most;
}

/* Subtracts unconditional uses from the limits. */
static void take_least(struct thinning *h)
{
    int64_t *change = NEWN(h->tmp, int64_t, h->p->points + 1), now = 0;
    int kept = 0;
    for (int i = 0; i < h->p->takes.n; i++) {
        struct take *t = &h->p->takes.at[i];
        int64_t least = least_amount(h->p, t);
        change[t->from] += least;
        change[t->to] -= least;
        for (int x = 0; x < h->p->size.at[t->var]; x++)
            t->amount[x] -= least;
        if (most_amount(h->p, t) > 0)
            h->p->takes.at[kept++] = *t;
    }
    h->p->takes.n = kept;
    for (int i = 0; i < h->p->points; i++)
        h->p->limit[i] -= now += change[i];
}

static void find_changes(struct thinning *h)
{
    for (int i = 0; i < h->p->takes.n; i++) {
        const struct take *t = &h->p->takes.at[i];
        h->begins[t->from] = h->ends[t->to] = true;
        h->most[t->from] += most_amount(h->p, t);
        h->most[t->to] -= most_amount(h->p, t);
    }
    for (int i = 1; i <= h->p->points; i++)
        h->most[i] += h->most[i - 1];
}

/* Chooses the points to keep. A dropped point passes its begins and ends to the next. */
static void choose_points(struct thinning *h)
{
    const int64_t *limit = h->p->limit;
    int before = -1; /* the last point kept so far */
    for (int i = 0; i < h->p->points; i++) {
        h->keep[i] = h->most[i] > limit[i];
        if (!h->keep[i]) {
            h->begins[i + 1] |= h->begins[i];
            h->ends[i + 1] |= h->ends[i];
            continue;
        }
        if (before >= 0 && !h->ends[i] && limit[i] <= limit[before]) { /* everything that was taken before is taken here */
            h->keep[before] = false;
            h->begins[i] |= h->begins[before];
            h->ends[i] |= h->ends[before];
        } else if (before >= 0 && !h->begins[i] && limit[before] <= limit[i]) {
            h->keep[i] = false;
            h->to_before[i] = true;
            h->begins[i + 1] |= h->begins[i];
            h->ends[i + 1] |= h->ends[i];
            continue;
        }
        before = i;
    }
}

static int compare_takes(const void *x, const void *y)
{
    const struct take *a = x, *b = y;
    return a->var != b->var ? a->var - b->var : a->from != b->from ? a->from - b->from : a->to - b->to;
}

/* Merges takes of one variable over the same points. */
static void join_takes(struct problem *p)
{
    int n = 0;
    qsort(p->takes.at, (size_t)p->takes.n, sizeof *p->takes.at, compare_takes);
    for (int i = 0; i < p->takes.n; i++) {
        const struct take *t = &p->takes.at[i];
        struct take *last = n ? &p->takes.at[n - 1] : NULL;
        if (last && last->var == t->var && last->from == t->from && last->to == t->to)
            for (int x = 0; x < p->size.at[t->var]; x++)
                last->amount[x] += t->amount[x];
        else
            p->takes.at[n++] = *t;
    }
    p->takes.n = n;
}

static int *renumber(struct thinning *h, struct arena *a)
{
    struct problem *p = h->p;
    int points = p->points, *at = NEWN(a, int, points + 1), n = 0, kept = 0;
    for (int i = 0; i < p->points; i++) {
        at[i] = n;
        if (h->keep[i])
            p->limit[n++] = p->limit[i];
    }
    at[p->points] = n;
    p->points = n;
    for (int i = 0; i < p->takes.n; i++) {
        struct take t = p->takes.at[i];
        t.from = at[t.from];
        t.to = at[t.to];
        require(t.from <= t.to);
        if (t.from < t.to)
            p->takes.at[kept++] = t;
    }
    p->takes.n = kept;
    for (int i = 0; i < points; i++) {
        at[i] -= h->to_before[i];
        at[i] = h->most[i] > 0 && at[i] < n ? at[i] : -1;
    }
    return at;
}

int *points_reduce(struct problem *p, struct arena *a)
{
    struct thinning h = {.p = p, .tmp = arena_new()};
    h.begins = NEWN(h.tmp, bool, p->points + 2);
    h.ends = NEWN(h.tmp, bool, p->points + 2);
    h.keep = NEWN(h.tmp, bool, p->points + 2);
    h.to_before = NEWN(h.tmp, bool, p->points + 2);
    h.most = NEWN(h.tmp, int64_t, p->points + 2);
    take_least(&h);
    find_changes(&h);
    choose_points(&h);
    int *at = renumber(&h, a);
    if (p->takes.n)
        join_takes(p);
    arena_free(h.tmp);
    return at;
}
