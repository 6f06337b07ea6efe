/* kernel.h: what tests of kernels share: a graph for their nodes, tensors, and a call. */
#ifndef TPC_TEST_KERNEL_H
#define TPC_TEST_KERNEL_H

#include "kern/kern.h"
#include "op/op.h"
#include "tests/unit/main.h"

#include <string.h>

static struct arena *arena;
static struct graph *graph;
static struct kenv *env;

static void setup(void)
{
    arena = arena_new();
    graph = graph_new(arena, alg_new(arena), "test");
    env = kenv_new(2, false);
}

static void teardown(void)
{
    kenv_free(env);
    arena_free(arena);
}

#define DIMS(...)                                        \
    COUNT(((int64_t[]){__VA_ARGS__})), (const int64_t[]) \
    {                                                    \
        __VA_ARGS__                                      \
    }
#define IN(...)                                                      \
    COUNT(((struct tensor[]){__VA_ARGS__})), (const struct tensor[]) \
    {                                                                \
        __VA_ARGS__                                                  \
    }

/* data NULL: zeros. */
static inline struct tensor tensor_new(enum dtype dtype, int rank, const int64_t *dim, const void *data)
{
    struct tensor t = {.dtype = dtype, .rank = rank};
    if (rank)
        memcpy(t.dim, dim, (size_t)rank * sizeof *dim);
    t.data = arena_alloc(arena, tensor_bytes(&t) + 64);
    if (data && tensor_bytes(&t))
        memcpy(t.data, data, tensor_bytes(&t));
    return t;
}

static inline struct node *node_new(const char *domain, const char *op)
{
    ck_assert(op_find(domain, op) != NULL);
    return graph_node(graph, op_find(domain, op), op, 0, NULL, 1);
}

static inline void run_constant(struct node *node, int nin, const struct tensor *in, struct tensor *out, const bool *constant, void **cache)
{
    struct kcall call = {
        .node = node, .graph = graph, .nin = nin, .nout = 1, .in = in, .out = out, .env = env, .in_constant = constant, .cache = cache};
    node->op->kernel(&call);
}

static inline void run(struct node *node, int nin, const struct tensor *in, struct tensor *out)
{
    run_constant(node, nin, in, out, NULL, NULL);
}

#endif
