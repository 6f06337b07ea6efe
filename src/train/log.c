/* log: a line per step on stdout, and in a CSV file, which no other run may write meanwhile. A run that continues from a checkpoint keeps
 * the lines up to there. */
#include "train/train.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

struct train_log {
    const char *path;
    FILE *file;
};
static const char head[] = LOG_KIND "lr,grad_norm,tokens,seconds,validation\n";

static _Noreturn void cannot(const char *path)
{
    fail("%s: can't be written: %s", path, strerror(errno));
}

/* The lines of the file up to a step; "": none. */
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

static bool is_begun(int file)
{
    char found[sizeof LOG_KIND];
    size_t n = sizeof LOG_KIND - 1;
    return pread(file, found, n, 0) == (ssize_t)n && memcmp(found, LOG_KIND, n) == 0;
}

static void put_text(const char *path, FILE *file, const char *text)
{
    if (fputs(text, file) < 0 || fflush(file) != 0)
        cannot(path);
}

/* A file with the kept lines replaces the existing one; it stays open, and locked. */
static FILE *open_file(struct arena *a, const char *path, const char *kept)
{
    struct out o;
    out_open_whole(a, &o, path);
    if (o.beside)
        one_writer_hold(o.file);
    put_text(path, o.file, kept);
    if (o.beside)
        one_writer_check(&(struct one_writer){o.path, "log", "--log", is_begun}, o.file);
    int held = fcntl(fileno(o.file), F_DUPFD_CLOEXEC, 0);
    FILE *file = held >= 0 ? fdopen(held, "w") : NULL;
    if (!file)
        cannot(path);
    (void)out_close(&o);
    return file;
}

struct train_log *log_open(struct arena *a, const char *path, int64_t goes_on)
{
    struct train_log *l = NEW(a, struct train_log);
    l->path = path;
    if (!path)
        return l;
    const char *kept = goes_on ? lines_until(a, path, goes_on) : "";
    l->file = open_file(a, path, *kept ? kept : head);
    return l;
}

void log_step(struct train_log *l, const struct step_report *r)
{
    char validation[64] = "", words[64] = "";
    if (!isnan(r->validation)) {
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
