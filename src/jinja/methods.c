/* The methods of strings, and their table. Python methods without a function are refused by name. */
#include "jinja/jinja.h"

#include <string.h>

#define METHOD(name) static struct jinja_value name(struct jinja_run *r, const struct jinja_call *c)

/* ---- case and classes ---------------------------------------------------------------------------------------------------- */

static struct jinja_value in_case(struct jinja_run *r, const struct jinja_call *c, enum jinja_case kind)
{
    struct jinja_builder b = {.run = r};
    jinja_put_case(&b, c->self.string, kind);
    return jinja_built(&b);
}

METHOD(string_upper)
{
    return in_case(r, c, JINJA_UPPER);
}

METHOD(string_lower)
{
    return in_case(r, c, JINJA_LOWER);
}

METHOD(string_title)
{
    return in_case(r, c, JINJA_TITLE);
}

METHOD(string_swapcase)
{
    return in_case(r, c, JINJA_SWAP);
}

METHOD(string_capitalize)
{
    struct jinja_builder b = {.run = r};
    jinja_put_capitalized(&b, c->self.string);
    return jinja_built(&b);
}

#define PREDICATE(name, holds)            \
    METHOD(name)                          \
    {                                     \
        jinja_step(r, c->self.string->n); \
        return jinja_bool(holds);         \
    }
PREDICATE(string_isalnum, jinja_all(c->self.string, JINJA_ALNUM))
PREDICATE(string_isalpha, jinja_all(c->self.string, JINJA_ALPHA))
PREDICATE(string_isascii, jinja_all(c->self.string, JINJA_ASCII))
PREDICATE(string_isdecimal, jinja_all(c->self.string, JINJA_DECIMAL))
PREDICATE(string_isdigit, jinja_all(c->self.string, JINJA_DIGIT))
PREDICATE(string_isprintable, jinja_all(c->self.string, JINJA_PRINTABLE))
PREDICATE(string_isspace, jinja_all(c->self.string, JINJA_SPACE))
PREDICATE(string_islower, jinja_is_cased(c->self.string, false))
PREDICATE(string_isupper, jinja_is_cased(c->self.string, true))
PREDICATE(string_istitle, jinja_is_title(c->self.string))

/* ---- ends -------------------------------------------------------------------------------------------------------------- */

static struct jinja_value stripped(struct jinja_run *r, const struct jinja_call *c, bool left, bool right)
{
    const struct jinja_string *chars = jinja_given(c, 0) ? jinja_arg_string(r, c, 0) : NULL;
    jinja_step(r, c->self.string->n * (chars ? chars->n : 1));
    return jinja_string(r, jinja_strip(c->self.string, chars, left, right));
}

METHOD(string_strip)
{
    return stripped(r, c, true, true);
}

METHOD(string_lstrip)
{
    return stripped(r, c, true, false);
}

METHOD(string_rstrip)
{
    return stripped(r, c, false, true);
}

METHOD(string_removeprefix)
{
    const struct jinja_string *s = c->self.string, *end = jinja_arg_string(r, c, 0);
    return jinja_has_at(s, end, 0) ? jinja_string(r, jinja_piece(s, end->n, s->n)) : c->self;
}

METHOD(string_removesuffix)
{
    const struct jinja_string *s = c->self.string, *end = jinja_arg_string(r, c, 0);
    bool has = end->n <= s->n && jinja_has_at(s, end, s->n - end->n);
    return has ? jinja_string(r, jinja_piece(s, 0, s->n - end->n)) : c->self;
}

/* The part between the positions of arguments 1 and 2; false: it begins past the end. */
static bool window(struct jinja_run *r, const struct jinja_call *c, size_t *from, size_t *to)
{
    const struct jinja_string *s = c->self.string;
    int64_t n = (int64_t)jinja_length(s), at[2] = {0, n};
    jinja_step(r, s->n * 2);
    for (int i = 0; i < 2; i++) {
        if (!jinja_given(c, i + 1))
            continue;
        at[i] = jinja_arg_int(r, c, i + 1, 0);
        if (at[i] < 0)
            at[i] = at[i] < -n ? 0 : at[i] + n;
        if (i == 1 && at[i] > n)
            at[i] = n;
    }
    if (at[0] > n || at[0] > at[1])
        return false;
    *from = jinja_offset(s, at[0]);
    *to = jinja_offset(s, at[1]);
    return true;
}

static struct jinja_value has_end(struct jinja_run *r, const struct jinja_call *c, bool first)
{
    size_t from, to;
    struct jinja_value one = c->arg[0], all = jinja_list(r, JINJA_TUPLE);
    if (one.type == JINJA_TUPLE)
        all = one;
    else
        jinja_append(r, all, (struct jinja_value){.type = JINJA_STRING, .string = jinja_arg_string(r, c, 0)});
    if (!window(r, c, &from, &to))
        return jinja_bool(false);
    struct jinja_string part = jinja_piece(c->self.string, from, to);
    EACH (const struct jinja_value, end, all.list->items) {
        if (end->type != JINJA_STRING)
            jinja_fail(r, "the method '%s' is given a %s in its tuple, expected a str", c->name, jinja_type_name(*end));
        if (end->string->n <= part.n && jinja_has_at(&part, end->string, first ? 0 : part.n - end->string->n))
            return jinja_bool(true);
    }
    return jinja_bool(false);
}

METHOD(string_startswith)
{
    return has_end(r, c, true);
}

METHOD(string_endswith)
{
    return has_end(r, c, false);
}

/* ---- finding ----------------------------------------------------------------------------------------------------------- */

static int64_t found(struct jinja_run *r, const struct jinja_call *c, bool last)
{
    size_t from, to;
    const struct jinja_string *sought = jinja_arg_string(r, c, 0);
    if (!window(r, c, &from, &to))
        return -1;
    struct jinja_string part = jinja_piece(c->self.string, 0, to);
    size_t at = last ? jinja_find_last(r, &part, sought, to) : jinja_find(r, &part, sought, from);
    if (at == SIZE_MAX || at < from)
        return -1;
    struct jinja_string before = jinja_piece(&part, 0, at);
    return (int64_t)jinja_length(&before);
}

METHOD(string_find)
{
    return jinja_int(found(r, c, false));
}

METHOD(string_rfind)
{
    return jinja_int(found(r, c, true));
}

static struct jinja_value index_of(struct jinja_run *r, const struct jinja_call *c, bool last)
{
    int64_t at = found(r, c, last);
    if (at < 0)
        jinja_fail(r, "the method '%s' does not find what it looks for", c->name);
    return jinja_int(at);
}

METHOD(string_index)
{
    return index_of(r, c, false);
}

METHOD(string_rindex)
{
    return index_of(r, c, true);
}

METHOD(string_count)
{
    size_t from, to;
    int64_t n = 0;
    const struct jinja_string *sought = jinja_arg_string(r, c, 0);
    if (!window(r, c, &from, &to))
        return jinja_int(0);
    struct jinja_string part = jinja_piece(c->self.string, from, to);
    if (sought->n == 0)
        return jinja_int((int64_t)jinja_length(&part) + 1);
    for (size_t at = 0; (at = jinja_find(r, &part, sought, at)) != SIZE_MAX; at += sought->n)
        n++;
    return jinja_int(n);
}

/* ---- parts ------------------------------------------------------------------------------------------------------------- */

static void append_piece(struct jinja_run *r, struct jinja_value list, const struct jinja_string *s, size_t from, size_t to)
{
    jinja_append(r, list, jinja_string(r, jinja_piece(s, from, to)));
}

static void reverse(struct jinja_value list)
{
    struct jinja_value *at = list.list->items.at;
    for (int i = 0, j = list.list->items.n - 1; i < j; i++, j--) {
        struct jinja_value kept = at[i];
        at[i] = at[j];
        at[j] = kept;
    }
}

static void split_words(struct jinja_run *r, const struct jinja_string *s, int64_t most, struct jinja_value out)
{
    struct jinja_string rest = jinja_strip(s, NULL, true, false);
    while (rest.n) {
        size_t i = 0, end = rest.n;
        while (i < rest.n) {
            size_t at = i;
            if (jinja_char_is_space(jinja_next(&rest, &i))) {
                end = at;
                break;
            }
        }
        if (most >= 0 && out.list->items.n == most)
            end = rest.n;
        append_piece(r, out, &rest, 0, end);
        rest = jinja_piece(&rest, end, rest.n);
        rest = jinja_strip(&rest, NULL, true, false);
    }
}

static void split_last_words(struct jinja_run *r, const struct jinja_string *s, int64_t most, struct jinja_value out)
{
    struct jinja_string rest = jinja_strip(s, NULL, false, true);
    while (rest.n) {
        size_t i = rest.n, from = 0;
        while (i > 0) {
            size_t end = i;
            if (jinja_char_is_space(jinja_before(&rest, &i))) {
                from = end;
                break;
            }
        }
        if (most >= 0 && out.list->items.n == most)
            from = 0;
        append_piece(r, out, &rest, from, rest.n);
        rest = jinja_piece(&rest, 0, from);
        rest = jinja_strip(&rest, NULL, false, true);
    }
}

/* split(sep, maxsplit) */
METHOD(string_split)
{
    const struct jinja_string *s = c->self.string;
    int64_t most = jinja_arg_int(r, c, 1, -1);
    struct jinja_value out = jinja_list(r, JINJA_LIST);
    jinja_step(r, s->n);
    if (!jinja_given(c, 0)) {
        split_words(r, s, most, out);
        return out;
    }
    const struct jinja_string *by = jinja_arg_string(r, c, 0);
    if (by->n == 0)
        jinja_fail(r, "the method 'split' is given an empty separator");
    size_t from = 0, at;
    while ((most < 0 || out.list->items.n < most) && (at = jinja_find(r, s, by, from)) != SIZE_MAX) {
        append_piece(r, out, s, from, at);
        from = at + by->n;
    }
    append_piece(r, out, s, from, s->n);
    return out;
}

METHOD(string_rsplit)
{
    const struct jinja_string *s = c->self.string;
    int64_t most = jinja_arg_int(r, c, 1, -1);
    struct jinja_value out = jinja_list(r, JINJA_LIST);
    jinja_step(r, s->n);
    if (jinja_given(c, 0)) {
        const struct jinja_string *by = jinja_arg_string(r, c, 0);
        if (by->n == 0)
            jinja_fail(r, "the method 'rsplit' is given an empty separator");
        size_t to = s->n, at;
        while ((most < 0 || out.list->items.n < most) && (at = jinja_find_last(r, s, by, to)) != SIZE_MAX) {
            append_piece(r, out, s, at + by->n, to);
            to = at;
        }
        append_piece(r, out, s, 0, to);
    } else {
        split_last_words(r, s, most, out);
    }
    reverse(out);
    return out;
}

static bool ends_line(int32_t c)
{
    return (c >= 0x0a && c <= 0x0d) || (c >= 0x1c && c <= 0x1e) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

struct jinja_value jinja_split_lines(struct jinja_run *r, const struct jinja_string *s, bool ends)
{
    struct jinja_value out = jinja_list(r, JINJA_LIST);
    size_t from = 0;
    jinja_step(r, s->n);
    for (size_t i = 0; i < s->n;) {
        size_t at = i;
        int32_t c = jinja_next(s, &i);
        if (!ends_line(c))
            continue;
        if (c == '\r' && i < s->n && s->at[i] == '\n')
            i++;
        append_piece(r, out, s, from, ends ? i : at);
        from = i;
    }
    if (from < s->n)
        append_piece(r, out, s, from, s->n);
    return out;
}

METHOD(string_splitlines)
{
    return jinja_split_lines(r, c->self.string, jinja_arg_truth(c, 0, false));
}

/* The part before a separator, the separator, and the part after it. */
static struct jinja_value parted(struct jinja_run *r, const struct jinja_call *c, bool last)
{
    const struct jinja_string *s = c->self.string, *by = jinja_arg_string(r, c, 0);
    struct jinja_value out = jinja_list(r, JINJA_TUPLE);
    if (by->n == 0)
        jinja_fail(r, "the method '%s' is given an empty separator", c->name);
    size_t at = last ? jinja_find_last(r, s, by, s->n) : jinja_find(r, s, by, 0);
    bool has = at != SIZE_MAX;
    size_t from = has ? at : last ? 0 : s->n, to = has ? at + by->n : from;
    append_piece(r, out, s, 0, from);
    append_piece(r, out, s, from, to);
    append_piece(r, out, s, to, s->n);
    return out;
}

METHOD(string_partition)
{
    return parted(r, c, false);
}

METHOD(string_rpartition)
{
    return parted(r, c, true);
}

/* ---- new texts --------------------------------------------------------------------------------------------------------- */

static struct jinja_value replaced_everywhere(struct jinja_run *r, const struct jinja_string *s, const struct jinja_string *by,
                                              int64_t count)
{
    struct jinja_builder b = {.run = r};
    size_t i = 0;
    for (; count != 0; count--) {
        size_t from = i;
        jinja_put(&b, by);
        if (i == s->n)
            break;
        jinja_next(s, &i);
        struct jinja_string one = jinja_piece(s, from, i);
        jinja_put(&b, &one);
    }
    struct jinja_string rest = jinja_piece(s, i, s->n);
    jinja_put(&b, &rest);
    return jinja_built(&b);
}

struct jinja_value jinja_replace(struct jinja_run *r, const struct jinja_string *s, const struct jinja_string *old,
                                 const struct jinja_string *by, int64_t count)
{
    if (old->n == 0)
        return replaced_everywhere(r, s, by, count);
    struct jinja_builder b = {.run = r};
    size_t from = 0, at;
    for (; count != 0 && (at = jinja_find(r, s, old, from)) != SIZE_MAX; count--) {
        struct jinja_string kept = jinja_piece(s, from, at);
        jinja_put(&b, &kept);
        jinja_put(&b, by);
        from = at + old->n;
    }
    struct jinja_string rest = jinja_piece(s, from, s->n);
    jinja_put(&b, &rest);
    return jinja_built(&b);
}

METHOD(string_replace)
{
    return jinja_replace(r, c->self.string, jinja_arg_string(r, c, 0), jinja_arg_string(r, c, 1), jinja_arg_int(r, c, 2, -1));
}

METHOD(string_join)
{
    struct jinja_builder b = {.run = r};
    const struct jinja_list *items = jinja_items(r, c->arg[0]);
    for (int i = 0; i < items->items.n; i++) {
        if (items->items.at[i].type != JINJA_STRING)
            jinja_fail(r, "the method 'join' is given a %s, expected a str", jinja_type_name(items->items.at[i]));
        if (i)
            jinja_put(&b, c->self.string);
        jinja_put(&b, items->items.at[i].string);
    }
    return jinja_built(&b);
}

static struct jinja_string fill(struct jinja_run *r, const struct jinja_call *c)
{
    size_t i = 0;
    if (c->arg[1].type == JINJA_ABSENT)
        return jinja_literal(" ");
    const struct jinja_string *s = jinja_arg_string(r, c, 1);
    if (s->n)
        jinja_next(s, &i);
    if (i != s->n || s->n == 0)
        jinja_fail(r, "the method '%s' fills with one character, found %zu", c->name, jinja_length(s));
    return *s;
}

/* Pads a text on both sides to a width. */
static struct jinja_value justified(struct jinja_run *r, const struct jinja_call *c, bool before)
{
    struct jinja_builder b = {.run = r};
    struct jinja_string with = fill(r, c);
    int64_t room = jinja_arg_int(r, c, 0, 0) - (int64_t)jinja_length(c->self.string);
    jinja_put_times(&b, &with, before ? room : 0);
    jinja_put(&b, c->self.string);
    jinja_put_times(&b, &with, before ? 0 : room);
    return jinja_built(&b);
}

METHOD(string_ljust)
{
    return justified(r, c, false);
}

METHOD(string_rjust)
{
    return justified(r, c, true);
}

void jinja_put_centered(struct jinja_builder *b, const struct jinja_string *s, int64_t width, struct jinja_string with)
{
    int64_t n = (int64_t)jinja_length(s), room = width > n ? width - n : 0;
    int64_t left = room / 2 + (room & width & 1);
    jinja_put_times(b, &with, left);
    jinja_put(b, s);
    jinja_put_times(b, &with, room - left);
}

METHOD(string_center)
{
    struct jinja_builder b = {.run = r};
    jinja_put_centered(&b, c->self.string, jinja_arg_int(r, c, 0, 0), fill(r, c));
    return jinja_built(&b);
}

METHOD(string_zfill)
{
    struct jinja_builder b = {.run = r};
    const struct jinja_string *s = c->self.string;
    size_t sign = s->n && (s->at[0] == '-' || s->at[0] == '+');
    struct jinja_string zero = jinja_literal("0"), head = jinja_piece(s, 0, sign), tail = jinja_piece(s, sign, s->n);
    jinja_put(&b, &head);
    jinja_put_times(&b, &zero, jinja_arg_int(r, c, 0, 0) - (int64_t)jinja_length(s));
    jinja_put(&b, &tail);
    return jinja_built(&b);
}

#define STRING (1u << JINJA_STRING)
const struct jinja_callable jinja_string_methods[] = {{"capitalize", "", 0, string_capitalize, STRING},
                                                      {"casefold", "", 0, NULL, STRING},
                                                      {"center", "- -", 1, string_center, STRING},
                                                      {"count", "- - -", 1, string_count, STRING},
                                                      {"encode", "", 0, NULL, STRING},
                                                      {"endswith", "- - -", 1, string_endswith, STRING},
                                                      {"expandtabs", "", 0, NULL, STRING},
                                                      {"find", "- - -", 1, string_find, STRING},
                                                      {"format", "*", 0, jinja_format, STRING},
                                                      {"format_map", "", 0, NULL, STRING},
                                                      {"index", "- - -", 1, string_index, STRING},
                                                      {"isalnum", "", 0, string_isalnum, STRING},
                                                      {"isalpha", "", 0, string_isalpha, STRING},
                                                      {"isascii", "", 0, string_isascii, STRING},
                                                      {"isdecimal", "", 0, string_isdecimal, STRING},
                                                      {"isdigit", "", 0, string_isdigit, STRING},
                                                      {"isidentifier", "", 0, NULL, STRING},
                                                      {"islower", "", 0, string_islower, STRING},
                                                      {"isnumeric", "", 0, NULL, STRING},
                                                      {"isprintable", "", 0, string_isprintable, STRING},
                                                      {"isspace", "", 0, string_isspace, STRING},
                                                      {"istitle", "", 0, string_istitle, STRING},
                                                      {"isupper", "", 0, string_isupper, STRING},
                                                      {"join", "-", 1, string_join, STRING},
                                                      {"ljust", "- -", 1, string_ljust, STRING},
                                                      {"lower", "", 0, string_lower, STRING},
                                                      {"lstrip", "-", 0, string_lstrip, STRING},
                                                      {"maketrans", "", 0, NULL, STRING},
                                                      {"partition", "-", 1, string_partition, STRING},
                                                      {"removeprefix", "-", 1, string_removeprefix, STRING},
                                                      {"removesuffix", "-", 1, string_removesuffix, STRING},
                                                      {"replace", "- - -", 2, string_replace, STRING},
                                                      {"rfind", "- - -", 1, string_rfind, STRING},
                                                      {"rindex", "- - -", 1, string_rindex, STRING},
                                                      {"rjust", "- -", 1, string_rjust, STRING},
                                                      {"rpartition", "-", 1, string_rpartition, STRING},
                                                      {"rsplit", "sep maxsplit", 0, string_rsplit, STRING},
                                                      {"rstrip", "-", 0, string_rstrip, STRING},
                                                      {"split", "sep maxsplit", 0, string_split, STRING},
                                                      {"splitlines", "keepends", 0, string_splitlines, STRING},
                                                      {"startswith", "- - -", 1, string_startswith, STRING},
                                                      {"strip", "-", 0, string_strip, STRING},
                                                      {"swapcase", "", 0, string_swapcase, STRING},
                                                      {"title", "", 0, string_title, STRING},
                                                      {"translate", "", 0, NULL, STRING},
                                                      {"upper", "", 0, string_upper, STRING},
                                                      {"zfill", "-", 1, string_zfill, STRING}};
const int jinja_string_method_count = (int)(sizeof jinja_string_methods / sizeof *jinja_string_methods);
