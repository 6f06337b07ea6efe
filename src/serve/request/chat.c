/* chat: fields specific to /v1/chat/completions: the conversation, and other template variables. */
#include "config.h"

#include "serve/request/request.h"

#include <string.h>

/* ---- template variables ---- */

/* A template without the variable would ignore the value. */
static bool uses(const struct chat *c, const char *name)
{
    bool found = false;
    for (int i = 0; i < CHAT_USES; i++)
        found |= c->template[i].text.n && memmem(c->template[i].text.at, c->template[i].text.n, name, strlen(name));
    return found;
}

static void put_list(struct reading *r, const char *key, const json_t *list, json_t *variables)
{
    if (json_array_size(list) && !uses(r->call->service->chat, key))
        request_blame(r, key, arena_printf(r->call->arena, "%s: the chat template of this model takes none", key));
    if (!r->wrong && json_array_size(list))
        (void)json_object_set(variables, key, (json_t *)(uintptr_t)list);
}

static void read_documents(struct reading *r, json_t *variables)
{
    const json_t *list = request_given(r, "documents"), *v;
    size_t i;
    if (list && !json_is_array(list))
        request_refuse(r, "documents", "a list of objects");
    json_array_foreach(list, i, v)
    {
        if (!json_is_object(v))
            request_refuse(r, "documents", "a list of objects");
    }
    put_list(r, "documents", list, variables);
}

/* Variables other than those that the server sets. */
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

/* Tools are kept as long as the call. */
static struct chat_calls calls_of(struct reading *r, const struct tools_asked *t)
{
    struct call *c = r->call;
    struct chat_calls calls = {.arena = c->arena, .content.arena = c->arena, .tools = t->tools, .single = t->single};
    if (!t->tools)
        return calls;
    c->tools = json_incref((json_t *)(uintptr_t)t->tools);
    calls.form = c->chat->calls.form == CHAT_CALLS_NONE && t->must ? CHAT_CALLS_PLAIN : c->chat->calls.form;
    return calls;
}

static void add_texts(struct reading *r, const json_t *variables, const struct tools_asked *tools)
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
    form_read(r, prompt.thinks ? arena_strndup(c->arena, s->chat->tags.close.at, s->chat->tags.close.n) : NULL, tools);
    if (r->wrong)
        return;
    request_make_choices(r, "messages", 1);
    if (!r->wrong)
        request_add_choices(r, "messages", prompt.ids.list.at, prompt.ids.list.n);
    const struct chat_calls calls = calls_of(r, tools);
    for (int64_t i = 0; i < c->choices; i++) {
        c->choice[i].thoughts = (struct chat_thoughts){.tags = &s->chat->tags, .opened = prompt.thinks};
        c->choice[i].calls = calls;
    }
}

void request_chat(struct reading *r)
{
    static const char *const own[] = {"messages", "tools", "tool_choice", NULL};
    json_t *variables = json_object();
    r->call->chat = r->call->service->chat;
    if (!r->call->chat && !r->call->service->no_texts)
        request_blame(r, "messages", r->call->service->no_chat);
    r->usual_most = INT32_MAX; /* only the context limits it */
    r->own = own;
    shared_read(r);
    logprobs_of_chat(r);
    const struct tools_asked tools = tools_read(r);
    put_list(r, "tools", tools.tools, variables);
    read_documents(r, variables);
    read_kwargs(r, variables);
    read_messages(r, variables);
    if (!r->wrong)
        add_texts(r, variables, &tools);
    logprobs_limit(r);
    json_decref(variables);
}
