/* Values: constructors, and truth, equality, order, membership and items as in Python. */
#include "jinja/jinja.h"

#include <string.h>

struct jinja_value jinja_bool(bool truth)
{
    return (struct jinja_value){.type = JINJA_BOOL, .truth = truth};
}

struct jinja_value jinja_int(int64_t integer)
{
    return (struct jinja_value){.type = JINJA_INT, .integer = integer};
}

struct jinja_value jinja_float(double number)
{
    return (struct jinja_value){.type = JINJA_FLOAT, .number = number};
}

struct jinja_value jinja_string(struct jinja_run *r, struct jinja_string s)
{
    struct jinja_string *kept = jinja_take(r, 1, sizeof *kept);
    *kept = s;
    return (struct jinja_value){.type = JINJA_STRING, .string = kept};
}

struct jinja_value jinja_string_of(struct jinja_run *r, const char *text)
{
    return jinja_string(r, jinja_literal(text));
}

struct jinja_value jinja_list(struct jinja_run *r, enum jinja_type type)
{
    return (struct jinja_value){.type = type, .list = jinja_take(r, 1, sizeof(struct jinja_list))};
}

void jinja_append(struct jinja_run *r, struct jinja_value list, struct jinja_value item)
{
    if (list.list->items.n == list.list->items.cap)
        jinja_charge(r, ((size_t)list.list->items.cap + 8) * 2 * sizeof item);
    jinja_step(r, 0);
    VEC_PUSH(r->arena, &list.list->items, item);
}

struct jinja_value jinja_tuple2(struct jinja_run *r, struct jinja_value a, struct jinja_value b)
{
    struct jinja_value t = jinja_list(r, JINJA_TUPLE);
    jinja_append(r, t, a);
    jinja_append(r, t, b);
    return t;
}

struct jinja_value jinja_undefined(struct jinja_run *r, const char *of, struct jinja_string name)
{
    struct jinja_undefined *u = jinja_take(r, 1, sizeof *u);
    *u = (struct jinja_undefined){of, name};
    return (struct jinja_value){.type = JINJA_UNDEFINED, .undefined = u};
}

/* ---- dicts ------------------------------------------------------------------------------------------------------------- */

struct jinja_value jinja_dict(struct jinja_run *r)
{
    return (struct jinja_value){.type = JINJA_DICT, .dict = jinja_take(r, 1, sizeof(struct jinja_dict))};
}

const struct jinja_value *jinja_get(struct jinja_run *r, const struct jinja_dict *d, struct jinja_value key)
{
    if (key.type == JINJA_STRING)
        return jinja_get_named(r, d, key.string);
    jinja_step(r, (size_t)d->pairs.n * 8);
    EACH (const struct jinja_pair, p, d->pairs)
        if (p->key.type != JINJA_STRING && jinja_equal(r, p->key, key))
            return &p->value;
    return NULL;
}

const struct jinja_value *jinja_get_named(struct jinja_run *r, const struct jinja_dict *d, const struct jinja_string *name)
{
    jinja_step(r, (size_t)d->pairs.n * 8);
    EACH (const struct jinja_pair, p, d->pairs)
        if (p->key.type == JINJA_STRING && jinja_same(p->key.string, name))
            return &p->value;
    return NULL;
}

void jinja_append_pair(struct jinja_run *r, struct jinja_value dict, struct jinja_value key, struct jinja_value value)
{
    if (dict.dict->pairs.n == dict.dict->pairs.cap)
        jinja_charge(r, ((size_t)dict.dict->pairs.cap + 8) * 2 * sizeof(struct jinja_pair));
    VEC_PUSH(r->arena, &dict.dict->pairs, ((struct jinja_pair){key, value}));
}

void jinja_set(struct jinja_run *r, struct jinja_dict *d, struct jinja_value key, struct jinja_value value)
{
    if (!jinja_hashable(r, key))
        jinja_fail(r, "a %s can't be a key", jinja_type_name(key));
    const struct jinja_value *known = jinja_get(r, d, key);
    if (known) {
        d->pairs.at[(const struct jinja_pair *)((const char *)known - offsetof(struct jinja_pair, value)) - d->pairs.at].value = value;
        return;
    }
    jinja_append_pair(r, (struct jinja_value){.type = JINJA_DICT, .dict = d}, key, value);
}

/* ---- operations on all types ------------------------------------------------------------------------------------------ */

const char *jinja_type_name(struct jinja_value v)
{
    static const char *const names[] = {[JINJA_ABSENT] = "missing value",
                                        [JINJA_UNDEFINED] = "undefined",
                                        [JINJA_NONE] = "None",
                                        [JINJA_BOOL] = "bool",
                                        [JINJA_INT] = "int",
                                        [JINJA_FLOAT] = "float",
                                        [JINJA_STRING] = "str",
                                        [JINJA_LIST] = "list",
                                        [JINJA_TUPLE] = "tuple",
                                        [JINJA_DICT] = "dict",
                                        [JINJA_RANGE_OF] = "range",
                                        [JINJA_VIEW] = "view of a dict",
                                        [JINJA_ITERATOR] = "generator",
                                        [JINJA_NAMESPACE] = "namespace",
                                        [JINJA_MACRO] = "macro",
                                        [JINJA_LOOP] = "loop",
                                        [JINJA_FUNCTION] = "function",
                                        [JINJA_METHOD] = "method",
                                        [JINJA_CYCLER] = "cycler",
                                        [JINJA_JOINER] = "joiner"};
    return names[v.type];
}

_Noreturn void jinja_fail_undefined(struct jinja_run *r, struct jinja_value v)
{
    const struct jinja_undefined *u = v.undefined;
    if (!u)
        jinja_fail(r, "the value is undefined");
    if (!u->of)
        jinja_fail(r, "'%.*s' is undefined", (int)u->name.n, u->name.at);
    if (!*u->of)
        jinja_fail(r, "%.*s", (int)u->name.n, u->name.at);
    jinja_fail(r, "a %s has no attribute or item '%.*s'", u->of, (int)(u->name.n < 100 ? u->name.n : 100), u->name.at);
}

bool jinja_truth(struct jinja_value v)
{
    switch (v.type) {
    case JINJA_ABSENT:
    case JINJA_UNDEFINED:
    case JINJA_NONE: return false;
    case JINJA_BOOL: return v.truth;
    case JINJA_INT: return v.integer != 0;
    case JINJA_FLOAT: return v.number < 0 || v.number > 0 || v.number != v.number;
    case JINJA_STRING: return v.string->n > 0;
    case JINJA_LIST:
    case JINJA_TUPLE:
    case JINJA_RANGE_OF:
    case JINJA_VIEW: return v.list->items.n > 0;
    case JINJA_DICT: return v.dict->pairs.n > 0;
    default: return true;
    }
}

bool jinja_is_number(struct jinja_value v)
{
    return v.type == JINJA_BOOL || v.type == JINJA_INT || v.type == JINJA_FLOAT;
}

double jinja_number(struct jinja_value v)
{
    return v.type == JINJA_FLOAT ? v.number : v.type == JINJA_BOOL ? v.truth : (double)v.integer;
}

static int64_t whole(struct jinja_value v)
{
    return v.type == JINJA_BOOL ? v.truth : v.integer;
}

bool jinja_hashable(struct jinja_run *r, struct jinja_value v)
{
    bool all = v.type != JINJA_LIST && v.type != JINJA_DICT && v.type != JINJA_VIEW;
    if (v.type != JINJA_TUPLE)
        return all;
    jinja_step(r, 0);
    jinja_deeper(r);
    for (int i = 0; i < v.list->items.n && all; i++)
        all = jinja_hashable(r, v.list->items.at[i]);
    r->depth--;
    return all;
}

/* Order of numbers; 2 with a NaN. A long double holds every int64. */
static int order_of(struct jinja_value a, struct jinja_value b)
{
    if (a.type != JINJA_FLOAT && b.type != JINJA_FLOAT)
        return (whole(a) > whole(b)) - (whole(a) < whole(b));
    long double x = a.type == JINJA_FLOAT ? (long double)a.number : (long double)whole(a);
    long double y = b.type == JINJA_FLOAT ? (long double)b.number : (long double)whole(b);
    return x < y ? -1 : x > y ? 1 : x == y ? 0 : 2;
}

static bool is_sequence(struct jinja_value v)
{
    return v.type == JINJA_LIST || v.type == JINJA_TUPLE || v.type == JINJA_RANGE_OF;
}

static bool equal_lists(struct jinja_run *r, const struct jinja_list *a, const struct jinja_list *b)
{
    if (a->items.n != b->items.n)
        return false;
    for (int i = 0; i < a->items.n; i++)
        if (!jinja_equal(r, a->items.at[i], b->items.at[i]))
            return false;
    return true;
}

static bool equal_dicts(struct jinja_run *r, const struct jinja_dict *a, const struct jinja_dict *b)
{
    if (a->pairs.n != b->pairs.n)
        return false;
    EACH (const struct jinja_pair, p, a->pairs) {
        const struct jinja_value *other = jinja_get(r, b, p->key);
        if (!other || !jinja_equal(r, p->value, *other))
            return false;
    }
    return true;
}

bool jinja_equal(struct jinja_run *r, struct jinja_value a, struct jinja_value b)
{
    if (jinja_is_number(a) && jinja_is_number(b))
        return order_of(a, b) == 0;
    if (a.type != b.type)
        return false;
    if (a.type == JINJA_UNDEFINED || a.type == JINJA_NONE)
        return true;
    if (a.type == JINJA_STRING) {
        jinja_step(r, a.string->n);
        return jinja_same(a.string, b.string);
    }
    jinja_step(r, 0);
    jinja_deeper(r);
    bool same = is_sequence(a) ? equal_lists(r, a.list, b.list) : a.type == JINJA_DICT ? equal_dicts(r, a.dict, b.dict) : a.list == b.list;
    r->depth--;
    return same;
}

static int order_of_lists(struct jinja_run *r, const struct jinja_list *a, const struct jinja_list *b, const char *sign)
{
    for (int i = 0; i < a->items.n && i < b->items.n; i++)
        if (!jinja_equal(r, a->items.at[i], b->items.at[i]))
            return jinja_compare(r, a->items.at[i], b->items.at[i], sign);
    return (a->items.n > b->items.n) - (a->items.n < b->items.n);
}

int jinja_compare(struct jinja_run *r, struct jinja_value a, struct jinja_value b, const char *sign)
{
    if (a.type == JINJA_UNDEFINED || b.type == JINJA_UNDEFINED)
        jinja_fail_undefined(r, a.type == JINJA_UNDEFINED ? a : b);
    if (jinja_is_number(a) && jinja_is_number(b))
        return order_of(a, b);
    if (a.type == JINJA_STRING && b.type == JINJA_STRING) {
        jinja_step(r, a.string->n);
        int order = jinja_order(a.string, b.string);
        return (order > 0) - (order < 0);
    }
    if (a.type != b.type || (a.type != JINJA_LIST && a.type != JINJA_TUPLE))
        jinja_fail(r, "'%s' is not defined between a %s and a %s", sign, jinja_type_name(a), jinja_type_name(b));
    jinja_step(r, 0);
    jinja_deeper(r);
    int order = order_of_lists(r, a.list, b.list, sign);
    r->depth--;
    return order;
}

/* ---- items ------------------------------------------------------------------------------------------------------------- */

int64_t jinja_size(struct jinja_value v)
{
    switch (v.type) {
    case JINJA_UNDEFINED: return 0;
    case JINJA_STRING: return (int64_t)jinja_length(v.string);
    case JINJA_LIST:
    case JINJA_TUPLE:
    case JINJA_RANGE_OF:
    case JINJA_VIEW: return v.list->items.n;
    case JINJA_DICT: return v.dict->pairs.n;
    default: return -1;
    }
}

bool jinja_iterable(struct jinja_value v)
{
    return v.type == JINJA_ITERATOR || jinja_size(v) >= 0;
}

const struct jinja_list *jinja_items(struct jinja_run *r, struct jinja_value v)
{
    if (v.type == JINJA_LIST || v.type == JINJA_TUPLE || v.type == JINJA_RANGE_OF || v.type == JINJA_VIEW)
        return v.list;
    struct jinja_value all = jinja_list(r, JINJA_LIST);
    if (v.type == JINJA_STRING) {
        for (size_t i = 0; i < v.string->n;) {
            size_t from = i;
            jinja_next(v.string, &i);
            jinja_append(r, all, jinja_string(r, jinja_piece(v.string, from, i)));
        }
    } else if (v.type == JINJA_DICT) {
        EACH (const struct jinja_pair, p, v.dict->pairs)
            jinja_append(r, all, p->key);
    } else if (v.type == JINJA_ITERATOR) {
        for (; v.list->from < v.list->items.n; v.list->from++)
            jinja_append(r, all, v.list->items.at[v.list->from]);
    } else if (v.type != JINJA_UNDEFINED) {
        jinja_fail(r, "a %s has no items to go through", jinja_type_name(v));
    }
    return all.list;
}

bool jinja_contains(struct jinja_run *r, struct jinja_value in, struct jinja_value sought)
{
    if (in.type == JINJA_STRING) {
        if (sought.type != JINJA_STRING)
            jinja_fail(r, "'in' of a str is not defined for a %s", jinja_type_name(sought));
        return jinja_find(r, in.string, sought.string, 0) != SIZE_MAX;
    }
    if (in.type == JINJA_DICT) {
        if (!jinja_hashable(r, sought))
            jinja_fail(r, "a %s can't be a key", jinja_type_name(sought));
        return jinja_get(r, in.dict, sought) != NULL;
    }
    const struct jinja_list *all = jinja_items(r, in);
    EACH (const struct jinja_value, item, all->items) {
        jinja_step(r, 0);
        if (jinja_equal(r, *item, sought))
            return true;
    }
    return false;
}
