/* Values as text: str and repr of Python, and json.dumps. */
#include "jinja/jinja.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbers ----------------------------------------------------------------------------------------------------------- */

/* The shortest digits that read back, in Python's repr form. */
void jinja_write_float(struct jinja_builder *b, double x)
{
    char text[40], out[64] = "";
    if (!isfinite(x)) {
        jinja_put_text(b, isnan(x) ? "nan" : x < 0 ? "-inf" : "inf");
        return;
    }
    int precision = 0;
    do
        snprintf(text, sizeof text, "%.*e", precision, x);
    while (strtod(text, NULL) != x && ++precision < 17);
    int power = atoi(strchr(text, 'e') + 1);
    if (power < -4 || power >= 16) {
        *strchr(text, 'e') = 0;
        snprintf(out, sizeof out, "%se%c%02d", text, power < 0 ? '-' : '+', abs(power));
    } else {
        snprintf(out, sizeof out, "%.*f", precision > power ? precision - power : 1, x);
    }
    jinja_put_text(b, out);
}

static void write_int(struct jinja_builder *b, int64_t i)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, i);
    jinja_put_text(b, text);
}

/* ---- repr -------------------------------------------------------------------------------------------------------------- */

static void escape(struct jinja_builder *b, bool marked, const char *format, unsigned c)
{
    char text[16];
    snprintf(text, sizeof text, format, c);
    jinja_put_bytes(b, text, strlen(text), marked);
}

static bool has_char(const struct jinja_string *s, char c)
{
    return s->n && memchr(s->at, c, s->n);
}

static void write_quoted(struct jinja_builder *b, const struct jinja_string *s)
{
    char quote = has_char(s, '\'') && !has_char(s, '"') ? '"' : '\'';
    jinja_step(b->run, s->n * 4);
    jinja_put_char(b, quote, false);
    for (size_t i = 0; i < s->n;) {
        bool marked = s->mark && s->mark[i];
        int32_t c = jinja_next(s, &i);
        if (c == quote || c == '\\')
            escape(b, marked, "\\%c", (unsigned)c);
        else if (c == '\n' || c == '\r' || c == '\t')
            escape(b, marked, "\\%c", c == '\n' ? 'n' : c == '\r' ? 'r' : 't');
        else if (jinja_char_is_printable(c))
            jinja_put_char(b, c, marked);
        else
            escape(b, marked, c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x", (unsigned)c);
    }
    jinja_put_char(b, quote, false);
}

static void write_items(struct jinja_builder *b, const struct jinja_list *list, const char *open, const char *close)
{
    jinja_put_text(b, open);
    for (int i = 0; i < list->items.n; i++) {
        jinja_put_text(b, i ? ", " : "");
        jinja_write_repr(b, list->items.at[i]);
    }
    jinja_put_text(b, close);
}

static void write_dict(struct jinja_builder *b, const struct jinja_dict *dict)
{
    jinja_put_text(b, "{");
    for (int i = 0; i < dict->pairs.n; i++) {
        jinja_put_text(b, i ? ", " : "");
        jinja_write_repr(b, dict->pairs.at[i].key);
        jinja_put_text(b, ": ");
        jinja_write_repr(b, dict->pairs.at[i].value);
    }
    jinja_put_text(b, "}");
}

static void write_view(struct jinja_builder *b, const struct jinja_list *list)
{
    jinja_put_text(b, list->name);
    write_items(b, list, "([", "])");
}

static void write_range(struct jinja_builder *b, const struct jinja_list *range)
{
    jinja_put_text(b, "range(");
    write_int(b, range->first);
    jinja_put_text(b, ", ");
    write_int(b, range->last);
    if (range->step != 1) {
        jinja_put_text(b, ", ");
        write_int(b, range->step);
    }
    jinja_put_text(b, ")");
}

static void write_repr(struct jinja_builder *b, struct jinja_value v)
{
    switch (v.type) {
    case JINJA_UNDEFINED: jinja_put_text(b, "Undefined"); break;
    case JINJA_NONE: jinja_put_text(b, "None"); break;
    case JINJA_BOOL: jinja_put_text(b, v.truth ? "True" : "False"); break;
    case JINJA_INT: write_int(b, v.integer); break;
    case JINJA_FLOAT: jinja_write_float(b, v.number); break;
    case JINJA_STRING: write_quoted(b, v.string); break;
    case JINJA_LIST: write_items(b, v.list, "[", "]"); break;
    case JINJA_TUPLE: write_items(b, v.list, "(", v.list->items.n == 1 ? ",)" : ")"); break;
    case JINJA_DICT: write_dict(b, v.dict); break;
    case JINJA_VIEW: write_view(b, v.list); break;
    case JINJA_RANGE_OF: write_range(b, v.list); break;
    default: jinja_fail(b->run, "a %s can't be printed", jinja_type_name(v));
    }
}

void jinja_write_repr(struct jinja_builder *b, struct jinja_value v)
{
    jinja_step(b->run, 0);
    jinja_deeper(b->run);
    write_repr(b, v);
    b->run->depth--;
}

void jinja_write(struct jinja_builder *b, struct jinja_value v)
{
    if (v.type == JINJA_STRING)
        jinja_put(b, v.string);
    else if (v.type != JINJA_UNDEFINED)
        jinja_write_repr(b, v);
}

const struct jinja_string *jinja_text_of(struct jinja_run *r, struct jinja_value v)
{
    if (v.type == JINJA_STRING)
        return v.string;
    struct jinja_builder b = {.run = r};
    jinja_write(&b, v);
    return jinja_built(&b).string;
}

/* ---- JSON -------------------------------------------------------------------------------------------------------------- */

struct json {
    struct jinja_builder *b;
    bool ascii, sorted, indents;
    struct jinja_string indent, item, key; /* per level, between items, after keys */
    int level;
};

static void dump(struct json *, struct jinja_value);

static void dump_string(struct json *j, const struct jinja_string *s)
{
    static const char from[] = "\"\\\n\r\t\f\b", to[] = "\"\\nrtfb";
    jinja_step(j->b->run, s->n * 4);
    jinja_put_char(j->b, '"', false);
    for (size_t i = 0; i < s->n;) {
        bool marked = s->mark && s->mark[i];
        int32_t c = jinja_next(s, &i);
        const char *known = c && c < 0x80 ? strchr(from, c) : NULL;
        if (known)
            escape(j->b, marked, "\\%c", (unsigned)to[known - from]);
        else if (c < 0x20 || (j->ascii && c >= 0x7f && c < 0x10000))
            escape(j->b, marked, "\\u%04x", (unsigned)c);
        else if (j->ascii && c >= 0x10000) {
            escape(j->b, marked, "\\u%04x", (unsigned)(0xd800 + ((c - 0x10000) >> 10)));
            escape(j->b, marked, "\\u%04x", (unsigned)(0xdc00 + ((c - 0x10000) & 0x3ff)));
        } else {
            jinja_put_char(j->b, c, marked);
        }
    }
    jinja_put_char(j->b, '"', false);
}

static void dump_float(struct json *j, double x)
{
    if (isfinite(x))
        jinja_write_float(j->b, x);
    else
        jinja_put_text(j->b, isnan(x) ? "NaN" : x < 0 ? "-Infinity" : "Infinity");
}

static void new_line(struct json *j)
{
    if (!j->indents)
        return;
    jinja_put_char(j->b, '\n', false);
    jinja_put_times(j->b, &j->indent, j->level);
}

static void dump_list(struct json *j, const struct jinja_list *list)
{
    jinja_put_text(j->b, "[");
    j->level++;
    for (int i = 0; i < list->items.n; i++) {
        if (i)
            jinja_put(j->b, &j->item);
        new_line(j);
        dump(j, list->items.at[i]);
    }
    j->level--;
    if (list->items.n)
        new_line(j);
    jinja_put_text(j->b, "]");
}

static void dump_key(struct json *j, struct jinja_value key)
{
    if (key.type == JINJA_STRING) {
        dump_string(j, key.string);
        return;
    }
    if (!jinja_is_number(key) && key.type != JINJA_NONE)
        jinja_fail(j->b->run, "a %s can't be a key of JSON", jinja_type_name(key));
    jinja_put_char(j->b, '"', false);
    dump(j, key);
    jinja_put_char(j->b, '"', false);
}

static const struct jinja_pair *in_order(struct jinja_run *r, const struct jinja_dict *dict)
{
    struct jinja_value keys = jinja_list(r, JINJA_LIST);
    EACH (const struct jinja_pair, p, dict->pairs)
        jinja_append(r, keys, p->key);
    int n = dict->pairs.n;
    const int *place = jinja_sorted(r, keys.list, false);
    struct jinja_pair *out = jinja_take(r, (size_t)n + 1, sizeof *out);
    for (int i = 0; i < n; i++)
        out[i] = dict->pairs.at[place[i]];
    return out;
}

static void dump_dict(struct json *j, const struct jinja_dict *dict)
{
    const struct jinja_pair *pairs = j->sorted ? in_order(j->b->run, dict) : dict->pairs.at;
    jinja_put_text(j->b, "{");
    j->level++;
    for (int i = 0; i < dict->pairs.n; i++) {
        if (i)
            jinja_put(j->b, &j->item);
        new_line(j);
        dump_key(j, pairs[i].key);
        jinja_put(j->b, &j->key);
        dump(j, pairs[i].value);
    }
    j->level--;
    if (dict->pairs.n)
        new_line(j);
    jinja_put_text(j->b, "}");
}

static void dump(struct json *j, struct jinja_value v)
{
    jinja_step(j->b->run, 0);
    jinja_deeper(j->b->run);
    switch (v.type) {
    case JINJA_NONE: jinja_put_text(j->b, "null"); break;
    case JINJA_BOOL: jinja_put_text(j->b, v.truth ? "true" : "false"); break;
    case JINJA_INT: write_int(j->b, v.integer); break;
    case JINJA_FLOAT: dump_float(j, v.number); break;
    case JINJA_STRING: dump_string(j, v.string); break;
    case JINJA_LIST:
    case JINJA_TUPLE: dump_list(j, v.list); break;
    case JINJA_DICT: dump_dict(j, v.dict); break;
    default: jinja_fail(j->b->run, "a %s can't be written as JSON", jinja_type_name(v));
    }
    j->b->run->depth--;
}

static void set_separators(struct jinja_run *r, struct json *j, struct jinja_value pair)
{
    bool fits = (pair.type == JINJA_TUPLE || pair.type == JINJA_LIST) && pair.list->items.n == 2;
    for (int i = 0; fits && i < 2; i++)
        fits = pair.list->items.at[i].type == JINJA_STRING;
    if (!fits)
        jinja_fail(r, "the separators of 'tojson' are a %s, expected a tuple of two strings", jinja_type_name(pair));
    j->item = *pair.list->items.at[0].string;
    j->key = *pair.list->items.at[1].string;
}

/* tojson(ensure_ascii, indent, separators, sort_keys) */
struct jinja_value jinja_tojson(struct jinja_run *r, const struct jinja_call *c)
{
    struct jinja_builder b = {.run = r};
    struct json j = {.b = &b, .ascii = jinja_arg_truth(c, 0, false), .sorted = jinja_arg_truth(c, 3, false), .indents = jinja_given(c, 1)};
    j.item = jinja_literal(j.indents ? "," : ", ");
    j.key = jinja_literal(": ");
    if (j.indents && c->arg[1].type == JINJA_STRING) {
        j.indent = *c->arg[1].string;
    } else if (j.indents) {
        struct jinja_builder indent = {.run = r};
        struct jinja_string blank = jinja_literal(" ");
        jinja_put_times(&indent, &blank, jinja_arg_int(r, c, 1, 0));
        j.indent = *jinja_built(&indent).string;
    }
    if (jinja_given(c, 2))
        set_separators(r, &j, c->arg[2]);
    dump(&j, c->self);
    return jinja_built(&b);
}
