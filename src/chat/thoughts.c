/* thoughts: where the thoughts of an answer begin and end. Models write them between tags, before the answer. */
#include "config.h"

#include "chat/chat.h"

#include <string.h>

/* The spellings in use. A template that has both tags, or a vocabulary that has both as tokens, says which is the model's. */
static const char *const spelling[][2] = {{"<think>", "</think>"},
                                          {"<thinking>", "</thinking>"},
                                          {"<thought>", "</thought>"},
                                          {"<reasoning>", "</reasoning>"},
                                          {"<seed:think>", "</seed:think>"},
                                          {"[THINK]", "[/THINK]"},
                                          {"<|START_THINKING|>", "<|END_THINKING|>"}};
enum { SPELLINGS = sizeof spelling / sizeof *spelling };

static bool has(struct text t, const char *word)
{
    return t.n && memmem(t.at, t.n, word, strlen(word));
}

static int64_t special_id(const struct tokenizer *t, struct text tag)
{
    int64_t id = tokenizer_special_at(t, tag);
    return id >= 0 && id == tokenizer_id(t, tag.at) ? id : -1;
}

struct chat_tags chat_tags_find(const struct chat_template *template, const struct tokenizer *t)
{
    int found = -1;
    for (int i = 0; i < SPELLINGS && found < 0; i++)
        if (has(template->text, spelling[i][0]) && has(template->text, spelling[i][1]))
            found = i;
    for (int i = 0; i < SPELLINGS && found < 0; i++)
        if (tokenizer_id(t, spelling[i][0]) >= 0 && tokenizer_id(t, spelling[i][1]) >= 0)
            found = i;
    if (found < 0)
        return (struct chat_tags){.open_id = -1, .close_id = -1};
    const struct text open = text_of(spelling[found][0]), close = text_of(spelling[found][1]);
    return (struct chat_tags){open, close, special_id(t, open), special_id(t, close)};
}

struct text chat_tag_of(const struct chat_tags *t, int64_t token)
{
    if (token >= 0 && token == t->open_id)
        return t->open;
    return token >= 0 && token == t->close_id ? t->close : (struct text){"", 0};
}

/* ---- the parts of an answer ---- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static size_t behind_blanks(struct text t, size_t at)
{
    while (at < t.n && is_blank(t.at[at]))
        at++;
    return at;
}

static struct text without_blanks_at_end(const char *at, size_t n)
{
    while (n && is_blank(at[n - 1]))
        n--;
    return (struct text){at, n};
}

/* Trailing bytes that may begin the tag. */
static size_t held_back(struct text t, struct text tag)
{
    size_t n = tag.n - 1 < t.n ? tag.n - 1 : t.n;
    while (n && memcmp(t.at + t.n - n, tag.at, n) != 0)
        n--;
    return n;
}

/* After the opening tag. */
static struct chat_parts split_behind(struct chat_thoughts *s, struct text t, size_t from, bool last)
{
    const struct text close = s->tags->close;
    size_t start = s->searched > from ? s->searched : from, text = behind_blanks(t, from);
    const char *at = t.n > start ? memmem(t.at + start, t.n - start, close.at, close.n) : NULL;
    struct chat_parts p = {.content = {t.at + t.n, 0}};
    size_t end = at ? (size_t)(at - t.at) : t.n - (last ? 0 : held_back((struct text){t.at + from, t.n - from}, close));
    s->searched = at ? (size_t)(at - t.at) : t.n - from >= close.n ? t.n - (close.n - 1) : from;
    if (text < end)
        p.thoughts = without_blanks_at_end(t.at + text, end - text);
    if (at) {
        size_t content = behind_blanks(t, end + close.n);
        p.content = (struct text){t.at + content, t.n - content};
    }
    return p;
}

struct chat_parts chat_split(struct chat_thoughts *s, struct text t, bool last)
{
    struct chat_parts p = {.content = t};
    if (!s->tags->open.n)
        return p;
    if (s->opened)
        return split_behind(s, t, 0, last);
    size_t at = behind_blanks(t, 0);
    struct text rest = {t.at + at, t.n - at};
    if (text_starts(rest, s->tags->open))
        return split_behind(s, t, at + s->tags->open.n, last);
    if (!last && text_starts(s->tags->open, rest)) /* it may become the tag */
        p.content.n = 0;
    return p;
}
