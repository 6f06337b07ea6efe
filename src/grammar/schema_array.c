/* schema_array: lists of a schema: the first items have separate schemas, all others share one. */
#include "grammar/grammar.h"

#include <string.h>

struct items {
    const json_t *first;         /* a list of schemas; NULL: none */
    int64_t firsts, least, most; /* most < 0: any number */
    int rest;                    /* the rule of further items; -1: none */
};

static const char *sub(struct schema_reader *r, const char *path, const char *key)
{
    return arena_printf(r->arena, "%s/%s", path, key);
}

/* After the items with separate schemas come others only if the schema says so, or requires more items. */
static struct items read_items(struct schema_reader *r, const json_t *schema, const char *path)
{
    const json_t *first = schema_member(schema, "prefixItems"), *rest = schema_member(schema, "items");
    struct items s = {.first = first,
                      .firsts = (int64_t)json_array_size(first),
                      .least = schema_count(r, schema, path, "minItems", 0),
                      .most = schema_count(r, schema, path, "maxItems", -1),
                      .rest = -1};
    if (first && !json_is_array(first))
        schema_refuse(r, path, "prefixItems: expected a list");
    if (json_is_array(rest))
        schema_refuse(r, path, "items: a list is not supported: use prefixItems");
    if (json_is_object(rest) || json_is_true(rest))
        s.rest = schema_rule(r, rest, sub(r, path, "items"));
    else if (!rest && (!first || s.least > s.firsts))
        s.rest = grammar_json_value(r->json, 0);
    if (s.rest < 0 && (s.most < 0 || s.most > s.firsts))
        s.most = s.firsts;
    if (s.most >= 0 && s.most < s.least)
        schema_refuse(r, path, "it asks for more items than there may be");
    return s;
}

static int item_rule(struct schema_reader *r, const char *path, const struct items *s, int64_t i)
{
    if (i >= s->firsts)
        return s->rest;
    return schema_rule(r, json_array_get(s->first, (size_t)i), arena_printf(r->arena, "%s/prefixItems/%lld", path, (long long)i));
}

static void close(struct schema_reader *r, int from, bool some, int to)
{
    from = some ? grammar_json_part(r->json, from, grammar_json_space(r->json)) : from;
    grammar_skip(r->build, grammar_literal(r->build, from, "]", 1), to);
}

/* An item and what is before it. */
static int put_item(struct schema_reader *r, int from, int rule, bool some)
{
    return grammar_json_part(r->json, some ? grammar_json_sign(r->json, from, ",") : from, rule);
}

void schema_array(struct schema_reader *r, const json_t *schema, const char *path, int from, int to)
{
    const struct items s = read_items(r, schema, path);
    struct grammar_build *b = r->build;
    int64_t single = s.firsts > s.least ? s.firsts : s.least, n = 0;
    if (grammar_fault(b))
        return;
    single = s.most < 0 ? (single ? single : 1) : s.most;
    from = grammar_json_sign(r->json, from, "[");
    for (; n < single && !grammar_fault(b); n++) {
        if (n >= s.least)
            close(r, from, n > 0, to);
        from = put_item(r, from, item_rule(r, path, &s, n), n > 0);
    }
    int last = grammar_state(b);
    grammar_skip(b, from, last);
    if (s.most < 0)
        grammar_call(b, grammar_json_sign(r->json, last, ","), s.rest, last);
    close(r, last, n > 0, to);
}
