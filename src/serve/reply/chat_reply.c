/* chat_reply: answers of chats: thoughts, text, and calls of tools, whole or as events. */
#include "serve/reply/reply.h"

#include <string.h>

static struct text content_of(const struct chat_calls *c)
{
    return text_built(&c->content);
}

/* If the text came to its end, calls are the reason. */
static const char *finish_of(const struct choice *o, const char *finish)
{
    return o->calls.call.n && finish && strcmp(finish, "stop") == 0 ? "tool_calls" : finish;
}

/* Nine letters and digits, which all templates accept. */
static const char *id_of(struct arena *a, const struct choice *o, int i)
{
    static const char letters[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    const struct call *c = o->call;
    uint64_t bits = splitmix(splitmix(splitmix((uint64_t)c->created) ^ (uint64_t)c->number) ^ (uint64_t)(o->index << 20 | i));
    char id[10] = "";
    for (int k = 0; k < 9; k++, bits /= sizeof letters - 1)
        id[k] = letters[bits % (sizeof letters - 1)];
    return arena_strdup(a, id);
}

static json_t *call_json(const struct choice *o, int i)
{
    const struct chat_call *call = &o->calls.call.at[i];
    return json_pack("{s:s, s:s, s:{s:o, s:o}}", "id", id_of(o->call->arena, o, i), "type", "function", "function", "name",
                     reply_text(text_of(call->name)), "arguments", reply_text(text_of(call->arguments)));
}

bool chat_is_done(struct choice *o)
{
    if (!o->calls.single || !o->calls.tools)
        return false;
    chat_calls_read(&o->calls, chat_split(&o->thoughts, text_built(&o->text), false).content, false);
    return o->calls.call.n > 0;
}

static json_t *calls_json(const struct choice *o)
{
    json_t *calls = json_array();
    for (int i = 0; i < o->calls.call.n; i++)
        (void)json_array_append_new(calls, call_json(o, i));
    return calls;
}

json_t *chat_reply(const struct choice *given)
{
    struct choice o = *given;
    struct chat_parts p = chat_split(&o.thoughts, text_built(&o.text), true);
    chat_calls_read(&o.calls, p.content, true);
    struct text content = content_of(&o.calls);
    json_t *message = json_pack("{s:s, s:o}", "role", "assistant", "content",
                                o.calls.call.n && !content.n ? json_null() : reply_text(content));
    if (o.calls.call.n)
        (void)json_object_set_new(message, "tool_calls", calls_json(&o));
    if (p.thoughts.n)
        (void)json_object_set_new(message, "reasoning_content", reply_text(p.thoughts));
    return json_pack("{s:I, s:o, s:o, s:s?}", "index", (json_int_t)o.index, "message", message, "logprobs", reply_chat_logprobs(given),
                     "finish_reason", finish_of(&o, o.finish));
}

/* Adds the delta, with the tokens whose log-probabilities were not sent yet. */
static void put_delta(struct call *c, struct choice *o, json_t *delta, const char *finish)
{
    json_t *logprobs = o->begun && o->shown_from < o->shown_to ? reply_chat_logprobs(o) : json_null();
    reply_put_choice(
        c,
        json_pack("{s:I, s:o, s:o, s:s?}", "index", (json_int_t)o->index, "delta", delta, "logprobs", logprobs, "finish_reason", finish));
    o->shown_from = o->begun ? o->shown_to : o->shown_from;
}

/* The growth of a part. */
static void put_more(struct call *c, struct choice *o, const char *key, struct text part, size_t *sent)
{
    if (part.n <= *sent)
        return;
    put_delta(c, o, json_pack("{s:o}", key, reply_text((struct text){part.at + *sent, part.n - *sent})), NULL);
    *sent = part.n;
}

void chat_put_event(struct call *c, struct choice *o, struct text more, const char *finish)
{
    struct chat_parts p = chat_split(&o->thoughts, (struct text){text_built(&o->text).at, o->sent + more.n}, finish != NULL);
    if (!o->begun)
        put_delta(c, o, json_pack("{s:s, s:s}", "role", "assistant", "content", ""), NULL);
    o->begun = true;
    put_more(c, o, "reasoning_content", p.thoughts, &o->sent_thoughts);
    chat_calls_read(&o->calls, p.content, finish != NULL);
    put_more(c, o, "content", content_of(&o->calls), &o->sent_said);
    for (; o->sent_calls < o->calls.call.n; o->sent_calls++) {
        json_t *call = call_json(o, o->sent_calls);
        (void)json_object_set_new(call, "index", json_integer(o->sent_calls));
        put_delta(c, o, json_pack("{s:[o]}", "tool_calls", call), NULL);
    }
    if (finish || o->shown_from < o->shown_to)
        put_delta(c, o, json_object(), finish_of(o, finish));
}
