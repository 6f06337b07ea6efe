/* supervised: rank 0 of a job sends heartbeats to the supervisor, and receives its messages. Without a supervisor the job ends: its results
 * have no reader. */
#include "supervise/supervise.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { BEAT_EACH = 250, SILENT = 6000 }; /* ms */

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
    if (!written && kind != MESSAGE_LOST)
        fail_job("the supervisor has ended, and the job ends with it");
}

static void send_beat(void)
{
    supervised_send(MESSAGE_BEAT, (struct message_data){"", 0});
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

static void say_lost(void *unused, int status)
{
    (void)unused, (void)status;
    supervised_send(MESSAGE_LOST, (struct message_data){"", 0});
}

void supervised_start(void)
{
    own.is = true;
    diag_on_failure(say_lost, NULL);
    if (pthread_create(&own.thread, NULL, beat, NULL))
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
