/* The table of filters, and the filters of texts and numbers. sequence.c has the filters of lists and dicts. */
#include "jinja/jinja.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FILTER(name) static struct jinja_value name(struct jinja_run *r, const struct jinja_call *c)

static const struct jinja_string *text(struct jinja_run *r, const struct jinja_call *c)
{
    return jinja_text_of(r, c->self);
}

/* ---- text -------------------------------------------------------------------------------------------------------------- */

FILTER(filter_upper)
{
    struct jinja_builder b = {.run = r};
    jinja_put_case(&b, text(r, c), JINJA_UPPER);
    return jinja_built(&b);
}

FILTER(filter_lower)
{
    struct jinja_builder b = {.run = r};
    jinja_put_case(&b, text(r, c), JINJA_LOWER);
    return jinja_built(&b);
}

FILTER(filter_capitalize)
{
    struct jinja_builder b = {.run = r};
    jinja_put_capitalized(&b, text(r, c));
    return jinja_built(&b);
}

static bool parts_words(int32_t c)
{
    return jinja_char_is_space(c) || (c && c < 0x80 && strchr("-({[<", c));
}

/* Word boundaries differ from str.title's. */
FILTER(filter_title)
{
    const struct jinja_string *s = text(r, c);
    struct jinja_builder b = {.run = r};
    for (size_t i = 0; i < s->n;) {
        size_t from = i, second, end;
        bool parts = parts_words(jinja_next(s, &i));
        for (second = end = i; i < s->n && parts_words(jinja_next(s, &i)) == parts; end = i)
            continue;
        struct jinja_string head = jinja_piece(s, from, second), tail = jinja_piece(s, second, end);
        jinja_put_case(&b, &head, JINJA_UPPER);
        jinja_put_case(&b, &tail, JINJA_LOWER);
        i = end;
    }
    return jinja_built(&b);
}

FILTER(filter_trim)
{
    const struct jinja_string *s = text(r, c), *chars = jinja_given(c, 0) ? jinja_arg_string(r, c, 0) : NULL;
    jinja_step(r, s->n * (chars ? chars->n : 1));
    return jinja_string(r, jinja_strip(s, chars, true, true));
}

FILTER(filter_replace)
{
    int64_t count = jinja_given(c, 2) ? jinja_arg_int(r, c, 2, -1) : -1;
    return jinja_replace(r, text(r, c), jinja_text_of(r, c->arg[0]), jinja_text_of(r, c->arg[1]), count);
}

/* indent(width, first, blank) */
FILTER(filter_indent)
{
    struct jinja_builder b = {.run = r}, indent = {.run = r}, all = {.run = r};
    struct jinja_string blank = jinja_literal(" ");
    if (c->self.type == JINJA_UNDEFINED)
        jinja_fail_undefined(r, c->self);
    if (c->self.type != JINJA_STRING)
        jinja_fail(r, "the filter 'indent' is of a %s, expected a str", jinja_type_name(c->self));
    if (c->arg[0].type == JINJA_STRING)
        jinja_put(&indent, c->arg[0].string);
    else
        jinja_put_times(&indent, &blank, jinja_arg_int(r, c, 0, 4));
    jinja_put(&all, c->self.string);
    jinja_put_text(&all, "\n");
    struct jinja_string by = *jinja_built(&indent).string;
    struct jinja_value lines = jinja_split_lines(r, jinja_built(&all).string, false);
    for (int i = 0; i < lines.list->items.n; i++) {
        const struct jinja_string *line = lines.list->items.at[i].string;
        bool is_first = i == 0, blanks = jinja_arg_truth(c, 2, false);
        jinja_put_text(&b, is_first ? "" : "\n");
        if (is_first ? jinja_arg_truth(c, 1, false) : blanks || line->n > 0)
            jinja_put(&b, &by);
        jinja_put(&b, line);
    }
    return jinja_built(&b);
}

FILTER(filter_center)
{
    struct jinja_builder b = {.run = r};
    jinja_put_centered(&b, text(r, c), jinja_arg_int(r, c, 0, 80), jinja_literal(" "));
    return jinja_built(&b);
}

FILTER(filter_string)
{
    return (struct jinja_value){.type = JINJA_STRING, .string = text(r, c)};
}

FILTER(filter_safe)
{
    struct jinja_string s = *text(r, c);
    s.markup = true;
    return jinja_string(r, s);
}

FILTER(filter_format)
{
    struct jinja_value arguments = jinja_list(r, JINJA_TUPLE);
    for (int i = 0; i < c->more; i++)
        jinja_append(r, arguments, c->rest[i]);
    if (c->named->pairs.n && c->more)
        jinja_fail(r, "the filter 'format' takes arguments with or without names, not both");
    if (c->named->pairs.n)
        arguments = (struct jinja_value){.type = JINJA_DICT, .dict = c->named};
    return jinja_percent(r, text(r, c), arguments);
}

/* ---- numbers ----------------------------------------------------------------------------------------------------------- */

/* The text without white space around it and without the underscores between its digits; NULL: not a number. */
static const char *plain(struct jinja_run *r, const struct jinja_string *s)
{
    struct jinja_string cut = jinja_strip(s, NULL, true, true);
    char *to = jinja_take(r, cut.n + 1, 1);
    size_t n = 0;
    for (size_t i = 0; i < cut.n; i++) {
        if ((unsigned char)cut.at[i] >= 0x80)
            jinja_fail(r, "a number in characters that are not ASCII is not supported");
        bool between = i > 0 && i + 1 < cut.n && isdigit((unsigned char)cut.at[i - 1]) && isdigit((unsigned char)cut.at[i + 1]);
        if (cut.at[i] == '_' && between)
            continue;
        if (cut.at[i] == 0 || cut.at[i] == '_')
            return NULL;
        to[n++] = cut.at[i];
    }
    return n ? to : NULL;
}

static bool float_from(struct jinja_run *r, const struct jinja_string *s, double *out)
{
    const char *at = plain(r, s);
    char *end;
    if (!at || strpbrk(at, "xXpP()")) /* strtod accepts more than Python's float */
        return false;
    *out = strtod(at, &end);
    return *end == 0;
}

static bool int_from(struct jinja_run *r, const struct jinja_string *s, int64_t *out)
{
    const char *at = plain(r, s);
    char *end;
    if (!at || at[strspn(at, "+-0123456789")])
        return false;
    errno = 0;
    long long i = strtoll(at, &end, 10);
    if (*end)
        return false;
    if (errno)
        jinja_fail(r, "the number %s is beyond integers of 64 bits", at);
    *out = i;
    return true;
}

static bool truncated(struct jinja_run *r, double x, int64_t *out)
{
    if (!isfinite(x))
        return false;
    if (!(fabs(x) < 0x1p63))
        jinja_fail(r, "a number is beyond integers of 64 bits");
    *out = (int64_t)x;
    return true;
}

FILTER(filter_int)
{
    struct jinja_value otherwise = c->arg[0].type == JINJA_ABSENT ? jinja_int(0) : c->arg[0];
    int64_t i = 0;
    double x;
    if (c->self.type == JINJA_UNDEFINED)
        jinja_fail_undefined(r, c->self);
    if (jinja_arg_int(r, c, 1, 10) != 10)
        jinja_fail(r, "the filter 'int' with a base other than 10 is not supported");
    if (c->self.type == JINJA_FLOAT && isinf(c->self.number))
        jinja_fail(r, "infinity is no integer");
    if (c->self.type == JINJA_STRING)
        return int_from(r, c->self.string, &i) || (float_from(r, c->self.string, &x) && truncated(r, x, &i)) ? jinja_int(i) : otherwise;
    if (!jinja_is_number(c->self) || !truncated(r, c->self.type == JINJA_FLOAT ? c->self.number : 0, &i))
        return otherwise;
    return jinja_int(c->self.type == JINJA_FLOAT ? i : c->self.type == JINJA_BOOL ? c->self.truth : c->self.integer);
}

FILTER(filter_float)
{
    double x = 0;
    if (c->self.type == JINJA_UNDEFINED)
        jinja_fail_undefined(r, c->self);
    if (jinja_is_number(c->self))
        return jinja_float(jinja_number(c->self));
    if (c->self.type == JINJA_STRING && float_from(r, c->self.string, &x))
        return jinja_float(x);
    return c->arg[0].type == JINJA_ABSENT ? jinja_float(0) : c->arg[0];
}

FILTER(filter_abs)
{
    bool negative = jinja_is_number(c->self) && (c->self.type == JINJA_FLOAT ? signbit(c->self.number) : jinja_number(c->self) < 0);
    return jinja_negative(r, c->self, negative);
}

/* round(precision, method) */
FILTER(filter_round)
{
    int64_t precision = jinja_arg_int(r, c, 0, 0);
    const struct jinja_string common = jinja_literal("common");
    const struct jinja_string *method = c->arg[1].type == JINJA_ABSENT ? &common : jinja_arg_string(r, c, 1);
    bool is_common = jinja_is(method, "common"), up = jinja_is(method, "ceil");
    if (!is_common && !up && !jinja_is(method, "floor"))
        jinja_fail(r, "the method of 'round' is '%.*s', expected 'common', 'ceil' or 'floor'", (int)(method->n < 40 ? method->n : 40),
                   method->at);
    if (!jinja_is_number(c->self))
        jinja_fail(r, "the filter 'round' is of a %s, expected a number", jinja_type_name(c->self));
    if (precision < 0 || precision > 60)
        jinja_fail(r, "the filter 'round' with a precision of %lld is not supported", (long long)precision);
    double x = jinja_number(c->self);
    if (!is_common) {
        double power = pow(10, (double)precision), scaled = x * power;
        if (!(fabs(scaled) < 0x1p53))
            jinja_fail(r, "the filter 'round' of so large a number is not supported");
        return jinja_float((up ? ceil(scaled) : floor(scaled)) / power);
    }
    if (c->self.type != JINJA_FLOAT || !isfinite(x))
        return c->self.type == JINJA_FLOAT ? c->self : jinja_int(c->self.type == JINJA_BOOL ? c->self.truth : c->self.integer);
    char digits[512];
    snprintf(digits, sizeof digits, "%.*f", (int)precision, x);
    return jinja_float(strtod(digits, NULL));
}

/* ---- others ------------------------------------------------------------------------------------------------------------ */

FILTER(filter_default)
{
    bool lacks = c->self.type == JINJA_UNDEFINED || (jinja_arg_truth(c, 1, false) && !jinja_truth(c->self));
    if (!lacks)
        return c->self;
    return c->arg[0].type == JINJA_ABSENT ? jinja_string_of(r, "") : c->arg[0];
}

FILTER(filter_length)
{
    int64_t n = jinja_size(c->self);
    if (n < 0)
        jinja_fail(r, "a %s has no length", jinja_type_name(c->self));
    jinja_step(r, c->self.type == JINJA_STRING ? c->self.string->n : 0);
    return jinja_int(n);
}

FILTER(filter_attr)
{
    struct jinja_value out;
    const struct jinja_string *name = jinja_arg_string(r, c, 0);
    if (jinja_own_attribute(r, c->self, name, &out))
        return out;
    return jinja_undefined(r, jinja_type_name(c->self), *name);
}

static const struct jinja_callable filters[] = {{"abs", "", 0, filter_abs, 0},
                                                {"attr", "name", 1, filter_attr, 0},
                                                {"capitalize", "", 0, filter_capitalize, 0},
                                                {"center", "width", 0, filter_center, 0},
                                                {"count", "", 0, filter_length, JINJA_OF_MARKUP},
                                                {"d", "default_value boolean", 0, filter_default, JINJA_OF_MARKUP},
                                                {"default", "default_value boolean", 0, filter_default, JINJA_OF_MARKUP},
                                                {"float", "default", 0, filter_float, 0},
                                                {"format", "*", 0, filter_format, 0},
                                                {"indent", "width first blank", 0, filter_indent, 0},
                                                {"int", "default base", 0, filter_int, 0},
                                                {"length", "", 0, filter_length, JINJA_OF_MARKUP},
                                                {"lower", "", 0, filter_lower, 0},
                                                {"replace", "old new count", 2, filter_replace, 0},
                                                {"round", "precision method", 0, filter_round, 0},
                                                {"safe", "", 0, filter_safe, JINJA_OF_MARKUP},
                                                {"string", "", 0, filter_string, JINJA_OF_MARKUP},
                                                {"title", "", 0, filter_title, 0},
                                                {"tojson", "ensure_ascii indent separators sort_keys", 0, jinja_tojson, JINJA_OF_MARKUP},
                                                {"trim", "chars", 0, filter_trim, 0},
                                                {"upper", "", 0, filter_upper, 0}};

const struct jinja_callable *jinja_row(const struct jinja_callable *rows, int n, const struct jinja_string *name)
{
    for (int i = 0; i < n; i++)
        if (jinja_is(name, rows[i].name))
            return &rows[i];
    return NULL;
}

const struct jinja_callable *jinja_filter(const struct jinja_string *name)
{
    const struct jinja_callable *row = jinja_row(filters, (int)(sizeof filters / sizeof *filters), name);
    return row ? row : jinja_row(jinja_sequence_filters, jinja_sequence_filter_count, name);
}
