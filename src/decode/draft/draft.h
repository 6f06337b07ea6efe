/* decode/draft: several tokens of a text in one run (speculative decoding). Tokens are drafted behind the last one, and run with it. The
 * model's own tokens are picked at each place, as steps would pick them, greedily or with the draw of the place. Drafted tokens are kept as
 * far as they are these. So the text is the one of steps, token by token, except for rounding; and where it is drawn, it has the model's
 * distribution. A text that is looked up is kept as often as the model's distribution has it, the best there is for a draft that is one
 * token (Leviathan et al., 2023). A small model draws with the same draws as the large one, so both often draw the same token: where their
 * distributions have the distance D, with a chance of (1 - D) / (1 + D) at least (Daliri et al., Coupling without Communication, 2024). */
#ifndef TPC_DECODE_DRAFT_H
#define TPC_DECODE_DRAFT_H

#include "decode/sampling/sampling.h"

enum { DRAFT_MOST = 32 }; /* tokens of a row in one run */

/* ---- pace.c: how many tokens are worth drafting, by what was kept ---- */
struct draft_pace {
    int64_t most, price;  /* tokens of a run at most; the time of a drafted one, in 1024ths of a step */
    int64_t kept, missed; /* of late: tokens, and runs that did not keep all; in 1024ths */
    int64_t wait, pause;  /* steps without drafts that follow; the next time */
};
struct draft_pace draft_pace_new(int64_t most, int64_t price);
/* Before each run. */
int64_t draft_pace_next(struct draft_pace *);
void draft_pace_note(struct draft_pace *, int64_t drafted, int64_t kept);

/* ---- where drafted tokens come from: lookup.c, or a small model (decode/small) ---- */
struct drafter {
    const char *option; /* that asks for it, for messages */
    struct draft_pace pace;
    /* Drafts up to `most` tokens for each row, [batch, n], and returns n, which may be 0. free: rows for which any tokens will do; NULL:
     * none. Every rank calls it, and has the same tokens. */
    int64_t (*draft)(struct drafter *, const struct history *, const struct row_sampling *how, const bool *free, int64_t most, int64_t *to);
    /* Fails if it can't draft for texts that begin so. NULL: it can for any. */
    void (*check)(struct drafter *, const struct history *);
    void (*end)(struct drafter *); /* NULL: it holds nothing */
    /* What it takes of this rank's memory, to draft for so many rows of so many tokens. NULL: nothing. */
    int64_t (*bytes)(const struct drafter *, int64_t rows, int64_t tokens);
};

/* lookup.c: what followed the last tokens of a row where they stood before: the place with the most tokens alike, the latest of these.
 * Returns how many tokens it drafts, `most` at most; 0: no two tokens stood before. */
int64_t draft_lookup(const struct history *, int64_t row, int64_t most, int64_t *to);
struct drafter *lookup_drafter(struct arena *, int64_t most);

/* run.c: runs tokens [fed, length) and k drafted ones, [batch, k], of each row; next: [batch, k + 1], the tokens behind the last one and
 * behind each drafted one. The history is as before; the states have columns of all. */
void draft_run(struct stage *, struct history *, int64_t fed, const struct row_sampling *how, int64_t k, const int64_t *draft,
               int64_t *next, struct session_collective *count);

#endif
