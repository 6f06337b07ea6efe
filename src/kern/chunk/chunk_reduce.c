/* chunk_reduce: sums along axes in deterministic mode, axis by axis from the last, each along the tree of its indices. Results are summed
 * in blocks, so that additions are vector additions whether the axis is the innermost or not. */
#include "kern/chunk/chunk.h"
#include "kern/core/core.h"

#include <string.h>

enum { BLOCK = 256 };

struct axis_sum {
    const struct chunks *chunks;
    enum dtype dtype;
    const void *x;
    int64_t n, inner;
    void *y;
    int64_t results;
};

#define SUM_RESULTS(T, name)                                                           \
    static SIMD void add_##name(T *sum, const T *x, int64_t n)                         \
    {                                                                                  \
        LOOP for (int64_t i = 0; i < n; i++) sum[i] += x[i];                           \
    }                                                                                  \
    static void take_##name(const T *x, const int64_t *at, int64_t n, T *to)           \
    {                                                                                  \
        for (int64_t i = 0; i < n; i++)                                                \
            to[i] = x[at[i]];                                                          \
    }                                                                                  \
    static void sum_##name(const struct axis_sum *a, int64_t first, int64_t count)     \
    {                                                                                  \
        T slot[TREE_DEPTH][BLOCK], *y = (T *)a->y + first;                             \
        int64_t at[BLOCK];                                                             \
        struct chunk_walk w = {.chunks = a->chunks};                                   \
        struct chunk_step s;                                                           \
        for (int64_t i = 0; i < count; i++)                                            \
            at[i] = (first + i) / a->inner * a->n * a->inner + (first + i) % a->inner; \
        if (a->chunks->whole && a->chunks->n == 0)                                     \
            memset(y, 0, (size_t)count * sizeof *y);                                   \
        while (chunk_next(&w, &s)) {                                                   \
            take_##name((const T *)a->x + s.from * a->inner, at, count, slot[s.slot]); \
            for (int i = 0; i < s.merges; i++)                                         \
                add_##name(slot[s.slot - i - 1], slot[s.slot - i], count);             \
            for (int i = 0; i < s.emit; i++, y += a->results)                          \
                memcpy(y, slot[i], (size_t)count * sizeof *y);                         \
            if (s.emit)                                                                \
                chunk_emitted(&w);                                                     \
        }                                                                              \
    }
SUM_RESULTS(float, f32)
SUM_RESULTS(double, f64)

/* Blocks lo..hi. */
static void sum_range(void *data, int64_t lo, int64_t hi)
{
    const struct axis_sum *a = data;
    for (int64_t i = lo; i < hi; i++) {
        int64_t left = a->results - i * BLOCK;
        (a->dtype == DT_F64 ? sum_f64 : sum_f32)(a, i * BLOCK, left < BLOCK ? left : BLOCK);
    }
}

/* Sums of x[outer, n, inner] over its middle dimension, which is `axis` of the call's operand. */
static void sum_axis(struct kcall *call, int axis, enum dtype t, const void *x, int64_t outer, int64_t n, int64_t inner, void *y)
{
    bool sharded = call->share && call->share->axis == axis;
    struct chunks chunks = {.width = 1, .unit = 1, .whole = true, .n = n > 0, .all = {0, 0, n}};
    if (sharded) {
        chunks = chunks_of(call, n, 1);
        chunks.width = 1;
    }
    struct axis_sum a = {&chunks, t, x, n, inner, chunk_room(call, &chunks, t, outer * inner, y), outer * inner};
    kenv_parallel_for(call->env, (outer * inner + BLOCK - 1) / BLOCK, 2 * n * BLOCK, sum_range, &a);
    chunk_complete(call, &chunks, t, a.y, outer * inner, y);
}

void chunk_reduce(struct kcall *call, const bool *reduced, void *y)
{
    const struct tensor *x = &call->in[0];
    enum dtype t = x->dtype == DT_F64 ? DT_F64 : DT_F32;
    const void *from = t == DT_F64 ? x->data : tensor_f32(call->env, x, ROOM_A);
    int64_t inner = 1;
    int left = 0;
    for (int d = 0; d < x->rank; d++)
        left += reduced[d];
    for (int d = x->rank - 1; d >= 0; d--) {
        int64_t outer = tensor_dims_product(x->dim, 0, d);
        if (!reduced[d]) {
            inner *= x->dim[d];
            continue;
        }
        void *to = --left ? kenv_room(call->env, left & 1 ? ROOM_TURN_Q : ROOM_TURN_K, kcall_bytes(call, outer * inner, dtype_size(t))) : y;
        sum_axis(call, d, t, from, outer, x->dim[d], inner, to);
        from = to;
    }
    if (from != y && inner > 0)
        memcpy(y, from, (size_t)inner * dtype_size(t));
}
