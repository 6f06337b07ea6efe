/* slab: offsets in one slab from lifetimes, greedy by size (Pisarchyk and Lee 2020): the largest item first, each at the lowest
 * gap among the items that live at the same time and are placed already. Items of no bytes take no part. */
#include "base/base.h"

#include <stdlib.h>

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

static bool lifetimes_overlap(const struct slab_item *a, const struct slab_item *b)
{
    return a->first <= b->last && b->first <= a->last;
}

/* placed is sorted by offset. */
static int64_t lowest_gap(struct slab_item *const *placed, int n, const struct slab_item *item)
{
    int64_t at = 0;
    for (int i = 0; i < n; i++) {
        if (!lifetimes_overlap(placed[i], item))
            continue;
        if (placed[i]->offset - at >= item->bytes)
            break;
        int64_t end = align_up(placed[i]->offset + placed[i]->bytes);
        if (end > at)
            at = end;
    }
    return at;
}

static void insert_by_offset(struct slab_item **placed, int n, struct slab_item *item)
{
    int at = n;
    for (; at > 0 && placed[at - 1]->offset > item->offset; at--)
        placed[at] = placed[at - 1];
    placed[at] = item;
}

int64_t slab_assign(struct arena *tmp, struct slab_item *item, int n)
{
    struct slab_item **order = NEWN(tmp, struct slab_item *, n), **placed = NEWN(tmp, struct slab_item *, n);
    int count = 0, done = 0;
    for (int i = 0; i < n; i++) {
        item[i].offset = 0;
        if (item[i].bytes > 0)
            order[count++] = &item[i];
    }
    qsort(order, (size_t)count, sizeof *order, by_size);
    int64_t total = 0, end;
    for (; done < count; done++) {
        struct slab_item *x = order[done];
        x->offset = lowest_gap(placed, done, x);
        insert_by_offset(placed, done, x);
        if (!i64_add(x->offset, x->bytes, &end))
            fail("activations need more than %lld bytes", (long long)INT64_MAX);
        if (end > total)
            total = end;
    }
    return align_up(total);
}
