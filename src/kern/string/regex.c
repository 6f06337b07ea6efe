/* regex: full matches of a pattern in strings. Patterns have RE2's syntax and are matched by PCRE2: constructs that PCRE2 reads differently
 * are translated, and those that RE2 lacks are rejected. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "kern/string/string.h"

#include <string.h>

#ifdef HAVE_TEXT
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

struct translation {
    const struct kcall *call;
    const char *pattern, *at;
    char *end;     /* of the translated pattern */
    bool in_class; /* within brackets */
};

static _Noreturn void refuse(const struct translation *t, const char *what)
{
    fail("%s: the pattern '%s' has %s at byte %zu, which RE2's syntax has not", kcall_where(t->call), t->pattern, what,
         (size_t)(t->at - t->pattern));
}

static void put(struct translation *t, const char *text, size_t n)
{
    memcpy(t->end, text, n);
    t->end += n;
}

/* RE2's white space excludes the vertical tab, and \v means only that. */
static void translate_escape(struct translation *t)
{
    char c = t->at[1];
    const char *text = c == 'v' ? "\\x0b" : c == 's' ? (t->in_class ? "\\t\\n\\f\\r\\x20" : "[\\t\\n\\f\\r\\x20]") : NULL;
    if (c == 'S')
        text = t->in_class ? "\\S\\x0b" : "[^\\t\\n\\f\\r\\x20]";
    if (c == 'Q') {
        const char *end = strstr(t->at, "\\E");
        size_t n = end ? (size_t)(end - t->at) + 2 : strlen(t->at);
        put(t, t->at, n);
        t->at += n;
        return;
    }
    if (!c || (c >= '1' && c <= '9') || strchr("ceghkloCGHKLNRUVXZu", c))
        refuse(t, "an escape");
    put(t, text ? text : t->at, text ? strlen(text) : 2);
    t->at += 2;
}

/* Accepts (?i), (?i:, (?P<name> and (?<name>; no look-around, no verbs. */
static void check_group(const struct translation *t)
{
    const char *p = t->at + 2;
    if (t->at[1] == '*')
        refuse(t, "(*");
    if (t->at[1] != '?')
        return;
    if (p[0] == 'P' && p[1] == '<')
        p++;
    if (p[0] == '<' && p[1] != '=' && p[1] != '!')
        return;
    if (t->at[2] != 'P' && p[strspn(p, "imsU-")] && strchr(":)", p[strspn(p, "imsU-")]))
        return;
    refuse(t, "a group");
}

static void check_possessive(const struct translation *t)
{
    if (t->at > t->pattern && t->at[1] == '+' && strchr("*+?}", t->at[0]))
        refuse(t, "a possessive repetition");
}

/* A closing bracket directly after the opening one is a member. */
static void open_class(struct translation *t)
{
    size_t n = 1 + (t->at[1] == '^');
    n += t->at[n] == ']';
    t->in_class = true;
    put(t, t->at, n);
    t->at += n;
}

static void translate_next(struct translation *t)
{
    if (*t->at == '\\') {
        translate_escape(t);
        return;
    }
    if (!t->in_class && *t->at == '[') {
        open_class(t);
        return;
    }
    if (t->in_class && strncmp(t->at, "[:", 2) == 0 && strstr(t->at, ":]")) {
        size_t n = (size_t)(strstr(t->at, ":]") - t->at) + 2;
        put(t, t->at, n);
        t->at += n;
        return;
    }
    if (!t->in_class && *t->at == '(')
        check_group(t);
    if (!t->in_class)
        check_possessive(t);
    t->in_class = t->in_class && *t->at != ']';
    put(t, t->at++, 1);
}

static const char *translated(const struct kcall *call, struct arena *a, const char *pattern)
{
    struct translation t = {.call = call, .pattern = pattern, .at = pattern};
    char *text = arena_array(a, strlen(pattern) + 1, 20);
    for (t.end = text; *t.at;)
        translate_next(&t);
    return text;
}

static void *take_memory(size_t bytes, void *arena)
{
    return arena_alloc(arena, bytes);
}

static void drop_memory(void *at, void *arena)
{
    (void)at;
    (void)arena;
}

static _Noreturn void fail_pattern(const struct kcall *call, const char *pattern, int error)
{
    PCRE2_UCHAR said[160];
    pcre2_get_error_message(error, said, sizeof said);
    fail("%s: the pattern '%s' can't be matched: %s", kcall_where(call), pattern, (char *)said);
}

void kern_RegexFullMatch(struct kcall *call)
{
    const uint32_t options = PCRE2_UTF | PCRE2_NO_UTF_CHECK | PCRE2_ANCHORED | PCRE2_ENDANCHORED | PCRE2_DOLLAR_ENDONLY;
    const char *pattern = attr_string(call->node, "pattern");
    struct arena *a = arena_new();
    int error;
    PCRE2_SIZE at;
    pcre2_general_context *memory = pcre2_general_context_create(take_memory, drop_memory, a);
    pcre2_compile_context *how = pcre2_compile_context_create(memory);
    require(memory && how);
    pcre2_code *code = pcre2_compile((PCRE2_SPTR)translated(call, a, pattern), PCRE2_ZERO_TERMINATED, options, &error, &at, how);
    if (!code)
        fail_pattern(call, pattern, error);
    pcre2_match_data *match = pcre2_match_data_create_from_pattern(code, memory);
    require(match);
    const int64_t *x = call->in[0].data;
    uint8_t *y = call->out[0].data;
    for (int64_t i = 0; i < tensor_elements(&call->in[0]); i++) {
        int found = pcre2_match(code, (PCRE2_SPTR)string_text(x[i]), PCRE2_ZERO_TERMINATED, 0, PCRE2_NO_UTF_CHECK, match, NULL);
        if (found < 0 && found != PCRE2_ERROR_NOMATCH)
            fail_pattern(call, pattern, found);
        y[i] = found >= 0;
    }
    arena_free(a);
}

#else
void kern_RegexFullMatch(struct kcall *call)
{
    fail("%s: this build matches no patterns, for it lacks PCRE2: ./configure --with-text", kcall_where(call));
}
#endif
