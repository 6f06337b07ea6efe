/* bpe: byte-pair encoding. A word starts as its characters; of all adjacent pairs the one learned first is merged, the leftmost of equals,
 * until no pair is known. Sennrich et al., "Neural Machine Translation of Rare Words with Subword Units", arXiv 1508.07909. */
#include "tokenizer/tokenizer.h"

#include <string.h>

#define uthash_malloc(bytes) arena_alloc(b->arena, bytes)
#define uthash_free(p, bytes) ((void)0)
#include <uthash.h>

struct merge {
    uint64_t pair; /* ids of both sides */
    int64_t id;    /* the merged token */
    int rank;
    UT_hash_handle hh;
};
struct bpe {
    struct arena *arena;
    struct merge *merges;
    struct text prefix, suffix; /* of continuing characters; of the last one */
    bool fuses_unknown, takes_words;
    const int64_t *byte_token; /* NULL: no fallback to bytes */
};

/* ---- a word ---- */

struct symbol {
    int64_t id;
    int before, behind; /* -1: none */
};
/* A possible merge; the heap has the one learned first on top, the leftmost of equals. */
struct chance {
    int rank, at;
    int64_t left, right;
};
struct word {
    struct arena *arena;
    VEC(struct symbol) symbol;
    VEC(struct chance) heap;
};

static const struct merge *merge_of(const struct bpe *b, int64_t left, int64_t right)
{
    uint64_t pair = (uint64_t)left << 32 | (uint64_t)right;
    struct merge *m;
    HASH_FIND(hh, b->merges, &pair, sizeof pair, m);
    return m;
}

static bool sooner(const struct chance *a, const struct chance *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->at < b->at;
}

static void heap_put(struct word *w, struct chance c)
{
    VEC_PUSH(w->arena, &w->heap, c);
    for (int i = w->heap.n - 1; i > 0 && sooner(&w->heap.at[i], &w->heap.at[(i - 1) / 2]); i = (i - 1) / 2) {
        struct chance up = w->heap.at[(i - 1) / 2];
        w->heap.at[(i - 1) / 2] = w->heap.at[i];
        w->heap.at[i] = up;
    }
}

static struct chance heap_take(struct word *w)
{
    struct chance *at = w->heap.at, top = at[0];
    int n = --w->heap.n;
    at[0] = at[n];
    for (int i = 0, least; 2 * i + 1 < n; i = least) {
        least = 2 * i + 2 < n && sooner(&at[2 * i + 2], &at[2 * i + 1]) ? 2 * i + 2 : 2 * i + 1;
        if (!sooner(&at[least], &at[i]))
            break;
        struct chance down = at[i];
        at[i] = at[least];
        at[least] = down;
    }
    return top;
}

static void consider(const struct bpe *b, struct word *w, int at)
{
    if (at < 0 || w->symbol.at[at].behind < 0)
        return;
    int64_t left = w->symbol.at[at].id, right = w->symbol.at[w->symbol.at[at].behind].id;
    const struct merge *m = merge_of(b, left, right);
    if (m)
        heap_put(w, (struct chance){m->rank, at, left, right});
}

static void merge_all(const struct bpe *b, struct word *w)
{
    struct symbol *s = w->symbol.at;
    for (int i = 0; i + 1 < w->symbol.n; i++)
        consider(b, w, i);
    while (w->heap.n > 0) {
        struct chance c = heap_take(w);
        int right = s[c.at].behind;
        if (s[c.at].id != c.left || right < 0 || s[right].id != c.right)
            continue; /* one of them was merged meanwhile */
        s[c.at].id = merge_of(b, c.left, c.right)->id;
        s[c.at].behind = s[right].behind;
        if (s[right].behind >= 0)
            s[s[right].behind].before = c.at;
        s[right].id = -1;
        consider(b, w, s[c.at].before);
        consider(b, w, c.at);
    }
}

static void put_symbol(struct word *w, int64_t id)
{
    int n = w->symbol.n;
    if (n)
        w->symbol.at[n - 1].behind = n;
    VEC_PUSH(w->arena, &w->symbol, ((struct symbol){id, n - 1, -1}));
}

/* ---- its characters ---- */

/* A character in the vocabulary's form: with the prefix or suffix of its position. */
static struct text dressed(const struct bpe *b, struct arena *a, struct text c, bool first, bool last)
{
    struct text_builder t = {.arena = a};
    if ((first || b->prefix.n == 0) && (!last || b->suffix.n == 0))
        return c;
    if (!first)
        text_put(&t, b->prefix.at, b->prefix.n);
    text_put(&t, c.at, c.n);
    if (last)
        text_put(&t, b->suffix.at, b->suffix.n);
    return text_built(&t);
}

static bool put_as_bytes(const struct bpe *b, struct word *w, struct text c)
{
    struct token_ids ids = {0};
    if (!b->byte_token || !model_put_bytes(b->byte_token, w->arena, c, &ids))
        return false;
    for (int i = 0; i < ids.list.n; i++)
        put_symbol(w, ids.list.at[i]);
    return true;
}

static void put_characters(const struct token_model *m, struct word *w, struct text t)
{
    const struct bpe *b = m->own;
    bool unknown = false; /* the previous one was unknown */
    for (size_t at = 0, end = 0; at < t.n; at = end) {
        (void)text_next(t, &end);
        struct text c = dressed(b, w->arena, (struct text){t.at + at, end - at}, at == 0, end == t.n);
        int64_t id = vocab_id(m->vocab, c);
        if (id >= 0)
            put_symbol(w, id);
        else if (put_as_bytes(b, w, c))
            continue;
        else if (m->unknown >= 0 && !(unknown && b->fuses_unknown))
            put_symbol(w, m->unknown);
        unknown = id < 0;
    }
}

static void bpe_apply(const struct token_model *m, struct arena *a, struct text t, struct token_ids *out)
{
    const struct bpe *b = m->own;
    struct word w = {.arena = a};
    int64_t id = b->takes_words ? vocab_id(m->vocab, t) : -1;
    if (id >= 0) {
        VEC_PUSH(a, &out->list, id);
        return;
    }
    put_characters(m, &w, t);
    merge_all(b, &w);
    for (int i = 0; i < w.symbol.n; i++)
        if (w.symbol.at[i].id >= 0)
            VEC_PUSH(a, &out->list, w.symbol.at[i].id);
}

/* ---- reading ---- */

/* "left right", or ["left", "right"]. */
static bool read_sides(struct arena *a, const json_t *v, struct text side[2])
{
    if (json_is_array(v) && json_array_size(v) == 2 && json_is_string(json_array_get(v, 0)) && json_is_string(json_array_get(v, 1))) {
        for (size_t k = 0; k < 2; k++)
            side[k] = member_text(a, json_array_get(v, k));
        return true;
    }
    if (!json_is_string(v))
        return false;
    struct text t = member_text(a, v);
    const char *space = memchr(t.at, ' ', t.n);
    if (!space)
        return false;
    side[0] = (struct text){t.at, (size_t)(space - t.at)};
    side[1] = (struct text){space + 1, t.n - side[0].n - 1};
    return true;
}

static void add_merge(struct token_model *m, const char *where, const struct text side[2], int rank)
{
    struct bpe *b = m->own;
    struct text_builder joined = {.arena = b->arena};
    size_t cut = side[1].n >= b->prefix.n && text_starts(side[1], b->prefix) ? b->prefix.n : 0;
    text_put(&joined, side[0].at, side[0].n);
    text_put(&joined, side[1].at + cut, side[1].n - cut);
    int64_t left = vocab_id(m->vocab, side[0]), right = vocab_id(m->vocab, side[1]), id = vocab_id(m->vocab, text_built(&joined));
    if (left < 0 || right < 0 || id < 0)
        fail("%s: merge %d, of '%.*s' and '%.*s', is of tokens that the vocabulary lacks", where, rank, (int)side[0].n, side[0].at,
             (int)side[1].n, side[1].at);
    struct merge *new = NEW(b->arena, struct merge);
    *new = (struct merge){.pair = (uint64_t)left << 32 | (uint64_t)right, .id = id, .rank = rank};
    if (!merge_of(b, left, right))
        HASH_ADD(hh, b->merges, pair, sizeof new->pair, new);
}

static void read_merges(struct token_model *m, const char *where, const json_t *list)
{
    const struct bpe *b = m->own;
    struct text side[2];
    size_t i;
    json_t *v;
    json_array_foreach((json_t *)(uintptr_t)list, i, v)
    {
        if (i > INT32_MAX || !read_sides(b->arena, v, side))
            fail("%s: merge %zu is no pair of tokens", where, i);
        add_merge(m, where, side, (int)i);
    }
}

void bpe_read(struct token_model *m, struct arena *a, const char *where, const json_t *v)
{
    struct bpe *b = NEW(a, struct bpe);
    const json_t *dropout = json_object_get(v, "dropout");
    const char *unknown = member_string(where, v, "unk_token", NULL);
    if (dropout && json_is_number(dropout) && json_number_value(dropout) > 0)
        fail("%s: the model drops merges at random, which is for training", where);
    m->own = b;
    m->apply = bpe_apply;
    model_read_vocab(m, a, where, v);
    b->arena = a;
    b->prefix = text_of(arena_strdup(a, member_string(where, v, "continuing_subword_prefix", "")));
    b->suffix = text_of(arena_strdup(a, member_string(where, v, "end_of_word_suffix", "")));
    b->fuses_unknown = member_bool(where, v, "fuse_unk", false);
    b->takes_words = member_bool(where, v, "ignore_merges", false);
    if (member_bool(where, v, "byte_fallback", false))
        b->byte_token = model_byte_tokens(m->vocab, a);
    m->unknown = unknown ? vocab_id(m->vocab, text_of(unknown)) : -1;
    read_merges(m, where, json_object_get(v, "merges"));
}
