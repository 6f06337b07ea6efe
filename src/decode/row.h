/* row: a text that is being generated, with its state. */
#ifndef TPC_DECODE_ROW_H
#define TPC_DECODE_ROW_H

#include "decode/decode.h"

struct row {
    struct arena *arena;
    VEC(int64_t) token; /* the last one is not in the cache yet */
    int64_t repeats;    /* tokens to make again, */
    const int64_t *repeat;
    struct row_sampling how;
    enum form_state form; /* of its text with the last token */
    int64_t place;        /* its row in the current states */
};

/* The last how->made of n tokens were generated before: they are a part of the prompt, or are made again. The row owns the form. */
struct row *row_new(const int64_t *token, int64_t n, const struct row_sampling *how, struct form *);
/* Appends the next token; replaces it by the known one if tokens are made again. */
void row_put_next(struct row *, int64_t *next);
void row_free(struct row *);

#endif
