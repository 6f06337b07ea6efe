/* split_window: what a sliding window reads of a dimension whose result is split: each rank's elements and its neighbours', the halo; and
 * how much of a dimension such an exchange moves. */
#include "algebra/algebra.h"

/* One interval for each rank, none empty, ascending. */
static bool is_ascending(const struct split *s)
{
    if (s->balanced || !dim_equals(s->outer, 1) || !dim_equals(s->inner, 1))
        return false;
    for (int r = 0; r < s->ranks; r++)
        if (s->count[r] != 1 || s->list[r][0].lo >= s->list[r][0].hi || (r > 0 && s->list[r][0].lo <= s->list[r - 1][0].lo))
            return false;
    return true;
}

/* Rounded up. */
static int64_t steps_to_elements(const struct sliding *w, int64_t steps)
{
    return steps > 0 ? (steps - 1) / w->per + 1 : -(-steps / w->per);
}

/* What windows [lo, hi) read, without the padding. */
static struct interval window_reads(const struct sliding *w, struct interval at)
{
    int64_t lo = steps_to_elements(w, at.lo * w->stride - w->pad), hi = steps_to_elements(w, (at.hi - 1) * w->stride - w->pad + w->reach);
    return (struct interval){lo < 0 ? 0 : lo, hi > w->size ? w->size : hi};
}

/* Elements that no window reads belong to the rank before them: where per is 1, fewer than a stride, so they make no window more. */
static void close_gaps(int ranks, struct interval *at, int64_t size)
{
    for (int r = 0; r < ranks; r++) {
        int64_t next = r + 1 < ranks ? at[r + 1].lo : size;
        if (at[r].hi < next)
            at[r].hi = next;
    }
}

const struct split *split_windows(struct alg *alg, const struct split *s, const struct sliding *w)
{
    struct arena *a = alg_arena(alg);
    struct interval *at = NEWN(a, struct interval, s->ranks);
    const struct interval **list = NEWN(a, const struct interval *, s->ranks);
    int *count = NEWN(a, int, s->ranks);
    if (!is_ascending(s))
        return NULL;
    for (int r = 0; r < s->ranks; r++)
        at[r] = window_reads(w, s->list[r][0]);
    close_gaps(s->ranks, at, w->size);
    for (int r = 0; r < s->ranks; r++) {
        if (at[r].lo >= at[r].hi)
            return NULL; /* its windows lie in the padding */
        list[r] = &at[r];
        count[r] = 1;
    }
    return split_list(alg, s->ranks, w->size, count, list);
}

static bool is_range(const struct split *s)
{
    for (int r = 0; !s->balanced && r < s->ranks; r++)
        if (s->count[r] != 1)
            return false;
    return !s->balanced && dim_equals(s->outer, 1);
}

static int64_t overlap(struct interval a, struct interval b)
{
    int64_t lo = a.lo > b.lo ? a.lo : b.lo, hi = a.hi < b.hi ? a.hi : b.hi;
    return lo < hi ? hi - lo : 0;
}

double split_moved(const struct split *from, const struct split *to)
{
    int64_t most = 0;
    require(from->ranks == to->ranks);
    if (!is_range(from) || !is_range(to) || from->n != to->n || from->n->k == 0)
        return -1;
    for (int r = 0; r < to->ranks; r++) {
        int64_t lacks = to->list[r][0].hi - to->list[r][0].lo - overlap(from->list[r][0], to->list[r][0]), gives = 0;
        for (int k = 0; k < to->ranks; k++)
            gives += k == r ? 0 : overlap(from->list[r][0], to->list[k][0]);
        most = lacks > most ? lacks : most;
        most = gives > most && from->partition ? gives : most;
    }
    return (double)most / (double)from->n->k;
}
