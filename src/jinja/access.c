/* Attributes, items and slices of values. A missing one is undefined; one that Python has but tpc does not support is refused. */
#include "jinja/jinja.h"

#include <string.h>

static struct jinja_value lacks(struct jinja_run *r, struct jinja_value v, struct jinja_value key)
{
    bool is_short = key.type == JINJA_STRING || jinja_is_number(key);
    return jinja_undefined(r, jinja_type_name(v), is_short ? *jinja_text_of(r, key) : jinja_literal(jinja_type_name(key)));
}

/* A method by name, bound to its value. */
static bool method_of(struct jinja_run *r, struct jinja_value v, const struct jinja_string *name, struct jinja_value *out)
{
    const struct jinja_callable *row = jinja_method(v.type, name);
    if (!row)
        return false;
    if (!row->call)
        jinja_fail(r, "the method '%s' of a %s is not supported", row->name, jinja_type_name(v));
    struct jinja_method *m = jinja_take(r, 1, sizeof *m);
    *m = (struct jinja_method){row, v};
    *out = (struct jinja_value){.type = JINJA_METHOD, .method = m};
    return true;
}

static bool cycler_attribute(struct jinja_value v, const struct jinja_string *name, struct jinja_value *out)
{
    if (v.cycler->joint || !jinja_is(name, "current"))
        return false;
    *out = v.cycler->items->items.at[v.cycler->at];
    return true;
}

bool jinja_own_attribute(struct jinja_run *r, struct jinja_value v, const struct jinja_string *name, struct jinja_value *out)
{
    if (name->n >= 2 && name->at[0] == '_' && name->at[1] == '_')
        jinja_fail(r, "the attribute '%.*s' is not supported", (int)(name->n < 100 ? name->n : 100), name->at);
    if (v.type == JINJA_UNDEFINED)
        jinja_fail_undefined(r, v);
    if (v.type == JINJA_NAMESPACE) {
        const struct jinja_value *found = jinja_get_named(r, v.dict, name);
        if (found)
            *out = *found;
        return found != NULL;
    }
    if (v.type == JINJA_TUPLE && v.list->name && (jinja_is(name, "grouper") || jinja_is(name, "list"))) {
        *out = v.list->items.at[jinja_is(name, "list")];
        return true;
    }
    if (v.type == JINJA_MACRO)
        jinja_fail(r, "the attribute '%.*s' of a macro is not supported", (int)(name->n < 100 ? name->n : 100), name->at);
    if (v.type == JINJA_LOOP && jinja_loop_attribute(r, v.loop, name, out))
        return true;
    if (v.type == JINJA_CYCLER && cycler_attribute(v, name, out))
        return true;
    return method_of(r, v, name, out);
}

struct jinja_value jinja_attribute(struct jinja_run *r, struct jinja_value v, const struct jinja_string *name)
{
    struct jinja_value out;
    if (jinja_own_attribute(r, v, name, &out))
        return out;
    const struct jinja_value *found = v.type == JINJA_DICT ? jinja_get_named(r, v.dict, name) : NULL;
    return found ? *found : jinja_undefined(r, jinja_type_name(v), *name);
}

/* The position among n of an index; -1: none. */
static int64_t place(struct jinja_value key, int64_t n)
{
    int64_t i = key.type == JINJA_BOOL ? key.truth : key.integer;
    if (i < 0)
        i += n;
    return i >= 0 && i < n ? i : -1;
}

static struct jinja_value char_at(struct jinja_run *r, struct jinja_value v, struct jinja_value key)
{
    jinja_refuse_markup(r, v);
    jinja_step(r, v.string->n);
    int64_t i = place(key, (int64_t)jinja_length(v.string));
    if (i < 0)
        return lacks(r, v, key);
    size_t from = jinja_offset(v.string, i), to = from;
    jinja_next(v.string, &to);
    return jinja_string(r, jinja_piece(v.string, from, to));
}

struct jinja_value jinja_item(struct jinja_run *r, struct jinja_value v, struct jinja_value key)
{
    bool is_index = key.type == JINJA_INT || key.type == JINJA_BOOL;
    if (v.type == JINJA_UNDEFINED)
        jinja_fail_undefined(r, v);
    if (v.type == JINJA_DICT && jinja_hashable(r, key)) {
        const struct jinja_value *found = jinja_get(r, v.dict, key);
        if (found)
            return *found;
    }
    if (v.type == JINJA_STRING && is_index)
        return char_at(r, v, key);
    if ((v.type == JINJA_LIST || v.type == JINJA_TUPLE || v.type == JINJA_RANGE_OF) && is_index) {
        int64_t i = place(key, v.list->items.n);
        return i < 0 ? lacks(r, v, key) : v.list->items.at[i];
    }
    struct jinja_value out;
    if (key.type == JINJA_STRING && jinja_own_attribute(r, v, key.string, &out))
        return out;
    return lacks(r, v, key);
}

/* ---- slices ------------------------------------------------------------------------------------------------------------ */

struct slice {
    int64_t from, to, step;
};

static int64_t bound(struct jinja_run *r, struct jinja_value v, int64_t n, int64_t otherwise, int64_t lowest, int64_t highest)
{
    if (v.type == JINJA_ABSENT || v.type == JINJA_NONE)
        return otherwise;
    if (v.type != JINJA_INT && v.type != JINJA_BOOL)
        jinja_fail(r, "the bounds of a slice are integers, found a %s", jinja_type_name(v));
    int64_t i = v.type == JINJA_BOOL ? v.truth : v.integer;
    if (i < 0 && i < -n)
        return lowest;
    if (i < 0)
        i += n;
    return i > highest ? highest : i;
}

static struct slice slice_of(struct jinja_run *r, const struct jinja_value at[3], int64_t n)
{
    int64_t step = bound(r, at[2], 0, 1, INT64_MIN, INT64_MAX);
    if (at[2].type == JINJA_INT)
        step = at[2].integer;
    if (step == 0)
        jinja_fail(r, "the step of a slice is 0");
    if (step > 0)
        return (struct slice){bound(r, at[0], n, 0, 0, n), bound(r, at[1], n, n, 0, n), step};
    return (struct slice){bound(r, at[0], n, n - 1, -1, n - 1), bound(r, at[1], n, -1, -1, n - 1), step < -n - 1 ? -n - 1 : step};
}

static bool within(struct slice s, int64_t i)
{
    return s.step > 0 ? i < s.to : i > s.to;
}

/* The position after i; beyond every position if that would overflow. */
static int64_t after(struct slice s, int64_t i)
{
    return s.step > 0 && i > INT64_MAX - s.step ? INT64_MAX : i + s.step;
}

static struct jinja_value slice_string(struct jinja_run *r, const struct jinja_string *s, const struct jinja_value at[3])
{
    jinja_step(r, s->n * 2);
    struct slice cut = slice_of(r, at, (int64_t)jinja_length(s));
    if (cut.step == 1) {
        size_t from = jinja_offset(s, cut.from), to = cut.to > cut.from ? jinja_offset(s, cut.to) : from;
        return jinja_string(r, jinja_piece(s, from, to));
    }
    const struct jinja_list *chars = jinja_items(r, (struct jinja_value){.type = JINJA_STRING, .string = s});
    struct jinja_builder b = {.run = r};
    for (int64_t i = cut.from; within(cut, i); i = after(cut, i))
        jinja_put(&b, chars->items.at[i].string);
    return jinja_built(&b);
}

struct jinja_value jinja_slice(struct jinja_run *r, struct jinja_value v, const struct jinja_value at[3])
{
    if (v.type == JINJA_UNDEFINED)
        jinja_fail_undefined(r, v);
    jinja_refuse_markup(r, v);
    if (v.type == JINJA_STRING)
        return slice_string(r, v.string, at);
    if (v.type != JINJA_LIST && v.type != JINJA_TUPLE)
        jinja_fail(r, "a %s can't be sliced", jinja_type_name(v));
    struct slice cut = slice_of(r, at, v.list->items.n);
    struct jinja_value out = jinja_list(r, v.type);
    for (int64_t i = cut.from; within(cut, i); i = after(cut, i))
        jinja_append(r, out, v.list->items.at[i]);
    return out;
}

/* ---- paths, for filters ----------------------------------------------------------------------------------------- */

static struct jinja_value part_of(struct jinja_run *r, struct jinja_string part)
{
    int64_t i = 0;
    for (size_t k = 0; k < part.n; k++) {
        if (part.at[k] < '0' || part.at[k] > '9' || k > 17)
            return jinja_string(r, part);
        i = i * 10 + part.at[k] - '0';
    }
    return part.n ? jinja_int(i) : jinja_string(r, part);
}

struct jinja_value jinja_path(struct jinja_run *r, struct jinja_value v, struct jinja_value path, struct jinja_value otherwise)
{
    bool has_parts = path.type == JINJA_STRING;
    for (size_t from = 0; has_parts ? from <= path.string->n : from == 0; from++) {
        size_t to = from;
        while (has_parts && to < path.string->n && path.string->at[to] != '.')
            to++;
        v = jinja_item(r, v, has_parts ? part_of(r, jinja_piece(path.string, from, to)) : path);
        if (v.type == JINJA_UNDEFINED && otherwise.type != JINJA_ABSENT)
            v = otherwise;
        from = to;
    }
    return v;
}
