/* supervised: a job under a supervisor. Each rank that fails says so. Rank 0 beats, so that the supervisor knows that it runs, and hears
 * the supervisor. Without one the job ends: nobody wants its results. */
#include "supervise/supervise.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { BEAT_EACH = 250, SILENT = 6000, LAST_WORD = 200 }; /* ms; LAST_WORD: for a failure to be told */

static struct {
    bool is;
    pthread_t thread;
    pthread_mutex_t writes, hears;
    void (*take)(void *, const struct message *);
    void (*tell)(void *);
    void *data;
} own = {.writes = PTHREAD_MUTEX_INITIALIZER, .hears = PTHREAD_MUTEX_INITIALIZER};

bool supervised_is(void)
{
    return own.is;
}

/* False: no reader. */
static bool write_all(const char *at, size_t n)
{
    while (n) {
        ssize_t done = write(STDOUT_FILENO, at, n);
        if (done < 0 && errno != EINTR)
            return false;
        at += done > 0 ? done : 0;
        n -= done > 0 ? (size_t)done : 0;
    }
    return true;
}

void supervised_send(int kind, struct message_data data)
{
    if (!own.is)
        return;
    struct arena *tmp = arena_new();
    const char *line = message_line(tmp, kind, data);
    pthread_mutex_lock(&own.writes);
    bool written = write_all(line, strlen(line));
    pthread_mutex_unlock(&own.writes);
    arena_free(tmp);
    if (!written)
        fail_job("the supervisor has ended, and the job ends with it");
}

static void send_beat(void)
{
    const int64_t pid = getpid();
    supervised_send(MESSAGE_BEAT, (struct message_data){(const char *)&pid, sizeof pid});
    pthread_mutex_lock(&own.hears);
    if (own.tell)
        own.tell(own.data);
    pthread_mutex_unlock(&own.hears);
}

static void take_message(void *unused, const struct message *m)
{
    (void)unused;
    if (m->kind == MESSAGE_END)
        (void)kill(getpid(), SIGTERM);
    pthread_mutex_lock(&own.hears);
    if (own.take && m->kind >= MESSAGE_OWN)
        own.take(own.data, m);
    pthread_mutex_unlock(&own.hears);
}

static void drop_other(void *unused, struct message_data other)
{
    (void)unused, (void)other;
}

/* Receives until the next heartbeat is due. */
static void hear(struct message_stream *s, double until, double *heard)
{
    static char part[1 << 16];
    for (double left; (left = until - clock_seconds()) > 0;) {
        struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
        if (poll(&p, 1, (int)(1e3 * left) + 1) != 1)
            continue;
        ssize_t n = read(STDIN_FILENO, part, sizeof part);
        if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
            fail_job("the supervisor has ended, and the job ends with it");
        if (n > 0 && !message_take(s, (struct message_data){part, (size_t)n}, take_message, drop_other, NULL))
            fail_job("a message of the supervisor can't be read");
        *heard = clock_seconds();
    }
}

static void *beat(void *unused)
{
    struct message_stream s = {.line.arena = arena_new()};
    double heard = clock_seconds();
    (void)unused;
    for (;;) {
        send_beat();
        hear(&s, clock_seconds() + 1e-3 * BEAT_EACH, &heard);
        if (clock_seconds() - heard > 1e-3 * SILENT)
            fail_job("the supervisor does not answer, and the job ends");
    }
    return NULL;
}

/* A launcher that is stopped, or a thread that waits for it, keeps no rank from its end. */
static void say_last(const char *line)
{
    struct timespec until = clock_after(LAST_WORD);
    struct pollfd p = {.fd = STDOUT_FILENO, .events = POLLOUT};
    if (pthread_mutex_timedlock(&own.writes, &until))
        return;
    if (poll(&p, 1, LAST_WORD) == 1)
        (void)write_all(line, strlen(line));
    pthread_mutex_unlock(&own.writes);
}

/* Its status and its sentence. */
static void say_lost(void *unused, int status)
{
    struct message_text t = {.arena = arena_new()};
    const int64_t number = status;
    char why[DIAG_SAID];
    (void)unused;
    diag_said(why);
    message_put(&t, &number, sizeof number);
    message_put(&t, why, strlen(why));
    say_last(message_line(t.arena, MESSAGE_LOST, message_bytes(&t)));
    arena_free(t.arena);
}

void supervised_start(bool first)
{
    own.is = first;
    diag_on_failure(say_lost, NULL);
    if (first && pthread_create(&own.thread, NULL, beat, NULL))
        fail("can't create a thread for messages of the supervisor");
}

void supervised_listen(void (*take)(void *, const struct message *), void (*tell)(void *), void *data)
{
    pthread_mutex_lock(&own.hears);
    own.take = take;
    own.tell = tell;
    own.data = data;
    pthread_mutex_unlock(&own.hears);
}
