/* decode: decoding (tpc-run --generate). The prefill runs every graph once, in order; then the last graph decodes every further
 * token. */
#ifndef TPC_DECODE_H
#define TPC_DECODE_H

#include "decode/prefix/prefix.h"
#include "decode/sampling/sampling.h"

/* prompt.c: starts from the tokens given to a stage, [batch, n] or [n], with their mask and positions. */
/* For an encoder, whose results have these positions. */
struct history prompt_as_given(struct arena *, const struct stage *);
/* Removes tokens that the mask hides, for this and later stages; after the given state. more: further columns. Fails if a stage cannot
 * compute rows of unequal length together. */
struct history prompt_rows(struct arena *, const struct stage *, int stages, int64_t more);

/* Why rows of unequal length cannot share a graph with a KV cache; "" if they can. *node: the node at fault, NULL: none. *behind: padding
 * follows the tokens, else precedes them. */
const char *prompt_padding(const struct stage *, bool *behind, const char **node);

/* prompt_text.c: prompts as text; a build without tokenizers has no option for it. Rank 0 reads them and the tokenizer and sends tokens and
 * mask, which become the given ones of the first graph that reads tokens, and, without --eos, the tokens that end a text. Every rank calls
 * it; NULL except on rank 0. */
struct prompt_text;
struct token_texts;
struct prompt_text *prompt_text_give(struct arena *, struct comm *all, struct stage *, int n, struct job_options *);
/* The same without prompts, for a text that continues. */
struct prompt_text *prompt_text_again(struct arena *, const struct comm *all, const struct job_options *);
/* Marks the text of the first n ids as printed. */
void prompt_text_skip(struct prompt_text *, const int64_t *id, int64_t n);
/* Prints what ids up to n add to the printed text; last: everything. */
void prompt_text_print(struct prompt_text *, const int64_t *id, int64_t n, bool last);
/* Prints what n ids add to the first ones, which were printed, on a line of its own. */
void prompt_text_print_row(struct prompt_text *, const int64_t *id, int64_t first, int64_t n);
/* The tokenizer's tokens, n of them, for forms. Fails if the tokenizer's tokens are no parts of texts. */
struct token_texts prompt_text_tokens(struct arena *, const struct job_options *, int64_t n);
/* The id and, if there is a tokenizer, its text, quoted. */
const char *prompt_text_token(const struct prompt_text *, struct arena *, int64_t id);

/* parts.c: runs tokens [from, to) of a row after the earlier ones, with this adapter (row_sampling); the tokens up to `to`. all_scores: for
 * each of these positions, else at least for the last one. */
struct history parts_run(struct arena *, struct stage *, int64_t adapter, const int64_t *token, int64_t from, int64_t to, bool all_scores);
/* Tests with made-up tokens whether a prompt has the same scores in several parts as in one, and whether columns can be copied out of the
 * states and back. Afterwards states are as before the first run. symbol: counts rows. Every rank calls it. */
struct parts_found {
    bool agree, all_scores;                /* all_scores: the graph returns scores of every position on request */
    const struct session_columns *columns; /* of the states; NULL: not possible */
    const char *why;                       /* the reason */
};
struct parts_found parts_try(struct arena *, struct comm *, struct stage *, const char *symbol, const struct job_options *,
                             int64_t vocabulary, int64_t context);

/* chained.c: texts from several graphs, one at a time. start: the decoder's first token; most: tokens after it. Every rank makes the same
 * calls. */
struct chained;
struct chained *chained_new(struct arena *, struct comm *, struct stage *, int n, int64_t start, int64_t most);
/* Discards the previous text. The prompt's n tokens include those to make again, at the end. */
void chained_begin(struct chained *, const int64_t *prompt, int64_t n, const struct row_sampling *, struct form *);
/* For the text with its last token. */
enum form_state chained_form(const struct chained *);
/* *scored: its log-probability, if requested. */
int64_t chained_next(struct chained *, struct logprobs *scored);
void chained_free(struct chained *);

/* rows_side.c: why only one row of a graph can run at a time; NULL: several can, and *to says how. Every rank calls it. */
struct row_side {
    const char *symbol; /* of the batch; NULL: fixed size */
    bool behind;        /* padding follows a row's tokens, else precedes them */
};
const char *rows_side(struct arena *, struct comm *all, const struct stage *, struct row_side *to);

/* rows.c: rows of one graph that join and leave between steps. Every rank makes the same calls. */
struct rows;
struct rows *rows_new(struct arena *, struct comm *, struct stage *, int64_t most);
struct rows *rows_of_chain(struct arena *, struct chained *);
/* No rows, for a stage that makes no texts; why: the reason. */
struct rows *rows_none(struct arena *, const char *why);
/* The stage runs something else before the next call. */
void rows_interrupt(struct rows *);
/* Further, separate rows of the same stage; they share the first rows' test results and stored tokens. */
struct rows *rows_beside(struct arena *, struct rows *first);
/* Why only one row can run at a time; NULL: several can. */
const char *rows_alone(const struct rows *);
int64_t rows_count(const struct rows *);
/* Tests whether prompts may run in parts; if so, they do from now on. Before the first row joins. True: rows may request scores of their
 * whole prompt. */
bool rows_try_parts(struct rows *, const struct job_options *, int64_t vocabulary, int64_t context);
/* From now on a row that is alone, of at most `context` tokens, continues with drafted tokens (decode/draft). After rows_try_parts. The
 * reason why it cannot; NULL: it can. */
struct drafter;
const char *rows_draft(struct rows *, struct drafter *, int64_t context);
/* Why prefixes of texts cannot be stored; NULL: they can. */
const char *rows_unstored(const struct rows *);
/* Bytes per stored token on this rank. */
int64_t rows_column_bytes(const struct rows *);
/* From now on prefixes are stored, in at most this many bytes on this rank. steps: also tokens made by steps, which round differently from
 * prompts. False: too little for any. */
bool rows_store(struct rows *, int64_t bytes, bool steps);
struct prefix_counts rows_stored(const struct rows *);
/* How many tokens of a prompt need not run with this adapter, because they are stored. */
int64_t rows_find_stored(struct rows *, int64_t adapter, const int64_t *prompt, int64_t n);
/* After this, rows may have forms. */
bool rows_has_forms(const struct rows *);
void rows_set_forms(struct rows *, struct forms *);
/* The state of a row's form, with its last token. */
enum form_state rows_form(const struct rows *, int64_t row);
/* A new row joins after all others, once its prompt has run: one row at a time. The last `made` of the n tokens were generated before.
 * stored: tokens that need not run, as found by rank 0. With a chain, they are only repeated. */
void rows_join(struct rows *, const int64_t *prompt, int64_t n, int64_t stored, const struct row_sampling *);
/* Runs the next part of that prompt, or all of it if it must run whole. */
void rows_begin_prompt(struct rows *);
/* Runs all rows, for one token each. */
void rows_begin_step(struct rows *);
/* Finishes what was begun: in a pipeline other rows may have begun meanwhile. A row that joined, or all rows, have their next tokens. */
enum rows_done { ROWS_NONE, ROWS_PART, ROWS_JOINED, ROWS_STEPPED };
enum rows_done rows_finish(struct rows *, int64_t *next);

/* prompt_groups.c: rows that run together: all, or in stages as many groups as there are stages, each in another stage. */
struct prompt_group {
    struct rows *rows;
    int64_t from, to, joined; /* numbers of its rows; how many of them have joined */
    bool joins;               /* the next one is joining */
};
struct prompt_groups {
    int n;
    struct prompt_group *at;
};
/* rows: their number in all; first: becomes the first group's. */
struct prompt_groups prompt_groups_new(struct arena *, const struct stage *, struct rows *first, int64_t rows);
/* Runs the prompts of all rows, in parts where the graph allows. join: calls rows_join for a row. next: by row, its first token. */
void prompt_groups_prompts(const struct prompt_groups *, int64_t *next, void (*join)(void *data, struct rows *, int64_t row), void *data);
void prompt_groups_free(const struct prompt_groups *);
/* How many tokens each row got; more than one if they were drafted, for one row: at most DRAFT_MOST + 1. */
int64_t rows_taken(const struct rows *);
/* How many tokens were drafted, kept or not. */
int64_t rows_drafted(const struct rows *);
/* The log-probability of a row's last token, if the row requests it. */
const struct logprobs *rows_logprobs(const struct rows *, int64_t row);
/* Log-probabilities of prompt tokens from the last rows_begin_prompt, if the row requests them: for the next n tokens. */
const struct logprobs *rows_prompt_logprobs(const struct rows *, int64_t *n);
/* Drops the row that is joining. */
void rows_drop(struct rows *);
/* Rows of higher number move up by one. */
void rows_leave(struct rows *, int64_t row);
void rows_free(struct rows *);

/* saved.c: decoding that continues later (--save-state, --load-state). */
#define SAVED_KIND "\"format\":\"tpc decoding " /* near the beginning of such a file */
struct saved_run {
    int64_t made, past; /* tokens generated in total; columns of state before them whose tokens are unknown */
    bool text;          /* they are text for the user */
    struct sampling sampling;
};
/* Every rank calls all of these. The file is opened before anything is computed, and gets its name when it is complete. */
struct saved_file;
struct saved_file *saved_begin(struct arena *, const struct comm *all, const struct stage *last, const struct job_options *);
/* After a run, or before the first run of a graph that got its states from others. */
void saved_write(struct saved_file *, const struct stage *last, const struct history *, const struct job_options *,
                 const struct saved_run *);
/* The stage's inputs, with states in a separate arena, with space for the tokens to make; and options that are not given. */
struct history saved_read(struct arena *, struct arena *states, struct comm *all, struct stage *last, struct job_options *,
                          struct saved_run *);

/* unsharded.c: the model of --check, run on rank 0 in addition to the ranks; rank 0 makes all of these calls. Made before the first graph
 * runs. */
struct unsharded;
struct unsharded *unsharded_new(struct arena *, const struct stage *ranks, int n, const struct job_options *, int threads);
/* Runs what graph k of the ranks has run, or is about to run, h NULL: without tokens. */
void unsharded_run(struct unsharded *, int k, const struct history *, int64_t fed);
/* After that run: compares all scores of the ranks, and the tokens that they chose, except for rows that had ended. */
void unsharded_compare(struct unsharded *, const struct row_scores *ranks, const struct row_sampling *how, const int64_t *next,
                       const bool *ended);
/* Prints the first token that differs, and PASSED or FAILED. all: with every token. True: failed. */
bool unsharded_end(struct unsharded *, const struct history *all, const struct prompt_text *);

/* bench_tokens.c: benchmarks a graph that decodes text by itself, and prints a table (--bench). Every rank calls it. False: it is no such
 * graph. */
bool bench_tokens_run(struct arena *, const struct replicas *, const struct job_options *, int threads);

/* generate/generate.c: decodes. Every rank calls it; rank 0 prints. True: a comparison failed. */
bool generate_run(struct arena *, const struct replicas *, const struct job_options *, int threads);
/* Prints the graphs of all ranks as decoding would run them. Every rank calls it. */
void generate_dump(struct arena *, const struct replicas *, const struct job_options *);

#endif
