/* arena: memory by lifetime. An arena is a chain of blocks; allocation moves a mark, freeing happens all at once.
 *
 * Every allocation is zeroed; one of 64 bytes or more is 64-byte aligned, a smaller one, of which a plan makes millions, 16-byte. Small
 * requests share blocks whose size doubles up to a cap; a large request gets a block of its own, taken with calloc, so that big zeroed
 * areas cost no page until they are touched. A request that cannot be met, or whose size overflows, ends the program: callers never see
 * NULL. Under AddressSanitizer poisoned bytes follow every allocation, as with malloc. */
#include "base/base.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGN = 64, SMALL_ALIGN = 16, FIRST_BLOCK = 1 << 12, LAST_BLOCK = 1 << 20 };

struct arena_block {
    struct arena_block *next;
    unsigned char *at; /* first free byte, aligned */
    size_t room;       /* free bytes after it */
    size_t used;       /* bytes before it */
};

struct arena {
    struct arena_block *shared; /* small requests come from its head */
    struct arena_block *own;    /* one large request each */
    size_t next_size;
    struct scope_item *kept;       /* NULL: a parent keeps it */
    struct arena *parent;          /* NULL: none */
    struct arena *children, *next; /* next: of the same parent */
};

static _Noreturn void out_of_memory(size_t bytes)
{
    fail("out of memory: expected %zu more bytes, found none", bytes);
}

static size_t round_up(size_t bytes)
{
    if (bytes > SIZE_MAX / 2)
        out_of_memory(bytes);
    return (bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1);
}

static struct arena_block *arena_block_new(size_t room, struct arena_block *next)
{
    size_t head = round_up(sizeof(struct arena_block)) + ALIGN;
    struct arena_block *b = calloc(1, head + room);
    if (!b)
        out_of_memory(room);
    uintptr_t start = (uintptr_t)(b + 1);
    b->at = (unsigned char *)(b + 1) + (ALIGN - start % ALIGN) % ALIGN;
    b->room = room;
    b->next = next;
    return b;
}

static void blocks_free(struct arena_block *b)
{
    while (b) {
        struct arena_block *next = b->next;
        free(b);
        b = next;
    }
}

static void drop_arena(void *arena)
{
    struct arena *a = arena;
    for (struct arena *c = a->children, *next; c; c = next) {
        next = c->next;
        drop_arena(c);
    }
    blocks_free(a->shared);
    blocks_free(a->own);
    free(a);
}

static struct arena *new_arena(void)
{
    struct arena *a = calloc(1, sizeof *a);
    if (!a)
        out_of_memory(sizeof *a);
    a->next_size = FIRST_BLOCK;
    return a;
}

struct arena *arena_new(void)
{
    struct arena *a = new_arena();
    a->kept = scope_keep(drop_arena, a);
    return a;
}

struct arena *arena_new_within(struct arena *parent)
{
    struct arena *a = new_arena();
    a->parent = parent;
    a->next = parent->children;
    return parent->children = a;
}

static void leave_parent(const struct arena *a)
{
    struct arena **at = &a->parent->children;
    while (*at != a)
        at = &(*at)->next;
    *at = a->next;
}

void arena_free(struct arena *a)
{
    if (!a)
        return;
    if (a->parent)
        leave_parent(a);
    else
        scope_forget(a->kept);
    drop_arena(a);
}

static void block_reset(struct arena_block *b)
{
#ifdef __SANITIZE_ADDRESS__
    ASAN_UNPOISON_MEMORY_REGION(b->at - b->used, b->used);
#endif
    b->at -= b->used;
    b->room += b->used;
    memset(b->at, 0, b->used);
    b->used = 0;
}

/* The newest shared block, which is the largest, is kept. */
void arena_reset(struct arena *a)
{
    blocks_free(a->own);
    a->own = NULL;
    if (!a->shared)
        return;
    blocks_free(a->shared->next);
    a->shared->next = NULL;
    block_reset(a->shared);
}

/* NULL when the block is too full. */
static void *take_from_block(struct arena_block *b, size_t bytes)
{
    size_t align = bytes < ALIGN ? SMALL_ALIGN : ALIGN, skip = (align - (uintptr_t)b->at % align) % align;
    if (b->room < skip || b->room - skip < bytes)
        return NULL;
    void *p = b->at + skip;
    b->at += skip + bytes;
    b->room -= skip + bytes;
    b->used += skip + bytes;
    return p;
}

static void *take_new(struct arena *a, size_t need)
{
    void *p = a->shared ? take_from_block(a->shared, need) : NULL;
    if (p)
        return p;
    if (need > a->next_size / 4) {
        a->own = arena_block_new(need, a->own);
        return take_from_block(a->own, need);
    }
    a->shared = arena_block_new(a->next_size, a->shared);
    if (a->next_size < LAST_BLOCK)
        a->next_size *= 2;
    return take_from_block(a->shared, need);
}

void *arena_alloc(struct arena *a, size_t bytes)
{
#ifdef __SANITIZE_ADDRESS__
    size_t need = round_up(bytes) + ALIGN;
    unsigned char *p = take_new(a, need);
    ASAN_POISON_MEMORY_REGION(p + bytes, need - bytes);
    return p;
#else
    return take_new(a, bytes < ALIGN ? (bytes + SMALL_ALIGN - (bytes > 0)) / SMALL_ALIGN * SMALL_ALIGN : round_up(bytes));
#endif
}

void *arena_array(struct arena *a, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        fail("out of memory: expected room for %zu items of %zu bytes, more than an address can hold", count, size);
    return arena_alloc(a, bytes);
}

char *arena_strndup(struct arena *a, const char *s, size_t n)
{
    size_t length = n ? strnlen(s, n) : 0;
    char *copy = arena_alloc(a, length + 1);
    if (length)
        memcpy(copy, s, length);
    return copy;
}

char *arena_strdup(struct arena *a, const char *s)
{
    return arena_strndup(a, s, strlen(s));
}

/* Most texts are short, so they are formatted only once. */
char *arena_printf(struct arena *a, const char *format, ...)
{
    char piece[256];
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(piece, sizeof piece, format, args);
    va_end(args);
    require(length >= 0);
    char *out = arena_alloc(a, (size_t)length + 1);
    if ((size_t)length < sizeof piece)
        memcpy(out, piece, (size_t)length);
    else
        (void)vsnprintf(out, (size_t)length + 1, format, again);
    va_end(again);
    return out;
}

void *vec_grow(struct arena *a, void *old, int *cap, int n, size_t size)
{
    if (*cap > INT_MAX / 2)
        fail("out of memory: expected a list of at most %d items, found more", INT_MAX);
    int grown = *cap ? 2 * *cap : 4;
    void *at = arena_array(a, (size_t)grown, size);
    if (n > 0)
        memcpy(at, old, (size_t)n * size);
    *cap = grown;
    return at;
}
