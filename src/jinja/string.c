/* Strings: bytes of UTF-8, with an untrusted flag per byte. Positions in templates count characters. */
#include "jinja/jinja.h"

#include <string.h>
#include <utf8proc.h>

/* ---- making them ------------------------------------------------------------------------------------------------------- */

static void grow(struct jinja_builder *b, size_t n)
{
    size_t room = b->room ? b->room : 64;
    if (n > JINJA_OUTPUT - b->n)
        jinja_fail(b->run, "a text is longer than %d MiB", JINJA_OUTPUT >> 20);
    while (room - b->n < n)
        room *= 2;
    char *at = jinja_take(b->run, room, 1);
    memcpy(at, b->n ? b->at : "", b->n);
    if (b->marked) {
        unsigned char *mark = jinja_take(b->run, room, 1);
        memcpy(mark, b->mark, b->n);
        b->mark = mark;
    }
    b->at = at;
    b->room = room;
}

/* Reserves n more bytes, with marks if any. */
static void reserve(struct jinja_builder *b, size_t n, bool marked)
{
    if (b->room - b->n < n)
        grow(b, n);
    if (marked && !b->marked) {
        b->mark = jinja_take(b->run, b->room ? b->room : 1, 1);
        b->marked = true;
    }
}

void jinja_put(struct jinja_builder *b, const struct jinja_string *s)
{
    if (s->n == 0)
        return;
    reserve(b, s->n, s->mark != NULL);
    memcpy(b->at + b->n, s->at, s->n);
    if (s->mark)
        memcpy(b->mark + b->n, s->mark, s->n);
    else if (b->marked)
        memset(b->mark + b->n, 0, s->n);
    b->n += s->n;
}

void jinja_put_bytes(struct jinja_builder *b, const char *at, size_t n, bool marked)
{
    if (n == 0)
        return;
    reserve(b, n, marked);
    memcpy(b->at + b->n, at, n);
    if (b->marked)
        memset(b->mark + b->n, marked, n);
    b->n += n;
}

void jinja_put_text(struct jinja_builder *b, const char *text)
{
    jinja_put_bytes(b, text, strlen(text), false);
}

void jinja_put_char(struct jinja_builder *b, int32_t c, bool marked)
{
    char bytes[4];
    jinja_put_bytes(b, bytes, (size_t)string_put_char((uint32_t)c, bytes), marked);
}

void jinja_put_times(struct jinja_builder *b, const struct jinja_string *s, int64_t times)
{
    if (times > 0 && s->n && (uint64_t)times > JINJA_OUTPUT / s->n)
        jinja_fail(b->run, "a text is longer than %d MiB", JINJA_OUTPUT >> 20);
    for (int64_t i = 0; i < times && s->n; i++) {
        jinja_step(b->run, s->n);
        jinja_put(b, s);
    }
}

struct jinja_value jinja_built(struct jinja_builder *b)
{
    return jinja_string(b->run, (struct jinja_string){.at = b->n ? b->at : "", .n = b->n, .mark = b->marked ? b->mark : NULL});
}

struct jinja_string jinja_literal(const char *text)
{
    return (struct jinja_string){.at = text, .n = strlen(text)};
}

struct jinja_string jinja_piece(const struct jinja_string *s, size_t from, size_t to)
{
    return (struct jinja_string){.at = s->at + from, .n = to - from, .mark = s->mark ? s->mark + from : NULL};
}

void jinja_refuse_markup(struct jinja_run *r, struct jinja_value v)
{
    if (v.type == JINJA_STRING && v.string->markup)
        jinja_fail(r, "this is not supported with a text of the filter 'safe'");
}

/* ---- comparing them ---------------------------------------------------------------------------------------------------- */

bool jinja_same(const struct jinja_string *a, const struct jinja_string *b)
{
    return a->n == b->n && memcmp(a->at, b->at, a->n) == 0;
}

bool jinja_is(const struct jinja_string *s, const char *text)
{
    return s->n == strlen(text) && memcmp(s->at, text, s->n) == 0;
}

/* The order of characters equals that of UTF-8 bytes. */
int jinja_order(const struct jinja_string *a, const struct jinja_string *b)
{
    int order = memcmp(a->at, b->at, a->n < b->n ? a->n : b->n);
    return order ? order : (a->n > b->n) - (a->n < b->n);
}

/* ---- characters -------------------------------------------------------------------------------------------------------- */

int32_t jinja_next(const struct jinja_string *s, size_t *i)
{
    if (!(s->at[*i] & 0x80))
        return s->at[(*i)++];
    utf8proc_int32_t c;
    utf8proc_ssize_t n = utf8proc_iterate((const utf8proc_uint8_t *)s->at + *i, (utf8proc_ssize_t)(s->n - *i), &c);
    require(n > 0); /* invalid UTF-8 never becomes a string */
    *i += (size_t)n;
    return c;
}

int32_t jinja_before(const struct jinja_string *s, size_t *i)
{
    do
        --*i;
    while (*i > 0 && (s->at[*i] & 0xc0) == 0x80);
    size_t at = *i;
    return jinja_next(s, &at);
}

static bool starts_char(char byte)
{
    return (byte & 0xc0) != 0x80;
}

size_t jinja_length(const struct jinja_string *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        n += starts_char(s->at[i]);
    return n;
}

size_t jinja_offset(const struct jinja_string *s, int64_t chars)
{
    size_t i = 0;
    for (; chars > 0 && i < s->n; chars--)
        for (i++; i < s->n && !starts_char(s->at[i]); i++)
            continue;
    return i;
}

bool jinja_has_at(const struct jinja_string *s, const struct jinja_string *sought, size_t at)
{
    return at <= s->n && sought->n <= s->n - at && memcmp(s->at + at, sought->at, sought->n) == 0;
}

size_t jinja_find(struct jinja_run *r, const struct jinja_string *s, const struct jinja_string *sought, size_t from)
{
    if (sought->n == 0)
        return from;
    for (size_t i = from, start = from; i < s->n && sought->n <= s->n - i; i++) {
        const char *next = memchr(s->at + i, sought->at[0], s->n - i);
        if (!next) {
            jinja_step(r, s->n - i);
            break;
        }
        i = (size_t)(next - s->at);
        jinja_step(r, i - start + sought->n);
        start = i;
        if (jinja_has_at(s, sought, i))
            return i;
    }
    return SIZE_MAX;
}

size_t jinja_find_last(struct jinja_run *r, const struct jinja_string *s, const struct jinja_string *sought, size_t to)
{
    if (sought->n > to)
        return SIZE_MAX;
    size_t start = to - sought->n + 1; /* up to there steps are counted */
    for (size_t i = start; i-- > 0;) {
        if (sought->n && s->at[i] != sought->at[0])
            continue;
        jinja_step(r, sought->n + (start - i));
        start = i;
        if (jinja_has_at(s, sought, i))
            return i;
    }
    jinja_step(r, start);
    return SIZE_MAX;
}

static bool is_one_of(int32_t c, const struct jinja_string *chars)
{
    if (!chars)
        return jinja_char_is_space(c);
    for (size_t i = 0; i < chars->n;)
        if (jinja_next(chars, &i) == c)
            return true;
    return false;
}

struct jinja_string jinja_strip(const struct jinja_string *s, const struct jinja_string *chars, bool left, bool right)
{
    size_t from = 0, to = s->n;
    for (size_t i = from; left && i < to; from = i)
        if (!is_one_of(jinja_next(s, &i), chars))
            break;
    for (size_t i = to; right && i > from; to = i)
        if (!is_one_of(jinja_before(s, &i), chars))
            break;
    return jinja_piece(s, from, to);
}
