/* log: a line for each step on stdout, and one in a CSV file. A run that goes on from a checkpoint keeps the lines up to there. */
#include "train/train.h"

#include <errno.h>
#include <string.h>

struct train_log {
    const char *path;
    FILE *file;
};
static const char head[] = LOG_KIND "lr,grad_norm,tokens,seconds,validation\n";

static _Noreturn void cannot(const char *path)
{
    fail("%s: can't be written: %s", path, strerror(errno));
}

/* The lines of the file up to a step, "": there are none. */
static const char *lines_until(struct arena *a, const char *path, int64_t step)
{
    struct map m;
    long long number;
    if (!map_try_file(path, &m))
        return "";
    const char *text = arena_strndup(a, (const char *)m.at, m.bytes), *end = text;
    map_close(m);
    for (const char *at = text; *at; at = end) {
        const char *line = strchr(at, '\n');
        if (!line || (at > text && (sscanf(at, "%lld,", &number) != 1 || number > step)))
            return arena_strndup(a, text, (size_t)(at - text));
        end = line + 1;
    }
    return text;
}

/* The file that was there is replaced by one with the lines that stay. */
struct train_log *log_open(struct arena *a, const char *path, int64_t goes_on)
{
    struct train_log *l = NEW(a, struct train_log);
    l->path = path;
    if (!path)
        return l;
    const char *kept = goes_on ? lines_until(a, path, goes_on) : "";
    bool special = path_is_special(path);
    const char *name = special ? path : path_followed(a, path);
    char *beside = NULL;
    l->file = special ? fopen(path, "w") : out_create_beside(a, name, &beside);
    if (!l->file || fputs(*kept ? kept : head, l->file) < 0 || fflush(l->file) != 0 || (beside && rename(beside, name) != 0)) {
        int why = errno;
        if (l->file && beside)
            (void)remove(beside);
        errno = why;
        cannot(path);
    }
    return l;
}

void log_step(struct train_log *l, const struct step_report *r)
{
    char validation[64] = "", words[64] = "";
    if (r->validation >= 0) {
        snprintf(validation, sizeof validation, "%.7g", r->validation);
        snprintf(words, sizeof words, ", validation %.4f", r->validation);
    }
    if (!diag_is_quiet())
        printf("step %lld/%lld: loss %.4f%s, lr %.3g, norm %.3f, %.0f ms, %.0f tokens/s\n", (long long)r->step, (long long)r->steps,
               r->loss, words, r->rate, r->norm, 1000 * r->seconds, r->labels / r->seconds);
    streams_flush();
    if (l->file &&
        (fprintf(l->file, "%lld,%.7g,%.6g,%.6g,%.0f,%.4f,%s\n", (long long)r->step, r->loss, r->rate, r->norm, r->labels, r->seconds,
                 validation) < 0 ||
         fflush(l->file) != 0))
        cannot(l->path);
}

void log_close(struct train_log *l)
{
    if (l->file && fclose(l->file) != 0)
        cannot(l->path);
}
