/* pace: drafts grow while all of them are kept, and shrink when none is. Where even the shortest are in vain, steps follow alone, each time
 * twice as many, so that texts which can't be drafted cost next to nothing. The number follows from the text alone, so all ranks agree, and
 * the same run drafts the same. */
#include "decode/draft/draft.h"

enum {
    LEAST = 3, /* tokens: a run of two rows takes longer than one of four where only products of one row have a kernel of their own */
    PAUSE = 2, /* steps without drafts */
    LONGEST = 128
};

static int64_t least_of(const struct draft_pace *p)
{
    return p->most < LEAST ? p->most : LEAST;
}

struct draft_pace draft_pace_new(int64_t most)
{
    struct draft_pace p = {.most = most, .pause = PAUSE};
    p.now = least_of(&p);
    return p;
}

int64_t draft_pace_next(struct draft_pace *p)
{
    if (p->wait == 0)
        return p->now;
    p->wait--;
    return 0;
}

void draft_pace_note(struct draft_pace *p, int64_t drafted, int64_t kept)
{
    int64_t least = least_of(p);
    if (drafted == 0)
        return;
    if (kept > 0)
        p->pause = PAUSE;
    if (kept == drafted && drafted >= p->now)
        p->now = 2 * p->now < p->most ? 2 * p->now : p->most;
    else if (kept == 0 && p->now > least)
        p->now = p->now / 2 > least ? p->now / 2 : least;
    else if (kept == 0) {
        p->wait = p->pause;
        p->pause = 2 * p->pause < LONGEST ? 2 * p->pause : LONGEST;
    }
}
