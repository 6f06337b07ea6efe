/* work: the work of a node on one rank under one workload, as counts, and its price on a machine. */
#ifndef TPC_WORK_H
#define TPC_WORK_H

#include "op/rule/rule.h"
#include "plan/plan.h"
#include "plan/space/space.h"

/* Kernels of products, each with its own speed. */
enum product_kernel { KERNEL_MATRIX, KERNEL_BF16, KERNEL_INTEGERS, KERNEL_CONV, KERNEL_DEPTHWISE, KERNEL_INTEGER_CONV };
/* How the weights that a product streams are stored. */
enum stored { STORED_FULL, STORED_HALF, STORED_BYTE, STORED_CODE };
/* The kernel that converts an operand or the result to another form: elements rounded or decoded, or moved; bytes. */
struct work_form {
    double codes, turned, passed;
};
struct work {
    enum product_kernel kernel;
    double operations;                /* multiplications and additions, of whole vectors and words */
    double functions, codes, spread;  /* elements: exponentials; rounded or decoded; scattered one by one */
    double rows, turned;              /* rows copied; elements moved away from their neighbours (transposed) */
    double streamed, carried, passed; /* bytes of weights; of state, which stays in memory between steps; of everything else */
    enum stored stored;               /* type of the weights */
    bool in_turn;                     /* it does not overlap memory traffic with computation */
    double nodes;                     /* number of node overheads */
    struct work_form form;            /* passed 0: no such kernel */
};
/* A node with its strategy, under a workload, on a rank. */
struct work_at {
    struct space *s;
    const struct node *node;
    const struct rule *rule; /* NULL: it has none */
    const struct strategy *st;
    int workload, rank;
};
/* work.c */
bool work_is_convolution(const struct node *);
/* For a node with a lowering, only its form: the lowering has its own work. */
struct work work_of(const struct work_at *);
/* routing.c: how many rows a rank's experts get, and how many experts get any; for the slowest rank if experts are split. */
struct routing {
    double held, met, rows; /* experts; experts that get rows; rows, counted once per expert */
};
struct routing routing_of(const struct work_at *);
double routing_met(struct routing); /* the fraction of a rank's experts that get rows */
/* Finds experts that are nodes of their own, after a NonZero that selects their rows, and the probability that they get any. */
void routing_find_chances(struct space *);
double routing_chance(const struct space *, const struct node *, int workload); /* 1: the node always has work */
/* An expert assigned to one rank (space/experts.c): the slowest rank's share of its mixture. */
double routing_dealt(struct space *, int expert, int workload);
/* A collective on a value of such an expert: seconds that the other ranks wait for the expert's rank. */
double routing_wait(struct space *, const struct value *, int workload);
/* The expected maximum of `numbers` binomial counts of `trials` trials and mean `mean`; INFINITY trials: of Poisson counts. */
double routing_largest(double mean, double trials, int numbers);
/* Seconds of a Dispatch or Combine. */
double routing_travel_seconds(const struct machine *, const struct node *, const struct bindings *, int ranks);
/* price.c: seconds. */
double price_of_pass(const struct machine *, double bytes); /* only moves bytes */
/* Adds to each rank's seconds `times` times its part of the node, without the node's lowering. */
void price_each_rank(const struct work_at *, double times, double *seconds);
/* The speed of a rank relative to the profile. If one rank is busy, it is the fastest; if all do the same work, the slowest counts. */
double price_speed(const struct space *, int rank, int busy);
int price_next_speed(const struct space *, int rank); /* the next rank whose speed differs; the number of ranks: none */

#endif
