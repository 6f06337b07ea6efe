/* tokens: fields of /tokenize and /detokenize, as in vLLM. */
#include "serve/request/request.h"

void request_tokenize(struct reading *r)
{
    const json_t *prompt = request_given(r, "prompt");
    (void)request_model(r);
    bool special = request_flag(r, "add_special_tokens", true);
    if (request_given(r, "messages"))
        request_blame(r, "messages", "/tokenize takes a text in 'prompt', and no messages");
    if (!json_is_string(prompt))
        request_refuse(r, "prompt", "a text");
    if (!r->wrong)
        (void)request_encode(r, "prompt", (struct text){json_string_value(prompt), json_string_length(prompt)}, special, &r->call->ids);
}

void request_detokenize(struct reading *r)
{
    struct call *c = r->call;
    const json_t *list = request_given(r, "tokens"), *v;
    size_t i;
    (void)request_model(r);
    if (!json_is_array(list))
        request_refuse(r, "tokens", "a list of token ids");
    json_array_foreach(list, i, v)
    {
        if (!json_is_integer(v) || json_integer_value(v) < 0 || json_integer_value(v) >= c->service->vocabulary)
            request_refuse(r, "tokens", arena_printf(c->arena, "token ids of 0 to %lld", (long long)c->service->vocabulary - 1));
        else
            VEC_PUSH(c->arena, &c->ids.list, json_integer_value(v));
    }
    if (!r->wrong)
        c->decoded = tokenizer_decode(c->service->prompt_tokenizer, c->arena, c->ids.list.at, c->ids.list.n, true);
}
