/* json: reads hand-written JSON files (input.h). jansson bounds the depth; this file bounds the size. */
#include "plan/input/input.h"

#include <stdlib.h>
#include <string.h>

enum { LARGEST_FILE = 1 << 28 };

static const char *const kinds[] = {
    [JSON_OBJECT] = "an object", [JSON_ARRAY] = "an array", [JSON_STRING] = "a string", [JSON_INTEGER] = "an integer",
    [JSON_REAL] = "a number",    [JSON_TRUE] = "true",      [JSON_FALSE] = "false",     [JSON_NULL] = "null",
};

const char *json_kind(const json_t *v)
{
    return v ? kinds[json_typeof(v)] : "nothing";
}

const json_t *json_token_text(const json_t *v)
{
    const json_t *text = json_is_object(v) ? json_object_get(v, "content") : v;
    return json_is_string(text) ? text : NULL;
}

json_t *json_parse(const char *path, const char *text, size_t bytes)
{
    json_error_t error;
    json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
    if (!root)
        fail("%s:%d:%d: expected JSON, found: %s", path, error.line, error.column, error.text);
    if (!json_is_object(root))
        fail("%s: expected a JSON object, found %s", path, json_kind(root));
    return root;
}

json_t *json_read(const char *path)
{
    struct map file = map_file(path);
    if (file.bytes > LARGEST_FILE)
        fail("%s: has %zu bytes, expected at most %d", path, file.bytes, LARGEST_FILE);
    json_t *root = json_parse(path, file.at ? (const char *)file.at : "", file.bytes);
    map_close(file);
    return root;
}

void json_known_keys(const char *where, const json_t *object, const char *const *known)
{
    const char *key;
    json_t *value;
    int n = 0;
    while (known[n])
        n++;
    require(n > 0);
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        int near = did_you_mean(key, n, known);
        if (strcmp(known[near], key) != 0)
            fail("%s: unknown key '%s', did you mean '%s'?", where, key, known[near]);
    }
}

json_t *json_member(const char *where, const json_t *object, const char *key, json_type type)
{
    json_t *v = json_object_get(object, key);
    if (v && json_typeof(v) != type)
        fail("%s: expected %s for '%s', found %s", where, kinds[type], key, json_kind(v));
    return v;
}

const char *json_text(struct arena *a, const char *where, const json_t *object, const char *key)
{
    const json_t *v = json_member(where, object, key, JSON_STRING);
    return v ? arena_strdup(a, json_string_value(v)) : NULL;
}

json_t *json_text_of(const char *s)
{
    json_t *t = json_string(s ? s : "");
    return t ? t : json_string_nocheck("(not UTF-8)");
}

json_t *json_sizes(const struct bindings *sizes)
{
    json_t *o = json_object();
    for (int i = 0; i < sizes->list.n; i++)
        json_object_set_new(o, sizes->list.at[i].name, json_integer(sizes->list.at[i].value));
    return o;
}

bool json_sizes_are(const json_t *sizes, const struct bindings *b)
{
    for (int i = 0; i < b->list.n; i++) {
        const json_t *size = json_object_get(sizes, b->list.at[i].name);
        if (size && json_integer_value(size) != b->list.at[i].value)
            return false;
    }
    return true;
}

char *json_dump(struct arena *a, const json_t *v, size_t flags)
{
    char *text = json_dumps(v, flags);
    require(text);
    char *own = arena_printf(a, "%s%s", text, flags & JSON_COMPACT ? "" : "\n");
    free(text);
    return own;
}
