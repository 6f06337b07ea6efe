/* http: requests and replies, over libmicrohttpd. */
#include "serve/http/http.h"

#include "serve/admission/admission.h"
#include "serve/queue/queue.h"
#include "serve/reply/reply.h"
#include "serve/request/request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static const char ignored_fields[] = "X-Ignored-Fields";

/* ---- replies ---- */

static const char *header(const struct call *c, const char *name)
{
    return MHD_lookup_connection_value(c->connection, MHD_HEADER_KIND, name);
}

/* Allows pages of other origins to read it. */
static void admit_origin(const struct call *c, struct MHD_Response *r)
{
    const char *origin = origin_allowed(c->service, header(c, MHD_HTTP_HEADER_ORIGIN));
    if (c->service->cors.text.n)
        (void)MHD_add_response_header(r, MHD_HTTP_HEADER_VARY, MHD_HTTP_HEADER_ORIGIN);
    if (!origin)
        return;
    (void)MHD_add_response_header(r, MHD_HTTP_HEADER_ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    (void)MHD_add_response_header(r, MHD_HTTP_HEADER_ACCESS_CONTROL_EXPOSE_HEADERS, ignored_fields);
}

/* Takes ownership of the response. */
static enum MHD_Result answer(struct call *c, unsigned status, const char *type, struct MHD_Response *r)
{
    if (!r)
        return MHD_NO;
    if (type)
        (void)MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    if (status == MHD_HTTP_TOO_MANY_REQUESTS || status == MHD_HTTP_SERVICE_UNAVAILABLE)
        (void)MHD_add_response_header(r, MHD_HTTP_HEADER_RETRY_AFTER, "1");
    if (c->allowed)
        (void)MHD_add_response_header(r, MHD_HTTP_HEADER_ALLOW, c->allowed);
    if (c->ignored)
        (void)MHD_add_response_header(r, ignored_fields, c->ignored);
    if (status == MHD_HTTP_UNAUTHORIZED)
        (void)MHD_add_response_header(r, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
    c->answered = status;
    admit_origin(c, r);
    enum MHD_Result done = MHD_queue_response(c->connection, status, r);
    MHD_destroy_response(r);
    return done;
}

static void set_write_deadline(const struct call *c)
{
    pthread_mutex_lock(&c->service->lock);
    connection_set_deadline(c->from, SERVE_WRITE_SECONDS);
    pthread_mutex_unlock(&c->service->lock);
}

static enum MHD_Result answer_text(struct call *c, unsigned status, const char *type, const char *text)
{
    set_write_deadline(c);
    c->bytes = (int64_t)strlen(text);
    return answer(c, status, type, MHD_create_response_from_buffer(strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_MUST_COPY));
}

static enum MHD_Result answer_json(struct call *c, unsigned status, const char *text)
{
    return answer_text(c, status, "application/json", text);
}

static enum MHD_Result refuse(struct call *c, unsigned status, const char *message)
{
    bool ours = status >= 500;
    pthread_mutex_lock(&c->service->lock);
    c->service->counts.refused++;
    pthread_mutex_unlock(&c->service->lock);
    return answer_json(c, status, reply_error(c->arena, message, ours ? "server_error" : "invalid_request_error", c->param, c->code));
}

/* own: the method of this address. */
static const char *methods_with(struct call *c, const char *own)
{
    return arena_printf(c->arena, "%s%s, OPTIONS", own, strcmp(own, "GET") == 0 ? ", HEAD" : "");
}

static enum MHD_Result refuse_method(struct call *c, const char *own)
{
    c->allowed = methods_with(c, own);
    return refuse(c, MHD_HTTP_METHOD_NOT_ALLOWED, arena_printf(c->arena, "this address takes %s", c->allowed));
}

/* ---- streams ---- */

/* Copies the call's events; if there are none, suspends the connection. */
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
        c->bytes += given;
        if (c->read == (size_t)c->events.to.n)
            c->events.to.n = (int)(c->read = 0);
    }
    pthread_mutex_unlock(&c->service->lock);
    return given;
}

static enum MHD_Result answer_stream(struct call *c)
{
    struct MHD_Response *r = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 16 * 1024, read_events, c, NULL);
    if (r)
        (void)MHD_add_response_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-cache");
    return answer(c, MHD_HTTP_OK, "text/event-stream", r);
}

/* ---- texts ---- */

/* The engine or the reader has something for it. */
static enum MHD_Result answer_texts(struct call *c)
{
    pthread_mutex_lock(&c->service->lock);
    bool gone = c->gone;
    c->streams = c->stream && !c->refused;
    pthread_mutex_unlock(&c->service->lock);
    if (gone)
        return MHD_NO;
    if (c->refused)
        return refuse(c, c->status, c->refused);
    return c->stream ? answer_stream(c) : answer_json(c, MHD_HTTP_OK, c->endpoint->whole ? c->endpoint->whole(c) : reply_whole(c));
}

static enum MHD_Result ask_texts(struct call *c, const struct endpoint *endpoint)
{
    struct service *s = c->service;
    c->endpoint = endpoint;
    pthread_mutex_lock(&s->lock);
    bool ending = s->ending, put = !ending && reader_put(c);
    if (put) {
        c->asked = c->suspended = true;
        MHD_suspend_connection(c->connection);
    }
    pthread_mutex_unlock(&s->lock);
    if (ending)
        return refuse(c, MHD_HTTP_SERVICE_UNAVAILABLE, "the server ends");
    return put ? MHD_YES : refuse(c, MHD_HTTP_TOO_MANY_REQUESTS, "too many texts wait already");
}

static const struct endpoint completions = {request_completion, "cmpl",           "text_completion",
                                            "text_completion",  reply_completion, reply_put_event,
                                            reply_put_end,      reply_put_error,  NULL};
static const struct endpoint chats = {
    request_chat, "chatcmpl", "chat.completion", "chat.completion.chunk", chat_reply, chat_put_event, reply_put_end, reply_put_error, NULL};
static const struct endpoint tokenizing = {.read = request_tokenize, .whole = reply_tokens};
static const struct endpoint detokenizing = {.read = request_detokenize, .whole = reply_detokenized};
static const struct endpoint embedding = {.read = request_embedding, .whole = embeddings_reply};

static enum MHD_Result ask_completion(struct call *c)
{
    return ask_texts(c, &completions);
}

static enum MHD_Result ask_chat(struct call *c)
{
    return ask_texts(c, &chats);
}

static enum MHD_Result ask_tokens(struct call *c)
{
    return ask_texts(c, &tokenizing);
}

static enum MHD_Result ask_detokenized(struct call *c)
{
    return ask_texts(c, &detokenizing);
}

static enum MHD_Result ask_embeddings(struct call *c)
{
    return ask_texts(c, &embedding);
}

/* ---- other routes ---- */

static enum MHD_Result refuse_responses(struct call *c)
{
    return refuse(c, MHD_HTTP_NOT_FOUND, "this server has no /v1/responses: send the conversation to /v1/chat/completions");
}

static enum MHD_Result answer_metrics(struct call *c)
{
    pthread_mutex_lock(&c->service->lock);
    const char *text = metrics_text(c->arena, c->service);
    pthread_mutex_unlock(&c->service->lock);
    return answer_text(c, MHD_HTTP_OK, "text/plain; version=0.0.4", text);
}

/* Requests are accepted while the job restarts, and answered later. */
static enum MHD_Result answer_supervised_health(struct call *c)
{
    char why[256];
    int restarts;
    enum supervision state = supervisor_state(c->service->supervisor, &restarts, why);
    const char *text = reply_supervised(c->arena, state == SUPERVISE_RUNS ? "ok" : supervisor_word(state), restarts, why);
    return answer_json(c, state == SUPERVISE_STARTS ? MHD_HTTP_SERVICE_UNAVAILABLE : MHD_HTTP_OK, text);
}

static enum MHD_Result answer_health(struct call *c)
{
    const struct service *s = c->service;
    char silent[256] = "";
    pthread_mutex_lock(&c->service->lock);
    bool ending = s->ending;
    pthread_mutex_unlock(&c->service->lock);
    if (ending)
        return answer_json(c, MHD_HTTP_SERVICE_UNAVAILABLE, reply_health(c->arena, "ends", NULL));
    if (s->supervisor)
        return answer_supervised_health(c);
    if (s->comm->silent && s->comm->silent(s->comm, silent, sizeof silent))
        return answer_json(c, MHD_HTTP_SERVICE_UNAVAILABLE, reply_health(c->arena, "error", silent));
    return answer_json(c, MHD_HTTP_OK, reply_health(c->arena, "ok", NULL));
}

/* Before a supervised job has started for the first time. */
static bool is_unknown(const struct call *c)
{
    pthread_mutex_lock(&c->service->lock);
    bool unknown = !c->service->known;
    pthread_mutex_unlock(&c->service->lock);
    return unknown;
}

static enum MHD_Result refuse_unknown(struct call *c)
{
    return refuse(c, MHD_HTTP_SERVICE_UNAVAILABLE, "the server starts");
}

static enum MHD_Result answer_models(struct call *c)
{
    if (is_unknown(c))
        return refuse_unknown(c);
    return answer_json(c, MHD_HTTP_OK, reply_models(c->arena, c->service));
}

static enum MHD_Result answer_model(struct call *c)
{
    if (is_unknown(c))
        return refuse_unknown(c);
    int number = reply_named_model(c->service, c->rest);
    if (number >= 0)
        return answer_json(c, MHD_HTTP_OK, reply_model(c->arena, c->service, number));
    c->param = "model";
    c->code = "model_not_found";
    return refuse(c, MHD_HTTP_NOT_FOUND,
                  arena_printf(c->arena, "there is no model '%.100s': this server has %s", c->rest, request_model_names(c)));
}

/* Anyone may read it, because it contains nothing of the model. It loads only its own files, and no other page may show it in a frame. */
static enum MHD_Result answer_page(struct call *c, const struct page_file *file, const char *method)
{
    static const char *const headers[][2] = {{"Content-Security-Policy",
                                              "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
                                              "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
                                             {"X-Content-Type-Options", "nosniff"},
                                             {"Referrer-Policy", "no-referrer"},
                                             {MHD_HTTP_HEADER_CACHE_CONTROL, "no-cache"}};
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
        return refuse_method(c, "GET");
    const char *text = page_text(c->arena, file);
    c->bytes = (int64_t)strlen(text);
    struct MHD_Response *r = MHD_create_response_from_buffer(strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_MUST_COPY);
    for (size_t i = 0; r && i < sizeof headers / sizeof *headers; i++)
        (void)MHD_add_response_header(r, headers[i][0], headers[i][1]);
    set_write_deadline(c);
    return answer(c, MHD_HTTP_OK, file->type, r);
}

/* ---- routes ---- */

static const struct {
    const char *path, *method; /* a path that ends in a slash is a prefix */
    enum MHD_Result (*answer)(struct call *);
} routes[] = {{"/v1/completions", "POST", ask_completion}, {"/v1/chat/completions", "POST", ask_chat},
              {"/v1/models", "GET", answer_models},        {"/v1/models/", "GET", answer_model},
              {"/tokenize", "POST", ask_tokens},           {"/detokenize", "POST", ask_detokenized},
              {"/health", "GET", answer_health},           {"/metrics", "GET", answer_metrics},
              {"/v1/responses", "POST", refuse_responses}, {"/v1/embeddings", "POST", ask_embeddings}};

/* A browser's preflight request of a page of another origin. */
static enum MHD_Result answer_options(struct call *c, const char *method)
{
    const char *methods = methods_with(c, method);
    const char *wanted = header(c, MHD_HTTP_HEADER_ACCESS_CONTROL_REQUEST_HEADERS);
    struct MHD_Response *r = MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
    if (!r)
        return MHD_NO;
    (void)MHD_add_response_header(r, MHD_HTTP_HEADER_ALLOW, methods);
    if (origin_allowed(c->service, header(c, MHD_HTTP_HEADER_ORIGIN))) {
        (void)MHD_add_response_header(r, MHD_HTTP_HEADER_ACCESS_CONTROL_ALLOW_METHODS, methods);
        (void)MHD_add_response_header(r, MHD_HTTP_HEADER_ACCESS_CONTROL_MAX_AGE, "600");
        if (wanted)
            (void)MHD_add_response_header(r, MHD_HTTP_HEADER_ACCESS_CONTROL_ALLOW_HEADERS, wanted);
    }
    return answer(c, MHD_HTTP_NO_CONTENT, NULL, r);
}

static bool leads_to(const char *route, const char *path)
{
    size_t n = strlen(route);
    return route[n - 1] == '/' ? strncmp(route, path, n) == 0 && path[n] : strcmp(route, path) == 0;
}

static enum MHD_Result route(struct call *c, const char *path, const char *method)
{
    const char *fault = origin_fault(c->arena, c->service, header(c, MHD_HTTP_HEADER_HOST), header(c, MHD_HTTP_HEADER_ORIGIN));
    const struct page_file *file = page_named(path);
    if (fault)
        return refuse(c, MHD_HTTP_FORBIDDEN, fault);
    if (file)
        return answer_page(c, file, method);
    if (c->denied && strcmp(path, "/health") != 0 && strcmp(method, "OPTIONS") != 0) {
        c->code = "invalid_api_key";
        return refuse(c, MHD_HTTP_UNAUTHORIZED, "a key is needed, and this is none: send 'Authorization: Bearer KEY'");
    }
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++) {
        const char *own = routes[i].method;
        if (!leads_to(routes[i].path, path))
            continue;
        c->rest = path + strlen(routes[i].path);
        if (strcmp(method, own) == 0 || (strcmp(method, "HEAD") == 0 && strcmp(own, "GET") == 0))
            return routes[i].answer(c);
        return strcmp(method, "OPTIONS") == 0 ? answer_options(c, own) : refuse_method(c, own);
    }
    return refuse(c, MHD_HTTP_NOT_FOUND,
                  "there is a page at /, and /v1/chat/completions, /v1/completions, /v1/embeddings, /v1/models, /tokenize, /detokenize, "
                  "/health and /metrics");
}

/* ---- callbacks of libmicrohttpd ---- */

/* A body that is too long is read and dropped for a while; then the connection is closed, because libmicrohttpd cannot answer before its
 * end. */
static enum MHD_Result take_body(struct call *c, const char *data, size_t n)
{
    if (!c->denied && !c->too_long && (size_t)c->body.to.n + n <= SERVE_BODY) {
        text_put(&c->body, data, n);
        return MHD_YES;
    }
    c->too_long = !c->denied;
    c->dropped += n;
    if (c->dropped <= SERVE_READ)
        return MHD_YES;
    connection_refuse(c->from, (struct refusal){MHD_HTTP_CONTENT_TOO_LARGE, head_body_too_long});
    return MHD_NO;
}

static struct call *new_call(struct service *s, struct MHD_Connection *connection, const char *version)
{
    struct call *c = call_new(s, connection);
    c->from = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
    c->interim = strcmp(version, MHD_HTTP_VERSION_1_1) == 0;
    c->denied = s->keys && !keys_admit(s->keys, header(c, MHD_HTTP_HEADER_AUTHORIZATION));
    return c;
}

/* The request is complete. libmicrohttpd then calls again, because there is no answer yet, and has stopped reading: a connection suspended
 * while it reads is closed when it is resumed, if its client has shut down its sending side by then. */
static void note_whole(struct call *c, const char *method)
{
    pthread_mutex_lock(&c->service->lock);
    c->service->counts.requests += strcmp(method, "POST") == 0;
    connection_set_deadline(c->from, 0);
    pthread_mutex_unlock(&c->service->lock);
    c->whole = true;
}

static enum MHD_Result handle(void *service, struct MHD_Connection *connection, const char *path, const char *method, const char *version,
                              const char *data, size_t *bytes, void **own)
{
    struct call *c = *own;
    if (!c) {
        struct refusal why = head_fault(connection, version);
        *own = c = new_call(service, connection, version);
        access_begin(c, method, path);
        return why.status ? refuse(c, why.status, why.message) : MHD_YES; /* the connection is closed: it is too early for a reply */
    }
    if (*bytes) {
        enum MHD_Result taken = take_body(c, data, *bytes);
        *bytes = 0;
        return taken;
    }
    if (c->too_long)
        return refuse(c, MHD_HTTP_CONTENT_TOO_LARGE, head_body_too_long);
    if (c->asked)
        return answer_texts(c);
    if (!c->whole) {
        note_whole(c, method);
        return MHD_YES;
    }
    return route(c, path, method);
}

static void leave(void *service, struct MHD_Connection *connection, void **own, enum MHD_RequestTerminationCode how)
{
    struct service *s = service;
    struct call *c = *own;
    (void)connection, (void)how;
    if (!c)
        return;
    pthread_mutex_lock(&s->lock);
    access_tell(c);
    connection_set_deadline(c->from, s->read_seconds);
    pthread_mutex_unlock(&s->lock);
    call_leave(c);
    *own = NULL;
}

/* ---- start ---- */

struct MHD_Daemon *http_start(struct service *s, int listening)
{
    unsigned flags = MHD_USE_AUTO | MHD_USE_INTERNAL_POLLING_THREAD | MHD_ALLOW_SUSPEND_RESUME;
    struct MHD_Daemon *d = MHD_start_daemon(flags, 0, NULL, NULL, handle, s, MHD_OPTION_LISTEN_SOCKET, listening,
                                            MHD_OPTION_NOTIFY_COMPLETED, leave, s, MHD_OPTION_NOTIFY_CONNECTION, connections_notify, s,
                                            MHD_OPTION_CONNECTION_LIMIT,
                                            2 * (unsigned)SERVE_CONNECTIONS, /* including those that are being closed */
                                            MHD_OPTION_CONNECTION_TIMEOUT, 0u, MHD_OPTION_END);
    if (!d)
        fail("the HTTP server can't start: %s", strerror(errno));
    return d;
}

void http_stop(struct MHD_Daemon *d)
{
    MHD_stop_daemon(d);
}
