/* tpc-run: executes an ONNX model, or a folder of rank files that tpc-shard wrote. Ranks are processes under mpirun, or threads of one
 * process (--local N). Only rank 0 prints. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "cli/build.h"
#include "cli/restart/restart.h"
#include "cli/run.h"
#include "job/timing/timing.h"
#include "plan/folder/folder.h"
#include "run/comm/launch.h"
#ifdef HAVE_SERVE
#include "serve/serve.h"
#endif

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- one rank ----------------------------------------------------------------------------------------------------------------- */

struct job {
    const struct job_options *options;
    const struct train_options *train;
    const struct serve_options *serve;
    const char *launcher; /* the variable that shows it; NULL: none */
    bool failed;
};

static void rank_main(struct comm *comm, void *data)
{
    struct job *job = data;
    struct arena *a = arena_new();
    int threads = job_thread_count(comm, job->options->threads);
    if (job->options->wire > WIRE_F32 && comm->local_size == comm->size && comm->rank == 0)
        diag_tell("--wire shortens messages between machines, and all ranks are on this one");
    struct replicas replicas = replica_form(comm, job->options);
    if (job->options->doctor)
        job_doctor(a, comm, job->launcher, threads);
    else if (job->options->calibrate)
        job_calibrate(a, comm, job->options, threads);
#ifdef HAVE_SERVE
    else if (job->options->serve)
        serve_requests(a, &replicas, job->options, job->serve, threads);
#endif
    else if (job->options->dump)
        (job->options->generate ? generate_dump : job_dump)(a, &replicas, job->options);
    else if (job->options->train)
        train_run(a, &replicas, job->options, job->train, threads);
    else if (job->options->bench)
        (void)(bench_tokens_run(a, &replicas, job->options, threads) || job_run(a, &replicas, job->options, threads));
    else if (job->options->generate ? generate_run(a, &replicas, job->options, threads) : job_run(a, &replicas, job->options, threads))
        job->failed = true;
    replica_leave(&replicas);
    arena_free(a);
}

/* ---- start --------------------------------------------------------------------------------------------------------------------- */

/* Checks output files before the run. Each row is an option, its file, and a text near the beginning of such files. */
static void check_files(struct arena *a, const struct run_options *o)
{
    const char *const file[][3] = {{"--trace", o->job.trace, TRACE_KIND},
                                   {"--stats", o->job.stats_path, STATS_KIND},
                                   {"--save-state", o->job.save_state, SAVED_KIND},
                                   {"--calibrate", o->job.calibrate, MACHINE_KIND},
                                   {"--log", o->train.log, LOG_KIND},
                                   {"--plot", o->train.plot, PLOT_KIND},
                                   {"--save", train_checkpoint_path(a, o->train.save, false), CHECKPOINT_KIND}};
    for (int i = 0; i < (int)(sizeof file / sizeof *file); i++)
        if (file[i][1]) {
            out_check(file[i][0], file[i][1], file[i][2]);
            folder_keep(file[i][1]);
        }
    if (o->job.output)
        out_check_folder("--output", o->job.output);
}

/* A folder of several ranks without a launcher: they become threads. */
static void start_threads(struct arena *a, const struct comm *comm, struct job_options *o)
{
    int ranks = 1;
    if (comm->size > 1 || o->local || o->calibrate)
        return;
    if (o->doctor)
        o->local = cores_of_machine() > 1 ? 2 : 1;
    for (int i = 0; i < o->paths.text.n; i++) {
        int n = job_rank_files(a, o->paths.text.at[i]);
        ranks = n > ranks ? n : ranks;
    }
    if (ranks == 1)
        return;
    o->local = ranks * o->groups;
    diag_tell("the %lld ranks are threads of this process (mpirun -n %lld starts a process for each)", (long long)o->local,
              (long long)o->local);
}

/* From now on each loss is told, also while the others load. */
static void begin_supervised(struct comm *comm, const char *build)
{
    if (strcmp(build, TPC_BUILD) != 0)
        fail_usage("the supervisor is of another build than this program");
    supervised_start(comm->rank == 0);
    if (comm->insist)
        comm->insist(comm);
}

int main(int argc, char **argv)
{
    struct arena *a = arena_new();
    struct run_options o;
    diag_setup("tpc-run", 0);
    streams_start();
    if (argc == 4 && strcmp(argv[1], "--answer") == 0)
        return restart_answer(strcmp(argv[2], TPC_BUILD) == 0, argv[3]);
    stack_start();
    signal_watch(!launch_variable()); /* a launcher reports the end of its processes itself */
    struct comm *comm = launch_comm(&argc, &argv);
    if (comm->rank)
        comm->barrier(comm);
    run_options_read(a, &o, argc, argv); /* rank 0 first, so that a wrong command line is reported once */
    if (o.job.supervised)
        begin_supervised(comm, o.supervised);
    if (!comm->rank)
        check_files(a, &o);
    find_missing(a, comm->rank, replica_rank(comm, &o.job), &o.job.paths);
    if (!comm->rank)
        comm->barrier(comm);
    if (o.timeout)
        comm->timeout = (double)number_read("--timeout", o.timeout, 0, INT32_MAX);
    job_agree(comm, "tpc-run " PACKAGE_VERSION ", build " TPC_BUILD, &o.settings);
    if (o.restart.given && comm->size > 1)
        fail_usage("--restart starts the ranks itself: give the launcher with --launch, as in tpc-run .. --restart --launch 'mpirun -n %d'",
                   comm->size);
    if (o.restart.given)
        return restart_run(a, &o, TPC_BUILD);
    start_threads(a, comm, &o.job);
    struct job job = {.options = &o.job, .train = &o.train, .serve = &o.serve, .launcher = comm->size > 1 ? launch_variable() : NULL};
    if (o.job.local > 0)
        comm_local_run((int)o.job.local, rank_main, &job);
    else
        rank_main(comm, &job);
    streams_end();
    comm->free(comm);
    arena_free(a);
    return job.failed ? 1 : 0;
}
