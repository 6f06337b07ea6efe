/* measure: the computing and communication speed of this machine, for tpc-run --calibrate. All ranks call these functions; times are of the
 * slowest rank, minima of several runs. */
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
/* Seconds of a sum alone; of one that runs while ranks compute; and those that it takes from the ranks. */
struct measured_behind {
    double sum, meanwhile, taken;
};
enum { MEASURED_BEHIND = 3 };
/* Collectives within each machine, and between machines, which ranks with the same index run at once. */
enum { LINK_WITHIN, LINK_BETWEEN, MEASURED_LINKS };
struct measured_link {
    int units, n;
    struct measured_collective *collective;
};
struct measured_price {
    double alone, together; /* one rank of each machine while the others wait; each rank while all work */
    double own;             /* seconds of this machine's rank; `alone` is the slowest */
    bool clamped;           /* the measured value was impossible; the nearest possible one counts */
};
struct measured {
    struct measured_price price[PRICES]; /* of kernels, in the unit of schemas/prices.def */
    const double *speed;                 /* by rank: speed relative to the slowest; NULL: about equal */
    const int64_t *memory;               /* by rank: available bytes; NULL: one machine, or about equal */
    double busy;                         /* fraction of the time that a rank waited for a core */
    int nbehind;                         /* 0: no sum overlaps with compute */
    struct measured_behind behind[MEASURED_BEHIND];
    double bf16, q8; /* seconds per byte of f32, to encode and decode messages */
    int links;       /* 0: one rank; LINK_WITHIN and LINK_BETWEEN: machines with several ranks; LINK_WITHIN: one link for all ranks */
    struct measured_link link[MEASURED_LINKS];
    struct measured_link whole; /* all ranks, with the collectives that run */
    double alone;               /* bytes per second that one rank of each machine sends while the others wait */
};
/* measure_prices.c: times of kernels. ready: lowers a graph as for a run. Between begin and end, memory bandwidth is sampled between
 * graphs; prices are known at the end. Faster times replace those of an earlier call. */
struct measuring *measure_begin(struct arena *, struct comm *, int threads, double seconds, void (*ready)(void *of, struct graph *),
                                void *of);
/* Whether measuring has exceeded the seconds of measure_begin: from then on each measurement is taken once. */
bool measure_is_late(const struct measuring *);
void measure_prices(struct measuring *);
void measure_end(struct arena *, struct measuring *, struct measured *);
/* A price, from the seconds of graphs with few and with many nodes and from earlier prices. *clamped becomes true if more nodes take no
 * longer, or if earlier prices explain nearly all of the time. */
double measure_price(const struct measured *, enum price, double few, double many, bool *clamped);
void measure_comm(struct arena *, struct comm *, struct measured *);

/* measure_host.c, for tpc-run --doctor: bytes per second of this rank while all work, on arrays of this size; seconds for ranks 0 and r to
 * exchange this many bytes; seconds for all ranks to sum as many. */
double measure_triad(struct comm *, int threads, int64_t bytes);
double measure_pair(struct arena *, struct comm *, int r, int64_t bytes, int calls);
double measure_sum(struct arena *, struct comm *, int64_t bytes, int calls);

#endif
