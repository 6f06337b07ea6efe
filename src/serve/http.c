/* http: requests and replies, over libmicrohttpd. */
#include "serve/serve.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static const char chat_refused[] =
    "tpc-run fills in no chat template: the client applies the template of the model, as docs/chat.py does, and "
    "sends the text to /v1/completions";

/* ---- replies ---- */

static enum MHD_Result answer(struct MHD_Connection *to, unsigned status, const char *type, const char *text)
{
    struct MHD_Response *r = MHD_create_response_from_buffer(strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_MUST_COPY);
    if (!r)
        return MHD_NO;
    (void)MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    if (status == MHD_HTTP_TOO_MANY_REQUESTS || status == MHD_HTTP_SERVICE_UNAVAILABLE)
        (void)MHD_add_response_header(r, MHD_HTTP_HEADER_RETRY_AFTER, "1");
    if (status == MHD_HTTP_CONTENT_TOO_LARGE)
        (void)MHD_add_response_header(r, MHD_HTTP_HEADER_CONNECTION, "close");
    enum MHD_Result done = MHD_queue_response(to, status, r);
    MHD_destroy_response(r);
    return done;
}

static enum MHD_Result answer_json(struct call *c, unsigned status, const char *text)
{
    return answer(c->connection, status, "application/json", text);
}

static enum MHD_Result refuse(struct call *c, unsigned status, const char *message)
{
    bool ours = status >= 500;
    pthread_mutex_lock(&c->service->lock);
    c->service->counts.refused++;
    pthread_mutex_unlock(&c->service->lock);
    return answer_json(c, status, reply_error(c->arena, message, ours ? "server_error" : "invalid_request_error"));
}

/* ---- streams ---- */

/* Takes the call's events; where there are none, the connection sleeps. */
static ssize_t read_events(void *data, uint64_t at, char *to, size_t most)
{
    struct call *c = data;
    (void)at;
    pthread_mutex_lock(&c->service->lock);
    size_t n = (size_t)c->events.to.n - c->read;
    ssize_t given = (ssize_t)(n < most ? n : most);
    if (n == 0 && (c->open == 0 || c->gone))
        given = MHD_CONTENT_READER_END_OF_STREAM;
    else if (n == 0) {
        c->suspended = true;
        MHD_suspend_connection(c->connection);
    } else {
        memcpy(to, c->events.to.at + c->read, (size_t)given);
        c->read += (size_t)given;
        if (c->read == (size_t)c->events.to.n)
            c->events.to.n = (int)(c->read = 0);
    }
    pthread_mutex_unlock(&c->service->lock);
    return given;
}

static enum MHD_Result answer_stream(struct call *c)
{
    struct MHD_Response *r = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 16 * 1024, read_events, c, NULL);
    if (!r)
        return MHD_NO;
    (void)MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, "text/event-stream");
    (void)MHD_add_response_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-cache");
    enum MHD_Result done = MHD_queue_response(c->connection, MHD_HTTP_OK, r);
    MHD_destroy_response(r);
    return done;
}

/* ---- completions ---- */

/* The engine has something for it, or refuses it. */
static enum MHD_Result answer_texts(struct call *c)
{
    pthread_mutex_lock(&c->service->lock);
    bool gone = c->gone;
    pthread_mutex_unlock(&c->service->lock);
    if (gone)
        return MHD_NO;
    if (c->refused)
        return refuse(c, MHD_HTTP_SERVICE_UNAVAILABLE, c->refused);
    return c->stream ? answer_stream(c) : answer_json(c, MHD_HTTP_OK, reply_completion(c));
}

static enum MHD_Result ask_texts(struct call *c)
{
    struct service *s = c->service;
    const char *wrong = request_read(c);
    if (wrong)
        return refuse(c, MHD_HTTP_BAD_REQUEST, wrong);
    pthread_mutex_lock(&s->lock);
    bool ending = s->ending, put = !ending && call_put(c);
    if (put) {
        c->asked = c->suspended = true;
        MHD_suspend_connection(c->connection);
    }
    pthread_mutex_unlock(&s->lock);
    if (ending)
        return refuse(c, MHD_HTTP_SERVICE_UNAVAILABLE, "the server ends");
    return put ? MHD_YES : refuse(c, MHD_HTTP_TOO_MANY_REQUESTS, "too many texts wait already");
}

/* ---- routes ---- */

static enum MHD_Result answer_metrics(struct call *c)
{
    pthread_mutex_lock(&c->service->lock);
    const char *text = reply_metrics(c->arena, c->service);
    pthread_mutex_unlock(&c->service->lock);
    return answer(c->connection, MHD_HTTP_OK, "text/plain; version=0.0.4", text);
}

static enum MHD_Result answer_health(struct call *c)
{
    pthread_mutex_lock(&c->service->lock);
    bool ending = c->service->ending;
    pthread_mutex_unlock(&c->service->lock);
    return answer_json(c, ending ? MHD_HTTP_SERVICE_UNAVAILABLE : MHD_HTTP_OK, ending ? "{\"status\":\"ends\"}" : "{\"status\":\"ok\"}");
}

static enum MHD_Result answer_models(struct call *c)
{
    return answer_json(c, MHD_HTTP_OK, reply_models(c->arena, c->service));
}

static enum MHD_Result answer_chat(struct call *c)
{
    return refuse(c, MHD_HTTP_BAD_REQUEST, chat_refused);
}

static const struct {
    const char *path, *method;
    enum MHD_Result (*answer)(struct call *);
} routes[] = {{"/v1/completions", "POST", ask_texts},
              {"/v1/chat/completions", "POST", answer_chat},
              {"/v1/models", "GET", answer_models},
              {"/health", "GET", answer_health},
              {"/metrics", "GET", answer_metrics}};

static enum MHD_Result route(struct call *c, const char *path, const char *method)
{
    bool found = false;
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++) {
        if (strcmp(routes[i].path, path))
            continue;
        if (strcmp(routes[i].method, method) == 0)
            return routes[i].answer(c);
        found = true;
    }
    return found ? refuse(c, MHD_HTTP_METHOD_NOT_ALLOWED, "this address takes another method")
                 : refuse(c, MHD_HTTP_NOT_FOUND, "there is /v1/completions, /v1/models, /health and /metrics");
}

/* ---- what libmicrohttpd calls ---- */

/* So much is not even read to be dropped. */
static bool announces_too_much(struct MHD_Connection *connection)
{
    const char *length = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
    int64_t n;
    return length && (!i64_parse(length, 0, INT64_MAX, &n) || n > SERVE_READ);
}

static void take_body(struct call *c, const char *data, size_t n)
{
    if (!c->too_long && (size_t)c->body.to.n + n <= SERVE_BODY)
        text_put(&c->body, data, n);
    else
        c->too_long = true;
}

static enum MHD_Result handle(void *service, struct MHD_Connection *connection, const char *path, const char *method, const char *version,
                              const char *data, size_t *bytes, void **own)
{
    struct call *c = *own;
    (void)version;
    if (!c) {
        *own = c = call_new(service, connection);
        c->too_long = announces_too_much(connection);
        return c->too_long ? refuse(c, MHD_HTTP_CONTENT_TOO_LARGE, "the body is too long") : MHD_YES;
    }
    if (*bytes) {
        take_body(c, data, *bytes);
        *bytes = 0;
        return MHD_YES;
    }
    if (c->too_long)
        return refuse(c, MHD_HTTP_CONTENT_TOO_LARGE, "the body is too long");
    if (c->asked)
        return answer_texts(c);
    pthread_mutex_lock(&c->service->lock);
    c->service->counts.requests += strcmp(method, "POST") == 0;
    pthread_mutex_unlock(&c->service->lock);
    return route(c, path, method);
}

static void leave(void *service, struct MHD_Connection *connection, void **own, enum MHD_RequestTerminationCode how)
{
    (void)service, (void)connection, (void)how;
    if (*own)
        call_leave(*own);
    *own = NULL;
}

bool http_is_closed(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    char byte;
    ssize_t n = info ? recv(info->connect_fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) : 1;
    return n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

/* ---- start ---- */

struct MHD_Daemon *http_start(struct service *s, int listening)
{
    unsigned flags = MHD_USE_AUTO | MHD_USE_INTERNAL_POLLING_THREAD | MHD_ALLOW_SUSPEND_RESUME;
    struct MHD_Daemon *d = MHD_start_daemon(flags, 0, NULL, NULL, handle, s, MHD_OPTION_LISTEN_SOCKET, listening,
                                            MHD_OPTION_NOTIFY_COMPLETED, leave, s, MHD_OPTION_CONNECTION_LIMIT, 2 * (unsigned)SERVE_WAITING,
                                            MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)SERVE_IDLE_SECONDS, MHD_OPTION_END);
    if (!d)
        fail("the HTTP server can't start: %s", strerror(errno));
    return d;
}

void http_stop(struct MHD_Daemon *d)
{
    MHD_stop_daemon(d);
}
