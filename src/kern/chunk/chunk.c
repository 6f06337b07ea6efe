/* chunk: a contracted dimension in chunks: the partial sums of a rank, and the total. */
#include "kern/chunk/chunk.h"

#include "kern/core/core.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_WIDTH = 32, LEAST_CHUNKS = 16, BLOCK_LEVEL = 8, BLOCK = 1 << BLOCK_LEVEL };

int64_t chunk_width(int64_t n)
{
    int64_t width = 1;
    while (width < MOST_WIDTH && n / (2 * width) >= LEAST_CHUNKS)
        width *= 2;
    return width;
}

bool subtree_before(const struct subtree *a, const struct subtree *b)
{
    return a->index << a->level < b->index << b->level;
}

/* ---- what is held ------------------------------------------------------------------------------------------------------------------- */

static int by_position(const void *a, const void *b)
{
    const struct stretch *x = a, *y = b;
    return x->lo < y->lo ? -1 : x->lo > y->lo;
}

int chunk_stretches(int n, const struct interval *held, struct stretch *out)
{
    int made = 0;
    int64_t from = 0;
    for (int i = 0; i < n; i++) {
        if (held[i].hi > held[i].lo)
            out[made++] = (struct stretch){from, held[i].lo, held[i].hi};
        from += held[i].hi - held[i].lo;
    }
    qsort(out, (size_t)made, sizeof *out, by_position);
    return made;
}

int chunk_partials(const struct chunks *c, struct subtree *out)
{
    struct chunk_walk w = {.chunks = c};
    struct chunk_step s;
    int n = 0;
    while (chunk_next(&w, &s)) {
        for (int i = 0; i < s.emit; i++, n++)
            if (out)
                out[n] = w.tree.at[i];
        if (s.emit)
            chunk_emitted(&w);
    }
    return n;
}

struct chunks chunks_of(const struct kcall *call, int64_t k, int64_t unit)
{
    const struct share *share = call->share;
    int64_t held = 0;
    for (int i = 0; share && i < share->n; i++)
        held += share->at[i].hi - share->at[i].lo;
    if (share && (held > k || held * unit != k))
        fail("%s: the metadata of its sum give this rank %lld indices of the dimension that it sums over, of %lld numbers each; "
             "its operands have %lld numbers",
             kcall_where(call), (long long)held, (long long)unit, (long long)k);
    int64_t size = share ? share->size : unit > 0 ? k / unit : 0;
    struct chunks c = {
        .width = chunk_width(size) * unit, .unit = unit, .whole = !share, .n = share ? share->n : k > 0, .all = {0, 0, size}};
    c.at = share ? share->at : NULL;
    return c;
}

/* ---- partial sums ----------------------------------------------------------------------------------------------------------------- */

void *chunk_room(struct kcall *call, const struct chunks *c, enum dtype t, int64_t n, void *out)
{
    return c->whole ? out : kenv_room(call->env, ROOM_PARTIALS, kcall_bytes(call, n, (size_t)chunk_partials(c, NULL) * dtype_size(t)));
}

void chunk_complete(const struct kcall *call, const struct chunks *c, enum dtype t, const void *partials, int64_t n, void *out)
{
    if (!c->whole)
        call->share->complete(call->share, c, t, partials, n, out);
}

#define SUMS(T, name)                                                                                                         \
    static SIMD void add_##name(T *sum, const T *x, int64_t n)                                                                \
    {                                                                                                                         \
        LOOP for (int64_t i = 0; i < n; i++) sum[i] += x[i];                                                                  \
    }                                                                                                                         \
    static void sum_##name(const struct subtree *of, const void *const *in, int nin, int64_t from, int64_t n, T *out)         \
    {                                                                                                                         \
        T slot[TREE_DEPTH][BLOCK];                                                                                            \
        struct tree t = {0};                                                                                                  \
        for (int k = 0; k < nin; k++) {                                                                                       \
            int top = t.depth, merges = tree_push(&t, of[k]) + (k == nin - 1 ? tree_join(&t) : 0);                            \
            memcpy(slot[top], (const T *)in[k] + from, (size_t)n * sizeof(T));                                                \
            for (int i = 0; i < merges; i++)                                                                                  \
                add_##name(slot[top - i - 1], slot[top - i], n);                                                              \
        }                                                                                                                     \
        memcpy(out + from, slot[0], (size_t)n * sizeof(T));                                                                   \
    }                                                                                                                         \
    static SIMD void add_pairs_##name(T *x, int64_t n)                                                                        \
    {                                                                                                                         \
        for (int64_t i = 0; i < n; i++)                                                                                       \
            x[i] = x[2 * i] + x[2 * i + 1];                                                                                   \
    }                                                                                                                         \
    static T subtree_##name(const T *x, int64_t n)                                                                            \
    {                                                                                                                         \
        T part[BLOCK];                                                                                                        \
        memcpy(part, x, (size_t)n * sizeof *part);                                                                            \
        for (; n > 1; n -= n / 2) {                                                                                           \
            add_pairs_##name(part, n / 2);                                                                                    \
            if (n % 2)                                                                                                        \
                part[n / 2] = part[n - 1];                                                                                    \
        }                                                                                                                     \
        return part[0];                                                                                                       \
    }                                                                                                                         \
    T chunk_sum_##name(const T *x, int64_t n)                                                                                 \
    {                                                                                                                         \
        T slot[TREE_DEPTH] = {0};                                                                                             \
        struct tree t = {0};                                                                                                  \
        for (int64_t i = 0; i < n; i += BLOCK) {                                                                              \
            bool last = n - i <= BLOCK;                                                                                       \
            int top = t.depth, merges = tree_push(&t, (struct subtree){BLOCK_LEVEL, i / BLOCK}) + (last ? tree_join(&t) : 0); \
            slot[top] = subtree_##name(x + i, last ? n - i : BLOCK);                                                          \
            for (int k = 0; k < merges; k++)                                                                                  \
                slot[top - k - 1] += slot[top - k];                                                                           \
        }                                                                                                                     \
        return slot[0];                                                                                                       \
    }
SUMS(float, f32)
SUMS(double, f64)

void chunk_add(const struct subtree *of, const void *const *in, int nin, enum dtype t, int64_t n, void *out)
{
    for (int64_t i = 0; i < n; i += BLOCK) {
        int64_t count = n - i < BLOCK ? n - i : BLOCK;
        t == DT_F64 ? sum_f64(of, in, nin, i, count, out) : sum_f32(of, in, nin, i, count, out);
    }
}
