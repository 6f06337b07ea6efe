/* decode: decoding (tpc-run --generate). The prefill runs every graph once, in order; then the last graph decodes every further
 * token. */
#ifndef TPC_DECODE_H
#define TPC_DECODE_H

#include "decode/prefix/prefix.h"
#include "decode/sampling/sampling.h"

/* prompt.c: starts from the tokens given to a stage, [batch, n] or [n], and the mask and positions given with them. */
/* Of an encoder, whose results have these places. */
struct history prompt_as_given(struct arena *, const struct stage *);
/* Without tokens that the mask hides, for this and the following stages; behind the state that is given. more: further columns. Rows of
 * unequal length that a stage can't compute together are a failure. */
struct history prompt_rows(struct arena *, const struct stage *, int stages, int64_t more);

/* Why rows of unequal length can't share a graph with a KV cache; "" if they can. *node: the name of the node to blame, NULL: none.
 * *behind: padding comes after the tokens, else before them. */
const char *prompt_padding(const struct stage *, bool *behind, const char **node);

/* prompt_text.c: prompts as text; in a build without tokenizers no option asks for it. Rank 0 reads them and the tokenizer and sends tokens
 * and mask, which become the given ones of the first graph that reads tokens, and, without --eos, the tokens that end a text. Every rank
 * calls it; NULL but on rank 0. */
struct prompt_text;
struct token_texts;
struct prompt_text *prompt_text_give(struct arena *, struct comm *all, struct stage *, int n, struct job_options *);
/* The same without prompts, for text that goes on. */
struct prompt_text *prompt_text_again(struct arena *, const struct comm *all, const struct job_options *);
/* The text of the first n ids counts as printed. */
void prompt_text_skip(struct prompt_text *, const int64_t *id, int64_t n);
/* Prints what the ids up to n add to the text that was printed; last: all of it. */
void prompt_text_print(struct prompt_text *, const int64_t *id, int64_t n, bool last);
/* What n ids add to the first ones, which were printed, on a line of its own. */
void prompt_text_print_row(struct prompt_text *, const int64_t *id, int64_t first, int64_t n);
/* Those of the tokenizer, of n tokens, as a form needs them. A tokenizer whose tokens are no parts of texts is a failure. */
struct token_texts prompt_text_tokens(struct arena *, const struct job_options *, int64_t n);
/* The id and, where there is a tokenizer, its text, quoted. */
const char *prompt_text_token(const struct prompt_text *, struct arena *, int64_t id);

/* parts.c: runs tokens [from, to) of a row behind the others, which ran before, with this adapter (row_sampling); the tokens up to `to`.
 * all_scores: of each of these
 * positions, else at least of the last one. */
struct history parts_run(struct arena *, struct stage *, int64_t adapter, const int64_t *token, int64_t from, int64_t to, bool all_scores);
/* Tried with made-up tokens: whether a prompt has the same scores in several parts as in one, and whether columns can be taken out of the
 * states and put back. Afterwards states are as before the first run. symbol: that counts rows. Every rank calls it. */
struct parts_found {
    bool agree, all_scores;                /* all_scores: the graph returns those of each position where they are wanted */
    const struct session_columns *columns; /* of the states; NULL: they can't be taken out */
    const char *why;                       /* that is so */
};
struct parts_found parts_try(struct arena *, struct comm *, struct stage *, const char *symbol, const struct job_options *,
                             int64_t vocabulary, int64_t context);

/* chained.c: texts of several graphs, one at a time. start: the token that the decoder begins with; most: tokens behind it. Every rank
 * calls all of these alike. */
struct chained;
struct chained *chained_new(struct arena *, struct comm *, struct stage *, int n, int64_t start, int64_t most);
/* Forgets the text before, if there is one. Behind the n tokens of the prompt are those that are made again. */
void chained_begin(struct chained *, const int64_t *prompt, int64_t n, const struct row_sampling *, struct form *);
/* Of the text, with its last token. */
enum form_state chained_form(const struct chained *);
/* *scored: its log-probability, if they are asked for. */
int64_t chained_next(struct chained *, struct logprobs *scored);
void chained_free(struct chained *);

/* rows_side.c: why only one row of a graph can run at a time; NULL: several can, and *to says how. Every rank calls it. */
struct row_side {
    const char *symbol; /* of the batch; NULL: it has a fixed size */
    bool behind;        /* padding comes after the tokens of a row, else before them */
};
const char *rows_side(struct arena *, struct comm *all, const struct stage *, struct row_side *to);

/* rows.c: rows of one graph that join and leave between steps. Every rank calls all of these alike. */
struct rows;
struct rows *rows_new(struct arena *, struct comm *, struct stage *, int64_t most);
struct rows *rows_of_chain(struct arena *, struct chained *);
/* No rows, of a stage that makes no texts; why: that it does not. */
struct rows *rows_none(struct arena *, const char *why);
/* The stage runs something else before the next call. */
void rows_interrupt(struct rows *);
/* Further rows of the same stage, apart from those: what was tried and stored holds for both. */
struct rows *rows_beside(struct arena *, struct rows *first);
/* Why only one row can run at a time; NULL: several can. */
const char *rows_alone(const struct rows *);
int64_t rows_count(const struct rows *);
/* Tries whether prompts may run in parts; from now on they do, if so. Before the first row joins. True: rows may ask for scores of all
 * of their prompt. */
bool rows_try_parts(struct rows *, const struct job_options *, int64_t vocabulary, int64_t context);
/* From now on a row that is alone, of `context` tokens at most, goes on with drafted ones (decode/draft). After rows_try_parts. Why it
 * can't; NULL: it does. */
struct drafter;
const char *rows_draft(struct rows *, struct drafter *, int64_t context);
/* Why the beginnings of texts can't be stored; NULL: they can. */
const char *rows_unstored(const struct rows *);
/* Bytes that a token of them takes on this rank. */
int64_t rows_column_bytes(const struct rows *);
/* From now on they are, in at most so many bytes on this rank. steps: so are tokens that steps make, which round in another way than
 * prompts. False: that is too little for any. */
bool rows_store(struct rows *, int64_t bytes, bool steps);
struct prefix_counts rows_stored(const struct rows *);
/* How many tokens of a prompt need not run with this adapter, because they are stored. */
int64_t rows_find_stored(struct rows *, int64_t adapter, const int64_t *prompt, int64_t n);
/* Rows may have forms once these are set. */
bool rows_has_forms(const struct rows *);
void rows_set_forms(struct rows *, struct forms *);
/* What the form of a row says of its text, with its last token. */
enum form_state rows_form(const struct rows *, int64_t row);
/* A further row joins behind all others, once its prompt has run: one row at a time. The last `made` of the n tokens were made before.
 * stored: tokens that need not run, as rank 0 found. A chain only repeats what was made. */
void rows_join(struct rows *, const int64_t *prompt, int64_t n, int64_t stored, const struct row_sampling *);
/* Runs the next part of that prompt, or all where it must run whole. */
void rows_begin_prompt(struct rows *);
/* Runs all rows, for a token of each. */
void rows_begin_step(struct rows *);
/* Ends what was begun: in a pipeline other rows may have begun meanwhile. A row that has joined, or all rows, have their next tokens. */
enum rows_done { ROWS_NONE, ROWS_PART, ROWS_JOINED, ROWS_STEPPED };
enum rows_done rows_finish(struct rows *, int64_t *next);
/* How many tokens that gave each row; more than one where they were drafted, for one row: at most DRAFT_MOST + 1. */
int64_t rows_taken(const struct rows *);
/* How many of them were drafted for it, kept or not. */
int64_t rows_drafted(const struct rows *);
/* The log-probability of the token that a row got last, if the row asks for it. */
const struct logprobs *rows_logprobs(const struct rows *, int64_t row);
/* Those of tokens of its prompt that the last rows_begin_prompt found, if the row asks for them: of n tokens that follow those before. */
const struct logprobs *rows_prompt_logprobs(const struct rows *, int64_t *n);
/* The row does not join. */
void rows_drop(struct rows *);
/* The rows of higher number move up by one. */
void rows_leave(struct rows *, int64_t row);
void rows_free(struct rows *);

/* saved.c: decoding that goes on later (--save-state, --load-state). */
#define SAVED_KIND "\"format\":\"tpc decoding " /* such a file has near its beginning */
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

/* generate/generate.c: decodes. Every rank calls it; rank 0 prints. True: a comparison failed. */
bool generate_run(struct arena *, const struct replicas *, const struct job_options *, int threads);
/* Prints the graphs of all ranks as decoding would run them. Every rank calls it. */
void generate_dump(struct arena *, const struct replicas *, const struct job_options *);

#endif
