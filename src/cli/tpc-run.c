/* tpc-run: executes an ONNX model, or a folder of rank files that tpc-shard wrote: under mpirun (one process per rank), or with ranks as
 * threads of one process (--local N). Rank 0 speaks for all.
 *
 * Processes started by a launcher of another MPI library believe that they are alone; that is found by the launcher's variables and
 * refused, for each of them would run a different program than the user asked for. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "decode/generate.h"
#include "onnx/onnx.h"
#include "op/canon/canon.h"

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
    {"tpc-run model.tp2 --local 2 --random --dim sequence_length=128 --repeat 10 --stats", "Measure with made inputs:"},
    {"mpirun -n 2 tpc-run model.tp2 --generate 64 --input input_ids=ids.npy", "Decode 64 tokens after a prompt:"},
    {NULL, NULL}};

static void check_calibration(const struct run_options *o)
{
    bool runs = o->paths.text.n || o->generate || o->test_data || o->check || o->output || o->random.given || o->dim.text.n ||
        o->bind.text.n || o->input.text.n || o->repeat > 1 || o->stats.given || o->grouped || o->pieces || o->eos || o->start ||
        o->role.text.n || o->external_root.text.n || o->rtol >= 0 || o->atol >= 0 || o->rel >= 0;
    if (runs)
        fail_usage("--calibrate runs no model: it goes with --local, --threads, --quiet and --verbose alone");
}

static void check_pieces(const struct run_options *o)
{
    bool pieces = o->pieces, alone = !o->generate && !o->grouped;
    if (o->pieces && !o->output)
        fail_usage("--pieces says how --output writes: give that too");
    for (int i = 0; i < o->input.text.n; i++)
        pieces = pieces || strstr(o->input.text.at[i], "{rank}");
    if (pieces && !alone)
        fail_usage("pieces of ranks (--pieces, {rank} in --input) go with neither --groups nor --generate");
}

static void check_options(const struct run_options *o)
{
    int n = o->paths.text.n;
    if (o->calibrate) {
        check_calibration(o);
        return;
    }
    bool compares = o->test_data || o->check || o->random.given || o->dim.text.n || o->repeat > 1;
    if (n < 1 || (n > 1 && !o->generate))
        fail_usage("expected one model or folder, found %d: --help shows the usage", n);
    check_pieces(o);
    if (o->generate && compares)
        fail_usage("--generate takes none of --test-data, --check, --random, --dim and --repeat");
    if (!o->generate && (o->eos || o->start || o->role.text.n))
        fail_usage("--eos, --start and --role are for --generate");
}

static void read_options(struct arena *a, struct run_options *o, int argc, char **argv)
{
    *o = (struct run_options){.rtol = -1, .atol = -1, .rel = -1, .repeat = 1};
    const struct arg table[] = {
        {"local", 0, ARG_INT, &o->local, "N", "run N ranks as threads of this process"},
        {"groups", 0, ARG_TEXT, &o->grouped, "G[:SYMBOL]", "run G replicas, each on its part of the batch"},
        {"input", 0, ARG_LIST, &o->input, "[K:]NAME=FILE", "an input (of graph K), .npy or .pb; each rank's own where FILE has {rank}"},
        {"random", 0, ARG_MAYBE_INT, &o->random, "[SEED]", "make the inputs that are not given"},
        {"dim", 0, ARG_LIST, &o->dim, "NAME=INT", "size of a symbolic dimension of made inputs (repeatable)"},
        {"bind", 0, ARG_LIST, &o->bind, "NAME=VALUE,..", "fix an input of a model to a constant (repeatable)"},
        {"output", 'o', ARG_TEXT, &o->output, "DIR", "write outputs as .npy (default: a digest of each); of the last run of --generate"},
        {"pieces", 0, ARG_FLAG, &o->pieces, NULL, "with --output: what each rank holds, as NAME.rank-R.npy"},
        {"test-data", 0, ARG_TEXT, &o->test_data, "DIR", "inputs from input_*.pb, compare with output_*.pb"},
        {"external-root", 0, ARG_LIST, &o->external_root, "DIR", "weights of a model may lie there too (repeatable)"},
        {"rtol", 0, ARG_REAL, &o->rtol, "X", "|a-b| <= rtol |b| + atol max(1, max|b|) (default: by type)"},
        {"atol", 0, ARG_REAL, &o->atol, "X", "see --rtol"},
        {"check", 0, ARG_TEXT, &o->check, "MODEL", "compare with the unsharded run of MODEL"},
        {"rel", 0, ARG_REAL, &o->rel, "X", "with --check: max|a-b| <= rel max|b| (default: by type)"},
        {"generate", 0, ARG_INT, &o->generate, "N", "decode N tokens greedily; state stays on its ranks"},
        {"eos", 0, ARG_TEXT, &o->eos, "ID", "with --generate: the token that ends a row"},
        {"start", 0, ARG_TEXT, &o->start, "ID", "with --generate: the first token of a decoder behind an encoder (0)"},
        {"role", 0, ARG_LIST, &o->role, "INPUT=ROLE", "with --generate: tokens, mask, positions, constant ... (repeatable)"},
        {"repeat", 0, ARG_INT, &o->repeat, "N", "run N times and show the times"},
        {"calibrate", 0, ARG_TEXT, &o->calibrate, "FILE", "measure this machine into a profile for tpc-shard --machine"},
        {"stats", 0, ARG_MAYBE, &o->stats, "[=FILE]", "time, communication and memory of every rank; FILE: as JSON"},
        {"threads", 0, ARG_INT, &o->threads, "N", "threads per rank (default: cores / ranks on this machine)"},
        {"deterministic", 0, ARG_FLAG, &o->deterministic, NULL, "f32 results of N ranks are those of one, bit for bit"},
        {"quiet", 'q', ARG_FLAG, &o->quiet, NULL, "no messages but errors"},
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
    o->paths = args_parse(a, &args, argc, argv);
    check_options(o);
    groups_read(a, o);
    diag_setup("tpc-run", o->quiet ? -1 : o->verbose);
    if (o->repeat < 1)
        fail_usage("--repeat is 0, expected at least 1");
    if (o->local > 1024)
        fail_usage("--local is %lld, expected at most 1024", (long long)o->local);
}

/* ---- one rank ----------------------------------------------------------------------------------------------------------------- */

/* Cores for one rank: those it is bound to, or its part of all. */
static int thread_count(const struct comm *comm, const struct run_options *o)
{
    cpu_set_t set;
    if (o->threads)
        return (int)o->threads;
    long all = sysconf(_SC_NPROCESSORS_ONLN);
    long mine = sched_getaffinity(0, sizeof set, &set) ? all : CPU_COUNT(&set);
    if (!strcmp(comm->kind, "local") || mine >= all)
        mine /= comm->local_size;
    return mine < 1 ? 1 : (int)mine;
}

/* The rows of all groups take as long as those of the slowest. */
static double *run_repeated(struct arena *a, struct comm *all, struct session *s, const struct run_options *o, bool runs,
                            const struct tensor *in, struct tensor *out)
{
    double *seconds = NEWN(a, double, o->repeat);
    for (int64_t i = 0; i < o->repeat; i++) {
        if (i == 1)
            session_reset_stats(s);
        all->barrier(all);
        double start = clock_seconds();
        if (runs)
            session_run(s, in, out);
        all->barrier(all);
        seconds[i] = clock_seconds() - start;
    }
    return seconds;
}

static int find_output(const struct graph *g, const char *name)
{
    for (int i = 0; i < g->outputs.n; i++)
        if (!strcmp(g->outputs.at[i]->name, name))
            return i;
    return -1;
}

static void compare_test_data(struct arena *a, const struct graph *g, const struct tensor *out, const struct run_options *o,
                              struct verdict *v)
{
    const struct tolerance t = tolerance_of(g, o);
    for (int k = 0;; k++) {
        const char *path = path_join(a, o->test_data, arena_printf(a, "output_%d.pb", k)), *name = NULL;
        if (!path_exists(path))
            break;
        struct tensor want = tensor_read_pb(a, path, &name);
        int i = name && *name ? find_output(g, name) : -1;
        if (i < 0)
            i = k;
        if (i >= g->outputs.n)
            fail("%s: the model has %d outputs", path, g->outputs.n);
        compare_close(v, g->outputs.at[i]->name, &out[i], &want, t.rtol, t.atol);
    }
    if (v->outputs == 0)
        fail("%s: has no output_0.pb", o->test_data);
}

static void compare_unsharded(struct arena *a, const struct graph *g, const struct tensor *in, const struct tensor *out,
                              const struct run_options *o, int threads, struct verdict *v)
{
    struct comm *self = comm_self();
    const struct bound_inputs fixed = op_bound_inputs(g);
    struct graph *whole = run_load_model(a, o->check, &fixed, o);
    if (whole->inputs.n != g->inputs.n)
        fail("%s has %d inputs, %s has %d", o->check, whole->inputs.n, o->paths.text.at[0], g->inputs.n);
    struct session *s = session_new(whole, self, (struct session_options){.threads = threads, .deterministic = o->deterministic});
    struct tensor *ordered = NEWN(a, struct tensor, whole->inputs.n), *want = NEWN(a, struct tensor, whole->outputs.n);
    for (int i = 0; i < g->inputs.n; i++) {
        int k = 0;
        while (k < g->inputs.n && strcmp(g->inputs.at[k]->name, whole->inputs.at[i]->name))
            k++;
        if (k == g->inputs.n)
            fail("%s has an input '%s' that %s has not", o->check, whole->inputs.at[i]->name, o->paths.text.at[0]);
        ordered[i] = in[k];
    }
    session_run(s, ordered, want);
    for (int i = 0; i < whole->outputs.n; i++) {
        int k = find_output(g, whole->outputs.at[i]->name);
        if (k < 0)
            fail("%s has an output '%s' that %s has not", o->check, whole->outputs.at[i]->name, o->paths.text.at[0]);
        compare_relative(v, g->outputs.at[k]->name, &out[k], &want[i], tolerance_of(g, o).rel);
    }
    session_free(s);
    self->free(self);
}

struct job {
    const struct run_options *options;
    bool failed;
};

/* What rank 0 says at the end. */
static bool conclude(struct arena *a, const struct graph *g, const struct tensor *in, const struct tensor *out, const struct run_options *o,
                     int threads, const double *seconds)
{
    struct verdict v = {0};
    bool compares = o->test_data || o->check;
    if (!o->pieces && (o->output || !compares))
        report_outputs(a, g, out, o->output);
    if (o->test_data)
        compare_test_data(a, g, out, o, &v);
    if (o->check)
        compare_unsharded(a, g, in, out, o, threads, &v);
    if (!compares || o->repeat > 1)
        report_times(seconds, o->repeat);
    if (compares)
        verdict_print(&v);
    return v.failed;
}

/* The global outputs, on rank 0 of all; runs: this group has run. */
static struct tensor *join_outputs(struct arena *a, const struct team *t, const struct dealt *d, const struct graph *g, struct session *s,
                                   bool runs, const struct tensor *pieces)
{
    struct tensor *out = NEWN(a, struct tensor, g->outputs.n);
    for (int i = 0; i < g->outputs.n; i++) {
        struct tensor own = runs ? session_gather(s, a, i, &pieces[i]) : (struct tensor){0};
        out[i] = team_join(a, t, d, s, i, g->outputs.at[i]->name, &own);
    }
    return out;
}

/* True when a comparison failed; on rank 0. */
static bool run_once(struct arena *a, const struct team *t, const struct run_options *o, int threads)
{
    struct graph *g = run_load(a, t->own, o->paths.text.at[0], o);
    struct session *s = session_new(g, t->own, (struct session_options){.threads = threads, .deterministic = o->deterministic});
    struct tensor *in = run_inputs(a, s, g, o), *own = NEWN(a, struct tensor, g->inputs.n), *pieces = NEWN(a, struct tensor, g->outputs.n);
    struct dealt d = team_deal(a, t, g, s, in);
    bool runs = team_runs(t, &d);
    memcpy(own, in, (size_t)g->inputs.n * sizeof *in);
    team_take(a, &d, g, s, own);
    double *seconds = run_repeated(a, t->all, s, o, runs, own, pieces);
    if (o->stats.given)
        report_stats(a, t, &d, s, NULL, o->stats.text);
    if (o->pieces)
        report_pieces(a, t->own, g, s, pieces, o->output);
    for (int i = 0; o->check && runs && i < g->inputs.n; i++)
        in[i] = session_gather_input(s, a, i, &in[i]);
    struct tensor *out = join_outputs(a, t, &d, g, s, runs, pieces);
    bool failed = t->all->rank == 0 && conclude(a, g, in, out, o, threads, seconds);
    t->all->barrier(t->all);
    session_free(s);
    return failed;
}

static void rank_main(struct comm *comm, void *data)
{
    struct job *job = data;
    struct arena *a = arena_new();
    int threads = thread_count(comm, job->options);
    struct team team = team_form(comm, job->options);
    if (job->options->calibrate)
        run_calibrate(a, comm, job->options, threads);
    else if (job->options->generate)
        run_generate(a, &team, job->options, threads);
    else if (run_once(a, &team, job->options, threads))
        job->failed = true;
    team_leave(&team);
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
        if (!strncmp(argv[i], option, n) && (argv[i][n] == '\0' || argv[i][n] == '='))
            return true;
    return false;
}

static struct comm *start(int *argc, char ***argv)
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
    signals_watch(!launched()); /* a launcher tells of its processes' ends itself */
    struct comm *comm = start(&argc, &argv);
    if (comm->rank)
        comm->barrier(comm);
    read_options(a, &o, argc, argv); /* rank 0 first: a wrong command line is said once */
    if (!comm->rank)
        comm->barrier(comm);
    struct job job = {.options = &o};
    if (o.local > 0)
        comm_local_run((int)o.local, rank_main, &job);
    else
        rank_main(comm, &job);
    comm->free(comm);
    arena_free(a);
    return job.failed ? 1 : 0;
}
