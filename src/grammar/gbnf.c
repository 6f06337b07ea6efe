/* gbnf: grammars as llama.cpp writes them: NAME ::= ALTERNATIVES, of texts in quotes, characters in brackets, `.`, names and groups, each
 * with *, +, ? or {m,n}. `#` begins a comment. */
#include "grammar/grammar.h"

#include <string.h>

struct gbnf {
    struct grammar_build *build;
    struct arena *arena;
    const char *at, *start, *end;
    struct name_index names;
    VEC(bool) defined; /* by rule */
    const char *name;  /* of the current rule */
    int depth;
};

/* ---- faults ---- */

static int line_of(const struct gbnf *g, const char *at)
{
    int line = 1;
    for (const char *c = g->start; c < at; c++)
        line += *c == '\n';
    return line;
}

static void refuse(struct gbnf *g, const char *expected)
{
    if (!grammar_fault(g->build))
        grammar_refuse(g->build, arena_printf(g->arena, "line %d: expected %s", line_of(g, g->at), expected));
}

static bool is_wrong(const struct gbnf *g)
{
    return grammar_fault(g->build) != NULL;
}

/* ---- characters of the text ---- */

static char peek(const struct gbnf *g)
{
    return g->at < g->end ? *g->at : 0;
}

static bool take(struct gbnf *g, char c)
{
    bool found = g->at < g->end && *g->at == c;
    g->at += found;
    return found;
}

/* Blanks and comments; lines: line ends, too. */
static void skip_blanks(struct gbnf *g, bool lines)
{
    for (; g->at < g->end; g->at++) {
        if (*g->at == '#')
            while (g->at < g->end && *g->at != '\n' && *g->at != '\r')
                g->at++;
        if (g->at == g->end || !(*g->at == ' ' || *g->at == '\t' || (lines && (*g->at == '\n' || *g->at == '\r'))))
            return;
    }
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

static const char *take_name(struct gbnf *g)
{
    const char *from = g->at;
    while (g->at < g->end && is_word(*g->at))
        g->at++;
    if (from == g->at)
        refuse(g, "a name");
    return arena_strndup(g->arena, from, (size_t)(g->at - from));
}

static int hex(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static uint32_t take_hex(struct gbnf *g, int digits)
{
    uint32_t c = 0;
    for (int i = 0; i < digits; i++) {
        int digit = hex(peek(g));
        if (digit < 0) {
            refuse(g, arena_printf(g->arena, "%d digits of base 16", digits));
            return 0;
        }
        c = c * 16 + (uint32_t)digit;
        g->at++;
    }
    return c;
}

static uint32_t take_escape(struct gbnf *g)
{
    char c = peek(g);
    g->at += g->at < g->end;
    switch (c) {
    case 'n': return '\n';
    case 'r': return '\r';
    case 't': return '\t';
    case 'x': return take_hex(g, 2);
    case 'u': return take_hex(g, 4);
    case 'U': return take_hex(g, 8);
    case '\\':
    case '"':
    case '[':
    case ']':
    case '-': return (unsigned char)c;
    default: refuse(g, "\\n, \\r, \\t, \\x, \\u, \\U, \\\\, \\\", \\[, \\] or \\- behind a backslash"); return 0;
    }
}

/* A character of a text or of a bracket. */
static uint32_t take_char(struct gbnf *g)
{
    if (take(g, '\\')) {
        uint32_t c = take_escape(g);
        if (c > GRAMMAR_LAST_CHAR || (c >= 0xd800 && c < 0xe000))
            refuse(g, "a character of Unicode");
        return c;
    }
    char bytes[5] = "";
    const char *c = bytes;
    memcpy(bytes, g->at, g->end - g->at < 4 ? (size_t)(g->end - g->at) : 4);
    uint32_t found = string_next_char(&c);
    g->at += c - bytes;
    return found;
}

/* ---- parts of a rule, from a state; they return the next state ---- */

static int read_alternatives(struct gbnf *g, int from);

static int read_text(struct gbnf *g, int from)
{
    while (!is_wrong(g) && !take(g, '"')) {
        char bytes[4];
        if (g->at == g->end || *g->at == '\n')
            refuse(g, "\" behind a text");
        else {
            size_t n = (size_t)string_put_char(take_char(g), bytes);
            from = grammar_literal(g->build, from, bytes, n);
        }
    }
    return from;
}

static struct grammar_chars read_chars(struct gbnf *g)
{
    struct grammar_chars c = {0};
    bool others = take(g, '^');
    while (!is_wrong(g) && !take(g, ']')) {
        if (g->at == g->end || *g->at == '\n') {
            refuse(g, "] behind characters");
            break;
        }
        uint32_t first = take_char(g), last = first;
        if (peek(g) == '-' && g->at + 1 < g->end && g->at[1] != ']') {
            g->at++;
            last = take_char(g);
        }
        if (last < first)
            refuse(g, "a range whose first character is not behind its last one");
        grammar_chars_add(g->arena, &c, first, last);
    }
    grammar_chars_sort(g->arena, &c);
    return others ? grammar_chars_others(g->arena, &c) : c;
}

static int step_chars(struct gbnf *g, int from, const struct grammar_chars *c)
{
    int to = grammar_state(g->build);
    grammar_chars_step(g->build, from, c, to);
    return to;
}

static int read_any(struct gbnf *g, int from)
{
    struct grammar_chars all = {0};
    grammar_chars_add(g->arena, &all, 0, GRAMMAR_LAST_CHAR);
    return step_chars(g, from, &all);
}

static int read_group(struct gbnf *g, int from)
{
    skip_blanks(g, true);
    int to = read_alternatives(g, from);
    skip_blanks(g, true);
    if (!take(g, ')'))
        refuse(g, ") behind a group");
    return to;
}

static int rule_named(struct gbnf *g, const char *name)
{
    int rule = name_index_find(&g->names, name);
    if (rule >= 0)
        return rule;
    rule = grammar_rule(g->build, name);
    name_index_put(g->arena, &g->names, name, rule);
    return rule;
}

static int read_name(struct gbnf *g, int from)
{
    int to = grammar_state(g->build);
    const char *name = take_name(g);
    if (!is_wrong(g))
        grammar_call(g->build, from, rule_named(g, name), to);
    return to;
}

/* One part, without its quantifier. */
static int read_part(struct gbnf *g, int from)
{
    if (take(g, '"'))
        return read_text(g, from);
    if (take(g, '[')) {
        const struct grammar_chars c = read_chars(g);
        return step_chars(g, from, &c);
    }
    if (take(g, '('))
        return read_group(g, from);
    return take(g, '.') ? read_any(g, from) : read_name(g, from);
}

/* ---- quantifiers ---- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int64_t take_count(struct gbnf *g)
{
    int64_t n = 0;
    if (!is_digit(peek(g)))
        refuse(g, "a number");
    for (; is_digit(peek(g)); g->at++)
        n = n < GRAMMAR_STATES ? n * 10 + (*g->at - '0') : n;
    return n;
}

/* The quantifier after a part; false: none, and the part occurs once. */
static bool take_times(struct gbnf *g, int64_t *least, int64_t *most)
{
    char c = peek(g);
    if (c == '*' || c == '+' || c == '?') {
        g->at++;
        *least = c == '+';
        *most = c == '?' ? 1 : -1;
        return true;
    }
    if (!take(g, '{'))
        return false;
    skip_blanks(g, true);
    *least = peek(g) == ',' ? 0 : take_count(g);
    *most = *least;
    skip_blanks(g, true);
    if (take(g, ',')) {
        skip_blanks(g, true);
        *most = peek(g) == '}' ? -1 : take_count(g);
    }
    skip_blanks(g, true);
    if (!take(g, '}'))
        refuse(g, "} behind numbers");
    if (*most >= 0 && *most < *least)
        refuse(g, "a first number that is not above the second one");
    return true;
}

/* A part is a rule of its own because it may be repeated. */
static int read_item(struct gbnf *g, int from, bool nested)
{
    int64_t least, most;
    int part = grammar_rule(g->build, g->name), end = read_part(g, grammar_rule_start(g->build, part));
    grammar_skip(g->build, end, grammar_rule_end(g->build, part));
    skip_blanks(g, nested);
    if (take_times(g, &least, &most)) {
        from = grammar_repeat(g->build, from, part, least, most);
        skip_blanks(g, nested);
        return from;
    }
    int to = grammar_state(g->build);
    grammar_call(g->build, from, part, to);
    return to;
}

static bool begins_part(const struct gbnf *g)
{
    char c = peek(g);
    return c == '"' || c == '[' || c == '(' || c == '.' || is_word(c);
}

static int read_alternatives(struct gbnf *g, int from)
{
    int to = grammar_state(g->build);
    bool nested = g->depth > 0;
    if (++g->depth > GRAMMAR_DEPTH)
        refuse(g, arena_printf(g->arena, "at most %d groups within each other", GRAMMAR_DEPTH));
    do {
        int last = grammar_state(g->build);
        skip_blanks(g, true);
        grammar_skip(g->build, from, last);
        while (!is_wrong(g) && begins_part(g))
            last = read_item(g, last, nested);
        grammar_skip(g->build, last, to);
    } while (!is_wrong(g) && take(g, '|'));
    g->depth--;
    return to;
}

/* ---- rules ---- */

static void define(struct gbnf *g, const char *name, int rule)
{
    while (g->defined.n <= rule)
        VEC_PUSH(g->arena, &g->defined, false);
    if (g->defined.at[rule])
        refuse(g, arena_printf(g->arena, "one definition of '%.100s', found a second one", name));
    g->defined.at[rule] = true;
}

static void read_rule(struct gbnf *g)
{
    const char *name = take_name(g);
    skip_blanks(g, false);
    if (!take(g, ':') || !take(g, ':') || !take(g, '='))
        refuse(g, "::= behind a name");
    if (is_wrong(g))
        return;
    int rule = rule_named(g, name);
    define(g, name, rule);
    g->name = name;
    int end = read_alternatives(g, grammar_rule_start(g->build, rule));
    grammar_skip(g->build, end, grammar_rule_end(g->build, rule));
    skip_blanks(g, false);
    if (g->at < g->end && *g->at != '\n' && *g->at != '\r')
        refuse(g, "a part of a rule, or the end of the line");
    skip_blanks(g, true);
}

static void check_defined(struct gbnf *g)
{
    for (int i = 0; i < g->names.slots; i++) {
        int rule = g->names.name[i] ? g->names.at[i] : -1;
        if (rule >= 0 && (rule >= g->defined.n || !g->defined.at[rule]))
            grammar_refuse(g->build, arena_printf(g->arena, "there is no rule '%.100s'", g->names.name[i]));
    }
}

int grammar_gbnf(struct grammar_build *b, const char *text, size_t n)
{
    struct gbnf g = {.build = b, .arena = grammar_arena(b), .at = text, .start = text, .end = text + n};
    const char *fault = string_fault(text, n);
    if (fault)
        grammar_refuse(b, arena_printf(g.arena, "it %s", fault));
    skip_blanks(&g, true);
    while (!is_wrong(&g) && g.at < g.end)
        read_rule(&g);
    int root = name_index_find(&g.names, "root");
    if (root < 0)
        grammar_refuse(b, "it has no rule 'root'");
    if (!is_wrong(&g))
        check_defined(&g);
    return is_wrong(&g) ? -1 : root;
}
