/* name_index: positions by name, found by hash. */
#include "base/base.h"

#include <string.h>

static uint32_t hash_of(const char *name)
{
    uint32_t h = 2166136261u;
    for (const char *c = name; *c; c++)
        h = (h ^ (unsigned char)*c) * 16777619u;
    return h;
}

/* The slot of the name, or a free one for it. */
static int slot_of(const struct name_index *x, const char *name)
{
    uint32_t slot = hash_of(name) % (uint32_t)x->slots;
    while (x->name[slot] && strcmp(x->name[slot], name) != 0)
        slot = (slot + 1) % (uint32_t)x->slots;
    return (int)slot;
}

int name_index_find(const struct name_index *x, const char *name)
{
    int slot = x->slots ? slot_of(x, name) : 0;
    return x->slots && x->name[slot] ? x->at[slot] : -1;
}

static void put(struct name_index *x, const char *name, int at)
{
    int slot = slot_of(x, name);
    x->n += !x->name[slot];
    x->name[slot] = name;
    x->at[slot] = at;
}

void name_index_put(struct arena *arena, struct name_index *x, const char *name, int at)
{
    if (2 * (x->n + 1) > x->slots) {
        struct name_index wider = {.slots = x->slots ? 2 * x->slots : 16};
        wider.name = NEWN(arena, const char *, wider.slots);
        wider.at = NEWN(arena, int, wider.slots);
        for (int i = 0; i < x->slots; i++)
            if (x->name[i])
                put(&wider, x->name[i], x->at[i]);
        *x = wider;
    }
    put(x, name, at);
}

void name_index_clear(struct name_index *x)
{
    for (int i = 0; i < x->slots; i++)
        x->name[i] = NULL;
    x->n = 0;
}
