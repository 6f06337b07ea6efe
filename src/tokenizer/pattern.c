/* pattern: the search patterns of normalizers and pre-tokenizers: a string, or a regular expression by PCRE2. Files are written for
 * Oniguruma; where classes of the two differ, ours are spelled out. */
#include "tokenizer/tokenizer.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <string.h>

struct pattern {
    struct text literal; /* or: */
    pcre2_code *code;
    pcre2_match_data *match;
};

/* Oniguruma's \s and \w, for use in brackets. */
#define SPACES "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}"
#define WORDS "\\p{L}\\p{M}\\p{Nd}\\p{Pc}"

/* \s, \S, \w and \W spelled out; a negated class within brackets stays as it is. */
static struct text spelled_out(struct arena *a, const char *regex)
{
    struct text_builder b = {.arena = a};
    bool in = false;
    for (const char *p = regex; *p; p++) {
        bool escape = *p == '\\' && p[1];
        if (!escape) {
            in = *p == '[' ? true : *p == ']' ? false : in;
            text_put(&b, p, 1);
            continue;
        }
        char k = p[1];
        const char *class = k == 's' || k == 'S' ? SPACES : k == 'w' || k == 'W' ? WORDS : NULL;
        bool negated = k == 'S' || k == 'W';
        if (class && !(in && negated)) {
            struct text open = text_of(in ? "" : negated ? "[^" : "["), body = text_of(class), close = text_of(in ? "" : "]");
            text_put(&b, open.at, open.n);
            text_put(&b, body.at, body.n);
            text_put(&b, close.at, close.n);
        } else {
            text_put(&b, p, 2);
        }
        p++;
    }
    return text_built(&b);
}

/* PCRE2 allocates from the arena. */
static void *take_memory(size_t bytes, void *arena)
{
    return arena_alloc(arena, bytes);
}

static void drop_memory(void *at, void *arena)
{
    (void)at;
    (void)arena;
}

struct pattern *pattern_regex(struct arena *a, const char *where, const char *regex)
{
    struct pattern *p = NEW(a, struct pattern);
    struct text t = spelled_out(a, regex);
    int error;
    PCRE2_SIZE at;
    pcre2_general_context *memory = pcre2_general_context_create(take_memory, drop_memory, a);
    pcre2_compile_context *compile = pcre2_compile_context_create(memory);
    require(memory && compile);
    p->code = pcre2_compile((PCRE2_SPTR)t.at, t.n, PCRE2_UTF | PCRE2_UCP, &error, &at, compile);
    if (!p->code) {
        PCRE2_UCHAR said[160];
        pcre2_get_error_message(error, said, sizeof said);
        fail("%s: the pattern '%s' can't be read: %s", where, regex, (char *)said);
    }
    (void)pcre2_jit_compile(p->code, PCRE2_JIT_COMPLETE);
    p->match = pcre2_match_data_create_from_pattern(p->code, memory);
    require(p->match);
    return p;
}

struct pattern *pattern_read(struct arena *a, const char *where, const json_t *v)
{
    const json_t *string = json_is_string(v) ? v : json_object_get(v, "String"), *regex = json_object_get(v, "Regex");
    if (json_is_string(regex))
        return pattern_regex(a, where, json_string_value(regex));
    struct pattern *p = NEW(a, struct pattern);
    if (!json_is_string(string) || json_string_length(string) == 0)
        fail("%s: expected a pattern: {\"String\": ...} or {\"Regex\": ...}", where);
    p->literal = member_text(a, string);
    return p;
}

static bool find_literal(struct text literal, struct text in, size_t at, size_t *start, size_t *end)
{
    for (; at + literal.n <= in.n; at++) {
        const char *next = memchr(in.at + at, literal.at[0], in.n - literal.n + 1 - at);
        if (!next)
            return false;
        at = (size_t)(next - in.at);
        if (memcmp(next, literal.at, literal.n) == 0) {
            *start = at;
            *end = at + literal.n;
            return true;
        }
    }
    return false;
}

/* Compiled code has a small stack: patterns that need more are interpreted. */
static bool match_from(const struct pattern *p, struct text in, size_t at)
{
    PCRE2_SPTR text = (PCRE2_SPTR)in.at;
    int n = pcre2_match(p->code, text, in.n, at, PCRE2_NO_UTF_CHECK, p->match, NULL);
    if (n == PCRE2_ERROR_JIT_STACKLIMIT)
        n = pcre2_match(p->code, text, in.n, at, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, p->match, NULL);
    if (n < 0 && n != PCRE2_ERROR_NOMATCH) {
        PCRE2_UCHAR said[160];
        pcre2_get_error_message(n, said, sizeof said);
        fail("a pattern of the tokenizer can't be looked for in the text: %s", (char *)said);
    }
    return n >= 0;
}

bool pattern_find(const struct pattern *p, struct text in, size_t at, size_t *start, size_t *end)
{
    if (!p->code)
        return find_literal(p->literal, in, at, start, end);
    while (at <= in.n) {
        if (!match_from(p, in, at))
            return false;
        const PCRE2_SIZE *found = pcre2_get_ovector_pointer(p->match);
        *start = found[0];
        *end = found[1];
        if (*end > *start)
            return true;
        if (*start >= in.n)
            return false;
        at = *start;
        (void)text_next(in, &at);
    }
    return false;
}

struct text pattern_replace(const struct pattern *p, struct arena *a, struct text in, struct text by)
{
    struct text_builder b = {.arena = a};
    size_t at = 0, start, end;
    while (pattern_find(p, in, at, &start, &end)) {
        text_put(&b, in.at + at, start - at);
        text_put(&b, by.at, by.n);
        at = end;
    }
    text_put(&b, in.at + at, in.n - at);
    return text_built(&b);
}
