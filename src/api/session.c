/* session: opens a model, lists its inputs and outputs, and frees it. After a failed call everything is discarded, and the next call loads
 * the model again. */
#include "api/api.h"
#include "ir/rank_meta.h"

#include <string.h>

struct api_rank *api_rank_of(const struct tpc_session *s, const struct comm *comm)
{
    return &s->at[s->crew.comm ? 0 : comm->rank];
}

/* ---- loading: every rank ---- */

static void load_rank(struct comm *comm, void *session)
{
    struct tpc_session *s = session;
    struct api_rank *r = api_rank_of(s, comm);
    *r = (struct api_rank){.arena = arena_new(), .threads = job_thread_count(comm, s->options.threads)};
    r->graph = job_load(r->arena, comm, s->path, &s->job);
    if (rank_meta_is_stage(r->graph))
        fail("%s is in stages (--pp), which programs can't open yet: tpc-run runs them", s->path);
}

static bool start_crew(struct tpc_session *s)
{
    struct scope *scope = scope_new();
    if (!scope)
        return false;
    s->runs = crew_start(&s->crew, scope, s->ranks, s->options.mpi != 0);
    if (s->runs && s->crew.comm) {
        s->crew.comm->timeout = s->options.timeout;
    }
    return s->runs && crew_do(&s->crew, load_rank, s);
}

/* MPI may still write into buffers of ranks that failed: these stay until the program ends. */
static void end_crew(struct tpc_session *s)
{
    bool stays = s->options.mpi && scope_failed(s->crew.scope);
    if (s->runs)
        crew_end(&s->crew);
    s->runs = false;
    if (!stays)
        scope_free(s->crew.scope);
    s->crew.scope = NULL;
    s->broken = stays;
}

static int fail_crew(struct tpc_session *s)
{
    if (!s->crew.scope)
        return error_memory();
    int status = error_of_scope(s->crew.scope);
    end_crew(s);
    return status;
}

int api_do(struct tpc_session *s, void (*order)(struct comm *, void *), void *data)
{
    if (s->broken) {
        (void)error_invalid("%s: a call failed before, and ranks of an MPI job can't start again: close the session", s->path);
        return TPC_FAILED;
    }
    if (!s->runs && !start_crew(s))
        return fail_crew(s);
    return crew_do(&s->crew, order, data) ? TPC_OK : fail_crew(s);
}

/* ---- inputs and outputs ---- */

static bool is_state(const struct graph *g, const struct value *v, bool input)
{
    for (int k = 0; g->rank_meta && k < g->rank_meta->nstate; k++) {
        const struct rank_state *state = &g->rank_meta->state[k];
        if (strcmp(input ? state->past : state->present, v->name) == 0)
            return true;
    }
    const struct state *state = g->rank_meta ? NULL : graph_state(g, v);
    return state && state->past && state->present && (input ? state->past : state->present) == v;
}

static void describe(struct tpc_session *s, const struct value *v, enum rank_end end, struct tpc_info *to)
{
    struct graph *g = s->at[0].graph;
    const struct type t = roles_type(g, end, v);
    *to = (struct tpc_info){.name = arena_strdup(s->arena, v->name), .type = (int)t.dtype, .rank = t.rank};
    to->state = is_state(g, v, end == RANK_INPUT);
    for (int k = 0; k < t.rank; k++)
        if (!dim_is_int(t.dim[k], &to->dim[k])) {
            to->dim[k] = -1;
            to->symbol[k] = arena_strdup(s->arena, dim_str(s->arena, t.dim[k]));
        }
}

static void describe_all(void *session)
{
    struct tpc_session *s = session;
    const struct graph *g = s->at[0].graph;
    s->nin = g->inputs.n;
    s->nout = g->outputs.n;
    s->in = NEWN(s->arena, struct tpc_info, s->nin);
    s->out = NEWN(s->arena, struct tpc_info, s->nout);
    for (int i = 0; i < s->nin; i++)
        describe(s, g->inputs.at[i], RANK_INPUT, &s->in[i]);
    for (int i = 0; i < s->nout; i++)
        describe(s, g->outputs.at[i], RANK_OUTPUT, &s->out[i]);
}

/* ---- opening ---- */

struct opening {
    struct scope *home;
    const char *path;
    const struct tpc_options *options;
    struct tpc_session *made;
};

static enum wire wire_of(int type)
{
    return type == TPC_F32 ? WIRE_F32 : type == TPC_BF16 ? WIRE_BF16 : type == TPC_I8 ? WIRE_Q8 : WIRE_PLANNED;
}

static void make_session(void *opening)
{
    struct opening *o = opening;
    struct arena *a = arena_new();
    struct tpc_session *s = NEW(a, struct tpc_session);
    s->home = o->home;
    s->arena = a;
    s->path = arena_strdup(a, o->path);
    s->options = o->options ? *o->options : (struct tpc_options){0};
    s->job = job_defaults();
    s->job.quiet = true;
    s->job.deterministic = s->options.deterministic != 0;
    s->job.fast = s->options.fast != 0;
    s->job.cache = (enum dtype)s->options.cache;
    s->job.wire = wire_of(s->options.wire);
    VEC_PUSH(a, &s->job.paths.text, s->path);
    int files = job_rank_files(a, s->path);
    s->ranks = files > 0 ? files : 1;
    s->job.local = s->options.mpi ? 0 : s->ranks;
    s->job.generate = 1; /* forms do not depend on the inputs of one run */
    s->at = NEWN(a, struct api_rank, s->ranks);
    o->made = s;
}

static int open_session(struct tpc_session *s)
{
    if (!start_crew(s))
        return fail_crew(s);
    if (s->crew.comm) {
        s->ranks = s->crew.comm->size;
        s->rank = s->crew.comm->rank;
    }
    return scope_do(s->home, describe_all, s) ? TPC_OK : error_of_scope(s->home);
}

static int check_opening(const char *path, const tpc_options *o)
{
    if (!path)
        return error_invalid("tpc_open: path is NULL");
    if (!o)
        return TPC_OK;
    if (o->threads < 0 || o->threads > 4096)
        return error_invalid("tpc_open: threads is %d", o->threads);
    if (o->timeout < 0)
        return error_invalid("tpc_open: timeout is %d", o->timeout);
    if (o->cache && o->cache != TPC_F16 && o->cache != TPC_I8)
        return error_invalid("tpc_open: cache is %d, expected TPC_F16 or TPC_I8", o->cache);
    if (o->wire && wire_of(o->wire) == WIRE_PLANNED)
        return error_invalid("tpc_open: wire is %d, expected TPC_F32, TPC_BF16 or TPC_I8", o->wire);
    if (o->deterministic && (o->fast || wire_of(o->wire) > WIRE_F32))
        return error_invalid("tpc_open: %s rounds more: it does not go with deterministic", o->fast ? "fast" : "wire");
    return TPC_OK;
}

tpc_session *tpc_open(const char *path, const tpc_options *options)
{
    struct opening o = {.home = scope_new(), .path = path, .options = options};
    bool fits = check_opening(path, options) == TPC_OK;
    if (fits && !o.home)
        (void)error_memory();
    else if (fits && !scope_do(o.home, make_session, &o))
        (void)error_of_scope(o.home);
    else if (fits && open_session(o.made) == TPC_OK)
        return o.made;
    if (o.made)
        tpc_close(o.made);
    else
        scope_free(o.home);
    return NULL;
}

static void free_rank(struct comm *comm, void *session)
{
    struct api_rank *r = api_rank_of(session, comm);
    if (r->rows)
        rows_free(r->rows);
    comm->barrier(comm);
    if (r->stage)
        stage_free(r->stage);
    if (r->session)
        session_free(r->session);
    if (r->last)
        arena_free(r->last);
    arena_free(r->arena);
}

void tpc_close(tpc_session *s)
{
    if (!s)
        return;
    if (s->runs)
        (void)crew_do(&s->crew, free_rank, s);
    if (s->crew.scope)
        end_crew(s);
    api_text_free(s);
    scope_free(s->home);
}

/* ---- queries ---- */

int tpc_ranks(const tpc_session *s)
{
    return s->ranks;
}

int tpc_rank(const tpc_session *s)
{
    return s->rank;
}

int tpc_input_count(const tpc_session *s)
{
    return s->nin;
}

int tpc_output_count(const tpc_session *s)
{
    return s->nout;
}

static int give_info(const struct tpc_info *from, int n, int index, tpc_info *info)
{
    if (index < 0 || index >= n)
        return error_invalid("the index is %d, expected 0 to %d", index, n - 1);
    *info = from[index];
    return TPC_OK;
}

int tpc_input(const tpc_session *s, int index, tpc_info *info)
{
    return give_info(s->in, s->nin, index, info);
}

int tpc_output(const tpc_session *s, int index, tpc_info *info)
{
    return give_info(s->out, s->nout, index, info);
}
