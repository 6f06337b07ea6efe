/* validate: the loss on rows that are not trained on: all of a file, in order. The graph is the part of the step before its gradients.
 * Replicas divide the rows, and a loss is a sum and a count, so it does not matter how rows are distributed. */
#include "ir/rank_meta.h"
#include "job/io/io.h"
#include "train/train.h"

#include <math.h>
#include <string.h>

struct validation {
    const struct replicas *replicas; /* whose process group is the stage's */
    struct comm *group;              /* of all stages of this replica */
    struct settings settings;        /* of training */
    struct session *session;
    struct pipeline *pipeline;
    struct batches *batches;
    struct tensor *in, *out;
    int sum, count; /* outputs; -1: in another stage */
    int late;       /* inputs that only gradients need, and that are absent */
};

/* ---- the graph --------------------------------------------------------------------------------------------------------------- */

static bool is_late(const struct graph *g, const struct value *input)
{
    return g->rank_meta && rank_meta_sender(g, input->name) > g->rank_meta->stage;
}

static void drop_late_inputs(struct graph *g)
{
    int kept = 0;
    for (int i = 0; i < g->inputs.n; i++)
        if (!is_late(g, g->inputs.at[i]))
            g->inputs.at[kept++] = g->inputs.at[i];
    g->inputs.n = kept;
}

/* Whether to keep an output: only if later stages read it. */
static bool goes_on(struct graph *g, const char *output)
{
    int n = 0, *to = NEWN(g->arena, int, g->rank_meta ? g->rank_meta->stages : 1);
    for (int i = 0, stage; (stage = rank_meta_reader(g, output, i)) >= 0; i++)
        if (stage > g->rank_meta->stage)
            to[n++] = stage;
    if (n)
        rank_meta_set_readers(g, output, n, to);
    return n > 0;
}

/* Fewer nodes now make partial sums. */
static void recount_sums(struct graph *g)
{
    int64_t n = 0;
    for (int i = 0; i < g->nodes.n; i++)
        n += rank_meta_has_sum(g, g->nodes.at[i]);
    if (g->keeps_sums && g->ranks > 1 && rank_meta_sum_count(g) >= 0)
        rank_meta_set_sum_count(g, n);
}

static struct graph *before_gradients(struct arena *a, const struct graph *step)
{
    struct graph *g = graph_copy(a, step);
    graph_clear_outputs(g);
    for (int i = 0; i < step->outputs.n; i++) {
        struct value *v = g->values.at[step->outputs.at[i]->id];
        bool loss = strcmp(v->name, "loss_sum") == 0 || strcmp(v->name, "loss_count") == 0;
        if (loss || goes_on(g, v->name))
            graph_add_output(g, v);
    }
    drop_late_inputs(g);
    g->trained.n = 0;
    graph_prune(g);
    recount_sums(g);
    return g;
}

static struct batch_source source_of(struct arena *a, const struct train_options *o, struct texts *texts)
{
    struct batch_source from = {.in_order = true, .slots = 1, .texts = texts};
    for (int i = 0; i < o->validate.text.n; i++) {
        const char *text = o->validate.text.at[i];
        if (strchr(text, '='))
            VEC_PUSH(a, &from.input.text, text);
        else if (from.data.text.n)
            fail_usage("--validate names %s and %s, expected one file of tokens", from.data.text.at[0], text);
        else
            VEC_PUSH(a, &from.data.text, text);
    }
    return from;
}

struct validation *validate_new(struct arena *a, const struct validation_source *of, const struct job_options *job,
                                const struct train_options *o, const struct settings *s, int threads)
{
    struct validation *v = NEW(a, struct validation);
    struct batch_source from = source_of(a, o, of->texts);
    struct graph *g = before_gradients(a, of->step);
    *v = (struct validation){.replicas = of->replicas, .group = of->group, .settings = *s};
    v->pipeline = pipeline_form(a, of->group, g);
    job_fuse(g, of->replicas->process_group, job);
    v->session = session_new(
        g, of->replicas->process_group,
        (struct session_options){
            .threads = threads, .pipeline = v->pipeline, .verify = job->verify, .deterministic = job->deterministic, .force = job->force});
    v->batches = batch_new(a, of->step, of->trains, job, &from, &v->settings);
    v->in = NEWN(a, struct tensor, of->step->inputs.n);
    v->out = NEWN(a, struct tensor, g->outputs.n);
    v->sum = graph_output_named(g, "loss_sum");
    v->count = graph_output_named(g, "loss_count");
    v->late = of->step->inputs.n - g->inputs.n;
    return v;
}

/* ---- its runs ---------------------------------------------------------------------------------------------------------------- */

/* A stage does not wait for later ones, so it could run far ahead of them. */
static void keep_pace(const struct validation *v, int64_t run)
{
    if (v->pipeline && run % (2 * pipeline_stages(v->pipeline)) == 0)
        v->group->barrier(v->group);
}

static void add_rows(struct validation *v, struct replica_range rows, struct step_sums *sums)
{
    batch_fill(v->batches, 0, rows, 0, v->in);
    session_run(v->session, v->in, v->out);
    sums->loss += v->sum < 0 ? 0 : tensor_element(&v->out[v->sum], 0);
    sums->count += v->count < 0 ? 0 : tensor_element(&v->out[v->count], 0);
}

double validate_loss(struct validation *v, const struct parameters *p, const struct shared_weights *shared)
{
    const struct replicas *r = v->replicas;
    int64_t all = batch_samples(v->batches), batch = v->settings.batch, run = 0;
    struct step_sums sums = {0};
    for (int i = 0; i < p->n; i++)
        v->in[p->at[i].input - v->late] = p->at[i].local;
    shared_weights_read(shared, v->in, v->late);
    for (int64_t from = 0; from < all; from += batch) {
        struct replica_range mine = replica_range_of(&r->shares, all - from < batch ? all - from : batch, r->index);
        mine.from += from;
        if (mine.count == 0)
            continue;
        add_rows(v, mine, &sums);
        keep_pace(v, ++run);
    }
    sums = train_sums_join(r, sums);
    if (sums.count > 0)
        return sums.loss / sums.count;
    if (r->all->rank == 0)
        diag_tell("--validate: no row has a label, only padding: there is no loss");
    return NAN;
}

void validate_free(struct validation *v)
{
    if (!v)
        return;
    batch_free(v->batches);
    session_free(v->session);
    pipeline_free(v->pipeline);
}
