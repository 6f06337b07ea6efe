/* split: how a dimension is sharded over ranks, in one canonical and interned form, and the exact operations on that form.
 *
 * The invariants of a listed split: intervals are not empty, adjacent ones of a rank are joined; outer and inner have no integer factor
 * except 1, since it was multiplied into the pattern; a split that gives every rank everything is one interval (of the integer size, or of
 * 1 with the symbolic size as inner). A balanced split has a symbolic n and at least two ranks. Nothing is approximated: an operation
 * without a result of this form returns NULL. */
#include "algebra/dim/cell.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_INTERVALS = 1 << 20 };

struct split_cell {
    struct split s;
    UT_hash_handle hh;
    int64_t key[];
};

/* A pattern under construction. Most turn out to be known, and their memory is reused for the next split. */
struct rank_intervals {
    VEC(struct interval) list;
};
struct pattern {
    struct arena *arena;
    int ranks;
    int64_t n;
    struct rank_intervals *rank;
};
struct pattern_room {
    int ranks;
    struct rank_intervals *rank;
};

/* ---- patterns ---- */

/* No pattern is in use any more. */
static void patterns_done(struct alg *alg)
{
    alg->rooms_used = 0;
}

static struct pattern_room *room_take(struct alg *alg)
{
    if (alg->rooms_used == alg->rooms.n)
        VEC_PUSH(alg->arena, &alg->rooms, NEW(alg->arena, struct pattern_room));
    return alg->rooms.at[alg->rooms_used++];
}

static struct pattern pattern_new(struct alg *alg, int ranks, int64_t n)
{
    require(ranks >= 1 && ranks <= PLAN_RANKS && n >= 0);
    struct pattern_room *room = room_take(alg);
    if (room->ranks < ranks)
        *room = (struct pattern_room){ranks, NEWN(alg->arena, struct rank_intervals, ranks)};
    for (int r = 0; r < ranks; r++)
        room->rank[r].list.n = 0;
    return (struct pattern){alg->arena, ranks, n, room->rank};
}

/* Appends an interval of the rank, joined to the last one if adjacent. */
static void pattern_put(struct pattern *p, int rank, int64_t lo, int64_t hi)
{
    struct rank_intervals *h = &p->rank[rank];
    require(0 <= lo && lo <= hi && hi <= p->n);
    if (lo == hi)
        return;
    if (h->list.n > 0 && h->list.at[h->list.n - 1].hi == lo)
        h->list.at[h->list.n - 1].hi = hi;
    else
        VEC_PUSH(p->arena, &h->list, ((struct interval){lo, hi}));
}

static struct pattern pattern_of(struct alg *alg, const struct split *s)
{
    struct pattern p = pattern_new(alg, s->ranks, s->n->k);
    for (int r = 0; r < s->ranks; r++)
        for (int i = 0; i < s->count[r]; i++)
            pattern_put(&p, r, s->list[r][i].lo, s->list[r][i].hi);
    return p;
}

static int64_t pattern_intervals(const struct pattern *p)
{
    int64_t n = 0;
    for (int r = 0; r < p->ranks; r++)
        n += p->rank[r].list.n;
    return n;
}

static bool holds_all(const struct pattern *p, int rank)
{
    const struct rank_intervals *h = &p->rank[rank];
    return p->n == 0 || (h->list.n == 1 && h->list.at[0].hi - h->list.at[0].lo == p->n);
}

static bool all_or_nothing(const struct pattern *p)
{
    for (int r = 0; r < p->ranks; r++)
        if (p->rank[r].list.n > 0 && !holds_all(p, r))
            return false;
    return true;
}

/* `times` repetitions with every index standing for `scale`; false if a bound overflows or the list gets too long. */
static bool pattern_scale(struct alg *alg, struct pattern *p, int64_t times, int64_t scale)
{
    int64_t period, n, intervals;
    if (!i64_mul(p->n, scale, &period) || !i64_mul(period, times, &n))
        return false;
    struct pattern out = pattern_new(alg, p->ranks, n);
    if (all_or_nothing(p)) {
        for (int r = 0; r < p->ranks; r++)
            pattern_put(&out, r, 0, p->rank[r].list.n ? n : 0);
        *p = out;
        return true;
    }
    if (n > 0 && (!i64_mul(pattern_intervals(p), times, &intervals) || intervals > MAX_INTERVALS))
        return false;
    for (int r = 0; n > 0 && r < p->ranks; r++)
        for (int64_t at = 0; at < n; at += period)
            for (int i = 0; i < p->rank[r].list.n; i++)
                pattern_put(&out, r, at + p->rank[r].list.at[i].lo * scale, at + p->rank[r].list.at[i].hi * scale);
    *p = out;
    return true;
}

static bool pattern_eq(const struct pattern *a, const struct pattern *b)
{
    if (a->ranks != b->ranks || a->n != b->n)
        return false;
    for (int r = 0; r < a->ranks; r++) {
        size_t bytes = (size_t)a->rank[r].list.n * sizeof(struct interval);
        if (a->rank[r].list.n != b->rank[r].list.n || (bytes && memcmp(a->rank[r].list.at, b->rank[r].list.at, bytes) != 0))
            return false;
    }
    return true;
}

static bool pattern_replicated(const struct pattern *p)
{
    for (int r = 0; r < p->ranks; r++)
        if (!holds_all(p, r))
            return false;
    return true;
}

/* ---- interning ---- */

static void key_put(struct alg *alg, int64_t word)
{
    VEC_PUSH(alg->arena, &alg->split_key, word);
}

static struct split_cell *split_find(struct alg *alg)
{
    struct split_cell *found;
    HASH_FIND(hh, alg->splits, alg->split_key.at, (size_t)alg->split_key.n * sizeof *alg->split_key.at, found);
    return found;
}

static struct split_cell *split_new(struct alg *alg, const struct split *s)
{
    size_t bytes = (size_t)alg->split_key.n * sizeof *alg->split_key.at;
    struct split_cell *c = arena_alloc(alg->arena, sizeof *c + bytes);
    memcpy(c->key, alg->split_key.at, bytes);
    c->s = *s;
    c->s.id = alg->split_count++;
    HASH_ADD_KEYPTR(hh, alg->splits, c->key, bytes, c);
    return c;
}

static void key_start(struct alg *alg, const struct split *s)
{
    alg->split_key.n = 0;
    key_put(alg, s->ranks);
    key_put(alg, s->balanced);
    for (int r = 0; s->shares && r < s->ranks; r++)
        key_put(alg, s->shares->from[r + 1]);
    key_put(alg, s->outer->id);
    key_put(alg, s->n->id);
    key_put(alg, s->inner->id);
    if (!s->reads)
        return;
    const int64_t word[] = {s->reads->stride, s->reads->reach, s->reads->pad, s->reads->per, s->reads->size->id};
    for (size_t i = 0; i < sizeof word / sizeof *word; i++)
        key_put(alg, word[i]);
}

static int by_lo(const void *a, const void *b)
{
    int64_t x = ((const struct interval *)a)->lo, y = ((const struct interval *)b)->lo;
    return x < y ? -1 : x > y;
}

/* Given the sorted intervals of all ranks: whether every index is in one, or in exactly one. */
static void find_coverage(struct alg *alg, const struct pattern *p, struct split *s)
{
    int64_t n = pattern_intervals(p), end = 0;
    struct interval *all = NEWN(alg->arena, struct interval, n);
    int64_t k = 0;
    for (int r = 0; r < p->ranks; r++)
        for (int i = 0; i < p->rank[r].list.n; i++)
            all[k++] = p->rank[r].list.at[i];
    qsort(all, (size_t)n, sizeof *all, by_lo);
    s->cover = s->partition = true;
    for (k = 0; k < n; k++) {
        s->cover = s->cover && all[k].lo <= end;
        s->partition = s->partition && all[k].lo == end;
        end = all[k].hi > end ? all[k].hi : end;
    }
    s->cover = s->cover && end == p->n;
    s->partition = s->partition && s->cover;
}

static const struct interval *intervals_copy(struct alg *alg, const struct rank_intervals *h)
{
    struct interval *copy = NEWN(alg->arena, struct interval, h->list.n);
    if (h->list.n)
        memcpy(copy, h->list.at, (size_t)h->list.n * sizeof *copy);
    return copy;
}

static const struct split *listed_new(struct alg *alg, const struct pattern *p, struct split *s)
{
    int *count = NEWN(alg->arena, int, p->ranks);
    const struct interval **list = NEWN(alg->arena, const struct interval *, p->ranks);
    for (int r = 0; r < p->ranks; r++) {
        count[r] = p->rank[r].list.n;
        list[r] = intervals_copy(alg, &p->rank[r]);
    }
    s->count = count;
    s->list = list;
    find_coverage(alg, p, s);
    split_find_parts(alg->arena, s);
    return &split_new(alg, s)->s;
}

static const struct split *listed_split(struct alg *alg, const struct dim *outer, const struct pattern *p, const struct dim *inner)
{
    struct split s = {.ranks = p->ranks, .outer = outer, .n = dim_int(alg, p->n), .inner = inner, .replicated = pattern_replicated(p)};
    key_start(alg, &s);
    for (int r = 0; r < p->ranks; r++) {
        key_put(alg, p->rank[r].list.n);
        for (int i = 0; i < p->rank[r].list.n; i++) {
            key_put(alg, p->rank[r].list.at[i].lo);
            key_put(alg, p->rank[r].list.at[i].hi);
        }
    }
    struct split_cell *c = split_find(alg);
    patterns_done(alg);
    return c ? &c->s : listed_new(alg, p, &s);
}

/* k * rest = d with k the largest integer factor. */
static const struct dim *take_integer(struct alg *alg, const struct dim *d, int64_t *k)
{
    POLY(p, alg);
    d = dim_fresh(alg, d);
    *k = 1;
    if (dim_equals(d, 1))
        return d;
    poly_add_dim(&p, 1, d);
    *k = poly_content(&p, true);
    return *k == 0 ? dim_int(alg, 1) : dim_quotient(alg, d, dim_int(alg, *k));
}

/* The canonical form of outer repetitions of the pattern with every index standing for inner elements. */
static const struct split *canonical_split(struct alg *alg, const struct dim *outer, struct pattern *p, const struct dim *inner)
{
    int64_t times, scale;
    const struct dim *reps = take_integer(alg, outer, &times), *unit = take_integer(alg, inner, &scale);
    if (pattern_replicated(p))
        return split_replicated(alg, p->ranks, dim_mul(alg, dim_mul(alg, outer, dim_int(alg, p->n)), inner));
    if (!pattern_scale(alg, p, times, scale))
        return NULL;
    return p->n == 0 ? listed_split(alg, dim_int(alg, 1), p, dim_int(alg, 1)) : listed_split(alg, reps, p, unit);
}

static const struct split *balanced(struct alg *alg, int ranks, const struct shares *shares, const struct dim *outer, const struct dim *n,
                                    const struct dim *inner)
{
    struct split s = {.ranks = ranks,
                      .balanced = true,
                      .shares = shares,
                      .outer = dim_fresh(alg, outer),
                      .n = n,
                      .inner = dim_fresh(alg, inner),
                      .partition = true,
                      .cover = true};
    if (dim_equals(s.outer, 0) || dim_equals(s.inner, 0))
        return split_replicated(alg, ranks, dim_int(alg, 0));
    key_start(alg, &s);
    struct split_cell *c = split_find(alg);
    return c ? &c->s : &split_new(alg, &s)->s;
}

const struct split *split_reading(struct alg *alg, const struct split *windows, const struct sliding *reads)
{
    struct sliding *own = NEW(alg->arena, struct sliding);
    *own = *reads;
    struct split s = *windows;
    s.outer = s.inner = dim_int(alg, 1);
    s.reads = own;
    s.partition = false;
    key_start(alg, &s);
    struct split_cell *c = split_find(alg);
    return &(c ? c : split_new(alg, &s))->s;
}

/* ---- making splits ---- */

const struct split *split_replicated(struct alg *alg, int ranks, const struct dim *n)
{
    n = dim_fresh(alg, n);
    bool known = n->kind == DIM_INT;
    struct pattern p = pattern_new(alg, ranks, known ? n->k : 1);
    for (int r = 0; r < ranks; r++)
        pattern_put(&p, r, 0, p.n);
    return listed_split(alg, dim_int(alg, 1), &p, known ? dim_int(alg, 1) : n);
}

const struct split *split_shared(struct alg *alg, int ranks, const struct shares *shares, const struct dim *n)
{
    n = dim_fresh(alg, n);
    require(!shares || shares->ranks == ranks);
    if (n->kind != DIM_INT)
        return ranks == 1 ? split_replicated(alg, 1, n) : balanced(alg, ranks, shares, dim_int(alg, 1), n, dim_int(alg, 1));
    struct pattern p = pattern_new(alg, ranks, n->k);
    for (int r = 0; r < ranks; r++)
        pattern_put(&p, r, share_start(shares, ranks, n->k, r), share_start(shares, ranks, n->k, r + 1));
    return listed_split(alg, dim_int(alg, 1), &p, dim_int(alg, 1));
}

const struct split *split_even(struct alg *alg, int ranks, const struct dim *n)
{
    return split_shared(alg, ranks, NULL, n);
}

const struct split *split_list(struct alg *alg, int ranks, int64_t n, const int *count, const struct interval *const *list)
{
    struct pattern p = pattern_new(alg, ranks, n);
    for (int r = 0; r < ranks; r++)
        for (int i = 0; i < count[r]; i++)
            pattern_put(&p, r, list[r][i].lo, list[r][i].hi);
    return listed_split(alg, dim_int(alg, 1), &p, dim_int(alg, 1));
}

const struct dim *split_size(struct alg *alg, const struct split *s)
{
    if (s->reads)
        return dim_fresh(alg, s->reads->size);
    return dim_mul(alg, dim_mul(alg, s->outer, s->n), s->inner);
}

/* ---- scaling ---- */

const struct split *split_scale(struct alg *alg, const struct split *s, const struct dim *outer, const struct dim *inner)
{
    const struct dim *reps = dim_mul(alg, outer, s->outer), *unit = dim_mul(alg, s->inner, inner);
    const struct dim *n = dim_fresh(alg, s->n);
    if (s->outer == reps && s->n == n && s->inner == unit)
        return s;
    if (s->reads)
        return dim_equals(reps, 1) && dim_equals(unit, 1) ? s : NULL;
    if (s->balanced && n->kind != DIM_INT)
        return balanced(alg, s->ranks, s->shares, reps, n, unit);
    patterns_done(alg);
    struct pattern p = pattern_of(alg, s->balanced ? split_shared(alg, s->ranks, s->shares, n) : s);
    return canonical_split(alg, reps, &p, unit);
}

/* Divides every bound by g; false if one is not divisible. */
static bool pattern_shrink(struct alg *alg, struct pattern *p, int64_t g)
{
    if (p->n % g != 0)
        return false;
    struct pattern out = pattern_new(alg, p->ranks, p->n / g);
    for (int r = 0; r < p->ranks; r++)
        for (int i = 0; i < p->rank[r].list.n; i++) {
            struct interval v = p->rank[r].list.at[i];
            if (v.lo % g != 0 || v.hi % g != 0)
                return false;
            pattern_put(&out, r, v.lo / g, v.hi / g);
        }
    *p = out;
    return true;
}

static struct pattern pattern_clip(struct alg *alg, const struct pattern *p, int64_t lo, int64_t hi)
{
    struct pattern out = pattern_new(alg, p->ranks, hi - lo);
    for (int r = 0; r < p->ranks; r++)
        for (int i = 0; i < p->rank[r].list.n; i++) {
            struct interval v = p->rank[r].list.at[i];
            int64_t from = v.lo > lo ? v.lo : lo, to = v.hi < hi ? v.hi : hi;
            if (from < to)
                pattern_put(&out, r, from - lo, to - lo);
        }
    return out;
}

/* One of the given number of equal repetitions; false if they differ. */
static bool pattern_period(struct alg *alg, struct pattern *p, int64_t times)
{
    if (times == 1)
        return true;
    if (p->n % times != 0)
        return false;
    struct pattern one = pattern_clip(alg, p, 0, p->n / times), again = one;
    if (!pattern_scale(alg, &again, times, 1) || !pattern_eq(&again, p))
        return false;
    *p = one;
    return true;
}

static const struct split *divide_replicated(struct alg *alg, const struct split *s, const struct dim *outer, const struct dim *inner)
{
    const struct dim *size = dim_quotient(alg, split_size(alg, s), dim_mul(alg, outer, inner));
    return size ? split_replicated(alg, s->ranks, size) : NULL;
}

const struct split *split_divide(struct alg *alg, const struct split *s, const struct dim *outer, const struct dim *inner)
{
    int64_t times = 1, scale = 1;
    if (dim_equals(outer, 0) || dim_equals(inner, 0) || s->reads)
        return NULL;
    patterns_done(alg);
    if (s->replicated)
        return divide_replicated(alg, s, outer, inner);
    if (!s->balanced) {
        outer = take_integer(alg, outer, &times);
        inner = take_integer(alg, inner, &scale);
    }
    const struct dim *reps = dim_quotient(alg, s->outer, outer), *unit = dim_quotient(alg, s->inner, inner);
    if (!reps || !unit)
        return NULL;
    if (s->balanced)
        return balanced(alg, s->ranks, s->shares, reps, s->n, unit);
    struct pattern p = pattern_of(alg, s);
    return pattern_period(alg, &p, times) && pattern_shrink(alg, &p, scale) ? canonical_split(alg, reps, &p, unit) : NULL;
}

static bool is_plain_list(const struct split *s)
{
    return !s->balanced && dim_equals(s->outer, 1) && dim_equals(s->inner, 1);
}

/* ---- parts ---- */

const struct split *split_restrict(struct alg *alg, const struct split *s, int64_t lo, int64_t hi)
{
    if (lo < 0 || lo > hi)
        return NULL;
    if (s->replicated && !is_plain_list(s))
        return dim_ge(alg, split_size(alg, s), dim_int(alg, hi)) ? split_replicated(alg, s->ranks, dim_int(alg, hi - lo)) : NULL;
    if (!is_plain_list(s) || hi > s->n->k)
        return NULL;
    struct pattern p = pattern_of(alg, s), part = pattern_clip(alg, &p, lo, hi);
    return listed_split(alg, s->outer, &part, s->inner);
}

static bool concat_size(int parts, const struct split *const *part, int64_t *size)
{
    *size = 0;
    for (int i = 0; i < parts; i++)
        if (!is_plain_list(part[i]) || part[i]->ranks != part[0]->ranks || !i64_add(*size, part[i]->n->k, size))
            return false;
    return parts > 0;
}

const struct split *split_concat(struct alg *alg, int parts, const struct split *const *part)
{
    int64_t size, at = 0;
    if (!concat_size(parts, part, &size))
        return NULL;
    struct pattern p = pattern_new(alg, part[0]->ranks, size);
    for (int i = 0; i < parts; i++) {
        for (int r = 0; r < p.ranks; r++)
            for (int k = 0; k < part[i]->count[r]; k++)
                pattern_put(&p, r, at + part[i]->list[r][k].lo, at + part[i]->list[r][k].hi);
        at += part[i]->n->k;
    }
    return listed_split(alg, dim_int(alg, 1), &p, dim_int(alg, 1));
}

/* ---- fractions ---- */

__extension__ typedef __int128 wide;

static bool rescale_bound(int64_t bound, int64_t from, int64_t to, int64_t *out)
{
    wide product = (wide)bound * to;
    *out = (int64_t)(product / from);
    return product % from == 0;
}

const struct split *split_rescale(struct alg *alg, const struct split *s, int64_t size)
{
    int64_t lo, hi;
    if (size < 0)
        return NULL;
    patterns_done(alg);
    if (s->replicated && !dim_equals(s->n, 0))
        return split_replicated(alg, s->ranks, dim_int(alg, size));
    if (!is_plain_list(s) || s->n->k == 0)
        return s->n->k == 0 && size == 0 && is_plain_list(s) ? s : NULL;
    struct pattern p = pattern_new(alg, s->ranks, size);
    for (int r = 0; r < s->ranks; r++)
        for (int i = 0; i < s->count[r]; i++) {
            if (!rescale_bound(s->list[r][i].lo, s->n->k, size, &lo) || !rescale_bound(s->list[r][i].hi, s->n->k, size, &hi))
                return NULL;
            pattern_put(&p, r, lo, hi);
        }
    return listed_split(alg, s->outer, &p, s->inner);
}

/* Appends groups lo .. hi of an ascending list, except those already in it. */
static void put_groups(struct pattern *p, int rank, int64_t lo, int64_t hi)
{
    const struct rank_intervals *h = &p->rank[rank];
    int64_t end = h->list.n ? h->list.at[h->list.n - 1].hi : 0;
    bool ascending = h->list.n == 0 || lo >= h->list.at[h->list.n - 1].lo;
    if (ascending && lo < end)
        lo = end < hi ? end : hi;
    pattern_put(p, rank, lo, hi);
}

const struct split *split_image(struct alg *alg, const struct split *s, int64_t g)
{
    if (g < 1 || s->balanced)
        return NULL;
    if (s->replicated)
        return divide_replicated(alg, s, dim_int(alg, 1), dim_int(alg, g));
    if (!dim_equals(s->inner, 1) || s->n->k % g != 0)
        return NULL;
    struct pattern p = pattern_new(alg, s->ranks, s->n->k / g);
    for (int r = 0; r < s->ranks; r++)
        for (int i = 0; i < s->count[r]; i++)
            put_groups(&p, r, s->list[r][i].lo / g, (s->list[r][i].hi - 1) / g + 1);
    return canonical_split(alg, s->outer, &p, s->inner);
}

/* Whether v, in units of 1 / (na*nb), is within the intervals of b. */
static bool interval_within(struct interval v, int64_t na, const struct split *b, int rank)
{
    wide at = (wide)v.lo * b->n->k, end = (wide)v.hi * b->n->k;
    while (at < end) {
        wide reached = at;
        for (int i = 0; i < b->count[rank]; i++)
            if ((wide)b->list[rank][i].lo * na <= at && (wide)b->list[rank][i].hi * na > reached)
                reached = (wide)b->list[rank][i].hi * na;
        if (reached == at)
            return false;
        at = reached;
    }
    return true;
}

bool split_fraction_within(const struct split *a, const struct split *b)
{
    if (a->ranks != b->ranks)
        return false;
    if (b->replicated || a == b)
        return true;
    if (a->reads || b->reads)
        return false;
    if (a->outer != b->outer || a->balanced || b->balanced)
        return a->balanced && b->balanced && a->outer == b->outer && a->n == b->n && a->shares == b->shares;
    for (int r = 0; r < a->ranks; r++)
        for (int i = 0; i < a->count[r]; i++)
            if (!interval_within(a->list[r][i], a->n->k, b, r))
                return false;
    return true;
}

/* ---- a rank's part ---- */

const struct dim *split_extent(struct alg *alg, const struct split *s, int rank)
{
    int64_t held = 0;
    require(rank >= 0 && rank < s->ranks);
    if (s->reads)
        return split_window_extent(alg, s, rank);
    for (int i = 0; !s->balanced && i < s->count[rank]; i++)
        held += s->list[rank][i].hi - s->list[rank][i].lo;
    const struct dim *middle = s->balanced ? share_extent_dim(alg, s->shares, s->ranks, s->n, rank) : dim_int(alg, held);
    return dim_mul(alg, dim_mul(alg, s->outer, middle), s->inner);
}

const struct dim *split_start(struct alg *alg, const struct split *s, int rank)
{
    require(rank >= 0 && rank < s->ranks);
    if (s->reads)
        return split_window_start(alg, s, rank);
    if (!s->balanced)
        return dim_int(alg, s->count[rank] ? s->list[rank][0].lo : 0);
    return share_start_dim(alg, s->shares, s->ranks, s->n, rank);
}
