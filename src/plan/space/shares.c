/* shares: how dimensions are split on ranks of unequal speed: evenly, and in proportion to what the ranks can do. */
#include "plan/plan.h"
#include "plan/space/space.h"

#include <math.h>

enum { SHARES = 1000 }; /* so fine are shares of a size that is known only at run time */

void shares_find(struct space *s)
{
    const struct machine *m = &s->options->machine;
    int64_t *share = NEWN(s->arena, int64_t, s->ranks);
    double sum = 0;
    if (!m->speeds || s->options->equal_shares)
        return;
    for (int r = 0; r < s->ranks; r++)
        sum += m->speed[r];
    for (int r = 0; r < s->ranks; r++)
        share[r] = (int64_t)fmax(1, round(m->speed[r] / sum * fmax(SHARES, 10.0 * s->ranks)));
    s->shares = alg_shares(s->g->alg, s->ranks, share);
}

static int64_t share_of(const struct shares *s, int rank)
{
    return s->from[rank + 1] - s->from[rank];
}

/* The rank that would be the first to be done with one index more. */
static int next_to_serve(const struct shares *s, const int64_t *held)
{
    double first = INFINITY;
    int best = 0;
    for (int r = 0; r < s->ranks; r++) {
        double done = share_of(s, r) > 0 ? (double)(held[r] + 1) / (double)share_of(s, r) : INFINITY;
        if (done < first) {
            first = done;
            best = r;
        }
    }
    return best;
}

/* n indices so that the slowest rank is done as early as can be: at least the whole part of each share, and what is left one by one, as by
 * Jefferson's method. */
static const struct split *split_known(struct space *s, int64_t n)
{
    int64_t *held = NEWN(s->tmp, int64_t, s->ranks), left = n, at = 0;
    struct interval *own = NEWN(s->tmp, struct interval, s->ranks);
    const struct interval **list = NEWN(s->tmp, const struct interval *, s->ranks);
    int *count = NEWN(s->tmp, int, s->ranks);
    for (int r = 0; r < s->ranks; r++)
        left -= held[r] = (int64_t)((double)n * (double)share_of(s->shares, r) / (double)s->shares->sum);
    for (; left > 0; left--)
        held[next_to_serve(s->shares, held)]++;
    for (int r = 0; r < s->ranks; r++) {
        own[r] = (struct interval){at, at + held[r]};
        list[r] = &own[r];
        count[r] = held[r] > 0;
        at += held[r];
    }
    require(at == n);
    return split_list(s->g->alg, s->ranks, n, count, list);
}

const struct split *shares_split(struct space *s, const struct dim *n)
{
    int64_t size;
    if (!s->shares)
        return split_even(s->g->alg, s->ranks, n);
    return dim_is_int(n, &size) ? split_known(s, size) : split_shared(s->g->alg, s->ranks, s->shares, n);
}

int shares_splits(struct space *s, const struct dim *n, const struct split *out[SHARE_FORMS])
{
    out[0] = split_even(s->g->alg, s->ranks, n);
    out[1] = shares_split(s, n);
    return out[0] == out[1] ? 1 : 2;
}
