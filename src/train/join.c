/* join: replicas exchange gradients and weights in buckets. The gradients of a bucket are summed as soon as the backward pass has computed
 * all of them, and weights are gathered before the next forward pass reads them: between machines, while it computes
 * (run/comm/behind.c). */
#include "train/train.h"

struct join_task {
    struct joining *join;
    int number;   /* of the bucket */
    float *all;   /* the flat array; NULL: the weights that runs read */
    int lacks;    /* gradients of the bucket that are not computed yet */
    int64_t turn; /* its task number in behind.c */
};
/* Statistics of each of the two. */
struct join_times {
    int64_t bytes;       /* sent, */
    double took, waited; /* seconds */
};
struct joining {
    const struct parameters *parameters;
    struct session *session; /* whose run completes gradients */
    struct behind *behind;
    struct join_task *sum, *gather; /* by bucket */
    int64_t last;                   /* the number of the last task */
    int64_t steps;
    struct join_times sums, gathers;
};

static const char sum_name[] = "gradients of replicas", gather_name[] = "weights of replicas";

/* Elements of a bucket. */
static int64_t length_of(const struct range *all)
{
    return all->to - all->from;
}

struct join_begun {
    double seconds;
    int64_t sent;
};

static struct join_begun begin(struct comm *c, const char *name, const struct join_task *t)
{
    c->id = t->number + 1;
    c->name = name;
    return (struct join_begun){clock_seconds(), c->bytes_sent};
}

static void end(const struct comm *c, struct join_times *times, struct join_begun from)
{
    times->bytes += c->bytes_sent - from.sent;
    times->took += clock_seconds() - from.seconds;
}

static void sum_bucket(struct comm *c, void *task)
{
    const struct join_task *t = task;
    const struct bucket *b = &t->join->parameters->bucket[t->number];
    struct join_begun from = begin(c, sum_name, t);
    for (int r = 0; r < c->size; r++)
        c->send[r] = comm_share(c, t->all + b->all.from, length_of(&b->all), sizeof(float), r);
    c->reduce_scatter(c, t->all + b->own.from, length_of(&b->own), DT_F32, RED_SUM);
    end(c, &t->join->sums, from);
}

static void gather_bucket(struct comm *c, void *task)
{
    const struct join_task *t = task;
    const struct bucket *b = &t->join->parameters->bucket[t->number];
    const struct parameters *p = t->join->parameters;
    struct join_begun from = begin(c, gather_name, t);
    if (t->all)
        comm_gather_shares(c, t->all + b->all.from, length_of(&b->all), sizeof(float));
    else if (b->narrow)
        comm_gather_shares(c, p->rounded + b->all.from, length_of(&b->all), sizeof *p->rounded);
    else
        comm_gather_shares(c, p->weight + (b->all.from - p->narrow), length_of(&b->all), sizeof *p->weight);
    if (!t->all) /* gathering for a checkpoint does not count */
        end(c, &t->join->gathers, from);
}

static void wait_until(struct joining *j, int64_t turn, const char *in, struct join_times *times)
{
    double from = clock_seconds();
    behind_wait(j->behind, turn, in);
    times->waited += clock_seconds() - from;
}

/* ---- gradients ------------------------------------------------------------------------------------------------------- */

static bool reaches(const struct bucket *b, const struct parameter *x)
{
    struct range both = parameters_meet(b->all, (struct range){x->from, x->from + x->count});
    return both.from < both.to;
}

static void take_gradient(void *joining, int number)
{
    struct joining *j = joining;
    const struct parameters *p = j->parameters;
    for (int k = 0; k < p->buckets; k++)
        if (reaches(&p->bucket[k], &p->at[number]) && --j->sum[k].lacks == 0)
            j->last = behind_add(j->behind, sum_bucket, &j->sum[k]);
}

void join_gradients_begin(struct joining *j, struct session *s)
{
    if (!j)
        return;
    j->session = s;
    for (int k = 0; k < j->parameters->buckets; k++)
        for (int i = 0; i < j->parameters->n; i++)
            j->sum[k].lacks += reaches(&j->parameters->bucket[k], &j->parameters->at[i]);
    session_gradients_made(j->session, take_gradient, j);
}

void join_gradients_end(struct joining *j)
{
    if (!j)
        return;
    session_gradients_made(j->session, NULL, NULL);
    wait_until(j, j->last, sum_name, &j->sums);
    j->steps++;
}

/* ---- weights, and other data that replicas hold in parts ------------------------------------------------------------------- */

static void wait_for_weight(void *joining, int number)
{
    struct joining *j = joining;
    for (int k = j->parameters->buckets - 1; k >= 0; k--)
        if (reaches(&j->parameters->bucket[k], &j->parameters->at[number])) {
            wait_until(j, j->gather[k].turn, gather_name, &j->gathers);
            return;
        }
}

void join_parts(struct joining *j, int bucket, float *all)
{
    if (!j)
        return;
    j->gather[bucket].all = all;
    j->gather[bucket].turn = j->last = behind_add(j->behind, gather_bucket, &j->gather[bucket]);
}

void join_weights(struct joining *j, int bucket)
{
    join_parts(j, bucket, NULL);
}

void join_parts_end(struct joining *j)
{
    if (j)
        wait_until(j, j->last, gather_name, &j->gathers);
}

void join_parts_later(struct joining *j)
{
    if (j && !behind_goes_on(j->behind))
        join_parts_end(j);
}

/* ---- times ----------------------------------------------------------------------------------------------------------- */

static struct session_collective count_of(const struct joining *j, const char *op, const char *name, const struct join_times *t,
                                          int64_t bytes)
{
    double behind = t->took > t->waited ? t->took - t->waited : 0;
    return (struct session_collective){name, op, j->steps, t->bytes, j->steps * bytes, t->waited, behind};
}

int join_counts(const struct joining *j, struct session_collective to[JOIN_COUNTS])
{
    if (!j)
        return 0;
    to[0] = count_of(j, collective_name(COLL_REDUCESCATTER), sum_name, &j->sums, j->parameters->total * (int64_t)sizeof(float));
    to[1] = count_of(j, collective_name(COLL_ALLGATHER), gather_name, &j->gathers, parameters_bytes(j->parameters));
    return JOIN_COUNTS;
}

/* ---- both ---- */

struct joining *join_start(struct arena *a, const struct replicas *r, const struct parameters *p, int sessions,
                           struct session *const *session)
{
    if (!r->across)
        return NULL;
    struct joining *j = NEW(a, struct joining);
    *j = (struct joining){.parameters = p, .behind = behind_start(a, r->across)};
    j->sum = NEWN(a, struct join_task, p->buckets);
    j->gather = NEWN(a, struct join_task, p->buckets);
    for (int k = 0; k < p->buckets; k++)
        j->sum[k] = j->gather[k] = (struct join_task){.join = j, .number = k, .all = p->gradient};
    for (int i = 0; i < sessions; i++)
        session_weights_needed(session[i], wait_for_weight, j);
    return j;
}

void join_end(struct joining *j)
{
    if (j)
        behind_end(j->behind);
}

struct step_sums train_sums_join(const struct replicas *r, struct step_sums own)
{
    bool counts = r->process_group->rank == 0;
    double mine[] = {counts ? own.loss : 0, counts ? own.count : 0, own.square, signal_asked()}, all[4];
    r->all->id = 0;
    r->all->name = "loss and norm of the gradient";
    r->all->allreduce(r->all, mine, all, 4, DT_F64, RED_SUM);
    return (struct step_sums){all[0], all[1], all[2], all[3]};
}
