/* serve: what a server needs before its first request, and after its last. */
#include "serve/serve.h"

#include "job/io/io.h"

#include <string.h>
#include <time.h>

enum { USUAL_PORT = 8080, USUAL_SLOTS = 8, USUAL_CONTEXT = 4096 };

/* ---- what the model takes ---- */

static int64_t context_of(const struct stage *s, const struct serve_options *o)
{
    int64_t most = s->positions;
    if (most > 0 && o->context > most)
        fail_usage("--context is %lld, and %s has positions for %lld tokens%s", (long long)o->context, s->path, (long long)most, s->limit);
    return o->context ? o->context : most > 0 && most < USUAL_CONTEXT ? most : USUAL_CONTEXT;
}

/* What tells of several graphs whether text goes in. */
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

/* ---- rank 0 ---- */

static int64_t slots_of(const struct rows *rows, const struct serve_options *o)
{
    return rows_alone(rows) ? 1 : o->slots ? o->slots : USUAL_SLOTS;
}

static void prepare_service(struct arena *a, struct service *s, const struct job_options *o)
{
    const char *path = o->tokenizer ? o->tokenizer : config_beside(a, o, TEXT_TOKENIZER);
    if (!path)
        fail("%s: there is no tokenizer.json next to it: name one with --tokenizer FILE", o->paths.text.at[0]);
    s->tokenizer = tokenizer_read(a, path);
    s->prompt_tokenizer = tokenizer_read(a, path);
    s->ends = o->eos.list.n ? o->eos : config_ends(a, o);
    s->seeded = o->sampling_seed >= 0;
    const char *at = o->paths.text.at[0], *model = path_real(a, at);
    model = model ? model : at;
    s->model = path_base(o->paths.text.n > 1 ? path_dir(a, model) : model);
    if (pthread_mutex_init(&s->lock, NULL) || pthread_cond_init(&s->wake, NULL))
        fail("can't create a lock");
}

static void tell_address(const struct service *s, int port, const struct rows *rows)
{
    bool colons = strchr(s->host, ':') != NULL;
    if (rows_alone(rows))
        diag_tell("one text at a time: %s", rows_alone(rows));
    diag_tell("serving %s at http://%s%s%s:%d/v1, %lld row%s of at most %lld tokens", s->model, colons ? "[" : "", s->host,
              colons ? "]" : "", port, (long long)s->slots, s->slots == 1 ? "" : "s", (long long)s->context);
}

/* Replies that are under way get two seconds. */
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

static void serve_first(struct arena *a, struct comm *comm, struct rows *rows, struct service *s, const struct job_options *job,
                        const struct serve_options *o, int port)
{
    prepare_service(a, s, job);
    s->comm = comm;
    s->slots = slots_of(rows, o);
    s->host = o->host ? o->host : "127.0.0.1";
    s->cors = o->cors;
    s->per_address = o->per_address;
    s->read_seconds = o->request_seconds ? (double)o->request_seconds : SERVE_READ_SECONDS;
    struct listening l = listen_open(s->host, port);
    s->local = l.local;
    reader_start(s);
    connections_start(s);
    struct MHD_Daemon *d = http_start(s, l.fd);
    tell_address(s, l.port, rows);
    engine_run(comm, rows, s);
    (void)MHD_quiesce_daemon(d);
    reader_stop(s);
    let_replies_end(s);
    http_stop(d);
    connections_stop(s);
    diag_tell("ended after %lld texts", (long long)s->counts.texts);
}

/* All graphs, ready to run, and what the first and the last one take. */
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
    limits.vocabulary = n > 1 ? stage->vocabulary : decode_vocabulary(a, stage);
    limits.vocabulary = limits.vocabulary < 0 ? INT32_MAX : limits.vocabulary;
    limits.context = context_of(stage, o);
    limits.longest = n > 1 ? context_of(last, o) : 0;
    for (int k = 0; k < n; k++)
        stage_prepare(a, comm, comm, job, threads, stage, k);
    return limits;
}

static struct rows *make_rows(struct arena *a, struct comm *comm, struct stage *stage, int n, const struct limits *limits,
                              const struct job_options *job, const struct serve_options *o)
{
    if (n > 1)
        return rows_of_chain(a, chained_new(a, comm, stage, n, config_start(a, comm, job), limits->longest));
    struct rows *rows = rows_new(a, comm, stage, o->slots ? o->slots : USUAL_SLOTS);
    if (!rows_alone(rows) && parts_agree(comm, stage, job, limits->vocabulary, limits->context))
        rows_allow_parts(rows);
    return rows;
}

void serve_requests(struct arena *a, const struct replicas *replicas, const struct job_options *job, const struct serve_options *o,
                    int threads)
{
    struct comm *comm = replicas->all;
    int n = job->paths.text.n;
    struct stage *stage = NEWN(a, struct stage, n);
    const struct limits limits = load_stages(a, comm, stage, n, job, o, threads);
    struct rows *rows = make_rows(a, comm, stage, n, &limits, job, o);
    stage_check_cache(a, comm, comm, job, &stage[n - 1],
                      (struct cache_need){.rows = slots_of(rows, o), .tokens = limits.context, .weights = true});
    struct service s = {.usual = sampling_agree(a, comm, job)};
    s.vocabulary = limits.vocabulary;
    s.context = limits.context;
    s.longest = limits.longest;
    comm->barrier(comm);
    signal_soften();
    if (comm->rank == 0)
        serve_first(a, comm, rows, &s, job, o, o->port < 0 ? USUAL_PORT : (int)o->port);
    else
        engine_run(comm, rows, NULL);
    rows_free(rows);
    comm->barrier(comm);
    for (int k = 0; k < n; k++)
        session_free(stage[k].session);
}
