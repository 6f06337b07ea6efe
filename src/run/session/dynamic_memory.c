/* Memory of results whose size only data decides: blocks that stay from run to run. One is free again behind the last step that reads its
 * value or a view of it. New memory for every result would cost more time than many nodes: the system clears each page first. */
#include "run/session/session.h"

#include <limits.h>

/* A block may be so many times as large as what it holds, and a page more. */
enum { LOOSE = 4, PAGE = 4096 };

static bool is_loose(const struct dynamic_block *b, size_t bytes)
{
    return b->memory.bytes > PAGE && (b->memory.bytes - PAGE) / LOOSE > bytes;
}

/* The smallest free block of so many bytes, else the largest free one that is smaller; NULL: there is none. */
static struct dynamic_block *best_block(struct session *s, size_t bytes)
{
    struct dynamic_block *best = NULL;
    for (int i = 0; i < s->dynamic.blocks.n; i++) {
        struct dynamic_block *b = s->dynamic.blocks.at[i];
        if (b->used || is_loose(b, bytes))
            continue;
        bool better = !best ||
            (b->memory.bytes >= bytes ? best->memory.bytes < bytes || b->memory.bytes < best->memory.bytes
                                      : best->memory.bytes < bytes && b->memory.bytes > best->memory.bytes);
        best = better ? b : best;
    }
    return best;
}

void *dynamic_take(struct session *s, const struct value *v, size_t bytes)
{
    struct dynamic_block *b = best_block(s, bytes);
    bool grows = b && b->memory.bytes < bytes && bytes < SIZE_MAX / 2;
    if (!b) {
        b = NEW(s->arena, struct dynamic_block);
        b->memory.huge = true;
        VEC_PUSH(s->arena, &s->dynamic.blocks, b);
    }
    int item = s->slab.life.item[s->slab.life.root[v->id]];
    b->used = true;
    b->last = item < 0 ? INT_MAX : s->slab.life.items[item].last;
    return buffer_reserve(&b->memory, grows ? bytes + bytes / 4 : bytes);
}

void dynamic_release(struct session *s, int step)
{
    for (int i = 0; i < s->dynamic.blocks.n; i++)
        s->dynamic.blocks.at[i]->used = s->dynamic.blocks.at[i]->used && s->dynamic.blocks.at[i]->last > step;
}

void dynamic_begin(struct session *s)
{
    dynamic_release(s, INT_MAX);
    if (s->dynamic.arena)
        arena_free(s->dynamic.arena);
    s->dynamic.arena = NULL;
}

struct arena *dynamic_arena(struct session *s)
{
    if (!s->dynamic.arena)
        s->dynamic.arena = arena_new();
    return s->dynamic.arena;
}

int64_t dynamic_bytes(const struct session *s)
{
    int64_t bytes = 0;
    for (int i = 0; i < s->dynamic.blocks.n; i++)
        bytes += (int64_t)s->dynamic.blocks.at[i]->memory.bytes;
    return bytes;
}

void dynamic_free(struct session *s)
{
    dynamic_begin(s);
    for (int i = 0; i < s->dynamic.blocks.n; i++)
        buffer_free(&s->dynamic.blocks.at[i]->memory);
}
