/* backward: writes the gradients of an op's operands, given those of its results.
 *
 * The gradient of a value has its type. A row's function gets the gradients of the node's results and writes those of the wanted operands,
 * by the functions of op/lower/lower.h: ordinary ops on global values. So the backward pass has the rules, costs and lowerings of ordinary
 * ops, and its collectives follow from placements as usual. */
#ifndef TPC_OP_BACKWARD_H
#define TPC_OP_BACKWARD_H

#include "op/lower/lower.h"

struct backward {
    struct lowering l;       /* node: the op's own; nodes: the body so far */
    struct value *const *dy; /* for each result; NULL: zero */
    const bool *want;        /* for each operand */
    struct value **dx;       /* for each operand, set by back_to; NULL: zero */
};
/* For the first result. */
struct value *back_dy(const struct backward *);
/* The operand, or NULL. */
struct value *back_operand(const struct backward *, int i);
/* Result i; adds it if the node lacks it. */
struct value *back_result(struct backward *, int i);
bool back_wants(const struct backward *, int i);
/* Sets the gradient of operand i, summed over the dimensions that the op broadcasts, in the operand's type; does nothing if it is not
 * wanted. */
void back_to(struct backward *, int i, struct value *);

/* Parts of the body, named after their op; numbers have the type of x. */
/* A node whose attributes are set before it is inferred; its result. */
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
/* Swaps the last two dimensions. */
struct value *back_turn(struct backward *, struct value *);
struct value *back_sum(struct backward *, struct value *, int from, int to, bool keep);
/* The identity matrix of n rows. A linear op along one dimension, applied to it, gives the op's matrix: [elements, places]. */
struct value *back_unit(struct backward *, const struct dim *n, enum dtype);
/* Multiplies a gradient along dimension d by the matrix m, [elements, places], to get the elements' gradient. */
struct value *back_along(struct backward *, struct value *, int d, struct value *m);

/* formula.c: the gradient of operand 0, in terms of x and z (operands 0 and 1), y (result 0) and dy: "s = Sigmoid(x); dy * (s * (1 - s))".
 * Calls are ops; @alpha is an attribute; x > 0 ? 1 : y selects by element. After | comes the gradient of operand 1; unwanted gradients are
 * not computed. */
void back_formula(struct backward *, const char *text);
/* backward_NAME, for ops.def, by a call or a formula. */
#define BACK_IS(name, is)                    \
    void backward_##name(struct backward *b) \
    {                                        \
        is;                                  \
    }
#define BACK_TEXT(name, text) BACK_IS(name, back_formula(b, text))

/* The gradient of a body of ordinary ops that computes the node's results, like a lowering; the body is recomputed. */
void back_through(struct backward *, void (*write)(struct lowering *));

/* objective.c: appends the loss: "cross-entropy" (also NULL), "mse", "l1", "bce", or an output of one number, and its inputs. sum: over all
 * labels; count: their number; of: the output whose elements they count, each separately; NULL: unknown. */
struct objective {
    struct value *sum, *count, *of;
};
struct objective objective_append(struct lowering *, const char *kind);

/* walk.c: gradients of many nodes. */
struct gradients {
    struct graph *g;
    int values;         /* number of values of the graph before the walk: these have an entry in `of` */
    struct value **of;  /* by value id; NULL: zero so far */
    bool *active;       /* by value id: depends on a trained value */
    const char *suffix; /* of the names of new nodes */
    struct nodes made;  /* in order */
};
/* Nothing is active yet. */
struct gradients gradients_new(struct graph *, const char *suffix);
/* Marks float results of nodes with active operands as active. */
void gradients_activate(struct gradients *, int n, struct node *const *);
/* Fails, with the node's name, if no gradient passes it. */
void gradients_check(const struct graph *, const struct node *);
/* Adds a contribution. */
void gradients_add(struct gradients *, const struct value *, struct value *contribution);
/* From the last node to the first. Fails, with its name, at a node without a gradient. */
void gradients_walk(struct gradients *, int n, struct node *const *);

/* reach.c: what gradients go back to. */
/* Whether the operand is computed or measured beforehand, or only gives sizes: angles and tables of their sines, statistics, scales. */
bool gradients_given(const struct node *, int operand);
/* By value id: whether some path to a root avoids such operands and is differentiable. */
bool *gradients_reach(const struct graph *, int n, const struct value *const *root);

/* recompute.c: in a graph of gradients, whose first output is the loss, lets the backward pass recompute what it reads of the forward pass,
 * except for a few values (--recompute). */
void recompute_forward(struct graph *);

#endif
