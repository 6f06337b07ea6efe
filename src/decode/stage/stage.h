/* decode/stage: one of the graphs that decode together: the roles of its inputs, and their values. */
#ifndef TPC_DECODE_STAGE_H
#define TPC_DECODE_STAGE_H

#include "ir/rank_meta.h"
#include "job/job.h"

/* The role of a graph input in the decode loop. */
enum role {
    ROLE_UNKNOWN,
    ROLE_CONSTANT,       /* the same in every run: from --input or an earlier graph */
    ROLE_TOKENS,         /* the tokens that the KV cache lacks */
    ROLE_MASK,           /* which tokens so far are not padding */
    ROLE_POSITIONS,      /* positions of those tokens; left padding is not counted */
    ROLE_CACHE_POSITION, /* positions in the cache, including padding */
    ROLE_CACHED,         /* true if there is a past; selects the branch of a merged decoder */
    ROLE_SEGMENTS,       /* which of several texts a token belongs to: always 0 */
    ROLE_ADAPTER,        /* the number of each row's adapter (job/adapters) */
    ROLE_LAST,           /* the index of a row's last token, or of all rows', among ROLE_TOKENS (last_position.c) */
    ROLE_STATE,          /* a KV cache or other state, kept by the session */
    ROLE_ELSEWHERE       /* a state kept by ranks of another pipeline stage, or a value that they send */
};

/* One graph of the command line; in a pipeline (tpc-shard --pp), this rank's part of it. */
struct stage {
    const char *path;
    int number; /* from 1: K of --input K:NAME=FILE and --role K:NAME=ROLE */
    struct graph *graph;
    struct session *session;
    struct comm *comm;         /* the ranks of the session */
    struct pipeline *pipeline; /* NULL: they have the whole graph */
    struct graph *ends;        /* the inputs and outputs of the whole graph */
    enum role *role;           /* by input */
    bool decides;              /* it has logits; else it is an encoder */
    int home;                  /* the pipeline stage with the logits */
    int logits;                /* output; -1: none, or not on this rank */
    const char *logits_name;
    struct type logits_type;       /* global */
    bool chosen;                   /* that output has tokens, not scores */
    int embedding;                 /* output with the embedding of a text; -1: none */
    bool positions_lead;           /* positions precede rows, as in [sequence, batch, vocabulary] */
    bool keeps;                    /* some input is state */
    int64_t vocabulary, positions; /* number of its tokens; most tokens of a text; less than 1: unknown */
    const char *limit;             /* the source of the limit: " (config.json: n_ctx is 64)"; "": its own tables */
    struct tensor *given;          /* by input; data NULL: not given */
    struct tensor *in, *out;       /* of the next run; of the last run, as shards */
};
/* The first input with the role; -1: none. */
int decode_find_input(const struct stage *, enum role);

/* positions.c: sets vocabulary, positions and limit, while the graph is as loaded. Every rank of all calls it; rank 0 reads the
 * configuration next to the model. */
void positions_find(struct arena *, struct comm *all, const struct job_options *, struct stage *);
/* The number of tokens; INT32_MAX: unknown. */
int64_t decode_vocabulary(struct arena *, const struct stage *);

/* stage.c: loads the graph of s->path; then, once roles are known, makes stage k ready to run. */
void stage_load(struct arena *, struct comm *, const struct job_options *, struct stage *s);
/* Every rank calls it. */
void stage_free(struct stage *);
/* Whether some rank of the pipeline has it; without a pipeline, this rank. Every rank calls it. */
bool stage_any(const struct stage *, struct comm *all, bool own);
/* The text of the first pipeline stage that has one. Every rank calls it. */
const char *stage_first_text(struct arena *, const struct stage *, struct comm *all, const char *own);
/* A part of stage_prepare: lowers the graph. Outputs that are written have all positions, and --deterministic makes results independent of
 * such changes; otherwise only the last position may be computed. */
void stage_fuse(struct arena *, const struct job_options *, struct stage *s);
void stage_prepare(struct arena *, struct comm *all, const struct job_options *, int threads, struct stage *stage, int k);
/* Fails if the state of this many rows and tokens exceeds the available memory; sets need.bytes. */
void stage_check_cache(struct comm *group, struct comm *all, const struct job_options *, const struct stage *, struct cache_need need);
/* On this rank. */
int64_t stage_cache_bytes(const struct stage *, int64_t rows, int64_t tokens);
/* The memory on this rank that such state leaves, once weights are loaded. */
int64_t stage_room_left(const struct comm *all, const struct stage *, int64_t rows, int64_t columns);
/* Given constants and state become inputs of the next run. Fails with wrong usage on a missing constant. */
void stage_place_given(struct arena *, struct stage *);
/* The same for results of stages before k; allocates inputs that follow from tokens, for the history. NULL: there are none. */
struct history;
void stage_get_ready(struct arena *, struct stage *, int k, const struct history *);
/* Runs tokens [fed, length), or all if there is no state; the session keeps the state afterwards. NULL: no input follows from tokens. */
void stage_run(struct stage *, const struct history *, int64_t fed);

/* roles.c: sets the roles of all inputs, from --role, usual names, types and shapes, and takes --input, which rank 0 of all reads. Fails
 * with wrong usage on an unclear role, or an option that names no input. */
void roles_find(struct arena *, struct comm *all, struct stage *, int n, const struct job_options *);
/* The type of an input or output of the whole graph. */
struct type roles_type(struct graph *, enum rank_end, const struct value *);

/* last_position.c: if only the last position of the logits is read, the stage's graph computes only that. */
void last_position_only(struct arena *, struct stage *);

/* history.c: the tokens of all rows, with their masks and positions. */
struct history {
    int64_t batch, length, room;      /* room: the capacity of a row in columns */
    int64_t past;                     /* columns in the given state; their tokens are unknown */
    int64_t *token, *seen, *position; /* [batch, room] */
    int64_t *behind;                  /* by row: columns of padding after the last token; 0 once a token is added */
    const int64_t *adapter;           /* by row, if the graph has several; NULL: no row has one */
    int64_t scored;                   /* the last `scored` tokens of each row have scores in the next run, or more of them; usually 1 */
    int64_t picked;                   /* tokens are picked from the scores of the last `picked`; usually 1 */
};
struct history history_empty(struct arena *, int64_t batch, int64_t room);
/* Sets the column after the last one, in one row. The caller counts length. */
void history_put(struct history *, int64_t row, int64_t token, bool seen);
/* Starts with one column with the same token in every row. more: further columns. */
struct history history_start(struct arena *, int64_t batch, int64_t token, int64_t more);
void history_add(struct history *, const int64_t *next);
/* The position of the row's next token. */
int64_t history_next_position(const struct history *, int64_t row);
/* Allocates the inputs that follow from tokens, for the full capacity. history_feed sets their sizes and elements for tokens [fed, length)
 * before a run. */
void history_reserve(struct arena *, const struct history *, struct stage *);
void history_feed(const struct history *, int64_t fed, struct stage *);

/* chain.c: fills the missing state and constants of stage k from earlier stages, which have run. */
void chain_take(struct arena *, struct stage *, int k);

#endif
