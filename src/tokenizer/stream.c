/* stream: text that grows with its ids. The tokens since the last written word are decoded with and without the new ones; the difference is
 * written, unless it ends within a character. */
#include "tokenizer/tokenizer.h"

#include <string.h>

static bool ends_within(struct text t)
{
    return t.n >= 3 && memcmp(t.at + t.n - 3, "\xef\xbf\xbd", 3) == 0;
}

struct text tokenizer_stream(const struct tokenizer *t, struct arena *a, struct text_stream *s, const int64_t *id, int n, bool last)
{
    struct text before = tokenizer_decode(t, a, id + s->from, s->written - s->from, false);
    struct text now = tokenizer_decode(t, a, id + s->from, n - s->from, false);
    size_t same = 0;
    if (ends_within(now) && !last)
        return text_of("");
    while (same < before.n && same < now.n && before.at[same] == now.at[same])
        same++;
    if (same < now.n)
        s->from = s->written;
    s->written = n;
    return (struct text){now.at + same, now.n - same};
}
