/* call: requests between the HTTP thread and the engine. */
#include "config.h"

#include "serve/admission/admission.h"
#include "serve/queue/queue.h"
#include "serve/reply/reply.h"
#include "serve/request/request.h"

#include <string.h>
#include <time.h>

struct call *call_new(struct service *s, struct MHD_Connection *connection)
{
    struct arena *a = arena_new();
    struct call *c = NEW(a, struct call);
    *c = (struct call){.arena = a, .service = s, .connection = connection, .created = (int64_t)time(NULL), .busy = true};
    c->body.arena = c->events.arena = a;
    pthread_mutex_lock(&s->lock);
    c->number = ++s->calls;
    c->after = s->call;
    if (s->call)
        s->call->before = c;
    s->call = c;
    pthread_mutex_unlock(&s->lock);
    return c;
}

static void free_if_done(struct call *c)
{
    struct service *s = c->service;
    if (c->busy || c->open || c->unread)
        return;
    if (c->before)
        c->before->after = c->after;
    else
        s->call = c->after;
    if (c->after)
        c->after->before = c->before;
    json_decref(c->tools);
    arena_free(c->arena);
}

void call_leave(struct call *c)
{
    struct service *s = c->service;
    pthread_mutex_lock(&s->lock);
    if ((c->open || c->unread) && !c->gone)
        s->counts.vanished++;
    c->suspended = false;
    c->gone = true;
    call_drop_waiting(s, false);
    c->busy = false;
    free_if_done(c);
    pthread_mutex_unlock(&s->lock);
}

void call_read(struct call *c)
{
    c->unread = false;
    free_if_done(c);
}

void call_resume(struct call *c)
{
    if (c->remote)
        back_resume(c);
    else if (!c->connection)
        pthread_cond_signal(&c->service->wake_terminal);
    if (!c->suspended)
        return;
    c->suspended = false;
    MHD_resume_connection(c->connection);
}

static void wait_in_line(struct service *s, struct choice *o)
{
    if (s->last)
        s->last->next = o;
    else
        s->first = o;
    s->last = o;
    s->waiting++;
}

bool call_put(struct call *c)
{
    struct service *s = c->service;
    if (c->embeddings)
        return embeddings_put(c);
    if (s->waiting + c->choices > SERVE_WAITING)
        return false;
    c->open = c->choices;
    for (int64_t i = 0; i < c->choices; i++) {
        struct choice *o = &c->choice[i];
        if (c->most == 0 && !o->how.prompt_logprobs) {
            call_finish(o, "length");
            continue;
        }
        o->arrived = clock_seconds();
        wait_in_line(s, o);
        s->counts.prompt_tokens += o->prompts;
    }
    pthread_cond_signal(&s->wake);
    return true;
}

struct choice *call_next_waiting(struct service *s)
{
    struct choice *o = s->first;
    if (!o)
        return NULL;
    s->first = o->next;
    if (!s->first)
        s->last = NULL;
    s->waiting--;
    o->started = true;
    return o;
}

void call_put_back(struct service *s, int64_t n, struct choice **all)
{
    for (int64_t i = n - 1; i >= 0; i--) {
        all[i]->next = s->first;
        s->first = all[i];
        if (!s->last)
            s->last = all[i];
        s->waiting++;
    }
}

/* ---- text ---- */

/* The generated part: stop sequences are searched there. */
static struct text made_text(const struct choice *o)
{
    struct text t = text_built(&o->text);
    return o->echoed ? (struct text){t.at + o->echoed, t.n - o->echoed} : t;
}

/* The start of the first stop sequence at or after `from`; SIZE_MAX: none. */
static size_t find_stop(const struct call *c, struct text t, size_t from)
{
    size_t first = SIZE_MAX;
    for (int i = 0; i < c->stops; i++) {
        size_t back = c->stop[i].n - 1 < from ? from - (c->stop[i].n - 1) : 0;
        const char *at = t.n > back ? memmem(t.at + back, t.n - back, c->stop[i].at, c->stop[i].n) : NULL;
        if (at && (size_t)(at - t.at) < first)
            first = (size_t)(at - t.at);
    }
    return first;
}

/* How many of the last bytes may begin a stop sequence. */
static size_t held_back(const struct call *c, struct text t)
{
    size_t most = 0;
    for (int i = 0; i < c->stops; i++)
        for (size_t n = c->stop[i].n - 1 < t.n ? c->stop[i].n - 1 : t.n; n > most; n--)
            if (memcmp(t.at + t.n - n, c->stop[i].at, n) == 0)
                most = n;
    return most;
}

/* Tags of thoughts and marks of calls may be special tokens, which have no text. */
static void put_tag(struct choice *o, int64_t n)
{
    const struct chat *chat = o->call->chat;
    if (!chat || n == 0 || n != o->made.n)
        return;
    const struct text tag = chat_tag_of(&chat->tags, o->made.at[n - 1]), mark = chat_mark_of(&chat->calls, o->made.at[n - 1]);
    text_put(&o->text, tag.at, tag.n);
    if (!tag.n && (o->calls.tools || o->how.grammar))
        text_put(&o->text, mark.at, mark.n);
}

/* Appends the text of new tokens; true: a stop sequence ended it. */
static bool add_text(struct choice *o, int64_t n, bool last)
{
    struct service *s = o->call->service;
    struct arena *tmp = arena_new();
    struct text more = tokenizer_stream(s->tokenizer, tmp, &o->stream, o->decoded.at, o->context + (int)n, last);
    size_t before = (size_t)o->text.to.n - o->echoed;
    text_put(&o->text, more.at, more.n);
    put_tag(o, n);
    arena_free(tmp);
    size_t stop = find_stop(o->call, made_text(o), before);
    if (stop == SIZE_MAX)
        return false;
    o->text.to.n = (int)(o->echoed + stop);
    return true;
}

/* Tokens with log-probabilities whose text begins before byte n, or all. */
static bool take_shown(struct choice *o, size_t n, bool all)
{
    o->shown_from = o->shown_to;
    while (o->shown_to < o->shown.n && (all || o->shown.at[o->shown_to].at < n))
        o->shown_to++;
    return o->shown_to > o->shown_from;
}

static void send_text(struct choice *o, const char *finish)
{
    struct text all = text_built(&o->text);
    size_t n = finish ? all.n : all.n - held_back(o->call, made_text(o));
    if (!o->call->stream)
        return;
    if (!take_shown(o, n, finish) && n <= o->sent && !finish)
        return;
    o->call->endpoint->put_event(o->call, o, (struct text){all.at + o->sent, n > o->sent ? n - o->sent : 0}, finish);
    o->sent = n;
}

/* ---- tokens with log-probabilities ---- */

void call_add_prompt_scores(struct choice *o, const struct logprobs *p, int64_t n)
{
    if (o->call->remote) {
        back_add_prompt_scores(o, p, n);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        shown_score(o, &o->shown.at[++o->scored], &p[i]);
}

/* After a stop sequence. */
static void drop_shown(struct choice *o)
{
    while (o->shown.n > o->shown_to && o->shown.at[o->shown.n - 1].at >= (size_t)o->text.to.n)
        o->shown.n--;
}

/* Its grammar needs bytes that no token of the model has, or too much time. */
static void refuse_form(struct choice *o, enum form_state form)
{
    struct call *c = o->call;
    c->refused = form == FORM_STUCK ? "the text can't go on: the model has no token that its grammar allows"
                                    : "the text can't go on: its grammar has too many ways to read it, and takes too long";
    c->status = MHD_HTTP_BAD_REQUEST;
    if (c->stream && !c->gone)
        c->endpoint->put_error(c, c->refused);
    call_finish(o, "error");
}

void call_note_run(struct choice *o, int64_t tokens)
{
    double now = clock_seconds();
    o->each = (now - o->told) / (double)tokens;
    o->run = tokens;
    o->told = now;
}

bool call_add_token(struct choice *o, int64_t token, const struct logprobs *scores, enum form_state form)
{
    struct call *c = o->call;
    struct service *s = c->service;
    if (c->remote)
        return back_add_token(o, token, scores, form);
    bool end = config_is_end(&s->ends, token) || (c->chat && config_is_end(&c->chat->ends, token));
    if (c->most == 0) {
        call_finish(o, "length");
        return false;
    }
    if (form == FORM_STUCK || form == FORM_SLOW) {
        refuse_form(o, form);
        return false;
    }
    VEC_PUSH(c->arena, &o->made, token);
    VEC_PUSH(c->arena, &o->decoded, token);
    s->counts.made_tokens++;
    if (o->made.n == 1)
        metrics_first_token(&s->counts, o->told - o->arrived);
    else
        metrics_next_token(&s->counts, o->each);
    if (c->gone)
        return true;
    bool full = o->made.n >= c->most || (s->longest ? o->made.n >= s->longest : o->prompts + o->made.n >= s->context);
    if (o->how.logprobs && !end) {
        shown_add(o, s->tokenizer, token, (size_t)o->text.to.n);
        shown_score(o, &o->shown.at[o->shown.n - 1], scores);
    }
    bool stopped = add_text(o, end ? o->made.n - 1 : o->made.n, end || full || form == FORM_WHOLE);
    bool whole = form == FORM_WHOLE || chat_is_done(o);
    if (stopped)
        drop_shown(o);
    if (stopped || end || full || whole) {
        call_finish(o, stopped || end || whole ? "stop" : "length");
        return false;
    }
    send_text(o, NULL);
    if (c->events.to.n > (int)c->read)
        call_resume(c);
    return true;
}

void call_embedded(struct call *c, int64_t n)
{
    c->open -= n;
    c->service->counts.texts += n;
    if (c->open == 0)
        call_resume(c);
    free_if_done(c);
}

void call_finish(struct choice *o, const char *finish)
{
    struct call *c = o->call;
    o->finish = finish;
    if (!c->gone && !c->remote)
        send_text(o, finish);
    if (--c->open == 0) {
        if (c->stream && !c->gone)
            c->endpoint->put_end(c);
        if (c->stream && c->busy && c->from)
            connection_set_deadline(c->from, SERVE_WRITE_SECONDS);
        c->service->counts.texts += c->choices;
    }
    if (c->stream || c->open == 0)
        call_resume(c);
    free_if_done(c);
}

/* ---- disconnected clients ---- */

static void find_gone(struct service *s)
{
    for (struct call *c = s->call; c; c = c->after)
        if (c->suspended && !c->gone && connection_is_gone(c)) {
            c->gone = true;
            s->counts.vanished++;
            call_resume(c);
        }
}

/* A stream that has begun, as where a job is lost that made it, says that it is not whole. */
static void drop(struct choice *o, const char *why)
{
    struct call *c = o->call;
    const bool begun = o->made.n > 0;
    if (!c->gone) {
        c->status = MHD_HTTP_SERVICE_UNAVAILABLE;
        c->refused = why;
    }
    if (!c->gone && c->stream && begun)
        c->endpoint->put_error(c, why);
    call_finish(o, begun ? "error" : "length");
}

void call_drop_waiting(struct service *s, bool all)
{
    struct choice *list = s->first;
    double now = clock_seconds();
    find_gone(s);
    embeddings_drop(s, all);
    s->first = s->last = NULL;
    s->waiting = 0;
    for (struct choice *o = list, *next; o; o = next) {
        next = o->next;
        o->next = NULL;
        bool late = !o->made.n && now - o->arrived > SERVE_WAIT_SECONDS;
        if (o->call->gone || all || late) {
            drop(o, all ? "the server ends" : "no row was free for too long");
            continue;
        }
        wait_in_line(s, o);
    }
}
