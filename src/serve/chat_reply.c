/* chat_reply: answers of chats: what the model thought, and what it says, whole or as events. */
#include "serve/serve.h"

#include <string.h>

json_t *chat_reply(const struct choice *o)
{
    struct chat_thoughts thoughts = o->thoughts;
    struct chat_parts p = chat_split(&thoughts, text_built(&o->text), true);
    json_t *message = json_pack("{s:s, s:o}", "role", "assistant", "content", reply_text(p.content));
    if (p.thoughts.n)
        (void)json_object_set_new(message, "reasoning_content", reply_text(p.thoughts));
    return json_pack("{s:I, s:o, s:o, s:s?}", "index", (json_int_t)o->index, "message", message, "logprobs", reply_chat_logprobs(o),
                     "finish_reason", o->finish);
}

/* Takes the delta, and the tokens with log-probabilities that no other one has taken. */
static void put_delta(struct call *c, struct choice *o, json_t *delta, const char *finish)
{
    json_t *logprobs = o->begun && o->shown_from < o->shown_to ? reply_chat_logprobs(o) : json_null();
    reply_put_choice(
        c,
        json_pack("{s:I, s:o, s:o, s:s?}", "index", (json_int_t)o->index, "delta", delta, "logprobs", logprobs, "finish_reason", finish));
    o->shown_from = o->begun ? o->shown_to : o->shown_from;
}

/* What a part grew by. */
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
    put_more(c, o, "content", p.content, &o->sent_said);
    if (finish || o->shown_from < o->shown_to)
        put_delta(c, o, json_object(), finish);
}
