/* conversation: the messages so far, and the prompt made from them. */
#include "serve/reply/reply.h"
#include "serve/terminal/terminal.h"

enum { ROOM = 512 }; /* tokens reserved for an answer, or a quarter of the context if that is less */

static void add(struct conversation *c, const char *role, const char *key, json_t *content)
{
    (void)json_array_append_new(c->messages, json_pack("{s:s, s:o}", "role", role, key, content));
}

void conversation_begin(struct conversation *c, const struct service *service, const char *system)
{
    *c = (struct conversation){.service = service, .messages = json_array(), .first = system != NULL};
    if (system)
        add(c, "system", "content", reply_text(text_of(system)));
}

void conversation_end(struct conversation *c)
{
    json_decref(c->messages);
}

void conversation_reset(struct conversation *c)
{
    while (json_array_size(c->messages) > c->first)
        conversation_take_back(c);
}

void conversation_add_user(struct conversation *c, struct text t)
{
    add(c, "user", "content", reply_text(t));
}

void conversation_add_answer(struct conversation *c, struct chat_parts p)
{
    add(c, "assistant", "content", reply_text(p.content));
    if (p.thoughts.n)
        (void)json_object_set_new(json_array_get(c->messages, json_array_size(c->messages) - 1), "reasoning_content",
                                  reply_text(p.thoughts));
}

void conversation_take_back(struct conversation *c)
{
    (void)json_array_remove(c->messages, json_array_size(c->messages) - 1);
}

/* Drops a user's message and its answer; false: only the last message is left. */
static bool drop_oldest(struct conversation *c)
{
    if (json_array_size(c->messages) <= c->first + 2)
        return false;
    (void)json_array_remove(c->messages, c->first);
    (void)json_array_remove(c->messages, c->first);
    return true;
}

static const char *render(struct conversation *c, struct arena *a, struct chat_prompt *out)
{
    const struct service *s = c->service;
    const char *why;
    json_t *messages = chat_messages(s->chat, a, c->messages, &why);
    if (!messages)
        return why;
    json_t *variables = json_pack("{s:o}", "messages", messages);
    why = chat_render(s->chat, s->prompt_tokenizer, a, variables, out);
    json_decref(variables);
    return why;
}

const char *conversation_prompt(struct conversation *c, struct arena *a, struct chat_prompt *out, int *dropped)
{
    int64_t context = c->service->context, room = context / 4 < ROOM ? context / 4 : ROOM;
    json_t *before = json_copy(c->messages);
    const char *why;
    *dropped = 0;
    while (why = render(c, a, out), !why && out->ids.list.n > context - room && drop_oldest(c))
        ++*dropped;
    if (!why && out->ids.list.n >= context)
        why = arena_printf(a, "the message makes a prompt of %d tokens, and the context has %lld", out->ids.list.n, (long long)context);
    json_decref(why ? c->messages : before);
    c->messages = why ? before : c->messages;
    return why;
}
