/* replica: runs replicas of a model on different rows of the batch (data parallelism). With t ranks per process group, rank r of the job
 * is rank r % t of group r / t. Megatron-LM numbers ranks in the same way when tensor parallelism is the inner one. The compiler proves
 * which symbol counts independent rows (src/op/analysis/batch_independence.c). A replica without rows waits for the others. */
#include "ir/ir.h"
#include "ir/rank_meta.h"
#include "job/job.h"

#include <string.h>

enum { MOST_GROUPS = 1024 };

static void read_speeds(struct arena *a, const char *text, struct job_options *o)
{
    double *speed = NEWN(a, double, MOST_GROUPS);
    int n = number_list("--speed", text, "replica", MOST_GROUPS, speed);
    if (n != o->groups)
        fail_usage("--speed has %d number%s, and --groups is %lld", n, n == 1 ? "" : "s", (long long)o->groups);
    for (int i = 0; i < n; i++)
        if (!(speed[i] >= 1e-3 && speed[i] <= 1e3))
            fail_usage("--speed is '%s', expected numbers from 0.001 to 1000", text);
    o->speed = speed;
}

void replica_read(struct arena *a, const char *text, const char *speed, struct job_options *o)
{
    const char *colon = text ? strchr(text, ':') : NULL;
    o->groups = 1;
    if (!text && speed)
        fail_usage("--speed is given without --groups");
    if (!text)
        return;
    o->groups = number_read("--groups", colon ? arena_strndup(a, text, (size_t)(colon - text)) : text, 1, MOST_GROUPS);
    o->batch_symbol = colon ? colon + 1 : NULL;
    if (speed)
        read_speeds(a, speed, o);
}

int replica_rank(const struct comm *comm, const struct job_options *o)
{
    int count = (int)o->groups;
    return comm->size % count ? comm->rank : comm->rank % (comm->size / count);
}

struct replicas replica_form(struct comm *comm, const struct job_options *o)
{
    struct replicas t = {.all = comm, .process_group = comm, .count = (int)o->groups, .symbol = o->batch_symbol};
    t.shares = (struct replica_shares){t.count, o->speed};
    if (t.count == 1)
        return t;
    if (comm->rank == 0 && comm->size % t.count)
        fail_usage("--groups is %d, which does not divide %d rank%s", t.count, comm->size, comm->size == 1 ? "" : "s");
    comm->barrier(comm);
    int size = comm->size / t.count;
    t.index = comm->rank / size;
    t.process_group = comm->split(comm, t.index);
    t.across = comm->split(comm, replica_rank(comm, o));
    return t;
}

void replica_leave(struct replicas *t)
{
    if (!t->across)
        return;
    t->across->free(t->across);
    t->process_group->free(t->process_group);
}

/* ---- rows ------------------------------------------------------------------------------------------------------------------------- */

/* The dimension whose size is the symbol; -1: none. */
static int row_dim(const struct type *t, const char *symbol)
{
    for (int d = 0; symbol && d < t->rank; d++)
        if (t->dim[d]->kind == DIM_SYM && strcmp(t->dim[d]->name, symbol) == 0)
            return d;
    return -1;
}

_Noreturn static void refuse_symbol(const struct graph *g, const char *symbol, const char *why)
{
    fail("%s: --groups can't split '%s': %s", g->path, symbol, why);
}

static const char *wanted_symbol(const struct graph *g, const char *wanted)
{
    const char *symbol, *why;
    for (int i = 0; rank_meta_rows(g, i, &symbol, &why); i++) {
        if (strcmp(symbol, wanted))
            continue;
        if (why)
            refuse_symbol(g, symbol, why);
        return wanted;
    }
    fail_usage("--groups names '%s', and %s has no input with such a dimension", wanted, g->path);
}

static const char *first_symbol(const struct graph *g)
{
    const char *symbol, *why;
    for (int i = 0; rank_meta_rows(g, i, &symbol, &why); i++)
        if (!why)
            return symbol;
    if (rank_meta_rows(g, 0, &symbol, &why))
        refuse_symbol(g, symbol, why);
    fail("%s: --groups can't split the batch: no input has a symbolic dimension", g->path);
}

/* The rows of the given inputs; 0: none has the symbol. */
static int64_t count_rows(const struct graph *g, const struct session *s, const char *symbol, const struct tensor *in)
{
    int first = -1, first_dim = 0;
    for (int i = 0; i < g->inputs.n; i++) {
        int d = in[i].data ? row_dim(session_input_type(s, i), symbol) : -1;
        if (d < 0 || d >= in[i].rank)
            continue;
        if (first >= 0 && in[i].dim[d] != in[first].dim[first_dim])
            fail("%s: input '%s' has %lld in dimension %d, expected %s = %lld as of input '%s'", g->path, g->inputs.at[i]->name,
                 (long long)in[i].dim[d], d, symbol, (long long)in[first].dim[first_dim], g->inputs.at[first]->name);
        first = i;
        first_dim = d;
    }
    return first < 0 ? 0 : in[first].dim[first_dim];
}

struct batch_shard replica_shard_batch(const struct replicas *t, const struct graph *g, const struct session *s, const struct tensor *in)
{
    const char *wanted = t->symbol ? wanted_symbol(g, t->symbol) : NULL;
    if (!t->across)
        return (struct batch_shard){.rows = {0, 1}};
    struct batch_shard d = {.symbol = wanted ? wanted : first_symbol(g)};
    d.total = count_rows(g, s, d.symbol, in);
    d.rows = replica_range_of(&t->shares, d.total, t->index);
    if (d.total)
        explain("%s: replica %d has %lld of the %lld rows of '%s'", g->path, t->index, (long long)d.rows.count, (long long)d.total,
                d.symbol);
    return d;
}

bool replica_runs(const struct replicas *t, const struct batch_shard *d)
{
    return d->rows.count > 0 || t->index == 0;
}

void replica_take_rows(struct arena *a, const struct batch_shard *shard, const struct graph *g, const struct session *s, struct tensor *in)
{
    for (int i = 0; i < g->inputs.n; i++) {
        int d = in[i].data ? row_dim(session_input_type(s, i), shard->symbol) : -1;
        if (d >= 0 && d < in[i].rank)
            in[i] = replica_slice(a, &in[i], d, shard->rows);
    }
}

struct tensor replica_gather_output(struct arena *a, const struct replicas *t, const struct batch_shard *shard, const struct type *type,
                                    const char *name, const struct tensor *own)
{
    int d = row_dim(type, shard->symbol);
    return d < 0 || t->process_group->rank ? *own : replica_gather(a, t->across, &t->shares, name, own, d, shard->total);
}
