/* numbered: hash-consed lists of numbers. */
#include "grammar/grammar.h"

#include <string.h>

static uint64_t hash_of(const int32_t *at, int32_t n)
{
    uint64_t h = (uint64_t)n;
    for (int32_t i = 0; i < n; i++)
        h = splitmix(h ^ (uint32_t)at[i]);
    return splitmix(h);
}

static bool is_same(const struct numbered *t, int32_t number, const int32_t *at, int32_t n)
{
    return t->list[number].n == n && (n == 0 || memcmp(t->list[number].at, at, (size_t)n * sizeof *at) == 0);
}

/* The slot of a content, or the free one for it. */
static int32_t *slot_of(const struct numbered *t, const int32_t *at, int32_t n)
{
    uint64_t i = hash_of(at, n);
    for (;; i++) {
        int32_t *slot = &t->slot[i & (uint64_t)(t->slots - 1)];
        if (*slot == 0 || is_same(t, *slot - 1, at, n))
            return slot;
    }
}

static void grow(struct numbered *t)
{
    int32_t room = t->room ? 2 * t->room : 64;
    struct number_list *list = NEWN(t->arena, struct number_list, room);
    if (t->n)
        memcpy(list, t->list, (size_t)t->n * sizeof *t->list);
    t->list = list;
    t->room = room;
    t->slots = 2 * room;
    t->slot = NEWN(t->arena, int32_t, t->slots);
    for (int32_t i = 0; i < t->n; i++)
        *slot_of(t, t->list[i].at, t->list[i].n) = i + 1;
}

int32_t numbered_find(struct numbered *t, const int32_t *at, int32_t n)
{
    if (t->n == t->room)
        grow(t);
    int32_t *slot = slot_of(t, at, n);
    if (*slot)
        return *slot - 1;
    int32_t *own = NEWN(t->arena, int32_t, n + 1);
    if (n)
        memcpy(own, at, (size_t)n * sizeof *own);
    t->list[t->n].at = own;
    t->list[t->n].n = n;
    *slot = ++t->n;
    return t->n - 1;
}
