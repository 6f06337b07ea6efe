/* run: one rank's part of a run: inputs, the rows of its replica, the repeated run, then outputs, comparisons and times. */
#include "ir/rank_meta.h"
#include "job/io/io.h"
#include "job/job.h"
#include "job/timing/timing.h"
#include "onnx/onnx.h"
#include "op/canon/canon.h"
#include "plan/facts/facts.h"
#include "plan/plan.h"

#include <string.h>

/* Runs --repeat times. The first run packs weights and allocates memory: it counts neither in statistics nor in times of nodes. */
static double *run_repeated(struct arena *a, struct comm *all, struct session *s, const struct job_options *o, bool runs,
                            const struct tensor *in, struct tensor *out)
{
    double *seconds = NEWN(a, double, o->repeat);
    if (o->repeat == 1 && (o->profile || o->trace)) {
        (void)job_timed_run(all, s, in, out, runs);
        session_reset_stats(s);
    }
    for (int64_t i = 0; i < o->repeat; i++) {
        if (i == 1)
            session_reset_stats(s);
        seconds[i] = job_timed_run(all, s, in, out, runs);
    }
    return seconds;
}

/* The elements of a sequence, or the content of an optional. False: the file has a tensor. */
static bool compare_list(struct arena *a, const struct graph *g, const struct tensor *out, const char *path, const struct tolerance *t,
                         struct verdict *v)
{
    struct tensor_list want = sequence_read_pb(a, path);
    if (!want.name)
        return false;
    bool whole = want.n == 1 && graph_output_named(g, want.name) >= 0;
    for (int k = 0; k < want.n; k++) {
        const char *name = whole ? want.name : arena_printf(a, "%s.%d", want.name, k);
        int i = graph_output_named(g, name);
        if (i < 0)
            fail("%s: '%s' has %d elements, and the run made %d", path, want.name, want.n, k);
        compare_close(v, name, &out[i], &want.at[k], t->rtol, t->atol);
    }
    if (graph_output_named(g, arena_printf(a, "%s.%d", want.name, want.n)) >= 0)
        fail("%s: '%s' has %d elements, and the run made more", path, want.name, want.n);
    return true;
}

static void compare_test_data(struct arena *a, const struct graph *g, const struct tensor *out, const struct job_options *o,
                              const struct tolerance *t, struct verdict *v)
{
    for (int k = 0;; k++) {
        const char *path = path_join(a, o->test_data, arena_printf(a, "output_%d.pb", k)), *name = NULL;
        if (!path_exists(path))
            break;
        v->source = path;
        if (compare_list(a, g, out, path, t, v))
            continue;
        struct tensor want = tensor_read_pb(a, path, &name);
        int i = name && *name ? graph_output_named(g, name) : -1;
        if (i < 0)
            i = k;
        if (i >= g->outputs.n)
            fail("%s: the model has %d outputs", path, g->outputs.n);
        compare_close(v, g->outputs.at[i]->name, &out[i], &want, t->rtol, t->atol);
    }
    if (v->outputs == 0)
        fail("%s: has no output_0.pb", o->test_data);
}

/* The inputs in the order of another graph of the same model. */
static struct tensor *order_inputs(struct arena *a, const struct graph *g, const struct tensor *in, const struct graph *unsharded,
                                   const struct job_options *o)
{
    struct tensor *ordered = NEWN(a, struct tensor, unsharded->inputs.n);
    if (unsharded->inputs.n != g->inputs.n)
        fail("%s has %d inputs, %s has %d", o->check.text.at[0], unsharded->inputs.n, o->paths.text.at[0], g->inputs.n);
    for (int i = 0; i < g->inputs.n; i++) {
        int k = 0;
        while (k < g->inputs.n && strcmp(g->inputs.at[k]->name, unsharded->inputs.at[i]->name))
            k++;
        if (k == g->inputs.n)
            fail("%s has an input '%s' that %s lacks", o->check.text.at[0], unsharded->inputs.at[i]->name, o->paths.text.at[0]);
        ordered[i] = in[k];
    }
    return ordered;
}

/* The model of --check on one rank. */
struct unsharded_run {
    struct graph *graph;
    struct tensor *out;
};

/* Whether the folder was made for an input with an initializer. */
static bool is_given(const void *tensors, struct arena *a, const char *input)
{
    const struct graph *g = ((const struct job_tensors *)tensors)->of;
    (void)a;
    return graph_input_named(g, input) >= 0;
}

static struct unsharded_run run_unsharded(struct arena *a, const struct graph *g, const struct tensor *in, const struct job_options *o,
                                          int threads)
{
    const struct bound_inputs fixed = op_bound_inputs(g);
    struct size_source sizes = {.state = job_state_sizes_of, .given = is_given, .data = &(struct job_tensors){g, in}};
    struct unsharded_run w = {.graph = job_load_model(a, o->check.text.at[0], &fixed, &sizes, o)};
    struct comm *self = comm_self();
    job_fuse(w.graph, self, o);
    job_check_memory(self, w.graph, o);
    struct session *s = session_new(
        w.graph, self,
        (struct session_options){.threads = threads, .deterministic = o->deterministic, .narrow = o->fast, .force = o->force});
    w.out = NEWN(a, struct tensor, w.graph->outputs.n);
    session_run(s, order_inputs(a, g, in, w.graph, o), w.out);
    for (int i = 0; i < w.graph->outputs.n; i++) {
        struct tensor copy = session_gather(s, a, i, &w.out[i]);
        if (tensor_bytes(&copy))
            copy.data = memcpy(arena_alloc(a, tensor_bytes(&copy)), copy.data, tensor_bytes(&copy));
        w.out[i] = copy;
    }
    session_free(s);
    self->free(self);
    return w;
}

/* A difference counts if it exceeds both rel and the effect of the order of sums on the unsharded model with these inputs: deep models, and
 * outputs that cancel to almost nothing, have no more digits. A second run measures that, with sums in the order of --deterministic.
 * Splitting plays no part in it. */
static void compare_unsharded(struct arena *a, const struct graph *g, const struct tensor *in, const struct tensor *out,
                              const struct job_options *o, const struct tolerance *t, int threads, struct verdict *v)
{
    const struct unsharded_run want = run_unsharded(a, g, in, o, threads);
    struct unsharded_run other = {0};
    v->source = arena_printf(a, "the unsharded %s", o->check.text.at[0]);
    struct job_options ordered = *o;
    ordered.deterministic = true;
    ordered.fast = false;
    for (int i = 0; i < want.graph->outputs.n; i++) {
        const char *name = want.graph->outputs.at[i]->name;
        int k = graph_output_named(g, name);
        double allowed = t->rel, noise;
        if (k < 0)
            fail("%s has an output '%s' that %s lacks", o->check.text.at[0], name, o->paths.text.at[0]);
        if (!o->deterministic && o->rel < 0 && compare_difference(&out[k], &want.out[i]) > allowed) {
            other = other.out ? other : run_unsharded(a, g, in, &ordered, threads);
            noise = compare_difference(&other.out[i], &want.out[i]);
            allowed = compare_allowance(want.graph, allowed, noise);
            explain("%s: output '%s': another order of sums changes it by %.3g of its largest, so %.3g is allowed", o->check.text.at[0],
                    name, noise, allowed);
        }
        compare_relative(v, g->outputs.at[k]->name, &out[k], &want.out[i], allowed, 0);
    }
}

/* By the types in the graphs of all ranks. Every rank calls it. */
static struct tolerance tolerance_of_all(struct comm *all, const struct graph *g, const struct job_options *o)
{
    const struct tolerance own = compare_tolerance(g, o);
    double each[] = {own.rtol, own.atol, own.rel}, most[3];
    all->id = 0;
    all->name = "tolerance of comparisons";
    all->allreduce(all, each, most, 3, DT_F64, RED_MAX);
    return (struct tolerance){most[0], most[1], most[2]};
}

/* Rank 0 writes outputs, compares and prints. g: with the outputs of the model. Returns true if a comparison failed. */
static bool conclude(struct arena *a, const struct graph *g, const struct tensor *in, const struct tensor *out, const struct job_options *o,
                     const struct tolerance *t, int threads, const double *seconds)
{
    struct verdict v = {0};
    bool compares = o->test_data || o->check.text.n;
    if (!o->write_shards && (o->output || (!compares && o->repeat == 1)))
        outputs_write(a, g, out, o->output);
    if (o->test_data)
        compare_test_data(a, g, out, o, t, &v);
    if (o->check.text.n)
        compare_unsharded(a, g, in, out, o, t, threads, &v);
    if ((!compares && !diag_is_quiet()) || o->repeat > 1)
        outputs_print_times(seconds, o->repeat);
    if (compares)
        compare_print(g, &v);
    return v.failed;
}

/* Gathers the global outputs of the model on rank 0 of the job: of each stage, then the rows of each replica. runs: this replica has
 * run. */
static struct tensor *join_outputs(struct arena *a, const struct replicas *t, struct pipeline *p, const struct batch_shard *d,
                                   struct graph *g, struct session *s, bool runs, const struct tensor *shards)
{
    const struct graph *ends = job_model_ends(a, g);
    struct tensor *own = NEWN(a, struct tensor, g->outputs.n + 1), *out = NEWN(a, struct tensor, ends->outputs.n + 1);
    for (int i = 0; runs && i < g->outputs.n; i++)
        own[i] = session_gather(s, a, i, &shards[i]);
    const struct tensor *made = p && runs ? job_model_outputs(a, p, g, own) : p ? out : own;
    for (int i = 0; i < ends->outputs.n; i++) {
        const struct type *type = p ? &ends->outputs.at[i]->type : session_output_type(s, i);
        out[i] = replica_gather_output(a, t, d, type, ends->outputs.at[i]->name, &made[i]);
    }
    return out;
}

/* The sizes of made-up inputs of a model that is not compiled: those that a plan would assume. Rank files contain their own. */
void job_note_workloads(struct graph *g, const char *path)
{
    struct options options = {.model = path};
    struct plan plan = {0};
    if (g->rank_meta)
        return;
    plan_workloads(g, &options, &plan);
    op_note_inputs(g->arena, g, g);
    for (int i = 0; i < plan.workloads.n; i++)
        rank_meta_set_workload(g, g, i + 1, &plan.workloads.at[i].dims);
}

/* Whether only run times are requested. */
static bool asks_for_times(const struct job_options *o)
{
    return !o->output && !o->check.text.n && !o->stats && !o->profile && !o->trace;
}

/* If results of a run without inputs are requested, its inputs are made up. */
static struct job_options with_inputs(const struct replicas *t, const struct graph *g, const struct job_options *given)
{
    struct job_options o = *given;
    if (!job_gives_nothing(given) || !g->inputs.n)
        return o;
    o.random = true;
    if (t->all->rank == 0)
        diag_tell("inputs are made up, because none is given");
    return o;
}

bool job_run(struct arena *a, const struct replicas *t, const struct job_options *given, int threads)
{
    struct graph *g = job_load(a, t->process_group, given->paths.text.at[0], given);
    struct pipeline *p = pipeline_form(a, t->process_group, g);
    struct comm *ranks = p ? pipeline_stage(p) : t->process_group;
    const bool alone = given->bench || (job_gives_nothing(given) && g->inputs.n && asks_for_times(given));
    const struct job_options filled = alone ? *given : with_inputs(t, g, given), *o = &filled;
    if (o->random || alone)
        job_note_workloads(g, given->paths.text.at[0]);
    job_fuse(g, ranks, o);
    job_check_memory(t->all, g, o);
    struct session *s = session_new(g, ranks,
                                    (struct session_options){.threads = threads,
                                                             .pipeline = p,
                                                             .verify = o->verify,
                                                             .deterministic = o->deterministic,
                                                             .narrow = o->fast,
                                                             .wire = o->wire,
                                                             .force = o->force,
                                                             .profile = o->profile || o->trace});
    if (alone) {
        bench_run(a, t, s, g, o, threads);
        session_free(s);
        pipeline_free(p);
        return false;
    }
    struct tensor *in = job_inputs(a, t->all, s, g, o), *own = NEWN(a, struct tensor, g->inputs.n),
                  *shards = NEWN(a, struct tensor, g->outputs.n);
    struct batch_shard d = replica_shard_batch(t, g, s, in);
    bool runs = replica_runs(t, &d);
    memcpy(own, in, (size_t)g->inputs.n * sizeof *in);
    replica_take_rows(a, &d, g, s, own);
    double *seconds = run_repeated(a, t->all, s, o, runs, own, shards);
    if (o->stats)
        stats_report(a, t, &d, s, 0, NULL, o->stats_path);
    job_tell_times(a, t->all, s, o->paths.text.at[0], o);
    if (o->write_shards)
        outputs_write_shards(a, t->process_group, g, s, shards, o->output);
    for (int i = 0; o->check.text.n && runs && i < g->inputs.n; i++)
        in[i] = session_gather_input(s, a, i, &in[i]);
    struct tensor *out = join_outputs(a, t, p, &d, g, s, runs, shards);
    const struct tolerance tolerance = tolerance_of_all(t->all, g, o);
    bool failed = t->all->rank == 0 && conclude(a, job_model_ends(a, g), in, out, o, &tolerance, threads, seconds);
    t->all->barrier(t->all);
    session_free(s);
    pipeline_free(p);
    return failed;
}
