/* serve: start and end of a server. */
#include "decode/small/small.h"
#include "job/io/io.h"
#include "serve/admission/admission.h"
#include "serve/http/http.h"
#include "serve/queue/queue.h"
#include "serve/terminal/terminal.h"

#include <math.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { USUAL_SLOTS = 8, USUAL_CONTEXT = 4096 };

/* ---- limits of the model ---- */

static int64_t context_of(const struct stage *s, const struct serve_options *o)
{
    int64_t most = s->positions;
    if (most > 0 && o->context > most)
        fail_usage("--context is %lld, and %s has positions for %lld tokens%s", (long long)o->context, s->path, (long long)most, s->limit);
    return o->context ? o->context : most > 0 && most < USUAL_CONTEXT ? most : USUAL_CONTEXT;
}

/* With several graphs, checks that the first one reads text. */
static void check_encoder(struct arena *a, const struct stage *s)
{
    const struct graph *g = s->graph;
    if (decode_find_input(s, ROLE_TOKENS) >= 0)
        return;
    fail("%s: it takes '%s' (%s), not tokens: --serve takes text", s->path, g->inputs.n ? g->inputs.at[0]->name : "nothing",
         g->inputs.n ? type_str(a, &g->inputs.at[0]->type) : "");
}

struct limits {
    int64_t vocabulary, context, longest;
};

/* As many groups as a pipeline has stages, so that all of them work; but no more than rows. */
struct row_groups {
    struct pipeline *pipeline; /* NULL: no stages */
    int n;
    struct rows **rows;
};

/* ---- rank 0 ---- */

static int64_t slots_of(const struct rows *rows, const struct job_options *job, const struct serve_options *o)
{
    return rows_alone(rows) || job->chat ? 1 : o->slots ? o->slots : USUAL_SLOTS;
}

/* For the answers of a conversation. */
static void read_form(struct arena *a, struct service *s, const struct job_options *o)
{
    const char *path = o->grammar ? o->grammar : o->json_schema;
    if (!path || !s->chat)
        return;
    if (!tokenizer_joins(s->tokenizer))
        fail("%s: its tokenizer does not join tokens as they are: there is no form of the text", o->paths.text.at[0]);
    const char *tag = s->chat->tags.close.n ? arena_strndup(a, s->chat->tags.close.at, s->chat->tags.close.n) : NULL;
    s->form = grammar_file(a, path, o->json_schema, NULL);
    s->form_behind = grammar_file(a, path, o->json_schema, tag);
}

static void read_adapters(struct arena *a, struct service *s, const struct job_options *o)
{
    struct named_adapters *named;
    int n = adapters_named(a, &o->lora, &named);
    s->adapters = n && named[0].name ? n : 0;
    s->adapter = named;
    for (int i = 0; i < s->adapters; i++)
        if (strcmp(named[i].name, s->model) == 0)
            fail_usage("--lora: '%s' is the name of the model itself", s->model);
}

static void prepare_service(struct arena *a, struct service *s, const struct job_options *o, const struct serve_options *serve)
{
    const char *path = o->tokenizer ? o->tokenizer : config_beside(a, o, TEXT_TOKENIZER);
    if (!path)
        fail("%s: there is no tokenizer.json next to it: name one with --tokenizer FILE", o->paths.text.at[0]);
    s->tokenizer = tokenizer_read(a, path);
    s->prompt_tokenizer = tokenizer_read(a, path);
    s->chat = chat_read(a, o, s->tokenizer, &s->no_chat);
    if (s->no_chat && (o->chat || o->chat_template))
        fail("%s", s->no_chat);
    read_form(a, s, o);
    s->ends = o->eos.list.n ? o->eos : config_ends(a, o);
    s->seeded = o->sampling_seed >= 0;
    const char *at = o->paths.text.at[0], *model = path_real(a, at);
    model = model ? model : at;
    s->model = path_base(o->paths.text.n > 1 ? path_dir(a, model) : model);
    read_adapters(a, s, o);
    if (serve->api_key_file)
        s->keys = keys_read(a, serve->api_key_file);
    if (pthread_mutex_init(&s->lock, NULL) || pthread_cond_init(&s->wake, NULL))
        fail("can't create a lock");
}

/* At a terminal, or under a launcher, which may forward what is typed. */
static bool asks_user(const struct comm *comm, const struct job_options *o)
{
    return !o->quiet && (isatty(STDIN_FILENO) || (comm->size > 1 && comm->silent));
}

static void converse_first(struct arena *a, struct comm *comm, const struct row_groups *g, struct service *s, const struct job_options *job)
{
    s->comm = comm;
    s->slots = 1;
    diag_tell("a chat with %s, of at most %lld tokens: /help lists commands, ^D ends it", s->model, (long long)s->context);
    struct terminal *t = terminal_start(a, s, job->system, asks_user(comm, job));
    engine_run(comm, g->pipeline, g->n, g->rows, NULL, s);
    terminal_stop(t);
    chat_free(s->chat);
}

static void serve_first(struct comm *comm, const struct row_groups *g, struct service *s, const struct serve_options *o)
{
    struct arena *a = arena_new();
    s->comm = comm;
    struct doors d = doors_open(s, o);
    doors_tell(a, s, &d);
    engine_run(comm, g->pipeline, g->n, g->rows, s->embedder, s);
    doors_close(s, &d);
    chat_free(s->chat);
    arena_free(a);
}

static void serve_supervisor(struct comm *comm, const struct row_groups *g, struct service *s, const struct job_options *job)
{
    s->comm = comm;
    back_open(s, job->deterministic || s->longest);
    engine_run(comm, g->pipeline, g->n, g->rows, s->embedder, s);
    back_close();
    chat_free(s->chat);
}

/* Loads all graphs; the limits of the first and the last one. */
static struct limits load_stages(struct arena *a, struct comm *comm, struct stage *stage, int n, const struct job_options *job,
                                 const struct serve_options *o, int threads)
{
    struct limits limits = {0};
    struct stage *last = &stage[n - 1];
    for (int k = 0; k < n; k++) {
        stage[k] = (struct stage){.path = job->paths.text.at[k], .number = k + 1};
        stage_load(a, comm, job, &stage[k]);
    }
    roles_find(a, comm, stage, n, job);
    if (n > 1)
        check_encoder(a, stage);
    for (int k = 0; k < n; k++)
        positions_find(a, comm, job, &stage[k]);
    limits.vocabulary = n > 1 || !stage->decides ? stage->vocabulary : decode_vocabulary(a, stage);
    limits.vocabulary = limits.vocabulary < 0 ? INT32_MAX : limits.vocabulary;
    limits.context = context_of(stage, o);
    limits.longest = n > 1 ? context_of(last, o) : 0;
    for (int k = 0; k < n; k++)
        stage_prepare(a, comm, job, threads, stage, k);
    return limits;
}

static struct rows *make_rows(struct arena *a, struct comm *comm, struct stage *stage, int n, const struct limits *limits,
                              const struct job_options *job, const struct serve_options *o)
{
    if (n > 1)
        return rows_of_chain(a, chained_new(a, comm, stage, n, config_start(a, comm, job), limits->longest));
    if (!stage->decides)
        return rows_none(a,
                         arena_printf(a, "this model makes no texts: its output '%s' is for /v1/embeddings",
                                      stage->ends->outputs.at[stage->embedding]->name));
    return rows_new(a, comm, stage, o->slots ? o->slots : USUAL_SLOTS);
}

static struct row_groups group_rows(struct arena *a, const struct stage *s, struct rows *first, int64_t slots)
{
    struct row_groups g = {.pipeline = s->pipeline, .n = 1};
    if (s->pipeline && !rows_alone(first))
        g.n = slots < pipeline_stages(s->pipeline) ? (int)slots : pipeline_stages(s->pipeline);
    g.rows = NEWN(a, struct rows *, g.n);
    g.rows[0] = first;
    for (int k = 1; k < g.n; k++)
        g.rows[k] = rows_beside(a, first);
    return g;
}

/* ---- embeddings ---- */

/* Every rank calls it. NULL: there are none; rank 0 has the reason. */
static struct embedder *make_embedder(struct arena *a, struct comm *comm, struct stage *stage, int n, const struct limits *limits,
                                      const struct job_options *job, const char **why)
{
    const struct stage *last = &stage[n - 1];
    struct embedder *e = NULL;
    *why = NULL;
    if (last->pipeline)
        *why = "a model in stages (--pp) returns none yet";
    else if (n > 1)
        *why = "an encoder and its decoder return none: serve the encoder alone";
    else if (last->embedding < 0)
        *why = "the model's graph returns no last_hidden_state, hidden_states, token_embeddings or sentence_embedding";
    else if (!job->chat)
        e = embed_new(a, comm, stage, job, limits->vocabulary, limits->context, why);
    if (*why && (job->pooling || (n == 1 && !stage->decides)))
        fail("%s%s", job->pooling ? "--pooling is for embeddings: " : "", *why);
    return e;
}

/* ---- stored prefixes ---- */

/* A quarter of the memory that caches leave; but at most as many tokens as the rows may have. */
static int64_t usual_store(const struct comm *comm, const struct stage *last, const struct rows *rows, int64_t slots, int64_t context)
{
    int64_t left = stage_room_left(comm, last, slots, context) / 4, all;
    int64_t column = rows_column_bytes(rows);
    bool small = column && i64_mul(slots * context, column, &all) && all < left;
    return small ? all : left;
}

static void tell_unstored(const struct comm *comm, const struct serve_options *o, const char *why)
{
    if (comm->rank == 0 && o->prefix_cache > 0)
        diag_tell("no prefix cache: %s", why);
    else if (comm->rank == 0)
        explain("no prefix cache: %s", why);
}

static void store_prefixes(const struct comm *comm, struct rows *rows, const struct stage *last, int64_t context,
                           const struct job_options *job, const struct serve_options *o)
{
    const char *why = o->prefix_cache == 0 ? "it is turned off" : rows_unstored(rows);
    if (why) {
        tell_unstored(comm, o, why);
        return;
    }
    bool given = o->prefix_cache > 0;
    int64_t bytes = given ? o->prefix_cache : usual_store(comm, last, rows, slots_of(rows, job, o), context);
    bool fits = rows_store(rows, bytes, !job->deterministic);
    if (!fits && given)
        fail_usage("--prefix-cache is %lld bytes, too few for %d tokens, which take %lld on a rank and some more", (long long)bytes,
                   PREFIX_BLOCK, (long long)(PREFIX_BLOCK * rows_column_bytes(rows)));
    if (!fits)
        tell_unstored(comm, o, "too little memory is left for one");
}

/* A graph that chooses tokens uses the best ones. */
static struct sampling usual_sampling(struct arena *a, struct comm *comm, const struct stage *last, const struct job_options *o)
{
    bool asked = o->temperature > 0 || o->top_k > 0 || o->top_p >= 0 || o->min_p > 0 || o->penalty >= 0 || !isnan(o->presence) ||
        !isnan(o->frequency);
    if (last->chosen && asked)
        fail_usage("%s: its graph chooses tokens itself: there is no --temperature, --top-k, --top-p, --min-p and penalties", last->path);
    return last->chosen ? (struct sampling){.top_p = 1, .penalty = 1} : sampling_agree(a, comm, o);
}

/* The properties of the model, except defaults of requests. */
static void note_model(struct service *s, const struct comm *comm, const struct rows *rows, const struct limits *limits)
{
    s->vocabulary = limits->vocabulary;
    s->context = limits->context;
    s->longest = limits->longest;
    s->alone = rows_alone(rows);
    s->stored = rows_stored(rows);
    s->ranks = comm->size;
    s->transport = comm->kind;
    s->known = true;
    if (comm->rank == 0 && s->embedder) {
        s->width = embed_width(s->embedder);
        s->embeds = embed_what(s->embedder);
    }
}

/* Rows for texts, or none: checks their memory, and prepares --draft and --prefix-cache. */
static struct row_groups prepare_rows(struct arena *a, struct comm *comm, struct stage *stage, int n, const struct limits *limits,
                                      const struct job_options *job, const struct serve_options *o, int threads, struct service *s,
                                      struct drafter **drafter)
{
    struct stage *last = &stage[n - 1];
    struct rows *rows = make_rows(a, comm, stage, n, limits, job, o);
    bool no_texts = n == 1 && !stage->decides;
    int64_t slots = slots_of(rows, job, o);
    s->no_texts = no_texts ? rows_alone(rows) : NULL;
    s->slots = no_texts ? 0 : slots;
    *drafter = n > 1 || no_texts ? NULL : drafter_new(a, comm, stage, job, threads);
    struct cache_need need = {.rows = slots, .tokens = limits->context, .weights = true};
    need.drafts = drafter_bytes(*drafter, 1, limits->context);
    need.prefixes = o->prefix_cache > 0 && !rows_alone(rows) ? o->prefix_cache : 0;
    stage_check_cache(comm, comm, job, last, need);
    s->prompt_scores = rows_try_parts(rows, job, limits->vocabulary, limits->context);
    const char *no_drafts = job->lookup || job->draft ? rows_draft(rows, *drafter, limits->context) : NULL;
    if (no_drafts)
        fail("%s: %s drafts nothing here: %s", last->path, job->draft ? "--draft" : "--lookup", no_drafts);
    store_prefixes(comm, rows, last, limits->context, job, o);
    return group_rows(a, last, rows, slots);
}

/* Until the service ends. */
static void run_service(struct arena *a, struct comm *comm, const struct row_groups *g, struct service *s, const struct job_options *job,
                        const struct serve_options *o)
{
    comm->barrier(comm);
    if (job->chat)
        signal_catch_interrupts();
    else
        signal_soften();
    if (comm->rank == 0 && job->chat)
        converse_first(a, comm, g, s, job);
    else if (comm->rank == 0 && supervised_is())
        serve_supervisor(comm, g, s, job);
    else if (comm->rank == 0)
        serve_first(comm, g, s, o);
    else
        engine_run(comm, g->pipeline, g->n, g->rows, s->embedder, NULL);
}

void serve_requests(struct arena *a, const struct replicas *replicas, const struct job_options *job, const struct serve_options *o,
                    int threads)
{
    struct comm *comm = replicas->all;
    int n = job->paths.text.n;
    struct stage *stage = NEWN(a, struct stage, n), *last = &stage[n - 1];
    struct service s = {0};
    struct drafter *drafter;
    if (comm->rank == 0)
        prepare_service(a, &s, job, o);
    const struct limits limits = load_stages(a, comm, stage, n, job, o, threads);
    const struct row_groups groups = prepare_rows(a, comm, stage, n, &limits, job, o, threads, &s, &drafter);
    s.embedder = make_embedder(a, comm, stage, n, &limits, job, &s.no_embeddings);
    s.usual = usual_sampling(a, comm, last, job);
    s.chooses = last->chosen;
    if (s.chooses && s.form)
        fail("%s: its graph chooses tokens itself: it takes no form of the text", last->path);
    note_model(&s, comm, groups.rows[0], &limits);
    run_service(a, comm, &groups, &s, job, o);
    for (int k = groups.n - 1; k >= 0; k--)
        rows_free(groups.rows[k]);
    drafter_end(drafter);
    comm->barrier(comm);
    for (int k = 0; k < n; k++)
        stage_free(&stage[k]);
}

int serve_supervised(struct arena *a, const struct job_options *job, const struct serve_options *o, struct supervisor *supervisor)
{
    struct service s = {0};
    prepare_service(a, &s, job, o);
    return front_run(a, &s, o, supervisor);
}
