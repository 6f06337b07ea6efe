/* serve: what a server needs before its first request, and after its last. */
#include "serve/serve.h"

#include <time.h>

enum { USUAL_PORT = 8080, USUAL_SLOTS = 8, USUAL_CONTEXT = 4096 };

/* ---- what the model takes ---- */

/* Token ids are below this. */
static int64_t context_of(const struct stage *s, const struct serve_options *o, const struct value_use *use)
{
    int64_t most = positions_most(s, use);
    if (most > 0 && o->context > most)
        fail_usage("--context is %lld, and %s has positions for %lld tokens", (long long)o->context, s->path, (long long)most);
    return o->context ? o->context : most > 0 && most < USUAL_CONTEXT ? most : USUAL_CONTEXT;
}

struct limits {
    int64_t vocabulary, context;
};

/* ---- rank 0 ---- */

static void prepare_service(struct arena *a, struct service *s, const struct job_options *o)
{
    const char *path = o->tokenizer ? o->tokenizer : config_beside(a, o, "tokenizer.json");
    if (!path)
        fail("%s: no tokenizer.json lies beside it: name one with --tokenizer FILE", o->paths.text.at[0]);
    s->tokenizer = tokenizer_read(a, path);
    s->ends = config_ends(a, o);
    if (o->eos.n)
        s->ends.list.n = 0;
    for (int i = 0; i < o->eos.n; i++)
        VEC_PUSH(a, &s->ends.list, o->eos.at[i]);
    s->seeded = o->sampling_seed >= 0;
    char *model = path_real(a, o->paths.text.at[0]);
    s->model = path_base(model ? model : o->paths.text.at[0]);
    if (pthread_mutex_init(&s->lock, NULL) || pthread_mutex_init(&s->tokenizer_lock, NULL) || pthread_cond_init(&s->wake, NULL))
        fail("the system gave no lock");
}

static void tell_address(const struct service *s, struct MHD_Daemon *d, const char *host, const struct rows *rows)
{
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(d, MHD_DAEMON_INFO_BIND_PORT);
    if (rows_alone(rows))
        diag_tell("one text at a time: %s", rows_alone(rows));
    diag_tell("serving %s at http://%s:%d/v1, %lld row%s of at most %lld tokens", s->model, host, info ? info->port : 0,
              (long long)s->slots, s->slots == 1 ? "" : "s", (long long)s->context);
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
    const char *host = o->host ? o->host : "127.0.0.1";
    prepare_service(a, s, job);
    s->slots = rows_alone(rows) ? 1 : o->slots ? o->slots : USUAL_SLOTS;
    struct MHD_Daemon *d = http_start(s, host, port);
    tell_address(s, d, host, rows);
    engine_run(comm, rows, s);
    (void)MHD_quiesce_daemon(d);
    let_replies_end(s);
    http_stop(d);
    diag_tell("ended after %lld texts", (long long)s->counts.texts);
}

void serve_requests(struct arena *a, const struct replicas *replicas, const struct job_options *job, const struct serve_options *o,
                    int threads)
{
    struct comm *comm = replicas->all;
    struct stage stage = {.path = job->paths.text.at[0], .number = 1};
    stage_load(a, comm, job, &stage);
    roles_find(a, comm, &stage, 1, job);
    const struct value_use *use = job_value_uses(a, stage.graph);
    const struct limits limits = {decode_vocabulary(&stage, use), context_of(&stage, o, use)};
    stage_prepare(a, comm, comm, job, threads, &stage, 0);
    struct rows *rows = rows_new(a, comm, &stage, o->slots ? o->slots : USUAL_SLOTS);
    bool parts = !rows_alone(rows) && parts_agree(comm, &stage, job, limits.vocabulary, limits.context);
    if (parts)
        rows_allow_parts(rows);
    struct service s = {.usual = sampling_agree(a, comm, job)};
    s.vocabulary = limits.vocabulary;
    s.context = limits.context;
    comm->barrier(comm);
    signal_soften();
    if (comm->rank == 0)
        serve_first(a, comm, rows, &s, job, o, o->port < 0 ? USUAL_PORT : (int)o->port);
    else
        engine_run(comm, rows, NULL);
    rows_free(rows);
    comm->barrier(comm);
    session_free(stage.session);
}
