/* run: tpc_run. Inputs are checked before anything runs, on all ranks, so that a wrong input costs nothing. */
#include "api/api.h"
#include "ir/rank_meta.h"
#include "job/io/io.h"

#include <string.h>

struct running {
    struct tpc_session *session;
    struct tensor *in; /* by input */
    tpc_tensor *out;
    const int *index; /* of each out */
    int outs;
    char sentence[1024]; /* what is wrong with the inputs */
};

/* ---- every rank ---- */

static void make_ready(struct comm *comm, struct tpc_session *s, struct api_rank *r)
{
    struct session_options o = {.threads = r->threads,
                                .keep_state = s->options.keep_state != 0,
                                .deterministic = s->job.deterministic,
                                .narrow = s->job.fast,
                                .wire = s->job.wire};
    struct job_options job = s->job;
    job.generate = 0;
    job.cache = DT_NONE; /* state goes in and out in the model's types */
    job_fuse(r->graph, comm, &job);
    job_check_memory(comm, r->graph, &job);
    r->session = session_new(r->graph, comm, o);
    r->last = arena_new();
}

struct checking {
    struct session *session;
    const struct tensor *in;
};

static void check_inputs(void *checking)
{
    const struct checking *c = checking;
    session_check(c->session, c->in);
}

static bool inputs_fit(struct comm *comm, struct running *run, const struct api_rank *r, const struct tensor *in)
{
    struct checking c = {r->session, in};
    char own[sizeof run->sentence];
    bool fits = diag_try_share(own, sizeof own, check_inputs, &c) == 0;
    if (!fits && (comm->rank == 0 || run->session->crew.comm))
        memcpy(run->sentence, own, sizeof own);
    return fits;
}

/* All ranks gather; rank 0 gives it to the caller; with MPI each rank has its own caller. */
static void give_output(struct running *run, struct comm *comm, struct api_rank *r, int k, const struct tensor *own)
{
    const struct tensor global = session_gather(r->session, r->last, run->index[k], own);
    tpc_tensor *to = &run->out[k];
    if (comm->rank && !run->session->crew.comm)
        return;
    to->type = (int)global.dtype;
    to->rank = global.rank;
    memcpy(to->dim, global.dim, sizeof global.dim);
    to->data = global.dtype == DT_STRING ? strings_give(r->last, &global) : global.data;
}

/* Rank 0's inputs, or what is wrong with them. */
static bool receive_inputs(struct comm *comm, struct running *run, struct api_rank *r, struct tensor *in)
{
    comm_from_first(comm, "inputs", run->sentence, sizeof run->sentence);
    if (*run->sentence)
        return false;
    job_send_inputs(r->last, comm, run->session->nin, in);
    return true;
}

static void run_rank(struct comm *comm, void *running)
{
    struct running *run = running;
    struct tpc_session *s = run->session;
    struct api_rank *r = api_rank_of(s, comm);
    if (!r->session)
        make_ready(comm, s, r);
    arena_reset(r->last);
    struct tensor *in = NEWN(r->last, struct tensor, s->nin + 1), *out = NEWN(r->last, struct tensor, s->nout + 1);
    memcpy(in, run->in, (size_t)s->nin * sizeof *in);
    for (int i = 0; i < s->nin; i++)
        if (in[i].data && in[i].dtype == DT_STRING)
            strings_take(r->last, &in[i]);
    if (s->crew.comm && !receive_inputs(comm, run, r, in))
        return;
    if (!inputs_fit(comm, run, r, in))
        return;
    session_run(r->session, in, out);
    for (int k = 0; k < run->outs; k++)
        give_output(run, comm, r, k, &out[run->index[k]]);
    comm->barrier(comm); /* a rank's memory may be another's output */
}

/* ---- the caller ---- */

static int refuse_unknown(const struct tpc_session *s, const char *kind, const char *name, const struct tpc_info *of, int n)
{
    int edits, near = did_you_mean_at(name, n, n ? &of->name : NULL, sizeof *of, &edits);
    return error_invalid("%s: there is no %s '%s'%s%s%s", s->path, kind, name, n ? ", did you mean '" : "", n ? of[near].name : "",
                         n ? "'?" : "");
}

static int take_input(const struct tpc_session *s, const tpc_tensor *t, struct tensor *in)
{
    int i = t->name ? NAMED_AT(s->in, s->nin, t->name) : -1;
    if (!t->name)
        return error_invalid("%s: an input has no name", s->path);
    if (i < 0 && rank_meta_is_default(s->at[0].graph, t->name))
        return error_invalid("%s", job_why_default(s->arena, s->at[0].graph, t->name));
    if (i < 0)
        return refuse_unknown(s, "input", t->name, s->in, s->nin);
    if (in[i].data)
        return error_invalid("%s: input '%s' is given twice", s->path, t->name);
    if (t->type != s->in[i].type)
        return error_invalid("%s: input '%s' has type %d, expected %d (%s)", s->path, t->name, t->type, s->in[i].type,
                             dtype_name((enum dtype)s->in[i].type));
    if (t->rank != s->in[i].rank)
        return error_invalid("%s: input '%s' has %d dimensions, expected %d", s->path, t->name, t->rank, s->in[i].rank);
    static char nothing[64];
    in[i] = (struct tensor){.dtype = (enum dtype)t->type, .rank = t->rank};
    int64_t product;
    memcpy(in[i].dim, t->dim, sizeof in[i].dim);
    if (!type_sizes_product(t->dim, t->rank, &product) || !i64_mul(product, 8, &product))
        return error_invalid("%s: input '%s' has a size below 0, or more elements than memory holds", s->path, t->name);
    if (product && !t->data)
        return error_invalid("%s: input '%s' has no data", s->path, t->name);
    if (t->type == TPC_STRING && strings_check(s, t, product / 8) != TPC_OK)
        return TPC_INVALID;
    in[i].data = t->data ? (void *)(uintptr_t)t->data : nothing;
    return TPC_OK;
}

static int take_inputs(const struct tpc_session *s, const tpc_tensor *in, int n, struct tensor *taken)
{
    for (int k = 0; k < n; k++)
        if (take_input(s, &in[k], taken) != TPC_OK)
            return TPC_INVALID;
    for (int i = 0; i < s->nin; i++)
        if (!taken[i].data && !(s->options.keep_state && s->in[i].state))
            return error_invalid("%s: input '%s' is not given", s->path, s->in[i].name);
    return TPC_OK;
}

static int find_outputs(const struct tpc_session *s, const tpc_tensor *out, int n, int *index)
{
    for (int k = 0; k < n; k++) {
        index[k] = out[k].name ? NAMED_AT(s->out, s->nout, out[k].name) : -1;
        if (!out[k].name)
            return error_invalid("%s: an output has no name", s->path);
        if (index[k] < 0)
            return refuse_unknown(s, "output", out[k].name, s->out, s->nout);
    }
    return TPC_OK;
}

struct room {
    struct arena *arena;
    struct tensor *in;
    int *index;
    int ins, outs;
};

static void make_room(void *room)
{
    struct room *r = room;
    r->arena = arena_new();
    r->in = NEWN(r->arena, struct tensor, r->ins + 1);
    r->index = NEWN(r->arena, int, r->outs + 1);
}

static int run_in(tpc_session *s, const struct room *room, const tpc_tensor *in, int inputs, tpc_tensor *out, int outputs)
{
    struct running run = {.session = s, .in = room->in, .out = out, .index = room->index, .outs = outputs};
    if (find_outputs(s, out, outputs, room->index) != TPC_OK)
        return TPC_INVALID;
    bool taken = s->rank > 0 || take_inputs(s, in, inputs, room->in) == TPC_OK;
    if (!taken && !s->options.mpi)
        return TPC_INVALID;
    if (!taken)
        (void)snprintf(run.sentence, sizeof run.sentence, "%s", tpc_error());
    int status = api_do(s, run_rank, &run);
    return status == TPC_OK && *run.sentence ? error_invalid("%s", run.sentence) : status;
}

int tpc_run(tpc_session *s, const tpc_tensor *in, int inputs, tpc_tensor *out, int outputs)
{
    struct room room = {.ins = s->nin, .outs = outputs};
    if (inputs < 0 || outputs < 0 || outputs > s->nout || (inputs && !in) || (outputs && !out))
        return error_invalid("%s: expected lists of at most %d inputs and %d outputs", s->path, s->nin, s->nout);
    struct scope *scope = scope_new();
    if (!scope)
        return error_memory();
    int status = scope_do(scope, make_room, &room) ? run_in(s, &room, in, inputs, out, outputs) : error_of_scope(scope);
    scope_free(scope);
    return status;
}
