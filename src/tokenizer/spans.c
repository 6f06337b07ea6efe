/* spans: tracks the untrusted bytes of a text while it is cut and normalized. */
#include "tokenizer/tokenizer.h"

/* The first span that ends after a byte. */
static int span_behind(struct text_spans s, size_t at)
{
    int low = 0, high = s.n;
    while (low < high) {
        int mid = low + (high - low) / 2;
        if (s.at[mid].to > at)
            high = mid;
        else
            low = mid + 1;
    }
    return low;
}

bool spans_touch(struct text_spans s, size_t from, size_t to)
{
    int i = span_behind(s, from);
    return i < s.n && s.at[i].from < to;
}

struct text_spans spans_within(struct arena *a, struct text_spans s, size_t from, size_t to)
{
    VEC(struct text_span) in = {0};
    for (int i = span_behind(s, from); i < s.n && s.at[i].from < to; i++) {
        size_t first = s.at[i].from > from ? s.at[i].from : from, end = s.at[i].to < to ? s.at[i].to : to;
        VEC_PUSH(a, &in, ((struct text_span){first - from, end - from}));
    }
    return (struct text_spans){in.at, in.n};
}

/* ---- in normalized text ---- */

enum { MOST_NORMALIZED = 512 }; /* each takes time proportional to the text */

static size_t same_ahead(struct text a, struct text b)
{
    size_t n = 0;
    while (n < a.n && n < b.n && a.at[n] == b.at[n])
        n++;
    return n;
}

static size_t same_at_end(struct text a, struct text b)
{
    size_t n = 0;
    while (n < a.n && n < b.n && a.at[a.n - 1 - n] == b.at[b.n - 1 - n])
        n++;
    return n;
}

/* The texts before and after a span are normalized separately; where they match the whole's beginning and end, the span did not change
 * them. */
struct text_spans spans_normalized(struct arena *a, const struct normalizer *n, struct text raw, struct text normalized,
                                   struct text_spans s)
{
    struct text_span *out = NEWN(a, struct text_span, s.n + 1);
    if (s.n > MOST_NORMALIZED)
        fail("the text has %d parts by others, expected at most %d: the special tokens of this tokenizer are sought in normalized text",
             s.n, MOST_NORMALIZED);
    for (int i = 0; i < s.n; i++) {
        struct arena *tmp = arena_new();
        size_t to = s.at[i].to, from = same_ahead(normalized, normalizer_apply(n, tmp, (struct text){raw.at, s.at[i].from}));
        size_t rest = same_at_end(normalized, normalizer_apply(n, tmp, (struct text){raw.at + to, raw.n - to}));
        size_t before = i ? out[i - 1].to : 0;
        arena_free(tmp);
        out[i] = (struct text_span){from, normalized.n - rest > before ? normalized.n - rest : before};
    }
    for (int i = s.n - 2; i >= 0; i--)
        out[i].from = out[i].from < out[i + 1].from ? out[i].from : out[i + 1].from;
    return (struct text_spans){out, s.n};
}
