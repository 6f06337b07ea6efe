/* reply: replies of the server, as JSON of OpenAI's API, and events of a stream. */
#include "serve/reply/reply.h"

#include <string.h>

static json_t *name_json(const char *name)
{
    return reply_text(text_of(name));
}

static const char *dump(struct arena *a, json_t *root)
{
    size_t n = json_dumpb(root, NULL, 0, JSON_COMPACT);
    if (n == 0)
        bug("a reply can't be written as JSON");
    char *text = arena_alloc(a, n + 1);
    (void)json_dumpb(root, text, n, JSON_COMPACT);
    json_decref(root);
    return text;
}

static json_t *usage_of(const struct call *c)
{
    int64_t prompts = 0, stored = 0, made = 0;
    for (int64_t i = 0; i < c->choices; i++) {
        made += c->choice[i].made.n;
        if (i > 0 && c->choice[i].prompt == c->choice[i - 1].prompt)
            continue;
        prompts += c->choice[i].prompts;
        stored += c->choice[i].stored;
    }
    return json_pack("{s:I, s:I, s:I, s:{s:I}}", "prompt_tokens", (json_int_t)prompts, "completion_tokens", (json_int_t)made,
                     "total_tokens", (json_int_t)(prompts + made), "prompt_tokens_details", "cached_tokens", (json_int_t)stored);
}

static json_t *choice_of(const struct choice *o, struct text t, const char *finish)
{
    return json_pack("{s:I, s:o, s:o, s:s?}", "index", (json_int_t)o->index, "text", reply_text(t), "logprobs", reply_logprobs(o),
                     "finish_reason", finish);
}

json_t *reply_completion(const struct choice *o)
{
    return choice_of(o, text_built(&o->text), o->finish);
}

static json_t *frame(const struct call *c, const char *object, json_t *choices)
{
    return json_pack("{s:s, s:s, s:I, s:o, s:o}", "id", arena_printf(c->arena, "%s-%lld", c->endpoint->id, (long long)c->number), "object",
                     object, "created", (json_int_t)c->created, "model", name_json(c->model ? c->model : c->service->model), "choices",
                     choices);
}

const char *reply_whole(struct call *c)
{
    json_t *choices = json_array();
    for (int64_t i = 0; i < c->choices; i++) {
        c->choice[i].shown_to = c->choice[i].shown.n;
        (void)json_array_append_new(choices, c->endpoint->choice(&c->choice[i]));
    }
    json_t *root = frame(c, c->endpoint->object, choices);
    (void)json_object_set_new(root, "usage", usage_of(c));
    return dump(c->arena, root);
}

const char *reply_error(struct arena *a, const char *message, const char *type, const char *param, const char *code)
{
    return dump(
        a, json_pack("{s:{s:o, s:s, s:s?, s:s?}}", "error", "message", name_json(message), "type", type, "param", param, "code", code));
}

/* Embeddings are the base model's. */
static json_t *model_json(const struct service *s, const char *name)
{
    bool own = name == s->model;
    json_t *can = json_pack("{s:b, s:b, s:b}", "completion", !s->no_texts, "chat", !s->no_texts && s->chat, "embeddings",
                            own && s->width > 0);
    return json_pack("{s:o, s:s, s:i, s:s, s:I, s:o}", "id", name_json(name), "object", "model", "created", 0, "owned_by", "tpc",
                     "context_length", (json_int_t)s->context, "capabilities", can);
}

const char *reply_models(struct arena *a, const struct service *s)
{
    json_t *all = json_array();
    (void)json_array_append_new(all, model_json(s, s->model));
    for (int i = 0; i < s->adapters; i++)
        (void)json_array_append_new(all, model_json(s, s->adapter[i].name));
    return dump(a, json_pack("{s:s, s:o}", "object", "list", "data", all));
}

static bool is_written(const char *name, const char *as)
{
    json_t *own = name_json(name);
    bool same = strcmp(json_string_value(own), as) == 0;
    json_decref(own);
    return same;
}

int reply_named_model(const struct service *s, const char *name)
{
    for (int i = 0; i < s->adapters; i++)
        if (is_written(s->adapter[i].name, name))
            return i + 1;
    return is_written(s->model, name) ? 0 : -1;
}

const char *reply_model(struct arena *a, const struct service *s, int number)
{
    return dump(a, model_json(s, number ? s->adapter[number - 1].name : s->model));
}

const char *reply_tokens(struct call *c)
{
    json_t *ids = json_array();
    for (int i = 0; i < c->ids.list.n; i++)
        (void)json_array_append_new(ids, json_integer(c->ids.list.at[i]));
    return dump(c->arena,
                json_pack("{s:i, s:I, s:o}", "count", c->ids.list.n, "max_model_len", (json_int_t)c->service->context, "tokens", ids));
}

const char *reply_detokenized(struct call *c)
{
    return dump(c->arena, json_pack("{s:o}", "prompt", reply_text(c->decoded)));
}

const char *reply_health(struct arena *a, const char *status, const char *message)
{
    return dump(a, json_pack("{s:s, s:s*}", "status", status, "message", message));
}

const char *reply_supervised(struct arena *a, const char *status, int restarts, const char *why)
{
    return dump(a, json_pack("{s:s, s:i, s:s*}", "status", status, "restarts", restarts, "last_restart", *why ? why : NULL));
}

/* ---- streams ---- */

static void put_event(struct call *c, const char *data)
{
    text_put(&c->events, "data: ", 6);
    text_put(&c->events, data, strlen(data));
    text_put(&c->events, "\n\n", 2);
}

void reply_put_choice(struct call *c, json_t *choice)
{
    struct arena *tmp = arena_new();
    put_event(c, dump(tmp, frame(c, c->endpoint->event, json_pack("[o]", choice))));
    arena_free(tmp);
}

void reply_put_event(struct call *c, struct choice *o, struct text more, const char *finish)
{
    reply_put_choice(c, choice_of(o, more, finish));
}

void reply_put_end(struct call *c)
{
    struct arena *tmp = arena_new();
    if (c->usage) {
        json_t *root = frame(c, c->endpoint->event, json_array());
        (void)json_object_set_new(root, "usage", usage_of(c));
        put_event(c, dump(tmp, root));
    }
    put_event(c, "[DONE]");
    arena_free(tmp);
}

void reply_put_error(struct call *c, const char *message)
{
    struct arena *tmp = arena_new();
    const bool ours = c->status >= MHD_HTTP_INTERNAL_SERVER_ERROR;
    put_event(c, reply_error(tmp, message, ours ? "server_error" : "invalid_request_error", NULL, NULL));
    arena_free(tmp);
}
