/* form: fields that require a form of the text: JSON, JSON of a schema, a grammar. */
#include "serve/request/request.h"

#include <string.h>

/* The requested form. */
struct form_asked {
    const char *key; /* the field; NULL: none */
    const json_t *schema, *grammar;
    bool object; /* any object */
};

/* ---- fields ---- */

static void ask(struct reading *r, struct form_asked *f, const char *key)
{
    if (f->key)
        request_blame(r, key, arena_printf(r->call->arena, "'%s' and '%s' both ask for a form of the text: give one", f->key, key));
    f->key = key;
}

static void read_response_format(struct reading *r, struct form_asked *f)
{
    static const char key[] = "response_format";
    const json_t *v = request_given(r, key);
    const char *type = json_string_value(json_object_get(v, "type"));
    if (!v || (type && strcmp(type, "text") == 0))
        return;
    ask(r, f, key);
    if (type && strcmp(type, "json_object") == 0) {
        f->schema = json_object_get(v, "schema");
        f->object = !f->schema;
    } else if (type && strcmp(type, "json_schema") == 0)
        f->schema = json_object_get(json_object_get(v, "json_schema"), "schema");
    else
        request_refuse(r, key, "an object with the type \"text\", \"json_object\" or \"json_schema\"");
    if (!f->schema && !f->object)
        request_refuse(r, key, "a schema in json_schema.schema");
}

static struct form_asked read_fields(struct reading *r)
{
    struct form_asked f = {0};
    read_response_format(r, &f);
    f.grammar = request_given(r, "grammar");
    if (json_is_string(f.grammar) && json_string_length(f.grammar) == 0)
        f.grammar = NULL;
    if (f.grammar)
        ask(r, &f, "grammar");
    const json_t *schema = request_given(r, "json_schema");
    if (json_is_object(schema) && json_object_size(schema) > 0) {
        ask(r, &f, "json_schema");
        f.schema = schema;
    } else if (schema && !json_is_object(schema))
        request_refuse(r, "json_schema", "an object");
    if (f.grammar && !json_is_string(f.grammar))
        request_refuse(r, "grammar", "a text in GBNF");
    return f;
}

/* ---- grammars ---- */

static int root_of(struct grammar_build *b, const struct form_asked *f)
{
    struct grammar_json j = grammar_json_new(b);
    if (f->grammar)
        return grammar_gbnf(b, json_string_value(f->grammar), json_string_length(f->grammar));
    return f->object ? grammar_json_object(&j, 0) : grammar_schema(&j, f->schema);
}

static int calls_of(struct grammar_build *b, const struct reading *r, const struct tools_asked *t, bool free)
{
    const struct chat_calls_asked asked = {t->only, t->single, free};
    struct grammar_json j = grammar_json_new(b);
    int rule = chat_calls_rule(&j, &r->call->chat->calls, t->tools, &asked);
    return grammar_fault(b) ? -1 : rule;
}

static int either(struct grammar_build *b, int one, int other)
{
    int rule = grammar_rule(b, "the answer");
    grammar_call(b, grammar_rule_start(b, rule), one, grammar_rule_end(b, rule));
    grammar_call(b, grammar_rule_start(b, rule), other, grammar_rule_end(b, rule));
    return rule;
}

/* How calls and the form combine. */
enum { FORM_ALONE, CALLS_ALONE, CALLS_OR_FORM, CALLS_IN_TEXT, NO_FORM };

static int kind_of(const struct reading *r, const struct form_asked *f, const struct tools_asked *t)
{
    enum chat_calls_form form = t && t->tools ? r->call->chat->calls.form : CHAT_CALLS_NONE;
    bool tagged = form == CHAT_CALLS_TAGGED || form == CHAT_CALLS_MISTRAL;
    if (t && t->must)
        return CALLS_ALONE;
    if (f->key)
        return form == CHAT_CALLS_NONE ? FORM_ALONE : CALLS_OR_FORM;
    return tagged && chat_calls_strict(t->tools) ? CALLS_IN_TEXT : NO_FORM;
}

/* If both are requested, *key is the field of the last one. */
static int root_of_kind(struct reading *r, struct grammar_build *b, const struct form_asked *f, const struct tools_asked *t, int kind,
                        const char **key)
{
    int form = kind == FORM_ALONE || kind == CALLS_OR_FORM ? root_of(b, f) : -1;
    *key = f->key;
    if (kind == FORM_ALONE || grammar_fault(b))
        return form;
    *key = "tools";
    int calls = calls_of(b, r, t, kind == CALLS_IN_TEXT);
    return kind == CALLS_OR_FORM && calls >= 0 ? either(b, form, calls) : calls;
}

/* Keeps the grammar, without what was needed to make it. */
static void make(struct reading *r, const struct form_asked *f, const char *tag, const struct tools_asked *t, int kind)
{
    struct arena *tmp = arena_new(), *a = r->call->arena;
    struct grammar_build *b = grammar_begin(tmp);
    const char *key;
    int root = root_of_kind(r, b, f, t, kind, &key);
    if (root >= 0 && tag)
        root = grammar_behind(b, tag, root);
    const struct grammar *g = root < 0 ? NULL : grammar_compile(b, root);
    const char *slow = g ? grammar_trial(g) : NULL;
    if (slow)
        grammar_refuse(b, slow);
    if (g && !slow)
        r->how.grammar = memcpy(arena_alloc(a, grammar_size(g)), g, grammar_size(g));
    else
        request_blame(r, key, arena_printf(a, "%s: %s", key, grammar_fault(b)));
    arena_free(tmp);
}

void form_read(struct reading *r, const char *tag, const struct tools_asked *t)
{
    const struct service *s = r->call->service;
    const struct form_asked f = read_fields(r);
    int kind = r->wrong ? NO_FORM : kind_of(r, &f, t);
    const char *key = f.key ? f.key : kind == CALLS_ALONE ? "tool_choice" : "tools";
    if (kind == NO_FORM)
        return;
    if (s->chooses)
        request_blame(r, key, "the model's graph chooses tokens itself: it takes no form of the text");
    if (!tokenizer_joins(s->prompt_tokenizer))
        request_blame(r, key, "the model's tokenizer does not join its tokens as they are: there is no form of the text");
    if (!r->wrong)
        make(r, &f, tag, t, kind);
}
