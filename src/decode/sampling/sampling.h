/* decode/sampling: the next token of a row, from its scores; the settings next to a model. */
#ifndef TPC_DECODE_SAMPLING_H
#define TPC_DECODE_SAMPLING_H

#include "decode/stage/stage.h"
#include "grammar/grammar.h"

#include <jansson.h>

/* config.c: from generation_config.json and genai_config.json next to a model; without an end there, eos_token of tokenizer_config.json. */
struct end_tokens config_ends(struct arena *, const struct job_options *);
bool config_is_end(const struct end_tokens *, int64_t token);
/* The start token of a decoder with an encoder: by the options, else by the file; 0 if neither has it. Every rank calls it. */
int64_t config_start(struct arena *, struct comm *, const struct job_options *);
/* The sampling settings, if the file has do_sample. The caller frees them; NULL: none. *path: the file. */
json_t *config_sampling(struct arena *, const struct job_options *, const char **path);

/* sampling.c: how the next token of a row is drawn from its scores, as in transformers' generate(): first biases, then penalties,
 * temperature, top_k, top_p, min_p. */
struct sampling {
    double temperature; /* 0: the best token, without drawing */
    int64_t top_k;      /* only this many of the best; 0: any number */
    double top_p;       /* only the best ones with this total probability; 1: all */
    double min_p;       /* only those with at least this fraction of the best one's probability; 0: all */
    double penalty;     /* divides positive scores of tokens in the row, multiplies negative ones; 1: none */
    double presence;    /* subtracted from the score of a generated token */
    double frequency;   /* subtracted once per time that it was generated */
    uint64_t seed;
};
/* The settings of the options; for text, the configuration provides the missing ones. Every rank calls it; rank 0 decides and prints
 * them. */
struct sampling sampling_agree(struct arena *, struct comm *, const struct job_options *);
/* The first setting that is out of range, and what it should be. key NULL: none. */
struct sampling_fault {
    const char *key, *expected;
};
struct sampling_fault sampling_fault(const struct sampling *);
/* Whether some scores do not count, so that the best ones must be known. */
bool sampling_filters(const struct sampling *);
/* The weight of a score, where best is the largest: integers, whose sum does not depend on their order. */
int64_t sampling_weight(const struct sampling *, double score, double best);
struct scored_token {
    double score;
    int64_t token;
}; /* token -1: none */
struct row_sampling {
    struct sampling of;
    uint64_t number; /* distinguishes its draws from other rows' */
    int64_t prompts; /* its first tokens, which were not generated */
    int64_t biases;  /* added to scores of tokens, each named once */
    const struct scored_token *bias;
    int64_t adapter;               /* the adapter it runs with, from 1; 0: none */
    bool logprobs;                 /* log-probabilities of its tokens are requested */
    bool prompt_logprobs;          /* and of its prompt */
    int64_t alternatives;          /* also this many of the best at each position: at most LOGPROBS_MOST */
    const struct grammar *grammar; /* that its text must follow; NULL: free */
    bool begins;                   /* its text is that of its tokens alone: a blank before the first one is dropped */
    int64_t made;                  /* number of its first tokens that were generated before; its text continues */
    bool repeats;                  /* steps make these again, because prompts round differently; else they run as a part of the prompt */
    struct form *form;             /* of a running row */
};
enum { LOGPROBS_MOST = 20 };
struct row_sampling sampling_copy(struct arena *, const struct row_sampling *);
/* The draws for one position of a row depend only on seed, number, position and token. */
struct draws {
    uint64_t base;
    double per_score;
};
struct draws sampling_draws(const struct row_sampling *, int64_t position);
/* A score with its draw added: the largest of these sums is at each token with its probability under softmax of scores / temperature. A sum
 * not larger than `than` may be returned as -INFINITY. */
double sampling_draw(const struct draws *, int64_t token, double score, double than);

/* row_scores.c: the scores of the next token of each row, as far as this rank has them. */
/* By larger score, then by smaller token; none last. */
bool row_scores_before(struct scored_token, struct scored_token);
struct row_scores {
    const struct stage *stage;
    const struct history *history;
    struct tensor tensor;
    int n; /* of intervals; 0: this rank has no scores */
    const struct interval *at;
    int64_t columns; /* tokens in them */
};
/* Every rank with logits calls it after a run of the stage. */
struct row_scores row_scores_of(struct arena *, const struct stage *, const struct history *);
/* The same with all scores on rank 0. Every rank calls it. */
struct row_scores row_scores_gather(struct arena *, const struct stage *, const struct history *);
/* The best token of a row, after its last token or `back` positions before; if the graph chooses tokens, its choice. */
struct scored_token row_scores_best(const struct row_scores *, int64_t row, int64_t back);
/* The column of a token on this rank; -1: another rank has it. */
int64_t row_scores_column(const struct row_scores *, int64_t token);
/* All scores of a row at such a position; NaN counts as the least. */
void row_scores_read(const struct row_scores *, int64_t row, int64_t back, struct scored_token *);
/* The best n in any order, padded with none. */
void row_scores_few(const struct scored_token *all, int64_t columns, int64_t n, struct scored_token *to);
/* Exchanges this many bytes of every rank; from_first: only rank 0's. *count adds up the bytes and seconds. */
void row_scores_exchange(struct comm *, struct session_collective *count, void *all, int64_t each, bool from_first);

/* logprobs.c: log-probabilities from the model's scores, without biases, penalties and temperature. */
struct logprobs {
    double token;                            /* of the actual token */
    int64_t n;                               /* alternatives */
    struct scored_token best[LOGPROBS_MOST]; /* best first; score: the log-probability */
};
struct logprobs_place {
    int64_t row, back; /* position: `back` before the row's last token */
    int64_t token, alternatives;
};
/* Every rank with logits calls it after a run of the stage, which must return scores, not tokens; all of them get the results. */
void logprobs_find(struct comm *, const struct row_scores *, int64_t n, const struct logprobs_place *, struct session_collective *count,
                   struct logprobs *);
/* In a pipeline, the ranks that have them send them to the others. */
void logprobs_tell(const struct stage *, int64_t n, const struct logprobs *);
void logprobs_hear(const struct stage *, int64_t n, struct logprobs *);
/* Of the tokens that rows got, for rows that request them. In a pipeline the other ranks get them by logprobs_wait. */
void logprobs_next(const struct stage *, const struct history *, const struct row_sampling *how, const int64_t *next,
                   struct session_collective *count, struct logprobs *by_row);
void logprobs_wait(const struct stage *, int64_t batch, const struct row_sampling *how, struct logprobs *by_row);

/* adjust.c: applies biases and penalties to scores. */
bool adjust_changes(const struct row_sampling *);
/* All scores of a row on this rank, as from row_scores_read. */
void adjust_scores(const struct row_scores *, const struct history *, int64_t row, const struct row_sampling *, struct scored_token *);

/* forms.c: rows whose texts follow a grammar. */
struct forms;
struct token_texts;
/* Every rank calls it; rank 0 has the tokens. ends: tokens that end a text and have no text. */
struct forms *forms_new(struct comm *, const struct token_texts *, const struct end_tokens *ends);
void forms_free(struct forms *); /* once no row uses them */
struct form;
/* For a row, at the beginning of its text. Copies the grammar. */
struct form *form_new(struct forms *, const struct grammar *, bool begins);
void form_free(struct form *);
/* Scores on this rank, as from row_scores_read: removes tokens that may not come next. */
void form_mask(struct form *, const struct row_scores *, struct scored_token *);
/* The row got a token. Whole: nothing may follow. Stuck: no token was possible; slow: finding one took too long. In both cases the row may
 * have any token until it leaves. */
enum form_state { FORM_GOES_ON, FORM_WHOLE, FORM_STUCK, FORM_SLOW };
enum form_state form_take(struct form *, int64_t *token);

/* pick.c: the next tokens of every row of the history, from the scores of its last `picked` positions: [batch, picked]; -1: its grammar
 * allows none. A row with a form has one position. Every rank calls it after a run of a stage. how: by row; NULL: the best token. *count
 * adds up the bytes and seconds of the exchange. In a pipeline, ranks without scores get the tokens by pick_wait, n of them, which all
 * ranks call before the next run of these rows. */
void pick_next(const struct stage *, const struct history *, const struct row_sampling *how, int64_t *next,
               struct session_collective *count);
void pick_wait(const struct stage *, int64_t n, int64_t *next);

#endif
