/* work: what a node does on one rank under one workload, as counts; and what that takes on a machine. */
#ifndef TPC_WORK_H
#define TPC_WORK_H

#include "op/rule/rule.h"
#include "plan/plan.h"
#include "plan/space/space.h"

/* Kernels of products, each with a speed of its own. */
enum product_kernel { KERNEL_MATRIX, KERNEL_INTEGERS, KERNEL_CONV, KERNEL_DEPTHWISE, KERNEL_INTEGER_CONV };
/* How weights are stored that a product streams. */
enum stored { STORED_FULL, STORED_HALF, STORED_BYTE, STORED_CODE };
struct work {
    enum product_kernel kernel;
    double operations;                /* multiplications and additions, of whole vectors and words */
    double functions, codes, spread;  /* numbers: of exponential functions; rounded or decoded; added up one by one where they belong */
    double rows, turned;              /* rows that are copied; numbers that are moved away from their neighbours */
    double streamed, carried, passed; /* bytes of weights; of state, which lies in memory from step to step; of all else */
    enum stored stored;               /* the weights */
    bool in_turn;                     /* it moves its bytes before or after it computes, not meanwhile */
    double nodes;                     /* nodes whose overhead it has */
};
struct work_place {
    int workload, rank;
};
/* work.c */
bool work_is_convolution(const struct node *);
struct work work_of(struct space *, const struct node *, const struct rule *, const struct strategy *, struct work_place);
/* Of the kernel that brings an operand or the result of the node into another form. */
struct work work_of_change(struct space *, const struct node *, const struct strategy *, struct work_place);
/* copied_rows.c: adds rows and turned. */
void copied_rows_add(struct space *, const struct node *, const struct rule *, const struct strategy *, struct work_place, struct work *);
/* price.c: seconds; busy: ranks that work at the same time. */
double price_seconds(const struct machine *, const struct work *, int busy);
double price_of_pass(const struct machine *, double bytes); /* bytes are moved, and nothing else */

#endif
