/* decode/small: a small model that drafts tokens for a large one, and the choice between that and lookups. */
#ifndef TPC_DECODE_SMALL_H
#define TPC_DECODE_SMALL_H

#include "decode/decode.h"
#include "decode/draft/draft.h"

/* drafter.c: the drafter of the options, for a stage that is ready to run; NULL: none. Every rank of comm calls it. */
struct drafter *drafter_new(struct arena *, struct comm *, const struct stage *, const struct job_options *, int threads);
/* These accept a NULL drafter, and NULL members. */
void drafter_check(struct drafter *, const struct history *);
int64_t drafter_bytes(const struct drafter *, int64_t rows, int64_t tokens);
void drafter_end(struct drafter *);

/* model.c: the small model, and the ranks that run it. */
struct drafter *small_drafter(struct arena *, struct comm *, const struct stage *large, const struct job_options *, int threads);

/* vocabulary.c: fails if one of the first n tokens of two models differs. Rank 0 calls it; models without a tokenizer are not compared. */
void vocabulary_compare(const struct job_options *large, const struct job_options *small, int64_t n);

/* follow.c: the tokens in a stage's caches, for rows that are given anew each time: unchanged beginnings stay cached. */
struct follow {
    struct stage *stage;
    bool behind; /* it pads rows after their tokens */
    struct arena *feed;
    struct history own;
    int64_t fed; /* its columns in the caches */
    struct session_collective count;
};
/* It has read nothing so far. The stage is ready to run. */
struct follow follow_new(struct stage *);
/* Sets the rows. room: for further columns. */
void follow_rows(struct follow *, const struct history *, int64_t room);
/* The next token of each row by the stage, [batch], appended to the rows. */
void follow_step(struct follow *, const struct row_sampling *how, int64_t *next);
void follow_end(struct follow *);

#endif
