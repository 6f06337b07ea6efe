/* Global functions, the objects they make, and methods of all values but strings. Changing a value is refused, as in Jinja2's immutable
 * sandbox. */
#include "jinja/jinja.h"

#include <string.h>
#include <sys/time.h>
#include <time.h>

#define FUNCTION(name) static struct jinja_value name(struct jinja_run *r, const struct jinja_call *c)
#define METHOD(name) FUNCTION(name)

/* ---- functions --------------------------------------------------------------------------------------------------------- */

FUNCTION(function_range)
{
    bool one = c->arg[1].type == JINJA_ABSENT;
    int64_t first = one ? 0 : jinja_arg_int(r, c, 0, 0), last = jinja_arg_int(r, c, one ? 0 : 1, 0), step = jinja_arg_int(r, c, 2, 1);
    if (step == 0)
        jinja_fail(r, "the step of a range is 0");
    struct jinja_value out = jinja_list(r, JINJA_RANGE_OF);
    out.list->first = first;
    out.list->last = last;
    out.list->step = step;
    for (int64_t i = first; step > 0 ? i < last : i > last;) {
        if (out.list->items.n == JINJA_RANGE)
            jinja_fail(r, "a range has more than %d items", JINJA_RANGE);
        jinja_append(r, out, jinja_int(i));
        if (!i64_add(i, step, &i))
            break;
    }
    return out;
}

/* A dict from an optional dict or list of pairs, and from named arguments. */
static struct jinja_value dict_from(struct jinja_run *r, const struct jinja_call *c)
{
    struct jinja_value out = jinja_dict(r);
    if (c->arg[0].type == JINJA_DICT) {
        EACH (const struct jinja_pair, p, c->arg[0].dict->pairs)
            jinja_set(r, out.dict, p->key, p->value);
    } else if (c->arg[0].type != JINJA_ABSENT) {
        const struct jinja_list *items = jinja_items(r, c->arg[0]);
        EACH (const struct jinja_value, item, items->items) {
            const struct jinja_list *pair = jinja_items(r, *item);
            if (pair->items.n != 2)
                jinja_fail(r, "an item of what becomes a dict has %d values, expected 2", pair->items.n);
            jinja_set(r, out.dict, pair->items.at[0], pair->items.at[1]);
        }
    }
    EACH (const struct jinja_pair, p, c->named->pairs)
        jinja_set(r, out.dict, p->key, p->value);
    return out;
}

FUNCTION(function_dict)
{
    return dict_from(r, c);
}

FUNCTION(function_namespace)
{
    struct jinja_value out = dict_from(r, c);
    out.type = JINJA_NAMESPACE;
    return out;
}

FUNCTION(function_cycler)
{
    struct jinja_cycler *made = jinja_take(r, 1, sizeof *made);
    struct jinja_value items = jinja_list(r, JINJA_LIST);
    if (c->more == 0)
        jinja_fail(r, "the function 'cycler' is given no items");
    for (int i = 0; i < c->more; i++)
        jinja_append(r, items, c->rest[i]);
    *made = (struct jinja_cycler){.items = items.list};
    return (struct jinja_value){.type = JINJA_CYCLER, .cycler = made};
}

FUNCTION(function_joiner)
{
    struct jinja_cycler *made = jinja_take(r, 1, sizeof *made);
    struct jinja_value joint = c->arg[0].type == JINJA_ABSENT ? jinja_string_of(r, ", ") : c->arg[0];
    *made = (struct jinja_cycler){.joint = jinja_text_of(r, joint)};
    return (struct jinja_value){.type = JINJA_JOINER, .cycler = made};
}

FUNCTION(function_raise_exception)
{
    const struct jinja_string *s = jinja_text_of(r, c->arg[0]);
    jinja_fail(r, "the template raises: %.*s", (int)jinja_offset(s, 400), s->at);
}

/* Without a time zone, as datetime.now() of Python; %f are microseconds. */
FUNCTION(function_strftime_now)
{
    const struct jinja_string *s = jinja_arg_string(r, c, 0);
    struct jinja_builder b = {.run = r};
    struct timeval now;
    struct tm tm;
    gettimeofday(&now, NULL);
    localtime_r(&now.tv_sec, &tm);
    for (size_t i = 0; i < s->n; i++) {
        struct jinja_string one = jinja_piece(s, i, i + 1);
        char made[256], code[3] = {'%', 0, 0};
        if (s->at[i] != '%' || i + 1 == s->n) {
            jinja_put(&b, &one);
            continue;
        }
        code[1] = s->at[++i];
        if (code[1] == 'f') {
            snprintf(made, sizeof made, "%06ld", (long)now.tv_usec);
            jinja_put_text(&b, made);
        } else if (code[1] != 'z' && code[1] != 'Z') {
            if (!code[1] || !strchr("aAbBcCdDeFgGhHIjklmMnpPrRsStTuUVwWxXyY%", code[1]))
                jinja_fail(r, "the code '%s' of a time is not supported", code);
            jinja_put_bytes(&b, made, strftime(made, sizeof made, code, &tm), false);
        }
    }
    return jinja_built(&b);
}

static const struct jinja_callable functions[] = {{"cycler", "*", 0, function_cycler, 0},
                                                  {"dict", "- *", 0, function_dict, 0},
                                                  {"joiner", "sep", 0, function_joiner, 0},
                                                  {"namespace", "- *", 0, function_namespace, 0},
                                                  {"raise_exception", "message", 1, function_raise_exception, 0},
                                                  {"range", "- - -", 1, function_range, 0},
                                                  {"strftime_now", "format", 1, function_strftime_now, 0}};

const struct jinja_callable *jinja_function(const struct jinja_string *name)
{
    return jinja_row(functions, (int)(sizeof functions / sizeof *functions), name);
}

/* ---- loops and cyclers --------------------------------------------------------------------------------------------------- */

METHOD(loop_cycle)
{
    if (c->more == 0)
        jinja_fail(r, "the method 'cycle' is given no items");
    return c->rest[c->self.loop->index % c->more];
}

METHOD(loop_changed)
{
    struct jinja_value now = jinja_list(r, JINJA_TUPLE);
    for (int i = 0; i < c->more; i++)
        jinja_append(r, now, c->rest[i]);
    bool changed = c->self.loop->changed.type == JINJA_ABSENT || !jinja_equal(r, c->self.loop->changed, now);
    c->self.loop->changed = now;
    return jinja_bool(changed);
}

METHOD(cycler_next)
{
    struct jinja_cycler *y = c->self.cycler;
    struct jinja_value v = y->items->items.at[y->at];
    (void)r;
    y->at = (y->at + 1) % y->items->items.n;
    return v;
}

METHOD(cycler_reset)
{
    (void)r;
    c->self.cycler->at = 0;
    return JINJA_VALUE_NONE;
}

/* ---- lists and dicts ----------------------------------------------------------------------------------------------------- */

METHOD(list_count)
{
    int64_t n = 0;
    EACH (const struct jinja_value, item, c->self.list->items)
        n += jinja_equal(r, *item, c->arg[0]);
    return jinja_int(n);
}

METHOD(list_index)
{
    for (int i = 0; i < c->self.list->items.n; i++)
        if (jinja_equal(r, c->self.list->items.at[i], c->arg[0]))
            return jinja_int(i);
    jinja_fail(r, "the method 'index' does not find what it looks for");
}

METHOD(list_copy)
{
    struct jinja_value out = jinja_list(r, JINJA_LIST);
    EACH (const struct jinja_value, item, c->self.list->items)
        jinja_append(r, out, *item);
    return out;
}

METHOD(dict_get)
{
    if (!jinja_hashable(r, c->arg[0]))
        jinja_fail(r, "a %s can't be a key", jinja_type_name(c->arg[0]));
    const struct jinja_value *v = jinja_get(r, c->self.dict, c->arg[0]);
    return v ? *v : c->arg[1].type == JINJA_ABSENT ? JINJA_VALUE_NONE : c->arg[1];
}

static struct jinja_value view(struct jinja_run *r, const struct jinja_call *c, const char *name, bool keys, bool values)
{
    struct jinja_value out = jinja_list(r, JINJA_VIEW);
    out.list->name = name;
    EACH (const struct jinja_pair, p, c->self.dict->pairs)
        jinja_append(r, out, keys && values ? jinja_tuple2(r, p->key, p->value) : keys ? p->key : p->value);
    return out;
}

METHOD(dict_items)
{
    return view(r, c, "dict_items", true, true);
}

METHOD(dict_keys)
{
    return view(r, c, "dict_keys", true, false);
}

METHOD(dict_values)
{
    return view(r, c, "dict_values", false, true);
}

METHOD(dict_copy)
{
    struct jinja_value out = jinja_dict(r);
    EACH (const struct jinja_pair, p, c->self.dict->pairs)
        jinja_append_pair(r, out, p->key, p->value);
    return out;
}

/* ---- the table --------------------------------------------------------------------------------------------------------- */

#define OF(type) (1u << JINJA_##type)
#define NUMBERS (OF(INT) | OF(BOOL) | OF(FLOAT))
static const struct jinja_callable methods[] = {{"append", "", 0, NULL, OF(LIST)},
                                                {"as_integer_ratio", "", 0, NULL, NUMBERS},
                                                {"bit_count", "", 0, NULL, OF(INT) | OF(BOOL)},
                                                {"bit_length", "", 0, NULL, OF(INT) | OF(BOOL)},
                                                {"changed", "*", 0, loop_changed, OF(LOOP)},
                                                {"clear", "", 0, NULL, OF(LIST) | OF(DICT)},
                                                {"close", "", 0, NULL, OF(ITERATOR)},
                                                {"conjugate", "", 0, NULL, NUMBERS},
                                                {"copy", "", 0, list_copy, OF(LIST)},
                                                {"copy", "", 0, dict_copy, OF(DICT)},
                                                {"count", "-", 1, list_count, OF(LIST) | OF(TUPLE) | OF(RANGE_OF)},
                                                {"cycle", "*", 0, loop_cycle, OF(LOOP)},
                                                {"denominator", "", 0, NULL, OF(INT) | OF(BOOL)},
                                                {"extend", "", 0, NULL, OF(LIST)},
                                                {"fromkeys", "", 0, NULL, OF(DICT)},
                                                {"get", "- -", 1, dict_get, OF(DICT)},
                                                {"hex", "", 0, NULL, OF(FLOAT)},
                                                {"imag", "", 0, NULL, NUMBERS},
                                                {"index", "-", 1, list_index, OF(LIST) | OF(TUPLE) | OF(RANGE_OF)},
                                                {"insert", "", 0, NULL, OF(LIST)},
                                                {"is_integer", "", 0, NULL, NUMBERS},
                                                {"isdisjoint", "", 0, NULL, OF(VIEW)},
                                                {"items", "", 0, dict_items, OF(DICT)},
                                                {"keys", "", 0, dict_keys, OF(DICT)},
                                                {"mapping", "", 0, NULL, OF(VIEW)},
                                                {"next", "", 0, cycler_next, OF(CYCLER)},
                                                {"numerator", "", 0, NULL, OF(INT) | OF(BOOL)},
                                                {"pop", "", 0, NULL, OF(LIST) | OF(DICT)},
                                                {"popitem", "", 0, NULL, OF(DICT)},
                                                {"real", "", 0, NULL, NUMBERS},
                                                {"remove", "", 0, NULL, OF(LIST)},
                                                {"reset", "", 0, cycler_reset, OF(CYCLER)},
                                                {"reverse", "", 0, NULL, OF(LIST)},
                                                {"send", "", 0, NULL, OF(ITERATOR)},
                                                {"setdefault", "", 0, NULL, OF(DICT)},
                                                {"sort", "", 0, NULL, OF(LIST)},
                                                {"start", "", 0, NULL, OF(RANGE_OF)},
                                                {"step", "", 0, NULL, OF(RANGE_OF)},
                                                {"stop", "", 0, NULL, OF(RANGE_OF)},
                                                {"throw", "", 0, NULL, OF(ITERATOR)},
                                                {"to_bytes", "", 0, NULL, OF(INT) | OF(BOOL)},
                                                {"update", "", 0, NULL, OF(DICT)},
                                                {"values", "", 0, dict_values, OF(DICT)}};

const struct jinja_callable *jinja_method(enum jinja_type type, const struct jinja_string *name)
{
    for (size_t i = 0; type != JINJA_STRING && i < sizeof methods / sizeof *methods; i++)
        if ((type == JINJA_ABSENT || methods[i].types >> type & 1) && jinja_is(name, methods[i].name))
            return &methods[i];
    return type == JINJA_STRING || type == JINJA_ABSENT ? jinja_row(jinja_string_methods, jinja_string_method_count, name) : NULL;
}
