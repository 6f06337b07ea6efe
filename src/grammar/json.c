/* json: the rules of JSON (RFC 8259). Numbers and blanks have limited length, so that a model ends. */
#include "grammar/grammar.h"

#include <stdlib.h>
#include <string.h>

enum { NONE = -1, BLANKS = 20, DIGITS = 16, EXPONENT = 2 };

struct grammar_json grammar_json_new(struct grammar_build *b)
{
    struct grammar_json j = {b, grammar_arena(b), NONE, NONE, NONE, NONE, {0}, {0}, {0}};
    for (int i = 0; i < JSON_LEVELS; i++)
        j.value[i] = j.object[i] = j.array[i] = NONE;
    j.value[JSON_LEVELS] = NONE;
    return j;
}

/* ---- steps ---- */

static void step_any(struct grammar_build *b, int from, const char *bytes, int to)
{
    struct grammar_bytes s = {{0}};
    for (; *bytes; bytes++)
        grammar_put_byte(&s, (unsigned char)*bytes);
    grammar_step(b, from, s, to);
}

static int any_of(struct grammar_build *b, int from, const char *bytes)
{
    int to = grammar_state(b);
    step_any(b, from, bytes, to);
    return to;
}

static int literal(struct grammar_build *b, int from, const char *text)
{
    return grammar_literal(b, from, text, strlen(text));
}

int grammar_json_part(struct grammar_json *j, int from, int rule)
{
    int to = grammar_state(j->build);
    grammar_call(j->build, from, rule, to);
    return to;
}

int grammar_json_sign(struct grammar_json *j, int from, const char *sign)
{
    return grammar_json_part(j, literal(j->build, from, sign), grammar_json_space(j));
}

/* `least` to `most` of these bytes. */
static int several_of(struct grammar_build *b, int from, const char *bytes, int least, int most)
{
    int end = grammar_state(b);
    for (int i = 0; i < most; i++) {
        if (i >= least)
            grammar_skip(b, from, end);
        from = any_of(b, from, bytes);
    }
    grammar_skip(b, from, end);
    return end;
}

int grammar_json_space(struct grammar_json *j)
{
    struct grammar_build *b = j->build;
    if (j->space != NONE)
        return j->space;
    j->space = grammar_rule(b, "blanks");
    int from = grammar_rule_start(b, j->space), to = grammar_rule_end(b, j->space);
    grammar_skip(b, from, to);
    step_any(b, from, " ", to);
    grammar_skip(b, several_of(b, literal(b, from, "\n"), " \t", 0, BLANKS), to);
    return j->space;
}

/* ---- strings ---- */

static const char hex[] = "0123456789abcdefABCDEF";

/* Characters written as themselves: all but quotes, backslashes and control characters. */
static struct grammar_chars plain_chars(struct arena *a)
{
    struct grammar_chars c = {0};
    grammar_chars_add(a, &c, ' ', '!');
    grammar_chars_add(a, &c, '#', '[');
    grammar_chars_add(a, &c, ']', GRAMMAR_LAST_CHAR);
    grammar_chars_sort(a, &c);
    return c;
}

/* \u of a character that is not a surrogate. */
static void put_code(struct grammar_build *b, int from, int to)
{
    int code = literal(b, from, "u"), low = any_of(b, code, "0123456789abcABCefEF"), high = any_of(b, code, "dD");
    low = any_of(b, low, hex);
    step_any(b, high, "01234567", low);
    grammar_skip(b, any_of(b, any_of(b, low, hex), hex), to);
}

int grammar_json_character(struct grammar_json *j)
{
    struct grammar_build *b = j->build;
    if (j->character != NONE)
        return j->character;
    j->character = grammar_rule(b, "a character of a string");
    int from = grammar_rule_start(b, j->character), to = grammar_rule_end(b, j->character);
    const struct grammar_chars plain = plain_chars(j->arena);
    grammar_chars_step(b, from, &plain, to);
    int escaped = literal(b, from, "\\");
    step_any(b, escaped, "\"\\/bfnrt", to);
    put_code(b, escaped, to);
    return j->character;
}

int grammar_json_string(struct grammar_json *j)
{
    struct grammar_build *b = j->build;
    if (j->string != NONE)
        return j->string;
    j->string = grammar_rule(b, "a string");
    int from = literal(b, grammar_rule_start(b, j->string), "\"");
    from = grammar_repeat(b, from, grammar_json_character(j), 0, -1);
    grammar_skip(b, literal(b, from, "\""), grammar_rule_end(b, j->string));
    return j->string;
}

void grammar_json_chars(struct grammar_json *j, int from, struct grammar_chars c, int to)
{
    static const char escape[] = "\"\\\b\f\n\r\t", letter[] = "\"\\bfnrt";
    const struct grammar_chars plain = plain_chars(j->arena), both = grammar_chars_both(j->arena, &c, &plain);
    grammar_chars_step(j->build, from, &both, to);
    for (int i = 0; i < c.range.n; i++)
        for (uint32_t u = c.range.at[i].from; u <= c.range.at[i].to && u <= '\\'; u++) {
            const char *known = u ? strchr(escape, (int)u) : NULL;
            if (known)
                grammar_skip(j->build, literal(j->build, from, (const char[]){'\\', letter[known - escape], 0}), to);
            else if (u < ' ')
                grammar_skip(j->build, literal(j->build, from, arena_printf(j->arena, "\\u%04x", u)), to);
        }
}

/* ---- numbers ---- */

int grammar_json_number(struct grammar_json *j)
{
    struct grammar_build *b = j->build;
    if (j->number != NONE)
        return j->number;
    j->number = grammar_rule(b, "a number");
    int from = grammar_rule_start(b, j->number), to = grammar_rule_end(b, j->number), whole = grammar_state(b), part = grammar_state(b);
    static const char digits[] = "0123456789";
    int first = any_of(b, from, "-");
    grammar_skip(b, from, first);
    step_any(b, first, "0", whole);
    grammar_skip(b, several_of(b, any_of(b, first, digits + 1), digits, 0, DIGITS - 1), whole);
    grammar_skip(b, whole, part);
    grammar_skip(b, several_of(b, literal(b, whole, "."), digits, 1, DIGITS), part);
    grammar_skip(b, part, to);
    int exponent = any_of(b, part, "eE"), sign = any_of(b, exponent, "+-");
    grammar_skip(b, exponent, sign);
    grammar_skip(b, several_of(b, sign, digits, 1, EXPONENT), to);
    return j->number;
}

/* ---- lists and objects ---- */

int grammar_json_object(struct grammar_json *j, int level)
{
    struct grammar_build *b = j->build;
    if (j->object[level] != NONE)
        return j->object[level];
    int rule = j->object[level] = grammar_rule(b, "an object"), to = grammar_rule_end(b, rule);
    int first = grammar_json_sign(j, grammar_rule_start(b, rule), "{"), key = grammar_json_part(j, first, grammar_json_string(j));
    int behind = grammar_json_part(j, grammar_json_sign(j, key, ":"), grammar_json_value(j, level + 1));
    grammar_call(b, grammar_json_sign(j, behind, ","), grammar_json_string(j), key);
    grammar_skip(b, literal(b, first, "}"), to);
    grammar_skip(b, literal(b, grammar_json_part(j, behind, grammar_json_space(j)), "}"), to);
    return rule;
}

int grammar_json_array(struct grammar_json *j, int level)
{
    struct grammar_build *b = j->build;
    if (j->array[level] != NONE)
        return j->array[level];
    int rule = j->array[level] = grammar_rule(b, "a list"), to = grammar_rule_end(b, rule), value = grammar_json_value(j, level + 1);
    int first = grammar_json_sign(j, grammar_rule_start(b, rule), "["), behind = grammar_json_part(j, first, value);
    grammar_call(b, grammar_json_sign(j, behind, ","), value, behind);
    grammar_skip(b, literal(b, first, "]"), to);
    grammar_skip(b, literal(b, grammar_json_part(j, behind, grammar_json_space(j)), "]"), to);
    return rule;
}

int grammar_json_value(struct grammar_json *j, int level)
{
    struct grammar_build *b = j->build;
    if (j->value[level] != NONE)
        return j->value[level];
    int rule = j->value[level] = grammar_rule(b, "a value"), from = grammar_rule_start(b, rule), to = grammar_rule_end(b, rule);
    static const char *const words[] = {"true", "false", "null"};
    for (int i = 0; i < 3; i++)
        grammar_skip(b, literal(b, from, words[i]), to);
    grammar_call(b, from, grammar_json_string(j), to);
    grammar_call(b, from, grammar_json_number(j), to);
    if (level < JSON_LEVELS) {
        grammar_call(b, from, grammar_json_object(j, level), to);
        grammar_call(b, from, grammar_json_array(j, level), to);
    }
    return rule;
}

/* ---- values as text ---- */

static const char *dump(struct arena *a, const json_t *v, size_t flags)
{
    size_t n = json_dumpb(v, NULL, 0, flags | JSON_ENCODE_ANY | JSON_COMPACT);
    char *text = arena_alloc(a, n + 1);
    (void)json_dumpb(v, text, n, flags | JSON_ENCODE_ANY | JSON_COMPACT);
    return text;
}

/* A number with as many digits as it needs. */
const char *grammar_json_text(struct arena *a, const json_t *v)
{
    const char *text = "";
    for (size_t digits = 15; json_is_real(v) && digits < 17; digits++) {
        text = dump(a, v, JSON_REAL_PRECISION(digits));
        double same = strtod(text, NULL), own = json_real_value(v);
        if (!(same < own || same > own))
            return text;
    }
    return dump(a, v, 0);
}
