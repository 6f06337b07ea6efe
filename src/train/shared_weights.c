/* shared_weights: the stage that trains a weight sends it to the other stages that read it, whole, from rank t to rank t. Each rank takes
 * its shard. All send and receive in the order of names. */
#include "ir/rank_meta.h"
#include "run/collective/collective.h"
#include "train/train.h"

#include <stdlib.h>
#include <string.h>

/* A weight that this stage trains and others read. */
struct lent {
    int number; /* of the parameters */
    const char *name;
};
struct shared_weights {
    struct pipeline *pipeline;
    struct graph *graph;
    VEC(struct lent) lent;
    struct tensor *local; /* of graph->followed */
    int64_t bytes;
};

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct lent *)a)->name, ((const struct lent *)b)->name);
}

static void find_lent(struct arena *a, struct shared_weights *s)
{
    for (int i = 0; i < s->graph->trained.n; i++) {
        const char *name = s->graph->trained.at[i].weight->name;
        if (rank_meta_reader(s->graph, name, 0) >= 0)
            VEC_PUSH(a, &s->lent, ((struct lent){i, name}));
    }
    if (s->lent.n)
        qsort(s->lent.at, (size_t)s->lent.n, sizeof *s->lent.at, by_name);
}

static int input_of(const struct graph *g, const struct value *v)
{
    int i = 0;
    while (g->inputs.at[i] != v)
        i++;
    return i;
}

/* Checks that the metadata's shard of this rank is the one in its file. */
static void check_shard(struct arena *a, const struct graph *g, const struct followed *f, int rank, const struct tensor *local)
{
    bool same = f->place.kind == PLACE_R || f->place.split->ranks == g->ranks;
    for (int d = 0; same && d < f->type.rank; d++) {
        int64_t size;
        same = dim_is_int(f->type.dim[d], &size);
        if (same && f->place.kind == PLACE_S && f->place.dim == d) {
            struct intervals mine = intervals_of(a, f->place.split, rank, false, &(struct bindings){0});
            size = intervals_extent(&mine);
        }
        same = same && size == local->dim[d];
    }
    if (!same)
        fail("%s: metadata of weight '%s' says %s, %s, and its shard has other sizes", graph_file(g), f->weight->name,
             type_str(a, &f->type), placement_str(a, f->place));
}

static void follow(struct arena *a, struct shared_weights *s, int rank)
{
    s->local = NEWN(a, struct tensor, s->graph->followed.n);
    for (int i = 0; i < s->graph->followed.n; i++) {
        const struct constant *c = s->graph->followed.at[i].initial;
        struct tensor *t = &s->local[i];
        *t = (struct tensor){.dtype = DT_F32, .rank = c->rank};
        memcpy(t->dim, c->dim, sizeof t->dim);
        check_shard(a, s->graph, &s->graph->followed.at[i], rank, t);
        t->data = NEWN(a, float, tensor_elements(t));
        s->bytes += (int64_t)tensor_bytes(t);
    }
}

struct shared_weights *shared_weights_new(struct arena *a, struct pipeline *p, struct graph *g, int n, struct tensor *const *in)
{
    if (!p)
        return NULL;
    struct shared_weights *s = NEW(a, struct shared_weights);
    *s = (struct shared_weights){.pipeline = p, .graph = g};
    find_lent(a, s);
    follow(a, s, pipeline_stage(p)->rank);
    for (int i = 0; i < n; i++)
        shared_weights_read(s, in[i], 0);
    return s;
}

void shared_weights_read(const struct shared_weights *s, struct tensor *in, int shift)
{
    for (int i = 0; s && i < s->graph->followed.n; i++)
        in[input_of(s->graph, s->graph->followed.at[i].weight) - shift] = s->local[i];
}

static void lend(const struct shared_weights *s, const struct parameters *p, struct session *session)
{
    EACH (const struct lent, x, s->lent) {
        struct arena *tmp = arena_new();
        struct tensor full = session_gather(session, tmp, p->at[x->number].output, &p->at[x->number].local);
        for (int i = 0, to; (to = rank_meta_reader(s->graph, x->name, i)) >= 0; i++)
            pipeline_send_tensor(s->pipeline, to, &full);
        arena_free(tmp);
    }
}

static void take_shard(struct arena *tmp, const struct followed *f, int rank, const struct tensor *full, struct tensor *to)
{
    if (f->place.kind == PLACE_R) {
        memcpy(to->data, full->data, tensor_bytes(to));
        return;
    }
    struct intervals mine = intervals_of(tmp, f->place.split, rank, false, &(struct bindings){0});
    struct region r = region_of(tmp, full, f->place.dim, &mine, -1, NULL);
    region_pack(&r, full->data, to->data);
}

/* The shard's sizes were checked at load; the whole tensor's are from the metadata. */
static void take(const struct shared_weights *s, int rank)
{
    for (int i = 0; i < s->graph->followed.n; i++) {
        const struct followed *f = &s->graph->followed.at[i];
        struct arena *tmp = arena_new();
        struct tensor full = pipeline_take_tensor(s->pipeline, f->stage, f->weight->name, tmp);
        bool same = full.dtype == DT_F32 && full.rank == f->type.rank;
        for (int d = 0; same && d < full.rank; d++)
            same = dim_equals(f->type.dim[d], full.dim[d]);
        if (!same)
            fail_job("stage %d sends '%s' with other sizes than %s", f->stage, f->weight->name, type_str(tmp, &f->type));
        take_shard(tmp, f, rank, &full, &s->local[i]);
        arena_free(tmp);
    }
}

void shared_weights_send(struct shared_weights *s, const struct replicas *r, const struct parameters *p, struct session *session)
{
    if (!s)
        return;
    lend(s, p, session);
    take(s, r->process_group->rank);
}

int64_t shared_weights_bytes(const struct shared_weights *s)
{
    return s ? s->bytes : 0;
}
