/* request: reads and checks the body of /v1/completions. */
#include "serve/serve.h"

#include <string.h>
#include <sys/random.h>

struct reading {
    struct call *call;
    const json_t *root;
    struct text_list read; /* the names that were looked for */
    const char *wrong;     /* the first that was found */
    struct sampling sampling;
    int64_t each; /* choices of a prompt */
    bool special; /* prompts get the special tokens of the template */
};

/* key: the field to blame. */
static void blame(struct reading *r, const char *key, const char *sentence)
{
    if (r->wrong)
        return;
    r->wrong = sentence;
    r->call->param = key;
}

static void refuse(struct reading *r, const char *key, const char *expected)
{
    blame(r, key, arena_printf(r->call->arena, "%s: expected %s", key, expected));
}

/* All fields are read by it. */
static const json_t *given(struct reading *r, const char *key)
{
    VEC_PUSH(r->call->arena, &r->read.text, key);
    const json_t *v = json_object_get(r->root, key);
    return json_is_null(v) ? NULL : v;
}

static void read_real(struct reading *r, const char *key, double *to)
{
    const json_t *v = given(r, key);
    if (v && !json_is_number(v))
        refuse(r, key, "a number");
    else if (v)
        *to = json_number_value(v);
}

static int64_t read_integer(struct reading *r, const char *key, int64_t least, int64_t most, int64_t otherwise)
{
    const json_t *v = given(r, key);
    int64_t x = v && json_is_integer(v) ? json_integer_value(v) : otherwise;
    if ((v && !json_is_integer(v)) || (v && (x < least || x > most)))
        refuse(r, key, arena_printf(r->call->arena, "a whole number of %lld to %lld", (long long)least, (long long)most));
    return x;
}

static bool read_flag(struct reading *r, const char *key)
{
    const json_t *v = given(r, key);
    if (v && !json_is_boolean(v))
        refuse(r, key, "true or false");
    return json_is_true(v);
}

static void refuse_unsupported(struct reading *r)
{
    const char *key = fields_unsupported(r->root);
    if (key)
        blame(r, key, arena_printf(r->call->arena, "this server does not support '%s': leave it out, or set it to null", key));
}

/* As many texts are made as are returned. */
static void read_best_of(struct reading *r)
{
    int64_t n = read_integer(r, "best_of", 0, INT32_MAX, 0);
    if (n && n != r->each)
        blame(r, "best_of",
              arena_printf(r->call->arena, "this server does not support 'best_of' other than n, which is %lld", (long long)r->each));
}

/* The two names of it say the same. */
static int64_t read_most(struct reading *r)
{
    int64_t usual = given(r, "max_completion_tokens") ? read_integer(r, "max_completion_tokens", 0, INT32_MAX, 0) : 16;
    int64_t most = read_integer(r, "max_tokens", 0, INT32_MAX, usual);
    if (given(r, "max_completion_tokens") && most != usual)
        refuse(r, "max_tokens", "the same number as max_completion_tokens");
    return most;
}

/* ---- fields without effect ---- */

static bool is_told(struct told *t, const char *name)
{
    for (int i = 0; i < t->n; i++)
        if (strcmp(t->name[i], name) == 0)
            return true;
    return false;
}

/* The log names each once, as long as they are not too many. */
static void tell_ignored(struct told *t, const char *name)
{
    const int most = (int)(sizeof t->name / sizeof *t->name);
    if (t->n == most || strlen(name) >= sizeof *t->name || is_told(t, name))
        return;
    memcpy(t->name[t->n++], name, strlen(name) + 1);
    diag_tell("requests have '%s', a field that is not known and has no effect%s", name,
              t->n == most ? "; further ones are not named" : "");
}

static void note_ignored(struct reading *r, json_t *root)
{
    struct call *c = r->call;
    struct text_list names = fields_ignored(c->arena, root, &r->read);
    for (int i = 0; i < names.text.n; i++) {
        tell_ignored(&c->service->told, names.text.at[i]);
        c->ignored = i ? arena_printf(c->arena, "%s, %s", c->ignored, names.text.at[i]) : names.text.at[i];
    }
}

/* ---- prompts ---- */

/* Clients know OpenAI's code, and the first words. */
static void refuse_long_prompt(struct reading *r, int64_t tokens)
{
    struct call *c = r->call;
    if (!r->wrong)
        c->code = "context_length_exceeded";
    blame(r, "prompt",
          arena_printf(
              c->arena,
              "This model's maximum context length is %lld tokens, and the prompt has %lld: it may have %lld, for at least one token "
              "is made",
              (long long)c->service->context, (long long)tokens, (long long)c->service->context - 1));
}

static void add_choices(struct reading *r, const int64_t *token, int64_t n)
{
    struct call *c = r->call;
    const struct service *s = c->service;
    if (n == 0)
        refuse(r, "prompt", "at least one token");
    if (n >= s->context)
        refuse_long_prompt(r, n);
    for (int64_t i = 0; i < n; i++)
        if (token[i] < 0 || token[i] >= s->vocabulary)
            refuse(r, "prompt", arena_printf(c->arena, "tokens below %lld, found %lld", (long long)s->vocabulary, (long long)token[i]));
    int64_t *own = NEWN(c->arena, int64_t, n + 1);
    for (int64_t i = 0; i < n; i++)
        own[i] = token[i];
    for (int64_t k = 0; k < r->each && !r->wrong; k++) {
        struct choice *o = &c->choice[c->choices];
        *o = (struct choice){.call = c, .index = c->choices, .prompts = n, .how = {r->sampling, (uint64_t)c->choices}};
        o->prompt = own;
        o->text.arena = c->arena;
        c->choices++;
    }
}

struct encoding {
    struct reading *reading;
    const json_t *text;
    struct token_ids ids;
};

static void encode(void *data)
{
    struct encoding *e = data;
    struct call *c = e->reading->call;
    e->ids = tokenizer_encode(c->service->prompt_tokenizer, c->arena, json_string_value(e->text), json_string_length(e->text),
                              e->reading->special);
}

static void add_text_prompt(struct reading *r, const json_t *text)
{
    struct encoding e = {.reading = r, .text = text};
    const char *failure = diag_try(r->call->arena, encode, &e);
    if (failure)
        blame(r, "prompt", failure);
    else
        add_choices(r, e.ids.list.at, e.ids.list.n);
}

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

static void add_token_prompt(struct reading *r, const json_t *list)
{
    size_t n = json_array_size(list);
    int64_t *token = NEWN(r->call->arena, int64_t, n + 1);
    for (size_t i = 0; i < n; i++)
        token[i] = json_integer_value(json_array_get(list, i));
    add_choices(r, token, (int64_t)n);
}

static void add_prompt(struct reading *r, const json_t *prompt)
{
    if (json_is_string(prompt))
        add_text_prompt(r, prompt);
    else if (json_is_array(prompt) && all_integers(prompt))
        add_token_prompt(r, prompt);
    else
        refuse(r, "prompt", "a text, token ids, or a list of these");
}

static void read_prompts(struct reading *r)
{
    const json_t *prompt = given(r, "prompt");
    bool several = json_is_array(prompt) && !all_integers(prompt);
    int64_t n = several ? (int64_t)json_array_size(prompt) : 1;
    if (r->wrong)
        return;
    if (n < 1 || n * r->each > SERVE_CHOICES) {
        refuse(r, "prompt", arena_printf(r->call->arena, "1 to %d texts in all", SERVE_CHOICES));
        return;
    }
    r->call->choice = NEWN(r->call->arena, struct choice, n * r->each);
    for (int64_t i = 0; i < n && !r->wrong; i++)
        add_prompt(r, several ? json_array_get(prompt, (size_t)i) : prompt);
}

/* ---- the rest ---- */

static void add_stop(struct reading *r, const json_t *v)
{
    struct call *c = r->call;
    if (!json_is_string(v) || json_string_length(v) == 0) {
        refuse(r, "stop", "a text or a list of texts");
        return;
    }
    size_t n = json_string_length(v);
    c->stop[c->stops++] = (struct text){memcpy(arena_alloc(c->arena, n), json_string_value(v), n), n};
}

static void read_stops(struct reading *r)
{
    const json_t *v = given(r, "stop");
    size_t n = json_array_size(v);
    if (n > SERVE_STOPS) {
        refuse(r, "stop", arena_printf(r->call->arena, "at most %d texts", SERVE_STOPS));
        return;
    }
    for (size_t i = 0; i < n; i++)
        add_stop(r, json_array_get(v, i));
    if (v && !json_is_array(v) && !(json_is_string(v) && json_string_length(v) == 0))
        add_stop(r, v);
}

static void read_sampling(struct reading *r)
{
    struct sampling *s = &r->sampling;
    *s = r->call->service->usual;
    read_real(r, "temperature", &s->temperature);
    read_real(r, "top_p", &s->top_p);
    read_real(r, "min_p", &s->min_p);
    read_real(r, "repetition_penalty", &s->penalty);
    s->top_k = read_integer(r, "top_k", -1, INT32_MAX, s->top_k);
    s->top_k = s->top_k < 0 ? 0 : s->top_k;
    const struct sampling_fault f = sampling_fault(s);
    if (f.key)
        refuse(r, f.key, f.expected);
    if (given(r, "seed"))
        s->seed = (uint64_t)read_integer(r, "seed", INT64_MIN, INT64_MAX, 0);
    else if (!r->call->service->seeded && getrandom(&s->seed, sizeof s->seed, 0) < 0)
        blame(r, "seed", "the system gave no random number: give a seed");
}

static void read_stream_options(struct reading *r)
{
    const json_t *options = given(r, "stream_options"), *usage = json_object_get(options, "include_usage");
    if (options && !json_is_object(options))
        refuse(r, "stream_options", "an object");
    else if (usage && !json_is_boolean(usage) && !json_is_null(usage))
        refuse(r, "stream_options.include_usage", "true or false");
    r->call->usage = json_is_true(usage);
}

static void read_all(struct reading *r)
{
    struct call *c = r->call;
    if (given(r, "model") && !json_is_string(given(r, "model")))
        refuse(r, "model", "a name");
    refuse_unsupported(r);
    c->most = read_most(r);
    r->each = read_integer(r, "n", 1, SERVE_CHOICES, 1);
    c->stream = read_flag(r, "stream");
    read_stream_options(r);
    r->special = !given(r, "add_special_tokens") || read_flag(r, "add_special_tokens");
    read_best_of(r);
    read_sampling(r);
    read_stops(r);
    read_prompts(r);
}

const char *request_read(struct call *c)
{
    json_error_t error;
    const struct text body = text_built(&c->body);
    json_t *root = json_loadb(body.n ? body.at : "", body.n, JSON_ALLOW_NUL, &error);
    struct reading r = {.call = c, .root = root};
    if (!root)
        return arena_printf(c->arena, "the body is not JSON: line %d: %s", error.line, error.text);
    if (json_is_object(root)) {
        read_all(&r);
        note_ignored(&r, root);
    } else
        r.wrong = "the body is not an object";
    json_decref(root);
    return r.wrong;
}
