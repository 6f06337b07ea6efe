/* decode/stage: one graph of those that decode together: the roles of its inputs, and what fills them. */
#ifndef TPC_DECODE_STAGE_H
#define TPC_DECODE_STAGE_H

#include "ir/rank_meta.h"
#include "job/job.h"

/* The role of a graph input in the decode loop. */
enum role {
    ROLE_UNKNOWN,
    ROLE_CONSTANT,       /* the same at every run: from --input or an earlier graph */
    ROLE_TOKENS,         /* the tokens that the KV cache does not hold yet */
    ROLE_MASK,           /* which tokens so far are no padding */
    ROLE_POSITIONS,      /* positions of those tokens; left padding is not counted */
    ROLE_CACHE_POSITION, /* positions in the cache: padding is counted */
    ROLE_CACHED,         /* true if there is a past; picks the branch of a merged decoder */
    ROLE_SEGMENTS,       /* which of several texts a token is of: there is one, so 0 */
    ROLE_ADAPTER,        /* the number of each row's adapter (job/adapters) */
    ROLE_LAST,           /* where the last token of a row, or of all, is among ROLE_TOKENS (last_position.c) */
    ROLE_STATE,          /* a KV cache or other state; the session keeps it */
    ROLE_ELSEWHERE       /* a state that ranks of another pipeline stage keep, or a value that they send */
};

/* One graph of the command line; of a pipeline (tpc-shard --pp), the part of it that this rank has. */
struct stage {
    const char *path;
    int number; /* from 1: K of --input K:NAME=FILE and --role K:NAME=ROLE */
    struct graph *graph;
    struct session *session;
    struct comm *comm;         /* the ranks of the session */
    struct pipeline *pipeline; /* NULL: they have all of the graph */
    struct graph *ends;        /* the inputs and outputs of all of the graph */
    enum role *role;           /* by input */
    bool decides;              /* it has logits; else it is an encoder */
    int home;                  /* pipeline stage that has them */
    int logits;                /* output; -1: none, or this rank has none */
    const char *logits_name;
    struct type logits_type;       /* global */
    bool chosen;                   /* that output holds tokens, not scores */
    int embedding;                 /* output: what a text means, as numbers; -1: none */
    bool positions_lead;           /* it puts positions before rows, as [sequence, batch, vocabulary] */
    bool keeps;                    /* some input is state */
    int64_t vocabulary, positions; /* tokens that it has; the most that a text may have of them; less than 1: it is not known */
    const char *limit;             /* what says so: " (config.json: n_ctx is 64)"; "": its own tables */
    struct tensor *given;          /* by input; data NULL: not given */
    struct tensor *in, *out;       /* of the next run; of the last run, shards */
};
/* The first input with the role; -1: none. */
int decode_find_input(const struct stage *, enum role);

/* positions.c: sets vocabulary, positions and limit, while the graph is as it was read. Every rank of all calls it; rank 0 reads the
 * configuration beside the model. */
void positions_find(struct arena *, struct comm *all, const struct job_options *, struct stage *);
/* How many tokens there are; INT32_MAX: it is not known. */
int64_t decode_vocabulary(struct arena *, const struct stage *);

/* stage.c: loads the graph of s->path; then, once roles are known, makes stage k ready to run. */
void stage_load(struct arena *, struct comm *, const struct job_options *, struct stage *s);
/* Every rank calls it. */
void stage_free(struct stage *);
/* Some rank of the pipeline has it; of one that is whole, this rank. Every rank calls it. */
bool stage_any(const struct stage *, struct comm *all, bool own);
/* The text of the first stage of the pipeline that has one. Every rank calls it. */
const char *stage_first_text(struct arena *, const struct stage *, struct comm *all, const char *own);
/* A part of stage_prepare: the graph as it runs. Outputs that are written have all positions, and --deterministic says that results do not
 * depend on such changes; otherwise it may compute only the last one. */
void stage_fuse(struct arena *, const struct job_options *, struct stage *s);
void stage_prepare(struct arena *, struct comm *all, const struct job_options *, int threads, struct stage *stage, int k);
/* Refuses what the state of so many rows and tokens will take, if it is more than what is available; sets need.bytes. */
void stage_check_cache(struct comm *group, struct comm *all, const struct job_options *, const struct stage *, struct cache_need need);
/* Of this rank. */
int64_t stage_cache_bytes(const struct stage *, int64_t rows, int64_t tokens);
/* What that state leaves of the memory that is available to this rank, once weights are loaded. */
int64_t stage_room_left(const struct comm *all, const struct stage *, int64_t rows, int64_t columns);
/* Constants and state that are given become inputs of the next run. A constant that is not: wrong usage. */
void stage_place_given(struct arena *, struct stage *);
/* The same for what stages before k leave; and room for inputs that follow from tokens, which those of the history are. NULL: none do. */
struct history;
void stage_get_ready(struct arena *, struct stage *, int k, const struct history *);
/* Runs tokens [fed, length), all where there is no state, which the session keeps from then on. NULL: no input follows from tokens. */
void stage_run(struct stage *, const struct history *, int64_t fed);

/* roles.c: sets the roles of all inputs, from --role, usual names, types and shapes, and takes --input, which
 * rank 0 of all ranks reads. An unclear role, or an option that names no input: wrong usage. */
void roles_find(struct arena *, struct comm *all, struct stage *, int n, const struct job_options *);
/* The type of an input or output of the whole graph. */
struct type roles_type(struct graph *, enum rank_end, const struct value *);

/* last_position.c: where only the last position of the logits is read, the graph of a stage computes no other of them. */
void last_position_only(struct arena *, struct stage *);

/* history.c: the tokens of all rows, with their masks and positions. */
struct history {
    int64_t batch, length, room;      /* room: the capacity of a row in columns */
    int64_t past;                     /* columns that the given state holds; their tokens are not known */
    int64_t *token, *seen, *position; /* [batch, room] */
    int64_t *behind;                  /* by row: columns of padding behind the last token; 0 once a token is added */
    const int64_t *adapter;           /* by row, where the graph has several; NULL: no row has one */
    int64_t scored;                   /* the last so many tokens of each row have scores in the next run, or more of them; 1 */
    int64_t picked;                   /* by the scores of the last so many, tokens are picked; 1 */
};
struct history history_empty(struct arena *, int64_t batch, int64_t room);
/* Sets the column behind the last one, of one row. The caller counts length. */
void history_put(struct history *, int64_t row, int64_t token, bool seen);
/* Starts with one column that holds the same token in every row. more: further columns. */
struct history history_start(struct arena *, int64_t batch, int64_t token, int64_t more);
void history_add(struct history *, const int64_t *next);
/* The position that the next token has among those of the row. */
int64_t history_next_position(const struct history *, int64_t row);
/* Allocates the inputs that follow from tokens, for the full capacity. history_feed sets their sizes and elements for tokens [fed,
 * length) before a run. */
void history_reserve(struct arena *, const struct history *, struct stage *);
void history_feed(const struct history *, int64_t fed, struct stage *);

/* chain.c: fills the state and constants of stage k that are not given, from the stages before it, which have run. */
void chain_take(struct arena *, struct stage *, int k);

#endif
