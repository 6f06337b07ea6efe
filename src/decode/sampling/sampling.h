/* decode/sampling: the next token of a row, from its scores; the settings beside a model. */
#ifndef TPC_DECODE_SAMPLING_H
#define TPC_DECODE_SAMPLING_H

#include "decode/stage/stage.h"
#include "grammar/grammar.h"

#include <jansson.h>

/* config.c: generation_config.json and genai_config.json beside a model; without an end there, eos_token of tokenizer_config.json. */
struct end_tokens config_ends(struct arena *, const struct job_options *);
bool config_is_end(const struct end_tokens *, int64_t token);
/* The token that a decoder behind an encoder begins with: by the options, else as the file says; 0 if neither does. Every rank calls it. */
int64_t config_start(struct arena *, struct comm *, const struct job_options *);
/* The settings for sampling, if the file says do_sample. The caller drops them; NULL: there are none. *path: the file. */
json_t *config_sampling(struct arena *, const struct job_options *, const char **path);

/* sampling.c: how the next token of a row is drawn from its scores, as transformers' generate() does: first biases, then penalties, the
 * temperature, top_k, top_p, min_p. */
struct sampling {
    double temperature; /* 0: none is drawn, the best one is taken */
    int64_t top_k;      /* only so many of the best; 0: any number */
    double top_p;       /* only the best that together have this probability; 1: all */
    double min_p;       /* only those with this share of the best one's probability; 0: all */
    double penalty;     /* positive scores of tokens that the row has are divided by it, negative ones multiplied; 1: neither */
    double presence;    /* subtracted from the score of a token that the row has made */
    double frequency;   /* and this for each time that it was made */
    uint64_t seed;
};
/* The settings of the options; for text, the configuration gives those that the options leave open. Every rank calls it, rank 0 decides and
 * prints it. */
struct sampling sampling_agree(struct arena *, struct comm *, const struct job_options *);
/* The first setting that is out of range, and what it should be. key NULL: none is. */
struct sampling_fault {
    const char *key, *expected;
};
struct sampling_fault sampling_fault(const struct sampling *);
/* Some of the scores do not count, so the best ones must be known. */
bool sampling_filters(const struct sampling *);
/* The weight of a score, best being the largest: whole numbers, whose sum does not depend on their order. */
int64_t sampling_weight(const struct sampling *, double score, double best);
struct scored_token {
    double score;
    int64_t token;
}; /* token -1: none */
struct row_sampling {
    struct sampling of;
    uint64_t number; /* tells its draws from those of other rows */
    int64_t prompts; /* its first tokens, which were not made */
    int64_t biases;  /* scores that are added to those of tokens, each named once */
    const struct scored_token *bias;
    int64_t adapter;               /* that it runs with, from 1; 0: none */
    bool logprobs;                 /* log-probabilities of its tokens are asked for */
    bool prompt_logprobs;          /* and of its prompt */
    int64_t alternatives;          /* besides, of so many of the best at each place: at most LOGPROBS_MOST */
    const struct grammar *grammar; /* that its text keeps to; NULL: it is free */
    bool begins;                   /* its text is what its tokens say alone: a blank before the first one is lost */
    int64_t made;                  /* so many of the tokens that it begins with were made before, and its text goes on */
    bool repeats;                  /* steps make these again, for prompts round in another way; else they run as a part of the prompt */
    struct form *form;             /* of a row that runs */
};
enum { LOGPROBS_MOST = 20 };
struct row_sampling sampling_copy(struct arena *, const struct row_sampling *);
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
/* Every rank that has logits calls it after a run of the stage. */
struct row_scores row_scores_of(struct arena *, const struct stage *, const struct history *);
/* The same with all of them on rank 0. Every rank calls it. */
struct row_scores row_scores_gather(struct arena *, const struct stage *, const struct history *);
/* The best of a row, behind its last token or the one so many before it; where the graph chooses tokens, its choice. */
struct scored_token row_scores_best(const struct row_scores *, int64_t row, int64_t back);
/* The column of a token among those of this rank; -1: another rank has it. */
int64_t row_scores_column(const struct row_scores *, int64_t token);
/* All of a row, at such a place; NaN counts as the least. */
void row_scores_read(const struct row_scores *, int64_t row, int64_t back, struct scored_token *);
/* The best n of them in any order, then none where there are fewer. */
void row_scores_few(const struct scored_token *all, int64_t columns, int64_t n, struct scored_token *to);
/* Of every rank so many bytes; from_first: only those of rank 0. *count adds up the bytes and seconds. */
void row_scores_exchange(struct comm *, struct session_collective *count, void *all, int64_t each, bool from_first);

/* logprobs.c: log-probabilities by the model's own scores, without biases, penalties and temperature. */
struct logprobs {
    double token;                            /* of the token in its place */
    int64_t n;                               /* alternatives */
    struct scored_token best[LOGPROBS_MOST]; /* the best first; score: the log-probability */
};
struct logprobs_place {
    int64_t row, back; /* so many positions before the row's last token */
    int64_t token, alternatives;
};
/* Every rank that has logits calls it after a run of the stage, which returns scores, not tokens; all of them have the results. */
void logprobs_find(struct comm *, const struct row_scores *, int64_t n, const struct logprobs_place *, struct session_collective *count,
                   struct logprobs *);
/* In a pipeline, those that have them tell the others, which hear them. */
void logprobs_tell(const struct stage *, int64_t n, const struct logprobs *);
void logprobs_hear(const struct stage *, int64_t n, struct logprobs *);
/* Of the tokens that rows got, for those rows that ask for them. In a pipeline the others get them by logprobs_wait. */
void logprobs_next(const struct stage *, const struct history *, const struct row_sampling *how, const int64_t *next,
                   struct session_collective *count, struct logprobs *by_row);
void logprobs_wait(const struct stage *, int64_t batch, const struct row_sampling *how, struct logprobs *by_row);

/* adjust.c: scores as biases and penalties make them. */
bool adjust_changes(const struct row_sampling *);
/* All of a row that this rank has, as row_scores_read gives them. */
void adjust_scores(const struct row_scores *, const struct history *, int64_t row, const struct row_sampling *, struct scored_token *);

/* forms.c: rows whose texts keep to a grammar. */
struct forms;
struct token_texts;
/* Every rank calls it; rank 0 has the tokens. ends: tokens that end a text, and are no text. */
struct forms *forms_new(struct comm *, const struct token_texts *, const struct end_tokens *ends);
void forms_free(struct forms *); /* once no row uses them */
struct form;
/* Of a row, at the beginning of its text. The grammar is copied. */
struct form *form_new(struct forms *, const struct grammar *, bool begins);
void form_free(struct form *);
/* Scores of this rank, as row_scores_read gives them: tokens that may not come next are none. */
void form_mask(struct form *, const struct row_scores *, struct scored_token *);
/* The row got a token. Whole: nothing may follow. Stuck: there was none for it; slow: to find one took too long. It is made one that the
 * row may have until it leaves. */
enum form_state { FORM_GOES_ON, FORM_WHOLE, FORM_STUCK, FORM_SLOW };
enum form_state form_take(struct form *, int64_t *token);

/* pick.c: the next tokens of every row of the history, from the scores behind its last `picked` ones: [batch, picked]; -1: its grammar
 * allows none. A row with a form has one place. Every rank calls it after a run of a stage. how: by row; NULL: the best one is taken.
 * *count adds up the bytes and seconds of the exchange. In a pipeline those that have no scores get the tokens by pick_wait, n of them,
 * which all ranks call before the next run of these rows. */
void pick_next(const struct stage *, const struct history *, const struct row_sampling *how, int64_t *next,
               struct session_collective *count);
void pick_wait(const struct stage *, int64_t n, int64_t *next);

#endif
