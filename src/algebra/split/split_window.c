/* split_window: the elements that sliding windows read if their results are split: each rank's own and its neighbours', the halo; and how
 * much of a dimension such an exchange moves. For a symbolic size these are expressions, and numbers once the size is known. */
#include "algebra/dim/cell.h"

/* Whether each rank has one interval, not empty, in ascending order. */
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

/* The elements that windows [lo, hi) read, without the padding. */
static struct interval window_reads(const struct sliding *w, struct interval at, int64_t size)
{
    int64_t lo = steps_to_elements(w, at.lo * w->stride - w->pad), hi = steps_to_elements(w, (at.hi - 1) * w->stride - w->pad + w->reach);
    return (struct interval){lo < 0 ? 0 : lo, hi > size ? size : hi};
}

/* Elements that no window reads belong to the rank before them: if per is 1, these are fewer than a stride, so they make no further
 * window. */
static void close_gaps(int ranks, struct interval *at, int64_t size)
{
    for (int r = 0; r < ranks; r++) {
        int64_t next = r + 1 < ranks ? at[r + 1].lo : size;
        if (at[r].hi < next)
            at[r].hi = next;
    }
}

static const struct split *listed_windows(struct alg *alg, const struct split *s, const struct sliding *w, int64_t size)
{
    struct arena *a = alg_arena(alg);
    struct interval *at = NEWN(a, struct interval, s->ranks);
    const struct interval **list = NEWN(a, const struct interval *, s->ranks);
    int *count = NEWN(a, int, s->ranks);
    for (int r = 0; r < s->ranks; r++)
        at[r] = window_reads(w, s->list[r][0], size);
    close_gaps(s->ranks, at, size);
    for (int r = 0; r < s->ranks; r++) {
        if (at[r].lo >= at[r].hi)
            return NULL; /* its windows are in the padding */
        list[r] = &at[r];
        count[r] = 1;
    }
    return split_list(alg, s->ranks, size, count, list);
}

const struct split *split_windows(struct alg *alg, const struct split *s, const struct sliding *w)
{
    struct sliding now = *w;
    int64_t size;
    now.size = dim_fresh(alg, w->size);
    if (dim_is_int(now.size, &size))
        return is_ascending(s) ? listed_windows(alg, s, w, size) : NULL;
    bool even = s->balanced && !s->reads && dim_equals(s->outer, 1) && dim_equals(s->inner, 1);
    return even && w->per == 1 ? split_reading(alg, s, &now) : NULL;
}

/* ---- of a symbolic size ------------------------------------------------------------------------------------------------------ */
/* Windows [first, last) cover the elements from `lo` to `hi`, which may be negative or beyond the end: hi - lo is a stride per window plus
 * reach minus stride. If reach is smaller, a window takes a whole stride, so that this also holds without windows. */

static int64_t over_stride(const struct sliding *w)
{
    return w->reach > w->stride ? w->reach - w->stride : 0;
}

/* The first window of a rank, if the first n mod ranks have q + 1 windows and the others q: r ranks of q + 1, or n minus ranks - r of q.
 * The minimum of both is one term, which cancels when windows are counted. */
static const struct dim *first_window(struct alg *alg, const struct split *s, int rank)
{
    const struct dim *n = dim_fresh(alg, s->n), *q = dim_div(alg, n, dim_int(alg, s->ranks)), *at = dim_int(alg, rank);
    if (s->shares)
        return share_start_dim(alg, s->shares, s->ranks, n, rank);
    const struct dim *fuller = dim_mul(alg, at, dim_add(alg, q, dim_int(alg, 1)));
    return dim_min(alg, fuller, dim_sub(alg, n, dim_mul(alg, dim_int(alg, s->ranks - rank), q)));
}

static const struct dim *window_count(struct alg *alg, const struct split *s, int rank)
{
    return share_extent_dim(alg, s->shares, s->ranks, dim_fresh(alg, s->n), rank);
}

static const struct dim *over_from(struct alg *alg, const struct split *s, int rank)
{
    const struct dim *steps = dim_mul(alg, first_window(alg, s, rank), dim_int(alg, s->reads->stride));
    return dim_sub(alg, steps, dim_int(alg, s->reads->pad));
}

static const struct dim *over_length(struct alg *alg, const struct split *s, int rank)
{
    const struct dim *steps = dim_mul(alg, window_count(alg, s, rank), dim_int(alg, s->reads->stride));
    return dim_add(alg, steps, dim_int(alg, over_stride(s->reads)));
}

static const struct dim *clipped(struct alg *alg, const struct split *s, const struct dim *at)
{
    return dim_min(alg, dim_max(alg, at, dim_int(alg, 0)), dim_fresh(alg, s->reads->size));
}

const struct dim *split_window_start(struct alg *alg, const struct split *s, int rank)
{
    return clipped(alg, s, over_from(alg, s, rank));
}

/* Elements after the last window belong to the last rank. */
const struct dim *split_window_extent(struct alg *alg, const struct split *s, int rank)
{
    const struct dim *end = dim_add(alg, over_from(alg, s, rank), over_length(alg, s, rank)), *size = dim_fresh(alg, s->reads->size);
    return dim_sub(alg, rank + 1 < s->ranks ? clipped(alg, s, end) : size, split_window_start(alg, s, rank));
}

void split_window_border(struct alg *alg, const struct split *s, int rank, const struct dim **before, const struct dim **behind)
{
    const struct dim *zero = dim_int(alg, 0), *length = over_length(alg, s, rank);
    require(s->reads);
    *before = dim_min(alg, dim_max(alg, dim_neg(alg, over_from(alg, s, rank)), zero), length);
    *behind = dim_sub(alg, dim_sub(alg, length, *before), split_window_extent(alg, s, rank));
}

static int64_t clip(int64_t at, int64_t size)
{
    return at < 0 ? 0 : at > size ? size : at;
}

struct interval split_window_piece(const struct split *s, int rank, int64_t windows, int64_t size)
{
    const struct sliding *w = s->reads;
    int64_t first = share_start(s->shares, s->ranks, windows, rank), count = share_start(s->shares, s->ranks, windows, rank + 1) - first;
    int64_t over, length, end;
    if (!i64_mul(first, w->stride, &over) || !i64_sub(over, w->pad, &over) || !i64_mul(count, w->stride, &length) ||
        !i64_add(length, over_stride(w), &length) || !i64_add(over, length, &end))
        return (struct interval){size, size};
    return (struct interval){clip(over, size), rank + 1 < s->ranks ? clip(end, size) : size};
}

/* ---- what is moved --------------------------------------------------------------------------------------------------------------- */

static bool listed_ranges(const struct split *s, struct interval *out)
{
    for (int r = 0; !s->balanced && r < s->ranks; r++)
        if (s->count[r] != 1)
            return false;
        else
            out[r] = s->list[r][0];
    return !s->balanced && dim_equals(s->outer, 1);
}

static bool ranges_now(struct arena *a, const struct split *s, const struct bindings *b, struct interval *out)
{
    for (int r = 0; r < s->ranks; r++) {
        struct interval *at;
        int n = split_pieces(a, s, r, false, b, &at);
        if (n < 0 || n > 1)
            return false;
        out[r] = n ? at[0] : (struct interval){0, 0};
    }
    return true;
}

/* Ranges before and after, and the size of the dimension; false: unknown, or none. */
static bool find_ranges(struct arena *a, const struct split *from, const struct split *to, const struct bindings *b, struct interval *held,
                        struct interval *want, int64_t *size)
{
    if (to->reads)
        return dim_eval(to->reads->size, b, size) && *size > 0 && ranges_now(a, from, b, held) && ranges_now(a, to, b, want);
    return listed_ranges(from, held) && listed_ranges(to, want) && from->n == to->n && dim_is_int(from->n, size) && *size != 0;
}

static int64_t overlap(struct interval a, struct interval b)
{
    int64_t lo = a.lo > b.lo ? a.lo : b.lo, hi = a.hi < b.hi ? a.hi : b.hi;
    return lo < hi ? hi - lo : 0;
}

double split_moved(struct arena *a, const struct split *from, const struct split *to, const struct bindings *b)
{
    int64_t most = 0, size;
    struct interval *held = NEWN(a, struct interval, from->ranks), *want = NEWN(a, struct interval, to->ranks);
    require(from->ranks == to->ranks);
    if (!find_ranges(a, from, to, b, held, want, &size))
        return -1;
    for (int r = 0; r < to->ranks; r++) {
        int64_t lacks = want[r].hi - want[r].lo - overlap(held[r], want[r]), gives = 0;
        for (int k = 0; k < to->ranks; k++)
            gives += k == r ? 0 : overlap(held[r], want[k]);
        most = lacks > most ? lacks : most;
        most = gives > most && from->partition ? gives : most;
    }
    return (double)most / (double)size;
}
