/* validate: the loss of rows that are not trained on: all of a file, one after another. The graph is the part of the step before its
 * gradients. Replicas share the rows, and a loss is a sum and a count, so it does not matter how rows are distributed. */
#include "job/io/io.h"
#include "train/train.h"

#include <string.h>

struct validation {
    const struct replicas *replicas;
    struct settings settings; /* of the training */
    struct session *session;
    struct batches *batches;
    struct tensor *in, *out; /* out: the sum, and the number of labels */
};

static struct graph *before_gradients(struct arena *a, const struct graph *step)
{
    struct graph *g = graph_copy(a, step);
    struct value *sum = graph_find(g, "loss_sum"), *count = graph_find(g, "loss_count");
    require(sum && count);
    graph_clear_outputs(g);
    graph_add_output(g, sum);
    graph_add_output(g, count);
    g->trained.n = 0;
    graph_prune(g);
    return g;
}

struct validation *validate_new(struct arena *a, const struct replicas *r, const struct job_options *job, const struct train_options *o,
                                const struct settings *s, struct graph *step, const struct session *trains, int threads)
{
    struct validation *v = NEW(a, struct validation);
    struct batch_source from = {.in_order = true};
    for (int i = 0; i < o->validate.text.n; i++) {
        const char *text = o->validate.text.at[i];
        if (strchr(text, '='))
            VEC_PUSH(a, &from.input.text, text);
        else if (from.data)
            fail_usage("--validate names %s and %s, expected one file of tokens", from.data, text);
        else
            from.data = text;
    }
    struct graph *g = before_gradients(a, step);
    job_fuse(g, r->process_group, job);
    *v = (struct validation){.replicas = r, .settings = *s, .out = NEWN(a, struct tensor, 2)};
    v->session = session_new(
        g, r->process_group,
        (struct session_options){.threads = threads, .verify = job->verify, .deterministic = job->deterministic, .force = job->force});
    v->batches = batch_new(a, step, trains, job, &from, &v->settings);
    v->in = NEWN(a, struct tensor, step->inputs.n);
    return v;
}

double validate_loss(struct validation *v, const struct parameters *p)
{
    const struct replicas *r = v->replicas;
    int64_t all = batch_samples(v->batches), batch = v->settings.batch;
    struct step_sums sums = {0};
    for (int i = 0; i < p->n; i++)
        v->in[p->at[i].input] = p->at[i].local;
    for (int64_t from = 0; from < all; from += batch) {
        struct replica_range mine = replica_range_of(&r->shares, all - from < batch ? all - from : batch, r->index);
        mine.from += from;
        if (mine.count == 0)
            continue;
        batch_fill(v->batches, 0, mine, v->in);
        session_run(v->session, v->in, v->out);
        sums.loss += tensor_element(&v->out[0], 0);
        sums.count += tensor_element(&v->out[1], 0);
    }
    sums = train_sums_join(r, sums);
    if (sums.count > 0)
        return sums.loss / sums.count;
    if (r->all->rank == 0)
        diag_tell("--validate: no row has a label, only padding: there is no loss");
    return -1;
}

void validate_free(struct validation *v)
{
    if (v)
        session_free(v->session);
}
