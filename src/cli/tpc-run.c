/* tpc-run: executes an ONNX model, or a folder of rank files that tpc-shard wrote: under mpirun (one process per rank), or with ranks as
 * threads of one process (--local N). Rank 0 speaks for all.
 *
 * Processes started by a launcher of another MPI library believe that they are alone; that is found by the launcher's variables and
 * refused, for each of them would run a different program than the user asked for. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "cli/args.h"
#include "decode/decode.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct arg_prose usage[] = {
    {"mpirun -n N tpc-run DIR [options]", "ranks are processes"},
    {"tpc-run DIR --local N [options]", "ranks are threads"},
    {"tpc-run MODEL.onnx [options]", "one rank, unsharded"},
    {"tpc-run ENCODER DECODER STEP --generate N ...", "graphs in a row, the last for every further token"},
    {"mpirun -n N tpc-run --calibrate FILE", "measures this machine, for tpc-shard --machine FILE"},
    {NULL, NULL}};
static const struct arg_prose description[] = {
    {"",
     "tpc-run executes an ONNX model on CPUs, or a folder that tpc-shard wrote, whose ranks are processes started by mpirun or threads of "
     "one process. It reads only the emitted ONNX files. Inputs and outputs are those of the whole model."},
    {"", "The last line says PASSED or FAILED with the worst difference after --test-data or --check, or the time."},
    {NULL, NULL}};
static const struct arg_prose environment[] = {
    {"OMPI_ALLOW_RUN_AS_ROOT, OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "Open MPI runs as root where both are 1"},
    {"OMPI_MCA_rmaps_base_oversubscribe", "Open MPI runs more ranks than there are cores where it is 1"},
    {NULL, NULL}};
static const struct arg_prose examples[] = {
    {"mpirun -n 4 tpc-run model.tp4 --input input_ids=ids.npy --output out", "Run four ranks on given inputs; made-up ones need --random:"},
    {"tpc-run model.tp4 --local 4 --test-data test_data_set_0 --check model.onnx",
     "Compare with stored outputs and with the unsharded run:"},
    {"tpc-run model.tp2 --local 2 --random --dim batch_size=1 --dim sequence_length=128 --dim past_sequence_length=0 --repeat 10 --stats",
     "Measure on random inputs; --dim sets the size of each symbolic dimension:"},
    {"mpirun -n 2 tpc-run model.tp2 --generate 64 --input input_ids=ids.npy", "Decode 64 tokens after a prompt:"},
    {NULL, NULL}};

/* The command line as given; what needs no reading is in job. */
struct run_options {
    struct job_options job;
    struct text_list dim, bind, external_root;
    struct text_maybe random, stats;
    const char *eos, *start, *groups;
    bool verbose;
};

static void check_calibration(const struct run_options *o)
{
    const struct job_options *job = &o->job;
    bool runs = job->paths.text.n || job->generate || job->test_data || job->check || job->output || o->random.given || o->dim.text.n ||
        o->bind.text.n || job->input.text.n || job->repeat > 1 || o->stats.given || o->groups || job->write_shards || o->eos || o->start ||
        job->role.text.n || o->external_root.text.n || job->rtol >= 0 || job->atol >= 0 || job->rel >= 0;
    if (runs)
        fail_usage("--calibrate runs no model: it goes with --local, --threads, --quiet and --verbose alone");
}

static void check_shards(const struct run_options *o)
{
    const struct job_options *job = &o->job;
    bool shards = job->write_shards, alone = !job->generate && !o->groups;
    if (job->write_shards && !job->output)
        fail_usage("--pieces says how --output writes: give that too");
    for (int i = 0; i < job->input.text.n; i++)
        shards = shards || strstr(job->input.text.at[i], "{rank}");
    if (shards && !alone)
        fail_usage("pieces of ranks (--pieces, {rank} in --input) go with neither --groups nor --generate");
}

static void check_options(const struct run_options *o)
{
    const struct job_options *job = &o->job;
    int n = job->paths.text.n;
    if (job->calibrate) {
        check_calibration(o);
        return;
    }
    bool compares = job->test_data || job->check || o->random.given || o->dim.text.n || job->repeat > 1;
    if (n < 1 || (n > 1 && !job->generate))
        fail_usage("expected one model or folder, found %d: --help shows the usage", n);
    check_shards(o);
    if (job->generate && compares)
        fail_usage("--generate takes none of --test-data, --check, --random, --dim and --repeat");
    if (!job->generate && (o->eos || o->start || job->role.text.n))
        fail_usage("--eos, --start and --role are for --generate");
    if (job->repeat < 1)
        fail_usage("--repeat is 0, expected at least 1");
}

static void parse_run_options(struct arena *a, struct run_options *o, int argc, char **argv)
{
    const struct arg table[] = {
        {"local", 0, ARG_RANKS, &o->job.local, "N", "run N ranks as threads of this process"},
        {"groups", 0, ARG_TEXT, &o->groups, "G[:SYMBOL]", "run G replicas, each on its part of the batch"},
        {"input", 0, ARG_LIST, &o->job.input, "[K:]NAME=FILE", "an input (of graph K), .npy or .pb; each rank's own where FILE has {rank}"},
        {"random", 0, ARG_MAYBE_INT, &o->random, "[SEED]", "make the inputs that are not given"},
        {"dim", 0, ARG_LIST, &o->dim, "NAME=INT", "size of a symbolic dimension of made inputs (repeatable)"},
        {"bind", 0, ARG_LIST, &o->bind, "NAME=VALUE,..", "fix an input of a model to a constant (repeatable)"},
        {"output", 'o', ARG_TEXT, &o->job.output, "DIR",
         "write outputs as .npy (default: a digest of each); of the last run of --generate"},
        {"pieces", 0, ARG_FLAG, &o->job.write_shards, NULL, "with --output: what each rank holds, as NAME.rank-R.npy"},
        {"test-data", 0, ARG_TEXT, &o->job.test_data, "DIR", "inputs from input_*.pb, compare with output_*.pb"},
        {"external-root", 0, ARG_LIST, &o->external_root, "DIR", "weights of a model may lie there too (repeatable)"},
        {"rtol", 0, ARG_REAL, &o->job.rtol, "X", "|a-b| <= rtol |b| + atol max(1, max|b|) (default: by type)"},
        {"atol", 0, ARG_REAL, &o->job.atol, "X", "see --rtol"},
        {"check", 0, ARG_TEXT, &o->job.check, "MODEL", "compare with the unsharded run of MODEL"},
        {"rel", 0, ARG_REAL, &o->job.rel, "X", "with --check: max|a-b| <= rel max|b| (default: by type)"},
        {"generate", 0, ARG_INT, &o->job.generate, "N", "decode N tokens greedily; state stays on its ranks"},
        {"eos", 0, ARG_TEXT, &o->eos, "ID", "with --generate: the token that ends a row"},
        {"start", 0, ARG_TEXT, &o->start, "ID", "with --generate: the first token of a decoder behind an encoder (0)"},
        {"role", 0, ARG_LIST, &o->job.role, "INPUT=ROLE", "with --generate: tokens, mask, positions, constant ... (repeatable)"},
        {"repeat", 0, ARG_INT, &o->job.repeat, "N", "run N times and show the times"},
        {"calibrate", 0, ARG_TEXT, &o->job.calibrate, "FILE", "measure this machine into a profile for tpc-shard --machine"},
        {"stats", 0, ARG_MAYBE, &o->stats, "[=FILE]", "time, communication and memory of every rank; FILE: as JSON"},
        {"threads", 0, ARG_INT, &o->job.threads, "N", "threads per rank (default: cores / ranks on this machine)"},
        {"deterministic", 0, ARG_FLAG, &o->job.deterministic, NULL, "f32 results of N ranks are those of one, bit for bit"},
        {"quiet", 'q', ARG_FLAG, &o->job.quiet, NULL, "no messages but errors"},
        {"verbose", 'v', ARG_FLAG, &o->verbose, NULL, "explain"},
    };
    const struct args args = {"tpc-run",
                              "execute an ONNX model, or the ranks of a sharded one",
                              usage,
                              table,
                              (int)(sizeof table / sizeof *table),
                              description,
                              environment,
                              examples};
    o->job.paths = args_parse(a, &args, argc, argv);
    check_options(o);
}

static int64_t token_id(const char *what, const char *text)
{
    return text ? number_read(what, text, 0, INT32_MAX) : -1;
}

/* What the options' texts mean. */
static void read_run_options(struct arena *a, struct run_options *o, int argc, char **argv)
{
    struct job_options *job = &o->job;
    *o = (struct run_options){.job = {.rtol = -1, .atol = -1, .rel = -1, .repeat = 1}};
    parse_run_options(a, o, argc, argv);
    replica_read(a, o->groups, job);
    diag_setup("tpc-run", job->quiet ? -1 : o->verbose);
    for (int i = 0; i < o->dim.text.n; i++)
        VEC_PUSH(a, &job->dims.list, args_binding(a, o->dim.text.at[i]));
    for (int i = 0; i < o->bind.text.n; i++)
        VEC_PUSH(a, &job->fixed.list, o->bind.text.at[i]);
    job->external_roots = args_folders(&o->external_root);
    job->random = o->random.given;
    job->seed = o->random.text ? (uint64_t)number_read("--random", o->random.text, 0, INT64_MAX) : 0;
    job->stats = o->stats.given;
    job->stats_path = o->stats.text;
    job->eos = token_id("--eos", o->eos);
    job->start = token_id("--start", o->start);
}

/* ---- one rank ----------------------------------------------------------------------------------------------------------------- */

/* Cores for one rank: those it is bound to, or its part of all. */
static int thread_count(const struct comm *comm, const struct job_options *o)
{
    cpu_set_t set;
    if (o->threads)
        return (int)o->threads;
    long all = sysconf(_SC_NPROCESSORS_ONLN);
    long mine = sched_getaffinity(0, sizeof set, &set) ? all : CPU_COUNT(&set);
    if (strcmp(comm->kind, "local") == 0 || mine >= all)
        mine /= comm->local_size;
    return mine < 1 ? 1 : (int)mine;
}

struct job {
    const struct job_options *options;
    bool failed;
};

static void rank_main(struct comm *comm, void *data)
{
    struct job *job = data;
    struct arena *a = arena_new();
    int threads = thread_count(comm, job->options);
    struct replicas replicas = replica_form(comm, job->options);
    if (job->options->calibrate)
        job_calibrate(a, comm, job->options, threads);
    else if (job->options->generate)
        generate_run(a, &replicas, job->options, threads);
    else if (job_run(a, &replicas, job->options, threads))
        job->failed = true;
    replica_leave(&replicas);
    arena_free(a);
}

/* ---- start --------------------------------------------------------------------------------------------------------------------- */

/* The variable by which a launcher says that it started several processes. */
static const char *launched(void)
{
    static const char *const name[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"};
    for (int i = 0; i < (int)(sizeof name / sizeof *name); i++) {
        const char *text = getenv(name[i]);
        if (text && atoi(text) > 1)
            return name[i];
    }
    return NULL;
}

/* Which of the started processes speaks when none knows of the others. */
static bool started_first(void)
{
    static const char *const name[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"};
    for (int i = 0; i < (int)(sizeof name / sizeof *name); i++) {
        const char *text = getenv(name[i]);
        if (text)
            return atoi(text) == 0;
    }
    return true;
}

static bool has_option(int argc, char **argv, const char *option)
{
    size_t n = strlen(option);
    for (int i = 1; i < argc; i++)
        if (strncmp(argv[i], option, n) == 0 && (argv[i][n] == '\0' || argv[i][n] == '='))
            return true;
    return false;
}

static struct comm *start_comm(int *argc, char ***argv)
{
    const char *variable = launched(), *library = comm_mpi_library();
    if (!variable || has_option(*argc, *argv, "--local"))
        return comm_self();
    struct comm *comm = comm_mpi(argc, argv);
    if (!comm && !started_first())
        exit(1);
    if (!comm)
        fail("%s is %s, but this program was built without MPI: use --local", variable, getenv(variable));
    if (comm->size > 1)
        return comm;
    comm->free(comm);
    if (!started_first())
        exit(1);
    fail(
        "%s is %s, but each process is alone: this program is linked with %s, and another library's launcher started it; use the mpirun of that library, or --local",
        variable, getenv(variable), library);
}

int main(int argc, char **argv)
{
    struct arena *a = arena_new();
    struct run_options o;
    diag_setup("tpc-run", 0);
    signal_watch(!launched()); /* a launcher tells of its processes' ends itself */
    struct comm *comm = start_comm(&argc, &argv);
    if (comm->rank)
        comm->barrier(comm);
    read_run_options(a, &o, argc, argv); /* rank 0 first: a wrong command line is said once */
    if (!comm->rank)
        comm->barrier(comm);
    struct job job = {.options = &o.job};
    if (o.job.local > 0)
        comm_local_run((int)o.job.local, rank_main, &job);
    else
        rank_main(comm, &job);
    comm->free(comm);
    arena_free(a);
    return job.failed ? 1 : 0;
}
