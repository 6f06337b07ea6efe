/* sources: the files of --data, in order, and which sample each row of a step is. */
#include "train/train.h"

#include <stdlib.h>
#include <string.h>

struct data_source {
    struct token_file tokens;
    int64_t first, n; /* of the samples to draw from */
    double until;     /* sum of the weights up to this source */
};
struct sources {
    VEC(struct data_source) list;
    bool mixed, in_order;
    int64_t samples, sequence;
};

/* ---- reading --------------------------------------------------------------------------------------------------------- */

/* The number of possible starts of windows. */
static int64_t windows(const struct sources *s, const struct token_file *t)
{
    if (t->samples != 1)
        return t->samples;
    return s->in_order ? (t->row - 1) / s->sequence : t->row - s->sequence;
}

static struct token_file read_tokens(struct arena *a, const char *path, struct texts *texts, int64_t sequence)
{
    struct token_file t = {.samples = 1};
    bool text = data_is_text(path);
    if (!text)
        t = data_open(path);
    if (!sequence && t.samples == 1)
        fail_usage("--data needs --sequence: how many tokens are a row?");
    return text ? text_tokens(a, path, texts, sequence) : t;
}

static void take_file(struct arena *a, struct sources *s, const char *path, struct texts *texts, struct settings *settings)
{
    struct token_file t = read_tokens(a, path, texts, settings->sequence);
    if (!settings->sequence)
        settings->sequence = t.row - 1;
    if (settings->sequence < 1 || settings->sequence >= t.row)
        fail("%s: has rows of %lld tokens, expected more than --sequence %lld: labels are the tokens one place on", path, (long long)t.row,
             (long long)settings->sequence);
    s->sequence = settings->sequence;
    struct data_source own = {.tokens = t, .first = s->samples, .n = windows(s, &t)};
    VEC_PUSH(a, &s->list, own);
    s->samples += own.n;
}

/* W,W,..: a weight per file. */
static void take_mix(struct sources *s, const char *mix)
{
    enum { MOST = 1000000 };
    double sum = 0;
    const char *at = mix;
    char *end = NULL;
    for (int i = 0; i < s->list.n; i++, at = end + 1) {
        double w = strtod(at, &end);
        if (end == at || !(w > 0 && w <= MOST) || *end != (i + 1 < s->list.n ? ',' : 0))
            fail_usage("--mix is '%s', expected a weight above 0 for each file of --data, %d in all, with commas between", mix, s->list.n);
        s->list.at[i].until = sum += w;
    }
    s->mixed = true;
}

struct sources *sources_read(struct arena *a, const struct batch_source *from, struct settings *settings)
{
    struct sources *s = NEW(a, struct sources);
    *s = (struct sources){.in_order = from->in_order};
    for (int i = 0; i < from->data.text.n; i++)
        take_file(a, s, from->data.text.at[i], from->texts, settings);
    if (from->mix)
        take_mix(s, from->mix);
    return s;
}

int64_t sources_samples(const struct sources *s)
{
    return s->samples;
}

/* ---- drawing --------------------------------------------------------------------------------------------------------- */

int64_t sources_draw(const struct sources *s, int64_t seed, int64_t number)
{
    enum { PARTS = 1 << 30 };
    if (!s->mixed)
        return data_draw(seed, number, s->samples);
    const struct data_source *of = s->list.at, *last = of + s->list.n - 1;
    double at = (double)data_draw(seed, -1 - number, PARTS) / PARTS * last->until; /* negative numbers draw files */
    while (of < last && at >= of->until)
        of++;
    return of->first + data_draw(seed, number, of->n);
}

const struct token_file *sources_at(const struct sources *s, int64_t sample, int64_t *from)
{
    const struct data_source *of = s->list.at;
    while (sample >= of->first + of->n)
        of++;
    int64_t step = of->tokens.samples != 1 ? of->tokens.row : s->in_order ? s->sequence : 1;
    *from = (sample - of->first) * step;
    return &of->tokens;
}
