/* dynamic_memory: memory of data-dependent results: blocks that are kept between runs. Fresh memory for every result would cost more time
 * than many nodes, because the system clears each page. */
#include "run/session/session.h"

#include <limits.h>

void *dynamic_take(struct session *s, const struct value *v, size_t bytes)
{
    int item = s->slab.life.item[s->slab.life.root[v->id]];
    int i = block_pool_take(s->arena, &s->dynamic.pool, bytes, item < 0 ? INT_MAX : s->slab.life.items[item].last);
    if (i == s->dynamic.memory.n) {
        struct buffer *b = NEW(s->arena, struct buffer);
        b->huge = true;
        VEC_PUSH(s->arena, &s->dynamic.memory, b);
    }
    struct buffer *b = s->dynamic.memory.at[i];
    size_t all = s->dynamic.pool.blocks.at[i].bytes;
    if (all > b->bytes)
        sizes_need_room(s, v->name, all, b->bytes);
    return buffer_reserve(b, all);
}

void dynamic_release(struct session *s, int step)
{
    block_pool_release(&s->dynamic.pool, step);
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
    return block_pool_bytes(&s->dynamic.pool);
}

void dynamic_free(struct session *s)
{
    dynamic_begin(s);
    for (int i = 0; i < s->dynamic.memory.n; i++)
        buffer_free(s->dynamic.memory.at[i]);
}
