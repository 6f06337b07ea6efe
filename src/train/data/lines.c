/* lines: JSON lines of samples, {"text": ...} or {"messages": ...}. A text ends with the model's end token. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#ifdef HAVE_TEXT
#include "decode/sampling/sampling.h"
#include "plan/input/input.h"
#include "train/data/samples.h"

#include <string.h>

enum { LONGEST = 64 << 20 }; /* bytes of a line */
struct reading {
    struct arena *arena;
    const char *path;
    struct texts *texts;
    struct end_tokens ends;
    struct samples samples;
};

static void add_text(struct reading *r, const json_t *text)
{
    struct token_ids ids = tokenizer_encode(text_tokenizer(r->texts), r->arena, json_string_value(text), json_string_length(text), true);
    if (r->ends.list.n && (!ids.list.n || !config_is_end(&r->ends, ids.list.at[ids.list.n - 1])))
        VEC_PUSH(r->arena, &ids.list, r->ends.list.at[0]);
    for (int i = 0; i < ids.list.n; i++) {
        VEC_PUSH(r->arena, &r->samples.token, ids.list.at[i]);
        VEC_PUSH(r->arena, &r->samples.silent, false);
    }
}

static const char *add_line(struct reading *r, const json_t *line)
{
    const json_t *text = json_object_get(line, "text"), *messages = json_object_get(line, "messages");
    if (!json_is_object(line) || !text == !messages)
        return "expected an object with either \"text\" or \"messages\"";
    if (text && !json_is_string(text))
        return arena_printf(r->arena, "\"text\" is %s, expected a string", json_kind(text));
    if (text) {
        add_text(r, text);
        return NULL;
    }
    return chats_add(text_conversations(r->texts, r->path), r->arena, line, &r->samples);
}

static bool is_blank(const char *at, size_t n)
{
    while (n && memchr(" \t\r", at[n - 1], 3))
        n--;
    return n == 0;
}

/* Blank lines are ignored. */
static void read_line(struct reading *r, long long number, const char *at, size_t n)
{
    json_error_t e;
    if (is_blank(at, n))
        return;
    if (n > LONGEST)
        fail("%s:%lld: the line has %zu bytes, expected %d at most", r->path, number, n, LONGEST);
    json_t *line = json_loadb(at, n, JSON_DECODE_ANY, &e);
    if (!line)
        fail("%s:%lld: is no JSON: %s", r->path, number, e.text);
    const char *why = add_line(r, line);
    json_decref(line);
    if (why)
        fail("%s:%lld: %s", r->path, number, why);
    VEC_PUSH(r->arena, &r->samples.end, r->samples.token.n);
}

struct samples lines_read(struct arena *a, const char *path, struct texts *texts)
{
    struct map m = map_file(path);
    struct reading r = {.arena = a, .path = path, .texts = texts, .ends = *text_ends(texts)};
    const char *text = m.at ? (const char *)m.at : "", *end = text + m.bytes, *next;
    long long number = 0;
    for (const char *at = text; at < end; at = next + 1) {
        next = memchr(at, '\n', (size_t)(end - at));
        next = next ? next : end;
        read_line(&r, ++number, at, (size_t)(next - at));
    }
    map_close(m);
    if (!r.samples.token.n)
        fail("%s: has no samples: expected an object with \"text\" or \"messages\" in each line", path);
    return r.samples;
}
#endif
