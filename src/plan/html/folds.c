/* folds: what repeats within a layer or outside of layers, such as experts that are nodes each: the first repetition is shown for all. */
#include "plan/html/html.h"

enum { LEAST_TIMES = 4, LEAST_PARTS = 32, MOST_PERIOD = 256, MOST_FOLDS = 64 }; /* LEAST_PARTS: of all times */

struct finder {
    struct arena *arena;
    const struct step_part *at;
    struct html_folds found;
};

/* How many parts from i on, below end, are each like the one `period` before. */
static int run_length(const struct finder *f, int i, int end, int period)
{
    int n = 0;
    while (i + n < end && f->at[i + n].digest == f->at[i + n - period].digest)
        n++;
    return n;
}

/* The one that covers most parts; it ends where the last of them does, since a repetition is more like the one before than what follows. */
static struct html_fold find_fold(const struct finder *f, int first, int end)
{
    struct html_fold best = {first, 0, 0};
    for (int period = 1; period <= MOST_PERIOD && LEAST_TIMES * period <= end - first; period++)
        for (int i = first + period; i < end; i++) {
            int n = run_length(f, i, end, period), times = 1 + n / period;
            if (times >= LEAST_TIMES && times * period >= LEAST_PARTS && times * period > best.times * best.period)
                best = (struct html_fold){i + n - times * period, period, times};
            i += n;
        }
    return best;
}

static void find_folds(struct finder *f, int first, int end, int most)
{
    struct html_fold one = most > 0 ? find_fold(f, first, end) : (struct html_fold){.times = 0};
    if (!one.times)
        return;
    find_folds(f, first, one.first, most / 2);
    VEC_PUSH(f->arena, &f->found.list, one);
    find_folds(f, one.first + one.period * one.times, end, most / 2);
}

struct html_folds html_folds_find(struct arena *a, const struct plan *p, int first, int end)
{
    struct finder f = {.arena = a, .at = p->step.list.at};
    find_folds(&f, first, end, MOST_FOLDS);
    return f.found;
}

const struct html_fold *html_fold_of(const struct html_group *g, int i)
{
    EACH (const struct html_fold, x, g->folds.list)
        if (i >= x->first && i < x->first + x->period)
            return x;
    return NULL;
}

int html_next_part(const struct html_group *g, int i)
{
    const struct html_fold *x = html_fold_of(g, i);
    return x && i == x->first + x->period - 1 ? x->first + x->period * x->times : i + 1;
}

double html_folded_seconds(const struct html_page *p, const struct html_fold *x, int i, int workload)
{
    double sum = 0;
    for (int k = 0; k < (x ? x->times : 1); k++)
        sum += p->plan->step.list.at[i + k * (x ? x->period : 0)].seconds[workload];
    return sum;
}
