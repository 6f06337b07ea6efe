/* watch: sees that the host of another rank has vanished. MPI waits for such a rank for ever.
 *
 * Each rank has a TCP connection to rank 0 over which nothing is sent. The systems at both ends keep it alive, so a rank that computes for
 * hours, or is stopped, answers; a host that is gone does not, and its connection fails within a minute. Ranks look at their connections
 * while they wait. If a firewall lets no connection through, that rank is not watched. */
#include "run/comm/comm.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ADDRESSES = 16, HOST_BYTES = 64 };
enum { CONNECT_WITHIN = 3000, ANSWER_WITHIN = 1000 }; /* ms */
enum { IDLE = 15, INTERVAL = 5, PROBES = 6 };         /* s, s, number: a dead connection fails after 45 s */
static const double look_every = 1;                   /* s */

struct offer {
    uint64_t token; /* another program that listens there does not know it */
    uint16_t port;
    int32_t n;
    uint32_t address[ADDRESSES];
};
struct hello {
    uint64_t token;
    int64_t rank;
};
struct host_name {
    char text[HOST_BYTES];
};
struct watch {
    int rank, size;
    int *connection;        /* by rank; -1: none */
    struct host_name *host; /* by rank */
    double looked;
};

static void keep_alive(int fd)
{
    const int on = 1, idle = IDLE, interval = INTERVAL, probes = PROBES;
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

static bool ready(int fd, short events, int milliseconds)
{
    struct pollfd p = {.fd = fd, .events = events};
    return poll(&p, 1, milliseconds) == 1;
}

/* A message of a few bytes comes in one piece. */
static bool receive(int fd, void *to, size_t bytes)
{
    return ready(fd, POLLIN, ANSWER_WITHIN) && recv(fd, to, bytes, MSG_DONTWAIT) == (ssize_t)bytes;
}

static bool transmit(int fd, const void *from, size_t bytes)
{
    return send(fd, from, bytes, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)bytes;
}

/* ---- rank 0 ---- */

static void list_addresses(struct offer *o)
{
    struct ifaddrs *all = NULL;
    if (getifaddrs(&all))
        return;
    for (const struct ifaddrs *i = all; i && o->n < ADDRESSES; i = i->ifa_next) {
        if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET || !(i->ifa_flags & IFF_UP) || i->ifa_flags & IFF_LOOPBACK)
            continue;
        struct sockaddr_in address;
        memcpy(&address, i->ifa_addr, sizeof address);
        o->address[o->n++] = address.sin_addr.s_addr;
    }
    freeifaddrs(all);
}

/* -1: it can't. */
static int listen_for(int ranks, struct offer *o)
{
    struct sockaddr_in own = {.sin_family = AF_INET};
    socklen_t bytes = sizeof own;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || getrandom(&o->token, sizeof o->token, 0) != sizeof o->token || bind(fd, (struct sockaddr *)&own, sizeof own) ||
        listen(fd, ranks) || getsockname(fd, (struct sockaddr *)&own, &bytes)) {
        if (fd >= 0)
            (void)close(fd);
        return -1;
    }
    o->port = own.sin_port;
    list_addresses(o);
    return fd;
}

/* True: a rank, which gets an answer. */
static bool welcome(struct watch *w, int fd, const struct offer *o)
{
    struct hello h;
    if (!receive(fd, &h, sizeof h) || h.token != o->token || h.rank < 1 || h.rank >= w->size || w->connection[h.rank] >= 0 ||
        !transmit(fd, &o->token, sizeof o->token))
        return false;
    w->connection[h.rank] = fd;
    keep_alive(fd);
    return true;
}

static void accept_ranks(struct watch *w, int listener, const struct offer *o)
{
    double end = clock_seconds() + CONNECT_WITHIN * 1e-3;
    for (int missing = w->size - 1; listener >= 0 && missing > 0 && clock_seconds() < end;) {
        int fd = ready(listener, POLLIN, 50) ? accept(listener, NULL, NULL) : -1;
        if (fd < 0)
            continue;
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
        if (welcome(w, fd, o))
            missing--;
        else
            (void)close(fd);
    }
    if (listener >= 0)
        (void)close(listener);
}

/* ---- the others ---- */

static bool answered(int fd, const struct hello *h)
{
    uint64_t token = 0;
    int error = 0;
    socklen_t bytes = sizeof error;
    return ready(fd, POLLOUT, ANSWER_WITHIN) && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes) == 0 && !error &&
        transmit(fd, h, sizeof *h) && receive(fd, &token, sizeof token) && token == h->token;
}

static void connect_to_first(struct watch *w, const struct offer *o)
{
    const struct hello h = {o->token, w->rank};
    double end = clock_seconds() + CONNECT_WITHIN * 1e-3;
    for (int i = 0; i < o->n && w->connection[0] < 0 && clock_seconds() < end; i++) {
        struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = o->port, .sin_addr = {o->address[i]}};
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
            return;
        if ((connect(fd, (struct sockaddr *)&to, sizeof to) == 0 || errno == EINPROGRESS) && answered(fd, &h)) {
            w->connection[0] = fd;
            keep_alive(fd);
        } else {
            (void)close(fd);
        }
    }
}

/* ---- all ---- */

static void name_hosts(struct arena *a, struct watch *w, struct comm *comm, const char *host)
{
    struct host_name own = {""};
    snprintf(own.text, HOST_BYTES, "%s", host);
    w->host = comm_gather(comm, a, "names of the hosts", &own, sizeof own);
    for (int r = 0; r < w->size; r++)
        w->host[r].text[HOST_BYTES - 1] = '\0';
}

struct watch *watch_start(struct arena *a, struct comm *comm, const char *host)
{
    struct offer o = {.n = 0};
    struct watch *w = NEW(a, struct watch);
    *w = (struct watch){.rank = comm->rank, .size = comm->size, .connection = NEWN(a, int, comm->size), .looked = clock_seconds()};
    for (int r = 0; r < w->size; r++)
        w->connection[r] = -1;
    int listener = w->rank ? -1 : listen_for(w->size, &o);
    comm_from_first(comm, "connections of the watch", &o, sizeof o);
    if (o.n < 0 || o.n > ADDRESSES)
        o.n = 0;
    if (w->rank)
        connect_to_first(w, &o);
    else
        accept_ranks(w, listener, &o);
    name_hosts(a, w, comm, host);
    for (int r = 1; r < w->size; r++)
        if (w->rank == 0 && w->connection[r] < 0)
            explain("%s of rank %d is not watched: no connection comes through", w->host[r].text, r);
    return w;
}

/* What a connection that ended says; 0: it lives, or the other side closed it, as a rank that is done does. */
static int connection_error(int fd)
{
    char byte;
    if (recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)
        return 0;
    return errno;
}

void watch_look(struct watch *w)
{
    double now = clock_seconds();
    if (now - w->looked < look_every)
        return;
    w->looked = now;
    for (int r = 0; r < w->size; r++) {
        int error = w->connection[r] < 0 ? 0 : connection_error(w->connection[r]);
        if (error)
            fail("%s, the host of rank %d, does not answer: %s", w->host[r].text, r, strerror(error));
    }
}

void watch_stop(struct watch *w)
{
    for (int r = 0; r < w->size; r++)
        if (w->connection[r] >= 0)
            (void)close(w->connection[r]);
}
