/* checkpoint: one safetensors file with all trained weights, by name, and the moments of the optimizer, as full tensors: so any number of
 * ranks and replicas goes on from it. It is written beside its place, reaches the disk, and then takes the name: whenever the program
 * ends, the name stands for a complete one. */
#include "train/train.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

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
    return c;
}

const char *checkpoint_text(void *checkpoint, const char *key)
{
    const struct checkpoint *c = checkpoint;
    return c ? safetensors_text(c->file, key) : NULL;
}

/* ---- reading --------------------------------------------------------------------------------------------------------------------------
 */

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

/* All shards of this rank, as the flat arrays hold them. */
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

int64_t checkpoint_load(struct arena *a, struct checkpoint *c, const struct replicas *t, struct session *s, const struct settings *o,
                        struct parameters *p)
{
    int64_t step = 0;
    if (!c)
        return 0;
    int states = 1 + optimizer_moments(o);
    if (c->file->n != p->n * states)
        fail("%s: has %d tensors, expected %d: %d weights with what the optimizer keeps", c->file->path, c->file->n, p->n * states, p->n);
    load_state(a, c, 0, t, s, p, p->weight);
    for (int k = 1; k < states; k++) {
        load_state(a, c, k, t, s, p, p->gradient);
        for (int b = 0; b < p->buckets; b++)
            memcpy(p->moment[k - 1] + p->bucket[b].moment, p->gradient + p->bucket[b].own.from, own_bytes(&p->bucket[b]));
    }
    if (!i64_parse(checkpoint_text(c, "step"), 0, INT32_MAX, &step))
        fail("%s: its step is '%s', expected an integer", c->file->path, checkpoint_text(c, "step"));
    return step;
}

/* ---- writing --------------------------------------------------------------------------------------------------------------------------
 */

static char *part_of(struct arena *a, const char *path)
{
    return arena_printf(a, "%s.part", path);
}

void checkpoint_try(const char *path)
{
    struct arena *a = arena_new();
    const char *part = path ? part_of(a, path) : NULL;
    if (path && (path_is_folder(path) || path_is_special(path)))
        fail("%s: a checkpoint can't be written: it is a %s", path, path_is_folder(path) ? "folder" : "device or a pipe");
    if (part)
        (void)unlink(part); /* of a run that was killed; a link is not followed */
    FILE *f = part ? fopen(part, "wx") : NULL;
    if (path && (!f || fclose(f) != 0))
        fail("%s: a checkpoint can't be written: %s", path, strerror(errno));
    if (part)
        (void)unlink(part);
    arena_free(a);
}

struct saving {
    const char *path;
    char *part;
    struct out out;
};

static void drop_part(void *saving, int status)
{
    const struct saving *s = saving;
    (void)status;
    (void)unlink(s->part);
}

static void begin_file(struct arena *a, struct saving *w, const struct settings *o, int64_t steps, const struct parameters *p)
{
    int states = 1 + optimizer_moments(o), n = 0;
    const char **name = NEWN(a, const char *, p->n *states);
    struct tensor *tensor = NEWN(a, struct tensor, p->n * states);
    struct named_text text[SETTINGS_TEXTS + 1] = {{"step", arena_printf(a, "%lld", (long long)steps)}};
    settings_texts(a, o, text + 1);
    for (int k = 0; k < states; k++)
        for (int i = 0; i < p->n; i++) {
            name[n] = arena_printf(a, "%s%s", state_prefix[k], p->at[i].name);
            tensor[n] = (struct tensor){.dtype = DT_F32, .rank = p->at[i].rank};
            memcpy(tensor[n++].dim, p->at[i].dim, sizeof tensor->dim);
        }
    (void)unlink(w->part); /* of a run that was killed */
    diag_on_failure(drop_part, w);
    out_open(&w->out, w->part);
    safetensors_begin(&w->out, n, name, tensor, SETTINGS_TEXTS + 1, text);
}

/* Gathers the shards of one replica; its first rank writes. */
static void put_state(struct saving *w, const struct replicas *t, struct session *s, const struct parameters *p, const float *from)
{
    for (int i = 0; t->index == 0 && i < p->n; i++) {
        struct arena *tmp = arena_new();
        struct tensor shard = p->at[i].local;
        shard.data = (void *)(uintptr_t)(from + p->at[i].from);
        struct tensor full = session_gather(s, tmp, p->at[i].output, &shard);
        if (t->process_group->rank == 0)
            out_put(&w->out, full.data, tensor_bytes(&full));
        arena_free(tmp);
    }
}

static bool reach_disk(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC);
    bool done = fd >= 0 && fsync(fd) == 0;
    int why = errno;
    if (fd >= 0)
        (void)close(fd);
    errno = why;
    return done;
}

static void end_file(struct arena *a, struct saving *w)
{
    (void)out_close(&w->out);
    if (!reach_disk(w->part, O_RDONLY) || rename(w->part, w->path) != 0)
        fail("%s: can't be written: %s", w->path, strerror(errno));
    diag_forget(drop_part, w);
    (void)reach_disk(path_dir(a, w->path), O_RDONLY | O_DIRECTORY);
}

void checkpoint_save(const char *path, const struct replicas *t, struct session *s, const struct settings *o, int64_t steps,
                     const struct parameters *p, struct joining *j)
{
    struct arena *a = arena_new();
    struct saving w = {.path = path, .part = part_of(a, path)};
    if (t->all->rank == 0)
        begin_file(a, &w, o, steps, p);
    put_state(&w, t, s, p, p->weight);
    for (int k = 0; k < optimizer_moments(o); k++) {
        for (int b = 0; b < p->buckets; b++) {
            memcpy(p->gradient + p->bucket[b].own.from, p->moment[k] + p->bucket[b].moment, own_bytes(&p->bucket[b]));
            join_parts(j, b, p->gradient);
        }
        join_parts_end(j);
        put_state(&w, t, s, p, p->gradient);
    }
    if (t->all->rank == 0)
        end_file(a, &w);
    t->all->barrier(t->all);
    arena_free(a);
}
