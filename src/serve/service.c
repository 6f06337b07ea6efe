/* service: the tokens of a service, for texts with a grammar. */
#include "serve/serve.h"

struct token_texts service_token_texts(const struct service *s, struct arena *a)
{
    struct token_ids shown = {0};
    const struct chat_tags none = {.open_id = -1, .close_id = -1}, *tags = s->chat ? &s->chat->tags : &none;
    if (tags->open_id >= 0)
        VEC_PUSH(a, &shown.list, tags->open_id);
    if (tags->close_id >= 0)
        VEC_PUSH(a, &shown.list, tags->close_id);
    for (int i = 0; s->chat && i < s->chat->calls.marks; i++)
        VEC_PUSH(a, &shown.list, s->chat->calls.mark[i].token);
    return tokenizer_texts(s->tokenizer, a, s->vocabulary, &shown);
}

struct end_tokens service_ends(const struct service *s, struct arena *a)
{
    struct end_tokens ends = {0};
    for (int i = 0; i < s->ends.list.n; i++)
        VEC_PUSH(a, &ends.list, s->ends.list.at[i]);
    for (int i = 0; s->chat && i < s->chat->ends.list.n; i++)
        VEC_PUSH(a, &ends.list, s->chat->ends.list.at[i]);
    return ends;
}
