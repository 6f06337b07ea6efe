/* schema: values that are valid by a JSON schema, as rules. Unknown keywords are refused by name and path. */
#include "grammar/grammar.h"

#include <math.h>
#include <string.h>

void schema_refuse(struct schema_reader *r, const char *path, const char *sentence)
{
    grammar_refuse(r->build, arena_printf(r->arena, "%.200s: %s", path, sentence));
}

const json_t *schema_member(const json_t *schema, const char *key)
{
    return json_object_get(schema, key);
}

int64_t schema_count(struct schema_reader *r, const json_t *schema, const char *path, const char *key, int64_t otherwise)
{
    const json_t *v = schema_member(schema, key);
    bool good = json_is_integer(v) && json_integer_value(v) >= 0 && json_integer_value(v) <= INT32_MAX;
    if (v && !good)
        schema_refuse(r, path, arena_printf(r->arena, "%s: expected a whole number of 0 or more", key));
    return good ? json_integer_value(v) : otherwise;
}

/* ---- keywords ---- */

enum keyword_use { SAYS_NOTHING, COMBINES, OF_OBJECTS, OF_ARRAYS, OF_STRINGS, OF_NUMBERS };
static const struct keyword {
    const char *name;
    enum keyword_use use;
} keywords[] = {
    {"title", SAYS_NOTHING},
    {"description", SAYS_NOTHING},
    {"default", SAYS_NOTHING},
    {"examples", SAYS_NOTHING},
    {"example", SAYS_NOTHING},
    {"deprecated", SAYS_NOTHING},
    {"readOnly", SAYS_NOTHING},
    {"writeOnly", SAYS_NOTHING},
    {"contentEncoding", SAYS_NOTHING},
    {"contentMediaType", SAYS_NOTHING},
    {"discriminator", SAYS_NOTHING},
    {"$schema", SAYS_NOTHING},
    {"$id", SAYS_NOTHING},
    {"$comment", SAYS_NOTHING},
    {"$defs", SAYS_NOTHING},
    {"definitions", SAYS_NOTHING},
    {"type", SAYS_NOTHING}, /* handled by the remaining types */
    {"$ref", COMBINES},
    {"anyOf", COMBINES},
    {"oneOf", COMBINES},
    {"allOf", COMBINES},
    {"enum", COMBINES},
    {"const", COMBINES},
    {"properties", OF_OBJECTS},
    {"required", OF_OBJECTS},
    {"additionalProperties", OF_OBJECTS},
    {"items", OF_ARRAYS},
    {"prefixItems", OF_ARRAYS},
    {"minItems", OF_ARRAYS},
    {"maxItems", OF_ARRAYS},
    {"uniqueItems", OF_ARRAYS},
    {"pattern", OF_STRINGS},
    {"format", OF_STRINGS},
    {"minLength", OF_STRINGS},
    {"maxLength", OF_STRINGS},
    {"minimum", OF_NUMBERS},
    {"maximum", OF_NUMBERS},
    {"exclusiveMinimum", OF_NUMBERS},
    {"exclusiveMaximum", OF_NUMBERS},
};

/* A schema's first keyword of a use; NULL: none. */
static const char *first_of(const json_t *schema, enum keyword_use use)
{
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
        if (keywords[i].use == use && schema_member(schema, keywords[i].name))
            return keywords[i].name;
    return NULL;
}

static void check_keywords(struct schema_reader *r, const json_t *schema, const char *path)
{
    const char *key;
    json_t *v;
    const char *combines = first_of(schema, COMBINES);
    json_object_foreach((json_t *)(uintptr_t)schema, key, v)
    {
        int i = NAMED_ROW(keywords, key);
        if (i < 0)
            schema_refuse(r, path, arena_printf(r->arena, "'%.100s' is not supported", key));
        else if (combines && keywords[i].use != SAYS_NOTHING && strcmp(key, combines) != 0)
            schema_refuse(r, path, arena_printf(r->arena, "'%s' beside '%s' is not supported", key, combines));
    }
    if (json_is_true(schema_member(schema, "uniqueItems")))
        schema_refuse(r, path, "'uniqueItems' is not supported");
}

/* ---- types ---- */

enum {
    OBJECT = 1,
    ARRAY = 2,
    STRING = 4,
    NUMBER = 8,
    INTEGER = 16,
    BOOLEAN = 32,
    NIL = 64,
    ANY = OBJECT | ARRAY | STRING | NUMBER | BOOLEAN | NIL
};
static const struct type_name {
    const char *name;
    int type;
} types[] = {{"object", OBJECT},   {"array", ARRAY},     {"string", STRING}, {"number", NUMBER},
             {"integer", INTEGER}, {"boolean", BOOLEAN}, {"null", NIL}};

static int type_named(const json_t *v)
{
    const char *name = json_string_value(v);
    int i = name ? NAMED_ROW(types, name) : -1;
    return i < 0 ? 0 : types[i].type;
}

/* The types that a schema allows; without `type`, those that its keywords concern, or all. 0: `type` is not valid. */
static int types_of(const json_t *schema)
{
    const json_t *type = schema_member(schema, "type"), *one;
    size_t i;
    int all = 0;
    json_array_foreach(type, i, one)
    {
        if (!type_named(one))
            return 0;
        all |= type_named(one);
    }
    if (type)
        return json_is_array(type) ? all : type_named(type);
    all |= first_of(schema, OF_OBJECTS) ? OBJECT : 0;
    all |= first_of(schema, OF_ARRAYS) ? ARRAY : 0;
    all |= first_of(schema, OF_STRINGS) ? STRING : 0;
    all |= first_of(schema, OF_NUMBERS) ? NUMBER : 0;
    return all ? all : ANY;
}

static int type_of_value(const json_t *v)
{
    switch (json_typeof(v)) {
    case JSON_OBJECT: return OBJECT;
    case JSON_ARRAY: return ARRAY;
    case JSON_STRING: return STRING;
    case JSON_INTEGER: return INTEGER | NUMBER;
    case JSON_REAL: return floor(json_real_value(v)) < json_real_value(v) ? NUMBER : INTEGER | NUMBER;
    case JSON_NULL: return NIL;
    default: return BOOLEAN;
    }
}

/* ---- simple values ---- */

static void put_literal(struct schema_reader *r, int from, const char *text, int to)
{
    grammar_skip(r->build, grammar_literal(r->build, from, text, strlen(text)), to);
}

static void add_value(struct schema_reader *r, const json_t *schema, const json_t *v, struct grammar_words *words)
{
    const char *text = grammar_json_text(r->arena, v);
    size_t n = strlen(text);
    uint32_t *unit = NEWN(r->arena, uint32_t, n + 1);
    for (size_t i = 0; i < n; i++)
        unit[i] = (unsigned char)text[i];
    if (!schema_member(schema, "type") || (type_of_value(v) & types_of(schema)))
        grammar_words_add(words, unit, n);
}

static void read_values(struct schema_reader *r, const json_t *schema, const char *path, int from, int to)
{
    const json_t *list = schema_member(schema, "enum"), *v;
    struct grammar_words words = {.arena = r->arena};
    size_t i;
    if (list && !json_is_array(list))
        schema_refuse(r, path, "enum: expected a list");
    json_array_foreach(list, i, v) add_value(r, schema, v, &words);
    if (!list)
        add_value(r, schema, schema_member(schema, "const"), &words);
    if (words.node.n == 0)
        schema_refuse(r, path, "no value is left: 'enum' has none of this type");
    else
        grammar_words_step(r->build, from, &words, to);
}

static void read_string(struct schema_reader *r, const json_t *schema, const char *path, int from, int to)
{
    const json_t *pattern = schema_member(schema, "pattern"), *format = schema_member(schema, "format");
    int64_t least = schema_count(r, schema, path, "minLength", 0), most = schema_count(r, schema, path, "maxLength", -1);
    bool lengths = least > 0 || most >= 0;
    const char *text = pattern ? json_string_value(pattern) : NULL, *why;
    if (format) {
        text = json_is_string(format) ? grammar_format(json_string_value(format)) : NULL;
        if (!text)
            schema_refuse(r, path, arena_printf(r->arena, "the format '%.100s' is not supported", json_string_value(format)));
    }
    if ((pattern && (!text || strlen(text) != json_string_length(pattern)) && !format))
        schema_refuse(r, path, "pattern: expected a text without zeros");
    if ((pattern && format) || (text && lengths))
        schema_refuse(r, path,
                      arena_printf(r->arena, "'%s' beside '%s' is not supported",
                                   pattern && format ? "format"
                                       : pattern     ? "pattern"
                                                     : "format",
                                   pattern && format ? "pattern" : "minLength' and 'maxLength"));
    if (most >= 0 && most < least)
        schema_refuse(r, path, "'maxLength' is below 'minLength'");
    if (grammar_fault(r->build))
        return;
    from = grammar_literal(r->build, from, "\"", 1);
    if (text) {
        int end = grammar_state(r->build);
        why = grammar_regex(r->json, from, text, end);
        if (why)
            schema_refuse(r, path, arena_printf(r->arena, "pattern: %s", why));
        from = end;
    } else
        from = grammar_repeat(r->build, from, grammar_json_character(r->json), least, most);
    put_literal(r, from, "\"", to);
}

/* ---- numbers ---- */

/* A limit, rounded inward to an integer for integers. */
static bool take_limit(struct schema_reader *r, const json_t *schema, const char *path, const char *key, bool whole, bool up, int64_t *to,
                       bool *moved)
{
    const json_t *v = schema_member(schema, key);
    double x = json_number_value(v), next = up ? ceil(x) : floor(x);
    *moved = json_is_real(v) && (next < x || next > x);
    if (!v)
        return false;
    if (!json_is_number(v))
        schema_refuse(r, path, arena_printf(r->arena, "%s: expected a number", key));
    else if (!(next >= -9e18 && next <= 9e18))
        schema_refuse(r, path, arena_printf(r->arena, "%s: numbers of such a size are not supported", key));
    else if (*moved && !whole)
        schema_refuse(r, path, arena_printf(r->arena, "%s: of numbers with places only whole limits are supported", key));
    else
        *to = json_is_integer(v) ? json_integer_value(v) : (int64_t)next;
    return true;
}

/* The narrower of both kinds of limits holds. */
static struct grammar_limits read_limits(struct schema_reader *r, const json_t *schema, const char *path, bool whole)
{
    struct grammar_limits l = {0};
    int64_t x = 0;
    bool moved;
    l.has_least = take_limit(r, schema, path, "minimum", whole, true, &l.least, &moved);
    l.has_most = take_limit(r, schema, path, "maximum", whole, false, &l.most, &moved);
    if (take_limit(r, schema, path, "exclusiveMinimum", whole, true, &x, &moved) && (!l.has_least || x >= l.least)) {
        l.above = !moved;
        l.least = x;
        l.has_least = true;
    }
    if (take_limit(r, schema, path, "exclusiveMaximum", whole, false, &x, &moved) && (!l.has_most || x <= l.most)) {
        l.below = !moved;
        l.most = x;
        l.has_most = true;
    }
    return l;
}

static void read_number(struct schema_reader *r, const json_t *schema, const char *path, bool whole, int from, int to)
{
    const struct grammar_limits l = read_limits(r, schema, path, whole);
    bool limited = l.has_least || l.has_most;
    if (!whole && !limited)
        grammar_call(r->build, from, grammar_json_number(r->json), to);
    else if (!grammar_fault(r->build) && !(whole ? grammar_integer : grammar_number)(r->build, from, l, to))
        schema_refuse(r, path, "no number is left within its limits");
}

/* ---- alternatives ---- */

static void read_type(struct schema_reader *r, const json_t *schema, const char *path, int type, int from, int to)
{
    if (type & OBJECT)
        schema_object(r, schema, path, from, to);
    if (type & ARRAY)
        schema_array(r, schema, path, from, to);
    if (type & STRING)
        read_string(r, schema, path, from, to);
    if (type & (NUMBER | INTEGER))
        read_number(r, schema, path, !(type & NUMBER), from, to);
    if (type & BOOLEAN) {
        put_literal(r, from, "true", to);
        put_literal(r, from, "false", to);
    }
    if (type & NIL)
        put_literal(r, from, "null", to);
}

static void check_disjoint(struct schema_reader *r, const json_t *list, const char *path)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        for (size_t k = i + 1; k < json_array_size(list) && !grammar_fault(r->build); k++)
            if (!schema_disjoint(r, json_array_get(list, i), json_array_get(list, k), path))
                schema_refuse(r, path,
                              "oneOf: it is supported where no value can be valid by two of its parts, by their types or by a "
                              "required property with one value; use anyOf");
}

static void read_parts(struct schema_reader *r, const json_t *schema, const char *path, const char *key, int from, int to)
{
    const json_t *list = schema_member(schema, key), *v;
    size_t i, n = json_array_size(list);
    if (n == 0 || (strcmp(key, "allOf") == 0 && n > 1))
        schema_refuse(r, path,
                      arena_printf(r->arena, n ? "%s: more than one part is not supported" : "%s: expected a list of schemas", key));
    if (schema_member(schema, "type"))
        schema_refuse(r, path, arena_printf(r->arena, "'type' beside '%s' is not supported", key));
    if (strcmp(key, "oneOf") == 0)
        check_disjoint(r, list, path);
    json_array_foreach(list, i, v)
    {
        if (!grammar_fault(r->build))
            grammar_call(r->build, from, schema_rule(r, v, arena_printf(r->arena, "%s/%s/%zu", path, key, i)), to);
    }
}

static void read_combined(struct schema_reader *r, const json_t *schema, const char *path, const char *key, int from, int to)
{
    if (strcmp(key, "enum") == 0 || strcmp(key, "const") == 0)
        read_values(r, schema, path, from, to);
    else
        read_parts(r, schema, path, key, from, to);
}

static void read_schema(struct schema_reader *r, const json_t *schema, const char *path, int from, int to)
{
    const char *combines = first_of(schema, COMBINES);
    if (json_is_true(schema)) {
        grammar_call(r->build, from, grammar_json_value(r->json, 0), to);
        return;
    }
    if (!json_is_object(schema)) {
        schema_refuse(r, path, json_is_false(schema) ? "false is not supported" : "expected an object");
        return;
    }
    check_keywords(r, schema, path);
    if (!types_of(schema))
        schema_refuse(r, path, "type: expected object, array, string, number, integer, boolean, null, or a list of these");
    if (grammar_fault(r->build))
        return;
    if (combines)
        read_combined(r, schema, path, combines, from, to);
    else if (types_of(schema) == ANY)
        grammar_call(r->build, from, grammar_json_value(r->json, 0), to);
    else
        read_type(r, schema, path, types_of(schema), from, to);
}

/* ---- rules of schemas ---- */

static int later(struct schema_reader *r, const json_t *schema, const char *path)
{
    int rule = name_index_find(&r->refs, path);
    if (rule >= 0 || grammar_fault(r->build))
        return rule < 0 ? 0 : rule;
    rule = grammar_rule(r->build, path);
    name_index_put(r->arena, &r->refs, path, rule);
    VEC_PUSH(r->arena, &r->work, ((struct schema_work){schema, path, rule}));
    return rule;
}

int schema_rule(struct schema_reader *r, const json_t *schema, const char *path)
{
    if (json_is_object(schema) && schema_member(schema, "$ref")) {
        check_keywords(r, schema, path);
        if (schema_member(schema, "type"))
            schema_refuse(r, path, "'type' beside '$ref' is not supported");
        schema = schema_resolved(r, schema, &path);
    }
    return schema ? later(r, schema, path) : 0;
}

int grammar_schema(struct grammar_json *j, const json_t *schema)
{
    enum { MOST_PARTS = 1 << 14 };
    struct schema_reader r = {.json = j, .build = j->build, .arena = j->arena, .root = schema};
    int rule = schema_rule(&r, schema, "#");
    for (int i = 0; i < r.work.n && !grammar_fault(r.build); i++) {
        const struct schema_work w = r.work.at[i];
        read_schema(&r, w.schema, w.path, grammar_rule_start(r.build, w.rule), grammar_rule_end(r.build, w.rule));
        if (r.work.n > MOST_PARTS)
            grammar_refuse(r.build, arena_printf(r.arena, "it has more than %d parts", MOST_PARTS));
    }
    return grammar_fault(r.build) ? -1 : rule;
}
