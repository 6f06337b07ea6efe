/* watch: detects, while a rank waits, that another one has stopped, or that its machine hangs or has vanished. MPI would wait for ever.
 *
 * Each rank has a connection with rank 0. A thread sends a heartbeat over it several times a second, whatever the rank does: a rank that
 * computes, reads or writes for hours is alive, and so is one that waits for its user. A stopped process sends no heartbeats, but its
 * system still acknowledges; a vanished host does not. Only time in which this rank waits, and is itself running, counts. A rank without a
 * connection is not watched. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "run/comm/comm.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HOST_BYTES = 64, BEAT_STACK = 1 << 18 };
enum { BEAT_EACH = 250, TRY_EACH = 20, VANISHED_AFTER = 45000 }; /* ms */
enum { SILENT = 3000, SILENT_AT_MOST = 2000 };  /* ms: a rank without heartbeats counts as stopped; the same where it ends the job */
enum { BUSY = 'b', WAITS = 'w', LEAVES = 'l' }; /* the rank's state in a heartbeat */
enum { ENDS_AFTER = 2000 };                     /* ms: by then a launcher that ends the job has done so */
enum { CONNECTED_AFTER = 10000 };               /* ms: by then all ranks are connected, where a stopped one ends the job */
static const double look_every = 1, tell_after = 30, explain_after = 20;

struct peer {
    /* of the heartbeat thread */
    int fd; /* known to the thread; -1: none */
    atomic_int error, beats, says;
    atomic_int unheard; /* ms since its last heartbeat, while this rank ran */
    int unanswered;
    bool ended;
    atomic_bool lost; /* it ended without a last message */
    /* of the rank that looks */
    int seen;
    double silent; /* seconds */
    bool told;
};
struct host_name {
    char text[HOST_BYTES];
};
struct watch {
    int rank, size;
    struct peer *peer; /* by rank */
    struct connections *connections;
    int *fd;                /* by rank, for the thread */
    struct host_name *host; /* by rank; NULL: all are on one host */
    double started, looked, waited;
    bool explained;
    int64_t number; /* of the current wait */
    atomic_bool looks, leaves, ends;
    pthread_t thread;
    int wake;              /* wakes the thread, an eventfd */
    struct pollfd *polled; /* by rank, and the last one for wake */
    atomic_uint rounds;    /* of the thread */
    double lost;           /* since when it knows that a rank is lost; 0: none */
    int64_t kills;         /* of processes by the OOM killer on this machine, when the watch began */
    bool speaks, beats;
    atomic_int silent_after; /* ms without a heartbeat after which a rank counts as stopped */
    atomic_bool insists;     /* a stopped rank ends the job */
    int insisted;            /* ms since then, of the thread */
};

/* ---- the thread ---- */

/* Whether the other system has not acknowledged for long. After a pause of this process that may be so for a moment, too. */
static bool has_vanished(struct peer *p)
{
    enum { SOME = 8 };
    struct tcp_info info;
    socklen_t bytes = sizeof info;
    bool waits = getsockopt(p->fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) == 0 && info.tcpi_unacked > 0;
    p->unanswered = waits && info.tcpi_last_ack_recv > VANISHED_AFTER ? p->unanswered + 1 : 0;
    return p->unanswered >= SOME;
}

/* Reads heartbeats. A rank that finishes or fails says so before it closes its side. */
static void hear(struct peer *p)
{
    char beats[64];
    ssize_t n;
    while ((n = recv(p->fd, beats, sizeof beats, MSG_DONTWAIT)) > 0) {
        atomic_store(&p->says, beats[n - 1]);
        atomic_fetch_add(&p->beats, 1);
        atomic_store(&p->unheard, 0);
    }
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
        if (has_vanished(p))
            atomic_store(&p->error, ETIMEDOUT);
        return;
    }
    if (n < 0 && errno != ECONNRESET && errno != EPIPE)
        atomic_store(&p->error, errno);
    else if (atomic_load(&p->says) != LEAVES)
        atomic_store(&p->lost, true);
    p->ended = true;
}

/* Waits for input, but not from closed connections. */
static bool goes_on(struct watch *w, int milliseconds)
{
    uint64_t woken;
    for (int r = 0; r < w->size; r++)
        w->polled[r] = (struct pollfd){.fd = w->peer[r].ended ? -1 : w->peer[r].fd, .events = POLLRDHUP};
    w->polled[w->size] = (struct pollfd){.fd = w->wake, .events = POLLIN};
    (void)poll(w->polled, (nfds_t)w->size + 1, milliseconds);
    if (w->polled[w->size].revents)
        (void)!read(w->wake, &woken, sizeof woken);
    return !atomic_load(&w->ends);
}

static void beat_to(struct peer *p, int fd, char say, int passed)
{
    if (fd != p->fd)
        p->ended = false;
    p->fd = fd;
    if (atomic_load(&p->unheard) <= SILENT)
        atomic_fetch_add(&p->unheard, passed);
    if (fd < 0 || p->ended)
        return;
    (void)send(fd, &say, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    hear(p);
}

/* "rank 1 on node2" */
static const char *name_of(const struct watch *w, int r, char *text, size_t room)
{
    snprintf(text, room, "rank %d%s%s", r, w->host ? " on " : "", w->host ? w->host[r].text : "");
    return text;
}

static int64_t memory_kills(void)
{
    return control_read("/proc/vmstat", "oom_kill", 0);
}

/* The reason for this machine, where the kernel counts the processes that it kills. */
static const char *lost_sentence(const struct watch *w, int r, char *text, size_t room)
{
    char name[128];
    bool near = !w->host || strcmp(w->host[r].text, w->host[w->rank].text) == 0;
    const char *by = near && memory_kills() > w->kills ? "the system killed it for want of memory"
                                                       : "it was killed (as by kill -9), or crashed";
    snprintf(text, room, "%s ended without a word: %s", name_of(w, r, name, sizeof name), by);
    return text;
}

/* Rank 0 sees all others, which see only rank 0. Ends the program for a lost rank: a launcher may let ranks wait for it for ever. */
static void look_for_lost(struct watch *w)
{
    char sentence[256];
    if (!w->speaks || atomic_load(&w->leaves))
        return;
    for (int r = 0; r < w->size && !(w->lost > 0); r++) {
        if (!atomic_load(&w->peer[r].lost))
            continue;
        w->lost = clock_seconds();
        if (w->rank == 0 || w->rank == 1)
            diag_announce("%s", lost_sentence(w, r, sentence, sizeof sentence));
    }
    if (w->lost > 0 && (atomic_load(&w->insists) || clock_seconds() - w->lost > 1e-3 * ENDS_AFTER))
        diag_leave(1);
}

/* A rank without any heartbeat since this one insists; passed: ms since the last call. Rank 0 sees all others, which see only rank 0. */
static bool finds_unconnected(struct watch *w, int passed, char *sentence, size_t room)
{
    char name[128];
    const int from = w->rank ? 0 : 1, to = w->rank ? 1 : w->size;
    w->insisted += passed;
    for (int r = from; r < to && w->insisted > CONNECTED_AFTER; r++)
        if (atomic_load(&w->peer[r].beats) == 0) {
            snprintf(sentence, room, "%s can't be watched: no TCP connection between it and this rank within %d s",
                     name_of(w, r, name, sizeof name), CONNECTED_AFTER / 1000);
            return true;
        }
    return false;
}

/* Runs also while this rank is idle, or in an MPI call that never returns. */
static void look_for_silent(struct watch *w, int passed)
{
    char sentence[256];
    if (!atomic_load(&w->insists) || atomic_load(&w->leaves) ||
        (!watch_finds_silent(w, sentence, sizeof sentence) && !finds_unconnected(w, passed, sentence, sizeof sentence)))
        return;
    if (w->rank <= 1)
        diag_announce("%s", sentence);
    diag_leave(1);
}

void watch_insist(struct watch *w)
{
    atomic_store(&w->silent_after, SILENT_AT_MOST);
    atomic_store(&w->insists, true);
}

/* The thread. Waiting ranks look once a second themselves. */
static void *beat(void *watch)
{
    enum { LOOKED = 6 }; /* heartbeats within which a waiting rank has looked */
    struct watch *w = watch;
    int since = LOOKED, each = 0;
    do {
        since = atomic_exchange(&w->looks, false) ? 0 : since + (since < LOOKED);
        const char say = atomic_load(&w->leaves) ? LEAVES : since < LOOKED ? WAITS : BUSY;
        bool missing = connections_try(w->connections, w->fd);
        for (int r = 0; r < w->size; r++)
            beat_to(&w->peer[r], w->fd[r], say, each);
        look_for_lost(w);
        look_for_silent(w, each);
        atomic_fetch_add(&w->rounds, 1);
        each = missing ? TRY_EACH : BEAT_EACH;
    } while (goes_on(w, each));
    return NULL;
}

/* With signals blocked and a small stack. */
static bool start_thread(struct watch *w)
{
    sigset_t all, before;
    pthread_attr_t small;
    (void)sigfillset(&all);
    if (pthread_attr_init(&small) || pthread_attr_setstacksize(&small, BEAT_STACK))
        return false;
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(&w->thread, &small, beat, w) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&small);
    return started;
}

static void wake(struct watch *w)
{
    (void)!write(w->wake, &(uint64_t){1}, sizeof(uint64_t));
}

void watch_leave(void *watch)
{
    enum { TRIES = 60, MS = 5 };
    struct watch *w = watch;
    if (!w->beats || pthread_equal(pthread_self(), w->thread))
        return;
    for (unsigned at = atomic_load(&w->rounds), i = 0; i < TRIES && atomic_load(&w->rounds) - at < 2; i++) {
        wake(w);
        (void)nanosleep(&(struct timespec){0, MS * 1000000L}, NULL);
    }
    for (unsigned at = atomic_load(&w->rounds), i = 0; i < TRIES && atomic_load(&w->rounds) - at < 2; i++) {
        atomic_store(&w->leaves, true);
        wake(w);
        (void)nanosleep(&(struct timespec){0, MS * 1000000L}, NULL);
    }
}

/* ---- the rank ---- */

static struct host_name *name_hosts(struct arena *a, struct comm *comm, const char *host)
{
    struct host_name own = {""};
    snprintf(own.text, HOST_BYTES, "%s", host);
    struct host_name *all = comm_gather(comm, a, "names of the hosts", &own, sizeof own);
    for (int r = 0; r < comm->size; r++)
        all[r].text[HOST_BYTES - 1] = '\0';
    return all;
}

struct watch *watch_start(struct arena *a, struct comm *comm, const char *host, bool speaks)
{
    bool near = comm->local_size == comm->size;
    struct watch *w = NEW(a, struct watch);
    *w = (struct watch){.rank = comm->rank, .size = comm->size, .started = clock_seconds(), .speaks = speaks, .silent_after = SILENT};
    w->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    w->kills = memory_kills();
    w->polled = NEWN(a, struct pollfd, w->size + 1);
    w->peer = NEWN(a, struct peer, w->size);
    w->fd = NEWN(a, int, w->size);
    for (int r = 0; r < w->size; r++) {
        w->peer[r] = (struct peer){.fd = -1, .says = WAITS};
        w->fd[r] = -1;
    }
    w->connections = connections_offer(a, comm, near);
    if (!near)
        w->host = name_hosts(a, comm, host);
    w->beats = start_thread(w);
    return w;
}

/* The purpose of a wait, as a part of a sentence. */
static const char *in_what(const struct watch_wait *wait, char *text, size_t room)
{
    snprintf(text, room, "%s%.200s%s", wait->in ? " in '" : "", wait->in ? wait->in : "", wait->in ? "'" : "");
    return text;
}

static void tell_silent(const struct watch *w, int r, const struct watch_wait *wait, bool last)
{
    char in[256], name[128], rest[64] = "";
    double waited = w->peer[r].silent;
    (void)name_of(w, r, name, sizeof name);
    (void)in_what(wait, in, sizeof in);
    if (last)
        fail_job("%s does not run: this rank has waited %.0f s for it%s, and the timeout is %.0f s", name, waited, in, wait->limit);
    if (wait->limit > 0)
        snprintf(rest, sizeof rest, ", and ends the job after %.0f s (--timeout)", wait->limit);
    diag_tell("%s does not run: this rank has waited %.0f s for it%s%s", name, waited, in, rest);
}

static void look_at(struct watch *w, int r, double passed, const struct watch_wait *wait)
{
    struct peer *p = &w->peer[r];
    double tell = wait->limit > 0 && wait->limit / 2 < tell_after ? wait->limit / 2 : tell_after;
    int error = atomic_load(&p->error), beats = atomic_load(&p->beats);
    char lost[256];
    if (!w->speaks && atomic_load(&p->lost))
        fail_job("%s", lost_sentence(w, r, lost, sizeof lost));
    if (error)
        fail_job("%s, the host of rank %d, does not answer: %s", w->host ? w->host[r].text : "this machine", r, strerror(error));
    p->silent = beats == 0 || beats != p->seen ? 0 : p->silent + passed;
    p->told &= p->silent > 0;
    p->seen = beats;
    if (wait->limit > 0 && p->silent >= wait->limit)
        tell_silent(w, r, wait, true);
    if (!p->told && p->silent >= tell) {
        p->told = true;
        if (w->rank <= 1) /* one of the waiting ranks is enough */
            tell_silent(w, r, wait, false);
    }
}

bool watch_finds_silent(const struct watch *w, char *sentence, size_t room)
{
    char name[128];
    for (int r = 0; r < w->size; r++)
        if (atomic_load(&w->peer[r].beats) > 0 && atomic_load(&w->peer[r].unheard) > atomic_load(&w->silent_after)) {
            snprintf(sentence, room, "%s does not run", name_of(w, r, name, sizeof name));
            return true;
        }
    return false;
}

/* All ranks run, and one is late: only rank 0 knows which. */
static void tell_late(struct watch *w, const struct watch_wait *wait)
{
    char in[256], who[256] = "";
    size_t used = 0;
    for (int r = 1; r < w->size && used < sizeof who - 16; r++)
        if (atomic_load(&w->peer[r].says) == BUSY)
            used += (size_t)snprintf(who + used, sizeof who - used, "%s %d", used ? "," : " for rank", r);
    diag_tell("this rank has waited %.0f s%s%s%s", w->waited, who, in_what(wait, in, sizeof in), used ? "" : ": all ranks wait");
}

static void explain_missing(struct watch *w)
{
    w->explained = true;
    for (int r = 1; r < w->size; r++)
        if (atomic_load(&w->peer[r].beats) == 0)
            explain("rank %d is not watched: no connection comes through", r);
}

void watch_look(struct watch *w, const struct watch_wait *wait)
{
    double now = clock_seconds(), passed = now - w->looked, before = w->waited;
    if (passed < look_every)
        return;
    w->looked = now;
    atomic_store(&w->looks, true);
    passed = passed < 2 * look_every ? passed : look_every; /* otherwise it did not wait, or did not run itself */
    w->waited = wait->number == w->number ? before + passed : 0;
    w->number = wait->number;
    for (int r = 0; r < w->size; r++)
        look_at(w, r, passed, wait);
    if (w->rank == 0 && !w->explained && now - w->started > explain_after)
        explain_missing(w);
    if (w->rank == 0 && wait->step && before < tell_after && w->waited >= tell_after)
        tell_late(w, wait);
}

/* Reads remaining heartbeats before closing: unread data would reset the connection, and lose the last message. */
static void close_after_last_word(int fd, double until)
{
    char beats[64];
    (void)send(fd, &(const char){LEAVES}, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)shutdown(fd, SHUT_WR);
    for (double left; (left = until - clock_seconds()) > 0;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, (int)(1e3 * left) + 1) != 1 || recv(fd, beats, sizeof beats, MSG_DONTWAIT) <= 0)
            break;
    }
    (void)close(fd);
}

void watch_stop(struct watch *w)
{
    static const double wait = 0.5; /* seconds */
    atomic_store(&w->leaves, true);
    atomic_store(&w->ends, true);
    wake(w);
    if (w->beats)
        (void)pthread_join(w->thread, NULL);
    connections_end(w->connections);
    for (int r = 0; r < w->size; r++)
        if (w->fd[r] >= 0)
            close_after_last_word(w->fd[r], clock_seconds() + wait);
    if (w->wake >= 0)
        (void)close(w->wake);
}
