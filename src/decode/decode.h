/* decode: decoding (tpc-run --generate). The prefill runs every graph once, in order; then the last graph decodes every further
 * token. */
#ifndef TPC_DECODE_H
#define TPC_DECODE_H

#include "ir/rank_meta.h"
#include "job/job.h"

#include <jansson.h>

/* The role of a graph input in the decode loop. */
enum role {
    ROLE_UNKNOWN,
    ROLE_CONSTANT,       /* the same at every run: from --input or an earlier graph */
    ROLE_TOKENS,         /* the tokens that the KV cache does not hold yet */
    ROLE_MASK,           /* which tokens so far are no padding */
    ROLE_POSITIONS,      /* positions of those tokens; left padding is not counted */
    ROLE_CACHE_POSITION, /* positions in the cache: padding is counted */
    ROLE_CACHED,         /* true if there is a past; picks the branch of a merged decoder */
    ROLE_LAST,           /* where the last token of a row, or of all, is among ROLE_TOKENS (last_position.c) */
    ROLE_STATE           /* a KV cache or other state; the session keeps it */
};

/* One graph of the command line. */
struct stage {
    const char *path;
    int number; /* from 1: K of --input K:NAME=FILE and --role K:NAME=ROLE */
    struct graph *graph;
    struct session *session;
    enum role *role;               /* by input */
    int logits;                    /* output; -1: none, as in an encoder */
    bool chosen;                   /* that output holds tokens, not scores */
    bool positions_lead;           /* it puts positions before rows, as [sequence, batch, vocabulary] */
    bool keeps;                    /* some input is state */
    int64_t vocabulary, positions; /* tokens and positions that its tables have rows for; less than 1: it is not known */
    struct tensor *given;          /* by input; data NULL: not given */
    struct tensor *in, *out;       /* of the next run; of the last run, shards */
};
/* The first input with the role; -1: none. */
int decode_find_input(const struct stage *, enum role);

/* positions.c: the rows of tables that the input of a role chooses from; the most tokens that a text may have by tables of positions.
 * -1: there are none. use: by input. */
int64_t positions_of_role(const struct stage *, const struct value_use *use, enum role);
int64_t positions_most(const struct stage *, const struct value_use *use);
/* Sets what a stage knows of its tables, while its graph is as it was read. */
void positions_find(struct arena *, struct stage *);
/* How many tokens there are; INT32_MAX: it is not known. */
int64_t decode_vocabulary(const struct stage *, const struct value_use *use);

/* stage.c: loads the graph of s->path; then, once roles are known, makes stage k ready to run. */
void stage_load(struct arena *, struct comm *, const struct job_options *, struct stage *s);
void stage_prepare(struct arena *, struct comm *all, struct comm *, const struct job_options *, int threads, struct stage *stage, int k);
/* Refuses what the state of so many rows and tokens will take, if it is more than what is available; sets need.bytes. */
void stage_check_cache(struct arena *, struct comm *group, struct comm *all, const struct job_options *, const struct stage *,
                       struct cache_need need);
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

/* prompt.c: starts from the tokens given to a stage, [batch, n] or [n], and the mask and positions given with them. */
/* Of an encoder, whose results have these places. */
struct history prompt_as_given(struct arena *, const struct stage *);
/* Without tokens that the mask hides, for this and the following stages; behind the state that is given. more: further columns. Rows of
 * unequal length that a stage can't compute together are a failure. */
struct history prompt_rows(struct arena *, const struct stage *, int stages, int64_t more);

/* Why rows of unequal length can't share a graph with a KV cache; "" if they can. *node: the node to blame, NULL: none. *behind: padding
 * comes after the tokens, else before them. */
const char *prompt_padding(const struct stage *, bool *behind, const struct node **node);

/* prompt_text.c: prompts as text; in a build without tokenizers no option asks for it. Rank 0 reads them and the tokenizer and sends tokens
 * and mask, which become the given ones of the first graph that reads tokens, and, without --eos, the tokens that end a text. Every rank
 * calls it; NULL but on rank 0. */
struct prompt_text;
struct prompt_text *prompt_text_give(struct arena *, struct comm *all, struct stage *, int n, struct job_options *);
/* The same without prompts, for text that goes on. */
struct prompt_text *prompt_text_again(struct arena *, const struct comm *all, const struct job_options *);
/* The text of the first n ids counts as printed. */
void prompt_text_skip(struct prompt_text *, const int64_t *id, int64_t n);
/* Prints what the ids up to n add to the text that was printed; last: all of it. */
void prompt_text_print(struct prompt_text *, const int64_t *id, int64_t n, bool last);
/* What n ids add to the first ones, which were printed, on a line of its own. */
void prompt_text_print_row(struct prompt_text *, const int64_t *id, int64_t first, int64_t n);
/* The id and, where there is a tokenizer, its text, quoted. */
const char *prompt_text_token(const struct prompt_text *, struct arena *, int64_t id);

/* config.c: generation_config.json and genai_config.json beside a model. */
/* The file of this name beside the first of the models that has it; NULL: none has. */
const char *config_beside(struct arena *, const struct job_options *, const char *name);
struct end_tokens config_ends(struct arena *, const struct job_options *);
bool config_is_end(const struct end_tokens *, int64_t token);
/* The token that a decoder behind an encoder begins with: by the options, else as the file says; 0 if neither does. Every rank calls it. */
int64_t config_start(struct arena *, struct comm *, const struct job_options *);
/* The settings for sampling, if the file says do_sample. The caller drops them; NULL: there are none. *path: the file. */
json_t *config_sampling(struct arena *, const struct job_options *, const char **path);

/* sampling.c: how the next token of a row is drawn from its scores, as transformers' generate() does: first the penalty, then the
 * temperature, top_k, top_p, min_p. */
struct sampling {
    double temperature; /* 0: none is drawn, the best one is taken */
    int64_t top_k;      /* only so many of the best; 0: any number */
    double top_p;       /* only the best that together have this probability; 1: all */
    double min_p;       /* only those with this share of the best one's probability; 0: all */
    double penalty;     /* positive scores of tokens that the row has are divided by it, negative ones multiplied; 1: neither */
    uint64_t seed;
};
/* The settings of the options; for text, the configuration gives those that the options leave open. Every rank calls it, rank 0 decides and
 * prints it. */
struct sampling sampling_agree(struct arena *, struct comm *, const struct job_options *);
/* NULL: all is as it should be, else what is wrong with a value. */
const char *sampling_fault(const struct sampling *);
/* Some of the scores do not count, so the best ones must be known. */
bool sampling_filters(const struct sampling *);
/* The weight of a score, best being the largest: whole numbers, whose sum does not depend on their order. */
int64_t sampling_weight(const struct sampling *, double score, double best);
/* A row's own number tells its draws from those of other rows. */
struct row_sampling {
    struct sampling of;
    uint64_t number;
};
/* The draws for one position of a row depend on seed, number, position and token alone. */
struct draws {
    uint64_t base;
    double per_score;
};
struct draws sampling_draws(const struct row_sampling *, int64_t position);
/* A score with its draw added: the largest of these sums is at each token with the probability that softmax of scores / temperature
 * gives it. One that is not larger than `than` may be given as -INFINITY. */
double sampling_draw(const struct draws *, int64_t token, double score, double than);

/* row_scores.c: the scores of the next token of each row, as far as this rank has them. */
struct scored_token {
    double score;
    int64_t token;
}; /* token -1: none */
/* One with a larger score, or with the same and a smaller token, comes first; none last. */
bool row_scores_before(struct scored_token, struct scored_token);
struct row_scores {
    const struct stage *stage;
    const struct history *history;
    struct tensor tensor;
    int n; /* of intervals; 0: this rank has no scores */
    const struct interval *at;
    int64_t columns; /* tokens in them */
};
/* Every rank calls it after a run of the stage. */
struct row_scores row_scores_of(struct arena *, const struct comm *, const struct stage *, const struct history *);
/* The same with all of them on rank 0. */
struct row_scores row_scores_gather(struct arena *, const struct comm *, const struct stage *, const struct history *);
/* The best of a row; where the graph chooses tokens, its choice. */
struct scored_token row_scores_best(const struct row_scores *, int64_t row);
/* All of a row; NaN counts as the least. */
void row_scores_read(const struct row_scores *, int64_t row, struct scored_token *);

/* pick.c: the next token of every row of the history, from the scores behind its last token. Every rank calls it after a run of a stage.
 * how: by row; NULL: the best one is taken. *count adds up the bytes and seconds of the exchange. */
void pick_next(struct comm *, const struct stage *, const struct history *, const struct row_sampling *how, int64_t *next,
               struct session_collective *count);

/* parts.c: runs tokens [from, to) of a row behind the others, which ran before; the tokens up to `to`. */
struct history parts_run(struct arena *, struct stage *, const int64_t *token, int64_t from, int64_t to);
/* True if a prompt has the same scores in several parts as in one, tried with made-up tokens. Afterwards states are as before the first
 * run. Every rank calls it. */
bool parts_agree(struct comm *, struct stage *, const struct job_options *, int64_t vocabulary, int64_t context);

/* chained.c: texts of several graphs, one at a time. start: the token that the decoder begins with; most: tokens behind it. Every rank
 * calls all of these alike. */
struct chained;
struct chained *chained_new(struct arena *, struct comm *, struct stage *, int n, int64_t start, int64_t most);
/* Forgets the text before, if there is one. */
void chained_begin(struct chained *, const int64_t *prompt, int64_t n, const struct row_sampling *);
int64_t chained_next(struct chained *);
void chained_free(struct chained *);

/* rows.c: rows of one graph that join and leave between steps. Every rank calls all of these alike. */
struct rows;
struct rows *rows_new(struct arena *, struct comm *, struct stage *, int64_t most);
struct rows *rows_of_chain(struct arena *, struct chained *);
/* Why only one row can run at a time; NULL: several can. */
const char *rows_alone(const struct rows *);
int64_t rows_count(const struct rows *);
/* From now on prompts may run in parts. */
void rows_allow_parts(struct rows *);
/* A further row joins behind all others, once its prompt has run: one row at a time. */
void rows_join(struct rows *, const int64_t *prompt, int64_t n, const struct row_sampling *);
/* Runs so many more tokens of that prompt, or all where it must run whole. True: the row has joined, with its first token. */
bool rows_go_on(struct rows *, int64_t tokens, int64_t *next);
/* The row does not join. */
void rows_drop(struct rows *);
/* Decodes a token of every row. */
void rows_step(struct rows *, int64_t *next);
/* The rows of higher number move up by one. */
void rows_leave(struct rows *, int64_t row);
void rows_free(struct rows *);

/* saved.c: decoding that goes on later (--save-state, --load-state). */
struct saved_run {
    int64_t made, past; /* tokens that were made in all; columns of state before them whose tokens are not known */
    bool text;          /* they are text for the user */
    struct sampling sampling;
};
/* Every rank calls all of these. The file is begun before anything is computed, and has its name once it is complete. */
struct saved_file;
struct saved_file *saved_begin(struct arena *, const struct comm *all, const struct stage *last, const struct job_options *);
/* After a run, or before the first one of a graph that others have handed their states. */
void saved_write(struct saved_file *, const struct stage *last, const struct history *, const struct job_options *,
                 const struct saved_run *);
/* What the stage takes, states in an arena of their own, with room for the tokens to make; and options that are not given. */
struct history saved_read(struct arena *, struct arena *states, struct comm *all, struct stage *last, struct job_options *,
                          struct saved_run *);

/* chain.c: fills the state and constants of stage k that are not given, from the stages before it, which have run. */
void chain_take(struct arena *, struct stage *, int k);

/* unsharded.c: the model of --check beside the ranks; rank 0 has it and calls all of these. Made before the first graph runs. */
struct unsharded;
struct unsharded *unsharded_new(struct arena *, const struct stage *ranks, int n, const struct job_options *, int threads);
/* What graph k of the ranks has run, or is about to run, h NULL: without tokens. */
void unsharded_run(struct unsharded *, int k, const struct history *, int64_t fed);
/* After that run: all scores of the ranks, and the tokens that they chose, but for rows that had ended before. */
void unsharded_compare(struct unsharded *, const struct row_scores *ranks, const struct row_sampling *how, const int64_t *next,
                       const bool *ended);
/* Prints the first token that differs, and PASSED or FAILED. all: with every token. True: failed. */
bool unsharded_end(struct unsharded *, const struct history *all, const struct prompt_text *);

/* bench_tokens.c: measures a graph that decodes text by itself, and prints a table (--bench). Every rank calls it. False: it is no such
 * graph.
 */
bool bench_tokens_run(struct arena *, const struct replicas *, const struct job_options *, int threads);

/* generate.c: decodes. Every rank calls it; rank 0 prints. True: a comparison failed. */
bool generate_run(struct arena *, const struct replicas *, const struct job_options *, int threads);

#endif
