/* intervals: lists of a rank's index intervals. A list is in local order, which need not be ascending. */
#include "run/collective/collective.h"

int64_t intervals_extent(const struct intervals *p)
{
    int64_t n = 0;
    for (int i = 0; i < p->n; i++)
        n += p->at[i].hi - p->at[i].lo;
    return n;
}

struct intervals intervals_of(struct arena *a, const struct split *split, int rank, bool owned, const struct bindings *bind)
{
    struct intervals p;
    p.n = split_pieces(a, split, rank, owned, bind, &p.at);
    if (p.n < 0)
        fail("split '%s' has a symbol without a value", split_str(a, split));
    return p;
}

struct intervals intervals_range(struct arena *a, int64_t lo, int64_t hi)
{
    struct intervals p = {hi > lo, NEW(a, struct interval)};
    *p.at = (struct interval){lo, hi};
    return p;
}

typedef VEC(struct interval) interval_vec;

static void push_interval(struct arena *a, interval_vec *v, int64_t lo, int64_t hi)
{
    if (lo >= hi)
        return;
    if (v->n && v->at[v->n - 1].hi == lo)
        v->at[v->n - 1].hi = hi;
    else
        VEC_PUSH(a, v, ((struct interval){lo, hi}));
}

/* The interval of b that contains position lo, or else the nearest one that starts after it; NULL: none. */
static const struct interval *next_interval(const struct intervals *b, int64_t lo)
{
    const struct interval *best = NULL;
    EACH (const struct interval, x, *b) {
        if (x->hi <= lo)
            continue;
        if (!best || x->lo < best->lo)
            best = x;
    }
    return best;
}

static struct intervals divide_intervals(struct arena *a, const struct intervals *p, const struct intervals *b, bool meet)
{
    interval_vec v = {0};
    for (int i = 0; i < p->n; i++) {
        int64_t at = p->at[i].lo, hi = p->at[i].hi;
        while (at < hi) {
            const struct interval *x = next_interval(b, at);
            int64_t lo = x && x->lo < hi ? (x->lo > at ? x->lo : at) : hi, end = x && x->hi < hi ? x->hi : hi;
            if (!meet)
                push_interval(a, &v, at, lo);
            if (meet && lo < hi)
                push_interval(a, &v, lo, end);
            at = lo < hi ? end : hi;
        }
    }
    return (struct intervals){v.n, v.at};
}

struct intervals intervals_meet(struct arena *a, const struct intervals *p, const struct intervals *b)
{
    return divide_intervals(a, p, b, true);
}
struct intervals intervals_without(struct arena *a, const struct intervals *p, const struct intervals *b)
{
    return divide_intervals(a, p, b, false);
}

struct intervals intervals_local(struct arena *a, const struct intervals *p, const struct intervals *held)
{
    interval_vec v = {0};
    for (int i = 0; i < p->n; i++) {
        int64_t at = p->at[i].lo;
        while (at < p->at[i].hi) {
            int64_t start = 0;
            int k = 0;
            for (; k < held->n && !(held->at[k].lo <= at && at < held->at[k].hi); k++)
                start += held->at[k].hi - held->at[k].lo;
            require(k < held->n);
            int64_t end = held->at[k].hi < p->at[i].hi ? held->at[k].hi : p->at[i].hi;
            push_interval(a, &v, start + at - held->at[k].lo, start + end - held->at[k].lo);
            at = end;
        }
    }
    return (struct intervals){v.n, v.at};
}

int64_t intervals_total(struct arena *a, const struct split *s, const struct bindings *b)
{
    int64_t n = 0;
    for (int r = 0; r < s->ranks; r++) {
        struct intervals p = intervals_of(a, s, r, true, b);
        n += intervals_extent(&p);
    }
    require(n >= 0);
    return n;
}
