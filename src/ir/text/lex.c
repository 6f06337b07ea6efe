/* lex: the lexer of the text form. Every character is checked against the end of the text, which is a NUL; nothing recurses. */
#include "ir/text/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static bool is_plain_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '/';
}

static bool is_plain_char(char c)
{
    return is_plain_start(c) || (c >= '0' && c <= '9') || c == '.';
}

/* Letters, digits, _ . and /, not starting with a digit or a dot, and not just "_". */
static bool lex_is_plain(const char *name)
{
    if (!is_plain_start(*name) || strcmp(name, "_") == 0)
        return false;
    for (const char *c = name; *c; c++)
        if (!is_plain_char(*c))
            return false;
    return true;
}

void lex_fail(struct lexer *l, const char *format, ...)
{
    char message[512];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    int line = 1, column = 1;
    for (const char *c = l->start; c < l->at; c++) {
        line += *c == '\n';
        column = *c == '\n' ? 1 : column + 1;
    }
    fail("%s:%d:%d: %s", l->file ? l->file : "text", line, column, message);
}

void lex_space(struct lexer *l)
{
    for (;;) {
        l->at += strspn(l->at, " \t\r\n");
        if (*l->at != '#')
            return;
        l->at += strcspn(l->at, "\n");
    }
}

bool lex_end(struct lexer *l)
{
    lex_space(l);
    return !*l->at;
}

bool lex_accept(struct lexer *l, const char *symbol)
{
    size_t n = strlen(symbol);
    lex_space(l);
    if (strncmp(l->at, symbol, n))
        return false;
    l->at += n;
    return true;
}

void lex_expect(struct lexer *l, const char *symbol)
{
    if (lex_accept(l, symbol))
        return;
    if (*l->at)
        lex_fail(l, "expected '%s', found '%.12s'", symbol, l->at);
    lex_fail(l, "expected '%s', found the end", symbol);
}

static size_t plain_length(const char *at)
{
    size_t n = 0;
    if (is_plain_start(*at))
        while (is_plain_char(at[n]))
            n++;
    return n;
}

bool lex_accept_word(struct lexer *l, const char *word)
{
    lex_space(l);
    size_t n = plain_length(l->at);
    if (n != strlen(word) || strncmp(l->at, word, n))
        return false;
    l->at += n;
    return true;
}

bool lex_at_quote(struct lexer *l)
{
    lex_space(l);
    return *l->at == '"';
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return -1;
}

/* The character after a backslash; l->at is on it. */
static char escaped(struct lexer *l)
{
    char c = *l->at++;
    switch (c) {
    case 'n': return '\n';
    case 't': return '\t';
    case '\\':
    case '"': return c;
    case 'x': break;
    default: l->at--; lex_fail(l, "unknown escape in a string");
    }
    int high = hex_digit(l->at[0]), low = high < 0 ? -1 : hex_digit(l->at[1]);
    if (low < 0 || high + low == 0)
        lex_fail(l, "\\x takes two hexadecimal digits, not both zero");
    l->at += 2;
    return (char)(high * 16 + low);
}

/* Length of the quoted text after l->at, escapes counted as written; an upper bound of its meaning. */
static size_t quoted_length(struct lexer *l)
{
    size_t n = 0;
    while (l->at[n] && l->at[n] != '"')
        n += l->at[n] == '\\' && l->at[n + 1] ? 2 : 1;
    if (!l->at[n])
        lex_fail(l, "a string without end");
    return n;
}

char *lex_quoted(struct lexer *l)
{
    lex_expect(l, "\"");
    char *out = arena_alloc(l->arena, quoted_length(l) + 1);
    size_t n = 0;
    while (*l->at != '"') {
        char c = *l->at++;
        out[n++] = c == '\\' ? escaped(l) : c;
    }
    l->at++;
    return out;
}

char *lex_name(struct lexer *l)
{
    if (lex_at_quote(l))
        return lex_quoted(l);
    size_t n = plain_length(l->at);
    if (!n)
        lex_fail(l, "expected a name, found '%.12s'", l->at);
    char *name = arena_strndup(l->arena, l->at, n);
    l->at += n;
    return name;
}

int64_t lex_int(struct lexer *l, int64_t lo, int64_t hi)
{
    lex_space(l);
    char *end;
    errno = 0;
    long long i = strtoll(l->at, &end, 10);
    if (end == l->at || errno)
        lex_fail(l, "expected an integer, found '%.12s'", l->at);
    if (i < lo || i > hi)
        lex_fail(l, "%lld is not within %" PRId64 " .. %" PRId64, i, lo, hi);
    l->at = end;
    return i;
}

char *lex_number(struct lexer *l)
{
    lex_space(l);
    size_t n = strspn(l->at, "+-.0123456789abcdefinxpABCDEFINXP");
    if (!n)
        lex_fail(l, "expected a number, found '%.12s'", l->at);
    char *text = arena_strndup(l->arena, l->at, n);
    l->at += n;
    return text;
}

double lex_float(struct lexer *l)
{
    char *text = lex_number(l), *end;
    double d = strtod(text, &end);
    if (end == text || *end)
        lex_fail(l, "'%s' is no number", text);
    return d;
}

uint8_t *lex_hex(struct lexer *l, int64_t *bytes)
{
    lex_expect(l, "\"");
    size_t n = strspn(l->at, "0123456789abcdef");
    if (n % 2 || l->at[n] != '"')
        lex_fail(l, "expected pairs of hexadecimal digits in quotes");
    uint8_t *out = arena_alloc(l->arena, n / 2 + 1);
    for (size_t i = 0; i < n / 2; i++)
        out[i] = (uint8_t)(hex_digit(l->at[2 * i]) * 16 + hex_digit(l->at[2 * i + 1]));
    l->at += n + 1;
    *bytes = (int64_t)(n / 2);
    return out;
}

char *lex_raw(struct lexer *l, const char *stop)
{
    lex_space(l);
    int depth = 0;
    bool quoted = false;
    size_t n = 0;
    for (char c; (c = l->at[n]); n++) {
        if (c == '`')
            quoted = !quoted;
        if (quoted)
            continue;
        if (depth == 0 && strchr(stop, c))
            break;
        depth += c == '(' || c == '[';
        depth -= c == ')' || c == ']';
    }
    char *text = arena_strndup(l->arena, l->at, n);
    l->at += n;
    while (n && strchr(" \t\r\n", text[n - 1]))
        text[--n] = 0;
    if (!n)
        lex_fail(l, "expected an expression, found '%.12s'", l->at);
    return text;
}

void lex_put_quoted(FILE *to, const char *text)
{
    fputc('"', to);
    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        switch (*c) {
        case '"': fputs("\\\"", to); break;
        case '\\': fputs("\\\\", to); break;
        case '\n': fputs("\\n", to); break;
        case '\t': fputs("\\t", to); break;
        default: fprintf(to, *c < 32 || *c == 127 ? "\\x%02x" : "%c", (unsigned)*c);
        }
    fputc('"', to);
}

void lex_put_name(FILE *to, const char *name)
{
    if (lex_is_plain(name))
        fputs(name, to);
    else
        lex_put_quoted(to, name);
}
