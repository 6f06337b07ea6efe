/* charsmap: SentencePiece's precompiled table of replacements: a double-array trie (Darts) of keys, and the replacements, each terminated
 * by a zero. Graphemes are looked up first, then characters; others stay.
 *
 * A unit of the trie is 32 bits: bit 8 says that a value hangs below it, the low byte is the label (with bit 31 clear), and bits 10 and up
 * are the offset to its children, shifted by 8 more where bit 9 is set. Aoe, "An Efficient Implementation of Trie Structures", 1992. */
#include "tokenizer/tokenizer.h"

#include <string.h>
#include <utf8proc.h>

struct charsmap {
    const uint8_t *unit; /* 4 bytes each, little endian */
    size_t units;
    const char *replacement;
    size_t bytes;
};

/* ---- reading ---- */

static int base64_digit(char c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A'
        : c >= 'a' && c <= 'z'  ? c - 'a' + 26
        : c >= '0' && c <= '9'  ? c - '0' + 52
        : c == '+'              ? 62
        : c == '/'              ? 63
                                : -1;
}

static struct text base64(struct arena *a, const char *where, const char *from)
{
    struct text_builder b = {.arena = a};
    uint32_t bits = 0;
    int held = 0;
    for (; *from && *from != '='; from++) {
        int digit = base64_digit(*from);
        if (digit < 0)
            fail("%s: precompiled_charsmap is not base64", where);
        bits = bits << 6 | (uint32_t)digit;
        held += 6;
        if (held >= 8) {
            held -= 8;
            char byte = (char)(bits >> held & 255);
            text_put(&b, &byte, 1);
        }
    }
    return text_built(&b);
}

static uint32_t little_endian(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

struct charsmap *charsmap_read(struct arena *a, const char *where, const char *text)
{
    struct charsmap *m = NEW(a, struct charsmap);
    struct text t = base64(a, where, text);
    if (t.n == 0)
        return m;
    uint32_t trie = t.n >= 4 ? little_endian((const uint8_t *)t.at) : 0;
    if (t.n < 4 || trie % 4 != 0 || trie > t.n - 4 || t.n - 4 - trie == 0 || t.at[t.n - 1] != 0)
        fail("%s: precompiled_charsmap is cut short", where);
    m->unit = (const uint8_t *)t.at + 4;
    m->units = trie / 4;
    m->replacement = t.at + 4 + trie;
    m->bytes = t.n - 4 - trie;
    return m;
}

/* ---- looking up ---- */

/* The value of the shortest entry that text begins with; -1: none. */
static int64_t shortest(const struct charsmap *m, struct text t)
{
    size_t at = 0;
    if (m->units == 0)
        return -1;
    uint32_t unit = little_endian(m->unit);
    at ^= (size_t)(unit >> 10) << ((unit & (1u << 9)) >> 6);
    for (size_t i = 0; i < t.n; i++) {
        uint8_t c = (uint8_t)t.at[i];
        at ^= c;
        if (c == 0 || at >= m->units)
            return -1;
        unit = little_endian(m->unit + 4 * at);
        if ((unit & ((1u << 31) | 255)) != c)
            return -1;
        at ^= (size_t)(unit >> 10) << ((unit & (1u << 9)) >> 6);
        if (at >= m->units)
            return -1;
        if (unit >> 8 & 1)
            return (int64_t)(little_endian(m->unit + 4 * at) & ((1u << 31) - 1));
    }
    return -1;
}

static bool replace(const struct charsmap *m, struct text t, struct text_builder *b)
{
    int64_t at = shortest(m, t);
    if (at < 0 || (size_t)at >= m->bytes)
        return false;
    text_put(b, m->replacement + at, strlen(m->replacement + at));
    return true;
}

/* Where the grapheme that begins at i ends. */
static size_t grapheme_end(struct text t, size_t i)
{
    utf8proc_int32_t state = 0, before = text_next(t, &i);
    for (size_t next = i; next < t.n; i = next) {
        int32_t c = text_next(t, &next);
        if (utf8proc_grapheme_break_stateful(before, c, &state))
            break;
        before = c;
    }
    return i;
}

enum { LONGEST_GRAPHEME = 6 }; /* bytes; a longer one is looked up by characters */

struct text charsmap_apply(const struct charsmap *m, struct arena *a, struct text t)
{
    struct text_builder b = {.arena = a};
    for (size_t i = 0; i < t.n;) {
        size_t end = grapheme_end(t, i);
        if (end - i < LONGEST_GRAPHEME && replace(m, (struct text){t.at + i, end - i}, &b)) {
            i = end;
            continue;
        }
        for (size_t next = i; i < end; i = next) {
            (void)text_next(t, &next);
            if (!replace(m, (struct text){t.at + i, next - i}, &b))
                text_put(&b, t.at + i, next - i);
        }
    }
    return text_built(&b);
}
