/* completion: fields specific to /v1/completions: prompts, whether they are returned, how many texts to choose from. */
#include "serve/request/request.h"

/* best_of must equal n. */
static void read_best_of(struct reading *r)
{
    int64_t n = request_integer(r, "best_of", 0, INT32_MAX, 0);
    if (n && n != r->each)
        request_blame(
            r, "best_of",
            arena_printf(r->call->arena, "this server does not support 'best_of' other than n, which is %lld", (long long)r->each));
}

/* Decodes the generated text in context. An encoder's prompt is a separate text. */
static void decode_behind(const struct service *s, struct choice *o)
{
    enum { FEW = 8 };
    struct arena *tmp = arena_new();
    o->context = s->longest ? 0 : o->prompts < FEW ? (int)o->prompts : FEW;
    for (int64_t i = o->prompts - o->context; i < o->prompts; i++)
        VEC_PUSH(o->call->arena, &o->decoded, o->prompt[i]);
    o->how.begins = o->context == 0;
    (void)tokenizer_stream(s->prompt_tokenizer, tmp, &o->stream, o->decoded.at, o->context, true);
    arena_free(tmp);
}

/* The prompt's text precedes the generated text. text NULL: it was given as tokens. */
static void echo_prompt(struct reading *r, const json_t *text, int64_t first)
{
    struct call *c = r->call;
    for (int64_t k = first; r->echo && !r->wrong && k < c->choices; k++) {
        struct choice *o = &c->choice[k];
        struct text_stream stream = {0};
        struct text_builder own = {.arena = c->arena};
        VEC(size_t) at = {0};
        for (int64_t i = 0; i < o->prompts; i++) {
            struct arena *tmp = arena_new();
            VEC_PUSH(c->arena, &at, (size_t)own.to.n);
            struct text more = tokenizer_stream(c->service->prompt_tokenizer, tmp, &stream, o->prompt, (int)i + 1, i + 1 == o->prompts);
            text_put(&own, more.at, more.n);
            arena_free(tmp);
        }
        struct text all = text ? (struct text){json_string_value(text), json_string_length(text)} : text_built(&own);
        text_put(&o->text, all.at, all.n);
        o->echoed = all.n;
        for (int64_t i = 0; o->how.prompt_logprobs && i < o->prompts; i++)
            shown_add(o, c->service->prompt_tokenizer, o->prompt[i], at.at[i] < all.n ? at.at[i] : all.n);
    }
}

/* ---- prompts ---- */

static bool all_integers(const json_t *list)
{
    size_t i;
    const json_t *v;
    json_array_foreach(list, i, v)
    {
        if (!json_is_integer(v))
            return false;
    }
    return json_array_size(list) > 0;
}

static void add_text_prompt(struct reading *r, const json_t *text)
{
    struct token_ids ids;
    if (request_encode(r, "prompt", (struct text){json_string_value(text), json_string_length(text)}, r->special, &ids))
        request_add_choices(r, "prompt", ids.list.at, ids.list.n);
}

static void add_token_prompt(struct reading *r, const json_t *list)
{
    size_t n = json_array_size(list);
    int64_t *token = NEWN(r->call->arena, int64_t, n + 1);
    for (size_t i = 0; i < n; i++)
        token[i] = json_integer_value(json_array_get(list, i));
    request_add_choices(r, "prompt", token, (int64_t)n);
}

static void add_prompt(struct reading *r, const json_t *prompt)
{
    int64_t first = r->call->choices;
    if (json_is_string(prompt))
        add_text_prompt(r, prompt);
    else if (json_is_array(prompt) && all_integers(prompt))
        add_token_prompt(r, prompt);
    else
        request_refuse(r, "prompt", "a text, token ids, or a list of these");
    for (int64_t k = first; !r->wrong && k < r->call->choices; k++)
        decode_behind(r->call->service, &r->call->choice[k]);
    echo_prompt(r, json_is_string(prompt) ? prompt : NULL, first);
}

static void read_prompts(struct reading *r)
{
    const json_t *prompt = request_given(r, "prompt");
    bool several = json_is_array(prompt) && !all_integers(prompt);
    int64_t n = several ? (int64_t)json_array_size(prompt) : 1;
    if (!r->wrong)
        request_make_choices(r, "prompt", n);
    for (int64_t i = 0; i < n && !r->wrong; i++)
        add_prompt(r, several ? json_array_get(prompt, (size_t)i) : prompt);
    logprobs_limit(r);
}

void request_completion(struct reading *r)
{
    enum { USUAL = 16 };
    static const char *const own[] = {NULL};
    r->usual_most = USUAL;
    r->own = own;
    shared_read(r);
    r->special = request_flag(r, "add_special_tokens", true);
    read_best_of(r);
    logprobs_of_completion(r);
    form_read(r, NULL, NULL);
    read_prompts(r);
}
