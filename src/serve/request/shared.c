/* shared: fields common to completions and chats: how texts are generated, and where they end. */
#include "serve/request/request.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

struct shared_field {
    const char *name;
    void (*read)(struct reading *, const struct shared_field *);
    size_t at; /* offset of a number in the sampling settings */
};

/* ---- sampling ---- */

static void read_setting(struct reading *r, const struct shared_field *f)
{
    double *to = (double *)(void *)((char *)&r->how.of + f->at);
    *to = request_real(r, f->name, *to);
}

static void read_top_k(struct reading *r, const struct shared_field *f)
{
    int64_t k = request_integer(r, f->name, -1, INT32_MAX, r->how.of.top_k);
    r->how.of.top_k = k < 0 ? 0 : k;
}

/* A token's id in canonical form, so that no token has two names. */
static bool token_named(const struct service *s, const char *name, int64_t *token)
{
    char own[24];
    if (!i64_parse(name, 0, s->vocabulary - 1, token))
        return false;
    (void)snprintf(own, sizeof own, "%lld", (long long)*token);
    return strcmp(own, name) == 0;
}

static void read_bias(struct reading *r, const struct shared_field *f)
{
    const struct service *s = r->call->service;
    json_t *v = (json_t *)(uintptr_t)request_given(r, f->name), *add;
    struct scored_token *bias = NEWN(r->call->arena, struct scored_token, SERVE_BIASES);
    const char *name;
    if (v && (!json_is_object(v) || json_object_size(v) > SERVE_BIASES)) {
        request_refuse(r, f->name, arena_printf(r->call->arena, "an object of at most %d token ids", SERVE_BIASES));
        return;
    }
    json_object_foreach(v, name, add)
    {
        struct scored_token *b = &bias[r->how.biases++];
        b->score = json_number_value(add);
        if (!token_named(s, name, &b->token))
            request_refuse(r, f->name, arena_printf(r->call->arena, "token ids below %lld as its keys", (long long)s->vocabulary));
        if (!json_is_number(add) || !(b->score >= -100 && b->score <= 100))
            request_refuse(r, f->name, "numbers of -100 to 100 as its values");
    }
    r->how.bias = bias;
}

static void read_seed(struct reading *r, const struct shared_field *f)
{
    struct sampling *s = &r->how.of;
    if (request_given(r, f->name))
        s->seed = (uint64_t)request_integer(r, f->name, INT64_MIN, INT64_MAX, 0);
    else if (!r->call->service->seeded && getrandom(&s->seed, sizeof s->seed, 0) < 0)
        request_blame(r, f->name, "the system gave no random number: give a seed");
}

/* ---- ends of texts ---- */

static void add_stop(struct reading *r, const char *key, const json_t *v)
{
    struct call *c = r->call;
    if (!json_is_string(v) || json_string_length(v) == 0) {
        request_refuse(r, key, "a text or a list of texts, none of them empty");
        return;
    }
    size_t n = json_string_length(v);
    c->stop[c->stops++] = (struct text){memcpy(arena_alloc(c->arena, n), json_string_value(v), n), n};
}

static void read_stops(struct reading *r, const struct shared_field *f)
{
    const json_t *v = request_given(r, f->name);
    size_t n = json_array_size(v);
    if (n > SERVE_STOPS) {
        request_refuse(r, f->name, arena_printf(r->call->arena, "at most %d texts", SERVE_STOPS));
        return;
    }
    for (size_t i = 0; i < n; i++)
        add_stop(r, f->name, json_array_get(v, i));
    if (v && !json_is_array(v))
        add_stop(r, f->name, v);
}

static void read_other_most(struct reading *r, const struct shared_field *f)
{
    r->most_other = request_integer(r, f->name, 0, INT32_MAX, -1);
}

/* Two names of the field must agree. */
static void read_most(struct reading *r, const struct shared_field *f)
{
    int64_t other = r->most_other;
    r->call->most = request_integer(r, f->name, 0, INT32_MAX, other < 0 ? r->usual_most : other);
    if (other >= 0 && r->call->most != other)
        request_refuse(r, f->name, "the same number as max_completion_tokens");
}

/* ---- form of the reply ---- */

static void read_model(struct reading *r, const struct shared_field *f)
{
    (void)f;
    r->how.adapter = request_model(r);
    if (r->how.adapter > 0)
        r->call->model = r->call->service->adapter[r->how.adapter - 1].name;
}

static void read_each(struct reading *r, const struct shared_field *f)
{
    r->each = request_integer(r, f->name, 1, SERVE_CHOICES, 1);
}

static void read_stream(struct reading *r, const struct shared_field *f)
{
    r->call->stream = request_flag(r, f->name, false);
}

static void read_stream_options(struct reading *r, const struct shared_field *f)
{
    const json_t *options = request_given(r, f->name), *usage = json_object_get(options, "include_usage");
    if (options && !json_is_object(options))
        request_refuse(r, f->name, "an object");
    else if (usage && !json_is_boolean(usage) && !json_is_null(usage))
        request_refuse(r, "stream_options.include_usage", "true or false");
    r->call->usage = json_is_true(usage);
}

/* In this order. */
static const struct shared_field shared[] = {
    {"model", read_model, 0},
    {"max_completion_tokens", read_other_most, 0},
    {"max_tokens", read_most, 0},
    {"n", read_each, 0},
    {"stream", read_stream, 0},
    {"stream_options", read_stream_options, 0},
    {"stop", read_stops, 0},
    {"temperature", read_setting, offsetof(struct sampling, temperature)},
    {"top_p", read_setting, offsetof(struct sampling, top_p)},
    {"min_p", read_setting, offsetof(struct sampling, min_p)},
    {"repetition_penalty", read_setting, offsetof(struct sampling, penalty)},
    {"presence_penalty", read_setting, offsetof(struct sampling, presence)},
    {"frequency_penalty", read_setting, offsetof(struct sampling, frequency)},
    {"top_k", read_top_k, 0},
    {"logit_bias", read_bias, 0},
    {"seed", read_seed, 0},
};

static void check_chooser(struct reading *r)
{
    if (r->call->service->chooses && r->how.of.temperature > 0)
        request_refuse(r, "temperature", "0, for the model's graph chooses tokens itself");
    if (r->call->service->chooses && adjust_changes(&r->how))
        request_blame(r, NULL, "the model's graph chooses tokens itself: it takes no biases and penalties");
}

void shared_read(struct reading *r)
{
    const char *key = fields_unsupported(r->root, r->own);
    if (r->call->service->no_texts)
        request_blame(r, NULL, r->call->service->no_texts);
    if (key)
        request_blame(r, key, arena_printf(r->call->arena, "this server does not support '%s': leave it out, or set it to null", key));
    r->how.of = r->call->service->usual;
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++)
        shared[i].read(r, &shared[i]);
    const struct sampling_fault f = sampling_fault(&r->how.of);
    if (f.key)
        request_refuse(r, f.key, f.expected);
    check_chooser(r);
}

/* ---- prompts ---- */

void request_make_choices(struct reading *r, const char *key, int64_t prompts)
{
    if (prompts < 1 || prompts * r->each > SERVE_CHOICES)
        request_refuse(r, key, arena_printf(r->call->arena, "1 to %d texts in all", SERVE_CHOICES));
    else
        r->call->choice = NEWN(r->call->arena, struct choice, prompts * r->each);
}

/* Clients match OpenAI's code, and the first words. */
static void refuse_long_prompt(struct reading *r, const char *key, int64_t tokens)
{
    struct call *c = r->call;
    if (!r->wrong)
        c->code = "context_length_exceeded";
    request_blame(
        r, key,
        arena_printf(c->arena,
                     "This model's maximum context length is %lld tokens, and the prompt has %lld: it may have %lld, for at least one "
                     "token is made",
                     (long long)c->service->context, (long long)tokens, (long long)c->service->context - 1));
}

void request_add_choices(struct reading *r, const char *key, const int64_t *token, int64_t n)
{
    struct call *c = r->call;
    const struct service *s = c->service;
    if (n == 0)
        request_refuse(r, key, "at least one token");
    if (n >= s->context)
        refuse_long_prompt(r, key, n);
    for (int64_t i = 0; i < n; i++)
        if (token[i] < 0 || token[i] >= s->vocabulary)
            request_refuse(r, key, arena_printf(c->arena, "tokens below %lld, found %lld", (long long)s->vocabulary, (long long)token[i]));
    int64_t *own = NEWN(c->arena, int64_t, n + 1);
    for (int64_t i = 0; i < n; i++)
        own[i] = token[i];
    for (int64_t k = 0; k < r->each && !r->wrong; k++) {
        struct choice *o = &c->choice[c->choices];
        *o = (struct choice){.call = c, .index = c->choices, .prompts = n, .how = r->how};
        o->how.number = (uint64_t)c->choices;
        o->prompt = own;
        o->text.arena = c->arena;
        c->choices++;
    }
}

struct encoding {
    const struct tokenizer *tokenizer;
    struct arena *arena;
    struct text text;
    bool special;
    struct token_ids ids;
};

static void encode(void *data)
{
    struct encoding *e = data;
    e->ids = tokenizer_encode(e->tokenizer, e->arena, e->text.at, e->text.n, e->special);
}

bool request_encode(struct reading *r, const char *key, struct text text, bool special, struct token_ids *ids)
{
    struct encoding e = {r->call->service->prompt_tokenizer, r->call->arena, text, special, {{0}}};
    const char *failure = diag_try(r->call->arena, encode, &e);
    if (failure)
        request_blame(r, key, failure);
    *ids = e.ids;
    return !failure;
}
