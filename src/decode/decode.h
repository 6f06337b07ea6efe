/* decode: greedy decoding (tpc-run --generate): prefill through the graphs in a row, then the last graph for every further token. */
#ifndef TPC_DECODE_H
#define TPC_DECODE_H

#include "job/job.h"

/* What an input is to a decode loop. */
enum role {
    ROLE_UNKNOWN,
    ROLE_CONSTANT,       /* the same at every run: from --input, or from an earlier graph */
    ROLE_TOKENS,         /* the tokens that the state doesn't hold yet */
    ROLE_MASK,           /* which tokens so far count */
    ROLE_POSITIONS,      /* of those tokens; in a row whose mask begins with 0, counted from the first that counts */
    ROLE_CACHE_POSITION, /* the same, always counted from the start */
    ROLE_CACHED,         /* whether there is a past: which branch a merged decoder takes */
    ROLE_STATE           /* stays with the session */
};

/* One graph of the row. */
struct stage {
    const char *path;
    int number; /* from 1: K of --input K:NAME=FILE and --role K:NAME=ROLE */
    struct graph *graph;
    struct session *session;
    enum role *role;         /* by input */
    int logits;              /* output; -1: it has none, as an encoder */
    bool chosen;             /* that output holds tokens that the graph has chosen itself */
    bool keeps;              /* some input is state */
    struct tensor *given;    /* by input; data NULL: not given */
    struct tensor *in, *out; /* of the next run; of the last one, pieces */
};
/* The input of that role, -1: none. */
int decode_find_input(const struct stage *, enum role);

/* roles.c: reads --role and --input, and finds the other roles by usual names, then by type and shape. An unclear role, an option
 * that names no input: wrong usage. */
void roles_find(struct arena *, struct stage *, int n, const struct job_options *);

/* history.c: all tokens of all rows, with what follows from them. */
struct history {
    int64_t batch, length, room;      /* room: columns that a row may have */
    int64_t *token, *seen, *position; /* [batch, room] */
};
/* The given tokens of a stage, [batch, n] or [n], with the mask and positions given beside them; room for more columns. */
struct history history_new(struct arena *, const struct stage *, int64_t more);
/* One column of one token. */
struct history history_start(struct arena *, int64_t batch, int64_t token, int64_t more);
void history_add(struct history *, const int64_t *next);
/* Memory for the inputs of a stage that follow from tokens; then, before a run, their sizes and elements for tokens [fed, length). */
void history_reserve(struct arena *, const struct history *, struct stage *);
void history_feed(const struct history *, int64_t fed, struct stage *);

/* argmax.c: every rank calls it after a run of a stage and gets the next token of every row. What ranks exchange for it is added to *count.
 */
void argmax_next(struct comm *, const struct stage *, int64_t batch, int64_t *next, struct session_collective *count);

/* chain.c: before stage k runs, what of its state and constants is not given comes from the stages before it, which have run. */
void chain_take(struct arena *, struct stage *, int k);

/* generate.c: every rank calls it; rank 0 prints. */
void generate_run(struct arena *, const struct replicas *, const struct job_options *, int threads);

#endif
