/* supervisor: runs a job, and starts it again when it is lost: when its program ends, when rank 0 reports a failure, or when its heartbeats
 * stop. Ranks watch each other (src/run/comm/watch.c). */
#include "supervise/supervise.h"

#include <poll.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WRONG_USAGE = 2 };                 /* the exit status of failures that no restart can fix */
enum { BEAT_EACH = 1000, SILENT = 2500 }; /* ms */
/* Seconds: to the first heartbeat; for a job that reported its failure; between failing starts. */
static const double start_within = 60, fails_within = 2, wait_at_most = 30;

/* State of the running program, shared by the receiving thread and the supervisor. */
struct life {
    struct supervisor *of;
    struct arena *arena;
    struct message_stream stream;
    int out;
    pthread_mutex_t lock;
    double heard, fails; /* the last heartbeat; when it reported its failure; 0: not yet */
    bool ready, broken, over;
    /* Used only by the supervisor: */
    double beat; /* its last heartbeat */
    bool noted;  /* the memory that the job shares */
};

const char *supervisor_word(enum supervision s)
{
    static const char *const word[] = {"starting", "serving", "restarting"};
    return word[s];
}

enum supervision supervisor_state(struct supervisor *s, int *restarts, char *why)
{
    pthread_mutex_lock(&s->lock);
    enum supervision state = s->state;
    *restarts = s->restarts;
    if (why)
        memcpy(why, s->why, sizeof s->why);
    pthread_mutex_unlock(&s->lock);
    return state;
}

static void set_state(struct supervisor *s, enum supervision state)
{
    pthread_mutex_lock(&s->lock);
    s->state = state;
    pthread_mutex_unlock(&s->lock);
}

/* Set before the job's processes are ended. */
static void set_lost(struct supervisor *s)
{
    pthread_mutex_lock(&s->lock);
    if (s->state == SUPERVISE_RUNS)
        s->state = SUPERVISE_RESTARTS;
    pthread_mutex_unlock(&s->lock);
}

/* ---- the receiving thread ---- */

static void hear(void *life, const struct message *m)
{
    struct life *l = life;
    pthread_mutex_lock(&l->lock);
    l->heard = clock_seconds();
    l->ready = l->ready || m->kind == MESSAGE_READY;
    if (m->kind == MESSAGE_LOST && !(l->fails > 0))
        l->fails = clock_seconds();
    pthread_mutex_unlock(&l->lock);
    if (l->of->take && m->kind != MESSAGE_BEAT && m->kind != MESSAGE_LOST)
        l->of->take(l->of->own, m);
    if (m->kind == MESSAGE_READY)
        set_state(l->of, SUPERVISE_RUNS);
    if (m->kind == MESSAGE_LOST)
        set_lost(l->of);
}

static void pass_on(void *life, struct message_data other)
{
    struct life *l = life;
    l->of->other(l->of->own, other);
}

/* Or the input is not a message. */
static bool is_over(struct life *l, const bool *good)
{
    pthread_mutex_lock(&l->lock);
    l->broken = !*good;
    bool over = l->over;
    pthread_mutex_unlock(&l->lock);
    return over;
}

static void *listen_to(void *life)
{
    enum { PART = 1 << 16, LOOK_EACH = 100 };
    struct life *l = life;
    char *part = arena_alloc(l->arena, PART);
    for (bool good = true; !is_over(l, &good) && good;) {
        struct pollfd p = {.fd = l->out, .events = POLLIN};
        if (poll(&p, 1, LOOK_EACH) != 1)
            continue;
        ssize_t n = read(l->out, part, PART);
        if (n == 0)
            break;
        good = n < 0 || message_take(&l->stream, (struct message_data){part, (size_t)n}, hear, pass_on, l);
    }
    return NULL;
}

/* ---- messages to the job ---- */

/* As many as it accepts now. */
static void flush(struct supervisor *s)
{
    struct message_text *b = &s->unsent;
    if (!b->to.n || !s->program.pid)
        return;
    ssize_t n = write(s->program.in, b->to.at, (size_t)b->to.n);
    if (n <= 0)
        return;
    memmove(b->to.at, b->to.at + n, (size_t)(b->to.n - (int)n));
    b->to.n -= (int)n;
}

void supervisor_send(struct supervisor *s, int kind, struct message_data data)
{
    struct arena *tmp = arena_new();
    const char *line = message_line(tmp, kind, data);
    message_put(&s->unsent, line, strlen(line));
    arena_free(tmp);
    flush(s);
}

/* ---- the life of a program ---- */

static bool is_ready(struct life *l)
{
    pthread_mutex_lock(&l->lock);
    bool ready = l->ready;
    pthread_mutex_unlock(&l->lock);
    return ready;
}

/* Why it is lost; NULL: it runs. *ended: by itself, with *status. */
static const char *loss(struct supervisor *s, struct life *l, struct arena *a, double began, bool *ended, int *status)
{
    pthread_mutex_lock(&l->lock);
    const double heard = l->heard, silent = clock_seconds() - heard;
    const bool fails = l->fails > 0 && clock_seconds() - l->fails > fails_within, broken = l->broken;
    pthread_mutex_unlock(&l->lock);
    *ended = program_has_ended(&s->program, status);
    if (*ended)
        return program_status(a, *status);
    if (fails)
        return "rank 0 ended with a failure";
    if (broken)
        return "a message of rank 0 can't be read";
    if (heard > 0 && silent > 1e-3 * SILENT)
        return arena_printf(a, "rank 0 has sent no heartbeat for %.1f s", silent);
    if (!(heard > 0) && clock_seconds() - began > start_within)
        return arena_printf(a, "rank 0 has sent no heartbeat within %.0f s of the start", start_within);
    return NULL;
}

/* Repeated while it runs. */
static void keep_up(struct supervisor *s, struct life *l)
{
    double now = clock_seconds();
    if (now - l->beat > 1e-3 * BEAT_EACH) {
        supervisor_send(s, MESSAGE_BEAT, (struct message_data){"", 0});
        l->beat = now;
    }
    if (!l->noted && is_ready(l)) {
        program_note_files(&s->program);
        l->noted = true;
    }
    flush(s);
}

/* Watches it until it is lost or ends in order. NULL: it ended on request, or was done. */
static const char *attend(struct supervisor *s, struct life *l, struct arena *a, int *status, bool *asked)
{
    double began = clock_seconds(), until = 0;
    const char *why = NULL;
    bool ended = false;
    while (!why) {
        keep_up(s, l);
        if (*asked)
            (void)nanosleep(&(struct timespec){0, 10000000}, NULL);
        else if (s->tend(s->own)) {
            *asked = true;
            until = clock_seconds() + s->end_within;
            supervisor_send(s, MESSAGE_END, (struct message_data){"", 0});
        }
        why = loss(s, l, a, began, &ended, status);
        if (*asked && (!is_ready(l) || clock_seconds() > until))
            return NULL;
    }
    return (ended && *status == 0 && !s->endless) || *asked ? NULL : why;
}

/* Too many restarts in the time window. */
static bool is_too_often(struct supervisor *s)
{
    double now = clock_seconds(), *oldest = &s->begun[s->restarts % s->most];
    bool often = s->restarts >= s->most && now - *oldest < s->seconds;
    *oldest = now;
    return often;
}

/* False: no further restart is allowed. */
static bool note_restart(struct supervisor *s, const char *why)
{
    bool often = is_too_often(s);
    pthread_mutex_lock(&s->lock);
    s->state = SUPERVISE_RESTARTS;
    s->restarts += !often;
    snprintf(s->why, sizeof s->why, "%s", why);
    pthread_mutex_unlock(&s->lock);
    if (often)
        diag_announce("%s: it was started again %lld times within %.0f s, as often as --restart-limit allows, and is not any more", why,
                      (long long)s->most, s->seconds);
    else
        diag_announce("%s: restart %d", why, s->restarts);
    return !often;
}

/* One run of the program. *lost: why it did not end in order, in the arena; NULL: it did. Returns whether it was ready. */
static bool live(struct supervisor *s, struct arena *a, int start, int *status, bool *asked, const char **lost)
{
    struct life l = {.of = s, .arena = a, .stream.line.arena = a};
    pthread_t thread;
    s->program = program_start(s->command(s->start_of, a, start));
    l.out = s->program.out;
    if (pthread_mutex_init(&l.lock, NULL) || pthread_create(&thread, NULL, listen_to, &l))
        fail("can't create a thread for messages of the job");
    *lost = attend(s, &l, a, status, asked);
    if (*lost)
        set_lost(s);
    pthread_mutex_lock(&l.lock);
    bool ends = l.fails > 0; /* the launcher is already ending the job, and has had time for it */
    pthread_mutex_unlock(&l.lock);
    program_end(&s->program, s->launched && !ends);
    pthread_mutex_lock(&l.lock);
    l.over = true;
    pthread_mutex_unlock(&l.lock);
    (void)pthread_join(thread, NULL);
    (void)close(l.out);
    s->unsent.to.n = 0;
    bool ready = is_ready(&l);
    pthread_mutex_destroy(&l.lock);
    return ready;
}

/* After failing starts the wait is 1 s, doubled each time. */
static void wait_for_next(struct supervisor *s, int failed, bool *asked)
{
    double seconds = failed < 6 ? (double)(1 << failed) / 2 : wait_at_most, until = clock_seconds() + seconds;
    while (failed && clock_seconds() < until && !*asked)
        *asked = s->tend(s->own);
}

int supervisor_run(struct supervisor *s)
{
    struct arena *kept = arena_new();
    int status = 0, failed = 0;
    bool asked = false, again = true;
    s->unsent.arena = kept;
    s->begun = NEWN(kept, double, s->most);
    for (int start = 0; again && !asked; start++) {
        struct arena *a = arena_new();
        const char *lost;
        status = 0;
        bool ready = live(s, a, start, &status, &asked, &lost);
        again = lost && (ready || start > 0) && !(WIFEXITED(status) && WEXITSTATUS(status) == WRONG_USAGE);
        failed = ready ? 0 : failed + 1;
        if (lost && s->lost)
            s->lost(s->own);
        if (again) {
            again = note_restart(s, lost);
            status = again ? status : 1 << 8;
            wait_for_next(s, again ? failed : 0, &asked);
        }
        arena_free(a);
    }
    arena_free(kept);
    return asked ? 0 : WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
