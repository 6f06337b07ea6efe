/* lookup: drafts what followed the same tokens earlier in the text (Saxena, prompt lookup decoding, 2023). */
#include "decode/draft/draft.h"

enum { LEAST = 2, ENOUGH = 16 }; /* matching tokens */

/* The length of the match between the tokens ending at column c and the last tokens. */
static int64_t alike(const int64_t *token, const int64_t *seen, int64_t c, int64_t last)
{
    int64_t n = 0;
    while (n < ENOUGH && n <= c && token[c - n] == token[last - n] && seen[c - n] && seen[last - n])
        n++;
    return n;
}

int64_t draft_lookup(const struct history *h, int64_t row, int64_t most, int64_t *to)
{
    const int64_t *token = h->token + row * h->room, *seen = h->seen + row * h->room;
    int64_t last = h->length - 1, best = LEAST - 1, at = -1, n = 0;
    for (int64_t c = last - 1; c >= LEAST - 1 && best < ENOUGH; c--) {
        int64_t same = token[c] == token[last] ? alike(token, seen, c, last) : 0;
        if (same > best) {
            best = same;
            at = c;
        }
    }
    if (at < 0)
        return 0;
    /* a repeating text continues into the draft */
    for (int64_t i = at + 1; n < most; i++)
        to[n++] = i <= last ? token[i] : to[i - last - 1];
    return n;
}

/* ---- of all rows ---- */

static int64_t draft_rows(struct drafter *d, const struct history *h, const struct row_sampling *how, const bool *free, int64_t most,
                          int64_t *to)
{
    int64_t n = most, row[DRAFT_MOST];
    (void)d, (void)how;
    for (int64_t b = 0; b < h->batch && n > 0; b++) {
        int64_t found = free && free[b] ? n : draft_lookup(h, b, n, row);
        n = found < n ? found : n;
    }
    for (int64_t b = 0; b < h->batch && n > 0; b++)
        (void)draft_lookup(h, b, n, to + b * n);
    return n;
}

struct drafter *lookup_drafter(struct arena *a, int64_t most)
{
    struct drafter *d = NEW(a, struct drafter);
    *d = (struct drafter){.option = "--lookup", .pace = draft_pace_new(most, 0), .draft = draft_rows};
    return d;
}
