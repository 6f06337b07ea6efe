/* connections: a TCP connection of every rank with rank 0, identified only as belonging to this job. On one machine it uses the loopback
 * interface. A thread connects in the background. A rank whose connection a firewall or sandbox blocks has none. */
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

enum { ADDRESSES = 16 };
enum { CONNECT_WITHIN = 1000, ANSWER_WITHIN = 5000, HELLO_WITHIN = 200 }; /* ms */
static const double try_for = 60;                                         /* s */

struct offer {
    uint64_t token; /* unknown to other programs that listen there */
    uint16_t port;
    int32_t n;
    uint32_t address[ADDRESSES];
};
struct hello {
    uint64_t token;
    int64_t rank;
};
struct connections {
    int rank, size, missing, tried;
    int listener; /* rank 0's; -1: none */
    double end;   /* when to stop trying */
    struct offer offer;
};

static bool ready(int fd, short events, int milliseconds)
{
    struct pollfd p = {.fd = fd, .events = events};
    return poll(&p, 1, milliseconds) == 1;
}

/* Receives a short message in one piece. */
static bool receive(int fd, void *to, size_t bytes, int milliseconds)
{
    return ready(fd, POLLIN, milliseconds) && recv(fd, to, bytes, MSG_DONTWAIT) == (ssize_t)bytes;
}

static bool transmit(int fd, const void *from, size_t bytes)
{
    return send(fd, from, bytes, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)bytes;
}

/* Sends at once: the last message arrives even if this process ends next. */
static void send_at_once(int fd)
{
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
}

/* ---- rank 0 ---- */

static void list_addresses(struct offer *o, bool near)
{
    struct ifaddrs *all = NULL;
    if (near)
        o->address[o->n++] = htonl(INADDR_LOOPBACK);
    if (near || getifaddrs(&all))
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

/* -1: not possible. */
static int listen_for(int ranks, bool near, struct offer *o)
{
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr = {near ? htonl(INADDR_LOOPBACK) : 0}};
    socklen_t bytes = sizeof own;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || getrandom(&o->token, sizeof o->token, 0) != sizeof o->token || bind(fd, (struct sockaddr *)&own, sizeof own) ||
        listen(fd, ranks) || getsockname(fd, (struct sockaddr *)&own, &bytes)) {
        if (fd >= 0)
            (void)close(fd);
        return -1;
    }
    o->port = own.sin_port;
    list_addresses(o, near);
    return fd;
}

/* Accepts a rank, which gets an answer; -1: none. A rank without a timely answer tries again. */
static int welcome(struct connections *c, int fd)
{
    struct hello h;
    bool known = receive(fd, &h, sizeof h, HELLO_WITHIN) && h.token == c->offer.token && h.rank >= 1 && h.rank < c->size;
    return known && transmit(fd, &c->offer.token, sizeof c->offer.token) ? (int)h.rank : -1;
}

static void stop_listening(struct connections *c)
{
    if (c->listener >= 0)
        (void)close(c->listener);
    c->listener = -1;
}

static void accept_ranks(struct connections *c, int *of)
{
    int fd;
    while (c->missing > 0 && (fd = accept(c->listener, NULL, NULL)) >= 0) {
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
        send_at_once(fd);
        int rank = welcome(c, fd);
        if (rank < 0) {
            (void)close(fd);
            continue;
        }
        if (of[rank] >= 0)
            (void)close(of[rank]);
        else
            c->missing--;
        of[rank] = fd;
    }
}

/* ---- the others ---- */

static bool answered(int fd, const struct hello *h)
{
    uint64_t token = 0;
    int error = 0;
    socklen_t bytes = sizeof error;
    return ready(fd, POLLOUT, CONNECT_WITHIN) && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes) == 0 && !error &&
        transmit(fd, h, sizeof *h) && receive(fd, &token, sizeof token, ANSWER_WITHIN) && token == h->token;
}

/* Tries one address per call. */
static void connect_to_first(struct connections *c, int *of)
{
    const struct offer *o = &c->offer;
    const struct hello h = {o->token, c->rank};
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = o->port, .sin_addr = {o->address[c->tried++ % o->n]}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return;
    send_at_once(fd);
    if ((connect(fd, (struct sockaddr *)&to, sizeof to) == 0 || errno == EINPROGRESS) && answered(fd, &h))
        *of = fd;
    else
        (void)close(fd);
    c->missing = *of < 0;
}

/* ---- all ---- */

struct connections *connections_offer(struct arena *a, struct comm *comm, bool near)
{
    struct connections *c = NEW(a, struct connections);
    *c = (struct connections){.rank = comm->rank, .size = comm->size, .listener = -1, .end = clock_seconds() + try_for};
    if (comm->rank == 0)
        c->listener = listen_for(c->size, near, &c->offer);
    comm_from_first(comm, "connections of the ranks", &c->offer, sizeof c->offer);
    if (c->offer.n < 0 || c->offer.n > ADDRESSES)
        c->offer.n = 0;
    c->missing = c->rank ? 1 : c->size - 1;
    return c;
}

bool connections_try(struct connections *c, int *of)
{
    bool tries = c->missing > 0 && c->offer.n > 0 && clock_seconds() < c->end;
    if (tries && c->listener >= 0)
        accept_ranks(c, of);
    else if (tries && c->rank)
        connect_to_first(c, of);
    if (c->missing == 0 || !tries)
        stop_listening(c);
    return tries;
}

void connections_end(struct connections *c)
{
    stop_listening(c);
}
