/* schema_object: objects of a schema: properties in its order, those that are not required may be left out, then others. */
#include "grammar/grammar.h"

#include <string.h>

struct property {
    const char *name;
    const json_t *schema;
    const char *path;
    bool required;
};
struct properties {
    VEC(struct property) list;
    const json_t *others; /* the schema of further properties; NULL: none */
};

static const char *sub(struct schema_reader *r, const char *path, const char *key)
{
    return arena_printf(r->arena, "%s/%s", path, key);
}

/* A name as part of a pointer. */
static const char *escaped(struct arena *a, const char *name)
{
    char *out = arena_alloc(a, 2 * strlen(name) + 1), *to = out;
    for (; *name; name++) {
        bool plain = *name != '~' && *name != '/';
        *to++ = plain ? *name : '~';
        if (!plain)
            *to++ = *name == '~' ? '0' : '1';
    }
    return out;
}

/* Without a statement on other properties there are none: the answer has only named ones. */
static void read_others(struct schema_reader *r, const json_t *schema, const char *path, struct properties *p)
{
    const json_t *others = schema_member(schema, "additionalProperties");
    bool names = schema_member(schema, "properties") || schema_member(schema, "required");
    if (others && !json_is_object(others) && !json_is_boolean(others))
        schema_refuse(r, path, "additionalProperties: expected true, false or a schema");
    p->others = json_is_object(others) || json_is_true(others) ? others : others || names ? NULL : json_true();
}

static struct property *find(struct properties *p, struct name_index *index, const char *name)
{
    int i = name_index_find(index, name);
    return i < 0 ? NULL : &p->list.at[i];
}

static void read_required(struct schema_reader *r, const json_t *schema, const char *path, struct properties *p, struct name_index *index)
{
    const json_t *list = schema_member(schema, "required"), *others = schema_member(schema, "additionalProperties"), *v;
    size_t i;
    if (list && !json_is_array(list))
        schema_refuse(r, path, "required: expected a list of names");
    json_array_foreach(list, i, v)
    {
        const char *name = json_string_value(v);
        struct property *known = name ? find(p, index, name) : NULL;
        if (!name || strlen(name) != json_string_length(v))
            schema_refuse(r, path, "required: expected a list of names without zeros");
        else if (json_is_false(others) && !known)
            schema_refuse(r, path, arena_printf(r->arena, "required: '%.100s' is no property, and there are no others", name));
        else if (!known) {
            const struct property more = {name, json_is_object(others) ? others : json_true(), sub(r, path, "additionalProperties"), true};
            name_index_put(r->arena, index, name, p->list.n);
            VEC_PUSH(r->arena, &p->list, more);
        } else
            known->required = true;
    }
}

static struct properties read_properties(struct schema_reader *r, const json_t *schema, const char *path)
{
    struct properties p = {0};
    struct name_index index = {0};
    const char *name;
    json_t *v, *given = (json_t *)(uintptr_t)schema_member(schema, "properties");
    if (given && !json_is_object(given))
        schema_refuse(r, path, "properties: expected an object");
    json_object_foreach(given, name, v)
    {
        const struct property one = {name, v, sub(r, sub(r, path, "properties"), escaped(r->arena, name)), false};
        name_index_put(r->arena, &index, name, p.list.n);
        VEC_PUSH(r->arena, &p.list, one);
    }
    read_others(r, schema, path, &p);
    read_required(r, schema, path, &p, &index);
    return p;
}

/* ---- steps ---- */

/* A name, a colon and a value, as a rule. */
static int member_rule(struct schema_reader *r, const struct property *p)
{
    int rule = grammar_rule(r->build, p->path), from = grammar_rule_start(r->build, rule);
    json_t *name = json_string_nocheck(p->name);
    const char *text = grammar_json_text(r->arena, name);
    json_decref(name);
    from = grammar_json_sign(r->json, grammar_literal(r->build, from, text, strlen(text)), ":");
    grammar_call(r->build, from, schema_rule(r, p->schema, p->path), grammar_rule_end(r->build, rule));
    return rule;
}

static void add_name(struct grammar_words *w, struct arena *a, const char *name)
{
    size_t n = 0;
    uint32_t *unit = NEWN(a, uint32_t, strlen(name) + 1);
    while (*name)
        unit[n++] = string_next_char(&name);
    grammar_words_add(w, unit, n);
}

/* A member with any other name. */
static int other_rule(struct schema_reader *r, const char *path, const struct properties *p)
{
    int rule = grammar_rule(r->build, path), key = grammar_state(r->build);
    struct grammar_words names = {.arena = r->arena};
    EACH (const struct property, one, p->list)
        add_name(&names, r->arena, one->name);
    grammar_words_other(r->json, grammar_rule_start(r->build, rule), &names, key);
    grammar_call(r->build, grammar_json_sign(r->json, key, ":"), schema_rule(r, p->others, sub(r, path, "additionalProperties")),
                 grammar_rule_end(r->build, rule));
    return rule;
}

/* `first`: no member yet; `behind`: after some. */
static void step_members(struct schema_reader *r, const char *path, const struct properties *p, int *first, int *behind)
{
    struct grammar_build *b = r->build;
    for (int i = 0; i < p->list.n && !grammar_fault(b); i++) {
        const struct property *one = &p->list.at[i];
        int rule = member_rule(r, one), next_first = grammar_state(b), next = grammar_state(b);
        grammar_call(b, *first, rule, next);
        grammar_call(b, grammar_json_sign(r->json, *behind, ","), rule, next);
        if (!one->required) {
            grammar_skip(b, *first, next_first);
            grammar_skip(b, *behind, next);
        }
        *first = next_first;
        *behind = next;
    }
    if (!p->others || grammar_fault(b))
        return;
    int rule = other_rule(r, path, p);
    grammar_call(b, *first, rule, *behind);
    int last = grammar_state(b);
    grammar_skip(b, *behind, last);
    grammar_call(b, grammar_json_sign(r->json, last, ","), rule, last);
    *behind = last;
}

void schema_object(struct schema_reader *r, const json_t *schema, const char *path, int from, int to)
{
    const struct properties p = read_properties(r, schema, path);
    struct grammar_build *b = r->build;
    if (grammar_fault(b))
        return;
    int first = grammar_json_sign(r->json, from, "{"), behind = grammar_state(b);
    step_members(r, path, &p, &first, &behind);
    grammar_skip(b, grammar_literal(b, first, "}", 1), to);
    behind = grammar_json_part(r->json, behind, grammar_json_space(r->json));
    grammar_skip(b, grammar_literal(b, behind, "}", 1), to);
}
