/* label_encoder: each element's place in a list of keys gives its value. Keys are compared as 8 bytes: integers, numbers of strings, and
 * floats as float64, of which all NaNs are one and both zeros are one. Of equal keys the first counts. */
#include "kern/string/string.h"

#include <stdlib.h>
#include <string.h>

struct key {
    int64_t bits;
    int64_t at;
};

static int by_key(const void *pa, const void *pb)
{
    const struct key *a = pa, *b = pb;
    return a->bits != b->bits ? (a->bits > b->bits) - (a->bits < b->bits) : (a->at > b->at) - (a->at < b->at);
}

static int64_t bits_of(enum dtype t, const void *element)
{
    int64_t bits;
    double d;
    if (!dtype_is_float(t)) {
        if (t == DT_STRING)
            memcpy(&bits, element, sizeof bits);
        else
            convert_to_i64(t, element, 1, &bits);
        return bits;
    }
    convert_to_f64(t, element, 1, &d);
    if (d != d)
        return INT64_MAX;
    d = d == 0 ? 0 : d;
    memcpy(&bits, &d, sizeof bits);
    return bits;
}

/* A list of an attribute as elements of type t, in room. */
static const void *list_of(const struct kcall *call, const char *kind, enum dtype t, enum room room, int64_t *n)
{
    char name[32];
    (void)snprintf(name, sizeof name, "%s_tensor", kind);
    struct constant *c = node_attr(call->node, name)->tensor;
    int count = 0;
    if (c) {
        *n = constant_elements(c);
        return constant_data(c, name);
    }
    (void)snprintf(name, sizeof name, "%s_%s", kind, t == DT_STRING ? "strings" : t == DT_F32 ? "floats" : "int64s");
    const void *at = NULL;
    const double *floats;
    const int64_t *ints;
    if (t == DT_STRING) {
        at = string_numbers(call, name, room, &count);
    } else if (t == DT_F32 && attr_is_set(call->node, name)) {
        count = attr_floats(call->node, name, &floats);
        float *f = kenv_room(call->env, room, kcall_bytes(call, count + 1, sizeof *f));
        convert_from_f64(DT_F32, floats, count, f);
        at = f;
    } else if (attr_is_set(call->node, name)) {
        count = attr_ints(call->graph, call->node, name, &ints);
        at = ints;
    }
    *n = count;
    return at;
}

/* One element of the type of the results. */
static void put_default(const struct kcall *call, enum dtype t, void *to)
{
    struct constant *c = node_attr(call->node, "default_tensor")->tensor;
    if (c) {
        memcpy(to, constant_data(c, "default_tensor"), dtype_size(t));
    } else if (t == DT_STRING) {
        const char *text = attr_string(call->node, "default_string");
        memcpy(to, &(int64_t){string_number(text, strlen(text))}, sizeof(int64_t));
    } else if (dtype_is_float(t)) {
        convert_from_f64(t, &(double){attr_float(call->node, "default_float")}, 1, to);
    } else {
        convert_from_i64(t, &(int64_t){attr_int(call->node, "default_int64")}, 1, to);
    }
}

struct labels {
    const struct key *key;
    int64_t keys;
    const char *value; /* NULL: the place of the key is the value */
    uint8_t otherwise[8];
};

static void label_of(const struct labels *l, int64_t bits, size_t size, void *to)
{
    int64_t lo = 0, hi = l->keys;
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        if (l->key[mid].bits < bits)
            lo = mid + 1;
        else
            hi = mid;
    }
    const void *from = l->otherwise;
    if (lo < l->keys && l->key[lo].bits == bits)
        from = l->value ? (const void *)(l->value + size * (size_t)l->key[lo].at) : &l->key[lo].at;
    memcpy(to, from, size);
}

static const struct key *sorted_keys(const struct kcall *call, enum dtype t, const void *keys, int64_t n)
{
    struct key *key = kenv_room(call->env, ROOM_KERNEL, kcall_bytes(call, n + 1, sizeof *key));
    for (int64_t i = 0; i < n; i++)
        key[i] = (struct key){keys ? bits_of(t, element_at_const(keys, dtype_size(t), i)) : i, i};
    if (n > 1)
        qsort(key, (size_t)n, sizeof *key, by_key);
    return key;
}

/* Version 1 has one list of strings: a string becomes its place there, and a place its string. */
static struct labels class_labels(const struct kcall *call, enum dtype from)
{
    int n;
    const int64_t *classes = string_numbers(call, "classes_strings", ROOM_A, &n);
    bool named = from == DT_STRING;
    return (struct labels){sorted_keys(call, from, named ? classes : NULL, n), n, named ? NULL : (const char *)classes, {0}};
}

void kern_LabelEncoder(struct kcall *call)
{
    const struct tensor *x = &call->in[0];
    const struct tensor *y = &call->out[0];
    struct labels l;
    if (attr_is_set(call->node, "classes_strings")) {
        l = class_labels(call, x->dtype);
    } else {
        int64_t keys, values;
        const void *key = list_of(call, "keys", x->dtype, ROOM_A, &keys);
        l = (struct labels){.value = list_of(call, "values", y->dtype, ROOM_B, &values)};
        l.keys = keys < values ? keys : values;
        l.key = sorted_keys(call, x->dtype, key, l.keys);
    }
    put_default(call, y->dtype, l.otherwise);
    size_t from = dtype_size(x->dtype), to = dtype_size(y->dtype);
    for (int64_t i = 0; i < tensor_elements(x); i++)
        label_of(&l, bits_of(x->dtype, element_at_const(x->data, from, i)), to, element_at(y->data, to, i));
}
