/* The table of filters of iterables. Jinja2's generators become iterators. */
#include "jinja/jinja.h"

#include <string.h>

#define FILTER(name) static struct jinja_value name(struct jinja_run *r, const struct jinja_call *c)

static const struct jinja_value absent = {.type = JINJA_ABSENT};

/* The key by which items are compared; ignores case unless case_sensitive. */
static struct jinja_value key_of(struct jinja_run *r, struct jinja_value item, struct jinja_value attribute, bool sensitive)
{
    if (attribute.type != JINJA_ABSENT && attribute.type != JINJA_NONE)
        item = jinja_path(r, item, attribute, absent);
    if (item.type != JINJA_STRING || sensitive)
        return item;
    struct jinja_builder b = {.run = r};
    jinja_put_case(&b, item.string, JINJA_LOWER);
    return jinja_built(&b);
}

/* ---- order ------------------------------------------------------------------------------------------------------------- */

static bool before(struct jinja_run *r, const struct jinja_list *keys, int a, int b)
{
    jinja_step(r, 0);
    return jinja_compare(r, keys->items.at[a], keys->items.at[b], "<") < 0;
}

/* Merges two sorted halves; stable in both directions. */
static void merge(struct jinja_run *r, const struct jinja_list *keys, int *at, int *spare, int half, int n, bool reverse)
{
    int i = 0, j = half, k = 0;
    while (i < half && j < n) {
        bool second = reverse ? before(r, keys, at[i], at[j]) : before(r, keys, at[j], at[i]);
        spare[k++] = second ? at[j++] : at[i++];
    }
    while (i < half)
        spare[k++] = at[i++];
    while (j < n)
        spare[k++] = at[j++];
    memcpy(at, spare, (size_t)n * sizeof *at);
}

static void sort(struct jinja_run *r, const struct jinja_list *keys, int *at, int *spare, int n, bool reverse)
{
    if (n < 2)
        return;
    sort(r, keys, at, spare, n / 2, reverse);
    sort(r, keys, at + n / 2, spare, n - n / 2, reverse);
    merge(r, keys, at, spare, n / 2, n, reverse);
}

const int *jinja_sorted(struct jinja_run *r, const struct jinja_list *keys, bool reverse)
{
    int n = keys->items.n;
    int *at = jinja_take(r, (size_t)n + 1, sizeof *at), *spare = jinja_take(r, (size_t)n + 1, sizeof *spare);
    for (int i = 0; i < n; i++)
        at[i] = i;
    sort(r, keys, at, spare, n, reverse);
    return at;
}

static struct jinja_value in_order(struct jinja_run *r, const struct jinja_list *items, const struct jinja_list *keys, bool reverse)
{
    struct jinja_value out = jinja_list(r, JINJA_LIST);
    const int *at = jinja_sorted(r, keys, reverse);
    for (int i = 0; i < items->items.n; i++)
        jinja_append(r, out, items->items.at[at[i]]);
    return out;
}

/* The key of several attributes, "a,b", is a list. */
static struct jinja_value keys_of(struct jinja_run *r, struct jinja_value item, struct jinja_value attributes, bool sensitive)
{
    if (attributes.type != JINJA_STRING || !memchr(attributes.string->at, ',', attributes.string->n))
        return key_of(r, item, attributes, sensitive);
    struct jinja_value out = jinja_list(r, JINJA_LIST);
    const struct jinja_string *s = attributes.string;
    for (size_t from = 0, to; from <= s->n; from = to + 1) {
        for (to = from; to < s->n && s->at[to] != ','; to++)
            continue;
        jinja_append(r, out, key_of(r, item, jinja_string(r, jinja_piece(s, from, to)), sensitive));
    }
    return out;
}

/* sort(reverse, case_sensitive, attribute) */
FILTER(filter_sort)
{
    const struct jinja_list *items = jinja_items(r, c->self);
    struct jinja_value keys = jinja_list(r, JINJA_LIST);
    EACH (const struct jinja_value, item, items->items)
        jinja_append(r, keys, keys_of(r, *item, c->arg[2], jinja_arg_truth(c, 1, false)));
    return in_order(r, items, keys.list, jinja_arg_truth(c, 0, false));
}

static struct jinja_value pairs_of(struct jinja_run *r, const struct jinja_dict *d, enum jinja_type type)
{
    struct jinja_value out = jinja_list(r, type);
    EACH (const struct jinja_pair, p, d->pairs)
        jinja_append(r, out, jinja_tuple2(r, p->key, p->value));
    return out;
}

/* dictsort(case_sensitive, by, reverse) */
FILTER(filter_dictsort)
{
    bool by_value = false;
    if (c->self.type != JINJA_DICT)
        jinja_fail(r, "the filter 'dictsort' is of a %s, expected a dict", jinja_type_name(c->self));
    if (c->arg[1].type != JINJA_ABSENT) {
        by_value = jinja_is(jinja_arg_string(r, c, 1), "value");
        if (!by_value && !jinja_is(c->arg[1].string, "key"))
            jinja_fail(r, "'dictsort' is by 'key' or by 'value'");
    }
    struct jinja_value keys = jinja_list(r, JINJA_LIST);
    EACH (const struct jinja_pair, p, c->self.dict->pairs)
        jinja_append(r, keys, key_of(r, by_value ? p->value : p->key, absent, jinja_arg_truth(c, 0, false)));
    return in_order(r, pairs_of(r, c->self.dict, JINJA_LIST).list, keys.list, jinja_arg_truth(c, 2, false));
}

/* groupby(attribute, default, case_sensitive) */
FILTER(filter_groupby)
{
    bool sensitive = jinja_arg_truth(c, 2, false);
    const struct jinja_list *items = jinja_items(r, c->self);
    struct jinja_value names = jinja_list(r, JINJA_LIST), keys = jinja_list(r, JINJA_LIST), out = jinja_list(r, JINJA_LIST), group = absent;
    EACH (const struct jinja_value, item, items->items) {
        struct jinja_value name = jinja_path(r, *item, c->arg[0], jinja_given(c, 1) ? c->arg[1] : absent);
        jinja_append(r, names, name);
        jinja_append(r, keys, key_of(r, name, absent, sensitive));
    }
    const int *at = jinja_sorted(r, keys.list, false);
    for (int i = 0; i < items->items.n; i++) {
        if (i == 0 || !jinja_equal(r, keys.list->items.at[at[i]], keys.list->items.at[at[i - 1]])) {
            group = jinja_list(r, JINJA_LIST);
            struct jinja_value both = jinja_tuple2(r, names.list->items.at[at[i]], group);
            both.list->name = "group";
            jinja_append(r, out, both);
        }
        jinja_append(r, group, items->items.at[at[i]]);
    }
    return out;
}

/* unique(case_sensitive, attribute) */
FILTER(filter_unique)
{
    struct jinja_value seen = jinja_dict(r), out = jinja_list(r, JINJA_ITERATOR);
    const struct jinja_list *items = jinja_items(r, c->self);
    EACH (const struct jinja_value, item, items->items) {
        struct jinja_value key = key_of(r, *item, c->arg[1], jinja_arg_truth(c, 0, false));
        if (jinja_hashable(r, key) && jinja_get(r, seen.dict, key))
            continue;
        jinja_set(r, seen.dict, key, JINJA_VALUE_NONE);
        jinja_append(r, out, *item);
    }
    return out;
}

/* min and max(case_sensitive, attribute): the first of equals. */
static struct jinja_value extreme(struct jinja_run *r, const struct jinja_call *c, bool least)
{
    struct jinja_value best = absent, best_key = absent;
    const struct jinja_list *items = jinja_items(r, c->self);
    EACH (const struct jinja_value, item, items->items) {
        struct jinja_value key = key_of(r, *item, c->arg[1], jinja_arg_truth(c, 0, false));
        int order = best.type == JINJA_ABSENT ? 0 : jinja_compare(r, key, best_key, least ? "<" : ">");
        if (best.type == JINJA_ABSENT || (least ? order < 0 : order == 1)) {
            best = *item;
            best_key = key;
        }
    }
    return best.type == JINJA_ABSENT ? jinja_undefined(r, "", jinja_literal("there is no item to choose from")) : best;
}

FILTER(filter_min)
{
    return extreme(r, c, true);
}

FILTER(filter_max)
{
    return extreme(r, c, false);
}

/* ---- all items --------------------------------------------------------------------------------------------------------- */

/* join(d, attribute) */
FILTER(filter_join)
{
    struct jinja_builder b = {.run = r};
    const struct jinja_list *items = jinja_items(r, c->self);
    for (int i = 0; i < items->items.n; i++) {
        struct jinja_value item = items->items.at[i];
        if (i && c->arg[0].type != JINJA_ABSENT)
            jinja_write(&b, c->arg[0]);
        jinja_write(&b, jinja_given(c, 1) ? jinja_path(r, item, c->arg[1], absent) : item);
    }
    return jinja_built(&b);
}

/* sum(attribute, start) */
FILTER(filter_sum)
{
    struct jinja_value total = c->arg[1].type == JINJA_ABSENT ? jinja_int(0) : c->arg[1];
    if (total.type == JINJA_STRING)
        jinja_fail(r, "the filter 'sum' does not join strings");
    const struct jinja_list *items = jinja_items(r, c->self);
    EACH (const struct jinja_value, item, items->items)
        total = jinja_operate(r, "+", total, jinja_given(c, 0) ? jinja_path(r, *item, c->arg[0], absent) : *item);
    return total;
}

FILTER(filter_list)
{
    struct jinja_value out = jinja_list(r, JINJA_LIST);
    const struct jinja_list *items = jinja_items(r, c->self);
    EACH (const struct jinja_value, item, items->items)
        jinja_append(r, out, *item);
    return out;
}

FILTER(filter_items)
{
    if (c->self.type == JINJA_UNDEFINED)
        return jinja_list(r, JINJA_ITERATOR);
    if (c->self.type != JINJA_DICT)
        jinja_fail(r, "the filter 'items' is of a %s, expected a dict", jinja_type_name(c->self));
    return pairs_of(r, c->self.dict, JINJA_ITERATOR);
}

FILTER(filter_first)
{
    if (c->self.type == JINJA_ITERATOR && c->self.list->from < c->self.list->items.n)
        return c->self.list->items.at[c->self.list->from++];
    const struct jinja_list *items = jinja_items(r, c->self);
    return items->items.n ? items->items.at[0] : jinja_undefined(r, "", jinja_literal("there is no first item: there is none"));
}

FILTER(filter_last)
{
    if (c->self.type == JINJA_ITERATOR)
        jinja_fail(r, "a generator has no last item");
    const struct jinja_list *items = jinja_items(r, c->self);
    return items->items.n ? items->items.at[items->items.n - 1]
                          : jinja_undefined(r, "", jinja_literal("there is no last item: there is none"));
}

FILTER(filter_reverse)
{
    const struct jinja_list *items = jinja_items(r, c->self);
    bool is_string = c->self.type == JINJA_STRING;
    struct jinja_builder b = {.run = r};
    struct jinja_value out = jinja_list(r, c->self.type == JINJA_ITERATOR ? JINJA_LIST : JINJA_ITERATOR);
    for (int i = items->items.n; i-- > 0;) {
        if (is_string)
            jinja_put(&b, items->items.at[i].string);
        else
            jinja_append(r, out, items->items.at[i]);
    }
    return is_string ? jinja_built(&b) : out;
}

static int64_t count_of(struct jinja_run *r, const struct jinja_call *c)
{
    int64_t n = jinja_arg_int(r, c, 0, 0);
    if (n < 1 || n > JINJA_RANGE)
        jinja_fail(r, "the filter '%s' is given %lld, expected 1 to %d", c->name, (long long)n, JINJA_RANGE);
    return n;
}

/* batch(linecount, fill_with) */
FILTER(filter_batch)
{
    int64_t n = count_of(r, c);
    struct jinja_value out = jinja_list(r, JINJA_ITERATOR), row = absent;
    const struct jinja_list *items = jinja_items(r, c->self);
    EACH (const struct jinja_value, item, items->items) {
        if (row.type == JINJA_ABSENT || row.list->items.n == n)
            jinja_append(r, out, row = jinja_list(r, JINJA_LIST));
        jinja_append(r, row, *item);
    }
    while (row.type != JINJA_ABSENT && jinja_given(c, 1) && row.list->items.n < n)
        jinja_append(r, row, c->arg[1]);
    return out;
}

/* slice(slices, fill_with) */
FILTER(filter_slice)
{
    int64_t slices = count_of(r, c), at = 0;
    const struct jinja_list *items = jinja_items(r, c->self);
    struct jinja_value out = jinja_list(r, JINJA_ITERATOR);
    for (int64_t i = 0; i < slices; i++) {
        bool longer = i < items->items.n % slices;
        struct jinja_value part = jinja_list(r, JINJA_LIST);
        for (int64_t k = 0; k < items->items.n / slices + longer; k++)
            jinja_append(r, part, items->items.at[at++]);
        if (jinja_given(c, 1) && !longer)
            jinja_append(r, part, c->arg[1]);
        jinja_append(r, out, part);
    }
    return out;
}

/* ---- map and select ------------------------------------------------------------------------------------------------------ */

/* The arguments after the first n, and the named ones. */
static struct jinja_arguments behind(struct jinja_run *r, const struct jinja_call *c, int n)
{
    struct jinja_arguments out = {.named = c->named};
    jinja_charge(r, (size_t)c->more * 2 * sizeof(struct jinja_value) + 128);
    for (int i = n; i < c->more; i++)
        VEC_PUSH(r->arena, &out.list, c->rest[i]);
    return out;
}

static const struct jinja_callable *inner(struct jinja_run *r, struct jinja_value name, const char *what)
{
    const struct jinja_callable *row = NULL;
    if (name.type == JINJA_STRING)
        row = *what == 'f' ? jinja_filter(name.string) : jinja_test(name.string);
    if (!row)
        jinja_fail(r, "the %s '%.*s' is not supported", what, (int)(jinja_text_of(r, name)->n % 100), jinja_text_of(r, name)->at);
    return row;
}

static struct jinja_value map_attribute(struct jinja_run *r, const struct jinja_call *c, const struct jinja_list *items)
{
    struct jinja_value out = jinja_list(r, JINJA_ITERATOR), path = absent, otherwise = absent;
    EACH (const struct jinja_pair, p, c->named->pairs) {
        if (jinja_is(p->key.string, "attribute"))
            path = p->value;
        else if (jinja_is(p->key.string, "default"))
            otherwise = p->value.type == JINJA_NONE ? absent : p->value;
        else
            path = absent;
    }
    if (path.type == JINJA_ABSENT)
        jinja_fail(r, "the filter 'map' takes the name of a filter, or 'attribute' and 'default'");
    EACH (const struct jinja_value, item, items->items)
        jinja_append(r, out, jinja_path(r, *item, path, otherwise));
    return out;
}

FILTER(filter_map)
{
    struct jinja_value out = jinja_list(r, JINJA_ITERATOR);
    if (!jinja_truth(c->self))
        return out;
    const struct jinja_list *items = jinja_items(r, c->self);
    if (c->more == 0)
        return map_attribute(r, c, items);
    const struct jinja_callable *row = inner(r, c->rest[0], "filter");
    struct jinja_arguments arguments = behind(r, c, 1);
    EACH (const struct jinja_value, item, items->items)
        jinja_append(r, out, jinja_apply(r, "filter", row, *item, &arguments));
    return out;
}

/* Items for which, or for whose attribute, a test holds (or fails); without a test, their truth. */
static struct jinja_value selected(struct jinja_run *r, const struct jinja_call *c, bool of_attribute, bool holds)
{
    struct jinja_value out = jinja_list(r, JINJA_ITERATOR);
    if (!jinja_truth(c->self))
        return out;
    if (of_attribute && c->more == 0)
        jinja_fail(r, "the filter '%s' lacks the name of an attribute", c->name);
    const struct jinja_callable *row = c->more > of_attribute ? inner(r, c->rest[of_attribute], "test") : NULL;
    struct jinja_arguments arguments = behind(r, c, of_attribute + 1);
    const struct jinja_list *items = jinja_items(r, c->self);
    EACH (const struct jinja_value, item, items->items) {
        struct jinja_value v = of_attribute ? jinja_path(r, *item, c->rest[0], absent) : *item;
        if (jinja_truth(row ? jinja_apply(r, "test", row, v, &arguments) : v) == holds)
            jinja_append(r, out, *item);
    }
    return out;
}

FILTER(filter_select)
{
    return selected(r, c, false, true);
}

FILTER(filter_reject)
{
    return selected(r, c, false, false);
}

FILTER(filter_selectattr)
{
    return selected(r, c, true, true);
}

FILTER(filter_rejectattr)
{
    return selected(r, c, true, false);
}

const struct jinja_callable jinja_sequence_filters[] = {{"batch", "linecount fill_with", 1, filter_batch, 0},
                                                        {"dictsort", "case_sensitive by reverse", 0, filter_dictsort, 0},
                                                        {"first", "", 0, filter_first, 0},
                                                        {"groupby", "attribute default case_sensitive", 1, filter_groupby, 0},
                                                        {"items", "", 0, filter_items, 0},
                                                        {"join", "d attribute", 0, filter_join, 0},
                                                        {"last", "", 0, filter_last, 0},
                                                        {"list", "", 0, filter_list, 0},
                                                        {"map", "*", 0, filter_map, 0},
                                                        {"max", "case_sensitive attribute", 0, filter_max, 0},
                                                        {"min", "case_sensitive attribute", 0, filter_min, 0},
                                                        {"reject", "*", 0, filter_reject, 0},
                                                        {"rejectattr", "*", 0, filter_rejectattr, 0},
                                                        {"reverse", "", 0, filter_reverse, 0},
                                                        {"select", "*", 0, filter_select, 0},
                                                        {"selectattr", "*", 0, filter_selectattr, 0},
                                                        {"slice", "slices fill_with", 1, filter_slice, 0},
                                                        {"sort", "reverse case_sensitive attribute", 0, filter_sort, 0},
                                                        {"sum", "attribute start", 0, filter_sum, 0},
                                                        {"unique", "case_sensitive attribute", 0, filter_unique, 0}};
const int jinja_sequence_filter_count = (int)(sizeof jinja_sequence_filters / sizeof *jinja_sequence_filters);
