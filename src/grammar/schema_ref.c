/* schema_ref: the target of a schema's $ref, and whether two schemas have a common value. */
#include "grammar/grammar.h"

#include <string.h>

/* ---- pointers within the schema: RFC 6901 ---- */

static int hex(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* A part of a pointer, unescaped. */
static const char *part_of(struct arena *a, const char *at, size_t n)
{
    char *out = arena_alloc(a, n + 1);
    size_t to = 0;
    for (size_t i = 0; i < n; i++) {
        char c = at[i];
        if (c == '%' && i + 2 < n && hex(at[i + 1]) >= 0 && hex(at[i + 2]) >= 0) {
            c = (char)(hex(at[i + 1]) * 16 + hex(at[i + 2]));
            i += 2;
        } else if (c == '~' && i + 1 < n && (at[i + 1] == '0' || at[i + 1] == '1'))
            c = at[++i] == '0' ? '~' : '/';
        out[to++] = c;
    }
    return out;
}

static const json_t *member_at(const json_t *v, const char *part)
{
    int64_t i;
    if (json_is_array(v))
        return i64_parse(part, 0, INT32_MAX, &i) ? json_array_get(v, (size_t)i) : NULL;
    return json_object_get(v, part);
}

static const json_t *find(struct schema_reader *r, const char *pointer)
{
    const json_t *v = r->root;
    if (*pointer++ != '#')
        return NULL;
    while (*pointer == '/' && v) {
        size_t n = strcspn(++pointer, "/");
        v = member_at(v, part_of(r->arena, pointer, n));
        pointer += n;
    }
    return *pointer ? NULL : v;
}

const json_t *schema_resolved(struct schema_reader *r, const json_t *schema, const char **path)
{
    enum { MOST_STEPS = 32 };
    const json_t *ref;
    for (int i = 0; i < MOST_STEPS && (ref = schema_member(schema, "$ref")); i++) {
        const char *pointer = json_string_value(ref);
        schema = pointer ? find(r, pointer) : NULL;
        if (!schema) {
            schema_refuse(r, *path,
                          arena_printf(r->arena, "there is no '%.100s': a $ref leads to a part of the same schema, such as #/$defs/NAME",
                                       pointer ? pointer : "$ref"));
            return NULL;
        }
        *path = pointer;
    }
    if (schema_member(schema, "$ref")) {
        schema_refuse(r, *path, "its $ref leads to others without an end");
        return NULL;
    }
    return schema;
}

/* ---- schemas without a common value ---- */

/* The types as a text of one letter each; integers are numbers. */
static bool has_type(const json_t *schema, const char *name)
{
    const json_t *type = schema_member(schema, "type"), *one;
    size_t i;
    json_array_foreach(type, i, one)
    {
        if (strcmp(json_string_value(one) ? json_string_value(one) : "", name) == 0)
            return true;
    }
    return json_is_string(type) && strcmp(json_string_value(type), name) == 0;
}

static bool share_type(const json_t *x, const json_t *y)
{
    static const char *const names[] = {"object", "array", "string", "boolean", "null"};
    bool number = has_type(x, "number") || has_type(x, "integer"), other = has_type(y, "number") || has_type(y, "integer");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (has_type(x, names[i]) && has_type(y, names[i]))
            return true;
    return (number && other) || !schema_member(x, "type") || !schema_member(y, "type");
}

static bool is_required(const json_t *schema, const char *key)
{
    const json_t *one;
    size_t i;
    json_array_foreach(schema_member(schema, "required"), i, one)
    {
        if (json_is_string(one) && strcmp(json_string_value(one), key) == 0)
            return true;
    }
    return false;
}

/* The values that a property may have, if the schema lists them; the caller releases them. */
static json_t *values_of(const json_t *property)
{
    const json_t *one = schema_member(property, "const"), *list = schema_member(property, "enum");
    return one ? json_pack("[O]", one) : json_is_array(list) ? json_incref((json_t *)(uintptr_t)list) : NULL;
}

static bool share_value(const json_t *x, const json_t *y)
{
    json_t *p = values_of(x), *q = values_of(y), *v, *w;
    size_t i, k;
    bool share = !p || !q;
    json_array_foreach(p, i, v)
    {
        json_array_foreach(q, k, w) share |= json_equal(v, w) == 1;
    }
    json_decref(p);
    json_decref(q);
    return share;
}

bool schema_disjoint(struct schema_reader *r, const json_t *x, const json_t *y, const char *path)
{
    const char *key, *p = path, *q = path;
    json_t *property;
    x = schema_resolved(r, x, &p);
    y = schema_resolved(r, y, &q);
    if (!x || !y || !share_type(x, y))
        return x && y;
    if (!share_value(x, y))
        return true;
    bool objects = has_type(x, "object") && json_is_string(schema_member(x, "type"));
    json_object_foreach((json_t *)(uintptr_t)schema_member(x, "properties"), key, property)
    {
        const json_t *other = schema_member(schema_member(y, "properties"), key);
        if (objects && other && is_required(x, key) && is_required(y, key) && !share_value(property, other))
            return true;
    }
    return false;
}
