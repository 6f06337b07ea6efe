/* settings: what a run of training does. Options win over what a checkpoint says, which wins over the defaults: AdamW as nanoGPT has it. */
#include "train/train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 8, SAVE_EVERY = 100, VALIDATE_EVERY = 100, RISE_PART = 50 };
static const double usual_rate = 3e-4;

/* ---- --optimizer NAME,KEY=X,... ------------------------------------------------------------------------------------------------------ */

struct key {
    const char *name;
    size_t at;   /* in struct settings */
    double most; /* it is from 0 to most */
};
#define KEY(name, most)                              \
    {                                                \
#name, offsetof(struct settings, name), most \
    }
static const struct key keys[] = {KEY(beta1, 1),    KEY(beta2, 1),       KEY(eps, 1),           KEY(decay, INFINITY),
                                  KEY(momentum, 1), KEY(clip, INFINITY), KEY(warmup, INFINITY), KEY(floor, 1)};
enum { KEYS = sizeof keys / sizeof *keys };

_Noreturn static void bad_key(const char *part)
{
    fail_usage("--optimizer: '%s' is not KEY=NUMBER, with a key of beta1, beta2, eps, decay, momentum, clip, warmup, floor", part);
}

static void take_key(struct settings *s, const char *part)
{
    const char *equal = strchr(part, '=');
    const struct key *k = keys;
    while (k < keys + KEYS && equal && !(strlen(k->name) == (size_t)(equal - part) && strncmp(part, k->name, strlen(k->name)) == 0))
        k++;
    if (!equal || k == keys + KEYS)
        bad_key(part);
    char *end;
    double x = strtod(equal + 1, &end);
    if (*end || end == equal + 1)
        bad_key(part);
    if (!(x >= 0 && x <= k->most))
        fail_usage("--optimizer: %s is %s, expected 0 or more%s", k->name, equal + 1, isinf(k->most) ? "" : ", and at most 1");
    memcpy((char *)s + k->at, &x, sizeof x);
}

static void take_optimizer(struct arena *a, struct settings *s)
{
    const char *text = s->text;
    for (bool first = true;; first = false) {
        size_t n = strcspn(text, ",");
        const char *part = arena_strndup(a, text, n);
        if (!first)
            take_key(s, part);
        else if (strcmp(part, "adamw") == 0 || strcmp(part, "sgd") == 0)
            s->optimizer = *part == 's' ? OPTIMIZER_SGD : OPTIMIZER_ADAMW;
        else
            fail_usage("--optimizer is '%s', expected adamw or sgd, then keys such as adamw,decay=0.01", s->text);
        if (s->optimizer == OPTIMIZER_SGD && first)
            s->decay = 0;
        if (!text[n])
            return;
        text += n + 1;
    }
}

/* ---- from three places --------------------------------------------------------------------------------------------------------------- */

static int64_t whole_number(int64_t given, const char *saved, int64_t otherwise)
{
    int64_t x;
    return given >= 0 ? given : saved && i64_parse(saved, 0, INT64_MAX, &x) ? x : otherwise;
}

/* 0: not given. */
static int64_t counting_number(int64_t given, const char *saved, int64_t otherwise)
{
    return whole_number(given ? given : -1, saved, otherwise);
}

struct settings settings_of(struct arena *a, const struct train_options *o, const struct job_options *job,
                            const char *(*saved)(void *, const char *), void *data)
{
    struct settings s = {.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .decay = 0.1, .momentum = 0.9, .clip = 1, .warmup = -1, .floor = 0.1};
    const char *lr = saved(data, "lr"), *text = saved(data, "optimizer"), *tokenizer = saved(data, "tokenizer");
    s.batch = counting_number(o->batch, saved(data, "batch"), BATCH);
    s.sequence = counting_number(o->sequence, saved(data, "sequence"), 0);
    s.steps = counting_number(o->steps, saved(data, "steps"), 0);
    s.accumulate = o->accumulate ? o->accumulate : 1;
    s.save_every = counting_number(o->save_every, saved(data, "save-every"), SAVE_EVERY);
    s.validate_every = counting_number(o->validate_every, saved(data, "validate-every"), VALIDATE_EVERY);
    s.fast = !job->deterministic && whole_number(job->fast ? 1 : -1, saved(data, "fast"), 0) > 0;
    s.tokenizer = job->tokenizer ? job->tokenizer : tokenizer && *tokenizer ? tokenizer : NULL;
    s.seed = whole_number(o->seed, saved(data, "seed"), 0);
    s.lr = o->lr >= 0 ? o->lr : lr ? strtod(lr, NULL) : usual_rate;
    s.text = o->optimizer ? o->optimizer : text ? text : "adamw";
    take_optimizer(a, &s);
    if (s.warmup < 0)
        s.warmup = (double)(s.steps / RISE_PART);
    return s;
}

/* Tokens without rows, which only --sequence gives. */
static bool is_stream(const char *path)
{
    return data_is_text(path) || data_open(path).samples == 1;
}

void settings_check(struct arena *a, const struct settings *s, const struct train_options *o, bool samples)
{
    const char *lacks[3];
    int n = 0;
    if (!s->steps)
        lacks[n++] = "--steps N, how many steps";
    if (!o->data && !samples)
        lacks[n++] = "--data FILE, text or tokens to learn from, or --input NAME=FILE.npy";
    if (!s->sequence && !samples && (!o->data || is_stream(o->data)))
        lacks[n++] = "--sequence N, how many tokens a row has";
    const char *text = n ? lacks[0] : "";
    for (int i = 1; i < n; i++)
        text = arena_printf(a, "%s; %s", text, lacks[i]);
    if (n)
        fail_usage("--train needs %s", text);
}

void settings_texts(struct arena *a, const struct settings *s, struct named_text to[SETTINGS_TEXTS])
{
    to[0] = (struct named_text){"batch", arena_printf(a, "%lld", (long long)s->batch)};
    to[1] = (struct named_text){"sequence", arena_printf(a, "%lld", (long long)s->sequence)};
    to[2] = (struct named_text){"steps", arena_printf(a, "%lld", (long long)s->steps)};
    to[3] = (struct named_text){"seed", arena_printf(a, "%lld", (long long)s->seed)};
    to[4] = (struct named_text){"lr", arena_printf(a, "%.17g", s->lr)};
    to[5] = (struct named_text){"optimizer", s->text};
    to[6] = (struct named_text){"save-every", arena_printf(a, "%lld", (long long)s->save_every)};
    to[7] = (struct named_text){"validate-every", arena_printf(a, "%lld", (long long)s->validate_every)};
    to[8] = (struct named_text){"fast", s->fast ? "1" : "0"};
    to[9] = (struct named_text){"tokenizer", s->tokenizer ? s->tokenizer : ""};
}
