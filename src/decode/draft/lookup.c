/* lookup: drafts what the text itself had behind the same tokens (Saxena, prompt lookup decoding, 2023). */
#include "decode/draft/draft.h"

enum { LEAST = 2, ENOUGH = 16 }; /* tokens alike */

/* How many tokens up to column c are those up to the last one. */
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
    /* a text that repeats itself goes on with what is drafted */
    for (int64_t i = at + 1; n < most; i++)
        to[n++] = i <= last ? token[i] : to[i - last - 1];
    return n;
}
