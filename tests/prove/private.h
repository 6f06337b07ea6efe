/* prove/private.h: what the files of the library share. */
#ifndef TPC_TESTS_PROVE_PRIVATE_H
#define TPC_TESTS_PROVE_PRIVATE_H

#include "job/io/io.h"
#include "passes/pass.h"
#include "tests/prove/prove.h"

#include <sys/types.h>

struct input_set {
    struct tensor *in, *want;
    struct bindings sizes;
};
/* Everything up to the choice, for a number of ranks, equal or unequal, with or without --sp and wide choice. Copies of it choose and
 * continue. */
struct prepared {
    int ranks;
    enum sp_mode sp;
    bool unequal, wide;
    struct proof state; /* not equal: it could not be prepared */
    struct options options;
    struct plan plan;
    struct compile compile;
};
struct prove {
    struct arena *arena;
    const char *path, *folder; /* folder: of temporary files */
    pid_t owner;               /* the process that removes it */
    struct file_digest *digest;
    struct compile compile; /* after canon */
    struct plan plan;       /* workloads */
    int nin, nout;
    const char **in_name, **out_name;
    double rel;
    VEC(struct input_set) sets;
    VEC(struct prepared *) prepared;
};

/* priced.c: fails if the seconds that the plan predicts are off by more than this share from its explicit graph's, after the pass insert.
 * nvalues: of the model's graph. Weights and states cost the same as other values (trial.c): the explicit graph does not tell all of
 * them. */
void prove_price(struct compile *, int nvalues, double most);
/* Fails if the cheapest plan does not cost the solver what it is predicted to take, and its weights. */
void prove_objective(const struct plan *);
/* trial.c: a set of inputs in the order of a graph of the model; its outputs, compared with the whole run's. */
struct tensor *prove_inputs(struct arena *, const struct prove *, int set, const struct graph *);
void prove_compare(const struct prove *, int set, bool exact, const struct graph *, const struct tensor *got, struct proof *out);

/* wide.c: candidates of random dimensions, and what follows from them; leaves each node whole and a few other strategies. */
void wide_seed(struct space *, uint64_t seed);
void wide_thin(struct space *, uint64_t seed);

#endif
