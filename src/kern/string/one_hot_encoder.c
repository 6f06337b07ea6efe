/* one_hot_encoder: a row per element, with a one at the position of its category. */
#include "kern/string/string.h"

#include <string.h>

/* The position of an element's category; -1: none. Floats are truncated. */
static int64_t category_of(enum dtype t, const void *element, const struct string_key *key, int64_t n)
{
    double d;
    int64_t whole;
    if (!dtype_is_float(t))
        return string_key_place(key, n, string_key_bits(t, element));
    convert_to_f64(t, element, 1, &d);
    whole = d > -0x1p63 && d < 0x1p63 ? (int64_t)d : 0;
    return d > -0x1p63 && d < 0x1p63 ? string_key_place(key, n, whole) : -1;
}

/* Categories are integers or strings. */
void kern_OneHotEncoder(struct kcall *call)
{
    const struct tensor *x = &call->in[0];
    const int64_t *cats = NULL;
    bool strings = x->dtype == DT_STRING;
    int n;
    if (strings)
        cats = string_numbers(call, "cats_strings", ROOM_A, &n);
    else
        n = attr_ints(call->graph, call->node, "cats_int64s", &cats);
    const struct string_key *key = string_sorted_keys(call, strings ? DT_STRING : DT_I64, cats, n);
    float *y = call->out[0].data;
    memset(y, 0, tensor_bytes(&call->out[0]));
    for (int64_t i = 0; i < tensor_elements(x); i++) {
        int64_t at = category_of(x->dtype, element_at_const(x->data, dtype_size(x->dtype), i), key, n);
        if (at >= 0)
            y[i * n + at] = 1;
        else if (!attr_int(call->node, "zeros"))
            fail("%s: element %lld is in no category", kcall_where(call), (long long)i);
    }
}
