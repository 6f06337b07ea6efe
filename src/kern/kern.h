/* kern: what an op computes. Kernels work on dense row-major tensors and a node's attributes; they know no plan and no rank. The caller
 * handles dispatch, shapes and memory: outputs come with dims set and data allocated. Sums are accumulated in float32 (float64 for f64)
 * whatever the storage; -inf, NaN and fully masked rows behave as in the unfused standard ops. */
#ifndef TPC_KERN_H
#define TPC_KERN_H

#include "ir/ir.h"

struct tensor {
    enum dtype dtype;
    int rank;
    int64_t dim[MAX_RANK];
    void *data;   /* NULL: absent optional operand */
    bool packed;  /* of 2 or 4 bits: elements share bytes, as in constants. Only ops with flag OP_PACKED get such operands */
    int axis;     /* room > 0: memory has space for `room` places along this axis, of which dim[axis] are used, so that a */
    int64_t room; /* state grows in place. Only ops with flag OP_CAPACITY and Chains get such operands. 0: dense */
};
int64_t tensor_elements(const struct tensor *);
size_t tensor_bytes(const struct tensor *);
/* With one byte per element: the tensor itself, unless it is packed. */
struct tensor tensor_unpacked(struct arena *, const struct tensor *);
/* The texts of a tensor of strings, concatenated, each with its NUL; and the string numbers of n such texts. False: they are not n. */
char *tensor_texts(struct arena *, const struct tensor *, int64_t *bytes);
bool tensor_take_texts(struct tensor *, const char *texts, int64_t bytes);
uint64_t tensor_digest(struct arena *, const struct tensor *); /* of the bytes, or of the texts */
/* Strides of every dimension, in elements. */
void tensor_strides(const struct tensor *, int64_t *stride);

/* Per rank, made once: threads, scratch that only grows, packed weights, oneDNN engine. */
struct kenv;
struct kenv *kenv_new(int threads, bool deterministic);
/* Shares the environment with one more graph: it is freed after one kenv_free per graph. */
struct kenv *kenv_share(struct kenv *);
void kenv_free(struct kenv *);
int kenv_threads(const struct kenv *);
/* Allows products to round their operands to bf16: this processor multiplies it faster than float32 (dnnl_narrows). */
void kenv_narrow(struct kenv *);
bool kenv_narrows(const struct kenv *);
/* The same for large products of two computed operands and attention only: for a graph with bf16 weights. */
void kenv_narrow_computed(struct kenv *);
bool kenv_narrows_computed(const struct kenv *);
bool kenv_deterministic(const struct kenv *);    /* sums as below; nothing depends on the number of threads or rows */
void *kenv_scratch(struct kenv *, size_t bytes); /* valid until the next call of the same kernel; zero bytes give a valid pointer */

struct share; /* kern/chunk/chunk.h */
/* This rank's hidden units of a recurrent net: n intervals of all of them, in local order. */
struct units {
    int n;
    const struct interval *at;
    /* Gathers all units of these rows from each rank's own. */
    void (*gather)(const struct units *, int64_t rows, const float *const *own, float *const *all);
};

struct kcall {
    const struct node *node;   /* for attributes only: attr_int(call->node, "axis") */
    const struct graph *graph; /* for node_where in messages and attr_ints */
    int nin, nout;
    const struct tensor *in; /* operands by position in the node; folded shape operands may be missing: see dims */
    struct tensor *out;
    const bool *in_constant;     /* operand is a weight: may be packed and cached in cache; NULL: none */
    void **cache;                /* one slot per node, kept between calls, freed by kenv_free; NULL: no caching */
    const struct bindings *bind; /* values of symbols, for DIMS attributes (kcall_dims) */
    const struct share *share;   /* deterministic: the contracted dimension is sharded; NULL: it is not */
    const struct units *units;   /* a recurrent net with split hidden units; NULL: not split */
    struct kenv *env;
};
/* A DIMS attribute evaluated for this call; returns the count. An unbound symbol is a bug(). */
int kcall_dims(const struct kcall *, const char *attr, int64_t *out, int max);

/* Runs the node's kernel, unless all its results are empty: with a dimension of size 0, the others may be arbitrarily large. */
void kern_run(struct kcall *);
/* Packs the constant operands that this call's kernel would pack in its first run; only constant operands need data. Returns, as bits, the
 * operands that the kernel will not read any more. */
unsigned kern_pack(struct kcall *);

/* version.c: the version of the linked oneDNN; the OpenMP of the compiler and its library. */
const char *kern_library(void);
const char *kern_openmp(void);

/* Each kernel is void kern_NAME(struct kcall *); schemas/ops.def declares them all, in kern/table.h by macro. A kernel that calls a
 * function common to several ops: */
#define KERNEL_IS(name, is)              \
    void kern_##name(struct kcall *call) \
    {                                    \
        is;                              \
    }

#endif
