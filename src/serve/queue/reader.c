/* reader: a thread that reads the bodies of requests, one after another. */
#include "serve/queue/queue.h"
#include "serve/request/request.h"

#include <string.h>

bool reader_put(struct call *c)
{
    struct service *s = c->service;
    if (s->unread + s->waiting >= SERVE_WAITING)
        return false;
    if (s->last_unread)
        s->last_unread->next_unread = c;
    else
        s->first_unread = c;
    s->last_unread = c;
    s->unread++;
    c->unread = true;
    pthread_cond_signal(&s->wake_reader);
    return true;
}

static struct call *next_unread(struct service *s)
{
    struct call *c = s->first_unread;
    s->first_unread = c->next_unread;
    if (!s->first_unread)
        s->last_unread = NULL;
    s->unread--;
    return c;
}

/* Its texts wait for rows, or HTTP answers with the error. */
static void hand_on(struct call *c, const char *wrong)
{
    struct service *s = c->service;
    if (wrong) {
        c->refused = wrong;
        c->status = c->status ? c->status : MHD_HTTP_BAD_REQUEST;
    } else if (s->ending) {
        c->refused = "the server ends";
        c->status = MHD_HTTP_SERVICE_UNAVAILABLE;
    } else if (!c->gone && !call_put(c)) {
        c->refused = "too many texts wait already";
        c->status = MHD_HTTP_TOO_MANY_REQUESTS;
    }
    if (c->refused || c->open == 0)
        call_resume(c);
    call_read(c);
}

static void *read_requests(void *service)
{
    struct service *s = service;
    pthread_mutex_lock(&s->lock);
    while (!s->over || s->first_unread) {
        if (!s->first_unread || (!s->known && !s->over)) {
            pthread_cond_wait(&s->wake_reader, &s->lock);
            continue;
        }
        struct call *c = next_unread(s);
        const char *wrong = NULL;
        if (!c->gone && !s->ending) {
            pthread_mutex_unlock(&s->lock);
            wrong = request_body(c, c->endpoint->read);
            pthread_mutex_lock(&s->lock);
        }
        hand_on(c, wrong);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

void reader_start(struct service *s)
{
    if (pthread_cond_init(&s->wake_reader, NULL) || pthread_create(&s->reader, NULL, read_requests, s))
        fail("can't create a thread that reads requests");
}

void reader_stop(struct service *s)
{
    pthread_mutex_lock(&s->lock);
    s->over = true;
    pthread_cond_signal(&s->wake_reader);
    pthread_mutex_unlock(&s->lock);
    (void)pthread_join(s->reader, NULL);
}
