/* engine: decodes the texts of all calls, a row each. Rank 0 issues an order before each run, which all ranks follow. */
#include "serve/queue/queue.h"

#include <string.h>
#include <time.h>

enum order_kind { ORDER_IDLE, ORDER_PROMPT, ORDER_STEP, ORDER_EMBED, ORDER_END };
struct order {
    enum order_kind kind;
    int64_t leaves, leave[SERVE_SLOTS]; /* rows, last one first */
    bool drops, joins;                  /* the joining row is dropped; another one joins */
    bool sleeps;                        /* no group has work */
    int64_t prompts;                    /* tokens of the joining row's prompt */
    int64_t grammar;                    /* bytes of its grammar */
    struct row_sampling how;            /* without biases and grammar, which are sent after it */
    int64_t embeds, tokens;             /* texts to embed, and their tokens, which are sent after it */
};

/* Rows that run together. In a pipeline there are as many groups as stages, which alternate: while one is in a stage, others are in the
 * stages before and after it. */
struct group {
    struct rows *rows;
    struct choice *choice[SERVE_SLOTS]; /* by row; NULL: its text has ended */
    struct choice *joins;               /* the text whose prompt runs; NULL: none */
    bool stepped;                       /* since its last part */
    double began;                       /* start of its last run */
};
struct engine {
    struct comm *comm;
    struct pipeline *pipeline; /* NULL: no stages */
    int groups;
    struct group *group;
    struct embedder *embedder; /* NULL: no embeddings */
    struct service *service;   /* NULL: not rank 0 */
    struct embed_batch batch;  /* of an order to embed */
    bool embedded;             /* by the last order */
    double checked;            /* when disconnected clients were last looked for */
    double idle;               /* since when there is no work; 0: there is */
};

static const double check_each = 0.02, doze_after = 10; /* seconds */

static void doze(double seconds)
{
    (void)nanosleep(&(struct timespec){0, (long)(1e9 * seconds)}, NULL);
}

/* Processes that wait in a collective keep a core busy. So rank 0 calls them from time to time, and they sleep in between. */
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
    bool naps = e->pipeline ? pipeline_polls(e->pipeline) : e->comm->size > 1 && e->comm->polls;
    while (!naps && !s->first && !s->first_to_embed && !s->ending && !signal_asked()) {
        struct timespec until = clock_after(100);
        (void)pthread_cond_timedwait(&s->wake, &s->lock, &until);
    }
}

/* ---- orders of rank 0 ---- */

static void let_leave(struct group *g, struct order *o)
{
    int64_t kept = 0, n = rows_count(g->rows);
    for (int64_t b = n - 1; b >= 0; b--)
        if (!g->choice[b] || g->choice[b]->call->gone) {
            if (g->choice[b])
                call_finish(g->choice[b], "stop");
            o->leave[o->leaves++] = b;
            g->choice[b] = NULL;
        }
    for (int64_t b = 0; b < n; b++)
        if (g->choice[b])
            g->choice[kept++] = g->choice[b];
    for (int64_t b = kept; b < n; b++)
        g->choice[b] = NULL;
}

/* The number of texts that have a row in it, or will get one. */
static int64_t active_in(const struct group *g)
{
    int64_t n = g->joins != NULL;
    for (int64_t b = 0; b < rows_count(g->rows); b++)
        n += g->choice[b] != NULL;
    return n;
}

static int64_t active_of(const struct engine *e)
{
    int64_t n = 0;
    for (int k = 0; k < e->groups; k++)
        n += active_in(&e->group[k]);
    return n;
}

/* The joining one may also be gone. */
static void let_drop(const struct service *s, struct group *g, struct order *o)
{
    bool late = s->ending && clock_seconds() > s->end;
    if (!g->joins || (!g->joins->call->gone && !late))
        return;
    call_finish(g->joins, "length");
    o->drops = true;
    g->joins = NULL;
}

static void look_after_clients(struct engine *e)
{
    double now = clock_seconds();
    if (now - e->checked < check_each)
        return;
    e->checked = now;
    call_drop_waiting(e->service, e->service->ending);
}

/* Cuts off texts that take too long. */
static void end_texts(struct engine *e, struct group *g)
{
    if (!e->service->ending)
        e->service->end = clock_seconds() + SERVE_END_SECONDS;
    e->service->ending = true;
    call_drop_waiting(e->service, true);
    for (int64_t b = 0; clock_seconds() > e->service->end && b < rows_count(g->rows); b++)
        if (g->choice[b]) {
            call_finish(g->choice[b], "length");
            g->choice[b] = NULL;
        }
}

static bool is_empty(const struct engine *e)
{
    for (int k = 0; k < e->groups; k++)
        if (e->group[k].joins || rows_count(e->group[k].rows))
            return false;
    return true;
}

static bool has_fewest(const struct engine *e, const struct group *g)
{
    for (int k = 0; k < e->groups; k++)
        if (active_in(&e->group[k]) < active_in(g))
            return false;
    return true;
}

/* Orders a further row to join, if there is a free one. */
static void let_join(struct engine *e, struct group *g, struct order *o, const int64_t **prompt)
{
    struct service *s = e->service;
    if (g->joins || active_of(e) == s->slots || !has_fewest(e, g))
        return;
    g->joins = call_next_waiting(s);
    if (!g->joins)
        return;
    o->joins = true;
    o->prompts = g->joins->prompts;
    o->how = g->joins->how;
    o->how.bias = NULL;
    o->grammar = o->how.grammar ? (int64_t)grammar_size(o->how.grammar) : 0;
    o->how.grammar = NULL;
    *prompt = g->joins->prompt;
}

/* Orders embeddings if there is nothing else, or after something else. */
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

/* Alternates between steps of the rows, parts of a prompt, and embeddings. */
static struct order next_order(struct engine *e, struct group *g, const int64_t **prompt)
{
    struct service *s = e->service;
    struct order o = {.kind = ORDER_IDLE};
    pthread_mutex_lock(&s->lock);
    if (is_empty(e))
        wait_for_work(e);
    look_after_clients(e);
    if (signal_asked())
        end_texts(e, g);
    let_leave(g, &o);
    let_drop(s, g, &o);
    let_join(e, g, &o, prompt);
    s->active = active_of(e);
    if (g->joins && (g->stepped || o.joins || active_in(g) == 1))
        o.kind = ORDER_PROMPT;
    else if (active_in(g) > 0)
        o.kind = ORDER_STEP;
    else if (s->active == 0 && s->ending)
        o.kind = ORDER_END;
    let_embed(e, &o);
    o.sleeps = is_empty(e) && o.kind == ORDER_IDLE;
    g->stepped = o.kind == ORDER_STEP || (g->stepped && o.kind == ORDER_EMBED);
    pthread_mutex_unlock(&s->lock);
    return o;
}

/* ---- all ranks ---- */

static void leave_rows(const struct group *g, const struct order *o)
{
    for (int64_t i = 0; i < o->leaves; i++)
        rows_leave(g->rows, o->leave[i]);
}

/* Broadcasts rank 0's bytes: no rank of a pipeline waits for a later stage. */
static void send_orders(struct engine *e, void *at, int64_t bytes)
{
    if (e->pipeline && pipeline_number(e->pipeline) > 0)
        pipeline_hear(e->pipeline, 0, at, bytes);
    else
        comm_from_first(e->pipeline ? pipeline_stage(e->pipeline) : e->comm, "orders", at, bytes);
    if (e->pipeline && pipeline_number(e->pipeline) == 0)
        pipeline_tell(e->pipeline, at, bytes);
}

/* Broadcasts rank 0's bytes; from is NULL on other ranks. */
static void *sent(struct engine *e, struct arena *a, const void *from, int64_t bytes)
{
    void *to = arena_alloc(a, (size_t)bytes + 1);
    if (from)
        memcpy(to, from, (size_t)bytes);
    if (bytes)
        send_orders(e, to, bytes);
    return to;
}

/* How many tokens of a prompt need not run, as rank 0 finds. Tokens whose scores are requested must run. */
static int64_t stored_tokens(struct engine *e, struct group *g, const int64_t *prompt, int64_t n)
{
    int64_t stored = 0;
    if (g->joins && !g->joins->how.prompt_logprobs)
        stored = g->joins->stored = rows_find_stored(g->rows, g->joins->how.adapter, prompt, n);
    send_orders(e, &stored, sizeof stored);
    return stored;
}

/* Once a text has a grammar. */
static void make_forms(struct engine *e)
{
    struct arena *tmp = arena_new();
    struct token_texts texts = {0};
    struct end_tokens ends = {0};
    if (e->service) {
        texts = service_token_texts(e->service, tmp);
        ends = service_ends(e->service, tmp);
    }
    struct forms *forms = forms_new(e->comm, &texts, &ends);
    for (int k = 0; k < e->groups; k++)
        rows_set_forms(e->group[k].rows, forms);
    arena_free(tmp);
}

/* The call of rank 0's prompt may end while the row joins, so every rank has a copy. */
static void join_row(struct engine *e, struct group *g, const struct order *o, const int64_t *prompt)
{
    struct arena *tmp = arena_new();
    struct row_sampling how = o->how;
    const int64_t *token = sent(e, tmp, prompt, o->prompts * (int64_t)sizeof *token);
    how.bias = sent(e, tmp, g->joins ? g->joins->how.bias : NULL, how.biases * (int64_t)sizeof *how.bias);
    if (o->grammar)
        how.grammar = sent(e, tmp, g->joins ? g->joins->how.grammar : NULL, o->grammar);
    if (o->grammar && !rows_has_forms(g->rows))
        make_forms(e);
    int64_t stored = stored_tokens(e, g, token, o->prompts - (how.repeats ? how.made : 0));
    rows_join(g->rows, token, o->prompts, stored, &how);
    arena_free(tmp);
}

/* Takes the results of a prompt's run; row: the number of rows before it. */
static void take_prompt(struct service *s, struct group *g, bool joined, int64_t row, int64_t next)
{
    int64_t scored;
    const struct logprobs *scores = rows_prompt_logprobs(g->rows, &scored);
    s->counts.prompt_runs++;
    s->stored = rows_stored(g->rows);
    s->counts.prompt_seconds += clock_seconds() - g->began;
    if (g->joins)
        call_add_prompt_scores(g->joins, scores, scored);
    if (!joined)
        return;
    if (g->joins)
        call_note_run(g->joins, 1);
    bool goes_on = g->joins && call_add_token(g->joins, next, rows_logprobs(g->rows, row), rows_form(g->rows, row));
    g->choice[row] = goes_on ? g->joins : NULL;
    g->joins = NULL;
}

static void take_step(struct service *s, struct group *g, int64_t n, const int64_t *next)
{
    s->counts.steps++;
    s->counts.step_seconds += clock_seconds() - g->began;
    int64_t each = rows_taken(g->rows), drafted = rows_drafted(g->rows);
    s->counts.drafted += drafted;
    s->counts.kept += drafted ? each - 1 : 0;
    for (int64_t b = 0; b < n; b++)
        if (g->choice[b])
            call_note_run(g->choice[b], each);
    for (int64_t i = 0; i < n * each; i++) {
        int64_t b = i / each;
        if (g->choice[b] && !call_add_token(g->choice[b], next[i], rows_logprobs(g->rows, b), rows_form(g->rows, b)))
            g->choice[b] = NULL;
    }
}

/* Takes the results of the group's last run. */
static void finish_run(struct engine *e, struct group *g)
{
    int64_t next[SERVE_SLOTS], n = rows_count(g->rows);
    enum rows_done done = rows_finish(g->rows, next);
    if (!e->service || done == ROWS_NONE)
        return;
    pthread_mutex_lock(&e->service->lock);
    if (done == ROWS_STEPPED)
        take_step(e->service, g, n, next);
    else
        take_prompt(e->service, g, done == ROWS_JOINED, n, next[0]);
    pthread_mutex_unlock(&e->service->lock);
}

/* The texts of the batch, concatenated. */
static void write_texts(const struct embed_batch *b, int64_t *length, int64_t *token)
{
    for (int64_t i = 0; i < b->n; i++) {
        const struct token_ids *text = &b->call->embeddings->text[b->text[i]];
        length[i] = text->list.n;
        memcpy(token, text->list.at, (size_t)text->list.n * sizeof *token);
        token += text->list.n;
    }
}

static void embed_texts(struct engine *e, struct group *g, const struct order *o)
{
    struct arena *tmp = arena_new();
    int64_t *length = NEWN(tmp, int64_t, o->embeds), *token = NEWN(tmp, int64_t, o->tokens);
    float *vectors = e->service ? NEWN(tmp, float, o->embeds *embed_width(e->embedder)) : NULL;
    double start = clock_seconds();
    if (e->service)
        write_texts(&e->batch, length, token);
    comm_from_first(e->comm, "orders", length, o->embeds * (int64_t)sizeof *length);
    comm_from_first(e->comm, "orders", token, o->tokens * (int64_t)sizeof *token);
    rows_interrupt(g->rows);
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

static void run_order(struct engine *e, struct group *g, const struct order *o, const int64_t *prompt)
{
    leave_rows(g, o);
    if (o->drops)
        rows_drop(g->rows);
    if (o->joins)
        join_row(e, g, o, prompt);
    g->began = clock_seconds();
    if (o->kind == ORDER_PROMPT)
        rows_begin_prompt(g->rows);
    else if (o->kind == ORDER_STEP)
        rows_begin_step(g->rows);
    else if (o->kind == ORDER_EMBED)
        embed_texts(e, g, o);
}

void engine_run(struct comm *comm, struct pipeline *pipeline, int groups, struct rows **rows, struct embedder *embedder,
                struct service *service)
{
    struct arena *a = arena_new();
    struct engine e = {.comm = comm,
                       .pipeline = pipeline,
                       .groups = groups,
                       .group = NEWN(a, struct group, groups),
                       .embedder = embedder,
                       .service = service};
    struct order o = {0};
    for (int k = 0; k < groups; k++)
        e.group[k].rows = rows[k];
    for (int turn = 0; o.kind != ORDER_END; turn = (turn + 1) % groups) {
        struct group *g = &e.group[turn];
        const int64_t *prompt = NULL;
        finish_run(&e, g);
        if (service)
            o = next_order(&e, g, &prompt);
        send_orders(&e, &o, sizeof o);
        run_order(&e, g, &o, prompt);
        if (o.sleeps)
            doze(nap(&e));
        else
            e.idle = 0;
    }
    for (int k = 0; k < groups; k++)
        finish_run(&e, &e.group[k]);
    arena_free(a);
}
