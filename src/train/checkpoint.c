/* checkpoint: one safetensors file with all trained weights, by name, and the moments of the optimizer, as full tensors: so any number of
 * ranks and replicas can continue from it. A digest covers all of its bytes. */
#include "train/train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const state_prefix[] = {"", SAFETENSORS_STATE "first/", SAFETENSORS_STATE "second/"};

struct checkpoint {
    const struct safetensors *file;
};

struct checkpoint *checkpoint_open(struct arena *a, const char *path)
{
    if (!path)
        return NULL;
    struct checkpoint *c = NEW(a, struct checkpoint);
    c->file = safetensors_read(a, path);
    if (!safetensors_text(c->file, "step"))
        fail("%s: has no step: not a checkpoint that tpc-run --train wrote", path);
    if (!safetensors_text(c->file, "format"))
        fail("%s: has no digest: an older tpc-run wrote it, or it was changed (tpc-shard --merge --weights takes weights from it)", path);
    safetensors_check(c->file, SAFETENSORS_CHECKPOINT);
    return c;
}

const char *checkpoint_path(const struct checkpoint *c)
{
    return c->file->path;
}

const char *checkpoint_text(const struct checkpoint *c, const char *key)
{
    const char *text = c ? safetensors_text(c->file, key) : NULL;
    if (c && !text)
        fail("%s: lacks '%s', which a checkpoint says", c->file->path, key);
    return text;
}

bool checkpoint_integer(const struct checkpoint *c, const char *key, int64_t least, int64_t most, int64_t *to)
{
    const char *text = checkpoint_text(c, key);
    if (text && !i64_parse(text, least, most, to))
        fail("%s: its %s is '%s', expected an integer of %lld to %lld", c->file->path, key, text, (long long)least, (long long)most);
    return text != NULL;
}

static bool is_finite_number(const char *text, double *to)
{
    char *end;
    *to = strtod(text, &end);
    return !*end && end != text && isfinite(*to);
}

bool checkpoint_real(const struct checkpoint *c, const char *key, double *to)
{
    const char *text = checkpoint_text(c, key);
    if (text && !(is_finite_number(text, to) && *to >= 0))
        fail("%s: its %s is '%s', expected a number of 0 or more", c->file->path, key, text);
    return text != NULL;
}

bool checkpoint_says(const struct checkpoint *c, const char *key)
{
    return c && safetensors_text(c->file, key);
}

double checkpoint_validation(const struct checkpoint *c)
{
    const char *text = checkpoint_says(c, "validation") ? safetensors_text(c->file, "validation") : "";
    double loss = INFINITY;
    if (*text && !is_finite_number(text, &loss))
        fail("%s: its validation is '%s', expected a number", c->file->path, text);
    return loss;
}

/* ---- reading ----------------------------------------------------------------------------------------------------------------- */

static const struct tensor *saved_tensor(struct arena *a, const struct checkpoint *c, int state, const struct parameter *p)
{
    const char *name = arena_printf(a, "%s%s", state_prefix[state], p->name);
    const struct tensor *t = safetensors_find(c->file, name);
    if (!t)
        fail("%s: lacks '%s', which this folder trains with this optimizer", c->file->path, name);
    if (t->dtype != DT_F32 || t->rank != p->rank || memcmp(t->dim, p->dim, (size_t)p->rank * sizeof *t->dim) != 0)
        fail("%s: '%s' is not f32 with the sizes of the weight", c->file->path, name);
    return t;
}

/* All shards of this rank, in the layout of the flat arrays. */
static void load_state(struct arena *a, const struct checkpoint *c, int state, const struct replicas *t, struct session *s,
                       const struct parameters *p, float *to)
{
    for (int i = 0; i < p->n; i++) {
        struct arena *tmp = arena_new();
        parameters_take_shard(tmp, t, s, &p->at[i], saved_tensor(a, c, state, &p->at[i])->data, to + p->at[i].from);
        arena_free(tmp);
    }
}

static size_t own_bytes(const struct bucket *b)
{
    return (size_t)(b->own.to - b->own.from) * sizeof(float);
}

int64_t checkpoint_load(struct arena *a, const struct checkpoint *c, const struct replicas *t, struct session *s, const struct settings *o,
                        struct parameters *p)
{
    int64_t step = 0;
    if (!c)
        return 0;
    int states = 1 + optimizer_moments(o);
    if (c->file->n != p->all.n * states)
        fail("%s: has %d tensors, expected %d: %d weights with what the optimizer keeps", c->file->path, c->file->n, p->all.n * states,
             p->all.n);
    load_state(a, c, 0, t, s, p, p->gradient);
    parameters_set(p, p->gradient);
    for (int k = 1; k < states; k++) {
        load_state(a, c, k, t, s, p, p->gradient);
        for (int b = 0; b < p->buckets; b++)
            memcpy(p->moment[k - 1] + p->bucket[b].moment, p->gradient + p->bucket[b].own.from, own_bytes(&p->bucket[b]));
    }
    (void)checkpoint_validation(c);
    (void)checkpoint_integer(c, "step", 0, INT32_MAX, &step);
    return step;
}

/* ---- writing ----------------------------------------------------------------------------------------------------------------- */

enum { SETTINGS_TEXTS = 11 };

/* What a checkpoint keeps of the settings. */
static void settings_texts(struct arena *a, const struct settings *s, struct named_text to[SETTINGS_TEXTS])
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
    to[10] = (struct named_text){"keep", arena_printf(a, "%lld", (long long)s->keep)};
    to[9] = (struct named_text){"tokenizer", s->tokenizer ? s->tokenizer : ""};
}

static void begin_file(struct out *out, const struct settings *o, int64_t steps, double validation, const struct parameters *p)
{
    struct arena *a = arena_new();
    int states = 1 + optimizer_moments(o), n = 0;
    const char **name = NEWN(a, const char *, p->all.n *states);
    struct tensor *tensor = NEWN(a, struct tensor, p->all.n * states);
    struct named_text text[SETTINGS_TEXTS + 3] = {{"format", SAFETENSORS_CHECKPOINT},
                                                  {"step", arena_printf(a, "%lld", (long long)steps)},
                                                  {"validation", !isfinite(validation) ? "" : arena_printf(a, "%.17g", validation)}};
    settings_texts(a, o, text + 3);
    for (int k = 0; k < states; k++)
        EACH (const struct trained_weight, w, p->all) {
            name[n] = arena_printf(a, "%s%s", state_prefix[k], w->name);
            tensor[n] = (struct tensor){.dtype = DT_F32, .rank = w->rank};
            memcpy(tensor[n++].dim, w->dim, sizeof tensor->dim);
        }
    safetensors_begin(out, n, name, tensor, SETTINGS_TEXTS + 3, text);
    arena_free(a);
}

/* The full tensor of a weight of some stage, on the first rank of all. */
static struct tensor gather_weight(struct arena *a, struct session *s, const struct parameters *p, const struct trained_weight *w,
                                   const float *from)
{
    struct tensor full = {0};
    if (w->own >= 0) {
        struct tensor shard = p->at[w->own].local;
        shard.dtype = DT_F32;
        shard.data = (void *)(uintptr_t)(from + p->at[w->own].from);
        full = session_gather(s, a, p->at[w->own].output, &shard);
    }
    return p->pipeline ? pipeline_to_first(p->pipeline, a, w->name, w->stage, &full) : full;
}

/* Gathers the shards of one replica; its first rank writes. */
static void put_state(struct out *out, const struct replicas *t, struct session *s, const struct parameters *p, const float *from)
{
    for (int i = 0; t->index == 0 && i < p->all.n; i++) {
        struct arena *tmp = arena_new();
        struct tensor full = gather_weight(tmp, s, p, &p->all.at[i], from);
        if (out)
            out_put(out, full.data, tensor_bytes(&full));
        arena_free(tmp);
    }
}

void checkpoint_save(struct claim *to, const struct replicas *t, struct session *s, const struct settings *o, int64_t steps,
                     double validation, const struct parameters *p, struct joining *j)
{
    struct out *out = t->all->rank == 0 ? claim_write(to) : NULL;
    if (out)
        begin_file(out, o, steps, validation, p);
    for (int k = 0; k < 1 + optimizer_moments(o); k++) {
        for (int b = 0; b < p->buckets; b++) {
            const struct bucket *x = &p->bucket[b];
            memcpy(p->gradient + x->own.from, k ? p->moment[k - 1] + x->moment : parameters_own(p, x), own_bytes(x));
            join_parts(j, b, p->gradient);
        }
        join_parts_end(j);
        put_state(out, t, s, p, p->gradient);
    }
    if (out) {
        safetensors_end(out);
        claim_end(to);
    }
    t->all->barrier(t->all);
}
