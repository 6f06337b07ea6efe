/* embedding: fields of /v1/embeddings: texts, as text or tokens, and the form of their vectors. */
#include "serve/request/request.h"

#include <string.h>

static const char field[] = "input";

static bool are_tokens(const json_t *v)
{
    size_t i;
    const json_t *one;
    json_array_foreach(v, i, one)
    {
        if (!json_is_integer(one))
            return false;
    }
    return json_array_size(v) > 0;
}

/* Clients match OpenAI's code, and the first words. */
static void refuse_long(struct reading *r, int64_t tokens)
{
    struct call *c = r->call;
    if (!r->wrong)
        c->code = "context_length_exceeded";
    request_blame(r, field,
                  arena_printf(c->arena, "This model's maximum context length is %lld tokens, and the text has %lld",
                               (long long)c->service->context, (long long)tokens));
}

static void check_tokens(struct reading *r, const struct token_ids *ids)
{
    const struct service *s = r->call->service;
    if (ids->list.n == 0)
        request_refuse(r, field, "texts of at least one token");
    if (ids->list.n > s->context)
        refuse_long(r, ids->list.n);
    for (int i = 0; i < ids->list.n; i++)
        if (ids->list.at[i] < 0 || ids->list.at[i] >= s->vocabulary)
            request_refuse(
                r, field,
                arena_printf(r->call->arena, "tokens below %lld, found %lld", (long long)s->vocabulary, (long long)ids->list.at[i]));
}

static void add_text(struct reading *r, const json_t *v)
{
    struct embeddings *m = r->call->embeddings;
    struct token_ids ids = {0};
    if (json_is_string(v) && json_string_length(v))
        (void)request_encode(r, field, (struct text){json_string_value(v), json_string_length(v)}, r->special, &ids);
    else if (are_tokens(v))
        for (size_t i = 0; i < json_array_size(v); i++)
            VEC_PUSH(r->call->arena, &ids.list, json_integer_value(json_array_get(v, i)));
    else
        request_refuse(r, field, "a text, token ids, or a list of these, none of them empty");
    if (!r->wrong)
        check_tokens(r, &ids);
    m->text[m->n++] = ids;
}

static void read_texts(struct reading *r)
{
    struct call *c = r->call;
    const json_t *v = request_given(r, field);
    bool several = json_is_array(v) && !are_tokens(v);
    size_t n = several ? json_array_size(v) : 1;
    if (n < 1 || n > SERVE_EMBEDDINGS)
        request_refuse(r, field, arena_printf(c->arena, "1 to %d texts", SERVE_EMBEDDINGS));
    if (r->wrong)
        return;
    int64_t numbers = (int64_t)n * c->service->width;
    if (numbers > SERVE_NUMBERS)
        request_blame(r, field,
                      arena_printf(c->arena, "%lld vectors of %lld numbers are more than the %d that a reply has: send fewer texts",
                                   (long long)n, (long long)c->service->width, SERVE_NUMBERS));
    c->embeddings->text = NEWN(c->arena, struct token_ids, n);
    for (size_t i = 0; i < n && !r->wrong; i++)
        add_text(r, several ? json_array_get(v, i) : v);
}

static void read_form(struct reading *r)
{
    const json_t *v = request_given(r, "encoding_format");
    const char *form = v ? json_string_value(v) : "float";
    if (!form || (strcmp(form, "float") != 0 && strcmp(form, "base64") != 0))
        request_refuse(r, "encoding_format", "\"float\" or \"base64\"");
    r->call->embeddings->base64 = form && strcmp(form, "base64") == 0;
}

void request_embedding(struct reading *r)
{
    static const char *const own[] = {NULL};
    struct call *c = r->call;
    const struct service *s = c->service;
    if (!s->width) {
        request_blame(r, NULL, s->no_embeddings);
        return;
    }
    const char *key = fields_unsupported(r->root, own);
    if (key)
        request_blame(r, key, arena_printf(c->arena, "this server does not support '%s': leave it out, or set it to null", key));
    c->embeddings = NEW(c->arena, struct embeddings);
    (void)request_given(r, "model");
    if (s->adapters && request_model(r) > 0)
        request_refuse(r, "model", "the model itself, for adapters make no vectors");
    read_form(r);
    c->embeddings->dimensions = request_integer(r, "dimensions", 1, s->width, s->width);
    r->special = request_flag(r, "add_special_tokens", true);
    read_texts(r);
}
