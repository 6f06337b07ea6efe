/* vocab: tokens by their text and by their id. */
#include "tokenizer/tokenizer.h"

#define uthash_malloc(bytes) arena_alloc(v->arena, bytes)
#define uthash_free(p, bytes) ((void)0)
#include <uthash.h>

struct vocab_entry {
    struct text text;
    int64_t id;
    UT_hash_handle hh;
};
struct vocab {
    struct arena *arena;
    struct vocab_entry *table;
    VEC(struct text) by_id;
    size_t longest;
};

struct vocab *vocab_new(struct arena *a)
{
    struct vocab *v = NEW(a, struct vocab);
    v->arena = a;
    return v;
}

enum { MOST_TOKENS = 1 << 26 };

bool vocab_add(struct vocab *v, struct text token, int64_t id)
{
    struct vocab_entry *e = NEW(v->arena, struct vocab_entry);
    if (id < 0 || id >= MOST_TOKENS)
        return false;
    *e = (struct vocab_entry){.text = token, .id = id};
    HASH_ADD_KEYPTR(hh, v->table, e->text.at, e->text.n, e);
    while (v->by_id.n <= id)
        VEC_PUSH(v->arena, &v->by_id, ((struct text){NULL, 0}));
    v->by_id.at[id] = token;
    v->longest = token.n > v->longest ? token.n : v->longest;
    return true;
}

int64_t vocab_id(const struct vocab *v, struct text token)
{
    struct vocab_entry *e;
    HASH_FIND(hh, v->table, token.at, token.n, e);
    return e ? e->id : -1;
}

bool vocab_token(const struct vocab *v, int64_t id, struct text *out)
{
    if (id < 0 || id >= v->by_id.n || !v->by_id.at[id].at)
        return false;
    *out = v->by_id.at[id];
    return true;
}

size_t vocab_longest(const struct vocab *v)
{
    return v->longest;
}
