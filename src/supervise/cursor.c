/* cursor: reads consecutive values of a message. */
#include "supervise/supervise.h"

#include <string.h>

void cursor_read(struct cursor *c, void *to, size_t n)
{
    memset(to, 0, n);
    c->bad = c->bad || c->left.n < n;
    if (c->bad)
        return;
    memcpy(to, c->left.at, n);
    c->left = (struct message_data){c->left.at + n, c->left.n - n};
}

int64_t cursor_number(struct cursor *c)
{
    int64_t n;
    cursor_read(c, &n, sizeof n);
    return n;
}

int64_t cursor_count(struct cursor *c, size_t each)
{
    int64_t n = cursor_number(c);
    c->bad = c->bad || n < 0 || (uint64_t)n > c->left.n / each;
    return c->bad ? 0 : n;
}

void *cursor_copy(struct cursor *c, struct arena *a, size_t n)
{
    c->bad = c->bad || n > c->left.n;
    n = c->bad ? 0 : n;
    void *to = arena_alloc(a, n + 1);
    cursor_read(c, to, n);
    return to;
}
