/* serve/http: what clients see of a server: addresses, the page, and the log of requests. */
#ifndef TPC_SERVE_HTTP_H
#define TPC_SERVE_HTTP_H

#include "serve/serve.h"

/* ---- access.c: a line for each request, with -v ---- */
void access_begin(struct call *, const char *method, const char *path);
/* Once it is answered, or its client has gone. Needs the lock. */
void access_tell(const struct call *);

/* ---- page.c: the web client ---- */
struct page_file {
    const char *path, *type;
    const char *const *line; /* NULL ends */
};
/* NULL: the path is none of its files. */
const struct page_file *page_named(const char *path);
const char *page_text(struct arena *, const struct page_file *);

/* ---- http.c ---- */
struct MHD_Daemon *http_start(struct service *, int listening);
void http_stop(struct MHD_Daemon *);

/* ---- doors.c: all that clients see of a server ---- */
struct doors {
    struct MHD_Daemon *daemon;
    int port;
};
/* From now on requests come. */
struct doors doors_open(struct service *, const struct serve_options *);
/* Where the server is, and what it makes. */
void doors_tell(struct arena *, const struct service *, const struct doors *);
/* Once no text is made any more. */
void doors_close(struct service *, struct doors *);

#endif
