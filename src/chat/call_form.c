/* call_form: in which form a model writes calls of tools, and the grammar of that form for the tools of a request. */
#include "config.h"

#include "chat/chat.h"

#include <string.h>

static bool has(struct text t, const char *word)
{
    return t.n && memmem(t.at, t.n, word, strlen(word));
}

/* That which the template shows. */
static enum chat_calls_form form_of(struct text t)
{
    if (has(t, "[TOOL_CALLS]"))
        return CHAT_CALLS_MISTRAL;
    if (has(t, "<tool_call>"))
        return has(t, "<function=") ? CHAT_CALLS_NONE : CHAT_CALLS_TAGGED;
    return CHAT_CALLS_PLAIN;
}

static const char *const marks[] = {"[TOOL_CALLS]", "[CALL_ID]", "[ARGS]", "<tool_call>", "</tool_call>", "<|python_tag|>"};

/* Those that are special tokens, which decoding leaves out. */
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

struct form_text {
    const char *before, *name, *arguments, *after; /* a name: between quotes where it is JSON */
};

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

/* Without parameters a function takes an empty object. */
static int arguments_rule(struct grammar_json *j, const json_t *function)
{
    const json_t *schema = json_object_get(function, "parameters");
    json_t *none = json_pack("{s:s, s:{}}", "type", "object", "properties");
    int rule = grammar_schema(j, json_is_object(schema) && json_object_size(schema) ? schema : none);
    json_decref(none);
    return rule;
}

static void put_call(struct grammar_json *j, const struct form_text *f, const json_t *tool, int from, int to)
{
    const json_t *function = json_object_get(tool, "function");
    int rule = arguments_rule(j, function);
    if (rule < 0)
        return;
    from = put_name(j, put(j->build, from, f->before), json_string_value(json_object_get(function, "name")), f->name[0] == '"');
    from = grammar_json_part(j, put(j->build, from, f->arguments), rule);
    grammar_skip(j->build, put(j->build, from, f->after), to);
}

/* A call of one of the tools. */
static int call_rule(struct grammar_json *j, const struct form_text *f, const json_t *tools, const char *only)
{
    int rule = grammar_rule(j->build, "a call");
    const json_t *tool;
    size_t i;
    json_array_foreach(tools, i, tool)
    {
        const char *name = json_string_value(json_object_get(json_object_get(tool, "function"), "name"));
        if (!only || strcmp(only, name) == 0)
            put_call(j, f, tool, grammar_rule_start(j->build, rule), grammar_rule_end(j->build, rule));
    }
    return rule;
}

int chat_calls_rule(struct grammar_json *j, const struct chat_call_form *form, const json_t *tools, const char *only, bool single)
{
    static const struct form_text texts[] = {
        [CHAT_CALLS_NONE] = {"{\"name\": ", "\"", ", \"arguments\": ", "}"},
        [CHAT_CALLS_TAGGED] = {"<tool_call>\n{\"name\": ", "\"", ", \"arguments\": ", "}\n</tool_call>"},
        [CHAT_CALLS_MISTRAL] = {"{\"name\": ", "\"", ", \"arguments\": ", "}"},
        [CHAT_CALLS_PLAIN] = {"{\"name\": ", "\"", ", \"parameters\": ", "}"},
    };
    static const struct form_text apart = {"[TOOL_CALLS]", "", "[ARGS]", ""};
    bool list = form->form == CHAT_CALLS_MISTRAL && !form->arguments_apart;
    struct grammar_build *b = j->build;
    int call = call_rule(j, form->form == CHAT_CALLS_MISTRAL && !list ? &apart : &texts[form->form], tools, only);
    int rule = grammar_rule(b, "calls"), from = grammar_rule_start(b, rule), behind = grammar_state(b);
    grammar_call(b, list ? put(b, from, "[TOOL_CALLS][") : from, call, behind);
    if (!single && form->form != CHAT_CALLS_PLAIN && form->form != CHAT_CALLS_NONE)
        grammar_call(b, put(b, behind, list ? ", " : form->arguments_apart ? "" : "\n"), call, behind);
    grammar_skip(b, list ? put(b, behind, "]") : behind, grammar_rule_end(b, rule));
    return rule;
}
