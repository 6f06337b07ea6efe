/* backward: writes the gradients of an op's operands, given those of its results.
 *
 * The gradient of a value has its type. A row's function is given the gradients of the node's results and writes those of the operands
 * that are wanted, by the makers of op/lower/lower.h: ordinary ops on global values. So rules, costs and lowerings of the backward half are
 * those of the ops in it, and its collectives follow from placements as anywhere else. */
#ifndef TPC_OP_BACKWARD_H
#define TPC_OP_BACKWARD_H

#include "op/lower/lower.h"

struct backward {
    struct lowering l;       /* node: the op's own; nodes: the body so far */
    struct value *const *dy; /* of each result; NULL: zero */
    const bool *want;        /* of each operand */
    struct value **dx;       /* of each operand, to be set (back_to); NULL: zero */
};
/* Of the first result. */
struct value *back_dy(const struct backward *);
/* The operand, or NULL. */
struct value *back_operand(const struct backward *, int i);
/* Result i; where the node has none, it is asked for. */
struct value *back_result(struct backward *, int i);
bool back_wants(const struct backward *, int i);
/* The gradient of operand i, summed over the dimensions that the op broadcasts, in the operand's type; nothing if it is not wanted. */
void back_to(struct backward *, int i, struct value *);

/* Parts of the body, named after their op; numbers have the type of x. */
/* A node whose attributes are still to be set before it is inferred; its result. */
struct node *back_node(struct backward *, const char *op, int nin, struct value *const *in);
struct value *back_infer(struct backward *, struct node *);
struct value *back_unary(struct backward *, const char *op, struct value *x);
struct value *back_binary(struct backward *, const char *op, struct value *, struct value *);
struct value *back_number(struct backward *, const struct value *x, double number);
struct value *back_with(struct backward *, const char *op, struct value *x, double number); /* op(x, number) */
struct value *back_chosen(struct backward *, struct value *condition, struct value *x);     /* x or zero */
struct value *back_reshape(struct backward *, struct value *, const struct type *);
struct value *back_expand(struct backward *, struct value *, const struct type *);
struct value *back_zeros(struct backward *, const struct type *);
struct value *back_transpose(struct backward *, struct value *, const int *perm);
/* The last two dimensions exchanged. */
struct value *back_turn(struct backward *, struct value *);
struct value *back_sum(struct backward *, struct value *, int from, int to, bool keep);
/* The unit matrix of n rows. Linear ops along one dimension make of it the matrix that they are: [elements, places]. */
struct value *back_unit(struct backward *, const struct dim *n, enum dtype);
/* What dimension d contributes to the elements that the matrix m, [elements, places], takes its places from. */
struct value *back_along(struct backward *, struct value *, int d, struct value *m);

/* formula.c: the gradient of operand 0, of x and z (operands 0 and 1), y (result 0) and dy: "s = Sigmoid(x); dy * (s * (1 - s))". Calls
 * are ops; @alpha is an attribute; x > 0 ? 1 : y chooses by element. Behind | is that of operand 1; of those that are not wanted nothing is
 * made. */
void back_formula(struct backward *, const char *text);
/* backward_NAME, for ops.def, by a call or a formula. */
#define BACK_IS(name, is)                    \
    void backward_##name(struct backward *b) \
    {                                        \
        is;                                  \
    }
#define BACK_TEXT(name, text) BACK_IS(name, back_formula(b, text))

/* The gradient of a body of ordinary ops that makes the node's results, as a lowering does; the body is computed again. */
void back_through(struct backward *, void (*write)(struct lowering *));

/* objective.c: appends the loss: "cross-entropy" (also NULL), "mse", "l1", "bce", or an output of one number. Its inputs are appended, too.
 * sum: over all labels; count: their number; of: the output whose elements they count, each by itself; NULL: nothing tells. */
struct objective {
    struct value *sum, *count, *of;
};
struct objective objective_append(struct lowering *, const char *kind);

/* walk.c: gradients of many nodes. */
struct gradients {
    struct graph *g;
    int values;         /* of the graph when the walk began: those with ids below have a place in `of` */
    struct value **of;  /* by value id; NULL: zero so far */
    bool *active;       /* by value id: a trained value reaches it */
    const char *suffix; /* of the names of made nodes */
    struct nodes made;  /* in order */
};
/* Nothing is active yet. */
struct gradients gradients_new(struct graph *, const char *suffix);
/* Floats that nodes make of active values become active, too. */
void gradients_activate(struct gradients *, int n, struct node *const *);
/* A node that no gradient passes is a failure that names it. */
void gradients_check(const struct graph *, const struct node *);
/* One more contribution. */
void gradients_add(struct gradients *, const struct value *, struct value *contribution);
/* From the last node to the first. A node without a gradient on the way is a failure that names it. */
void gradients_walk(struct gradients *, int n, struct node *const *);

/* reach.c: what gradients go back to. */
/* An operand that is computed or measured beforehand, or only gives sizes: angles and tables of their sines, statistics, scales. */
bool gradients_given(const struct node *, int operand);
/* By value id: some path to a root goes through no such operand, and all along it a little change changes a little. */
bool *gradients_reach(const struct graph *, int n, const struct value *const *root);

/* recompute.c: in a graph of gradients, whose first output is the loss, the backward half computes again what it reads of the forward half,
 * but for few values (--recompute). */
void recompute_forward(struct graph *);

#endif
