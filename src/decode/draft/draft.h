/* decode/draft: several tokens of a text in one run (speculative decoding). Tokens are drafted after the last one and run with it. The
 * model's own token at each position is picked as in steps, greedily or with the position's random draw. Drafted tokens are kept as long as
 * they equal these. So the text is the same as from steps, except for rounding; sampled text has the model's distribution. A looked-up
 * token is kept as often as the model's distribution has it, which is optimal for a draft of one token (Leviathan et al., 2023). A small
 * model uses the same random draws as the large one, so both often draw the same token: if their distributions have distance D, with a
 * probability of at least (1 - D) / (1 + D) (Daliri et al., Coupling without Communication, 2024). */
#ifndef TPC_DECODE_DRAFT_H
#define TPC_DECODE_DRAFT_H

#include "decode/sampling/sampling.h"

enum { DRAFT_MOST = 32 }; /* most tokens of a row in one run */

/* ---- pace.c: how many tokens to draft, by how many were kept ---- */
struct draft_pace {
    int64_t most, price;  /* most tokens of a run; the time of a drafted token, in 1024ths of a step */
    int64_t kept, missed; /* recent: kept tokens, and runs that did not keep all; in 1024ths */
    int64_t wait, pause;  /* steps without drafts to come; and the next time */
};
struct draft_pace draft_pace_new(int64_t most, int64_t price);
/* Before each run. */
int64_t draft_pace_next(struct draft_pace *);
void draft_pace_note(struct draft_pace *, int64_t drafted, int64_t kept);

/* ---- the source of drafted tokens: lookup.c, or a small model (decode/small) ---- */
struct drafter {
    const char *option; /* the option that enables it, for messages */
    struct draft_pace pace;
    /* Drafts up to `most` tokens for each row, [batch, n], and returns n, which may be 0. free: rows for which any tokens will do; NULL:
     * none. Every rank calls it and gets the same tokens. */
    int64_t (*draft)(struct drafter *, const struct history *, const struct row_sampling *how, const bool *free, int64_t most, int64_t *to);
    /* Fails if it cannot draft for texts that start like these. NULL: it can for all. */
    void (*check)(struct drafter *, const struct history *);
    void (*end)(struct drafter *); /* NULL: nothing to free */
    /* Memory on this rank to draft for `rows` rows of `tokens` tokens. NULL: none. */
    int64_t (*bytes)(const struct drafter *, int64_t rows, int64_t tokens);
};

/* lookup.c: what followed an earlier occurrence of a row's last tokens: the one with the longest match, the latest of these. Returns the
 * number of drafted tokens, at most `most`; 0: no match of two tokens. */
int64_t draft_lookup(const struct history *, int64_t row, int64_t most, int64_t *to);
struct drafter *lookup_drafter(struct arena *, int64_t most);

/* run.c: runs tokens [fed, length) and k drafted ones, [batch, k], of each row; next: [batch, k + 1], the tokens after the last one and
 * after each drafted one. The history is unchanged; the states have columns of all. */
void draft_run(struct stage *, struct history *, int64_t fed, const struct row_sampling *how, int64_t k, const int64_t *draft,
               int64_t *next, struct session_collective *count);

#endif
