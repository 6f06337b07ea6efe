/* serve/admission: who may connect and send requests: sockets, request heads, deadlines, origins and keys. */
#ifndef TPC_SERVE_ADMISSION_H
#define TPC_SERVE_ADMISSION_H

#include "serve/serve.h"

/* ---- head.c: errors in the head of a request. Status 0: none. ---- */
struct refusal {
    unsigned status;
    const char *message;
};
extern const char head_body_too_long[];
struct refusal head_fault(struct MHD_Connection *, const char *version);

/* ---- listen.c: a listening socket. Port 0 takes a free one. ---- */
struct listening {
    int fd, port;
    bool local; /* its address is only reachable from this machine */
};
struct listening listen_open(const char *host, int port);
/* Whether it is a loopback address. */
bool listen_is_local(const struct sockaddr *);

/* ---- connections.c: connections and their deadlines ---- */
struct connection;
/* Starts the thread that closes connections past their deadline. */
void connections_start(struct service *);
void connections_stop(struct service *);
/* A callback of libmicrohttpd; data: the service. */
void connections_notify(void *data, struct MHD_Connection *, void **own, enum MHD_ConnectionNotificationCode);
/* Closes it unless there is progress within these seconds; 0: no deadline. Needs the lock. */
void connection_set_deadline(struct connection *, double seconds);
/* Sends a whole reply directly, while libmicrohttpd sends nothing. The caller closes the connection. */
void connection_refuse(struct connection *, struct refusal);
/* Whether the client of a suspended call is gone. A client that only shut down its sending side is not: it is probed. Needs the lock. */
bool connection_is_gone(struct call *);

/* ---- origin.c: browser pages that may use the server ---- */
/* Why a request is rejected, in the arena; host, origin: headers; NULL: not given. */
const char *origin_fault(struct arena *, const struct service *, const char *host, const char *origin);
/* The value of Access-Control-Allow-Origin: the origin, "*", or NULL: none. */
const char *origin_allowed(const struct service *, const char *origin);
/* Whether it is a valid origin for --cors. */
bool origin_is_valid(const char *);

/* ---- keys.c: who may use the server ---- */
struct keys;
/* From a file with a key per line, which must be readable only by its owner. */
struct keys *keys_read(struct arena *, const char *path);
/* authorization: the header; NULL: not given. */
bool keys_admit(const struct keys *, const char *authorization);

#endif
