/* kern: what an op computes. Kernels work on dense row-major tensors and attributes; they know no graph, no plan and no rank.
 * Dispatch, shapes and memory are the caller's: outputs come with dims set and data allocated. Sums are accumulated in float32 (float64
 * for f64) whatever the storage; -inf, NaN and fully masked rows behave as the unfused standard ops do. */
#ifndef TPC_KERN_H
#define TPC_KERN_H

#include "ir/ir.h"

struct tensor {
    enum dtype dtype;
    int rank;
    int64_t dim[MAX_RANK];
    void *data;   /* NULL: absent optional operand */
    int axis;     /* room > 0: memory holds room places along this axis, dim[axis] of which are in use, so that a */
    int64_t room; /* state grows in place. Only ops of flag OP_STEPS see such operands. 0: dense */
};
int64_t tensor_elements(const struct tensor *);
size_t tensor_bytes(const struct tensor *);
/* Distance of neighbours along every dimension, in elements. */
void tensor_strides(const struct tensor *, int64_t *stride);

/* Per rank, made once: threads, scratch that only grows, packed weights, oneDNN engine. */
struct kenv;
struct kenv *kenv_new(int threads, bool deterministic);
void kenv_free(struct kenv *);
int kenv_threads(const struct kenv *);
bool kenv_deterministic(const struct kenv *);    /* sums as below, and nothing else depends on the number of threads or of rows */
void *kenv_scratch(struct kenv *, size_t bytes); /* valid until the next call of the same kernel; zero bytes gives a valid pointer */

/* ---- chunk.c: sums that are the same however their terms are dealt to ranks, rows and threads ----------------------------------
 * A contracted dimension is summed in chunks, aligned blocks of its global indices, each from left to right. The sums of chunks 2i and
 * 2i + 1 are added, the sums of such pairs likewise, and so on; what has no neighbour goes up as it is. A rank that holds some chunks adds
 * up the largest subtrees among them, its terms; who has the terms of all ranks goes on from there, to the bits that one rank alone gets.
 */
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
/* width: numbers in a chunk; unit: numbers for each index that a stretch counts; whole: all is held, and the only term is the sum. Bounds
 * of stretches lie on chunks, or a unit is whole chunks. at NULL: `all` is the only stretch. */
struct chunks {
    int64_t width, unit;
    bool whole;
    int n;
    const struct stretch *at;
    struct stretch all;
};
/* The terms that are made of them, in order; returns how many. out NULL: only counts. */
int chunk_terms(const struct chunks *, struct subtree *out);
/* out = the sum of terms of n numbers each, f32 or f64, whose subtrees are in ascending order and cover the dimension. */
void chunk_add(const struct subtree *, const void *const *in, int nin, enum dtype, int64_t n, void *out);
/* What a rank holds of a contracted dimension of `size` indices, and what makes sums of its terms and those of the others. */
struct share {
    int axis; /* of the first operand */
    int64_t size;
    int n;
    const struct stretch *at;
    void (*complete)(const struct share *, const struct chunks *, enum dtype, const void *terms, int64_t n, void *out);
};

struct kcall {
    const struct node *node;   /* for attributes only: attr_int(call->node, "axis") */
    const struct graph *graph; /* for node_where in messages and attr_ints */
    int nin, nout;
    const struct tensor *in; /* operands in the node's positions; folded shape operands may be missing: see dims */
    struct tensor *out;
    const bool *in_constant;     /* operand is a weight: may be packed and cached in cache; NULL: none is */
    void **cache;                /* one slot per node, kept between calls, freed by kenv_free; NULL: no caching */
    const struct bindings *bind; /* values of symbols, for DIMS attributes (call_dims) */
    const struct share *share;   /* deterministic: the contracted dimension is dealt to ranks; NULL: all of it is here */
    struct kenv *env;
};
/* A DIMS attribute evaluated for this call; returns the count. An unbound symbol is a bug(). */
int call_dims(const struct kcall *, const char *attr, int64_t *out, int max);

/* Packs the constant operand that this call's kernel would pack at its first run; only constant operands need data. Returns that operand
 * when the kernel will not read it any more, else -1. */
int kern_pack(struct kcall *);

/* version.c: the version of oneDNN that is linked; the OpenMP that was compiled for and the library that serves it. */
const char *kern_library(void);
const char *kern_openmp(void);

/* Each kernel is void kern_NAME(struct kcall *); schemas/ops.def declares them all (kern/table.h is made from it by macro). */

#endif
