/* label_encoder: maps each element to a value by its position in a list of keys; the first of equal keys counts. */
#include "kern/string/string.h"

#include <string.h>

static bool has_tensors(const struct kcall *call)
{
    return strcmp(call->node->optype, "LabelEncoder") == 0;
}

/* An attribute's list as elements of type t, in scratch. */
static const void *list_of(const struct kcall *call, const char *kind, enum dtype t, enum room room, int64_t *n)
{
    char name[32];
    (void)snprintf(name, sizeof name, "%s_tensor", kind);
    struct constant *c = has_tensors(call) ? node_attr(call->node, name)->tensor : NULL;
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
    struct constant *c = has_tensors(call) ? node_attr(call->node, "default_tensor")->tensor : NULL;
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
    const struct string_key *key;
    int64_t keys;
    const char *value; /* NULL: the value is the key's position */
    uint8_t otherwise[8];
};

static void label_of(const struct labels *l, int64_t bits, size_t size, void *to)
{
    int64_t at = string_key_place(l->key, l->keys, bits);
    const void *from = at < 0 ? (const void *)l->otherwise : l->value ? (const void *)(l->value + size * (size_t)at) : &at;
    memcpy(to, from, size);
}

/* Version 1 has one list of strings: maps a string to its position, and a position to its string. */
static struct labels class_labels(const struct kcall *call, enum dtype from)
{
    int n;
    const int64_t *classes = string_numbers(call, "classes_strings", ROOM_A, &n);
    bool named = from == DT_STRING;
    return (struct labels){string_sorted_keys(call, from, named ? classes : NULL, n), n, named ? NULL : (const char *)classes, {0}};
}

static void put_labels(const struct kcall *call, struct labels *l)
{
    const struct tensor *x = &call->in[0];
    const struct tensor *y = &call->out[0];
    size_t from = dtype_size(x->dtype), to = dtype_size(y->dtype);
    put_default(call, y->dtype, l->otherwise);
    for (int64_t i = 0; i < tensor_elements(x); i++)
        label_of(l, string_key_bits(x->dtype, element_at_const(x->data, from, i)), to, element_at(y->data, to, i));
}

static struct labels labels_of(const struct kcall *call, const char *from, const char *to)
{
    enum dtype key = call->in[0].dtype;
    struct labels l = {0};
    int64_t keys, values;
    const void *list = list_of(call, from, key, ROOM_A, &keys);
    l.value = list_of(call, to, call->out[0].dtype, ROOM_B, &values);
    l.keys = keys < values ? keys : values;
    l.key = string_sorted_keys(call, key, list, l.keys);
    return l;
}

void kern_LabelEncoder(struct kcall *call)
{
    struct labels l = attr_is_set(call->node, "classes_strings") ? class_labels(call, call->in[0].dtype)
                                                                 : labels_of(call, "keys", "values");
    put_labels(call, &l);
}

/* Two lists that map to each other. */
void kern_CategoryMapper(struct kcall *call)
{
    struct labels l = labels_of(call, "cats", "cats");
    put_labels(call, &l);
}
