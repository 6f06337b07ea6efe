/* within: plans that keep --memory by limits over time (room.c), not by a byte price. The limits count at most what a plan holds, so the
 * solver's bound holds for all plans that fit. Each plan is measured as emitted. In a small graph, a plan that does not fit is barred and
 * the next best one is solved, until one fits. In others, the limit is lowered by what the count missed. */
#include "plan/plan.h"
#include "plan/solve/solve.h"

#include <math.h>

/* Attempts with a lower limit; in graphs with so few combinations of strategies, attempts with barred plans. */
enum { MOST_ROOMS = 4, MOST_BARRED = 256, FEW_COMBINATIONS = 1 << 12 };

struct attempt within_attempt(struct arena *a, const struct plan *p, int64_t total)
{
    int *values = NEWN(a, int, p->room.n + 1);
    for (int i = 0; i < p->room.n; i++)
        values[i] = p->values[i];
    return (struct attempt){.room = {.n = p->room.n, .sizes = p->room.sizes},
                            .objective = (double)p->objective,
                            .least = (double)p->least,
                            .combinations = p->combinations,
                            .total = total,
                            .counted = p->counted,
                            .within = p->room.bytes > 0,
                            .values = values};
}

/* The best plan that fits, and a lower bound of all plans that fit. */
struct within {
    const struct within_search *search;
    struct attempt best;
    double bound;
};

static bool fits(const struct within *w, const struct attempt *t)
{
    return t->total <= w->search->limit;
}

static struct attempt try_room(struct within *w, const struct plan_room *room)
{
    struct attempt t = w->search->plan(w->search->data, room);
    if (t.within && fits(w, &t) && t.objective < w->best.objective)
        w->best = t;
    return t;
}

static bool is_done(const struct within *w)
{
    return w->best.objective <= w->bound;
}

/* The best plan that is not barred is a bound for all that fit. */
static void bar_plans(struct within *w, struct plan_room room)
{
    for (int i = 0; i < MOST_BARRED && !is_done(w); i++) {
        struct attempt t = try_room(w, &room);
        if (!t.within)
            return;
        w->bound = fmax(w->bound, t.least);
        if (fits(w, &t))
            return;
        VEC_PUSH(w->search->arena, &room.barred, t.values);
    }
}

/* Only the full limit gives a bound. */
static void take_room(struct within *w, struct plan_room room)
{
    for (int i = 0; i < MOST_ROOMS && room.bytes > 0 && !is_done(w); i++) {
        struct attempt t = try_room(w, &room);
        if (!t.within)
            return;
        w->bound = i == 0 ? fmax(w->bound, t.least) : w->bound;
        if (fits(w, &t))
            return;
        room.bytes = w->search->limit - (t.total - t.counted);
    }
}

struct attempt within_limit(const struct within_search *search, const struct attempt *first, double *bound)
{
    struct within w = {search, *first, *bound};
    w.best.objective = fits(&w, first) ? first->objective : INFINITY;
    struct plan_room room = {.bytes = search->limit, .n = first->room.n, .sizes = first->room.sizes};
    room.known = fits(&w, first) ? first->values : NULL;
    if (first->combinations <= FEW_COMBINATIONS)
        bar_plans(&w, room);
    else
        take_room(&w, room);
    require(w.best.objective * (1 + 1e-9) >= w.bound); /* as found, before rounding */
    *bound = w.bound;
    return w.best;
}
