/* kern/chunk: for --deterministic, adds numbers in one fixed order of chunks (blocks of indices), so that a sum has the same bits however
 * ranks and threads share it. */
#ifndef TPC_KERN_CHUNK_H
#define TPC_KERN_CHUNK_H

#include "kern/kern.h"

/* ---- chunk.c: sums that do not depend on how they are split into partial sums ------------------------------------------------ */
/* A contracted dimension is summed in chunks, aligned blocks of its global indices, each from left to right. The sums of chunks 2i and
 * 2i + 1 are added, the sums of such pairs likewise, and so on; a sum without a neighbour goes up as it is. A rank that holds some
 * chunks adds up the largest complete subtrees among them: its partials. From the partials of all ranks the sum is completed in the same
 * order, to the same bits that one rank alone computes. */
struct subtree {
    int level;
    int64_t index;
}; /* chunks [index << level, (index + 1) << level) */
bool subtree_before(const struct subtree *, const struct subtree *);
int64_t chunk_width(int64_t n); /* of a dimension of n indices */
struct stretch {
    int64_t from, lo, hi;
}; /* indices [lo, hi), held from local index `from` on */
/* Of held intervals in local order, by ascending lo; returns how many. out: room for n. */
int chunk_stretches(int n, const struct interval *held, struct stretch *out);
/* width: numbers in a chunk; unit: numbers for each index that a stretch counts; whole: all is held, and the only partial is the sum.
 * Bounds of stretches lie on chunks, or a unit is whole chunks. at NULL: `all` is the only stretch. */
struct chunks {
    int64_t width, unit;
    bool whole;
    int n;
    const struct stretch *at;
    struct stretch all;
};
/* Their partials, in order; returns how many. out NULL: only counts. */
int chunk_partials(const struct chunks *, struct subtree *out);
/* out = the sum of partials of n numbers each, f32 or f64, whose subtrees are in ascending order and cover the dimension. */
void chunk_add(const struct subtree *, const void *const *in, int nin, enum dtype, int64_t n, void *out);
/* What a rank holds of a contracted dimension of `size` indices, and how its partials and those of the others are summed. */
struct share {
    int axis; /* of the first operand */
    int64_t size;
    int n;
    const struct stretch *at;
    void (*complete)(const struct share *, const struct chunks *, enum dtype, const void *partials, int64_t n, void *out);
};

/* ---- the walk over chunks, for what sums them --------------------------------------------------------------------------- */
/* Subtrees whose right neighbours are still to come, on a stack: levels fall from bottom to top. */
enum { TREE_DEPTH = 64 };
struct tree {
    int depth;
    struct subtree at[TREE_DEPTH];
};

/* Puts a subtree behind those on its left; returns how many of them are added to it, from the top of the stack down. */
static inline int tree_push(struct tree *t, struct subtree s)
{
    int merges = 0;
    while (s.index & 1 && t->depth && t->at[t->depth - 1].level == s.level && t->at[t->depth - 1].index == s.index - 1) {
        t->depth--;
        merges++;
        s = (struct subtree){s.level + 1, s.index >> 1};
    }
    t->at[t->depth++] = s;
    return merges;
}

/* At the right end of the dimension no subtree gets another neighbour. Returns how many additions join what is left. */
static inline int tree_join(struct tree *t)
{
    int merges = t->depth - 1;
    t->depth = 1;
    return merges;
}

/* Sums `count` numbers from local index `from` into slot; then, `merges` times, add the top slot to the one below it; then the lowest
 * `emit` slots are partials, in ascending order. */
struct chunk_step {
    int64_t from, count;
    int slot, merges, emit;
};
struct chunk_walk {
    const struct chunks *chunks;
    int stretch;
    int64_t next;
    struct tree tree;
};

static inline bool chunk_next(struct chunk_walk *w, struct chunk_step *s)
{
    const struct chunks *c = w->chunks;
    if (w->stretch == c->n)
        return false;
    const struct stretch *held = c->at ? &c->at[w->stretch] : &c->all;
    int64_t first = held->lo * c->unit, end = held->hi * c->unit, lo = w->next > first ? w->next : first;
    int64_t hi = end - lo > c->width ? lo + c->width : end;
    *s = (struct chunk_step){.from = held->from * c->unit + lo - first, .count = hi - lo, .slot = w->tree.depth};
    s->merges = tree_push(&w->tree, (struct subtree){0, lo / c->width});
    w->next = hi;
    w->stretch += hi == end;
    if (hi == end && c->whole)
        s->merges += tree_join(&w->tree);
    if (hi == end || w->tree.at[0].index & 1)
        s->emit = w->tree.depth;
    return true;
}

/* After a step that emits, when the partials have been read. */
static inline void chunk_emitted(struct chunk_walk *w)
{
    w->tree.depth = 0;
}

/* ---- chunk.c ---- */
/* What this call's rank holds of its contracted dimension: k numbers, `unit` of them for every index that call->share counts. */
struct chunks chunks_of(const struct kcall *, int64_t k, int64_t unit);
/* Scratch for the partials of n results each, f32 or f64: `out` where all is held here, else ROOM_PARTIALS. */
void *chunk_room(struct kcall *, const struct chunks *, enum dtype, int64_t n, void *out);
/* From these partials and those of other ranks to the sums. */
void chunk_complete(const struct kcall *, const struct chunks *, enum dtype, const void *partials, int64_t n, void *out);
/* x[0] + ... + x[n - 1] as chunks of one number. */
float chunk_sum_f32(const float *x, int64_t n);
double chunk_sum_f64(const double *x, int64_t n);

/* chunk_reduce.c: y = sums of the call's operand, f64 or floats made f32, over the marked axes. Uses ROOM_A, ROOM_TURN_Q, ROOM_TURN_K. */
void chunk_reduce(struct kcall *, const bool *reduced, void *y);

/* ---- chunk_gemm.c ---- */
/* A right operand [k, n], TILE columns at a time. */
struct right {
    /* Columns from .. from + count as [k, TILE], whatever is behind them: in room for two of these, or where they lie like that
     * already. */
    const float *(*panel)(const struct right *, int64_t from, int64_t count, float *room);
    int64_t k;
    const void *at;
    int64_t row, column; /* steps of a matrix anywhere in memory */
};
struct right right_strided(const float *at, int64_t k, int64_t row, int64_t column);
/* Partials of c[m, n] = a[m, k] right, the first at c, the next partial_step behind it. */
struct chunk_product {
    const struct chunks *chunks;
    int64_t m, n;
    const float *a;
    int64_t a_row;
    const struct right *right;
    float *c;
    int64_t c_row, partial_step;
};
/* All threads take part. Uses ROOM_PANELS. */
void chunk_product(struct kcall *, const struct chunk_product *);
/* On this thread alone; room: for 2 * k * TILE numbers. */
void chunk_product_here(const struct chunk_product *, float *room);

#endif
