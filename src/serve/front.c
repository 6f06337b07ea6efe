/* front: the supervisor's side of a server. It has the requests and the text generated so far; a job generates tokens. Texts of a lost job
 * continue in the next one. */
#include "serve/http/http.h"
#include "serve/queue/queue.h"

#include <string.h>

/* A text sent to the job. */
struct sent_text {
    int64_t number;
    struct choice *choice; /* NULL: none */
};
struct front {
    struct arena *arena;
    struct service *service;
    struct supervisor *supervisor;
    struct doors doors;
    /* Under the service's lock: */
    bool ready;                         /* the job accepts texts */
    int64_t numbers;                    /* number of texts and calls sent */
    struct sent_text sent[SERVE_SLOTS]; /* in the order of their numbers, then none */
    struct call *embeds;                /* the call that the job has; NULL: none */
    int64_t embeds_number;
    struct counts before; /* counts of lost jobs */
    struct prefix_counts stored_before;
    double checked;  /* when disconnected clients were last looked for */
    const char *bad; /* why the job is of no use; NULL: it is */
};
static const double check_each = 0.02;

/* ---- texts sent to the job ---- */

static int64_t sent_texts(const struct front *f)
{
    int64_t n = 0;
    while (n < SERVE_SLOTS && f->sent[n].choice)
        n++;
    return n;
}

static struct sent_text *find(struct front *f, int64_t number)
{
    for (struct sent_text *t = f->sent; t < f->sent + SERVE_SLOTS && t->choice; t++)
        if (t->number == number)
            return t;
    return NULL;
}

static void forget(struct front *f, struct sent_text *t)
{
    struct sent_text *end = f->sent + SERVE_SLOTS;
    memmove(t, t + 1, (size_t)(end - t - 1) * sizeof *t);
    end[-1] = (struct sent_text){0};
}

static void tell(struct front *f, int kind, const struct message_text *t)
{
    supervisor_send(f->supervisor, kind, message_bytes(t));
    arena_free(t->arena);
}

static void send_leave(struct front *f, int64_t number)
{
    struct message_text t = {.arena = arena_new()};
    message_put(&t, &number, sizeof number);
    tell(f, RELAY_LEAVE, &t);
}

/* Includes what was generated so far. */
static void send_text(struct front *f, struct choice *o)
{
    struct message_text t = {.arena = arena_new()};
    const struct call *c = o->call;
    const struct sent_text at = {++f->numbers, o};
    struct relay_text head = {.number = at.number, .most = c->most, .tokens = o->prompts + o->made.n, .chat = c->chat, .how = o->how};
    head.grammar = o->how.grammar ? (int64_t)grammar_size(o->how.grammar) : 0;
    head.how.bias = NULL;
    head.how.grammar = NULL;
    head.how.made = o->made.n;
    if (o->made.n)
        head.how.prompt_logprobs = false;
    o->scored = o->made.n ? o->scored : 0;
    message_put(&t, &head, sizeof head);
    message_put(&t, o->prompt, (size_t)o->prompts * sizeof *o->prompt);
    message_put(&t, o->made.at, (size_t)o->made.n * sizeof *o->made.at);
    message_put(&t, o->how.bias, (size_t)o->how.biases * sizeof *o->how.bias);
    message_put(&t, o->how.grammar, (size_t)head.grammar);
    f->sent[sent_texts(f)] = at;
    tell(f, RELAY_TEXT, &t);
}

static void send_call(struct front *f, struct call *c)
{
    struct message_text t = {.arena = arena_new()};
    const struct embeddings *m = c->embeddings;
    f->embeds = c;
    f->embeds_number = ++f->numbers;
    message_put(&t, &f->embeds_number, sizeof f->embeds_number);
    message_put(&t, &m->n, sizeof m->n);
    for (int64_t i = 0; i < m->n; i++) {
        int64_t n = m->text[i].list.n;
        message_put(&t, &n, sizeof n);
        message_put(&t, m->text[i].list.at, (size_t)n * sizeof *m->text[i].list.at);
    }
    tell(f, RELAY_EMBED, &t);
}

/* ---- messages from the job, in the receiving thread ---- */

static void take_facts(struct front *f, struct cursor *in)
{
    struct service *s = f->service;
    struct service scratch = {0};
    bool first = !s->known;
    bool read = relay_take_facts(in, f->arena, first ? s : &scratch);
    if (!read)
        f->bad = "what rank 0 says of its model can't be read";
    else if (!first && (scratch.vocabulary != s->vocabulary || scratch.context != s->context || scratch.width != s->width))
        f->bad = "the job has another model than before";
    if (f->bad)
        return;
    if (!first) {
        s->slots = scratch.slots;
        s->ranks = scratch.ranks;
    }
    s->known = f->ready = true;
    pthread_cond_broadcast(&s->wake_reader);
    pthread_cond_signal(&s->wake);
    if (first)
        doors_tell(f->arena, s, &f->doors);
    else
        diag_announce("serving again");
}

static void take_token(struct front *f, struct cursor *in)
{
    struct relay_token t;
    struct logprobs scores;
    cursor_read(in, &t, sizeof t);
    if (t.scored)
        cursor_read(in, &scores, sizeof scores);
    struct sent_text *at = find(f, t.number);
    if (!at || in->bad)
        return;
    struct choice *o = at->choice;
    o->stored = o->made.n ? o->stored : t.stored;
    if (t.run > 0)
        call_note_run(o, t.run);
    bool goes_on = call_add_token(o, t.token, t.scored ? &scores : NULL, t.form);
    if (goes_on && t.over)
        call_finish(o, "length");
    if (!goes_on && !t.over)
        send_leave(f, t.number);
    if (!goes_on || t.over)
        forget(f, find(f, t.number));
    pthread_cond_signal(&f->service->wake);
}

static void take_scores(struct front *f, struct cursor *in)
{
    const struct sent_text *at = find(f, cursor_number(in));
    struct arena *tmp = arena_new();
    int64_t n = cursor_count(in, sizeof(struct logprobs));
    const struct logprobs *p = cursor_copy(in, tmp, (size_t)n * sizeof *p);
    if (at && !in->bad && at->choice->scored + n < at->choice->prompts)
        call_add_prompt_scores(at->choice, p, n);
    arena_free(tmp);
}

static void take_vectors(struct front *f, struct cursor *in)
{
    struct call *c = f->embeds;
    const struct service *s = f->service;
    int64_t number = cursor_number(in), n = cursor_count(in, sizeof(float));
    if (!c || number != f->embeds_number || in->bad || n != c->embeddings->n * s->width)
        return;
    struct arena *tmp = arena_new();
    const float *v = cursor_copy(in, tmp, (size_t)n * sizeof *v);
    f->embeds = NULL;
    for (int64_t from = 0, all = c->embeddings->n; from < all;) {
        struct embed_batch b = {.call = c};
        for (int64_t i = from; b.n < EMBED_BATCH && i < all; i++)
            b.text[b.n++] = i;
        embeddings_done(&b, v + from * s->width);
        from += b.n;
    }
    arena_free(tmp);
    pthread_cond_signal(&f->service->wake);
}

static void take_counts(struct front *f, struct cursor *in)
{
    struct counts *to = &f->service->counts;
    struct prefix_counts *stored = &f->service->stored;
    const struct counts *before = &f->before;
    struct relay_counts n;
    cursor_read(in, &n, sizeof n);
    to->prompt_runs = before->prompt_runs + n.prompt_runs;
    to->steps = before->steps + n.steps;
    to->drafted = before->drafted + n.drafted;
    to->kept = before->kept + n.kept;
    to->step_seconds = before->step_seconds + n.step_seconds;
    to->prompt_seconds = before->prompt_seconds + n.prompt_seconds;
    *stored = n.stored;
    stored->hits += f->stored_before.hits;
    stored->tokens += f->stored_before.tokens;
    stored->dropped += f->stored_before.dropped;
}

static const char *take(void *front, const struct message *m)
{
    static void (*const kind[])(struct front *, struct cursor *) = {[MESSAGE_READY] = take_facts,
                                                                    [RELAY_TOKEN] = take_token,
                                                                    [RELAY_SCORES] = take_scores,
                                                                    [RELAY_VECTORS] = take_vectors,
                                                                    [RELAY_COUNTS] = take_counts};
    struct front *f = front;
    struct cursor in = {.left = m->data};
    if (m->kind >= (int)(sizeof kind / sizeof *kind) || !kind[m->kind])
        return NULL;
    pthread_mutex_lock(&f->service->lock);
    f->bad = NULL;
    kind[m->kind](f, &in);
    const char *bad = f->bad ? f->bad : in.bad ? "a message of rank 0 can't be read" : NULL;
    pthread_mutex_unlock(&f->service->lock);
    return bad;
}

/* A server prints nothing. */
static void drop(void *front, struct message_data other)
{
    (void)front, (void)other;
}

static void lose(void *front)
{
    struct front *f = front;
    struct service *s = f->service;
    struct choice *all[SERVE_SLOTS];
    pthread_mutex_lock(&s->lock);
    int64_t n = sent_texts(f);
    for (int64_t i = 0; i < n; i++)
        all[i] = f->sent[i].choice;
    memset(f->sent, 0, sizeof f->sent);
    call_put_back(s, n, all);
    if (f->embeds)
        embeddings_put_back(f->embeds);
    f->embeds = NULL;
    f->before = s->counts;
    f->stored_before = s->stored;
    f->ready = false;
    s->active = 0;
    pthread_mutex_unlock(&s->lock);
}

/* ---- messages to the job, in the supervisor's thread ---- */

/* For disconnected clients; all: for all clients. */
static void leave_sent(struct front *f, bool all)
{
    for (int64_t i = sent_texts(f) - 1; i >= 0; i--) {
        struct sent_text t = f->sent[i];
        if (!all && !t.choice->call->gone)
            continue;
        forget(f, &f->sent[i]);
        call_finish(t.choice, all ? "length" : "stop");
        send_leave(f, t.number);
    }
    if (!f->embeds || !(all || f->embeds->gone))
        return;
    struct call *c = f->embeds;
    f->embeds = NULL;
    if (all && !c->gone) {
        c->status = MHD_HTTP_SERVICE_UNAVAILABLE;
        c->refused = "the server ends";
    }
    call_embedded(c, c->embeddings->n);
    send_leave(f, f->embeds_number);
}

static void look_after_clients(struct front *f)
{
    struct service *s = f->service;
    if (signal_asked() && !s->ending) {
        s->end = clock_seconds() + SERVE_END_SECONDS;
        s->ending = true;
    }
    call_drop_waiting(s, s->ending);
    leave_sent(f, s->ending && clock_seconds() > s->end);
}

static void wait_for_work(struct front *f)
{
    struct service *s = f->service;
    bool work = f->ready && ((s->first && sent_texts(f) < s->slots) || (s->first_to_embed && !f->embeds));
    struct timespec until = clock_after(s->call ? (int)(1e3 * check_each) : 100);
    if (!work && !s->ending && !signal_asked())
        (void)pthread_cond_timedwait(&s->wake, &s->lock, &until);
}

static bool tend(void *front)
{
    struct front *f = front;
    struct service *s = f->service;
    struct choice *o;
    pthread_mutex_lock(&s->lock);
    wait_for_work(f);
    if (clock_seconds() - f->checked > check_each || signal_asked()) {
        f->checked = clock_seconds();
        look_after_clients(f);
    }
    while (f->ready && sent_texts(f) < s->slots && (o = call_next_waiting(s)))
        send_text(f, o);
    struct call *c = f->ready && !f->embeds ? embeddings_take(s) : NULL;
    if (c)
        send_call(f, c);
    s->active = sent_texts(f);
    bool over = s->ending && !s->active && !f->embeds;
    pthread_mutex_unlock(&s->lock);
    return over;
}

int front_run(struct arena *a, struct service *s, const struct serve_options *o, struct supervisor *supervisor)
{
    struct front f = {.arena = a, .service = s, .supervisor = supervisor};
    s->supervisor = supervisor;
    supervisor->take = take;
    supervisor->other = drop;
    supervisor->lost = lose;
    supervisor->tend = tend;
    supervisor->own = &f;
    supervisor->end_within = SERVE_END_SECONDS;
    supervisor->endless = true;
    f.doors = doors_open(s, o);
    signal_soften();
    int status = supervisor_run(supervisor);
    pthread_mutex_lock(&s->lock);
    s->ending = true;
    call_drop_waiting(s, true);
    pthread_mutex_unlock(&s->lock);
    doors_close(s, &f.doors);
    chat_free(s->chat);
    return status;
}
