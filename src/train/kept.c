/* kept: further checkpoints: the best by its validation (FILE.best), and the last few (FILE.step-N). They are hard links to the last
 * checkpoint's file, so they take no time and appear complete. For adapters each is a folder. */
#include "train/train.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

struct kept {
    struct arena *arena;
    const char *path; /* of --save */
    bool adapters;
    int64_t most;
    VEC(int64_t) steps; /* of FILE.step-N, ascending */
    double best;        /* loss */
};

static const char *named(const struct kept *k, struct arena *a, const char *end)
{
    return arena_printf(a, "%s.%s", k->path, end);
}

static const char *of_step(const struct kept *k, struct arena *a, int64_t step)
{
    return named(k, a, arena_printf(a, "step-%lld", (long long)step));
}

/* ---- what is there --------------------------------------------------------------------------------------------------- */

static void add_step(struct kept *k, int64_t step)
{
    int at = k->steps.n;
    VEC_PUSH(k->arena, &k->steps, step);
    for (; at > 0 && k->steps.at[at - 1] > step; at--)
        k->steps.at[at] = k->steps.at[at - 1];
    k->steps.at[at] = step;
}

static void forget_step(struct kept *k, int64_t step)
{
    int n = 0;
    for (int i = 0; i < k->steps.n; i++)
        if (k->steps.at[i] != step)
            k->steps.at[n++] = k->steps.at[i];
    k->steps.n = n;
}

/* Fails if a file of another kind has the name. */
static void check_kind(const struct kept *k, const char *path)
{
    if (path_exists(path))
        out_check("--save", train_checkpoint_path(k->arena, path, k->adapters), CHECKPOINT_KIND);
}

/* Checkpoints of this run: up to a step that is done. Later ones stay until they are replaced. */
static void find_steps(struct kept *k, int64_t done)
{
    const char *begin = path_base(named(k, k->arena, "step-"));
    DIR *d = opendir(path_dir(k->arena, k->path));
    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
        int64_t step;
        if (strncmp(e->d_name, begin, strlen(begin)) != 0 || !i64_parse(e->d_name + strlen(begin), 1, INT32_MAX, &step))
            continue;
        check_kind(k, of_step(k, k->arena, step));
        if (step <= done)
            add_step(k, step);
    }
    if (d)
        (void)closedir(d);
}

static double loss_of_best(const struct kept *k)
{
    const char *path = named(k, k->arena, "best");
    return path_exists(path) ? checkpoint_validation(checkpoint_open(k->arena, train_checkpoint_path(k->arena, path, k->adapters)))
                             : INFINITY;
}

struct kept *kept_begin(struct arena *a, const char *path, bool adapters, int64_t most, int64_t done)
{
    struct kept *k = NEW(a, struct kept);
    *k = (struct kept){.arena = a, .path = path_trimmed(a, path), .adapters = adapters, .most = most, .best = INFINITY};
    check_kind(k, named(k, a, "best"));
    if (done)
        k->best = loss_of_best(k);
    if (most > 1)
        find_steps(k, done);
    return k;
}

double kept_best(const struct kept *k)
{
    return k->best;
}

/* ---- names ----------------------------------------------------------------------------------------------------------- */

static void copy_file(struct arena *a, const char *from, const char *to)
{
    struct map m = map_file(from);
    struct out out;
    out_open_whole(a, &out, to);
    out_put(&out, m.at, m.bytes);
    out_sync(&out);
    (void)out_close(&out);
    map_close(m);
}

/* Adds a name for a checkpoint. The temporary name is one of that checkpoint's, so that the next run removes what a killed run leaves. */
static void name_file(struct arena *a, const char *from, const char *to)
{
    const char *beside = "";
    int linked = -1;
    errno = EEXIST;
    for (int i = 0; i < 100 && linked != 0 && errno == EEXIST; i++) {
        beside = arena_printf(a, "%s.part-%ld-%d", from, (long)getpid(), i);
        linked = link(from, beside);
    }
    if (linked != 0) { /* the file system has no hard links */
        copy_file(a, from, to);
        return;
    }
    if (rename(beside, to) != 0)
        fail("%s: can't be written: %s", to, strerror(errno));
    (void)unlink(beside); /* it stays if both were one file already */
}

static void name(const struct kept *k, const struct graph *g, const struct parameters *p, const char *to)
{
    struct arena *a = arena_new();
    if (k->adapters)
        train_adapters_folder(to);
    name_file(a, path_followed(a, train_checkpoint_path(a, k->path, k->adapters)), train_checkpoint_path(a, to, k->adapters));
    if (k->adapters)
        train_adapters_write(to, g, p);
    arena_free(a);
}

static void drop(const struct kept *k, const char *path)
{
    if (k->adapters)
        train_adapters_remove(path);
    else
        (void)unlink(path);
}

const char *kept_add(struct kept *k, const struct graph *g, const struct parameters *p, int64_t step, double validation)
{
    bool best = validation < k->best;
    if (k->most > 1) {
        forget_step(k, step);
        name(k, g, p, of_step(k, k->arena, step));
        add_step(k, step);
    }
    while (k->steps.n > k->most) {
        drop(k, of_step(k, k->arena, k->steps.at[0]));
        forget_step(k, k->steps.at[0]);
    }
    if (!best)
        return NULL;
    k->best = validation;
    name(k, g, p, named(k, k->arena, "best"));
    return named(k, k->arena, "best");
}
