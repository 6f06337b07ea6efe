/* measure: what this machine computes and communicates per second, for tpc-run --calibrate. All ranks call these; times are those of the
 * slowest rank, and the least of several runs. */
#ifndef TPC_RUN_MEASURE_H
#define TPC_RUN_MEASURE_H

#include "ir/ir.h"
#include "op/prices.h"
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
enum { MEASURED_BEHIND = 3 };
/* Collectives among units: those of ranks of each machine, and those between machines, which ranks with the same index run at once. */
enum { LINK_WITHIN, LINK_BETWEEN, MEASURED_LINKS };
struct measured_link {
    int units, n;
    struct measured_collective *collective;
};
struct measured_price {
    double alone, together; /* of one rank of each machine while the others wait; of each rank while all work */
    double own;             /* seconds of this machine's rank, where `alone` is of the slowest */
    bool clamped;           /* what was measured can't be: what can be, next to it, counts instead */
};
struct measured {
    struct measured_price price[PRICES]; /* of kernels, in the unit of schemas/prices.def */
    const double *speed;                 /* by rank: how many times as fast as the slowest; NULL: all are about alike */
    const int64_t *memory;               /* by rank: bytes available to each; NULL: one machine, or all have about as much */
    double busy;                         /* share of the time that a rank waited for a core */
    int nbehind;                         /* 0: no sum goes on while a rank computes */
    struct measured_behind behind[MEASURED_BEHIND];
    double bf16, q8; /* seconds of rounding a byte of f32 for a message, or of reading it from there */
    int links;       /* 0: there is one rank; LINK_WITHIN and LINK_BETWEEN where machines have several; LINK_WITHIN: one of all ranks */
    struct measured_link link[MEASURED_LINKS];
    struct measured_link whole; /* of all ranks, as they run */
    double alone;               /* bytes per second that one rank of each machine sends while the others wait */
};
/* measure_prices.c: what kernels take. ready: makes of a graph what runs. From begin to end, what memory gives is sampled between all
 * graphs; prices are known at the end. Better times replace those of an earlier call. */
struct measuring *measure_begin(struct arena *, struct comm *, int threads, double seconds, void (*ready)(void *of, struct graph *),
                                void *of);
/* They have taken more than the seconds of measure_begin: from then on each measurement is taken once. */
bool measure_is_late(const struct measuring *);
void measure_prices(struct measuring *);
void measure_end(struct arena *, struct measuring *, struct measured *);
/* A price from the seconds of its graphs with few nodes and with many, and the prices before it. *clamped becomes true if more nodes take
 * no longer, or what is known takes nearly all of the time. */
double measure_price(const struct measured *, enum price, double few, double many, bool *clamped);
void measure_comm(struct arena *, struct comm *, struct measured *);

/* measure_host.c, for tpc-run --doctor: bytes per second of this rank while all work, on arrays of so many bytes; seconds in which rank 0
 * and r exchange so many bytes; in which all ranks sum as many. */
double measure_triad(struct comm *, int threads, int64_t bytes);
double measure_pair(struct arena *, struct comm *, int r, int64_t bytes, int calls);
double measure_sum(struct arena *, struct comm *, int64_t bytes, int calls);

#endif
