/* measure_bench: graphs of the calibration, and their run times. */
#ifndef TPC_RUN_MEASURE_BENCH_H
#define TPC_RUN_MEASURE_BENCH_H

#include "ir/ir.h"
#include "run/comm/comm.h"
#include "run/measure/measure.h"

/* Parses the text form of a graph without its head. S: rows. */
struct graph *measure_parse(struct arena *, const char *text);
/* Inputs after the first `operands` become weights; those of one size share one block, because a session packs its own copy. */
void measure_weights(struct graph *, int operands);
float *measure_numbers(struct arena *, int64_t n, float x); /* n copies of x */

/* Seconds of one rank of each machine while the others wait; with `together`, also of all ranks at once: of the slowest. rounds: 1, or the
 * least number of several. */
struct measured_price measure_least(struct comm *, struct graph *, int threads, int64_t rows, int rounds, bool together);
void measure_keep_shorter(double *seconds, double found);
double measure_waited(void); /* seconds that this thread was ready without a core; 0 if the system does not say */

/* A session on each rank. */
struct work_bench {
    struct arena *arena;
    struct comm *self;
    struct graph *graph;
    struct session *session;
    struct tensor *in, *out;
    double own; /* least seconds of this rank alone; 0: it did not run alone */
};
struct work_bench measure_bench(struct graph *, int threads);
void measure_rows(struct work_bench *, int64_t rows);               /* makes inputs with this many rows */
double measure_run(struct comm *, struct work_bench *, bool alone); /* seconds of one run on the slowest rank */
void measure_bench_free(struct work_bench *);

#endif
