/* reply_tokens: texts, and tokens with their log-probabilities in the forms of completions and chats, as JSON. */
#include "serve/reply/reply.h"

#include <string.h>

json_t *reply_text(struct text t)
{
    const char *at = t.n ? t.at : "";
    size_t n = t.n;
    json_t *whole = json_stringn(at, n);
    if (whole)
        return whole;
    struct arena *tmp = arena_new();
    struct text_builder b = {.arena = tmp};
    for (size_t bad; n && !text_is_utf8(at, n, &bad); at += bad + 1, n -= bad + 1) {
        text_put(&b, at, bad);
        text_put(&b, "\xef\xbf\xbd", 3);
    }
    text_put(&b, at, n);
    json_t *v = json_stringn(text_built(&b).at, text_built(&b).n);
    arena_free(tmp);
    return v;
}

const char *reply_token(struct arena *a, struct text bytes)
{
    struct text_builder b = {.arena = a};
    size_t bad;
    bool whole = bytes.n == 0 || (text_is_utf8(bytes.at, bytes.n, &bad) && !memchr(bytes.at, 0, bytes.n));
    text_put(&b, whole ? bytes.at : "bytes:", whole ? bytes.n : 6);
    for (size_t i = 0; !whole && i < bytes.n; i++)
        text_put(&b, arena_printf(a, "\\x%02x", (unsigned char)bytes.at[i]), 4);
    text_put(&b, "", 1);
    return text_built(&b).at;
}

double reply_logprob(double x)
{
    enum { LEAST = -9999 }; /* JSON has no infinity */
    return x > LEAST ? x : LEAST;
}

/* ---- completions ---- */

static void put_alternative(struct arena *a, json_t *all, const struct token_place *p)
{
    (void)json_object_set_new_nocheck(all, reply_token(a, p->bytes), json_real(reply_logprob(p->logprob)));
}

/* Includes the actual token. */
static json_t *alternatives(struct arena *a, const struct shown_token *t)
{
    json_t *all = json_object();
    for (int64_t i = 0; i < t->n; i++)
        put_alternative(a, all, &t->best[i]);
    put_alternative(a, all, &t->own);
    return all;
}

json_t *reply_logprobs(const struct choice *o)
{
    json_t *tokens = json_array(), *scores = json_array(), *best = json_array(), *offsets = json_array();
    if (!o->how.logprobs && !o->how.prompt_logprobs) {
        json_decref(tokens), json_decref(scores), json_decref(best), json_decref(offsets);
        return json_null();
    }
    for (int i = o->shown_from; i < o->shown_to; i++) {
        struct arena *tmp = arena_new();
        const struct shown_token *t = &o->shown.at[i];
        (void)json_array_append_new(tokens, json_string_nocheck(reply_token(tmp, t->own.bytes)));
        (void)json_array_append_new(scores, t->scored ? json_real(reply_logprob(t->own.logprob)) : json_null());
        (void)json_array_append_new(best, t->scored ? alternatives(tmp, t) : json_null());
        (void)json_array_append_new(offsets, json_integer(t->at_char));
        arena_free(tmp);
    }
    return json_pack("{s:o, s:o, s:o, s:o}", "tokens", tokens, "token_logprobs", scores, "top_logprobs", best, "text_offset", offsets);
}

/* ---- chats ---- */

static json_t *place_json(struct arena *a, const struct token_place *p)
{
    json_t *bytes = json_array();
    for (size_t i = 0; i < p->bytes.n; i++)
        (void)json_array_append_new(bytes, json_integer((unsigned char)p->bytes.at[i]));
    json_t *token = json_string_nocheck(reply_token(a, p->bytes));
    return json_pack("{s:o, s:f, s:o}", "token", token, "logprob", reply_logprob(p->logprob), "bytes", bytes);
}

json_t *reply_chat_logprobs(const struct choice *o)
{
    if (!o->how.logprobs)
        return json_null();
    json_t *content = json_array();
    for (int i = o->shown_from; i < o->shown_to; i++) {
        struct arena *tmp = arena_new();
        const struct shown_token *t = &o->shown.at[i];
        json_t *token = place_json(tmp, &t->own), *top = json_array();
        for (int64_t k = 0; k < t->n; k++)
            (void)json_array_append_new(top, place_json(tmp, &t->best[k]));
        (void)json_object_set_new(token, "top_logprobs", top);
        (void)json_array_append_new(content, token);
        arena_free(tmp);
    }
    return json_pack("{s:o, s:n}", "content", content, "refusal");
}
