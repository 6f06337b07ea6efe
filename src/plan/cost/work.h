/* work: what a node does on one rank under one workload, as counts; and what that takes on a machine. */
#ifndef TPC_WORK_H
#define TPC_WORK_H

#include "op/rule/rule.h"
#include "plan/plan.h"
#include "plan/space/space.h"

/* Kernels of products, each with a speed of its own. */
enum product_kernel { KERNEL_MATRIX, KERNEL_BF16, KERNEL_INTEGERS, KERNEL_CONV, KERNEL_DEPTHWISE, KERNEL_INTEGER_CONV };
/* How weights are stored that a product streams. */
enum stored { STORED_FULL, STORED_HALF, STORED_BYTE, STORED_CODE };
/* Of the kernel that brings an operand or the result into another form: numbers that are rounded or decoded, or moved; bytes. */
struct work_form {
    double codes, turned, passed;
};
struct work {
    enum product_kernel kernel;
    double operations;                /* multiplications and additions, of whole vectors and words */
    double functions, codes, spread;  /* numbers: of exponential functions; rounded or decoded; moved one by one to where they belong */
    double rows, turned;              /* rows that are copied; numbers that are moved away from their neighbours */
    double streamed, carried, passed; /* bytes of weights; of state, which lies in memory from step to step; of all else */
    enum stored stored;               /* the weights */
    bool in_turn;                     /* it moves its bytes before or after it computes, not meanwhile */
    double nodes;                     /* nodes whose overhead it has */
    struct work_form form;            /* passed 0: there is no such kernel */
};
/* A node by a strategy, under a workload, on a rank. */
struct work_at {
    struct space *s;
    const struct node *node;
    const struct rule *rule; /* NULL: it has none */
    const struct strategy *st;
    int workload, rank;
};
/* work.c */
bool work_is_convolution(const struct node *);
/* Of a node with a lowering, only its form: the lowering has work of its own. */
struct work work_of(const struct work_at *);
/* routing.c: what a rank's experts get of the rows, and how many of them get any; of the slowest rank where experts are split. */
struct routing {
    double held, met, rows; /* experts; rows that go through any of them, once for each */
};
struct routing routing_of(const struct work_at *);
double routing_met(struct routing); /* the share of a rank's experts */
/* Experts as nodes of their own, behind a NonZero that finds their rows: the chances that there are any. */
void routing_find_chances(struct space *);
double routing_chance(const struct space *, const struct node *, int workload); /* 1: the node always has work */
/* A dealt expert (space/experts.c): what the slowest rank has of all of its mixture, as a part of what there is. */
double routing_dealt(struct space *, int expert, int workload);
/* A collective on a value of an expert that may be dealt: seconds that the other ranks wait for the one that has it. */
double routing_wait(struct space *, const struct value *, int workload);
/* The expected largest of so many numbers, each of which counts the hits of `trials` trials, `mean` on average; INFINITY trials:
 * the limit (Poisson). */
double routing_largest(double mean, double trials, int numbers);
/* What Dispatch or Combine takes. */
double routing_travel_seconds(const struct machine *, const struct node *, const struct bindings *, int ranks);
/* price.c: seconds. */
double price_of_pass(const struct machine *, double bytes); /* bytes are moved, and nothing else */
/* Adds to each rank, so many times, what it computes of the node, without its lowering. */
void price_each_rank(const struct work_at *, double times, double *seconds);
/* Of a rank, relative to the profile's numbers. One that is busy alone is the fastest; what all do alike is as slow as the slowest. */
double price_speed(const struct space *, int rank, int busy);
int price_next_speed(const struct space *, int rank); /* the next rank that is faster or slower; as many as there are: none */

#endif
