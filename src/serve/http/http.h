/* serve/http: the client's side of a server: addresses, the page, and the access log. */
#ifndef TPC_SERVE_HTTP_H
#define TPC_SERVE_HTTP_H

#include "serve/serve.h"

/* ---- access.c: the access log, with -v ---- */
void access_begin(struct call *, const char *method, const char *path);
/* Once it is answered, or its client is gone. Needs the lock. */
void access_tell(const struct call *);

/* ---- page.c: the web client ---- */
struct page_file {
    const char *path, *type;
    const char *const *line; /* ends with NULL */
};
/* NULL: the path is none of its files. */
const struct page_file *page_named(const char *path);
const char *page_text(struct arena *, const struct page_file *);

/* ---- http.c ---- */
struct MHD_Daemon *http_start(struct service *, int listening);
void http_stop(struct MHD_Daemon *);

/* ---- doors.c: the client's side of a server ---- */
struct doors {
    struct MHD_Daemon *daemon;
    int port;
};
/* From now on requests are accepted. */
struct doors doors_open(struct service *, const struct serve_options *);
/* Prints the server's address, and what it offers. */
void doors_tell(struct arena *, const struct service *, const struct doors *);
/* Once no text is generated any more. */
void doors_close(struct service *, struct doors *);

#endif
