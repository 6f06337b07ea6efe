/* chunkreduce: sums along axes in deterministic mode, one axis after another from the last, each along the tree of its indices. A block of
 * results is summed at a time, so that additions are those of vectors whether the axis is the innermost or not. */
#include "kern/chunk.h"

#include <string.h>

enum { BLOCK = 256 };

struct along { const struct chunks *chunks; const float *x; int64_t n, inner; float *y; int64_t term_step; };

static SIMD void add_numbers(float *sum, const float *x, int64_t n)
{
    LOOP for (int64_t i = 0; i < n; i++)
        sum[i] += x[i];
}

static void take_numbers(const float *x, const int64_t *at, int64_t n, float *to)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = x[at[i]];
}

static void sum_results(const struct along *a, int64_t first, int64_t count)
{
    float slot[TREE_DEPTH][BLOCK];
    int64_t at[BLOCK];
    struct chunk_walk w = { .chunks = a->chunks };
    struct chunk_step s;
    float *y = a->y + first;
    for (int64_t i = 0; i < count; i++)
        at[i] = (first + i) / a->inner * a->n * a->inner + (first + i) % a->inner;
    if (a->chunks->whole && a->chunks->n == 0)
        memset(y, 0, (size_t)count * sizeof *y);
    while (chunk_next(&w, &s)) {
        take_numbers(a->x + s.from * a->inner, at, count, slot[s.slot]);
        for (int i = 0; i < s.merges; i++)
            add_numbers(slot[s.slot - i - 1], slot[s.slot - i], count);
        for (int i = 0; i < s.emit; i++, y += a->term_step)
            memcpy(y, slot[i], (size_t)count * sizeof *y);
        if (s.emit)
            chunk_emitted(&w);
    }
}

/* Blocks lo..hi. */
static void sum_range(void *data, int thread, int64_t lo, int64_t hi)
{
    const struct along *a = data;
    (void)thread;
    for (int64_t i = lo; i < hi; i++) {
        int64_t left = a->term_step - i * BLOCK;
        sum_results(a, i * BLOCK, left < BLOCK ? left : BLOCK);
    }
}

/* Sums of x[outer, n, inner] over its middle dimension, which is `axis` of the call's operand. */
static void sum_axis(struct kcall *call, int axis, const float *x, int64_t outer, int64_t n, int64_t inner, float *y)
{
    bool dealt = call->share && call->share->axis == axis;
    struct chunks chunks = { .width = 1, .unit = 1, .whole = true, .n = n > 0, .all = { 0, 0, n } };
    if (dealt) {
        chunks = chunks_of(call, n, 1);
        chunks.width = 1;
    }
    struct along a = { &chunks, x, n, inner, chunk_room(call, &chunks, outer * inner, y), outer * inner };
    parallel_for(call->env, (outer * inner + BLOCK - 1) / BLOCK, 2 * n * BLOCK, sum_range, &a);
    chunk_complete(call, &chunks, a.y, outer * inner, y);
}

void chunk_reduce(struct kcall *call, const bool *reduced, float *y)
{
    const struct tensor *x = &call->in[0];
    const float *from = tensor_f32(call->env, x, ROOM_A);
    int64_t inner = 1;
    int left = 0;
    for (int d = 0; d < x->rank; d++)
        left += reduced[d];
    for (int d = x->rank - 1; d >= 0; d--) {
        int64_t outer = dims_product(x->dim, 0, d);
        if (!reduced[d]) {
            inner *= x->dim[d];
            continue;
        }
        float *to = --left ? kenv_room(call->env, left & 1 ? ROOM_TURN_Q : ROOM_TURN_K, call_bytes(call, outer * inner, sizeof *to)) : y;
        sum_axis(call, d, from, outer, x->dim[d], inner, to);
        from = to;
    }
    if (from != y && inner > 0)
        memcpy(y, from, (size_t)inner * sizeof *y);
}
