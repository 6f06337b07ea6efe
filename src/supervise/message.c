/* message: messages in a stream of text. A message is a line: a byte that no text contains, its kind, and its bytes in hexadecimal. So it
 * is recognised anywhere, and output of libraries and launchers between messages does no harm. */
#include "supervise/supervise.h"

#include <string.h>

enum { MARK = 1 };

void message_put(struct message_text *t, const void *at, size_t n)
{
    require(n <= INT32_MAX / 4 && t->to.n <= INT32_MAX / 4);
    while (t->to.cap - t->to.n < (int)n)
        t->to.at = vec_grow(t->arena, t->to.at, &t->to.cap, t->to.n, 1);
    if (n)
        memcpy(t->to.at + t->to.n, at, n);
    t->to.n += (int)n;
}

struct message_data message_bytes(const struct message_text *t)
{
    return (struct message_data){t->to.at ? t->to.at : "", (size_t)t->to.n};
}

const char *message_line(struct arena *a, int kind, struct message_data data)
{
    static const char digit[] = "0123456789abcdef";
    require(data.n <= MESSAGE_MOST);
    char *line = arena_alloc(a, 2 * data.n + 5), *to = line;
    *to++ = MARK;
    *to++ = digit[kind >> 4 & 15];
    *to++ = digit[kind & 15];
    for (size_t i = 0; i < data.n; i++) {
        const unsigned char byte = (unsigned char)data.at[i];
        *to++ = digit[byte >> 4];
        *to++ = digit[byte & 15];
    }
    *to++ = '\n';
    *to = '\0';
    return line;
}

static int value_of(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* In place; false: not a message line. */
static bool decode(struct message_text *line, struct message *m)
{
    char *at = line->to.at;
    const size_t n = (size_t)line->to.n / 2;
    if (line->to.n % 2 || n == 0)
        return false;
    for (size_t i = 0; i < n; i++) {
        int high = value_of(at[2 * i]), low = value_of(at[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        at[i] = (char)(high << 4 | low);
    }
    *m = (struct message){.kind = (unsigned char)at[0], .data = {at + 1, n - 1}};
    return true;
}

/* Takes part of a message, up to its end; returns the bytes taken. */
static size_t take_line(struct message_stream *s, struct message_data part, void (*take)(void *, const struct message *), void *data,
                        bool *good)
{
    const char *end = memchr(part.at, '\n', part.n);
    const size_t n = end ? (size_t)(end - part.at) : part.n;
    struct message m;
    *good = (size_t)s->line.to.n + n <= 2 * (size_t)MESSAGE_MOST + 2;
    if (!*good)
        return part.n;
    message_put(&s->line, part.at, n);
    if (!end)
        return n;
    *good = decode(&s->line, &m);
    if (*good)
        take(data, &m);
    s->line.to.n = 0;
    s->within = false;
    return n + 1;
}

bool message_take(struct message_stream *s, struct message_data part, void (*take)(void *, const struct message *),
                  void (*other)(void *, struct message_data), void *data)
{
    bool good = true;
    while (part.n && good) {
        const char *mark = s->within ? NULL : memchr(part.at, MARK, part.n);
        size_t n = mark ? (size_t)(mark - part.at) : part.n;
        if (s->within)
            n = take_line(s, part, take, data, &good);
        else if (n)
            other(data, (struct message_data){part.at, n});
        if (mark) {
            s->within = true;
            n++;
        }
        part = (struct message_data){part.at + n, part.n - n};
    }
    return good;
}
