/* Formats of Python: the operator % of strings, and their method format with its format specifications. */
#include "jinja/jinja.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Shared by % and format specifications. */
struct spec {
    struct jinja_string fill; /* a character */
    char align, sign, type;   /* 0: not given */
    bool zeros, alternative, commas;
    int width, precision; /* precision -1: not given */
};

enum { WIDEST = 4096, SHARPEST = 60 };

static int number_at(struct jinja_run *r, const struct jinja_string *s, size_t *i, int most)
{
    int n = 0;
    for (; *i < s->n && isdigit((unsigned char)s->at[*i]); ++*i) {
        n = n * 10 + s->at[*i] - '0';
        if (n > most)
            jinja_fail(r, "a width or precision is more than %d", most);
    }
    return n;
}

static void put_padded(struct jinja_builder *b, const struct jinja_string *text, const struct spec *s, char otherwise)
{
    int64_t room = s->width - (int64_t)jinja_length(text);
    char align = s->align ? s->align : otherwise;
    int64_t left = room <= 0 || align == '<' ? 0 : align == '^' ? room / 2 : room;
    jinja_put_times(b, &s->fill, left);
    jinja_put(b, text);
    jinja_put_times(b, &s->fill, room - left);
}

static void put_text(struct jinja_builder *b, const struct jinja_string *text, const struct spec *s, char align)
{
    struct jinja_string cut = jinja_piece(text, 0, s->precision < 0 ? text->n : jinja_offset(text, s->precision));
    put_padded(b, &cut, s, align);
}

/* Digits with sign, prefix and zeros, then padded. */
static void put_number(struct jinja_builder *b, bool negative, const char *prefix, const char *digits, const struct spec *s)
{
    struct jinja_builder out = {.run = b->run};
    size_t whole = strspn(digits, "0123456789abcdefABCDEF");
    char sign = negative ? '-' : s->sign == '+' || s->sign == ' ' ? s->sign : 0;
    if (sign)
        jinja_put_char(&out, sign, false);
    jinja_put_text(&out, prefix);
    bool zeros = s->zeros || s->align == '=';
    struct jinja_string zero = jinja_literal("0");
    if (zeros)
        jinja_put_times(&out, s->align == '=' ? &s->fill : &zero, s->width - (int64_t)out.n - (int64_t)strlen(digits));
    for (size_t i = 0; digits[i]; i++) {
        if (s->commas && i && i < whole && (whole - i) % 3 == 0)
            jinja_put_char(&out, ',', false);
        jinja_put_char(&out, digits[i], false);
    }
    put_padded(b, jinja_built(&out).string, s, '>');
}

static void put_integer(struct jinja_builder *b, int64_t i, const struct spec *s)
{
    char digits[80];
    uint64_t size = i < 0 ? 0 - (uint64_t)i : (uint64_t)i;
    const char *prefix = !s->alternative ? "" : s->type == 'x' ? "0x" : s->type == 'X' ? "0X" : s->type == 'o' ? "0o" : "";
    if (s->type == 'x')
        snprintf(digits, sizeof digits, "%" PRIx64, size);
    else if (s->type == 'X')
        snprintf(digits, sizeof digits, "%" PRIX64, size);
    else if (s->type == 'o')
        snprintf(digits, sizeof digits, "%" PRIo64, size);
    else
        snprintf(digits, sizeof digits, "%" PRIu64, size);
    put_number(b, i < 0, prefix, digits, s);
}

static void put_float(struct jinja_builder *b, double x, const struct spec *s)
{
    char digits[512], form[] = "%.*f";
    int precision = s->precision < 0 ? 6 : s->precision;
    if (!isfinite(x))
        jinja_fail(b->run, "a number that is not finite can't be formatted");
    form[3] = s->type == '%' ? 'f' : s->type;
    snprintf(digits, sizeof digits, form, precision, fabs(x) * (s->type == '%' ? 100 : 1));
    if (s->type == '%')
        snprintf(digits + strlen(digits), sizeof digits - strlen(digits), "%%");
    put_number(b, signbit(x) != 0, "", digits, s);
}

/* ---- % ----------------------------------------------------------------------------------------------------------------- */

struct percent {
    struct jinja_run *run;
    struct jinja_builder *b;
    const struct jinja_string *format;
    size_t i;
    struct jinja_value arguments;
    int taken;
    bool named;
};

static struct jinja_value next_argument(struct percent *p)
{
    bool many = p->arguments.type == JINJA_TUPLE;
    if (p->taken >= (many ? p->arguments.list->items.n : 1))
        jinja_fail(p->run, "the format asks for more than %d arguments", p->taken);
    return many ? p->arguments.list->items.at[p->taken++] : (p->taken++, p->arguments);
}

/* "(name)" after the sign. */
static struct jinja_value named_argument(struct percent *p)
{
    size_t from = ++p->i;
    while (p->i < p->format->n && p->format->at[p->i] != ')')
        p->i++;
    struct jinja_string name = jinja_piece(p->format, from, p->i++);
    const struct jinja_value *found = p->arguments.type == JINJA_DICT ? jinja_get_named(p->run, p->arguments.dict, &name) : NULL;
    if (!found)
        jinja_fail(p->run, "the format asks for '%.*s', which is not given", (int)(name.n < 100 ? name.n : 100), name.at);
    p->named = true;
    return *found;
}

static struct spec percent_spec(struct percent *p)
{
    struct spec s = {.fill = jinja_literal(" "), .precision = -1};
    for (char c = 0; p->i < p->format->n && (c = p->format->at[p->i]) && strchr("-+ 0#", c); p->i++) {
        s.align = c == '-' ? '<' : s.align;
        s.sign = c == '+' || (c == ' ' && s.sign != '+') ? c : s.sign;
        s.zeros = s.zeros || c == '0';
        s.alternative = s.alternative || c == '#';
    }
    s.zeros = s.zeros && s.align != '<';
    s.width = number_at(p->run, p->format, &p->i, WIDEST);
    if (p->i < p->format->n && p->format->at[p->i] == '.') {
        p->i++;
        s.precision = number_at(p->run, p->format, &p->i, SHARPEST);
    }
    s.type = p->i < p->format->n ? p->format->at[p->i++] : 0;
    return s;
}

static void percent_number(struct percent *p, struct jinja_value v, struct spec *s)
{
    if (v.type == JINJA_UNDEFINED)
        jinja_fail_undefined(p->run, v);
    if (!jinja_is_number(v))
        jinja_fail(p->run, "the format '%%%c' is given a %s, expected a number", s->type, jinja_type_name(v));
    if (strchr("feEgG", s->type)) {
        if (s->alternative)
            jinja_fail(p->run, "the format '%%#%c' is not supported", s->type);
        put_float(p->b, jinja_number(v), s);
        return;
    }
    if (s->precision >= 0 || (v.type == JINJA_FLOAT && (!strchr("di", s->type) || !(fabs(v.number) < 0x1p63))))
        jinja_fail(p->run, "the format '%%%c' of a %s, or with a precision, is not supported", s->type, jinja_type_name(v));
    put_integer(p->b, v.type == JINJA_FLOAT ? (int64_t)v.number : v.type == JINJA_BOOL ? v.truth : v.integer, s);
}

static void percent_one(struct percent *p)
{
    const struct jinja_string *f = p->format;
    bool has_name = p->i < f->n && f->at[p->i] == '(';
    struct jinja_value v = has_name ? named_argument(p) : JINJA_VALUE_NONE;
    struct spec s = percent_spec(p);
    if (s.type == '%') {
        jinja_put_char(p->b, '%', f->mark && f->mark[p->i - 1]);
        return;
    }
    if (s.type == 0 || !strchr("srdixXofeEgG", s.type))
        jinja_fail(p->run, s.type ? "the format '%%%c' is not supported" : "the format ends behind '%%'", s.type);
    if (!has_name)
        v = next_argument(p);
    if (s.type != 's' && s.type != 'r') {
        percent_number(p, v, &s);
        return;
    }
    struct jinja_builder text = {.run = p->run};
    if (s.type == 's')
        jinja_write(&text, v);
    else
        jinja_write_repr(&text, v);
    put_text(p->b, jinja_built(&text).string, &s, '>');
}

struct jinja_value jinja_percent(struct jinja_run *r, const struct jinja_string *format, struct jinja_value arguments)
{
    struct jinja_builder b = {.run = r};
    struct percent p = {.run = r, .b = &b, .format = format, .arguments = arguments};
    while (p.i < format->n) {
        size_t from = p.i;
        while (p.i < format->n && format->at[p.i] != '%')
            p.i++;
        struct jinja_string between = jinja_piece(format, from, p.i);
        jinja_put(&b, &between);
        if (p.i++ < format->n)
            percent_one(&p);
    }
    bool rest = arguments.type == JINJA_TUPLE ? p.taken < arguments.list->items.n
                                              : p.taken == 0 && arguments.type != JINJA_DICT && arguments.type != JINJA_LIST;
    if (rest && !p.named)
        jinja_fail(r, "not all arguments of the format are used");
    return jinja_built(&b);
}

/* ---- format ------------------------------------------------------------------------------------------------------------ */

/* "{name.attribute[item]!r:specification}": the part before '!' and ':'. */
struct field {
    struct jinja_string name, spec;
    char conversion;
};

static _Noreturn void refuse_spec(struct jinja_run *r, const struct jinja_string *text)
{
    jinja_fail(r, "the format '%.*s' is not supported", (int)(text->n < 100 ? text->n : 100), text->at);
}

static struct spec read_spec(struct jinja_run *r, const struct jinja_string *text)
{
    struct spec s = {.fill = jinja_literal(" "), .precision = -1};
    size_t i = 0, second = 0;
    if (text->n)
        jinja_next(text, &second);
    if (second && second < text->n && strchr("<>^=", text->at[second])) {
        s.fill = jinja_piece(text, 0, i = second);
        s.align = text->at[i++];
    } else if (text->n && text->at[0] && strchr("<>^=", text->at[0])) {
        s.align = text->at[i++];
    }
    if (i < text->n && text->at[i] && strchr("+- ", text->at[i]))
        s.sign = text->at[i++];
    if (i < text->n && text->at[i] == '#')
        s.alternative = ++i > 0;
    if (i < text->n && text->at[i] == '0' && !s.align)
        s.zeros = ++i > 0;
    s.width = number_at(r, text, &i, WIDEST);
    if (i < text->n && text->at[i] == ',')
        s.commas = ++i > 0;
    if (i < text->n && text->at[i] == '.') {
        i++;
        s.precision = number_at(r, text, &i, SHARPEST);
    }
    s.type = i < text->n ? text->at[i++] : 0;
    if (i < text->n || (s.zeros && s.commas) || (s.type && !strchr("sdxXofeEgG%", s.type)))
        refuse_spec(r, text);
    return s;
}

static void put_field(struct jinja_builder *b, struct jinja_value v, const struct jinja_string *text)
{
    if (text->n == 0) {
        jinja_write(b, v);
        return;
    }
    struct spec s = read_spec(b->run, text);
    bool is_float = v.type == JINJA_FLOAT || (v.type == JINJA_INT && s.type && strchr("feEgG%", s.type));
    if (v.type == JINJA_STRING && (!s.type || s.type == 's') && !s.sign && !s.zeros && !s.commas && !s.alternative && s.align != '=')
        put_text(b, v.string, &s, '<');
    else if (is_float && s.type && strchr("feEgG%", s.type) && !s.alternative)
        put_float(b, jinja_number(v), &s);
    else if (v.type == JINJA_INT && s.type != 's' && !is_float && s.precision < 0)
        put_integer(b, v.integer, &s);
    else
        jinja_fail(b->run, "the format '%.*s' of a %s is not supported", (int)(text->n < 100 ? text->n : 100), text->at,
                   jinja_type_name(v));
}

/* ".attribute" and "[item]" after a name. */
static struct jinja_value follow(struct jinja_run *r, struct jinja_value v, const struct jinja_string *name, size_t i)
{
    while (i < name->n) {
        bool bracket = name->at[i++] == '[';
        size_t from = i;
        while (i < name->n && (bracket ? name->at[i] != ']' : name->at[i] != '.' && name->at[i] != '['))
            i++;
        struct jinja_string key = jinja_piece(name, from, i);
        if (key.n == 0)
            jinja_fail(r, "a field of the format has an empty name");
        size_t digits = 0;
        while (digits < key.n && key.n < 10 && isdigit((unsigned char)key.at[digits]))
            digits++;
        if (bracket)
            v = jinja_item(r, v,
                           digits == key.n ? jinja_int(strtol(arena_strndup(r->arena, key.at, key.n), NULL, 10)) : jinja_string(r, key));
        else
            v = jinja_attribute(r, v, &key);
        i += bracket;
    }
    return v;
}

static struct jinja_value field_value(struct jinja_run *r, const struct jinja_call *c, const struct field *f, int *next)
{
    size_t n = 0;
    while (n < f->name.n && f->name.at[n] != '.' && f->name.at[n] != '[')
        n++;
    struct jinja_string name = jinja_piece(&f->name, 0, n);
    size_t digits = 0;
    int place = 0;
    while (digits < n && n < 6 && isdigit((unsigned char)name.at[digits]))
        place = place * 10 + name.at[digits++] - '0';
    if (n == 0 && *next < 0)
        jinja_fail(r, "the format mixes fields with and without numbers");
    if (n == 0)
        place = (*next)++;
    else if (digits == n && *next > 0)
        jinja_fail(r, "the format mixes fields with and without numbers");
    else if (digits == n)
        *next = -1;
    if (digits == n && place >= c->more)
        jinja_fail(r, "the format asks for argument %d of %d", place + 1, c->more);
    if (digits == n)
        return follow(r, c->rest[place], &f->name, n);
    const struct jinja_value *found = jinja_get_named(r, c->named, &name);
    if (!found)
        jinja_fail(r, "the format asks for '%.*s', which is not given", (int)(name.n < 100 ? name.n : 100), name.at);
    return follow(r, *found, &f->name, n);
}

static struct field read_field(struct jinja_run *r, const struct jinja_string *s, size_t *i)
{
    size_t from = *i, end = from, bang;
    while (end < s->n && s->at[end] != '}' && s->at[end] != '{')
        end++;
    if (end == s->n || s->at[end] == '{')
        jinja_fail(r, end == s->n ? "a field of the format has no end" : "fields within fields of a format are not supported");
    *i = end + 1;
    for (bang = from; bang < end && s->at[bang] != '!' && s->at[bang] != ':'; bang++)
        continue;
    struct field f = {.name = jinja_piece(s, from, bang)};
    if (bang < end && s->at[bang] == '!') {
        f.conversion = bang + 1 < end ? s->at[bang + 1] : 0;
        bang += 2;
        if ((f.conversion != 'r' && f.conversion != 's') || (bang < end && s->at[bang] != ':'))
            jinja_fail(r, "a conversion of the format is not supported: expected '!r' or '!s'");
    }
    if (bang < end)
        f.spec = jinja_piece(s, bang + 1, end);
    return f;
}

struct jinja_value jinja_format(struct jinja_run *r, const struct jinja_call *c)
{
    struct jinja_builder b = {.run = r};
    const struct jinja_string *s = c->self.string;
    int next = 0;
    for (size_t i = 0; i < s->n;) {
        char brace = s->at[i] == '{' || s->at[i] == '}' ? s->at[i] : 0;
        struct jinja_string one = jinja_piece(s, i, i + 1);
        i++;
        if (brace && i < s->n && s->at[i] == brace)
            i++;
        else if (brace == '}')
            jinja_fail(r, "the format has a '}' that closes no field");
        else if (brace) {
            struct field f = read_field(r, s, &i);
            struct jinja_value v = field_value(r, c, &f, &next);
            struct jinja_builder text = {.run = r};
            if (f.conversion == 'r')
                jinja_write_repr(&text, v);
            else if (f.conversion == 's')
                jinja_write(&text, v);
            put_field(&b, f.conversion ? jinja_built(&text) : v, &f.spec);
            continue;
        }
        jinja_put(&b, &one);
    }
    return jinja_built(&b);
}
