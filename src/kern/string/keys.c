/* keys: looks up elements of any plain type, or strings, in a list. */
#include "kern/string/string.h"

#include <stdlib.h>
#include <string.h>

int64_t string_key_bits(enum dtype t, const void *element)
{
    int64_t bits;
    double d;
    if (t == DT_STRING) {
        memcpy(&bits, element, sizeof bits);
        return bits;
    }
    if (!dtype_is_float(t)) {
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

static int by_key(const void *pa, const void *pb)
{
    const struct string_key *a = pa, *b = pb;
    return a->bits != b->bits ? (a->bits > b->bits) - (a->bits < b->bits) : (a->at > b->at) - (a->at < b->at);
}

const struct string_key *string_sorted_keys(const struct kcall *call, enum dtype t, const void *keys, int64_t n)
{
    struct string_key *key = kenv_room(call->env, ROOM_KERNEL, kcall_bytes(call, n + 1, sizeof *key));
    for (int64_t i = 0; i < n; i++)
        key[i] = (struct string_key){keys ? string_key_bits(t, element_at_const(keys, dtype_size(t), i)) : i, i};
    if (n > 1)
        qsort(key, (size_t)n, sizeof *key, by_key);
    return key;
}

int64_t string_key_place(const struct string_key *key, int64_t n, int64_t bits)
{
    int64_t lo = 0, hi = n;
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        if (key[mid].bits < bits)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < n && key[lo].bits == bits ? key[lo].at : -1;
}
