/* buffer: a block that only grows, so that the steady state allocates nothing. Growing discards the content. */
#include "run/comm/comm.h"

void *buffer_reserve(struct buffer *b, size_t bytes)
{
    if (b->at && bytes <= b->bytes)
        return b->at;
    if (b->arena)
        arena_free(b->arena);
    b->arena = arena_new();
    b->bytes = bytes < 64 ? 64 : bytes;
    b->at = (b->huge ? huge_alloc : arena_alloc)(b->arena, b->bytes);
    return b->at;
}

void buffer_free(struct buffer *b)
{
    if (b->arena)
        arena_free(b->arena);
    *b = (struct buffer){0};
}
