/* Lexer: a template's text as tokens: data between tags, and what is in tags; literals as values. White space at tags is trimmed by
 * Jinja2's trim_blocks and lstrip_blocks, unless a tag overrides them by - or +. */
#include "jinja/jinja.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct lexer {
    struct jinja_trap *trap;
    const char *text;
    size_t n, at;
    bool starts_line; /* the text after the last tag begins a line */
    struct jinja_tokens tokens;
};

char *jinja_lines(struct arena *arena, const char *text, size_t *n)
{
    char *to = arena_alloc(arena, *n + 1);
    size_t m = 0;
    for (size_t i = 0; i < *n; i++) {
        if (text[i] == '\r' && i + 1 < *n && text[i + 1] == '\n')
            continue;
        to[m++] = text[i] == '\r' ? '\n' : text[i];
    }
    if (m && to[m - 1] == '\n')
        m--;
    *n = m;
    return to;
}

static void push(struct lexer *l, enum jinja_token_type type, size_t from, size_t to)
{
    VEC_PUSH(l->trap->arena, &l->tokens.list, ((struct jinja_token){type, from, to}));
}

static bool sees(const struct lexer *l, size_t at, const char *what)
{
    size_t n = strlen(what);
    return at <= l->n && n <= l->n - at && memcmp(l->text + at, what, n) == 0;
}

static size_t skip_space(const struct lexer *l, size_t at)
{
    struct jinja_string all = {.at = l->text, .n = l->n};
    while (at < l->n) {
        size_t i = at;
        if (!jinja_char_is_space(jinja_next(&all, &i)))
            break;
        at = i;
    }
    return at;
}

static size_t trimmed(const struct lexer *l, size_t from, size_t to)
{
    struct jinja_string data = {.at = l->text + from, .n = to - from};
    return from + jinja_strip(&data, NULL, false, true).n;
}

/* Data up to a tag, whose sign tells how it ends. */
static void put_data(struct lexer *l, size_t from, size_t tag, char sign, bool is_variable)
{
    size_t to = tag;
    if (sign == '-') {
        to = trimmed(l, from, tag);
    } else if (sign != '+' && !is_variable) {
        size_t line = tag;
        while (line > from && l->text[line - 1] != '\n')
            line--;
        if ((line > from || l->starts_line) && trimmed(l, line, tag) == line)
            to = line;
    }
    if (to > from)
        push(l, JINJA_DATA, from, to);
}

static char sign_at(const struct lexer *l, size_t at)
{
    return at < l->n && (l->text[at] == '-' || l->text[at] == '+') ? l->text[at] : 0;
}

/* Skips the end of a block or comment; false: not there. */
static bool block_end(struct lexer *l, size_t at, const char *end)
{
    size_t from = at;
    char sign = sign_at(l, at);
    at += sign != 0;
    if (!sees(l, at, end))
        return false;
    at += 2;
    if (sign == '-')
        at = skip_space(l, at);
    else if (sign == 0 && at < l->n && l->text[at] == '\n')
        at++;
    l->at = at;
    l->starts_line = at > from && l->text[at - 1] == '\n';
    return true;
}

static bool variable_end(struct lexer *l)
{
    size_t at = l->at;
    bool minus = at < l->n && l->text[at] == '-';
    if (!sees(l, at + minus, "}}"))
        return false;
    at += minus + 2u;
    if (minus)
        at = skip_space(l, at);
    l->starts_line = l->text[at - 1] == '\n';
    l->at = at;
    return true;
}

static void lex_comment(struct lexer *l, size_t begin)
{
    for (size_t i = begin; i < l->n; i++)
        if (block_end(l, i, "#}"))
            return;
    jinja_trapped(l->trap, begin, "the comment has no end, expected '#}'");
}

/* Text between raw and endraw is data. begin: after "{%" and its sign; false: not a raw block. */
static bool lex_raw(struct lexer *l, size_t begin)
{
    size_t at = skip_space(l, begin);
    if (!sees(l, at, "raw"))
        return false;
    at = skip_space(l, at + 3);
    bool minus = at < l->n && l->text[at] == '-';
    if (!sees(l, at + minus, "%}"))
        return false;
    size_t from = at + minus + 2u;
    if (minus)
        from = skip_space(l, from);
    l->starts_line = l->text[from - 1] == '\n';
    for (size_t i = from; i < l->n; i++) {
        if (!sees(l, i, "{%"))
            continue;
        char sign = sign_at(l, i + 2);
        size_t end = skip_space(l, i + 2 + (sign != 0));
        if (!sees(l, end, "endraw"))
            continue;
        bool started = l->starts_line;
        if (!block_end(l, skip_space(l, end + 6), "%}"))
            continue;
        bool starts = l->starts_line;
        l->starts_line = started;
        put_data(l, from, i, sign, false);
        l->starts_line = starts;
        return true;
    }
    jinja_trapped(l->trap, begin, "the raw block has no end, expected '{%% endraw %%}'");
}

/* ---- within tags ------------------------------------------------------------------------------------------------------- */

static bool is_digit(const struct lexer *l, size_t at)
{
    return at < l->n && l->text[at] >= '0' && l->text[at] <= '9';
}

static bool is_word(const struct lexer *l, size_t at)
{
    char c = at < l->n ? l->text[at] : ' ';
    return is_digit(l, at) || c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Digits, perhaps separated by single underscores. */
static size_t digits(const struct lexer *l, size_t at)
{
    while (is_digit(l, at) || (at < l->n && l->text[at] == '_' && is_digit(l, at + 1)))
        at++;
    return at;
}

static size_t exponent(const struct lexer *l, size_t at)
{
    if (at >= l->n || (l->text[at] != 'e' && l->text[at] != 'E'))
        return at;
    size_t from = at + 1 + (sign_at(l, at + 1) != 0);
    return is_digit(l, from) ? digits(l, from) : at;
}

static size_t based(const struct lexer *l, size_t at)
{
    static const char *const base[] = {"xX0123456789abcdefABCDEF", "oO01234567", "bB01"};
    for (int b = 0; b < 3 && at + 1 < l->n; b++) {
        if (l->text[at] != '0' || (l->text[at + 1] != base[b][0] && l->text[at + 1] != base[b][1]))
            continue;
        size_t to = at + 2;
        while (to < l->n && (strchr(base[b] + 2, l->text[to]) || (l->text[to] == '_' && l->text[to - 1] != '_')) && l->text[to])
            to++;
        return to > at + 2 ? to : at;
    }
    return at;
}

static void lex_number(struct lexer *l)
{
    size_t from = l->at, to = digits(l, from), end = to;
    bool after_dot = from > 0 && l->text[from - 1] == '.';
    if (!after_dot) {
        if (end < l->n && l->text[end] == '.' && is_digit(l, end + 1))
            end = digits(l, end + 1);
        end = exponent(l, end);
        if (end > to) {
            push(l, JINJA_DECIMALS, from, l->at = end);
            return;
        }
    }
    end = based(l, from);
    if (end == from)
        end = to;
    if (end == to && l->text[from] == '0')
        for (size_t i = from; i < to; i++)
            if (l->text[i] != '0' && l->text[i] != '_')
                jinja_trapped(l->trap, from, "a number begins with 0");
    push(l, JINJA_INTEGER, from, l->at = end);
}

static void lex_quoted(struct lexer *l)
{
    size_t from = l->at;
    char quote = l->text[from];
    for (size_t i = from + 1; i < l->n; i++) {
        if (l->text[i] == '\\') {
            i++;
        } else if (l->text[i] == quote) {
            push(l, JINJA_QUOTED, from, l->at = i + 1);
            return;
        }
    }
    jinja_trapped(l->trap, from, "the string has no end, expected %c", quote);
}

/* Open brackets: the end of a tag is not looked for within them. */
enum { BRACKETS = 256 };
struct brackets {
    char open[BRACKETS];
    int n;
};

static void bracket(struct lexer *l, struct brackets *b, char c)
{
    static const char opens[] = "([{", closes[] = ")]}";
    if (strchr(opens, c)) {
        if (b->n == BRACKETS)
            jinja_trapped(l->trap, l->at, "more than %d brackets are open", BRACKETS);
        b->open[b->n++] = closes[strchr(opens, c) - opens];
    } else if (strchr(closes, c)) {
        if (b->n == 0 || b->open[b->n - 1] != c)
            jinja_trapped(l->trap, l->at, "found '%c', which closes nothing that is open", c);
        b->n--;
    }
}

static void lex_sign(struct lexer *l, struct brackets *b)
{
    static const char *const signs[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
                                        "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (sees(l, l->at, signs[i])) {
            bracket(l, b, signs[i][0]);
            push(l, JINJA_SIGN, l->at, l->at + strlen(signs[i]));
            l->at += strlen(signs[i]);
            return;
        }
    if ((unsigned char)l->text[l->at] >= 0x80)
        jinja_trapped(l->trap, l->at, "a character that is not ASCII stands outside of a string");
    jinja_trapped(l->trap, l->at, "unexpected character '%c'", l->text[l->at] < ' ' ? '?' : l->text[l->at]);
}

static void lex_tag(struct lexer *l, size_t begin, bool is_variable)
{
    struct brackets open = {.n = 0};
    for (;;) {
        l->at = skip_space(l, l->at);
        size_t at = l->at;
        if (at >= l->n)
            jinja_trapped(l->trap, begin, "the tag has no end, expected '%s'", is_variable ? "}}" : "%}");
        if (open.n == 0 && (is_variable ? variable_end(l) : block_end(l, at, "%}"))) {
            push(l, is_variable ? JINJA_VARIABLE_END : JINJA_BLOCK_END, at, at + 2);
            return;
        }
        if (is_digit(l, at)) {
            lex_number(l);
        } else if (is_word(l, at)) {
            while (is_word(l, l->at))
                l->at++;
            push(l, JINJA_NAME, at, l->at);
        } else if (l->text[at] == '"' || l->text[at] == '\'') {
            lex_quoted(l);
        } else {
            lex_sign(l, &open);
        }
    }
}

struct jinja_tokens jinja_lex(struct jinja_trap *trap)
{
    struct lexer l = {.trap = trap, .text = trap->text, .n = trap->n, .starts_line = true};
    for (size_t from = 0;;) {
        size_t tag = from;
        while (tag < l.n && !sees(&l, tag, "{{") && !sees(&l, tag, "{%") && !sees(&l, tag, "{#"))
            tag++;
        if (tag == l.n) {
            if (tag > from)
                push(&l, JINJA_DATA, from, tag);
            push(&l, JINJA_END, l.n, l.n);
            return l.tokens;
        }
        bool is_variable = l.text[tag + 1] == '{';
        char sign = sign_at(&l, tag + 2);
        put_data(&l, from, tag, sign, is_variable);
        l.at = tag + 2 + (sign != 0);
        if (l.text[tag + 1] == '#') {
            lex_comment(&l, l.at);
        } else if (is_variable || !lex_raw(&l, l.at)) {
            push(&l, is_variable ? JINJA_VARIABLE_BEGIN : JINJA_BLOCK_BEGIN, tag, tag + 2);
            lex_tag(&l, tag, is_variable);
        }
        from = l.at;
    }
}

/* ---- literals ---------------------------------------------------------------------------------------------------------- */

struct reader {
    struct jinja_parser *p;
    const char *at;
    size_t n, i;
    size_t from; /* of the literal, in the template */
    char *to;
    size_t written;
};

static int hex(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static void put(struct reader *r, uint32_t c)
{
    if (!string_is_char(c) && c != 0)
        jinja_refuse(r->p, r->from, "the string has an escape that is no character");
    r->written += c ? (size_t)string_put_char(c, r->to + r->written) : 1; /* the buffer is zeroed */
}

static void put_code(struct reader *r, int digits)
{
    uint32_t c = 0;
    for (int i = 0; i < digits; i++, r->i++) {
        int d = r->i < r->n ? hex(r->at[r->i]) : -1;
        if (d < 0)
            jinja_refuse(r->p, r->from, "the string has an escape of less than %d hexadecimal digits", digits);
        c = c << 4 | (uint32_t)d;
    }
    put(r, c);
}

static void put_octal(struct reader *r)
{
    uint32_t c = 0;
    for (int i = 0; i < 3 && r->i < r->n && r->at[r->i] >= '0' && r->at[r->i] <= '7'; i++)
        c = c << 3 | (uint32_t)(r->at[r->i++] - '0');
    put(r, c);
}

static void put_escape(struct reader *r)
{
    static const char from[] = "abfnrtv\\'\"", to[] = "\a\b\f\n\r\t\v\\'\"";
    char c = r->at[r->i];
    const char *known = c ? strchr(from, c) : NULL;
    if (known) {
        r->i++;
        put(r, (uint32_t)to[known - from]);
    } else if (c >= '0' && c <= '7') {
        put_octal(r);
    } else if (c == 'x' || c == 'u' || c == 'U') {
        r->i++;
        put_code(r, c == 'x' ? 2 : c == 'u' ? 4 : 8);
    } else if (c == '\n') {
        r->i++;
    } else if (c == 'N' || (unsigned char)c >= 0x80) {
        jinja_refuse(r->p, r->from,
                     c == 'N' ? "the escape '\\N' is not supported" : "a backslash stands before a character that is not ASCII");
    } else {
        put(r, '\\');
    }
}

static struct jinja_string string_of(struct jinja_parser *p, const struct jinja_token *t)
{
    size_t n = t->to - t->from - 2;
    struct reader r = {.p = p, .at = p->trap.text + t->from + 1, .n = n, .from = t->from, .to = arena_alloc(p->arena, 2 * n + 8)};
    while (r.i < r.n) {
        if (r.at[r.i] == '\\') {
            r.i++;
            put_escape(&r);
        } else {
            r.to[r.written++] = r.at[r.i++];
        }
    }
    return (struct jinja_string){.at = r.to, .n = r.written};
}

static struct jinja_value string_value(struct jinja_parser *p, struct jinja_string s)
{
    struct jinja_string *kept = NEW(p->arena, struct jinja_string);
    *kept = s;
    return (struct jinja_value){.type = JINJA_STRING, .string = kept};
}

/* Adjacent strings are joined. */
static struct jinja_value strings(struct jinja_parser *p)
{
    struct jinja_string all = string_of(p, jinja_peek(p));
    for (p->next++; jinja_peek(p)->type == JINJA_QUOTED; p->next++) {
        struct jinja_string more = string_of(p, jinja_peek(p));
        char *both = arena_alloc(p->arena, all.n + more.n + 1);
        memcpy(both, all.at, all.n);
        memcpy(both + all.n, more.at, more.n);
        all = (struct jinja_string){.at = both, .n = all.n + more.n};
    }
    return string_value(p, all);
}

static struct jinja_value number(struct jinja_parser *p, const struct jinja_token *t)
{
    char *digits = arena_alloc(p->arena, t->to - t->from + 1), *end;
    size_t n = 0;
    for (size_t i = t->from; i < t->to; i++)
        if (p->trap.text[i] != '_')
            digits[n++] = p->trap.text[i];
    p->next++;
    if (t->type == JINJA_DECIMALS)
        return jinja_float(strtod(digits, NULL));
    char kind = n > 1 ? (char)(digits[1] | 0x20) : 0;
    int base = kind == 'x' ? 16 : kind == 'o' ? 8 : kind == 'b' ? 2 : 10;
    errno = 0;
    long long integer = strtoll(digits + (base == 10 ? 0 : 2), &end, base);
    if (errno)
        jinja_refuse(p, t->from, "the number %s is beyond integers of 64 bits", digits);
    return jinja_int(integer);
}

struct jinja_value jinja_literal_value(struct jinja_parser *p)
{
    const struct jinja_token *t = jinja_peek(p);
    return t->type == JINJA_QUOTED ? strings(p) : number(p, t);
}

/* ---- tokens for the parser --------------------------------------------------------------------------------------------------- */

const struct jinja_token *jinja_peek(const struct jinja_parser *p)
{
    return &p->tokens.list.at[p->next];
}

bool jinja_is_token(const struct jinja_parser *p, const struct jinja_token *t, enum jinja_token_type type, const char *text)
{
    return t->type == type && t->to - t->from == strlen(text) && memcmp(p->trap.text + t->from, text, t->to - t->from) == 0;
}

bool jinja_peek_sign(const struct jinja_parser *p, const char *sign)
{
    return jinja_is_token(p, jinja_peek(p), JINJA_SIGN, sign);
}

bool jinja_peek_word(const struct jinja_parser *p, const char *word)
{
    return jinja_is_token(p, jinja_peek(p), JINJA_NAME, word);
}

bool jinja_skip_sign(struct jinja_parser *p, const char *sign)
{
    bool is = jinja_peek_sign(p, sign);
    p->next += is;
    return is;
}

bool jinja_skip_word(struct jinja_parser *p, const char *word)
{
    bool is = jinja_peek_word(p, word);
    p->next += is;
    return is;
}

const char *jinja_shown(const struct jinja_parser *p, const struct jinja_token *t)
{
    if (t->type == JINJA_END)
        return "the end of the template";
    if (t->type == JINJA_DATA)
        return "text";
    struct jinja_string s = {.at = p->trap.text + t->from, .n = t->to - t->from};
    return arena_printf(p->arena, "'%.*s'", (int)jinja_offset(&s, 40), s.at);
}

void jinja_expect_type(struct jinja_parser *p, enum jinja_token_type type, const char *what)
{
    if (jinja_peek(p)->type != type)
        jinja_refuse(p, jinja_peek(p)->from, "expected %s, found %s", what, jinja_shown(p, jinja_peek(p)));
    p->next++;
}

void jinja_expect_sign(struct jinja_parser *p, const char *sign)
{
    if (!jinja_skip_sign(p, sign))
        jinja_refuse(p, jinja_peek(p)->from, "expected '%s', found %s", sign, jinja_shown(p, jinja_peek(p)));
}

struct jinja_string jinja_token_text(const struct jinja_parser *p, const struct jinja_token *t)
{
    return (struct jinja_string){.at = p->trap.text + t->from, .n = t->to - t->from};
}

struct jinja_string jinja_expect_name(struct jinja_parser *p)
{
    const struct jinja_token *t = jinja_peek(p);
    jinja_expect_type(p, JINJA_NAME, "a name");
    return jinja_token_text(p, t);
}
