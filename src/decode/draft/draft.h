/* decode/draft: several tokens of a text in one run (speculative decoding). Tokens are drafted behind the last one, and run with it. The
 * model's own tokens are picked at each place, as steps would pick them, greedily or with the draw of the place. Drafted tokens are kept as
 * far as they are these. So the text is the one of steps, token by token, except for rounding; and where it is drawn, a drafted token is
 * kept as often as the model's distribution has it (the best there is for a draft that is one token: Leviathan et al., 2023). */
#ifndef TPC_DECODE_DRAFT_H
#define TPC_DECODE_DRAFT_H

#include "decode/sampling/sampling.h"

enum { DRAFT_MOST = 32 }; /* tokens of a row in one run */

/* lookup.c: what followed the last tokens of a row where they stood before: the place with the most tokens alike, the latest of these.
 * Returns how many tokens it drafts, `most` at most; 0: no two tokens stood before. */
int64_t draft_lookup(const struct history *, int64_t row, int64_t most, int64_t *to);

/* pace.c: how many tokens are worth drafting, by what was kept. */
struct draft_pace {
    int64_t most, now;   /* tokens of a run at most; of the next one; 0: none until */
    int64_t wait, pause; /* so many steps are over; then the next pause is this long */
};
struct draft_pace draft_pace_new(int64_t most);
/* Before each run. */
int64_t draft_pace_next(struct draft_pace *);
void draft_pace_note(struct draft_pace *, int64_t drafted, int64_t kept);

/* run.c: runs tokens [fed, length) and k drafted ones, [batch, k], of each row; next: [batch, k + 1], the tokens behind the last one and
 * behind each drafted one. The history is as before; the states have columns of all. */
void draft_run(struct stage *, struct history *, int64_t fed, const struct row_sampling *how, int64_t k, const int64_t *draft,
               int64_t *next, struct session_collective *count);

#endif
