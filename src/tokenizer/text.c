/* text: UTF-8 character by character, strings that grow, and GPT-2's alphabet of bytes. */
#include "tokenizer/tokenizer.h"

#include <string.h>
#include <utf8proc.h>

bool text_is_utf8(const char *at, size_t n, size_t *bad)
{
    for (size_t i = 0; i < n;) {
        utf8proc_int32_t c;
        utf8proc_ssize_t bytes = utf8proc_iterate((const utf8proc_uint8_t *)at + i, (utf8proc_ssize_t)(n - i), &c);
        if (bytes <= 0) {
            *bad = i;
            return false;
        }
        i += (size_t)bytes;
    }
    return true;
}

int32_t text_next(struct text t, size_t *i)
{
    utf8proc_int32_t c = -1;
    utf8proc_ssize_t bytes = utf8proc_iterate((const utf8proc_uint8_t *)t.at + *i, (utf8proc_ssize_t)(t.n - *i), &c);
    if (bytes <= 0) { /* an invalid byte, from a part of a token */
        c = 0xfffd;
        bytes = 1;
    }
    *i += (size_t)bytes;
    return c;
}

int32_t text_before(struct text t, size_t i, size_t *start)
{
    require(i > 0 && i <= t.n);
    size_t at = i - 1;
    while (at > 0 && ((uint8_t)t.at[at] & 0xc0) == 0x80)
        at--;
    *start = at;
    return text_next((struct text){t.at, i}, &at);
}

/* ---- strings ---- */

void text_put(struct text_builder *b, const char *at, size_t n)
{
    require(n <= INT32_MAX / 4 && b->to.n <= INT32_MAX / 4);
    while (b->to.cap - b->to.n < (int)n)
        b->to.at = vec_grow(b->arena, b->to.at, &b->to.cap, b->to.n, 1);
    if (n)
        memcpy(b->to.at + b->to.n, at, n);
    b->to.n += (int)n;
}

void text_put_char(struct text_builder *b, int32_t c)
{
    utf8proc_uint8_t bytes[4];
    text_put(b, (const char *)bytes, (size_t)utf8proc_encode_char(c, bytes));
}

struct text text_built(const struct text_builder *b)
{
    return (struct text){b->to.at ? b->to.at : "", (size_t)b->to.n};
}

struct text text_of(const char *s)
{
    return (struct text){s, strlen(s)};
}

bool text_eq(struct text a, struct text b)
{
    return a.n == b.n && memcmp(a.at, b.at, a.n) == 0;
}

bool text_starts(struct text a, struct text with)
{
    return a.n >= with.n && memcmp(a.at, with.at, with.n) == 0;
}

struct text text_replace(struct arena *a, struct text t, struct text sought, struct text by)
{
    struct text_builder b = {.arena = a};
    for (size_t i = 0; i < t.n;) {
        bool here = sought.n > 0 && text_starts((struct text){t.at + i, t.n - i}, sought);
        text_put(&b, here ? by.at : t.at + i, here ? by.n : 1);
        i += here ? sought.n : 1;
    }
    return text_built(&b);
}

struct piece text_piece(struct piece p, size_t from, size_t to)
{
    return (struct piece){{p.text.at + from, to - from}, p.head > from ? p.head - from : 0};
}

/* ---- GPT-2's alphabet of bytes ---- */

static bool prints(int b)
{
    return (b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) || (b >= 0xae && b <= 0xff);
}

/* A printable byte is its character. The others, 0 to 32, 127 to 160 and 173, are numbered from 256 on. */
int32_t text_byte_char(uint8_t byte)
{
    return prints(byte) ? byte : byte <= 32 ? 256 + byte : byte <= 160 ? 289 + byte - 127 : 323;
}

int text_byte_of(int32_t c)
{
    if (c < 256)
        return c >= 0 && prints(c) ? c : -1;
    return c <= 288 ? c - 256 : c <= 322 ? c - 289 + 127 : c == 323 ? 173 : -1;
}

struct text text_byte_alphabet(struct arena *a, struct text t)
{
    struct text_builder b = {.arena = a};
    for (size_t i = 0; i < t.n; i++)
        text_put_char(&b, text_byte_char((uint8_t)t.at[i]));
    return text_built(&b);
}
