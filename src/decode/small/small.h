/* decode/small: a small model that drafts tokens for a large one, and the choice between that and a look-up. */
#ifndef TPC_DECODE_SMALL_H
#define TPC_DECODE_SMALL_H

#include "decode/decode.h"
#include "decode/draft/draft.h"

/* drafter.c: what drafts by the options, for the stage, which is ready to run; NULL: they ask for nothing. Every rank of comm calls it. */
struct drafter *drafter_new(struct arena *, struct comm *, const struct stage *, const struct job_options *, int threads);
/* What there may be NULL of a drafter, and of none. */
void drafter_check(struct drafter *, const struct history *);
int64_t drafter_bytes(const struct drafter *, int64_t rows, int64_t tokens);
void drafter_end(struct drafter *);

/* model.c: the small model, and the ranks that run it. */
struct drafter *small_drafter(struct arena *, struct comm *, const struct stage *large, const struct job_options *, int threads);

/* vocabulary.c: fails if one of the first n tokens of two models differs. Rank 0 calls it; models without a tokenizer are not compared. */
void vocabulary_compare(const struct job_options *large, const struct job_options *small, int64_t n);

/* follow.c: the tokens that a stage has in its caches, of rows that are given anew each time: those that go on as before stay there. */
struct follow {
    struct stage *stage;
    bool behind; /* it pads rows behind their tokens */
    struct arena *feed;
    struct history own;
    int64_t fed; /* columns of it in the caches */
    struct session_collective count;
};
/* It has read nothing yet. The stage is ready to run. */
struct follow follow_new(struct stage *);
/* The rows are these now. room: for further columns. */
void follow_rows(struct follow *, const struct history *, int64_t room);
/* The next token of each row by the stage, [batch], behind those so far, which is added to them. */
void follow_step(struct follow *, const struct row_sampling *how, int64_t *next);
void follow_end(struct follow *);

#endif
