/* calls: tool calls in an answer, in the form that the model was trained on. Text that is not a call, or names no tool of the request,
 * stays content. */
#include "config.h"

#include "chat/chat.h"

#include <string.h>

static const char tag_open[] = "<tool_call>", tag_close[] = "</tool_call>", mistral[] = "[TOOL_CALLS]", mistral_id[] = "[CALL_ID]",
                  mistral_arguments[] = "[ARGS]", python[] = "<|python_tag|>";
enum { MORE = -1 }; /* undecided: more text is needed */

/* ---- raw JSON ---- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static size_t skip_blanks(struct text t, size_t at)
{
    while (at < t.n && is_blank(t.at[at]))
        at++;
    return at;
}

/* The end of the string that begins at `at`; MORE: no end yet. */
static int64_t string_end(struct text t, size_t at)
{
    for (at++; at < t.n; at++) {
        if (t.at[at] == '"')
            return (int64_t)at + 1;
        at += t.at[at] == '\\';
    }
    return MORE;
}

/* The end of the list, object or other value that begins at `at`. */
static int64_t value_end(struct text t, size_t at)
{
    int depth = 0;
    while (at < t.n) {
        char c = t.at[at];
        if (c == '"') {
            int64_t end = string_end(t, at);
            if (end < 0 || depth == 0)
                return end;
            at = (size_t)end;
            continue;
        }
        depth += c == '{' || c == '[';
        depth -= c == '}' || c == ']';
        if (depth < 0 || (depth == 0 && c == ','))
            return (int64_t)at;
        at++;
        if (depth == 0 && (c == '}' || c == ']'))
            return (int64_t)at;
    }
    return MORE;
}

static struct text trimmed(const char *at, size_t n)
{
    while (n && is_blank(at[n - 1]))
        n--;
    return (struct text){at, n};
}

/* The raw value of an object's member, the last one of this name; empty: no such member. t is JSON. */
static struct text member_of(struct text t, const char *key)
{
    struct text found = {"", 0};
    size_t at = skip_blanks(t, 1);
    while (at < t.n && t.at[at] == '"') {
        size_t name = at + 1, end = (size_t)string_end(t, at), value = skip_blanks(t, skip_blanks(t, end) + 1);
        int64_t behind = value_end(t, value);
        if (behind < 0)
            break;
        if (end - 1 - name == strlen(key) && memcmp(t.at + name, key, strlen(key)) == 0)
            found = trimmed(t.at + value, (size_t)behind - value);
        at = skip_blanks(t, skip_blanks(t, (size_t)behind) + 1);
    }
    return found;
}

static json_t *parsed(struct text t)
{
    return json_loadb(t.at, t.n, JSON_ALLOW_NUL, NULL);
}

/* ---- calls ---- */

static bool has_tool(const struct chat_calls *c, const char *name)
{
    const json_t *tool;
    size_t i;
    json_array_foreach(c->tools, i, tool)
    {
        const char *own = json_string_value(json_object_get(json_object_get(tool, "function"), "name"));
        if (own && strcmp(own, name) == 0)
            return true;
    }
    return false;
}

static bool add_call(struct chat_calls *c, const char *name, struct text arguments)
{
    if (!has_tool(c, name) || (c->single && c->call.n))
        return has_tool(c, name);
    const struct chat_call call = {arena_strdup(c->arena, name), arena_strndup(c->arena, arguments.at, arguments.n)};
    VEC_PUSH(c->arena, &c->call, call);
    return true;
}

/* An object with a name and arguments, which may be an object or a text of one. */
static bool take_object(struct chat_calls *c, struct text t)
{
    json_t *root = parsed(t);
    const char *name = json_string_value(json_object_get(root, "name"));
    struct text arguments = root ? member_of(t, "arguments") : (struct text){0};
    const json_t *value = json_object_get(root, "arguments");
    if (root && !arguments.n) {
        arguments = member_of(t, "parameters");
        value = json_object_get(root, "parameters");
    }
    json_t *inner = json_is_string(value) ? json_loadb(json_string_value(value), json_string_length(value), 0, NULL) : NULL;
    if (json_is_object(inner))
        arguments = (struct text){json_string_value(value), json_string_length(value)};
    bool good = name && (json_is_object(value) || json_is_object(inner)) && arguments.n;
    good = good && add_call(c, name, arguments);
    json_decref(inner);
    json_decref(root);
    return good;
}

/* The whole list, or nothing. */
static bool take_list(struct chat_calls *c, struct text t)
{
    json_t *root = parsed(t);
    bool good = json_array_size(root) > 0;
    int before = c->call.n;
    json_decref(root);
    for (size_t at = skip_blanks(t, 1); good && at < t.n && t.at[at] != ']';) {
        int64_t end = value_end(t, at);
        good = end > 0 && take_object(c, trimmed(t.at + at, (size_t)end - at));
        at = skip_blanks(t, (size_t)end);
        at = at < t.n && t.at[at] == ',' ? skip_blanks(t, at + 1) : at;
    }
    if (!good)
        c->call.n = before;
    return good;
}

/* ---- forms: return the end of the call; MORE; 0: not a call ---- */

/* The text so far may still become `word`. */
static bool may_become(struct text t, size_t at, const char *word)
{
    size_t n = t.n - at < strlen(word) ? t.n - at : strlen(word);
    return memcmp(t.at + at, word, n) == 0;
}

static bool is_at(struct text t, size_t at, const char *word)
{
    return t.n - at >= strlen(word) && may_become(t, at, word);
}

static int64_t read_tagged(struct chat_calls *c, struct text t, size_t at, bool last)
{
    size_t from = skip_blanks(t, at + strlen(tag_open));
    if (from == t.n)
        return last ? 0 : MORE;
    if (t.at[from] != '{')
        return 0;
    int64_t end = value_end(t, from);
    if (end < 0)
        return last ? 0 : MORE;
    size_t close = skip_blanks(t, (size_t)end);
    if (!last && !is_at(t, close, tag_close) && may_become(t, close, tag_close))
        return MORE;
    if (!take_object(c, (struct text){t.at + from, (size_t)end - from}))
        return 0;
    return is_at(t, close, tag_close) ? (int64_t)(close + strlen(tag_close)) : end;
}

/* name[CALL_ID]id[ARGS]{...}, without the id or [ARGS] as well. */
static int64_t read_named(struct chat_calls *c, struct text t, size_t at, bool last)
{
    size_t name = at;
    while (at < t.n && t.at[at] != '[' && t.at[at] != '{')
        at++;
    const char *own = arena_strndup(c->arena, t.at + name, trimmed(t.at + name, at - name).n);
    if (at < t.n && is_at(t, at, mistral_id))
        for (at += strlen(mistral_id); at < t.n && t.at[at] != '[' && t.at[at] != '{';)
            at++;
    if (at < t.n && is_at(t, at, mistral_arguments))
        at += strlen(mistral_arguments);
    at = skip_blanks(t, at);
    bool more = at == t.n || may_become(t, at, mistral_id) || may_become(t, at, mistral_arguments);
    if (at == t.n || t.at[at] != '{')
        return more && !last ? MORE : 0;
    int64_t end = value_end(t, at);
    if (end < 0)
        return last ? 0 : MORE;
    const struct text arguments = {t.at + at, (size_t)end - at};
    json_t *root = parsed(arguments);
    bool good = root && add_call(c, own, arguments);
    json_decref(root);
    return good ? end : 0;
}

static int64_t read_mistral(struct chat_calls *c, struct text t, size_t at, bool last)
{
    at = skip_blanks(t, at + strlen(mistral));
    if (at == t.n)
        return last ? 0 : MORE;
    if (t.at[at] != '[' && t.at[at] != '{')
        return read_named(c, t, at, last);
    int64_t end = value_end(t, at);
    if (end < 0)
        return last ? 0 : MORE;
    const struct text value = {t.at + at, (size_t)end - at};
    return (t.at[at] == '[' ? take_list : take_object)(c, value) ? end : 0;
}

/* Objects separated by ;, and nothing else. */
static int64_t read_plain(struct chat_calls *c, struct text t, size_t at, bool last)
{
    at = skip_blanks(t, is_at(t, at, python) ? at + strlen(python) : at);
    if (at == t.n || (!last && may_become(t, at, python)))
        return last ? 0 : MORE;
    int64_t end = t.at[at] == '{' || t.at[at] == '[' ? value_end(t, at) : 0;
    if (end <= 0)
        return last ? 0 : end;
    const struct text value = {t.at + at, (size_t)end - at};
    if (!(t.at[at] == '[' ? take_list : take_object)(c, value))
        return 0;
    return end;
}

/* ---- an answer ---- */

/* Where the next call may begin; t.n: nowhere so far. */
static size_t find_call(const struct chat_calls *c, struct text t, size_t from)
{
    const char *tag = c->form == CHAT_CALLS_MISTRAL ? mistral : tag_open;
    if (c->form == CHAT_CALLS_PLAIN) {
        size_t at = skip_blanks(t, from);
        bool begins = at < t.n && (t.at[at] == '{' || t.at[at] == '[' || may_become(t, at, python));
        return begins && (from == 0 || c->call.n) && !c->content.to.n ? at : t.n;
    }
    const char *at = t.n > from ? memmem(t.at + from, t.n - from, tag, strlen(tag)) : NULL;
    return at ? (size_t)(at - t.at) : t.n;
}

/* The number of trailing bytes to hold back: those that may begin a tag, and blanks, which are dropped before a call. */
static size_t waiting(const struct chat_calls *c, struct text t, size_t from)
{
    const char *tag = c->form == CHAT_CALLS_MISTRAL ? mistral : tag_open;
    size_t end = t.n;
    for (size_t n = strlen(tag) - 1; n > 0 && c->form != CHAT_CALLS_PLAIN; n--)
        if (t.n - from >= n && memcmp(t.at + t.n - n, tag, n) == 0) {
            end -= n;
            break;
        }
    while (end > from && is_blank(t.at[end - 1]))
        end--;
    return t.n - end;
}

static void keep(struct chat_calls *c, struct text t, size_t to)
{
    text_put(&c->content, t.at + c->read, to - c->read);
    c->read = to;
}

/* Objects are separated by ;. */
static void skip_between(struct chat_calls *c, struct text t)
{
    while (c->form == CHAT_CALLS_PLAIN && c->call.n && !c->content.to.n && c->read < t.n &&
           (is_blank(t.at[c->read]) || t.at[c->read] == ';'))
        c->read++;
}

void chat_calls_read(struct chat_calls *c, struct text t, bool last)
{
    static int64_t (*const read[])(struct chat_calls *, struct text, size_t, bool) = {
        [CHAT_CALLS_TAGGED] = read_tagged, [CHAT_CALLS_MISTRAL] = read_mistral, [CHAT_CALLS_PLAIN] = read_plain};
    for (skip_between(c, t); c->read < t.n; skip_between(c, t)) {
        size_t at = c->form == CHAT_CALLS_NONE ? t.n : find_call(c, t, c->read);
        size_t blanks = trimmed(t.at + c->read, at - c->read).n;
        if (at == t.n) {
            size_t wait = last ? t.n - c->read - blanks : waiting(c, t, c->read);
            keep(c, t, c->form == CHAT_CALLS_NONE || (last && !c->call.n) ? t.n : t.n - wait);
            return;
        }
        int64_t end = read[c->form](c, t, at, last);
        if (end < 0) {
            keep(c, t, c->read + blanks);
            return;
        }
        if (end == 0) /* not a call: its first character is content, and the rest is scanned again */
            keep(c, t, at + 1);
        else {
            keep(c, t, c->read + blanks);
            c->read = (size_t)end;
        }
    }
}
