/* split: splits strings like Python's str.split: at each delimiter, or at runs of white space, ignoring those at the ends. */
#include "kern/string/string.h"

#include <string.h>

struct splitter {
    const char *at;
    const char *delimiter; /* NULL: white space */
    int64_t left;          /* the number of splits left; below 0: unlimited */
    bool ended;
};

static bool is_space(uint32_t c)
{
    return (c >= 9 && c <= 13) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) ||
        c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

/* The end of a run of characters that are all white space, or all not. */
static const char *end_of_run(const char *at, bool space)
{
    const char *next = at;
    for (uint32_t c = string_next_char(&next); c && is_space(c) == space; c = string_next_char(&next))
        at = next;
    return at;
}

static bool next_word(struct splitter *s, const char **from, const char **to)
{
    *from = end_of_run(s->at, true);
    if (!**from)
        return false;
    *to = s->left == 0 ? *from + strlen(*from) : end_of_run(*from, false);
    s->at = *to;
    s->left -= s->left > 0;
    return true;
}

static bool next_part(struct splitter *s, const char **from, const char **to)
{
    if (!s->delimiter)
        return next_word(s, from, to);
    const char *found = s->left == 0 ? NULL : strstr(s->at, s->delimiter);
    if (s->ended)
        return false;
    *from = s->at;
    *to = found ? found : s->at + strlen(s->at);
    s->ended = !found;
    s->at = found ? found + strlen(s->delimiter) : *to;
    s->left -= s->left > 0;
    return true;
}

static struct splitter splitter_of(const struct kcall *call, int64_t number)
{
    const struct node *n = call->node;
    const char *delimiter = attr_is_set(n, "delimiter") ? attr_string(n, "delimiter") : "";
    return (struct splitter){.at = string_text(number),
                             .delimiter = *delimiter ? delimiter : NULL,
                             .left = attr_is_set(n, "maxsplit") ? attr_int(n, "maxsplit") : -1};
}

static int64_t count_parts(const struct kcall *call, int64_t number)
{
    struct splitter s = splitter_of(call, number);
    const char *from, *to;
    int64_t n = 0;
    while (next_part(&s, &from, &to))
        n++;
    return n;
}

int64_t string_most_parts(struct kcall *call)
{
    const int64_t *x = call->in[0].data;
    int64_t most = 0;
    for (int64_t i = 0; i < tensor_elements(&call->in[0]); i++) {
        int64_t n = count_parts(call, x[i]);
        most = n > most ? n : most;
    }
    return most;
}

void kern_StringSplit(struct kcall *call)
{
    const int64_t *x = call->in[0].data;
    const struct tensor *y = kcall_out(call, 0), *z = kcall_out(call, 1);
    int64_t width = string_most_parts(call), n = tensor_elements(&call->in[0]);
    if (y && y->dim[y->rank - 1] != width)
        fail("%s: its result has another size than the %lld parts of a string", kcall_where(call), (long long)width);
    for (int64_t i = 0; i < n; i++) {
        struct splitter s = splitter_of(call, x[i]);
        const char *from, *to;
        int64_t k = 0;
        for (; next_part(&s, &from, &to); k++)
            if (y)
                ((int64_t *)y->data)[i * width + k] = string_number(from, (size_t)(to - from));
        for (int64_t rest = k; y && rest < width; rest++)
            ((int64_t *)y->data)[i * width + rest] = 0;
        if (z)
            ((int64_t *)z->data)[i] = k;
    }
}
