/* sketch: a graph that grows node by node, with data in every value.
 *
 * Whatever a node is added for is computed at once, by the op's own kernel, in nine lanes: from the operands, and from operands that are
 * off by what rounding in another order may do, up or down by the place of an element, so that neighbours are moved apart and together. So
 * what is legal, bounded and well conditioned is measured and not derived: a node whose results are not finite, are large, or depend on
 * rounding (a comparison near a tie, an ArgMax between equals, a quotient near zero) is not added, and whoever wanted it gets NULL. Two
 * plans of the graph may then differ by no more than rounding does.
 *
 * Integral values are integers in every lane: ops of the class `exact` keep them so, and no plan may change a bit of them. */
#ifndef TPC_TESTS_SKETCH_H
#define TPC_TESTS_SKETCH_H

#include "kern/kern.h"
#include "tests/graphs/draws.h"

enum { LANES = 9, POOL = 6, SKETCH_ELEMENTS = 4096 };

struct item {
    struct tensor lane[LANES];
    bool there;         /* has data: an input, a constant, or the result of a node that was added */
    bool integral;      /* integers, the same in every lane */
    bool infinite;      /* a mask that is meant to hold -inf: only what asked for it reads it */
    double least, most; /* of finite elements of lane 0; 0 and 0 where there are none */
    int uses;
};
struct sketch {
    struct arena *arena;
    struct graph *g;
    struct draws *draws;
    struct kenv *env;
    struct bindings bind;         /* sizes of this run */
    bool exact;                   /* integers only, by ops that keep them exact */
    bool infinite;                /* results may be -inf */
    const struct dim *pool[POOL]; /* dimensions that values are made of */
    int npool;
    VEC(struct item) items; /* by value id */
    int *made;              /* by row of the op table: nodes added */
};
struct sketch *sketch_new(struct arena *, struct draws *, bool exact);
void sketch_free(struct sketch *);

/* What a new tensor holds. */
enum content { FLOATS, INTEGERS, COINS };
struct fill {
    enum content what;
    double lo, hi;
}; /* floats and integers of [lo, hi] */
/* What values of this type hold where nothing else is asked for. */
struct fill sketch_fill(struct sketch *, enum dtype);
struct value *sketch_input(struct sketch *, const struct type *, struct fill);
/* All dimensions are integers. */
struct value *sketch_const(struct sketch *, const struct type *, struct fill);
struct value *sketch_scalar(struct sketch *, enum dtype, double);
struct value *sketch_ints(struct sketch *, int n, const int64_t *at);

/* ---- nodes --------------------------------------------------------------------------------------------------------------------------- */
/* A node with attributes at their defaults, not added. NULL where a needed operand is NULL; optional ones may be. */
struct node *sketch_node(struct sketch *, const struct op *, int nin, struct value *const *in, int nout);
/* Adds it and gives its first result, or NULL: not added. type: of results that the op doesn't tell (Reshape), else NULL. */
struct value *sketch_add(struct sketch *, struct node *, const struct type *);
/* Standard op with one result and default attributes. */
struct value *sketch_op(struct sketch *, const char *op, int nin, struct value *const *in);
struct value *sketch_op1(struct sketch *, const char *op, struct value *);
struct value *sketch_op2(struct sketch *, const char *op, struct value *, struct value *);
void set_float(struct node *, const char *attr, double);
/* A DIMS attribute of integers. */
void set_sizes(struct sketch *, struct node *, const char *attr, int n, const int64_t *);

/* ---- choosing operands ------------------------------------------------------------------------------------------------------- */
enum sort { SORT_FLOAT, SORT_INT, SORT_BOOL, SORT_NUMBER, SORT_ANY }; /* int: i64; number: float or int */
/* A result or input with least to most dimensions: one that there is, or a new input. */
struct value *sketch_pick(struct sketch *, enum sort, int least, int most);
/* A value of just this type: one that there is, a new constant (only then may its size be static) or a new input. */
struct value *sketch_like(struct sketch *, enum dtype, int rank, const struct dim *const *dim);
const struct dim *sketch_dim(struct sketch *);                  /* of the pool */
const struct dim *sketch_static(struct sketch *);               /* an integer */
int64_t sketch_size(const struct sketch *, const struct dim *); /* in this run */
struct item *sketch_item(const struct sketch *, const struct value *);
double sketch_get(const struct tensor *, int64_t i);
struct type sketch_type(enum dtype, int rank, const struct dim *const *dim);

#endif
