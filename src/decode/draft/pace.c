/* pace: how many tokens to draft. Recently kept tokens give the probability that a drafted token is right. The best number maximises tokens
 * per time of a run: the time of a step, plus a bit for each drafted token. If no number pays off, steps without drafts follow, twice as
 * many each time, so that texts that cannot be drafted cost next to nothing. All numbers are integers, so all ranks agree, and the same run
 * drafts the same. */
#include "decode/draft/draft.h"

enum {
    ONE = 1024,
    ROW = ONE / 8,   /* of a step: the cost of a further row in it */
    PRIOR = ONE / 4, /* weight of one kept and one missed token: all probabilities are possible */
    PROBE = 2,       /* tokens drafted after a pause if none pays off */
    PAUSE = 2,       /* steps without drafts */
    LONGEST = 128
};

struct draft_pace draft_pace_new(int64_t most, int64_t price)
{
    return (struct draft_pace){.most = most, .price = price, .kept = 2 * ONE, .missed = ONE / 2, .pause = PAUSE};
}

static int64_t best_number(const struct draft_pace *p)
{
    int64_t chance = ONE * (p->kept + PRIOR) / (p->kept + p->missed + 2 * PRIOR);
    int64_t all = ONE, tokens = ONE, best = 0, most = ONE; /* probability of k correct tokens; expected tokens; of the best k */
    for (int64_t k = 1; k <= p->most; k++) {
        all = all * chance / ONE;
        tokens += all;
        int64_t speed = tokens * ONE / (ONE + k * (ROW + p->price));
        if (speed > most) {
            most = speed;
            best = k;
        }
    }
    return best;
}

int64_t draft_pace_next(struct draft_pace *p)
{
    int64_t best = best_number(p);
    if (p->wait > 0) {
        p->wait--;
        return 0;
    }
    if (best > 0)
        return best;
    p->wait = p->pause;
    p->pause = 2 * p->pause < LONGEST ? 2 * p->pause : LONGEST;
    return p->most < PROBE ? p->most : PROBE;
}

void draft_pace_note(struct draft_pace *p, int64_t drafted, int64_t kept)
{
    if (drafted == 0)
        return;
    p->kept += kept * ONE - p->kept / 4;
    p->missed += (kept < drafted) * ONE - p->missed / 4;
    if (kept > 0 && best_number(p) > 0) {
        p->wait = 0;
        p->pause = PAUSE;
    }
}
