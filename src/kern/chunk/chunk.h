/* kern/chunk: for --deterministic, adds numbers in one fixed order of chunks (blocks of indices), so that a sum has the same bits however
 * ranks and threads divide it. */
#ifndef TPC_KERN_CHUNK_H
#define TPC_KERN_CHUNK_H

#include "kern/kern.h"

/* ---- chunk.c: sums independent of their split into partial sums ------------------------------------------------ */
/* A contracted dimension is summed in chunks, aligned blocks of its global indices, each from left to right. The sums of chunks 2i and 2i +
 * 1 are added, the sums of such pairs likewise, and so on; a sum without a neighbour moves up unchanged. A rank adds up the largest
 * complete subtrees of its chunks: its partials. The partials of all ranks are added in the same order, which gives the same bits as on one
 * rank alone. */
struct subtree {
    int level;
    int64_t index;
}; /* chunks [index << level, (index + 1) << level) */
bool subtree_before(const struct subtree *, const struct subtree *);
int64_t chunk_width(int64_t n); /* of a dimension of n indices */
struct stretch {
    int64_t from, lo, hi;
}; /* indices [lo, hi), stored from local index `from` on */
/* The index ranges of held intervals in local order, sorted by lo; returns their number. out: n entries. */
int chunk_stretches(int n, const struct interval *held, struct stretch *out);
/* width: indices per chunk; unit: numbers per index of a stretch; whole: everything is held, and the only partial is the sum. Stretches end
 * at chunk boundaries, or a unit is whole chunks. at NULL: `all` is the only stretch. */
struct chunks {
    int64_t width, unit;
    bool whole;
    int n;
    const struct stretch *at;
    struct stretch all;
};
/* Their partials, in order; returns their number. out NULL: only counts. */
int chunk_partials(const struct chunks *, struct subtree *out);
/* out = the sum of partials of n numbers each, f32 or f64, whose subtrees are in ascending order and cover the dimension. */
void chunk_add(const struct subtree *, const void *const *in, int nin, enum dtype, int64_t n, void *out);
/* A rank's part of a contracted dimension of `size` indices, and how partials of all ranks are summed. */
struct share {
    int axis; /* of the first operand */
    int64_t size;
    int n;
    const struct stretch *at;
    void (*complete)(const struct share *, const struct chunks *, enum dtype, const void *partials, int64_t n, void *out);
};

/* ---- the walk over chunks, for kernels that sum --------------------------------------------------------------------------- */
/* A stack of subtrees whose right neighbours are still to come: levels fall from bottom to top. */
enum { TREE_DEPTH = 64 };
struct tree {
    int depth;
    struct subtree at[TREE_DEPTH];
};

/* Pushes a subtree; returns how many subtrees are added to it, from the top of the stack down. */
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

/* At the right end of the dimension, no subtree gets a neighbour. Returns the number of additions that join the rest. */
static inline int tree_join(struct tree *t)
{
    int merges = t->depth - 1;
    t->depth = 1;
    return merges;
}

/* Sum `count` numbers from local index `from` into slot; then add the top slot to the one below it, `merges` times; then the lowest `emit`
 * slots are partials, in ascending order. */
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

/* After a step that emits, once the partials have been read. */
static inline void chunk_emitted(struct chunk_walk *w)
{
    w->tree.depth = 0;
}

/* ---- chunk.c ---- */
/* This rank's part of its contracted dimension: k numbers, `unit` of them per index of call->share. */
struct chunks chunks_of(const struct kcall *, int64_t k, int64_t unit);
/* Memory for partials of n results each, f32 or f64: `out` if everything is held here, else ROOM_PARTIALS. */
void *chunk_room(struct kcall *, const struct chunks *, enum dtype, int64_t n, void *out);
/* Completes the sums from these partials and those of other ranks. */
void chunk_complete(const struct kcall *, const struct chunks *, enum dtype, const void *partials, int64_t n, void *out);
/* x[0] + ... + x[n - 1], with chunks of one number. */
float chunk_sum_f32(const float *x, int64_t n);
double chunk_sum_f64(const double *x, int64_t n);

/* chunk_reduce.c: y = sums of the call's operand, f64 or floats as f32, over the marked axes. Uses ROOM_A, ROOM_TURN_Q, ROOM_TURN_K. */
void chunk_reduce(struct kcall *, const bool *reduced, void *y);

/* ---- chunk_gemm.c ---- */
/* A right operand [k, n], read TILE columns at a time. */
struct right {
    /* Columns from .. from + count as [k, TILE], with arbitrary values in missing columns: in `room`, which has space for two panels, or in
     * place if they are stored like this. */
    const float *(*panel)(const struct right *, int64_t from, int64_t count, float *room);
    int64_t k;
    const void *at;
    int64_t row, column; /* strides of a matrix */
};
struct right right_strided(const float *at, int64_t k, int64_t row, int64_t column);
/* Partials of c[m, n] = a[m, k] right, the first at c, each next one partial_step later. */
struct chunk_product {
    const struct chunks *chunks;
    int64_t m, n;
    const float *a;
    int64_t a_row;
    const struct right *right;
    float *c;
    int64_t c_row, partial_step;
};
/* Runs on all threads. Uses ROOM_PANELS. */
void chunk_product(struct kcall *, const struct chunk_product *);
/* Runs on this thread alone; room: 2 * k * TILE floats. */
void chunk_product_here(const struct chunk_product *, float *room);

#endif
