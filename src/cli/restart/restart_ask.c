/* restart_ask: asks hosts, all at once, whether they can take part in a job, and what a host answers. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "cli/restart/restart.h"

#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- the host ---- */

static const char refuses[] = "tpc-run: ";

int restart_answer(bool same, const char *folder)
{
    const bool there = path_is_folder(folder);
    if (!same)
        printf("%sits tpc-run is of another build\n", refuses);
    else if (!there)
        printf("%s%s: no such folder\n", refuses, folder);
    streams_flush();
    return same && there ? 0 : 1;
}

/* ---- who asks ---- */

enum { EACH = 20 }; /* ms: how often hosts are looked at */
/* Seconds for an answer: so many times as long as the slowest one took, now or before, within limits; and before the first start, where the
 * hosts that have answered are too few. */
static const double slowest_times = 2, at_least = 1.5, at_most = 8, at_first = 30;

/* What it printed as it refused; NULL: nothing. */
static const char *reason(struct arena *a, int out)
{
    char said[512];
    (void)fcntl(out, F_SETFL, O_NONBLOCK);
    ssize_t n = read(out, said, sizeof said - 1);
    said[n > 0 ? n : 0] = '\0';
    const char *why = strstr(said, refuses);
    if (!why)
        return NULL;
    char *line = arena_strndup(a, why + strlen(refuses), strcspn(why + strlen(refuses), "\n"));
    diag_make_printable(line);
    return line;
}

static void look(struct arena *a, struct restart_asked *h, struct program *p)
{
    int status;
    if (h->ended || !program_has_ended(p, &status))
        return;
    h->ended = true;
    h->answers = p->pid && status == 0;
    h->why = h->answers || !p->pid ? NULL : reason(a, p->out);
}

/* Those that are taken are known: the first ones that answer. */
static bool is_settled(const struct restart_asked *host, int n, int wanted)
{
    int open = 0;
    for (int i = 0; i < n && wanted > 0 && !open; i++) {
        wanted -= host[i].answers;
        open += !host[i].ended;
    }
    return !open;
}

static double patience(double slowest, bool first, bool enough)
{
    return first && !enough ? at_first : fmin(fmax(slowest_times * slowest, at_least), at_most);
}

/* How many answer. */
static int look_at_all(struct arena *a, struct restart_asked *host, struct program *p, int n)
{
    int answered = 0;
    for (int i = 0; i < n; i++) {
        look(a, &host[i], &p[i]);
        answered += host[i].answers;
    }
    return answered;
}

void restart_ask(struct arena *a, struct restart_asked *host, int n, int wanted, double *slowest, struct supervisor *s)
{
    const double began = clock_seconds(), before = *slowest;
    struct program *p = NEWN(a, struct program, n);
    double last = 0, passed = 0;
    for (int i = 0; i < n; i++)
        p[i] = program_start(host[i].command);
    for (int answered = 0; passed <= patience(fmax(before, last), before == 0, answered >= wanted); passed = clock_seconds() - began) {
        int now = look_at_all(a, host, p, n);
        last = now > answered ? clock_seconds() - began : last;
        answered = now;
        if (is_settled(host, n, wanted) || supervisor_rest(s))
            break;
        (void)nanosleep(&(struct timespec){0, EACH * 1000000L}, NULL);
    }
    *slowest = last > 0 ? last : before;
    for (int i = 0; i < n; i++)
        program_close(&p[i]);
}
