/* measure: what this machine computes and communicates per second, for tpc-run --calibrate. All ranks call these; times are those of the
 * slowest rank, and the least of several runs. */
#ifndef TPC_RUN_MEASURE_H
#define TPC_RUN_MEASURE_H

#include "run/comm/comm.h"

/* bytes: of the global value; kind COLL_NONE: a message from one rank to another. */
struct measured_collective {
    enum collective kind;
    int64_t bytes;
    double seconds;
};
enum { MEASURED_CHANNELS = 64 };
struct measured {
    /* Per second, of rank 0 while the others wait: flops of products with many rows, bytes of weights in products with one row. */
    double flops, memory;
    double flops_together, memory_together; /* of each rank while all work */
    double halves, halves_together;         /* bytes of weights of bf16 in products with one row */
    double codes, codes_together;           /* bytes of weights of 4 bits, and of their scales, in products with one row */
    double elementwise;                     /* seconds per byte that the ops of a chain read and write if each runs alone */
    double node;                            /* seconds of a node that computes almost nothing */
    double function;                        /* seconds of a function (Sigmoid, Tanh, Erf) of one number */
    double row;                             /* seconds of a row of 8 numbers that Concat copies */
    double integers;                        /* flops of products with weights of 4 bits */
    double conv, conv_of_one;               /* seconds of a convolution with MEASURED_CHANNELS in its result, and with one */
    double overlap;                         /* seconds that a sum takes from a rank which computes meanwhile; 0: no sum goes on meanwhile */
    double bf16, q8;                        /* seconds of rounding a byte of f32 for a message, or of reading it from there */
    int ncollective;                        /* 0: there is one rank */
    struct measured_collective *collective;
};
void measure_work(struct comm *, int threads, struct measured *); /* better figures replace those of an earlier call */
void measure_comm(struct arena *, struct comm *, struct measured *);

/* measure_host.c, for tpc-run --doctor: bytes per second of this rank while all work, on arrays of so many bytes; seconds in which rank 0
 * and r exchange so many bytes; in which all ranks sum as many. */
double measure_triad(struct comm *, int threads, int64_t bytes);
double measure_pair(struct arena *, struct comm *, int r, int64_t bytes, int calls);
double measure_sum(struct arena *, struct comm *, int64_t bytes, int calls);

#endif
