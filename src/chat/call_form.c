/* call_form: the form in which a model writes tool calls, and the grammar of that form for the tools of a request. */
#include "config.h"

#include "chat/chat.h"

#include <string.h>

static bool has(struct text t, const char *word)
{
    return t.n && memmem(t.at, t.n, word, strlen(word));
}

/* The form that the template shows. */
static enum chat_calls_form form_of(struct text t)
{
    if (has(t, "[TOOL_CALLS]"))
        return CHAT_CALLS_MISTRAL;
    if (has(t, "<tool_call>"))
        return has(t, "<function=") ? CHAT_CALLS_NONE : CHAT_CALLS_TAGGED;
    return CHAT_CALLS_PLAIN;
}

static const char *const marks[] = {"[TOOL_CALLS]", "[CALL_ID]", "[ARGS]", "<tool_call>", "</tool_call>", "<|python_tag|>"};

/* Marks that are special tokens, which decoding leaves out. */
static void find_marks(struct chat_call_form *f, const struct tokenizer *t)
{
    f->marks = 0;
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        int64_t id = tokenizer_id(t, marks[i]);
        if (id >= 0 && tokenizer_is_special(t, id))
            f->mark[f->marks++] = (struct chat_mark){id, text_of(marks[i])};
    }
}

struct chat_call_form chat_call_form_find(const struct chat_template *template, const struct tokenizer *t)
{
    const struct chat_template *one = &template[template[CHAT_TOOLS].where ? CHAT_TOOLS : CHAT_USUAL];
    struct chat_call_form f = {.form = form_of(one->text), .arguments_apart = has(one->text, "[ARGS]")};
    find_marks(&f, t);
    return f;
}

struct text chat_mark_of(const struct chat_call_form *f, int64_t token)
{
    for (int i = 0; i < f->marks; i++)
        if (f->mark[i].token == token)
            return f->mark[i].text;
    return (struct text){"", 0};
}

/* ---- grammars ---- */

/* A list or a call begins with the tag, which may be empty. */
struct form_text {
    const char *tag, *list, *between, *last; /* a list of calls, if the form has one */
    const char *before, *arguments, *after;  /* a call: the name is between the first two, */
    bool quoted;                             /* as JSON */
};
static const struct form_text form_texts[] = {
    [CHAT_CALLS_TAGGED] = {"<tool_call>", "", "\n<tool_call>", "", "\n{\"name\": ", ", \"arguments\": ", "}\n</tool_call>", true},
    [CHAT_CALLS_MISTRAL] = {"[TOOL_CALLS]", "[", ", ", "]", "{\"name\": ", ", \"arguments\": ", "}", true},
    [CHAT_CALLS_PLAIN] = {"", "", NULL, "", "{\"name\": ", ", \"parameters\": ", "}", true},
};
static const struct form_text apart = {"[TOOL_CALLS]", "", "[TOOL_CALLS]", "", "", "[ARGS]", "", false};

static const struct form_text *text_of_form(const struct chat_call_form *f)
{
    bool is_apart = f->form == CHAT_CALLS_MISTRAL && f->arguments_apart;
    return is_apart ? &apart : &form_texts[f->form == CHAT_CALLS_NONE ? CHAT_CALLS_PLAIN : f->form];
}

static int put(struct grammar_build *b, int from, const char *text)
{
    return grammar_literal(b, from, text, strlen(text));
}

static int put_name(struct grammar_json *j, int from, const char *name, bool quoted)
{
    json_t *text = json_string_nocheck(name);
    from = put(j->build, from, quoted ? grammar_json_text(j->arena, text) : name);
    json_decref(text);
    return from;
}

/* Without parameters a function takes an empty object; any: any object, regardless of the schema. */
static int arguments_rule(struct grammar_json *j, const json_t *function, bool any)
{
    const json_t *schema = json_object_get(function, "parameters");
    json_t *none = json_pack("{s:s, s:{}}", "type", "object", "properties");
    int rule = any ? grammar_json_object(j, 0) : grammar_schema(j, json_is_object(schema) && json_object_size(schema) ? schema : none);
    json_decref(none);
    return rule;
}

static void put_call(struct grammar_json *j, const struct form_text *f, const json_t *function, bool any, int from, int to)
{
    int rule = arguments_rule(j, function, any);
    if (rule < 0)
        return;
    from = put_name(j, put(j->build, from, f->before), json_string_value(json_object_get(function, "name")), f->quoted);
    from = grammar_json_part(j, put(j->build, from, f->arguments), rule);
    grammar_skip(j->build, put(j->build, from, f->after), to);
}

static bool is_strict(const json_t *function)
{
    return json_is_true(json_object_get(function, "strict"));
}

bool chat_calls_strict(const json_t *tools)
{
    const json_t *tool;
    size_t i;
    json_array_foreach(tools, i, tool)
    {
        if (is_strict(json_object_get(tool, "function")))
            return true;
    }
    return false;
}

/* The part after the tag: a call, or a list of calls. */
static int behind_tag(struct grammar_json *j, const struct form_text *f, const json_t *tools, const struct chat_calls_asked *asked)
{
    struct grammar_build *b = j->build;
    int one = grammar_rule(b, "a call"), all = grammar_rule(b, "calls"), behind = grammar_state(b);
    const json_t *tool;
    size_t i;
    json_array_foreach(tools, i, tool)
    {
        const json_t *function = json_object_get(tool, "function");
        if (!asked->only || strcmp(asked->only, json_string_value(json_object_get(function, "name"))) == 0)
            put_call(j, f, function, asked->free && !is_strict(function), grammar_rule_start(b, one), grammar_rule_end(b, one));
    }
    grammar_call(b, put(b, grammar_rule_start(b, all), f->list), one, behind);
    if (!asked->single && f->between)
        grammar_call(b, put(b, behind, f->between), one, behind);
    grammar_skip(b, put(b, behind, f->last), grammar_rule_end(b, all));
    return all;
}

int chat_calls_rule(struct grammar_json *j, const struct chat_call_form *form, const json_t *tools, const struct chat_calls_asked *asked)
{
    const struct form_text *f = text_of_form(form);
    struct grammar_build *b = j->build;
    int calls = behind_tag(j, f, tools, asked), rule = grammar_rule(b, "the answer");
    int from = grammar_rule_start(b, rule), to = grammar_rule_end(b, rule), tag = grammar_state(b);
    if (asked->free)
        grammar_search(b, from, f->tag, tag, to);
    else
        grammar_skip(b, put(b, from, f->tag), tag);
    grammar_call(b, tag, calls, asked->free && !asked->single ? from : to);
    return rule;
}
