/* shares: how dimensions are split on unequal ranks: evenly, in proportion to the ranks' speeds, or to their memory. */
#include "plan/facts/facts.h"
#include "plan/input/input.h"
#include "plan/plan.h"
#include "plan/space/space.h"

#include <math.h>

enum { SHARES = 1000 }; /* resolution of the shares of a size that is known only at run time */

static const struct shares *by_speed(struct space *s)
{
    const struct machine *m = &s->options->machine;
    int64_t *share = NEWN(s->arena, int64_t, s->ranks);
    double sum = 0;
    if (!m->speeds)
        return NULL;
    require(m->speeds >= s->ranks);
    for (int r = 0; r < s->ranks; r++)
        sum += m->speed[r];
    for (int r = 0; r < s->ranks; r++)
        share[r] = (int64_t)fmax(1, round(m->speed[r] / sum * fmax(SHARES, 10.0 * s->ranks)));
    return alg_shares(s->g->alg, s->ranks, share);
}

void shares_find(struct space *s)
{
    if (s->options->equal_shares)
        return;
    s->shares = by_speed(s);
    s->room_shares = s->plan->memory_share && s->ranks == s->options->ranks ? alg_shares(s->g->alg, s->ranks, s->plan->memory_share) : NULL;
}

static const struct split *split_known(struct space *s, const struct shares *by, int64_t n)
{
    double *share = NEWN(s->tmp, double, s->ranks);
    int64_t *held = NEWN(s->tmp, int64_t, s->ranks), at = 0;
    struct interval *own = NEWN(s->tmp, struct interval, s->ranks);
    const struct interval **list = NEWN(s->tmp, const struct interval *, s->ranks);
    int *count = NEWN(s->tmp, int, s->ranks);
    require(by->ranks == s->ranks && n >= 0);
    for (int r = 0; r < s->ranks; r++)
        share[r] = (double)(by->from[r + 1] - by->from[r]);
    shares_deal(s->ranks, share, n, held);
    for (int r = 0; r < s->ranks; r++) {
        require(held[r] >= 0);
        own[r] = (struct interval){at, at + held[r]};
        list[r] = &own[r];
        count[r] = held[r] > 0;
        at += held[r];
    }
    require(at == n);
    return split_list(s->g->alg, s->ranks, n, count, list);
}

static const struct split *split_by(struct space *s, const struct shares *by, const struct dim *n)
{
    int64_t size;
    if (!by)
        return split_even(s->g->alg, s->ranks, n);
    return dim_is_int(n, &size) ? split_known(s, by, size) : split_shared(s->g->alg, s->ranks, by, n);
}

const struct split *shares_split(struct space *s, const struct dim *n)
{
    return split_by(s, s->shares, n);
}

int shares_splits(struct space *s, const struct dim *n, const struct split *out[SHARE_FORMS])
{
    const struct split *form[SHARE_FORMS] = {split_by(s, NULL, n), split_by(s, s->shares, n), split_by(s, s->room_shares, n)};
    int count = 0;
    for (int i = 0; i < SHARE_FORMS; i++) {
        bool new = true;
        for (int k = 0; k < count; k++)
            new = new &&out[k] != form[i];
        if (new)
            out[count++] = form[i];
    }
    return count;
}

bool shares_are_unequal(const struct space *s)
{
    return machine_speeds_differ(&s->options->machine, s->ranks) || limits_differ(s->options, s->ranks);
}
