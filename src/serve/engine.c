/* engine: decodes the texts of all calls, a row each. Rank 0 gives orders, one before each run; other ranks do the same. */
#include "serve/serve.h"

#include <string.h>
#include <time.h>

enum order_kind { ORDER_IDLE, ORDER_PROMPT, ORDER_STEP, ORDER_EMBED, ORDER_END };
struct order {
    enum order_kind kind;
    int64_t leaves, leave[SERVE_SLOTS]; /* rows, the last one first */
    bool drops, joins;                  /* the row that was to join does not; another is to join */
    int64_t prompts;                    /* tokens of the row that joins */
    int64_t grammar;                    /* bytes of its grammar */
    struct row_sampling how;            /* without biases and grammar, which follow */
    int64_t embeds, tokens;             /* texts that get vectors, and their tokens, which follow */
};

struct engine {
    struct comm *comm;
    struct rows *rows;
    struct embedder *embedder;          /* NULL: no embeddings */
    struct service *service;            /* NULL: not rank 0 */
    struct choice *choice[SERVE_SLOTS]; /* by row; NULL: its text has ended */
    struct choice *joins;               /* whose prompt runs; NULL: none */
    bool stepped;                       /* since its last part */
    struct embed_batch batch;           /* of an order to embed */
    bool embedded;                      /* by the last order */
    double checked;                     /* when clients were looked after */
    double idle;                        /* since when there is nothing to do; 0: there is */
};

static const double check_each = 0.02, doze_after = 10; /* seconds */

static void doze(double seconds)
{
    (void)nanosleep(&(struct timespec){0, (long)(1e9 * seconds)}, NULL);
}

/* Processes that wait in a collective keep a core busy. So they are called up now and then, and sleep between. */
static double nap(struct engine *e)
{
    double now = clock_seconds();
    if (e->idle <= 0)
        e->idle = now;
    return now - e->idle > doze_after ? 0.02 : 0.001;
}

static void wait_for_work(struct engine *e)
{
    struct service *s = e->service;
    bool naps = e->comm->size > 1 && e->comm->polls;
    while (!naps && !s->first && !s->first_to_embed && !s->ending && !signal_asked()) {
        struct timespec until = clock_after(100);
        (void)pthread_cond_timedwait(&s->wake, &s->lock, &until);
    }
}

/* ---- orders of rank 0 ---- */

static void let_leave(struct engine *e, struct order *o)
{
    int64_t kept = 0, n = rows_count(e->rows);
    for (int64_t b = n - 1; b >= 0; b--)
        if (!e->choice[b] || e->choice[b]->call->gone) {
            if (e->choice[b])
                call_finish(e->choice[b], "stop");
            o->leave[o->leaves++] = b;
            e->choice[b] = NULL;
        }
    for (int64_t b = 0; b < n; b++)
        if (e->choice[b])
            e->choice[kept++] = e->choice[b];
    e->service->active = kept;
}

/* The one that joins may have left, too. */
static void let_drop(struct engine *e, struct order *o)
{
    struct service *s = e->service;
    bool late = s->ending && clock_seconds() > s->end;
    if (!e->joins)
        return;
    if (!e->joins->call->gone && !late) {
        s->active++;
        return;
    }
    call_finish(e->joins, "length");
    o->drops = true;
    e->joins = NULL;
}

static void look_after_clients(struct engine *e)
{
    double now = clock_seconds();
    if (now - e->checked < check_each)
        return;
    e->checked = now;
    call_drop_waiting(e->service, e->service->ending);
}

/* Texts that take too long are cut short. */
static void end_texts(struct engine *e)
{
    if (!e->service->ending)
        e->service->end = clock_seconds() + SERVE_END_SECONDS;
    e->service->ending = true;
    call_drop_waiting(e->service, true);
    for (int64_t b = 0; clock_seconds() > e->service->end && b < rows_count(e->rows); b++)
        if (e->choice[b]) {
            call_finish(e->choice[b], "length");
            e->choice[b] = NULL;
        }
}

/* Orders a further row to join, if there is a place. */
static void let_join(struct engine *e, struct order *o, const int64_t **prompt)
{
    struct service *s = e->service;
    if (e->joins || s->active == s->slots)
        return;
    e->joins = call_next_waiting(s);
    if (!e->joins)
        return;
    s->active++;
    o->joins = true;
    o->prompts = e->joins->prompts;
    o->how = e->joins->how;
    o->how.bias = NULL;
    o->grammar = o->how.grammar ? (int64_t)grammar_size(o->how.grammar) : 0;
    o->how.grammar = NULL;
    *prompt = e->joins->prompt;
}

/* Orders vectors where there is nothing else, or after something else. */
static void let_embed(struct engine *e, struct order *o)
{
    bool busy = o->kind == ORDER_STEP || o->kind == ORDER_PROMPT;
    e->batch = (busy && e->embedded) ? (struct embed_batch){0} : embeddings_next(e->service);
    e->embedded = e->batch.call;
    if (!e->batch.call)
        return;
    o->kind = ORDER_EMBED;
    o->embeds = e->batch.n;
    for (int64_t i = 0; i < e->batch.n; i++)
        o->tokens += e->batch.call->embeddings->text[e->batch.text[i]].list.n;
}

/* Steps of the rows, parts of a prompt, and vectors of texts take turns. */
static struct order next_order(struct engine *e, const int64_t **prompt)
{
    struct service *s = e->service;
    struct order o = {.kind = ORDER_STEP};
    pthread_mutex_lock(&s->lock);
    if (rows_count(e->rows) == 0 && !e->joins)
        wait_for_work(e);
    look_after_clients(e);
    if (signal_asked())
        end_texts(e);
    let_leave(e, &o);
    let_drop(e, &o);
    let_join(e, &o, prompt);
    if (e->joins && (e->stepped || o.joins || s->active == 1))
        o.kind = ORDER_PROMPT;
    else if (s->active == 0)
        o.kind = s->ending ? ORDER_END : ORDER_IDLE;
    let_embed(e, &o);
    e->stepped = o.kind == ORDER_STEP || (e->stepped && o.kind == ORDER_EMBED);
    pthread_mutex_unlock(&s->lock);
    return o;
}

/* ---- all ranks ---- */

static void leave_rows(struct engine *e, const struct order *o)
{
    for (int64_t i = 0; i < o->leaves; i++)
        rows_leave(e->rows, o->leave[i]);
}

/* What rank 0 has, of all ranks; from NULL but there. */
static void *sent(struct engine *e, struct arena *a, const void *from, int64_t bytes)
{
    void *to = arena_alloc(a, (size_t)bytes + 1);
    if (from)
        memcpy(to, from, (size_t)bytes);
    if (bytes)
        comm_from_first(e->comm, "orders", to, bytes);
    return to;
}

/* How many tokens of a prompt need not run, as rank 0 finds. Those whose scores are asked for must. */
static int64_t stored_tokens(struct engine *e, const int64_t *prompt, int64_t n)
{
    int64_t stored = 0;
    if (e->joins && !e->joins->how.prompt_logprobs)
        stored = e->joins->stored = rows_find_stored(e->rows, prompt, n);
    comm_from_first(e->comm, "orders", &stored, sizeof stored);
    return stored;
}

/* Once the first text has a grammar. */
static void make_forms(struct engine *e)
{
    struct arena *tmp = arena_new();
    struct token_texts texts = {0};
    struct end_tokens ends = {0};
    if (e->service) {
        texts = service_token_texts(e->service, tmp);
        ends = service_ends(e->service, tmp);
    }
    rows_set_forms(e->rows, forms_new(e->comm, &texts, &ends));
    arena_free(tmp);
}

/* The call of rank 0's prompt may end while the row joins, so that all ranks have a copy. */
static void join_row(struct engine *e, const struct order *o, const int64_t *prompt)
{
    struct arena *tmp = arena_new();
    struct row_sampling how = o->how;
    const int64_t *token = sent(e, tmp, prompt, o->prompts * (int64_t)sizeof *token);
    how.bias = sent(e, tmp, e->joins ? e->joins->how.bias : NULL, how.biases * (int64_t)sizeof *how.bias);
    if (o->grammar)
        how.grammar = sent(e, tmp, e->joins ? e->joins->how.grammar : NULL, o->grammar);
    if (o->grammar && !rows_has_forms(e->rows))
        make_forms(e);
    int64_t stored = stored_tokens(e, token, o->prompts);
    rows_join(e->rows, token, o->prompts, stored, &how);
    arena_free(tmp);
}

static void run_prompt(struct engine *e)
{
    int64_t next, scored, row = rows_count(e->rows);
    double start = clock_seconds();
    bool joined = rows_go_on(e->rows, &next);
    if (!e->service)
        return;
    pthread_mutex_lock(&e->service->lock);
    e->service->counts.prompt_runs++;
    e->service->stored = rows_stored(e->rows);
    e->service->counts.prompt_seconds += clock_seconds() - start;
    const struct logprobs *scores = rows_prompt_logprobs(e->rows, &scored);
    call_add_prompt_scores(e->joins, scores, scored);
    if (joined) {
        e->choice[row] = call_add_token(e->joins, next, rows_logprobs(e->rows, row), rows_form(e->rows, row)) ? e->joins : NULL;
        e->joins = NULL;
    }
    pthread_mutex_unlock(&e->service->lock);
}

static void step_rows(struct engine *e)
{
    int64_t next[SERVE_SLOTS], n = rows_count(e->rows);
    double start = clock_seconds();
    rows_step(e->rows, next);
    if (!e->service)
        return;
    pthread_mutex_lock(&e->service->lock);
    e->service->counts.steps++;
    e->service->counts.step_seconds += clock_seconds() - start;
    for (int64_t b = 0; b < n; b++)
        if (e->choice[b] && !call_add_token(e->choice[b], next[b], rows_logprobs(e->rows, b), rows_form(e->rows, b)))
            e->choice[b] = NULL;
    pthread_mutex_unlock(&e->service->lock);
}

/* The texts of the batch, one behind another. */
static void write_texts(const struct embed_batch *b, int64_t *length, int64_t *token)
{
    for (int64_t i = 0; i < b->n; i++) {
        const struct token_ids *text = &b->call->embeddings->text[b->text[i]];
        length[i] = text->list.n;
        memcpy(token, text->list.at, (size_t)text->list.n * sizeof *token);
        token += text->list.n;
    }
}

static void embed_texts(struct engine *e, const struct order *o)
{
    struct arena *tmp = arena_new();
    int64_t *length = NEWN(tmp, int64_t, o->embeds), *token = NEWN(tmp, int64_t, o->tokens);
    float *vectors = e->service ? NEWN(tmp, float, o->embeds *embed_width(e->embedder)) : NULL;
    double start = clock_seconds();
    if (e->service)
        write_texts(&e->batch, length, token);
    comm_from_first(e->comm, "orders", length, o->embeds * (int64_t)sizeof *length);
    comm_from_first(e->comm, "orders", token, o->tokens * (int64_t)sizeof *token);
    rows_interrupt(e->rows);
    embed_run(e->embedder, o->embeds, length, token, vectors);
    if (e->service) {
        pthread_mutex_lock(&e->service->lock);
        e->service->counts.prompt_runs++;
        e->service->counts.prompt_seconds += clock_seconds() - start;
        embeddings_done(&e->batch, vectors);
        pthread_mutex_unlock(&e->service->lock);
    }
    arena_free(tmp);
}

void engine_run(struct comm *comm, struct rows *rows, struct embedder *embedder, struct service *service)
{
    struct engine e = {.comm = comm, .rows = rows, .embedder = embedder, .service = service};
    for (;;) {
        const int64_t *prompt = NULL;
        struct order o = {0};
        if (service)
            o = next_order(&e, &prompt);
        comm_from_first(e.comm, "orders", &o, sizeof o);
        leave_rows(&e, &o);
        if (o.kind == ORDER_END)
            return;
        if (o.drops)
            rows_drop(rows);
        if (o.joins)
            join_row(&e, &o, prompt);
        if (o.kind == ORDER_PROMPT)
            run_prompt(&e);
        else if (o.kind == ORDER_STEP)
            step_rows(&e);
        else if (o.kind == ORDER_EMBED)
            embed_texts(&e, &o);
        if (o.kind == ORDER_IDLE)
            doze(nap(&e));
        else
            e.idle = 0;
    }
}
