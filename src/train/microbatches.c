/* microbatches: a step runs the graph on each microbatch of this replica and adds their gradients. A pipeline stage starts as many as there
 * are stages from it to the end before it finishes the first; then it finishes one for each that it starts (1F1B, Narayanan et al. 2019).
 * So all stages work, and no stage keeps the activations of more microbatches than that. Each microbatch in flight has a session with its
 * own memory. Microbatches are finished in order, so sums are the same for any number of stages. */
#include "job/io/io.h"
#include "train/train.h"

static int output_named(const struct graph *g, const char *name, bool stage)
{
    int i = graph_output_named(g, name);
    if (i >= 0 || stage)
        return i;
    fail("%s: has no output '%s': not a folder that tpc-shard --train made", graph_file(g), name);
}

static int in_flight(const struct pipeline *p, int64_t microbatches)
{
    int most = p ? pipeline_stages(p) - pipeline_number(p) : 1;
    return microbatches < most ? (int)microbatches : most;
}

struct microbatches microbatches_new(struct arena *a, const struct replicas *r, struct graph *g, const struct settings *s,
                                     struct session_options o)
{
    struct microbatches m = {.settings = s, .replicas = r, .n = in_flight(o.pipeline, s->accumulate)};
    m.loss_sum = output_named(g, "loss_sum", o.pipeline != NULL);
    m.loss_count = output_named(g, "loss_count", o.pipeline != NULL);
    m.session = NEWN(a, struct session *, m.n);
    m.in = NEWN(a, struct tensor *, m.n);
    m.out = NEWN(a, struct tensor, g->outputs.n);
    for (int i = 0; i < m.n; i++) {
        m.session[i] = session_new(g, r->process_group, o);
        m.in[i] = NEWN(a, struct tensor, g->inputs.n);
        o.beside = m.session[0];
    }
    return m;
}

void microbatches_read(struct microbatches *m, const struct parameters *p)
{
    for (int i = 0; i < m->n; i++)
        for (int k = 0; k < p->n; k++)
            m->in[i][p->at[k].input] = p->at[k].local;
}

static void begin(struct microbatches *m, int64_t step, int64_t k, const struct parameters *p, struct joining *j)
{
    const struct replicas *r = m->replicas;
    struct replica_range mine = replica_range_of(&r->shares, m->settings->batch, r->index);
    const struct replica_shares parts = {(int)m->settings->accumulate, NULL};
    struct replica_range rows = replica_range_of(&parts, mine.count, (int)k);
    int slot = (int)(k % m->n);
    rows.from += mine.from;
    batch_fill(m->batches, step, rows, slot, m->in[slot]);
    session_gradients_to(m->session[slot], p->into, k == 0, k == m->settings->accumulate - 1);
    if (k == m->settings->accumulate - 1)
        join_gradients_begin(j, m->session[slot]);
    session_begin(m->session[slot], m->in[slot]);
}

static void finish(struct microbatches *m, int64_t k, struct step_sums *sums)
{
    session_finish(m->session[k % m->n], m->out);
    if (m->loss_sum >= 0)
        sums->loss += tensor_element(&m->out[m->loss_sum], 0);
    if (m->loss_count >= 0)
        sums->count += tensor_element(&m->out[m->loss_count], 0);
}

struct step_sums microbatches_run(struct microbatches *m, int64_t step, const struct parameters *p, struct joining *j)
{
    struct step_sums sums = {0};
    int64_t all = m->settings->accumulate, ahead = m->n - 1;
    for (int64_t k = 0; k < all + ahead; k++) {
        if (k < all)
            begin(m, step, k, p, j);
        if (k >= ahead)
            finish(m, k - ahead, &sums);
    }
    return sums;
}

void microbatches_free(struct microbatches *m)
{
    batch_free(m->batches);
    for (int i = m->n - 1; i >= 0; i--)
        session_free(m->session[i]);
}
