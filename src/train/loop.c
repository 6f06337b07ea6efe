/* loop: a step runs the graph on this replica's microbatches, sums the gradients of all replicas, and updates the weights. A loss is a sum
 * and a count, divided once, so it does not matter how rows are distributed. Each replica reduces, clips and updates its own parts of the
 * weights and gathers the rest. This sends as many bytes as an all-reduce and needs only a part of the optimizer's memory (ZeRO stage
 * 1). */
#include "ir/rank_meta.h"
#include "job/io/io.h"
#include "job/timing/timing.h"
#include "kern/core/core.h"
#include "kern/gemm/gemm.h"
#include "train/train.h"

#include <math.h>
#include <string.h>

struct training {
    struct arena *arena;
    const struct replicas *replicas;
    struct graph *graph;
    struct settings settings;
    struct microbatches microbatches;
    struct session *session; /* of the first microbatch */
    struct parameters parameters;
    struct joining *joining;       /* NULL: one replica */
    struct shared_weights *shared; /* NULL: no stages */
    struct kenv *env;
    struct validation *validation; /* NULL: none */
    struct train_log *log;         /* rank 0 */
    struct train_plot *plot;       /* rank 0 */
    bool adapters;                 /* only these are trained */
    const char *save;              /* NULL: no checkpoints; a folder, for adapters */
    struct claim *claim;           /* on that, on rank 0 */
    const char *kept;              /* the last checkpoint; NULL: none */
    int64_t kept_step;             /* after which it was written */
    struct kept *beside;           /* further checkpoints, on rank 0 */
    double best, validated;        /* the lowest validation loss, and that of the last step, if it was validated */
    double labels;                 /* in all steps of this run */
};

/* ---- one step ---------------------------------------------------------------------------------------------------------------- */

static const char *number_text(struct arena *a, double x)
{
    return isnan(x) ? "not a number" : isinf(x) ? "infinite" : arena_printf(a, "%g", x);
}

static _Noreturn void fail_diverged(const struct training *t, int64_t step, double loss, double norm)
{
    const char *kept = t->kept ? arena_printf(t->arena, "%s has the weights after step %lld", t->kept, (long long)t->kept_step)
                               : "no checkpoint has been written";
    fail("step %lld: the loss is %s and the norm of its gradient %s: %s; a lower --lr may help", (long long)step + 1,
         number_text(t->arena, loss), number_text(t->arena, norm), kept);
}

static void send_shared(struct training *t)
{
    if (!t->shared)
        return;
    join_parts_end(t->joining);
    shared_weights_send(t->shared, t->replicas, &t->parameters, t->session);
}

static void update(struct training *t, int64_t step, const struct step_sums *sums, struct step_report *report)
{
    const struct settings *s = &t->settings;
    double scale = sums->count > 0 ? 1 / sums->count : 0, norm = scale * sqrt(sums->square);
    report->norm = norm;
    report->rate = schedule_rate(s, step);
    if ((!isfinite(norm) || !isfinite(report->loss)) && t->plot)
        plot_draw(t->plot);
    if (!isfinite(norm) || !isfinite(report->loss))
        fail_diverged(t, step, report->loss, norm);
    if (s->clip > 0 && norm > s->clip)
        scale *= s->clip / (norm + 1e-6);
    for (int k = 0; k < t->parameters.buckets; k++) {
        optimizer_step(&t->parameters, &t->parameters.bucket[k], s, report->rate, scale, step, t->env);
        join_weights(t->joining, k);
    }
    join_parts_later(t->joining);
    send_shared(t);
}

/* A sum over replicas and microbatches equals that of one batch if no row depends on others. */
static void check_mixing(const struct training *t, bool force)
{
    const char *why = rank_meta_mixing(t->graph);
    bool divides = t->replicas->count > 1 || t->settings.accumulate > 1;
    if (why && divides && !force)
        fail("%s: --groups and --accumulate need rows that do not depend on each other: %s; with --force each part sees its own rows alone",
             graph_file(t->graph), why);
    if (why && divides && t->replicas->all->rank == 0)
        diag_tell("%s: rows may depend on each other: %s; so losses depend on --groups and --accumulate", graph_file(t->graph), why);
}

/* True if a rank was asked to stop. */
static bool train_step(struct training *t, int64_t step)
{
    double start = clock_seconds();
    struct step_sums sums = microbatches_run(&t->microbatches, step, &t->parameters, t->joining);
    join_gradients_end(t->joining);
    sums.square = clip_square(&t->parameters, t->env);
    sums = train_sums_join(t->replicas, sums);
    t->labels += sums.count;
    struct step_report r = {.step = step + 1, .steps = t->settings.steps, .labels = sums.count, .validation = NAN};
    r.loss = sums.count > 0 ? sums.loss / sums.count : 0;
    update(t, step, &sums, &r);
    r.seconds = clock_seconds() - start;
    if (t->validation && (r.step % t->settings.validate_every == 0 || r.step == r.steps || sums.ends > 0)) {
        join_parts_end(t->joining);
        r.validation = validate_loss(t->validation, &t->parameters, t->shared);
    }
    t->validated = r.validation;
    if (!(sums.count > 0))
        r.loss = NAN;
    if (t->replicas->all->rank == 0 && isnan(r.loss))
        diag_tell("step %lld: no row has a label, only padding: there is no loss", (long long)r.step);
    if (t->replicas->all->rank == 0) {
        log_step(t->log, &r);
        plot_step(t->plot, &r);
    }
    return sums.ends > 0;
}

/* ---- start ------------------------------------------------------------------------------------------------------------------- */

static void check_rows(const struct settings *s, const struct replicas *r)
{
    for (int k = 0; k < r->count; k++)
        if (replica_range_of(&r->shares, s->batch, k).count < s->accumulate)
            fail_usage("--batch is %lld, which leaves some of %d replica%s x %lld microbatches without a row", (long long)s->batch,
                       r->count, r->count == 1 ? "" : "s", (long long)s->accumulate);
}

static void start(struct training *t, const struct job_options *job, const struct train_options *o, struct texts *texts,
                  const struct session_options *options)
{
    struct graph *g = t->graph;
    struct microbatches *m = &t->microbatches;
    *m = microbatches_new(t->arena, t->replicas, g, &t->settings, *options);
    t->session = m->session[0];
    struct batch_source from = {.data = o->data, .mix = o->mix, .input = job->input, .slots = m->n, .texts = texts};
    m->batches = batch_new(t->arena, g, t->session, job, &from, &t->settings);
    t->parameters = parameters_new(t->arena, t->replicas, options->pipeline, g, t->session);
    microbatches_read(m, &t->parameters);
    t->joining = join_start(t->arena, t->replicas, &t->parameters, m->n, m->session);
    t->shared = shared_weights_new(t->arena, options->pipeline, g, m->n, m->in);
    session_stats_add(t->session, parameters_bytes(&t->parameters) + shared_weights_bytes(t->shared),
                      parameters_state_bytes(&t->parameters));
}

static void save(struct training *t, int64_t step)
{
    join_parts_end(t->joining);
    checkpoint_save(t->claim, t->replicas, t->session, &t->settings, step, t->validated, &t->parameters, t->joining);
    t->kept = t->save, t->kept_step = step;
    if (t->replicas->all->rank > 0)
        return;
    if (t->adapters)
        train_adapters_write(t->save, t->graph, &t->parameters);
    const char *best = kept_add(t->beside, t->graph, &t->parameters, step, t->validated);
    diag_tell("wrote %s%s%s, after step %lld", t->save, best ? " and " : "", best ? best : "", (long long)step);
}

/* From a step on, to the last one or until asked to stop. */
static void train_steps(struct training *t, int64_t step)
{
    const struct replicas *r = t->replicas;
    for (bool ends = false; step < t->settings.steps && !ends;) {
        ends = train_step(t, step++);
        bool best = t->validated < t->best;
        bool saves = t->save && (step % t->settings.save_every == 0 || step == t->settings.steps || ends || best);
        if ((ends || step == t->settings.steps) && !(t->labels > 0)) /* weights that learned nothing are no result */
            fail("no row of the steps up to %lld has a label, only padding: there is nothing to learn from", (long long)step);
        if (saves)
            save(t, step);
        if (best)
            t->best = t->validated;
        if (t->plot && (saves || step % t->settings.save_every == 0 || step == t->settings.steps || ends))
            plot_draw(t->plot);
        if (ends && r->all->rank == 0)
            diag_tell("ended after step %lld of %lld%s%s", (long long)step, (long long)t->settings.steps,
                      t->save ? ": --resume continues from " : ", and without --save nothing is kept", t->save ? t->save : "");
    }
}

static void tell_statistics(const struct training *t, const char *path)
{
    const struct replicas *r = t->replicas;
    struct batch_shard rows = {"batch", t->settings.batch, replica_range_of(&r->shares, t->settings.batch, r->index)};
    struct session_collective count[JOIN_COUNTS];
    stats_report(t->arena, r, &rows, t->session, join_counts(t->joining, count), count, path);
}

/* The options of this run, completed from a checkpoint. */
static struct job_options complete(struct training *t, const struct job_options *given, const struct train_options *o,
                                   const struct checkpoint *from)
{
    struct job_options job = *given;
    t->settings = settings_of(t->arena, o, given, from);
    job.fast = t->settings.fast;
    job.tokenizer = t->settings.tokenizer;
    settings_check(t->arena, &t->settings, o, given->input.text.n > 0);
    check_rows(&t->settings, t->replicas);
    return job;
}

static void start_adapters(struct training *t, const struct job_options *job, bool resumes)
{
    if (job->lora.text.n && !t->adapters)
        fail("%s: trains weights of the model: --lora begins from adapters, which tpc-shard --train --lora adds", graph_file(t->graph));
    if (t->adapters && !resumes)
        train_adapters_start(t->arena, t->graph, t->replicas, t->session, t->settings.seed, job->lora.text.n ? job->lora.text.at[0] : NULL,
                             &t->parameters);
}

/* The lowest validation loss, which the first rank knows. */
static double best_of_all(const struct training *t)
{
    struct comm *all = t->replicas->all;
    double mine = t->beside ? kept_best(t->beside) : all->rank == 0 ? INFINITY : 0, best;
    all->id = 0;
    all->name = "loss of the best checkpoint";
    all->allreduce(all, &mine, &best, 1, DT_F64, RED_SUM);
    return best;
}

/* A restarted job may have nothing left to do. */
static void open_outputs(struct training *t, const struct job_options *job, const struct train_options *o, int64_t done)
{
    bool first = t->replicas->all->rank == 0;
    if (done > t->settings.steps || (done == t->settings.steps && !job->supervised))
        fail_usage("--steps is %lld, and %s has done %lld", (long long)t->settings.steps, o->resume, (long long)done);
    if (first && t->save && t->adapters)
        train_adapters_folder(t->save);
    if (first && t->save)
        t->claim = claim_begin(t->arena, t->adapters ? train_checkpoint_path(t->arena, t->save, true) : t->save);
    if (first && t->save)
        t->beside = kept_begin(t->arena, t->save, t->adapters, t->settings.keep, done);
    t->best = best_of_all(t);
    if (!first)
        return;
    t->log = log_open(t->arena, o->log, done);
    t->plot = plot_open(t->arena, o->plot, &(struct plot_run){job->paths.text.at[0], o->log, done, t->settings.steps});
}

static void end(struct training *t, const struct job_options *job)
{
    struct comm *all = t->replicas->all;
    if (all->rank == 0)
        log_close(t->log);
    join_parts_end(t->joining);
    if (job->stats)
        tell_statistics(t, job->stats_path);
    join_end(t->joining);
    job_tell_times(t->arena, all, t->session, job->paths.text.at[0], &(struct job_options){.profile = job->profile});
    all->barrier(all);
    kenv_free(t->env);
    validate_free(t->validation);
    microbatches_free(&t->microbatches);
}

void train_run(struct arena *a, const struct replicas *r, const struct job_options *given, const struct train_options *o, int threads)
{
    struct replicas own = *r;
    struct training t = {.arena = a, .replicas = &own, .env = kenv_new(threads, false), .save = o->save ? o->save : o->resume};
    struct checkpoint *from = checkpoint_open(a, train_checkpoint_path(a, o->resume, false));
    const struct job_options completed = complete(&t, given, o, from), *job = &completed;
    t.graph = job_load(a, r->process_group, job->paths.text.at[0], job);
    t.adapters = rank_meta_adapters(t.graph) > 0;
    struct pipeline *pipeline = pipeline_form(a, r->process_group, t.graph);
    if (pipeline)
        own.process_group = pipeline_stage(pipeline);
    struct graph *unfused = o->validate.text.n ? graph_copy(a, t.graph) : NULL;
    job_fuse(t.graph, own.process_group, job);
    job_check_memory(r->all, t.graph, job);
    struct texts *texts = data_texts_new(job);
    start(&t, job, o, texts,
          &(struct session_options){.threads = threads,
                                    .pipeline = pipeline,
                                    .verify = job->verify,
                                    .deterministic = job->deterministic,
                                    .narrow = job->fast,
                                    .force = job->force,
                                    .gradients = t.settings.accumulate > 1 ? GRADIENTS_ADD : GRADIENTS_LEAVE,
                                    .profile = job->profile});
    start_adapters(&t, job, from != NULL);
    if (unfused)
        t.validation = validate_new(a, &(struct validation_source){&own, r->process_group, unfused, t.session, texts}, job, o, &t.settings,
                                    threads);
    data_texts_free(texts);
    int64_t done = checkpoint_load(a, from, &own, t.session, &t.settings, &t.parameters);
    send_shared(&t);
    t.kept = o->resume, t.kept_step = done;
    open_outputs(&t, job, o, done);
    check_mixing(&t, job->force);
    if (job->fast && r->all->rank == 0 && !dnnl_narrows())
        diag_tell("--fast: this processor has no products in bf16: they stay in f32");
    signal_soften();
    if (r->all->rank == 0)
        supervised_send(MESSAGE_READY, (struct message_data){"", 0});
    train_steps(&t, done);
    end(&t, job);
    pipeline_free(pipeline);
}
