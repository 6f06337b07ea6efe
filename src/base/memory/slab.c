/* slab: offsets in one slab from lifetimes, greedy by size (Pisarchyk and Lee 2020): the largest item first, each in the lowest gap among
 * placed items with overlapping lifetimes. Empty items are skipped.
 *
 * A segment tree over the steps records occupancy: each tree node has the bytes taken during all of its steps, and those taken during some.
 * A lifetime covers few tree nodes, and adjacent bytes form one span. */
#include "base/base.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGN = 64 };

static int64_t align_up(int64_t n)
{
    int64_t sum;
    if (!i64_add(n, ALIGN - 1, &sum))
        fail("activations of %lld bytes are too large", (long long)n);
    return sum / ALIGN * ALIGN;
}

static int by_size(const void *x, const void *y)
{
    const struct slab_item *a = *(struct slab_item *const *)x, *b = *(struct slab_item *const *)y;
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    return a < b ? -1 : a > b;
}

/* ---- what is taken --------------------------------------------------------------------------------------------------------- */

struct span {
    int64_t from, to;
};
struct spans {
    VEC(struct span) list; /* sorted; no two are adjacent */
};
struct part {
    struct spans always, ever; /* taken during all, or some, of its steps */
    struct part *half[2];
};
struct tree {
    struct arena *arena;
    struct part root;
    int first, last; /* steps */
};

/* The first span that ends after `at`. */
static int span_behind(const struct spans *s, int64_t at)
{
    int lo = 0, hi = s->list.n;
    while (lo < hi) {
        int middle = lo + (hi - lo) / 2;
        if (s->list.at[middle].to > at)
            hi = middle;
        else
            lo = middle + 1;
    }
    return lo;
}

/* Merges it with the spans that it touches. */
static void take_span(struct arena *arena, struct spans *s, struct span x)
{
    int from = span_behind(s, x.from - 1), to = from;
    for (; to < s->list.n && s->list.at[to].from <= x.to; to++) {
        x.from = s->list.at[to].from < x.from ? s->list.at[to].from : x.from;
        x.to = s->list.at[to].to > x.to ? s->list.at[to].to : x.to;
    }
    int behind = s->list.n - to;
    if (from == to)
        VEC_PUSH(arena, &s->list, x);
    memmove(s->list.at + from + 1, s->list.at + to, (size_t)behind * sizeof x);
    s->list.at[from] = x;
    s->list.n = from + 1 + behind;
}

static void take(struct tree *t, struct part *p, int first, int last, const struct slab_item *item, struct span x)
{
    if (item->last < first || last < item->first)
        return;
    take_span(t->arena, &p->ever, x);
    if (item->first <= first && last <= item->last) {
        take_span(t->arena, &p->always, x);
        return;
    }
    int middle = first + (last - first) / 2;
    for (int i = 0; i < 2; i++) {
        if (!p->half[i])
            p->half[i] = NEW(t->arena, struct part);
        take(t, p->half[i], i ? middle + 1 : first, i ? last : middle, item, x);
    }
}

/* ---- the lowest gap -------------------------------------------------------------------------------------------------------- */

enum { MOST_PARTS = 4 * 32 }; /* of a lifetime: four on each level of the tree */
struct taken {
    const struct spans *of[MOST_PARTS];
    int n;
};

static void find_taken(const struct part *p, int first, int last, const struct slab_item *item, struct taken *out)
{
    if (!p || item->last < first || last < item->first)
        return;
    bool whole = item->first <= first && last <= item->last;
    require(out->n < MOST_PARTS);
    out->of[out->n++] = whole ? &p->ever : &p->always;
    if (whole)
        return;
    int middle = first + (last - first) / 2;
    find_taken(p->half[0], first, middle, item, out);
    find_taken(p->half[1], middle + 1, last, item, out);
}

static int64_t lowest_gap(const struct tree *t, const struct slab_item *item)
{
    struct taken taken = {.n = 0};
    find_taken(&t->root, t->first, t->last, item, &taken);
    int64_t at = 0;
    for (int i = 0, free = 0; free < taken.n; i = (i + 1) % taken.n) {
        const struct spans *s = taken.of[i];
        int64_t before = at;
        for (int k = span_behind(s, at); k < s->list.n && s->list.at[k].from - at < item->bytes; k++)
            at = s->list.at[k].to;
        free = at == before ? free + 1 : 1;
    }
    return at;
}

int64_t slab_assign(struct arena *tmp, struct slab_item *item, int n)
{
    struct slab_item **order = NEWN(tmp, struct slab_item *, n);
    struct tree tree = {.arena = tmp, .first = INT_MAX, .last = INT_MIN};
    int count = 0;
    for (int i = 0; i < n; i++) {
        item[i].offset = 0;
        if (item[i].bytes <= 0)
            continue;
        order[count++] = &item[i];
        tree.first = item[i].first < tree.first ? item[i].first : tree.first;
        tree.last = item[i].last > tree.last ? item[i].last : tree.last;
    }
    qsort(order, (size_t)count, sizeof *order, by_size);
    int64_t total = 0, end;
    for (int i = 0; i < count; i++) {
        struct slab_item *x = order[i];
        x->offset = lowest_gap(&tree, x);
        if (!i64_add(x->offset, x->bytes, &end))
            fail("activations need more than %lld bytes", (long long)INT64_MAX);
        take(&tree, &tree.root, tree.first, tree.last, x, (struct span){x->offset, align_up(end)});
        if (end > total)
            total = end;
    }
    return align_up(total);
}
