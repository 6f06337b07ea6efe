/* back: rank 0 of a supervised job. Its calls come from the supervisor, with one text each or with texts to embed. Tokens are sent back as
 * they are generated; the supervisor converts them to text and decides where a text ends. */
#include "serve/queue/queue.h"

#include <string.h>

static struct {
    struct service *service;
    bool repeats;
} back;

/* ---- receiving ---- */

static _Noreturn void refuse(void)
{
    fail_job("a message of the supervisor can't be read");
}

static struct call *new_call(int64_t number)
{
    struct call *c = call_new(back.service, NULL);
    c->remote = number;
    c->busy = false;
    c->began = clock_seconds();
    return c;
}

static void take_text(struct cursor *in)
{
    const struct service *s = back.service;
    struct relay_text t;
    cursor_read(in, &t, sizeof t);
    struct call *c = new_call(t.number);
    struct choice *o = c->choice = NEW(c->arena, struct choice);
    *o = (struct choice){.call = c, .prompts = t.tokens, .how = t.how, .text.arena = c->arena};
    in->bad = in->bad || t.tokens < 1 || t.tokens > SERVE_BODY || t.how.biases < 0 || t.how.biases > SERVE_BIASES || t.how.made < 0 ||
        t.how.made >= t.tokens || t.grammar < 0 || t.how.adapter < 0 || t.how.adapter > s->adapters;
    if (in->bad)
        refuse();
    const int64_t *token = o->prompt = cursor_copy(in, c->arena, (size_t)t.tokens * sizeof *o->prompt);
    o->how.bias = cursor_copy(in, c->arena, (size_t)t.how.biases * sizeof *o->how.bias);
    o->how.grammar = t.grammar ? cursor_copy(in, c->arena, (size_t)t.grammar) : NULL;
    o->how.repeats = back.repeats;
    c->choices = 1;
    c->most = t.most;
    c->chat = t.chat ? s->chat : NULL;
    for (int64_t i = 0; !in->bad && i < t.tokens; i++)
        in->bad = token[i] < 0 || token[i] >= s->vocabulary;
    pthread_mutex_lock(&back.service->lock);
    bool put = !in->bad && call_put(c);
    pthread_mutex_unlock(&back.service->lock);
    if (!put)
        refuse();
}

static void take_call(struct cursor *in)
{
    struct call *c = new_call(cursor_number(in));
    struct embeddings *m = c->embeddings = NEW(c->arena, struct embeddings);
    m->n = cursor_count(in, sizeof(int64_t));
    m->text = NEWN(c->arena, struct token_ids, m->n);
    for (int64_t i = 0; i < m->n; i++) {
        int64_t n = cursor_count(in, sizeof(int64_t));
        int64_t *id = cursor_copy(in, c->arena, (size_t)n * sizeof *id);
        in->bad = in->bad || n < 1 || n > SERVE_BODY;
        m->text[i].list.at = id;
        m->text[i].list.n = m->text[i].list.cap = in->bad ? 0 : (int)n;
    }
    pthread_mutex_lock(&back.service->lock);
    bool put = !in->bad && m->n && call_put(c);
    pthread_mutex_unlock(&back.service->lock);
    if (!put)
        refuse();
}

static void leave(int64_t number)
{
    struct service *s = back.service;
    pthread_mutex_lock(&s->lock);
    for (struct call *c = s->call; c; c = c->after)
        c->gone = c->gone || c->remote == number;
    pthread_mutex_unlock(&s->lock);
}

static void take(void *unused, const struct message *m)
{
    struct cursor in = {.left = m->data};
    (void)unused;
    if (m->kind == RELAY_TEXT)
        take_text(&in);
    else if (m->kind == RELAY_EMBED)
        take_call(&in);
    else if (m->kind == RELAY_LEAVE)
        leave(cursor_number(&in));
    else
        refuse();
}

/* ---- sending ---- */

static void tell(int kind, const void *head, size_t bytes, const void *rest, size_t more)
{
    struct message_text t = {.arena = arena_new()};
    message_put(&t, head, bytes);
    message_put(&t, rest, more);
    supervised_send(kind, message_bytes(&t));
    arena_free(t.arena);
}

static void tell_counts(void)
{
    const struct service *s = back.service;
    const struct relay_counts n = {s->counts.prompt_runs,  s->counts.steps,          s->counts.drafted, s->counts.kept,
                                   s->counts.step_seconds, s->counts.prompt_seconds, s->stored};
    tell(RELAY_COUNTS, &n, sizeof n, "", 0);
}

static void tell_regularly(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&back.service->lock);
    tell_counts();
    pthread_mutex_unlock(&back.service->lock);
}

/* Tokens of the text so far, including those generated before. */
static bool is_full(const struct choice *o)
{
    const struct service *s = o->call->service;
    int64_t made = o->made.n + (o->how.repeats ? 0 : o->how.made), prompt = o->prompts - o->how.made;
    return made >= o->call->most || (s->longest ? made >= s->longest : prompt + made >= s->context);
}

bool back_add_token(struct choice *o, int64_t token, const struct logprobs *scores, enum form_state form)
{
    struct call *c = o->call;
    const struct service *s = c->service;
    bool end = config_is_end(&s->ends, token) || (c->chat && config_is_end(&c->chat->ends, token));
    VEC_PUSH(c->arena, &o->made, token);
    if (o->how.repeats && o->made.n <= o->how.made)
        return true;
    bool over = end || form != FORM_GOES_ON || is_full(o);
    if (over)
        tell_counts(); /* before the reply, so that its reader finds it counted */
    if (!c->gone) {
        const struct relay_token t = {.number = c->remote,
                                      .token = token,
                                      .stored = o->stored,
                                      .run = o->run,
                                      .form = form,
                                      .over = over,
                                      .scored = o->how.logprobs && !end};
        tell(RELAY_TOKEN, &t, sizeof t, scores, t.scored ? sizeof *scores : 0);
    }
    o->run = 0;
    if (over)
        call_finish(o, "stop");
    return !over;
}

void back_add_prompt_scores(struct choice *o, const struct logprobs *p, int64_t n)
{
    const int64_t head[2] = {o->call->remote, n};
    if (n && !o->call->gone)
        tell(RELAY_SCORES, head, sizeof head, p, (size_t)n * sizeof *p);
}

void back_resume(struct call *c)
{
    const struct embeddings *m = c->embeddings;
    if (!m || c->open || c->gone)
        return;
    tell_counts();
    const int64_t head[2] = {c->remote, m->n * c->service->width};
    tell(RELAY_VECTORS, head, sizeof head, m->vector, (size_t)head[1] * sizeof *m->vector);
}

/* ---- start ---- */

void back_open(struct service *s, bool repeats)
{
    struct message_text t = {.arena = arena_new()};
    back.service = s;
    back.repeats = repeats;
    supervised_listen(take, tell_regularly, NULL);
    relay_put_facts(&t, s);
    supervised_send(MESSAGE_READY, message_bytes(&t));
    arena_free(t.arena);
    tell_counts();
}

void back_close(void)
{
    supervised_listen(NULL, NULL, NULL);
}
