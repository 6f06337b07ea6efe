/* control: If, Loop and Scan: the types of their subgraphs, and inference over a whole graph to its fixpoint. */
#ifndef TPC_OP_CONTROL_H
#define TPC_OP_CONTROL_H

#include "ir/ir.h"

/* ---- infer_fixpoint.c ---- */
/* Infers until no new equation is found, or something is undecided (g->undecided, which it clears first). An If with a known condition
 * becomes its branch, and small nodes on static values are run. */
void op_infer_fixpoint(struct graph *);

/* ---- subgraph.c ---- */
/* A copy with its own interner, in which a non-integer size is a symbol; the symbol stands for a size of the enclosing graph, or for none:
 * sizes that a Loop carries may change between iterations. */
struct subgraph {
    struct graph *graph; /* inputs have types; captured constants are constants */
    struct graph *around;
    const struct node *node;
    int body;                                /* of the node */
    VEC(const struct dim *) inside, outside; /* by position: a symbol, and the size that it stands for */
};
struct subgraph subgraph_new(struct arena *, struct graph *around, const struct node *, int body);
/* The size of the body, in the enclosing graph; NULL: it cannot be expressed there. */
const struct dim *subgraph_leave(const struct subgraph *, const struct dim *);
/* An undecided form in the body makes the enclosing graph undecided. */
bool subgraph_is_undecided(const struct subgraph *);
/* A type of the enclosing graph, inside. */
struct type subgraph_type(struct subgraph *, const struct type *);

/* ---- control.c ---- */
/* The subgraph of a typed node, itself typed: sizes hold in every iteration. */
struct subgraph control_typed_body(struct arena *, struct graph *, const struct node *, int body);
/* The number of leading operands that choose the branch or the number of iterations. */
int control_steering_operands(const struct node *);
/* How often a subgraph runs; NULL: unknown, or at most once. */
const struct dim *control_iterations(struct graph *, const struct node *);
/* A size of a result that the types leave open: of an If, the larger one of both branches; of a carried value, the first one. NULL:
 * none. */
const struct dim *control_size_guess(struct graph *, const struct node *, int result, int d);
/* For a Scan: the number of scanned operands before the captures; the axis from an attribute, default 0; the direction. */
int control_scan_inputs(const struct graph *, const struct node *);
int control_scan_axis(const struct graph *, const struct node *, const char *attr, int i, int rank);
bool control_scan_backwards(const struct graph *, const struct node *, const char *attr, int i);
/* ---- branch.c ---- */
/* Fail if the node has too few operands before the captures (a text form may have any number), or its body other inputs or too few outputs.
 */
void control_check_operands(const struct graph *, const struct node *, int least);
void control_check_inputs(const struct graph *, const struct node *, int body, int expected);
void control_check_outputs(const struct graph *, const struct node *, int body, int least);
/* For an If with a known condition: appends the nodes of its branch to *out; they make its results. False: another node, or an unknown
 * condition. */
bool control_take_branch(struct graph *, struct node *, struct nodes *out);

#endif
