/* integral: a real model that computes in integers. Every weight is -1, 0 or 1, sparse, and what would round is replaced, so that each sum
 * in the graph is exact in any order: whatever plan computes it, the outputs have the same bits, and a difference is a bug of splitting.
 *
 * The graph keeps its products, heads, masks, caches, moves and residuals. Which nodes round is found by running them: the rewriting walks
 * the graph on given inputs, node by node, by the ops' own kernels, and looks at the results. It knows no op by its name. */
#ifndef TPC_TESTS_INTEGRAL_H
#define TPC_TESTS_INTEGRAL_H

#include "kern/kern.h"
#include "tests/prove/prove.h"

struct integral {
    double largest,
        room; /* the largest magnitude of a value or of a product's sum of magnitudes, and as a part of 2^24 (f16: 2^11, bf16: 2^8) */
    int replaced, rounded, reduced; /* nodes that became another op; results that are rounded; operands of which a remainder is taken */
    int64_t elements, nonzero;      /* of the float outputs of all sets */
};
/* Rewrites a canonical graph. inputs[k]: tensors of set k, by position of g->inputs; their floats are rounded in place. A graph in which a
 * magnitude reaches what its type holds exactly is a failure that names the node. */
struct integral integral_rewrite(struct graph *g, int nset, struct tensor *const *inputs);
/* integral_weights.c: every float constant becomes -1, 0 and 1, in place of the old one. */
void integral_constants(struct graph *);
/* A constant as a tensor, which is not to be written. */
struct tensor integral_tensor(struct constant *, const char *name);
/* exact.c: prove_open of what a model, or a step of training it, becomes by that, on its own sets of inputs. */
struct prove *prove_open_integral(struct arena *, const char *path, const struct bindings *sizes, bool train, struct integral *);

#endif
