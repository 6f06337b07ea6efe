/* doors: the client's side of a server: accepts, reads and answers requests. */
#include "serve/admission/admission.h"
#include "serve/http/http.h"
#include "serve/queue/queue.h"

#include <string.h>
#include <time.h>

enum { USUAL_PORT = 8080 };

struct doors doors_open(struct service *s, const struct serve_options *o)
{
    s->host = o->host ? o->host : "127.0.0.1";
    s->cors = o->cors;
    s->per_address = o->per_address;
    s->read_seconds = o->request_seconds ? (double)o->request_seconds : SERVE_READ_SECONDS;
    struct listening l = listen_open(s->host, o->port < 0 ? USUAL_PORT : (int)o->port);
    s->local = l.local;
    reader_start(s);
    connections_start(s);
    return (struct doors){.daemon = http_start(s, l.fd), .port = l.port};
}

void doors_tell(struct arena *a, const struct service *s, const struct doors *d)
{
    bool colons = strchr(s->host, ':') != NULL;
    const char *what = s->no_texts ? "embeddings" : arena_printf(a, "%lld row%s", (long long)s->slots, s->slots == 1 ? "" : "s");
    if (s->no_chat && !s->no_texts)
        diag_tell("no chats: %s", s->no_chat);
    if (s->embeds)
        diag_tell("embeddings: %s", s->embeds);
    else if (s->no_embeddings)
        explain("no embeddings: %s", s->no_embeddings);
    if (!s->no_texts && s->alone)
        diag_tell("one text at a time: %s", s->alone);
    diag_tell("serving %s at http://%s%s%s:%d/v1, %s of at most %lld tokens", s->model, colons ? "[" : "", s->host, colons ? "]" : "",
              d->port, what, (long long)s->context);
}

/* Replies in progress get two seconds. */
static void let_replies_end(struct service *s)
{
    for (int i = 0; i < 200; i++) {
        pthread_mutex_lock(&s->lock);
        bool done = !s->call;
        pthread_mutex_unlock(&s->lock);
        if (done)
            return;
        (void)nanosleep(&(struct timespec){0, 10000000}, NULL);
    }
}

static void tell_stored(const struct prefix_counts *n)
{
    explain("prefix cache: %lld texts began behind %lld stored tokens; %.1f MiB in %lld blocks, of at most %lld; %lld blocks gave way",
            (long long)n->hits, (long long)n->tokens, (double)n->bytes / 1048576, (long long)n->blocks, (long long)n->most,
            (long long)n->dropped);
}

void doors_close(struct service *s, struct doors *d)
{
    (void)MHD_quiesce_daemon(d->daemon);
    reader_stop(s);
    let_replies_end(s);
    http_stop(d->daemon);
    connections_stop(s);
    if (s->stored.most)
        tell_stored(&s->stored);
    if (s->known)
        diag_tell("ended after %lld text%s", (long long)s->counts.texts, s->counts.texts == 1 ? "" : "s");
}
