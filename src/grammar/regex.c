/* regex: patterns of JSON schemas (ECMA-262) that only describe sequences of characters (no assertions within). */
#include "grammar/grammar.h"

#include <string.h>

struct regex {
    struct grammar_json *json;
    struct grammar_build *build;
    struct arena *arena;
    const char *at;
    const char *why;
    int depth;
};

static void refuse(struct regex *r, const char *sentence)
{
    r->why = r->why ? r->why : sentence;
}

static bool take(struct regex *r, const char *text)
{
    bool found = strncmp(r->at, text, strlen(text)) == 0;
    r->at += found ? strlen(text) : 0;
    return found;
}

/* ---- sets of characters ---- */

struct class_of {
    char name;
    bool others;
    const char *ranges; /* pairs of characters */
};
static const struct class_of classes[] = {
    {'d', false, "09"}, {'D', true, "09"}, {'w', false, "AZaz09__"}, {'W', true, "AZaz09__"}, {'s', false, "  \t\r"}, {'S', true, "  \t\r"},
};

/* Other ASCII characters only: readers differ on letters and digits elsewhere. */
static struct grammar_chars other_ascii(struct arena *a, const struct grammar_chars *c)
{
    struct grammar_chars ascii = {0}, others = grammar_chars_others(a, c);
    grammar_chars_add(a, &ascii, 0, 0x7f);
    return grammar_chars_both(a, &others, &ascii);
}

static bool take_class(struct regex *r, struct grammar_chars *to)
{
    for (size_t i = 0; i < sizeof classes / sizeof *classes && r->at[0] == '\\'; i++) {
        if (r->at[1] != classes[i].name)
            continue;
        struct grammar_chars c = {0};
        for (const char *p = classes[i].ranges; *p; p += 2)
            grammar_chars_add(r->arena, &c, (unsigned char)p[0], (unsigned char)p[1]);
        grammar_chars_sort(r->arena, &c);
        c = classes[i].others ? other_ascii(r->arena, &c) : c;
        for (int k = 0; k < c.range.n; k++)
            grammar_chars_add(r->arena, to, c.range.at[k].from, c.range.at[k].to);
        r->at += 2;
        return true;
    }
    return false;
}

static int hex(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static uint32_t take_hex(struct regex *r, int digits)
{
    uint32_t c = 0;
    for (int i = 0; i < digits && !r->why; i++) {
        int digit = hex(*r->at);
        if (digit < 0)
            refuse(r, "\\x and \\u need 2 and 4 digits");
        else
            r->at++;
        c = c * 16 + (uint32_t)(digit < 0 ? 0 : digit);
    }
    return c;
}

static uint32_t take_char(struct regex *r)
{
    static const char letters[] = "nrtfv", meant[] = "\n\r\t\f\v";
    if (!take(r, "\\"))
        return string_next_char(&r->at);
    char c = *r->at;
    const char *letter = c ? strchr(letters, c) : NULL;
    if (c == 'x' || c == 'u') {
        r->at++;
        return take_hex(r, c == 'x' ? 2 : 4);
    }
    if (!c || (!letter && ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'))))
        refuse(r, arena_printf(r->arena, "'\\%.1s' is not supported", r->at));
    uint32_t plain = c ? string_next_char(&r->at) : 0;
    return letter ? (uint32_t)meant[letter - letters] : plain;
}

static struct grammar_chars take_brackets(struct regex *r)
{
    struct grammar_chars c = {0};
    bool others = take(r, "^");
    while (!r->why && !take(r, "]")) {
        if (!*r->at)
            refuse(r, "a [ has no ]");
        if (r->why || take_class(r, &c))
            continue;
        uint32_t first = take_char(r), last = first;
        if (r->at[0] == '-' && r->at[1] && r->at[1] != ']') {
            r->at++;
            last = take_char(r);
        }
        if (last < first)
            refuse(r, "a range ends before it begins");
        grammar_chars_add(r->arena, &c, first, last);
    }
    grammar_chars_sort(r->arena, &c);
    return others ? grammar_chars_others(r->arena, &c) : c;
}

static struct grammar_chars all_but_line_ends(struct regex *r)
{
    struct grammar_chars c = {0};
    grammar_chars_add(r->arena, &c, '\n', '\n');
    grammar_chars_add(r->arena, &c, '\r', '\r');
    grammar_chars_add(r->arena, &c, 0x2028, 0x2029);
    grammar_chars_sort(r->arena, &c);
    return grammar_chars_others(r->arena, &c);
}

/* ---- parts ---- */

static void read_alternatives(struct regex *r, int from, int to);

static void read_group(struct regex *r, int from, int to)
{
    bool plain = take(r, "?:");
    if (!plain && *r->at == '?')
        refuse(r, "groups that begin with (? are not supported, but for (?:");
    if (++r->depth > GRAMMAR_DEPTH)
        refuse(r, "its groups are nested too deeply");
    if (!r->why)
        read_alternatives(r, from, to);
    r->depth--;
    if (!r->why && !take(r, ")"))
        refuse(r, "a ( has no )");
}

static void read_one(struct regex *r, int from, int to)
{
    struct grammar_chars c = {0};
    if (take(r, "(")) {
        read_group(r, from, to);
        return;
    }
    if (*r->at == '^' || *r->at == '$')
        refuse(r, "^ and $ are supported at the beginning and end alone");
    if (*r->at == '*' || *r->at == '+' || *r->at == '?' || *r->at == '{')
        refuse(r, "there is nothing to repeat");
    if (r->why)
        return;
    if (take(r, "["))
        c = take_brackets(r);
    else if (take(r, "."))
        c = all_but_line_ends(r);
    else if (!take_class(r, &c)) {
        uint32_t one = take_char(r);
        grammar_chars_add(r->arena, &c, one, one);
    }
    grammar_chars_sort(r->arena, &c);
    grammar_json_chars(r->json, from, c, to);
}

static int64_t take_count(struct regex *r)
{
    int64_t n = 0;
    if (*r->at < '0' || *r->at > '9')
        refuse(r, "a { has no number");
    for (; *r->at >= '0' && *r->at <= '9'; r->at++)
        n = n < GRAMMAR_STATES ? n * 10 + (*r->at - '0') : n;
    return n;
}

static void take_times(struct regex *r, int64_t *least, int64_t *most)
{
    *least = *most = 1;
    if (take(r, "*") || take(r, "+")) {
        *least = r->at[-1] == '+';
        *most = -1;
    } else if (take(r, "?"))
        *least = 0;
    else if (take(r, "{")) {
        *most = *least = take_count(r);
        if (take(r, ","))
            *most = *r->at == '}' ? -1 : take_count(r);
        if (!take(r, "}") || (*most >= 0 && *most < *least))
            refuse(r, "a { is not followed by numbers in order and }");
    } else
        return;
    (void)take(r, "?"); /* laziness does not matter */
}

/* A part is a rule of its own because it may be repeated. */
static int read_item(struct regex *r, int from)
{
    int64_t least, most;
    int part = grammar_rule(r->build, "a part of a pattern");
    read_one(r, grammar_rule_start(r->build, part), grammar_rule_end(r->build, part));
    take_times(r, &least, &most);
    return r->why ? from : grammar_repeat(r->build, from, part, least, most);
}

static bool at_end(const struct regex *r)
{
    return !*r->at || *r->at == '|' || *r->at == ')' || (*r->at == '$' && (!r->at[1] || r->at[1] == '|'));
}

static int read_sequence(struct regex *r, int from)
{
    while (!r->why && !grammar_fault(r->build) && !at_end(r))
        from = read_item(r, from);
    return from;
}

static void read_alternatives(struct regex *r, int from, int to)
{
    do {
        int at = grammar_state(r->build);
        grammar_skip(r->build, from, at);
        grammar_skip(r->build, read_sequence(r, at), to);
    } while (!r->why && take(r, "|"));
}

/* Without ^ or $ there may be anything. */
static int put_anything(struct regex *r, int from)
{
    return grammar_repeat(r->build, from, grammar_json_character(r->json), 0, -1);
}

const char *grammar_regex(struct grammar_json *j, int from, const char *pattern, int to)
{
    struct regex r = {.json = j, .build = j->build, .arena = j->arena, .at = pattern};
    do {
        int at = grammar_state(r.build);
        grammar_skip(r.build, from, at);
        at = take(&r, "^") ? at : put_anything(&r, at);
        at = read_sequence(&r, at);
        at = take(&r, "$") ? at : put_anything(&r, at);
        grammar_skip(r.build, at, to);
    } while (!r.why && take(&r, "|"));
    if (*r.at && !grammar_fault(r.build))
        refuse(&r, "a ) has no (");
    return r.why;
}

/* ---- formats ---- */

#define DATE "[12][0-9]{3}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))"
#define TIME "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,6})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
#define LABEL "[a-z0-9]{1,20}(-[a-z0-9]{1,20})?"
#define OCTET "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
#define HOST LABEL "(\\." LABEL "){0,3}\\.[a-z]{2,10}"

/* Of RFC 3339, 4122, 2673, 4291 and others: a subset of each that all readers accept. */
static const struct {
    const char *name, *pattern;
} formats[] = {
    {"date", "^" DATE "$"},
    {"time", "^" TIME "$"},
    {"date-time", "^" DATE "T" TIME "$"},
    {"duration", "^P([0-9]{1,4}D(T[0-9]{1,4}H([0-9]{1,4}M([0-9]{1,4}S)?)?)?|T[0-9]{1,4}H([0-9]{1,4}M([0-9]{1,4}S)?)?|T[0-9]{1,6}S)$"},
    {"uuid", "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"},
    {"ipv4", "^" OCTET "(\\." OCTET "){3}$"},
    {"ipv6", "^[0-9a-f]{1,4}(:[0-9a-f]{1,4}){7}$"},
    {"hostname", "^" HOST "$"},
    {"email", "^[a-zA-Z0-9]{1,20}([._+-][a-zA-Z0-9]{1,20}){0,2}@" HOST "$"},
    {"uri", "^https?://" HOST "(:[1-9][0-9]{0,3})?(/[A-Za-z0-9._~-]{0,40}){0,8}(\\?[A-Za-z0-9._~=&-]{0,80})?$"},
};

const char *grammar_format(const char *name)
{
    int i = NAMED_ROW(formats, name);
    return i < 0 ? NULL : formats[i].pattern;
}
