/* restart: the supervisor of a job. It starts this program again with its own command line, without the supervisor's options. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "cli/restart/restart.h"
#ifdef HAVE_SERVE
#include "serve/serve.h"
#endif

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { USUAL_RESTARTS = 10, USUAL_MINUTES = 10 };
static const char resume[] = "--resume ", begins[] = "--lora ";

struct launch {
    const struct run_options *options;
    const char *program; /* this program, as a shell word */
    const char *build;
    const char *checkpoint; /* of a training run, or its folder; NULL: not training */
    struct restart_hosts *hosts;
    struct supervisor *supervisor;
    struct stat before; /* the checkpoint at the program's start; 0: no file */
};

static const char *find_program(struct arena *a, const char **bin)
{
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n < 0)
        fail("/proc/self/exe: can't be read: %s", strerror(errno));
    path[n] = '\0';
    *bin = path_dir(a, arena_strdup(a, path));
    return shell_word(a, arena_strdup(a, path));
}

/* The job has written the checkpoint. */
static bool has_checkpoint(struct arena *a, const struct launch *l)
{
    struct stat now;
    return l->checkpoint && stat(train_checkpoint_path(a, l->checkpoint, false), &now) == 0 &&
        (now.st_ino != l->before.st_ino || now.st_mtim.tv_sec != l->before.st_mtim.tv_sec ||
         now.st_mtim.tv_nsec != l->before.st_mtim.tv_nsec);
}

/* An option that a checkpoint replaces. */
static bool starts_training(const char *word)
{
    return strncmp(word, resume, sizeof resume - 1) == 0 || strncmp(word, begins, sizeof begins - 1) == 0;
}

static const char *command(void *launch, struct arena *a, int start, const char **why)
{
    const struct launch *l = launch;
    const struct run_options *o = l->options;
    const char *folder = NULL, *by = o->launch ? o->launch : "";
    if (l->hosts && !(by = restart_hosts_launch(a, l->hosts, l->supervisor, &folder, why)))
        return NULL;
    const char *words = arena_printf(a, "exec %s%s%s --supervised %s", by, *by ? " " : "", l->program, l->build);
    const bool resumes = start > 0 && has_checkpoint(a, l);
    for (int i = 0; i < o->job.paths.text.n; i++)
        words = arena_printf(a, "%s %s", words, shell_word(a, folder ? folder : o->job.paths.text.at[i]));
    for (int i = 0; i < o->words.text.n; i++)
        if (!resumes || !starts_training(o->words.text.at[i]))
            words = arena_printf(a, "%s %s", words, o->words.text.at[i]);
    return resumes ? arena_printf(a, "%s %s%s", words, resume, shell_word(a, l->checkpoint)) : words;
}

/* ---- training ---- */

/* Prints the job's output. */
static void print(void *unused, struct message_data text)
{
    (void)unused;
    (void)fwrite(text.at, 1, text.n, stdout);
    streams_flush();
}

static bool wait_for_request(void *unused)
{
    (void)unused;
    (void)nanosleep(&(struct timespec){0, 50000000}, NULL);
    return signal_asked();
}

/* A job has unlimited time for its last step and checkpoint; a second request ends the supervisor and the job. */
static int train(struct arena *a, struct supervisor *s, struct launch *l)
{
    const struct train_options *o = &l->options->train;
    l->checkpoint = o->save ? o->save : o->resume;
    if (stat(train_checkpoint_path(a, l->checkpoint, false), &l->before))
        l->before = (struct stat){0};
    s->other = print;
    s->tend = wait_for_request;
    s->end_within = INFINITY;
    signal_soften();
    return supervisor_run(s);
}

/* ---- all jobs ---- */

static void read_limit(struct arena *a, struct supervisor *s, const char *text)
{
    const char *colon = text ? strchr(text, ':') : NULL;
    s->most = USUAL_RESTARTS;
    s->seconds = 60.0 * USUAL_MINUTES;
    if (text)
        s->most = number_read("--restart-limit", arena_strndup(a, text, colon ? (size_t)(colon - text) : strlen(text)), 1, 1000000);
    if (colon)
        s->seconds = 60.0 * (double)number_read("--restart-limit", colon + 1, 1, 1000000);
}

int restart_run(struct arena *a, const struct run_options *o, const char *build)
{
    const char *bin;
    struct launch l = {.options = o, .program = find_program(a, &bin), .build = build};
    if (o->launch)
        l.hosts = restart_hosts_new(a, o, bin, l.program, build);
    struct supervisor s = {.command = command, .start_of = &l, .launched = o->launch, .lock = PTHREAD_MUTEX_INITIALIZER};
    l.supervisor = &s;
    read_limit(a, &s, o->restart_limit);
#ifdef HAVE_SERVE
    if (o->job.serve)
        return serve_supervised(a, &o->job, &o->serve, &s);
#endif
    return train(a, &s, &l);
}
