/* kern: what an op computes. Kernels work on dense row-major tensors and a node's attributes; they know no plan and no rank.
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
    bool packed;  /* of 2 or 4 bits: elements share bytes, as in constants. Only ops of flag OP_PACKED see such operands */
    int axis;     /* room > 0: memory holds room places along this axis, dim[axis] of which are in use, so that a */
    int64_t room; /* state grows in place. Only ops of flag OP_CAPACITY and Chains see such operands. 0: dense */
};
int64_t tensor_elements(const struct tensor *);
size_t tensor_bytes(const struct tensor *);
/* With a byte for each element: itself, unless it is packed. */
struct tensor tensor_unpacked(struct arena *, const struct tensor *);
/* The texts of a tensor of strings, one after another, each with its NUL; and the numbers of such texts, n elements. False: they are not n.
 */
char *tensor_texts(struct arena *, const struct tensor *, int64_t *bytes);
bool tensor_take_texts(struct tensor *, const char *texts, int64_t bytes);
uint64_t tensor_digest(struct arena *, const struct tensor *); /* of the bytes, or of the texts */
/* Distance of neighbours along every dimension, in elements. */
void tensor_strides(const struct tensor *, int64_t *stride);

/* Per rank, made once: threads, scratch that only grows, packed weights, oneDNN engine. */
struct kenv;
struct kenv *kenv_new(int threads, bool deterministic);
/* One more graph shares the environment: kenv_free frees it after one call per graph. */
struct kenv *kenv_share(struct kenv *);
void kenv_free(struct kenv *);
int kenv_threads(const struct kenv *);
/* From now on products may round their operands to bf16: this processor multiplies it faster than float32 (dnnl_narrows). */
void kenv_narrow(struct kenv *);
bool kenv_narrows(const struct kenv *);
/* The same of large products of two computed operands and of attention alone: a graph whose weights are bf16 rounds them. */
void kenv_narrow_computed(struct kenv *);
bool kenv_narrows_computed(const struct kenv *);
bool kenv_deterministic(const struct kenv *);    /* sums as below, and nothing else depends on the number of threads or of rows */
void *kenv_scratch(struct kenv *, size_t bytes); /* valid until the next call of the same kernel; zero bytes gives a valid pointer */

struct share; /* kern/chunk/chunk.h */
/* The hidden units of a recurrent net that are here: n intervals of all of them, in local order. */
struct units {
    int n;
    const struct interval *at;
    /* Every rank gives its own units of these rows, and gets all units of them. */
    void (*gather)(const struct units *, int64_t rows, const float *const *own, float *const *all);
};

struct kcall {
    const struct node *node;   /* for attributes only: attr_int(call->node, "axis") */
    const struct graph *graph; /* for node_where in messages and attr_ints */
    int nin, nout;
    const struct tensor *in; /* operands in the node's positions; folded shape operands may be missing: see dims */
    struct tensor *out;
    const bool *in_constant;     /* operand is a weight: may be packed and cached in cache; NULL: none is */
    void **cache;                /* one slot per node, kept between calls, freed by kenv_free; NULL: no caching */
    const struct bindings *bind; /* values of symbols, for DIMS attributes (kcall_dims) */
    const struct share *share;   /* deterministic: the contracted dimension is sharded; NULL: all of it is here */
    const struct units *units;   /* a recurrent net whose hidden units are split; NULL: all are here */
    struct kenv *env;
};
/* A DIMS attribute evaluated for this call; returns the count. An unbound symbol is a bug(). */
int kcall_dims(const struct kcall *, const char *attr, int64_t *out, int max);

/* Runs the node's kernel, unless all its results are empty: dimensions beside one of size 0 may be as large as they like. */
void kern_run(struct kcall *);
/* Packs the constant operands that this call's kernel would pack at its first run; only constant operands need data. Returns those that the
 * kernel will not read any more, bit i for operand i. */
unsigned kern_pack(struct kcall *);

/* version.c: the version of oneDNN that is linked; the OpenMP that was compiled for and the library that serves it. */
const char *kern_library(void);
const char *kern_openmp(void);

/* Each kernel is void kern_NAME(struct kcall *); schemas/ops.def declares them all (kern/table.h is made from it by macro). One that is a
 * call of a function for several ops: */
#define KERNEL_IS(name, is)              \
    void kern_##name(struct kcall *call) \
    {                                    \
        is;                              \
    }

#endif
