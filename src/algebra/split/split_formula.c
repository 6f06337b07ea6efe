/* split_formula: a listed split as a few formulas, with a text that is as short for a thousand ranks as for two.
 *
 * Most splits are even, or several even ones in a row, as for fused Q, K and V. A part of the dimension begins with an interval of rank 0,
 * and ends with one of the last rank. Its formula is the first one that gives these intervals: without an inner size, with the largest one,
 * with the smallest groups. So each split has one text. */
#include "algebra/dim/cell.h"

enum { MOST_GROUP = 4096 };

/* The dimension from lo to hi, and each rank's part of it, counted from lo. next: by rank, the next interval to read. */
struct formula_part {
    const struct split *s;
    int64_t lo, hi;
    struct interval *held;
    int *next;
};

static bool is_empty(struct interval v)
{
    return v.lo >= v.hi;
}

/* Takes the rank's intervals before hi; false: more than one. */
static bool take_rank(struct formula_part *p, int rank)
{
    struct interval *held = &p->held[rank];
    *held = (struct interval){0, 0};
    for (; p->next[rank] < p->s->count[rank]; p->next[rank]++) {
        struct interval v = p->s->list[rank][p->next[rank]];
        if (v.lo >= p->hi)
            break;
        if (!is_empty(*held) || v.hi <= p->lo)
            return false;
        *held = (struct interval){v.lo > p->lo ? v.lo - p->lo : 0, (v.hi < p->hi ? v.hi : p->hi) - p->lo};
        if (v.hi > p->hi)
            break;
    }
    return true;
}

static int64_t inner_size(const struct formula_part *p)
{
    int64_t inner = p->hi - p->lo;
    for (int r = 0; r < p->s->ranks; r++)
        if (!is_empty(p->held[r]))
            inner = i64_gcd(i64_gcd(inner, p->held[r].lo), p->held[r].hi);
    return inner;
}

/* The start of rank r if n indices are split as evenly as possible. */
static int64_t even_start(int64_t n, int ranks, int r)
{
    int64_t rest = n % ranks;
    return r * (n / ranks) + (r < rest ? r : rest);
}

/* Whether each rank holds the groups that it touches if e->n indices are split evenly. */
static bool is_formula(const struct formula_part *p, const struct split_part *e)
{
    for (int r = 0; r < p->s->ranks; r++) {
        int64_t lo = even_start(e->n, p->s->ranks, r), hi = even_start(e->n, p->s->ranks, r + 1);
        struct interval v = p->held[r];
        if (lo == hi ? !is_empty(v) : v.lo != lo / e->group * e->inner || v.hi != ((hi - 1) / e->group + 1) * e->inner)
            return false;
    }
    return true;
}

/* If some ranks hold nothing, each of the others has one index. Else the smallest groups are the least that give every rank one. */
static bool find_groups(const struct formula_part *p, int64_t groups, struct split_part *e)
{
    int busy = 0;
    for (int r = 0; r < p->s->ranks; r++)
        busy += !is_empty(p->held[r]);
    bool idle = busy < p->s->ranks;
    int64_t first = idle ? busy / groups : (busy - 1) / groups + 1, last = idle ? first : MOST_GROUP;
    for (e->group = first > 1 ? first : 1; e->group <= last; e->group++) {
        if (i64_mul(groups, e->group, &e->n) && is_formula(p, e))
            return true;
    }
    return false;
}

static bool holds_part(const struct formula_part *p)
{
    for (int r = 0; r < p->s->ranks; r++)
        if (p->held[r].lo != 0 || p->held[r].hi != p->hi - p->lo)
            return false;
    return true;
}

static bool part_formula(struct formula_part *p, struct split_part *e)
{
    for (int r = 0; r < p->s->ranks; r++)
        if (!take_rank(p, r))
            return false;
    *e = (struct split_part){.n = p->hi - p->lo, .group = 1, .inner = 1, .whole = holds_part(p)};
    if (e->whole || is_formula(p, e))
        return true;
    e->inner = inner_size(p);
    e->n /= e->inner;
    return is_formula(p, e) || find_groups(p, e->n, e);
}

/* The end of the part that begins at lo. */
static int64_t part_end(const struct split *s, int64_t lo, int *first, int *last)
{
    int end = s->ranks - 1;
    int64_t hi = s->n->k;
    while (*first < s->count[0] && s->list[0][*first].lo <= lo)
        ++*first;
    while (*last < s->count[end] && s->list[end][*last].hi <= lo)
        ++*last;
    if (*first < s->count[0])
        hi = s->list[0][*first].lo;
    if (*last < s->count[end] && s->list[end][*last].hi < hi)
        hi = s->list[end][*last].hi;
    return hi;
}

static bool same_part(const struct split_part *a, const struct split_part *b)
{
    return a->n == b->n && a->group == b->group && a->inner == b->inner && a->whole == b->whole;
}

static int find_parts(struct arena *arena, const struct split *s, struct split_part *out, int64_t *times)
{
    struct formula_part p = {.s = s, .held = NEWN(arena, struct interval, s->ranks), .next = NEWN(arena, int, s->ranks)};
    bool repeats = true;
    int64_t parts = 0;
    int first = 0, last = 0;
    for (; p.lo < s->n->k; p.lo = p.hi, parts++) {
        struct split_part e;
        p.hi = part_end(s, p.lo, &first, &last);
        if (!part_formula(&p, &e))
            return 0;
        repeats = repeats && (parts == 0 || same_part(&e, out));
        if (parts < SPLIT_PARTS)
            out[parts] = e;
        else if (!repeats)
            return 0;
    }
    *times = repeats ? parts : 1;
    return repeats ? parts > 0 : (int)parts;
}

void split_find_parts(struct arena *arena, struct split *s)
{
    struct split_part part[SPLIT_PARTS], *own;
    s->parts = find_parts(arena, s, part, &s->times);
    s->part = own = NEWN(arena, struct split_part, s->parts);
    for (int i = 0; i < s->parts; i++)
        own[i] = part[i];
}
