/* serve/admission: who may connect and ask: sockets, heads of requests, deadlines, origins and keys. */
#ifndef TPC_SERVE_ADMISSION_H
#define TPC_SERVE_ADMISSION_H

#include "serve/serve.h"

/* ---- head.c: what is wrong with the head of a request. Status 0: nothing. ---- */
struct refusal {
    unsigned status;
    const char *message;
};
extern const char head_body_too_long[];
struct refusal head_fault(struct MHD_Connection *, const char *version);

/* ---- listen.c: a socket that listens. Port 0 takes one that is free. ---- */
struct listening {
    int fd, port;
    bool local; /* at an address of this machine alone */
};
struct listening listen_open(const char *host, int port);
/* It is a loopback address. */
bool listen_is_local(const struct sockaddr *);

/* ---- connections.c: who is connected, and until when ---- */
struct connection;
/* Starts the thread that closes connections whose time is over. */
void connections_start(struct service *);
void connections_stop(struct service *);
/* As libmicrohttpd wants it; data: the service. */
void connections_notify(void *data, struct MHD_Connection *, void **own, enum MHD_ConnectionNotificationCode);
/* It is closed unless it gets on within these seconds; 0: no deadline. Needs the lock. */
void connection_set_deadline(struct connection *, double seconds);
/* Sends a whole reply directly, while libmicrohttpd sends nothing. The caller closes the connection. */
void connection_refuse(struct connection *, struct refusal);
/* The client of a suspended call will take no answer. One that has only ended its own side takes it: it is probed. Needs the lock. */
bool connection_is_gone(struct call *);

/* ---- origin.c: which pages of a browser may use the server ---- */
/* Why a request is refused, in the arena; host, origin: headers; NULL: not given. */
const char *origin_fault(struct arena *, const struct service *, const char *host, const char *origin);
/* What it may be told that other pages may read the answer: the origin, "*", or NULL: nothing. */
const char *origin_allowed(const struct service *, const char *origin);
/* An origin that --cors names. */
bool origin_is_valid(const char *);

/* ---- keys.c: who may use the server ---- */
struct keys;
/* Of a file with a key on each line, which only its owner may use. */
struct keys *keys_read(struct arena *, const char *path);
/* authorization: the header; NULL: not given. */
bool keys_admit(const struct keys *, const char *authorization);

#endif
