/* load: loads this rank's file and checks that all ranks run one plan. Rank 0 loads first, so that a common error is reported once. */
#include "ir/rank_meta.h"
#include "job/adapters/adapters.h"
#include "job/io/io.h"
#include "job/job.h"
#include "op/analysis/analysis.h"
#include "op/canon/canon.h"
#include "op/plugin/plugin.h"
#include "passes/pass.h"

#include <string.h>

static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER; /* ranks as threads load one at a time */

static bool adapts(const struct job_options *o)
{
    return o->lora.text.n > 0 && !o->train;
}

static bool in_stages(const struct graph *g)
{
    return g->rank_meta && g->rank_meta->stages > 1;
}

struct graph *job_load_model(struct arena *a, const char *path, const struct bound_inputs *fixed, const struct size_source *sizes,
                             const struct job_options *o)
{
    struct compile c = {.arena = a,
                        .model_path = path,
                        .fixed = fixed,
                        .sizes = sizes ? *sizes : (struct size_source){0},
                        .external_roots = o->external_roots,
                        .lower.deterministic = o->deterministic};
    diag_lock(&loading);
    double start = clock_seconds();
    pass_run(&c, "load", "load", NULL);
    plugin_require(c.graph);
    if (o->train)
        job_weights_as_inputs(c.graph);
    pass_run(&c, "shapes", "canon", NULL);
    if (adapts(o) && !in_stages(c.graph))
        adapters_apply(c.graph, &o->lora, NULL);
    if ((o->groups > 1 || o->batch_symbol || o->serve) && !c.graph->rank_meta)
        op_note_rows(c.graph);
    diag_unlock(&loading);
    if (c.graph->rank <= 0)
        explain("%s: loaded in %.3f seconds", path, clock_seconds() - start);
    return c.graph;
}

/* Between ranks as threads, so the lock is released meanwhile. */
static bool ranks_agree(void *ranks, uint64_t own)
{
    struct comm *comm = ranks;
    uint64_t first = own;
    diag_unlock(&loading);
    comm_from_first(comm, "comparison of layouts", &first, sizeof first);
    uint8_t differs = first != own, any;
    comm->allreduce(comm, &differs, &any, 1, DT_U8, RED_MAX);
    diag_lock(&loading);
    return !any;
}

void job_fuse(struct graph *g, struct comm *comm, const struct job_options *o)
{
    struct lower_options lower = {
        .deterministic = o->deterministic, .fast = o->fast, .cache = o->cache, .split_outputs = o->generate > 0, .tells = comm->rank == 0};
    if (g->ranks > 1 && comm->size > 1) {
        lower.agree = ranks_agree;
        lower.ranks = comm;
    }
    struct compile c = {.arena = g->arena, .graph = g, .lower = lower};
    diag_lock(&loading);
    pass_run(&c, "fuse_kernels", "fuse_kernels", NULL);
    diag_unlock(&loading);
}

static char *rank_file_path(struct arena *a, const char *folder, int rank)
{
    return path_join(a, folder, arena_printf(a, "rank-%d.onnx", rank));
}

int job_rank_files(struct arena *a, const char *path)
{
    int n = 0;
    while (path_is_folder(path) && path_exists(rank_file_path(a, path, n)))
        n++;
    return n;
}

static void check_size(const struct graph *g, const struct comm *comm, const char *path, const struct job_options *o)
{
    const char *mpi = comm_mpi_kind();
    int ranks = g->ranks;
    if (!ranks)
        fail("%s: its metadata names no rank: not a rank file of tpc-shard", g->path);
    ranks *= g->rank_meta->stages;
    if (ranks == comm->size)
        return;
    if (o->groups > 1)
        fail("%s is for %d ranks, and each of the %lld replicas of this run has %d: use %s %lld (%s)", path, ranks, (long long)o->groups,
             comm->size, o->local ? "--local" : "mpirun -n", (long long)(ranks * o->groups), g->path);
    if (comm->size == 1 && !o->local)
        fail("%s is for %d ranks, and this run has one: start it as 'mpirun -n %d tpc-run %s' "
             "(with the mpirun of the library this program is linked with: %s) or with --local %d",
             path, ranks, ranks, path, mpi ? mpi : "none, built without MPI", ranks);
    fail("%s is for %d ranks, and this run has %d: use %s %d (%s)", path, ranks, comm->size, o->local ? "--local" : "mpirun -n", ranks,
         g->path);
}

/* Compares the plan hash of all ranks with that of rank 0. */
static void check_plan(struct comm *comm, const struct graph *g, int rank)
{
    char own[2][32] = {"", ""}, first[2][32];
    const char *text = g->rank_meta->plan;
    if (!text)
        fail("%s: its metadata names no plan: not a rank file of tpc-shard", g->path);
    snprintf(own[0], sizeof own[0], "%s", text);
    snprintf(own[1], sizeof own[1], "%s", g->rank_meta->weights ? g->rank_meta->weights : "none");
    memcpy(first, own, sizeof own);
    comm_from_first(comm, "comparison of plans", first, sizeof first);
    first[0][31] = first[1][31] = '\0';
    if (strcmp(own[0], first[0]))
        fail("%s belongs to plan %s, but rank-0.onnx to plan %s: the folder mixes two plans", g->path, own[0], first[0]);
    if (strcmp(own[1], first[1]))
        fail("%s belongs to weights %s, but rank-0.onnx to weights %s: the folder mixes two models of one plan", g->path, own[1], first[1]);
    int number = g->rank_meta->stage * g->ranks + g->rank;
    if (number != rank)
        fail("%s: metadata says rank %d, expected %d", g->path, number, rank);
    comm->barrier(comm);
}

static struct graph *load_folder(struct arena *a, struct comm *comm, const char *path, const struct job_options *o)
{
    struct graph *g = NULL;
    if (comm->rank == 0) {
        if (!path_exists(rank_file_path(a, path, 0)))
            fail("%s: has no rank-0.onnx: not a folder of tpc-shard", path);
        g = job_load_model(a, rank_file_path(a, path, 0), NULL, NULL, o);
        job_check_stages(g, path, o);
        check_size(g, comm, path, o);
    }
    comm->barrier(comm);
    if (!path_exists(rank_file_path(a, path, comm->rank)))
        fail("%s: rank-%d.onnx is missing: rank %d needs it, and its rank-%d.data", path, comm->rank, comm->rank, comm->rank);
    if (!g)
        g = job_load_model(a, rank_file_path(a, path, comm->rank), NULL, NULL, o);
    check_size(g, comm, path, o);
    check_plan(comm, g, comm->rank);
    if (adapts(o) && in_stages(g))
        adapters_apply(g, &o->lora, comm); /* the ranks find out together which stage has which product */
    return g;
}

static struct graph *load_single(struct arena *a, struct comm *comm, const char *path, const struct job_options *o)
{
    if (comm->size > 1) {
        if (comm->rank == 0)
            fail("%s is one model, and this run has %d ranks%s: compile it with 'tpc-shard %s --tp %d' and run the folder", path,
                 comm->size, o->groups > 1 ? " in each replica" : "", path, comm->size);
        comm->barrier(comm);
    }
    struct size_source inputs = {
        .state = o->generate > 0 || o->groups > 1 ? NULL : job_state_sizes, .held = job_input_held, .given = job_input_given, .data = o};
    struct graph *g = job_load_model(a, path, &o->fixed, &inputs, o);
    int ranks = g->rank_meta ? g->ranks * g->rank_meta->stages : g->ranks;
    if (ranks > 1)
        fail("%s is the file of one rank of %d: run its folder", path, ranks);
    return g;
}

struct graph *job_load(struct arena *a, struct comm *comm, const char *path, const struct job_options *o)
{
    if (!path_exists(path))
        fail("%s: no such file or folder", path);
    if (o->fixed.list.n && path_is_folder(path))
        fail_usage("--bind: %s is compiled: 'tpc-shard --bind %s' fixes an input of its model", path, o->fixed.list.at[0]);
    return path_is_folder(path) ? load_folder(a, comm, path, o) : load_single(a, comm, path, o);
}
