/* settings: the settings of training. Options take precedence over a checkpoint, which takes precedence over the defaults: AdamW as in
 * nanoGPT. */
#include "train/train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 8, SAVE_EVERY = 100, VALIDATE_EVERY = 100, RISE_PART = 50, FALL_PART = 10 };
static const double usual_rate = 3e-4, usual_floor = 0.1;

/* ---- --optimizer NAME,KEY=X,... ------------------------------------------------------------------------------------------------------ */

struct key {
    const char *name;
    size_t at;   /* in struct settings */
    double most; /* in the range 0 to most */
};
#define KEY(name, most)                              \
    {                                                \
#name, offsetof(struct settings, name), most \
    }
static const struct key keys[] = {KEY(beta1, 1),         KEY(beta2, 1),           KEY(eps, 1),
                                  KEY(decay, INFINITY),  KEY(momentum, 1),        KEY(clip, INFINITY),
                                  KEY(warmup, INFINITY), KEY(cooldown, INFINITY), KEY(floor, 1)};
enum { KEYS = sizeof keys / sizeof *keys };
static const char *const schedules[] = {
    [SCHEDULE_COSINE] = "cosine", [SCHEDULE_LINEAR] = "linear", [SCHEDULE_CONSTANT] = "constant", [SCHEDULE_WSD] = "wsd"};
enum { SCHEDULES = sizeof schedules / sizeof *schedules };

_Noreturn static void bad_key(const char *where, const char *part)
{
    fail_usage(
        "%s: '%s' is not KEY=NUMBER, with a key of beta1, beta2, eps, decay, momentum, clip, warmup, cooldown, floor, or schedule=NAME",
        where, part);
}

static void take_schedule(struct settings *s, const char *where, const char *name)
{
    for (int i = 0; i < SCHEDULES; i++)
        if (strcmp(name, schedules[i]) == 0) {
            s->schedule = (enum schedule)i;
            return;
        }
    fail_usage("%s: schedule is '%s', expected cosine, linear, constant or wsd", where, name);
}

static void take_key(struct settings *s, const char *where, const char *part)
{
    static const char schedule[] = "schedule=";
    const char *equal = strchr(part, '=');
    if (strncmp(part, schedule, sizeof schedule - 1) == 0) {
        take_schedule(s, where, equal + 1);
        return;
    }
    const struct key *k = keys;
    while (k < keys + KEYS && equal && !(strlen(k->name) == (size_t)(equal - part) && strncmp(part, k->name, strlen(k->name)) == 0))
        k++;
    if (!equal || k == keys + KEYS)
        bad_key(where, part);
    char *end;
    double x = strtod(equal + 1, &end);
    if (*end || end == equal + 1)
        bad_key(where, part);
    if (!(x >= 0 && x <= k->most))
        fail_usage("%s: %s is %s, expected 0 or more%s", where, k->name, equal + 1, isinf(k->most) ? "" : ", and at most 1");
    memcpy((char *)s + k->at, &x, sizeof x);
}

/* where: names the text in messages. */
static void take_optimizer(struct arena *a, struct settings *s, const char *where)
{
    const char *text = s->text;
    for (bool first = true;; first = false) {
        size_t n = strcspn(text, ",");
        const char *part = arena_strndup(a, text, n);
        if (!first)
            take_key(s, where, part);
        else if (strcmp(part, "adamw") == 0 || strcmp(part, "sgd") == 0)
            s->optimizer = *part == 's' ? OPTIMIZER_SGD : OPTIMIZER_ADAMW;
        else
            fail_usage("%s is '%s', expected adamw or sgd, then keys such as adamw,decay=0.01", where, s->text);
        if (s->optimizer == OPTIMIZER_SGD && first)
            s->decay = 0;
        if (!text[n])
            return;
        text += n + 1;
    }
}

/* ---- from three places --------------------------------------------------------------------------------------------------------------- */

/* An integer of at least `least`. given below that: the option is absent. A checkpoint's value must be valid even if an option overrides
 * it. */
static int64_t number_of(const struct checkpoint *c, const char *key, int64_t least, int64_t given, int64_t otherwise)
{
    (void)checkpoint_integer(c, key, least, INT64_MAX, &otherwise);
    return given >= least ? given : otherwise;
}

static void take_numbers(struct settings *s, const struct train_options *o, const struct checkpoint *c)
{
    s->batch = number_of(c, "batch", 1, o->batch, BATCH);
    s->sequence = number_of(c, "sequence", 0, o->sequence ? o->sequence : -1, 0);
    s->steps = number_of(c, "steps", 1, o->steps, 0);
    s->accumulate = o->accumulate ? o->accumulate : 1;
    s->save_every = number_of(c, "save-every", 1, o->save_every, SAVE_EVERY);
    s->keep = number_of(checkpoint_says(c, "keep") ? c : NULL, "keep", 1, o->keep, 1);
    s->validate_every = number_of(c, "validate-every", 1, o->validate_every, VALIDATE_EVERY);
    s->seed = number_of(c, "seed", 0, o->seed, 0);
    s->lr = usual_rate;
    (void)checkpoint_real(c, "lr", &s->lr);
    s->lr = o->lr >= 0 ? o->lr : s->lr;
}

struct settings settings_of(struct arena *a, const struct train_options *o, const struct job_options *job, const struct checkpoint *c)
{
    struct settings s = {
        .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .decay = 0.1, .momentum = 0.9, .clip = 1, .warmup = -1, .cooldown = -1, .floor = -1};
    const char *text = checkpoint_text(c, "optimizer"), *tokenizer = checkpoint_text(c, "tokenizer");
    int64_t fast = 0;
    take_numbers(&s, o, c);
    (void)checkpoint_integer(c, "fast", 0, 1, &fast);
    s.fast = !job->deterministic && (job->fast || fast);
    s.tokenizer = job->tokenizer ? job->tokenizer : tokenizer && *tokenizer ? tokenizer : NULL;
    s.text = o->optimizer ? o->optimizer : text ? text : "adamw";
    const char *where = o->optimizer || !c ? "--optimizer" : arena_printf(a, "%s: its optimizer", checkpoint_path(c));
    take_optimizer(a, &s, where);
    if (s.cooldown >= 0 && s.schedule != SCHEDULE_WSD)
        fail_usage("%s: cooldown is for schedule=wsd", where);
    if (s.floor >= 0 && s.schedule == SCHEDULE_CONSTANT)
        fail_usage("%s: floor is for a rate that falls, and schedule=constant does not", where);
    if (s.floor < 0)
        s.floor = usual_floor;
    if (s.warmup < 0)
        s.warmup = (double)(s.steps / RISE_PART);
    if (s.cooldown < 0)
        s.cooldown = (double)(s.steps / FALL_PART);
    return s;
}

/* Tokens without rows, for which --sequence gives the length. */
static bool is_stream(const char *path)
{
    return data_is_text(path) || data_open(path).samples == 1;
}

static bool any_stream(const struct text_list *files)
{
    bool any = false;
    for (int i = 0; i < files->text.n; i++)
        any = any || is_stream(files->text.at[i]);
    return any;
}

void settings_check(struct arena *a, const struct settings *s, const struct train_options *o, bool samples)
{
    const char *lacks[3];
    int n = 0;
    if (!s->steps)
        lacks[n++] = "--steps N, how many steps";
    if (!o->data.text.n && !samples)
        lacks[n++] = "--data FILE, text or tokens to learn from, or --input NAME=FILE.npy";
    if (!s->sequence && !samples && (!o->data.text.n || any_stream(&o->data)))
        lacks[n++] = "--sequence N, how many tokens a row has";
    const char *text = n ? lacks[0] : "";
    for (int i = 1; i < n; i++)
        text = arena_printf(a, "%s; %s", text, lacks[i]);
    if (n)
        fail_usage("--train needs %s", text);
    if (o->save && s->tokenizer && !safetensors_takes(s->tokenizer))
        fail("%s: is no UTF-8, as all of a checkpoint's header is: give --tokenizer another name", s->tokenizer);
}
