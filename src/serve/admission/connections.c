/* connections: open connections. Each has a deadline while its request arrives and while its reply is sent, however active it is, and none
 * while texts are generated. If there are too many, the one with the next deadline is closed: a client that is being served sent its
 * request long before. */
#include "config.h"

#include "serve/admission/admission.h"
#include "serve/reply/reply.h"

#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

struct connection {
    struct arena *arena;
    int fd;
    bool closing;
    double until; /* 0: no deadline */
    struct sockaddr_storage address;
    struct connection *before, *after;
};

void connection_set_deadline(struct connection *c, double seconds)
{
    c->until = seconds > 0 ? clock_seconds() + seconds : 0;
}

/* libmicrohttpd notices it, and closes it. */
static void shut(struct service *s, struct connection *c)
{
    if (c->closing)
        return;
    c->closing = true;
    s->connections--;
    (void)shutdown(c->fd, SHUT_RDWR);
}

static struct connection *next_to_end(const struct service *s)
{
    struct connection *next = NULL;
    for (struct connection *c = s->open; c; c = c->after)
        if (!c->closing && c->until > 0 && (!next || c->until < next->until))
            next = c;
    return next;
}

static bool same_address(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
    if (a->ss_family != b->ss_family)
        return false;
    if (a->ss_family == AF_INET)
        return ((const struct sockaddr_in *)a)->sin_addr.s_addr == ((const struct sockaddr_in *)b)->sin_addr.s_addr;
    return memcmp(&((const struct sockaddr_in6 *)a)->sin6_addr, &((const struct sockaddr_in6 *)b)->sin6_addr, sizeof(struct in6_addr)) == 0;
}

static bool has_too_many(const struct service *s, const struct connection *of)
{
    int64_t n = 0;
    if (!s->per_address || listen_is_local((const struct sockaddr *)&of->address))
        return false;
    for (const struct connection *c = s->open; c; c = c->after)
        n += !c->closing && same_address(&c->address, &of->address);
    return n > s->per_address;
}

static void add(struct service *s, struct connection *c)
{
    c->after = s->open;
    if (s->open)
        s->open->before = c;
    s->open = c;
    s->connections++;
    connection_set_deadline(c, s->read_seconds);
    if (has_too_many(s, c))
        shut(s, c);
    if (s->connections > SERVE_CONNECTIONS)
        shut(s, next_to_end(s)); /* there is one: this connection has a deadline */
}

static void drop(struct service *s, struct connection *c)
{
    if (!c->closing)
        s->connections--;
    if (c->before)
        c->before->after = c->after;
    else
        s->open = c->after;
    if (c->after)
        c->after->before = c->before;
}

void connections_notify(void *data, struct MHD_Connection *mhd, void **own, enum MHD_ConnectionNotificationCode what)
{
    struct service *s = data;
    struct connection *c = *own;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        struct arena *a = arena_new();
        const struct sockaddr *from = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr;
        *own = c = NEW(a, struct connection);
        *c = (struct connection){.arena = a, .fd = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd};
        memcpy(&c->address, from, from->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
    }
    pthread_mutex_lock(&s->lock);
    if (what == MHD_CONNECTION_NOTIFY_STARTED)
        add(s, c);
    else
        drop(s, c);
    pthread_mutex_unlock(&s->lock);
    if (what == MHD_CONNECTION_NOTIFY_CLOSED)
        arena_free(c->arena);
}

/* ---- the closing thread ---- */

static void *close_late(void *service)
{
    enum { EACH = 100 }; /* ms */
    struct service *s = service;
    pthread_mutex_lock(&s->lock);
    while (!s->over) {
        double now = clock_seconds();
        for (struct connection *c = s->open; c; c = c->after)
            if (c->until > 0 && now > c->until)
                shut(s, c);
        struct timespec until = clock_after(EACH);
        (void)pthread_cond_timedwait(&s->wake_guard, &s->lock, &until);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* Each connection takes a file descriptor. */
static void allow_files(void)
{
    const rlim_t wanted = 4 * SERVE_CONNECTIONS;
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur >= wanted)
        return;
    files.rlim_cur = files.rlim_max < wanted ? files.rlim_max : wanted;
    (void)setrlimit(RLIMIT_NOFILE, &files);
}

void connections_start(struct service *s)
{
    allow_files();
    if (pthread_cond_init(&s->wake_guard, NULL) || pthread_create(&s->guard, NULL, close_late, s))
        fail("can't create a thread that looks after connections");
}

void connections_stop(struct service *s)
{
    pthread_mutex_lock(&s->lock);
    s->over = true;
    pthread_cond_signal(&s->wake_guard);
    pthread_mutex_unlock(&s->lock);
    (void)pthread_join(s->guard, NULL);
}

/* ---- replies that libmicrohttpd cannot send ---- */

static void send_text(const struct connection *c, const char *text)
{
    (void)send(c->fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void connection_refuse(struct connection *c, struct refusal why)
{
    const char *error = reply_error(c->arena, why.message, "invalid_request_error", NULL, NULL);
    send_text(c,
              arena_printf(c->arena,
                           "HTTP/1.1 %u %s\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n%s",
                           why.status, MHD_get_reason_phrase_for(why.status), strlen(error), error));
}

/* ---- disconnected clients ---- */

/* A client that closes its connection and one that only shuts down its sending side look the same until something is sent: the system of
 * the first one rejects it. An interim reply may precede any other; so may the events of a stream. */
bool connection_is_gone(struct call *c)
{
    struct pollfd p = {.fd = c->from->fd, .events = POLLRDHUP};
    if (poll(&p, 1, 0) <= 0)
        return false;
    if (p.revents & (POLLERR | POLLHUP | POLLNVAL))
        return true;
    if ((p.revents & POLLRDHUP) && c->interim && !c->streams && !c->probed) {
        c->probed = true;
        send_text(c->from, "HTTP/1.1 100 Continue\r\n\r\n");
    }
    return false;
}
