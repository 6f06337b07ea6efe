/* reply: what the server answers, as JSON of OpenAI's API, events of a stream, and metrics for Prometheus. */
#include "serve/serve.h"

#include <string.h>

/* What is no UTF-8 in it, as names of files need not be, is replaced. */
static json_t *text_json(const char *at, size_t n)
{
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

static json_t *name_json(const char *name)
{
    return text_json(name, strlen(name));
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
    int64_t prompts = 0, made = 0;
    for (int64_t i = 0; i < c->choices; i++) {
        made += c->choice[i].made.n;
        prompts += i == 0 || c->choice[i].prompt != c->choice[i - 1].prompt ? c->choice[i].prompts : 0;
    }
    return json_pack("{s:I, s:I, s:I}", "prompt_tokens", (json_int_t)prompts, "completion_tokens", (json_int_t)made, "total_tokens",
                     (json_int_t)(prompts + made));
}

static json_t *choice_of(const struct choice *o, struct text t, const char *finish)
{
    return json_pack("{s:I, s:o, s:n, s:s?}", "index", (json_int_t)o->index, "text", text_json(t.n ? t.at : "", t.n), "logprobs",
                     "finish_reason", finish);
}

static json_t *frame(const struct call *c, json_t *choices)
{
    return json_pack("{s:s, s:s, s:I, s:o, s:o}", "id", arena_printf(c->arena, "cmpl-%lld", (long long)c->number), "object",
                     "text_completion", "created", (json_int_t)c->created, "model", name_json(c->service->model), "choices", choices);
}

const char *reply_completion(struct call *c)
{
    json_t *choices = json_array();
    for (int64_t i = 0; i < c->choices; i++)
        (void)json_array_append_new(choices, choice_of(&c->choice[i], text_built(&c->choice[i].text), c->choice[i].finish));
    json_t *root = frame(c, choices);
    (void)json_object_set_new(root, "usage", usage_of(c));
    return dump(c->arena, root);
}

const char *reply_error(struct arena *a, const char *message, const char *type, const char *param, const char *code)
{
    return dump(
        a, json_pack("{s:{s:o, s:s, s:s?, s:s?}}", "error", "message", name_json(message), "type", type, "param", param, "code", code));
}

static json_t *model_json(const struct service *s)
{
    return json_pack("{s:o, s:s, s:i, s:s, s:I}", "id", name_json(s->model), "object", "model", "created", 0, "owned_by", "tpc",
                     "context_length", (json_int_t)s->context);
}

const char *reply_models(struct arena *a, const struct service *s)
{
    return dump(a, json_pack("{s:s, s:[o]}", "object", "list", "data", model_json(s)));
}

bool reply_names_model(const struct service *s, const char *name)
{
    json_t *own = name_json(s->model);
    bool same = strcmp(json_string_value(own), name) == 0;
    json_decref(own);
    return same;
}

const char *reply_model(struct arena *a, const struct service *s)
{
    return dump(a, model_json(s));
}

const char *reply_health(struct arena *a, const char *status, const char *message)
{
    return dump(a, json_pack("{s:s, s:s*}", "status", status, "message", message));
}

/* ---- streams ---- */

static void put_event(struct call *c, const char *data)
{
    text_put(&c->events, "data: ", 6);
    text_put(&c->events, data, strlen(data));
    text_put(&c->events, "\n\n", 2);
}

void reply_put_event(struct call *c, const struct choice *o, struct text more, const char *finish)
{
    struct arena *tmp = arena_new();
    json_t *choices = json_array();
    (void)json_array_append_new(choices, choice_of(o, more, finish));
    put_event(c, dump(tmp, frame(c, choices)));
    arena_free(tmp);
}

void reply_put_end(struct call *c)
{
    struct arena *tmp = arena_new();
    if (c->usage) {
        json_t *root = frame(c, json_array());
        (void)json_object_set_new(root, "usage", usage_of(c));
        put_event(c, dump(tmp, root));
    }
    put_event(c, "[DONE]");
    arena_free(tmp);
}

/* ---- metrics ---- */

static const char *put_metric(struct arena *a, const char *before, const char *name, const char *type, const char *what, double value)
{
    return arena_printf(a, "%s# HELP tpc_%s %s\n# TYPE tpc_%s %s\ntpc_%s %.17g\n", before, name, what, name, type, name, value);
}

const char *reply_metrics(struct arena *a, const struct service *s)
{
    const struct counts *n = &s->counts;
    const char *t = put_metric(a, "", "requests_total", "counter", "Requests for completions.", (double)n->requests);
    t = put_metric(a, t, "requests_refused_total", "counter", "Those that were refused.", (double)n->refused);
    t = put_metric(a, t, "clients_vanished_total", "counter", "Clients that left before their texts ended.", (double)n->vanished);
    t = put_metric(a, t, "texts_total", "counter", "Texts that ended.", (double)n->texts);
    t = put_metric(a, t, "prompt_tokens_total", "counter", "Tokens of prompts.", (double)n->prompt_tokens);
    t = put_metric(a, t, "generated_tokens_total", "counter", "Tokens that were made.", (double)n->made_tokens);
    t = put_metric(a, t, "prompt_seconds_total", "counter", "Time spent on prompts.", n->prompt_seconds);
    t = put_metric(a, t, "prompt_runs_total", "counter", "Runs of prompts, which may have several.", (double)n->prompt_runs);
    t = put_metric(a, t, "steps_total", "counter", "Steps, each of a token for every row.", (double)n->steps);
    t = put_metric(a, t, "step_seconds_total", "counter", "Time spent on steps.", n->step_seconds);
    t = put_metric(a, t, "first_token_seconds_sum", "counter", "From request to first token.", n->first_seconds);
    t = put_metric(a, t, "first_token_seconds_count", "counter", "Texts with a first token.", (double)n->firsts);
    t = put_metric(a, t, "rows", "gauge", "Rows in use.", (double)s->active);
    t = put_metric(a, t, "rows_most", "gauge", "Rows there are.", (double)s->slots);
    return put_metric(a, t, "waiting", "gauge", "Texts that wait for a row.", (double)s->waiting);
}
