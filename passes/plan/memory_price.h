/* memory_price: trial plans at byte prices, for --memory (memory_limit.c). */
#ifndef TPC_MEMORY_PRICE_H
#define TPC_MEMORY_PRICE_H

#include "passes/pass.h"
#include "plan/plan.h"
#include "plan/solve/solve.h"

enum { MOST_TRIALS = 16 };
struct trial {
    double price, held, objective, least, seconds;
    int64_t total; /* of the rank that fills most of its limit, weighted by the limits (src/plan/facts/limits.c) */
    int rank;      /* that rank, and what it holds */
    struct rank_use use;
    const struct rank_use *ranks_use; /* by rank */
    const char *weight, *value;       /* its largest */
    struct attempt as;                /* for limits over time */
};
struct fitter {
    const struct compile *compile;
    int ranks, trials;
    const int64_t *share; /* like the plan's memory_share */
    bool tells;           /* with many ranks, the global graph gives their memory */
    bool recomputed;      /* the backward half of training computes the forward half again */
    bool hopeless;        /* weights and state alone are more than all ranks may hold */
    struct trial trial[MOST_TRIALS];
};

/* A copy of the source, planned for plan.ranks ranks at its price, or within its limits over time. exact: measured on the emitted
 * graphs. */
struct trial memory_try(const struct compile *original, struct plan plan, bool exact);
bool memory_trial_fits(const struct fitter *, const struct trial *);
/* Raises the price until a plan fits; NULL if none fits. *below: the last price without a fit. Unequal ranks get shares by their limits if
 * the plan without a price does not fit. */
const struct trial *memory_raise_price(struct fitter *, double *below);
/* The best fitting plan at a price in between. */
const struct trial *memory_bisect_price(struct fitter *, const struct trial *best, double below);
/* A lower bound, in picoseconds, on plans whose weights and state alone keep the limit, as proven by the trials; 0 for unequal ranks,
 * because no rank then holds the most of everything. */
double memory_bound(const struct fitter *);
struct trial memory_least_trial(const struct fitter *);
/* A plan file is replayed: prices change nothing. */
bool memory_is_emitted(const struct options *);

#endif
