/* member: parts of tokenizer.json. */
#include "tokenizer/tokenizer.h"

#include <string.h>

const char *member_string(const char *where, const json_t *object, const char *key, const char *otherwise)
{
    const json_t *v = json_object_get(object, key);
    if (!v || json_is_null(v))
        return otherwise;
    if (!json_is_string(v) || strlen(json_string_value(v)) != json_string_length(v))
        fail("%s: expected a string for '%s'", where, key);
    return json_string_value(v);
}

bool member_bool(const char *where, const json_t *object, const char *key, bool otherwise)
{
    const json_t *v = json_object_get(object, key);
    if (!v || json_is_null(v))
        return otherwise;
    if (!json_is_boolean(v))
        fail("%s: expected true or false for '%s'", where, key);
    return json_is_true(v);
}

struct text member_text_of(struct arena *a, const char *from, size_t n)
{
    char *at = arena_alloc(a, n + 1);
    size_t to = 0;
    for (size_t i = 0; i < n; to++) {
        bool zero = i + 3 <= n && memcmp(from + i, "\xef\xb7\x90", 3) == 0;
        at[to] = zero ? 0 : from[i];
        i += zero ? 3 : 1;
    }
    return (struct text){at, to};
}

struct text member_text(struct arena *a, const json_t *string)
{
    return member_text_of(a, json_string_value(string), json_string_length(string));
}

int member_kind(const char *where, const char *part, const char *type, int n, const void *kinds, size_t stride)
{
    int kind = named_find(type, n, kinds, stride);
    if (kind < 0)
        member_unsupported(where, part, type);
    return kind;
}

const char *member_type(const char *where, const char *part, const json_t *v)
{
    const json_t *type = json_object_get(v, "type");
    if (!json_is_string(type))
        fail("%s: the %s has no type", where, part);
    return json_string_value(type);
}

void member_unsupported(const char *where, const char *part, const char *type)
{
    fail("%s: the %s '%s' is not supported", where, part, type);
}
