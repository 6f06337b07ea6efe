/* join: replicas exchange gradients and weights bucket by bucket. The gradients of a bucket are summed as soon as the backward half has
 * made all of them: between machines while it makes the others (run/comm/behind.c). */
#include "train/train.h"

struct join_task {
    struct joining *join;
    int number; /* of the bucket */
    float *all; /* the flat array */
    int lacks;  /* gradients of the bucket that are not made yet */
};
struct joining {
    const struct parameters *parameters;
    struct session *session;
    struct behind *behind;
    struct join_task *sum, *gather; /* by bucket */
    int64_t last;                   /* the number of what was added last */
};

/* Elements of a bucket. */
static int64_t length_of(const struct range *all)
{
    return all->to - all->from;
}

static const struct bucket *begin(struct comm *c, const char *name, const struct join_task *t)
{
    c->id = t->number + 1;
    c->name = name;
    return &t->join->parameters->bucket[t->number];
}

static void sum_bucket(struct comm *c, void *task)
{
    const struct join_task *t = task;
    const struct bucket *b = begin(c, "gradients of replicas", t);
    for (int r = 0; r < c->size; r++)
        c->send[r] = comm_share(c, t->all + b->all.from, length_of(&b->all), sizeof(float), r);
    c->reduce_scatter(c, t->all + b->own.from, length_of(&b->own), DT_F32, RED_SUM);
}

static void gather_bucket(struct comm *c, void *task)
{
    const struct join_task *t = task;
    const struct bucket *b = begin(c, "weights of replicas", t);
    comm_gather_shares(c, t->all + b->all.from, length_of(&b->all), sizeof(float));
}

struct joining *join_start(struct arena *a, const struct replicas *r, const struct parameters *p, struct session *s)
{
    if (!r->across)
        return NULL;
    struct joining *j = NEW(a, struct joining);
    *j = (struct joining){.parameters = p, .session = s, .behind = behind_start(a, r->across)};
    j->sum = NEWN(a, struct join_task, p->buckets);
    j->gather = NEWN(a, struct join_task, p->buckets);
    for (int k = 0; k < p->buckets; k++)
        j->sum[k] = j->gather[k] = (struct join_task){.join = j, .number = k, .all = p->gradient};
    return j;
}

/* ---- gradients ------------------------------------------------------------------------------------------------------------------------
 */

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

void join_gradients_begin(struct joining *j)
{
    if (!j)
        return;
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
    behind_wait(j->behind, j->last, "gradients of replicas");
}

/* ---- weights and what else replicas hold a part of
 * --------------------------------------------------------------------------------------- */

void join_parts(struct joining *j, int bucket, float *all)
{
    if (!j)
        return;
    j->gather[bucket].all = all;
    j->last = behind_add(j->behind, gather_bucket, &j->gather[bucket]);
}

void join_parts_end(struct joining *j)
{
    if (j)
        behind_wait(j->behind, j->last, "weights of replicas");
}

void join_end(struct joining *j)
{
    if (j)
        behind_end(j->behind);
}
