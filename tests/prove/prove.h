/* prove: "sharded equals unsharded" is run, not argued. A model is loaded and run whole once; then any number of plans of it are made,
 * emitted as rank files, run on ranks that are threads, and compared with the whole run.
 *
 * A trial is what tpc-shard and tpc-run do, from the pass choose on: the passes insert to emit write the folder (into memory, where the
 * system has a file system for that), and src/run reads it as it reads any other. No graph is handed over inside the process: files are all
 * that the two sides share, so that what is proved is what is emitted, and the runtime stays a witness of its own.
 *
 * Every trial runs in a child process: fail(), bug(), a signal or a rank that waits forever there is the verdict of this trial. */
#ifndef TPC_TESTS_PROVE_H
#define TPC_TESTS_PROVE_H

#include "kern/kern.h"
#include "plan/plan.h"

/* ---- apart.c: a verdict, and how it leaves the process that found it ----------------------------------------------------- */
enum proof_kind {
    PROOF_EQUAL,   /* what zeroed memory says */
    PROOF_DIFFERS, /* an output differs */
    PROOF_REFUSED, /* a failure: fail(), exit status 1 or 2 */
    PROOF_BROKEN   /* bug(), another signal, or no end within PROVE_SECONDS */
};
enum { PROVE_SECONDS = 120 };
struct proof {
    enum proof_kind kind;
    double worst;               /* of all outputs, the largest |a-b| / max|b|; infinity: NaN, or another type or shape */
    char output[256];           /* in which; "": no output was compared */
    int weights, weights_split; /* nodes whose rows seed splits and that read a constant; how many of them are split */
    int split, terms;           /* nodes that do not stay whole; values that become a partial sum on each rank (R -> P) */
    char said[1024];            /* unless equal: the sentence of the failure, or the first element that differs */
};
const char *proof_kind_name(enum proof_kind);
/* Runs body in a child process, which starts with a copy of this one's memory, and returns what it printed to stdout and stderr. body fills
 * *out, which it gets zeroed; how the process ended completes it. Call it where this process has one thread. */
char *prove_apart(struct arena *, void (*body)(void *data, struct proof *), void *data, struct proof *out);

/* ---- model.c: a model, its inputs, and what it makes of them --------------------------------------------------------------- */
struct prove;
/* path: an ONNX model, or a graph in text form. Each folder test_data_set_K next to it, from 0, is a set of inputs; without any, one set is
 * made from the types: floats normal, integers 0 to 7, sizes as given (NULL: small ones of our choice that differ). Runs the front passes
 * and the whole model on each set, once. A model that is refused, or whose whole run fails, is a failure of this process: use prove_apart
 * around it where that must not end everything. The struct lives in the arena. */
struct prove *prove_open(struct arena *, const char *path, const struct bindings *sizes);
/* The same of a step of training, as tpc-shard --train makes it; the sizes are bound as --dim does. */
struct prove *prove_open_training(struct arena *, const char *path, const struct bindings *sizes);
/* The same for a graph in text form that is in no file. */
struct prove *prove_open_text(struct arena *, const char *text, const struct bindings *sizes);
/* The same on these sets of inputs, each by graph input; they must live as long. */
struct prove *prove_open_given(struct arena *, const char *text, int nset, struct tensor *const *inputs);
/* Removes its folder of temporary files. */
void prove_close(struct prove *);
const char *prove_path(const struct prove *);
int prove_sets(const struct prove *);
/* The canonical graph, before any plan; not to be changed. */
const struct graph *prove_graph(const struct prove *);
/* Values of the symbols in a set of inputs. */
const struct bindings *prove_sizes(const struct prove *, int set);

/* ---- trial.c --------------------------------------------------------------------------------------------------------------- */
struct prove_plan {
    int ranks;
    uint64_t seed;   /* of a random legal plan: every node takes any of its strategies; 0: the cheapest plan */
    bool split_only; /* with a seed: a node stays whole only where it must */
    enum sp_mode sp; /* as --sp, or --sp=auto */
    bool unequal;    /* ranks have speeds of their own, from 0.1 to 1 */
    bool wide;       /* any dimension may be split in any way (wide.c), not only as the planner would */
    bool dense;      /* where a whole value becomes a partial sum, every rank takes a share that is not zero (terms.c) */
    bool exact;      /* outputs must be equal as numbers, NaN equal to NaN; else by max|a-b| <= rel max|b|, as tpc-run --check */
    int set;         /* of inputs, from 0 */
    const struct named_list *forced; /* strategies (strategy_str) of some nodes, by name; all others are whole. NULL: as the seed says */
};
/* Makes the plan, runs it, compares every output. Integer and boolean outputs are always exact. With SP_ON, a model in which no dimension
 * qualifies is PROOF_REFUSED. What it needs to make plans for these ranks, by sp and wide, is kept for the next trial. */
struct proof prove_try(struct prove *, const struct prove_plan *);
/* The nodes that do not stay whole in this plan, with their strategies: what, as forced, makes the same plan. Nothing is run. *out is
 * refused or broken where no plan was made. */
struct named_list prove_chosen(struct arena *, struct prove *, const struct prove_plan *, struct proof *out);

/* ---- rows.c ----------------------------------------------------------------------------------------------------------------- */
/* For each symbol along which rows are said to be independent (op_note_rows): runs the whole model in two groups, each on its part of the
 * rows of a set, and compares every output. Adds to *tried how many symbols there are; the first that fails is the verdict. */
struct proof prove_rows(struct prove *, int set, bool exact, int *tried);

/* ---- terms.c --------------------------------------------------------------------------------------------------------------- */
/* Rewrites R -> P(sum) in the graphs of all ranks, after localize. The product gives the value to rank 0 and zero to the others, and f(0) =
 * 0 may hide that f is not linear. Here each rank takes the value times 1 or -1, rank 0 times what makes the sum 1: 2 and -1 on two ranks.
 * No share rounds, for any type of number. Elements of 1e30 and more (of f16: 1e4), infinities and NaN stay with rank 0. */
void prove_dense_terms(struct graph *const *rank_graphs, int ranks);

/* ---- shrink.c -------------------------------------------------------------------------------------------------------------- */
/* For a plan of which prove_try said found, which is not equal: looks for the fewest nodes that must not stay whole for it to fail alike
 * (the same kind), then for the fewest nodes of the graph, with inputs and outputs moved to where it is cut, on the values that the whole
 * graph has there. Prints these strategies, the graph in text form, and the arguments of tests/prove/prove that try it again. The graph is
 * written to file, its inputs to file.0.npy and so on. */
void prove_shrink(FILE *to, struct prove *, const struct prove_plan *, const struct proof *found, const char *file);

#endif
