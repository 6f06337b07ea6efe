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
/* Seconds of a sum alone, of one that goes on while ranks compute, and those that it takes from them. */
struct measured_behind {
    double sum, meanwhile, taken;
};
enum { MEASURED_CHANNELS = 64, MEASURED_PASSES = 4, MEASURED_PASS = 1 << 20, MEASURED_PASS_GROWTH = 4, MEASURED_BEHIND = 3 };
struct measured {
    /* Per second, of rank 0 while the others wait: flops of products with many rows, bytes of weights in products with one row. */
    double flops, memory;
    double flops_together, memory_together; /* of each rank while all work */
    double halves, halves_together;         /* bytes of weights of bf16 in products with one row */
    double codes, codes_together;           /* bytes of weights of 4 bits, and of their scales, in products with one row */
    double bytes, bytes_together;           /* the same of weights of 8 bits */
    double integers;                        /* flops of products with weights of 4 bits */
    /* Per second: bytes that an elementwise op alone reads and writes, of MEASURED_PASS bytes and so on; flops of convolutions. */
    double pass[MEASURED_PASSES], conv, depthwise, integer_conv, integer_depthwise;
    double chain;                  /* seconds per byte that ops of a short chain would read and write alone */
    double node;                   /* seconds of a node that computes almost nothing */
    double small_convs, no_convs;  /* seconds of a short pass with such a convolution behind it, and of the pass */
    double function, erf;          /* seconds of a Sigmoid, of an Erf of one number */
    double column;                 /* seconds of a number of a Softmax over a dimension that is not the last */
    double code;                   /* seconds of a number that is rounded to 8 bits or read from them */
    double deep_layer, thin_layer; /* seconds of convolutions of integers with many and with few products for each result */
    double sum;                    /* seconds of a result of theirs, whatever its products */
    double row;                    /* seconds of a row of 8 numbers that Concat copies */
    double repeat;                 /* seconds of a row of 24 numbers that a chain multiplies by the same numbers as all others */
    double turn;                   /* seconds of a number that a Transpose moves away from its neighbours */
    double of_many, of_one;        /* seconds of a convolution with MEASURED_CHANNELS in its result, and with one */
    double busy;                   /* share of the time that a rank waited for a core */
    int nbehind;                   /* 0: no sum goes on while a rank computes */
    struct measured_behind behind[MEASURED_BEHIND];
    double bf16, q8; /* seconds of rounding a byte of f32 for a message, or of reading it from there */
    int ncollective; /* 0: there is one rank */
    struct measured_collective *collective;
};
/* From begin to end, what memory gives is sampled between all that is measured in work (products), nodes and convs; its medians are known
 * at the end. Better figures replace those of an earlier call. */
struct measuring *measure_begin(struct arena *, struct comm *, int threads, double seconds);
/* They have taken more than the seconds of measure_begin: from then on each measurement is taken once. */
bool measure_is_late(const struct measuring *);
void measure_work(struct measuring *, struct measured *);
void measure_nodes(struct measuring *, struct measured *);
void measure_convs(struct measuring *, struct measured *); /* after measure_nodes */
void measure_end(struct measuring *, struct measured *);
void measure_comm(struct arena *, struct comm *, struct measured *);

/* measure_host.c, for tpc-run --doctor: bytes per second of this rank while all work, on arrays of so many bytes; seconds in which rank 0
 * and r exchange so many bytes; in which all ranks sum as many. */
double measure_triad(struct comm *, int threads, int64_t bytes);
double measure_pair(struct arena *, struct comm *, int r, int64_t bytes, int calls);
double measure_sum(struct arena *, struct comm *, int64_t bytes, int calls);

#endif
