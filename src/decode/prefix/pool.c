/* pool: blocks of memory, each found by its tokens and the block before it, all of which are compared.
 *
 * Block numbers are never reused, so nothing is found after a dropped block. When the pool is full, the least recently used block is
 * dropped. The blocks of a text are touched from the last to the first, so a dropped block has no successor. */
#include "decode/prefix/prefix.h"

#include <string.h>
#include <uthash.h>

struct pooled {
    UT_hash_handle hh; /* the table is in order of use */
    int64_t number;
    void *at;
    int64_t key[]; /* the number of the previous block; for a first one, what computed it, at most 0; its tokens */
};

struct prefix_pool {
    struct arena *arena;
    int64_t tokens, bytes, most;
    struct pooled *table;
    VEC(struct pooled *) path; /* the last one walked */
    int64_t *key;              /* for lookups */
    int64_t n, numbers, dropped;
};

static int64_t head_bytes(int64_t tokens)
{
    return (int64_t)sizeof(struct pooled) + (tokens + 1) * (int64_t)sizeof(int64_t);
}

int64_t prefix_pool_block_bytes(int64_t tokens, int64_t bytes)
{
    return head_bytes(tokens) + bytes;
}

struct prefix_pool *prefix_pool_new(int64_t tokens, int64_t bytes, int64_t most)
{
    struct arena *a = arena_new();
    struct prefix_pool *p = NEW(a, struct prefix_pool);
    *p = (struct prefix_pool){.arena = a, .tokens = tokens, .bytes = bytes, .most = most};
    p->key = NEWN(a, int64_t, tokens + 1);
    return p;
}

void prefix_pool_free(struct prefix_pool *p)
{
    HASH_CLEAR(hh, p->table);
    arena_free(p->arena);
}

static size_t key_bytes(const struct prefix_pool *p)
{
    return (size_t)(p->tokens + 1) * sizeof *p->key;
}

static void set_key(const struct prefix_pool *p, int64_t *key, int64_t before, const int64_t *token)
{
    key[0] = before;
    memcpy(key + 1, token, (size_t)p->tokens * sizeof *token);
}

static void put_last(struct prefix_pool *p, struct pooled *b)
{
    HASH_ADD_KEYPTR(hh, p->table, b->key, key_bytes(p), b);
}

static void use_path(struct prefix_pool *p)
{
    for (int i = p->path.n - 1; i >= 0; i--) {
        HASH_DELETE(hh, p->table, p->path.at[i]);
        put_last(p, p->path.at[i]);
    }
}

int64_t prefix_pool_find(struct prefix_pool *p, int64_t of, const int64_t *token, int64_t blocks)
{
    int64_t before = -of;
    p->path.n = 0;
    for (int64_t i = 0; i < blocks; i++) {
        struct pooled *b;
        set_key(p, p->key, before, token + i * p->tokens);
        HASH_FIND(hh, p->table, p->key, key_bytes(p), b);
        if (!b)
            break;
        VEC_PUSH(p->arena, &p->path, b);
        before = b->number;
    }
    use_path(p);
    return p->path.n;
}

void *prefix_pool_at(const struct prefix_pool *p, int64_t block)
{
    require(block >= 0 && block < p->path.n);
    return p->path.at[block]->at;
}

static struct pooled *new_block(struct prefix_pool *p)
{
    struct pooled *b = arena_alloc(p->arena, (size_t)head_bytes(p->tokens));
    b->at = arena_alloc(p->arena, (size_t)p->bytes);
    p->n++;
    return b;
}

/* Drops the least recently used block. */
static struct pooled *drop_block(struct prefix_pool *p)
{
    struct pooled *b = p->table;
    HASH_DELETE(hh, p->table, b);
    p->dropped++;
    return b;
}

void *prefix_pool_add(struct prefix_pool *p, int64_t of, const int64_t *token, int64_t blocks)
{
    int64_t found = prefix_pool_find(p, of, token, blocks);
    struct pooled *before = found ? p->path.at[found - 1] : NULL, *b;
    if (found != blocks - 1 || (p->n == p->most && p->table == before))
        return NULL;
    b = p->n < p->most ? new_block(p) : drop_block(p);
    b->number = ++p->numbers;
    set_key(p, b->key, before ? before->number : -of, token + found * p->tokens);
    put_last(p, b);
    use_path(p);
    return b->at;
}

int64_t prefix_pool_count(const struct prefix_pool *p)
{
    return p->n;
}

int64_t prefix_pool_dropped(const struct prefix_pool *p)
{
    return p->dropped;
}
