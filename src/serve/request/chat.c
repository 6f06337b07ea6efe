/* chat: the fields of /v1/chat/completions that are its own: the conversation, and what its template takes besides. */
#include "config.h"

#include "serve/request/request.h"

#include <string.h>

/* ---- what the template takes ---- */

static bool is_function(const json_t *tool)
{
    const char *type = json_string_value(json_object_get(tool, "type"));
    return type && strcmp(type, "function") == 0 && json_is_string(json_object_get(json_object_get(tool, "function"), "name"));
}

/* A template without the variable would drop what is given. */
static bool uses(const struct chat *c, const char *name)
{
    bool found = false;
    for (int i = 0; i < CHAT_USES; i++)
        found |= c->template[i].text.n && memmem(c->template[i].text.at, c->template[i].text.n, name, strlen(name));
    return found;
}

static void put_list(struct reading *r, const char *key, bool (*is_item)(const json_t *), const char *items, json_t *variables)
{
    const json_t *list = request_given(r, key);
    size_t i;
    const json_t *v;
    if (r->wrong || !list)
        return;
    if (!json_is_array(list))
        request_refuse(r, key, items);
    json_array_foreach(list, i, v)
    {
        if (!is_item(v))
            request_refuse(r, key, items);
    }
    if (json_array_size(list) && !uses(r->call->service->chat, key))
        request_blame(r, key, arena_printf(r->call->arena, "%s: the chat template of this model takes none", key));
    if (!r->wrong && json_array_size(list))
        (void)json_object_set(variables, key, (json_t *)(uintptr_t)list);
}

static bool is_document(const json_t *v)
{
    return json_is_object(v);
}

/* False: no tool is to be called. */
static bool read_tool_choice(struct reading *r)
{
    const json_t *v = request_given(r, "tool_choice");
    const char *choice = json_string_value(v);
    bool none = choice && strcmp(choice, "none") == 0;
    if (v && !none && !(choice && strcmp(choice, "auto") == 0))
        request_refuse(r, "tool_choice", "\"none\" or \"auto\", for this server can't make a model call a tool");
    return !none;
}

/* Variables beyond those that the server gives. */
static void read_kwargs(struct reading *r, json_t *variables)
{
    const char *const field = "chat_template_kwargs";
    static const char *const given[] = {"messages", "tools", "documents", "add_generation_prompt"};
    const json_t *kwargs = request_given(r, field);
    const char *key;
    json_t *v;
    if (kwargs && !json_is_object(kwargs))
        request_refuse(r, field, "an object");
    if (r->wrong)
        return;
    json_object_foreach((json_t *)(uintptr_t)kwargs, key, v)
    {
        if (NAMED_AT(given, sizeof given / sizeof *given, key) >= 0 || json_object_get(r->call->service->chat->tokens, key))
            request_refuse(r, field, arena_printf(r->call->arena, "other names than '%.100s', which the server gives", key));
        (void)json_object_set(variables, key, v);
    }
}

static void read_messages(struct reading *r, json_t *variables)
{
    const json_t *given = request_given(r, "messages");
    const char *why = NULL;
    json_t *messages = r->wrong ? NULL : chat_messages(r->call->service->chat, r->call->arena, given, &why);
    if (why)
        request_blame(r, "messages", why);
    if (messages)
        (void)json_object_set_new(variables, "messages", messages);
}

/* ---- the texts ---- */

static void add_texts(struct reading *r, const json_t *variables)
{
    struct call *c = r->call;
    const struct service *s = c->service;
    struct chat_prompt prompt = {0};
    const char *why = chat_render(s->chat, s->prompt_tokenizer, c->arena, variables, &prompt);
    if (why)
        request_blame(r, "messages", why);
    if (r->wrong)
        return;
    r->how.begins = true;
    form_read(r, prompt.thinks ? arena_strndup(c->arena, s->chat->tags.close.at, s->chat->tags.close.n) : NULL);
    if (r->wrong)
        return;
    request_make_choices(r, "messages", 1);
    if (!r->wrong)
        request_add_choices(r, "messages", prompt.ids.list.at, prompt.ids.list.n);
    for (int64_t i = 0; i < c->choices; i++)
        c->choice[i].thoughts = (struct chat_thoughts){.tags = &s->chat->tags, .opened = prompt.thinks};
}

void request_chat(struct reading *r)
{
    static const char *const own[] = {"messages", "tools", "tool_choice", NULL};
    json_t *variables = json_object();
    r->call->chat = r->call->service->chat;
    if (!r->call->chat && !r->call->service->no_texts)
        request_blame(r, "messages", r->call->service->no_chat);
    r->usual_most = INT32_MAX; /* the context ends it */
    r->own = own;
    shared_read(r);
    logprobs_of_chat(r);
    if (read_tool_choice(r))
        put_list(r, "tools", is_function, "a list of objects of type \"function\", each with a function and its name", variables);
    put_list(r, "documents", is_document, "a list of objects", variables);
    read_kwargs(r, variables);
    read_messages(r, variables);
    if (!r->wrong)
        add_texts(r, variables);
    logprobs_limit(r);
    json_decref(variables);
}
