/* listen: the listening socket of a server. */
#include "serve/admission/admission.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 1024 };

/* The port of closed connections is free; the port of another listening server is not. */
static int listen_at(const struct addrinfo *to)
{
    const int yes = 1;
    int fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (to->ai_family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof yes);
    if (bind(fd, to->ai_addr, to->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    int error = errno;
    (void)close(fd);
    errno = error;
    return -1;
}

static int port_of(int fd)
{
    struct sockaddr_storage own;
    socklen_t bytes = sizeof own;
    if (getsockname(fd, (struct sockaddr *)&own, &bytes))
        return 0;
    return ntohs(own.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&own)->sin6_port : ((struct sockaddr_in *)&own)->sin_port);
}

bool listen_is_local(const struct sockaddr *at)
{
    static const unsigned char mapped[13] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127};
    if (at->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)at)->sin_addr.s_addr) >> 24 == 127;
    const struct in6_addr *six = &((const struct sockaddr_in6 *)at)->sin6_addr;
    return at->sa_family == AF_INET6 && (IN6_IS_ADDR_LOOPBACK(six) || memcmp(six, mapped, sizeof mapped) == 0);
}

struct listening listen_open(const char *host, int port)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV}, *found;
    char number[8];
    snprintf(number, sizeof number, "%d", port);
    int status = getaddrinfo(host, number, &hints, &found);
    if (status)
        fail_usage("--host is '%s': %s", host, gai_strerror(status));
    struct listening l = {.fd = listen_at(found), .local = listen_is_local(found->ai_addr)};
    int error = errno;
    freeaddrinfo(found);
    if (l.fd < 0)
        fail("%s port %d can't be listened on: %s", host, port, strerror(error));
    l.port = port_of(l.fd);
    return l;
}
