/* stream: text that grows with its ids. The tokens since the last word that was written are decoded with and without the new ones; what
 * they add is written, unless it ends within a character. */
#include "tokenizer/tokenizer.h"

#include <string.h>

static bool ends_within(const char *text)
{
    size_t n = strlen(text);
    return n >= 3 && memcmp(text + n - 3, "\xef\xbf\xbd", 3) == 0;
}

char *tokenizer_stream(const struct tokenizer *t, struct arena *a, struct text_stream *s, const int64_t *id, int n, bool last)
{
    char *before = tokenizer_decode(t, a, id + s->from, s->written - s->from, false);
    char *now = tokenizer_decode(t, a, id + s->from, n - s->from, false);
    size_t same = 0;
    if (ends_within(now) && !last)
        return arena_strdup(a, "");
    while (before[same] && before[same] == now[same])
        same++;
    if (now[same])
        s->from = s->written;
    s->written = n;
    return now + same;
}
