/* control: If, Loop and Scan: the types of their subgraphs, and inference over a whole graph to its fixpoint. */
#ifndef TPC_OP_CONTROL_H
#define TPC_OP_CONTROL_H

#include "ir/ir.h"

/* ---- infer_fixpoint.c ---- */
/* Infers until no new equation is met, or something is undecided (g->undecided, which it clears first). An If whose condition is known
 * becomes its branch, and small nodes on static values are run. */
void op_infer_fixpoint(struct graph *);

/* ---- subgraph.c ---- */
/* A copy with an interner of its own, in which a size that is no integer is a symbol; it stands for a size of the graph around, or for
 * nothing known there: the sizes of what a Loop carries may change from turn to turn. */
struct subgraph {
    struct graph *graph; /* inputs have types; captured constants are constants */
    struct graph *around;
    const struct node *node;
    int body;                                /* of the node */
    VEC(const struct dim *) inside, outside; /* by position: a symbol, and what it stands for */
};
struct subgraph subgraph_new(struct arena *, struct graph *around, const struct node *, int body);
/* The size of the body, in the graph around; NULL: it can't be told there. */
const struct dim *subgraph_leave(const struct subgraph *, const struct dim *);
/* What is undecided in the body is so in the graph around. */
bool subgraph_is_undecided(const struct subgraph *);
/* A type of the graph around, inside. */
struct type subgraph_type(struct subgraph *, const struct type *);

/* ---- control.c ---- */
/* The subgraph of a typed node, itself typed: sizes hold in every iteration. */
struct subgraph control_typed_body(struct arena *, struct graph *, const struct node *, int body);
/* How many operands, the first ones, choose the branch or the number of iterations. */
int control_steering_operands(const struct node *);
/* How often a subgraph runs; NULL: not known, or at most once. */
const struct dim *control_iterations(struct graph *, const struct node *);
/* A size of a result that the types leave open: the larger one of the branches of an If, the first one of a carried value. NULL: there is
 * none. */
const struct dim *control_size_guess(struct graph *, const struct node *, int result, int d);
/* Of a Scan: how many of its operands before the captures it scans; the axis by an attribute, 0 by default; the direction. */
int control_scan_inputs(const struct graph *, const struct node *);
int control_scan_axis(const struct graph *, const struct node *, const char *attr, int i, int rank);
bool control_scan_backwards(const struct graph *, const struct node *, const char *attr, int i);
/* Puts the nodes of the branch that an If of known condition takes in its place: appended to *out, they make its results. False: another
 * node, or it is not known. */
bool control_take_branch(struct graph *, struct node *, struct nodes *out);

#endif
