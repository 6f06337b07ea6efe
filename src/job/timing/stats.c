/* stats: reports times and bytes of every rank, as text (--stats) or JSON (--stats=FILE). */
#include "job/timing/timing.h"
#include "plan/input/input.h"
#include "plan/report/report.h"

#include <jansson.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

struct figures {
    double compute, comm;
    int64_t bytes, resident, peak, slab, weights, state, moved;
};
struct statistics {
    const struct bindings *sizes;
    const struct replicas *replicas;
    const struct batch_shard *shard;
    const struct figures *rank; /* one per rank of the job */
    int ncollective;
    const struct session_collective *collective; /* of this rank, summed over calls */
    const int64_t *payload;                      /* per call, the largest of all ranks */
};

/* ---- gathering -------------------------------------------------------------------------------------------------------------- */

static int64_t resident_bytes(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    long long total = 0, resident = 0;
    if (!f)
        return 0;
    if (fscanf(f, "%lld %lld", &total, &resident) != 2)
        resident = 0;
    fclose(f);
    return resident * sysconf(_SC_PAGESIZE);
}

/* The kernel samples the peak: the resident size may exceed it. */
static int64_t peak_bytes(int64_t resident)
{
    struct rusage usage;
    int64_t peak = getrusage(RUSAGE_SELF, &usage) ? 0 : (int64_t)usage.ru_maxrss * 1024;
    return peak > resident ? peak : resident;
}

/* more: exchanges of replicas, which are not part of the session. */
static const struct figures *gather_figures(struct arena *a, struct comm *comm, const struct session_stats *s, int nmore,
                                            const struct session_collective *more)
{
    int64_t resident = resident_bytes();
    double runs = s->runs ? (double)s->runs : 1;
    struct figures own = {(s->seconds - s->comm_seconds) / runs,
                          s->comm_seconds / runs,
                          0,
                          resident,
                          peak_bytes(resident),
                          s->slab_bytes,
                          s->weight_bytes,
                          s->state_bytes,
                          s->state_moved};
    for (int i = 0; i < s->ncollective; i++)
        own.bytes += s->collective[i].bytes;
    for (int i = 0; i < nmore; i++) {
        own.bytes += more[i].bytes;
        own.comm += more[i].seconds / runs;
    }
    own.bytes /= s->runs ? s->runs : 1;
    return comm_gather(comm, a, "statistics", &own, sizeof own);
}

static int64_t calls_of(const struct session_collective *c)
{
    return c->calls ? c->calls : 1;
}

static const int64_t *gather_payloads(struct arena *a, struct comm *comm, int n, const struct session_collective *at)
{
    int64_t *own = NEWN(a, int64_t, n + 1), *most = NEWN(a, int64_t, n + 1);
    for (int i = 0; i < n; i++)
        own[i] = at[i].payload / calls_of(&at[i]);
    if (n > 0)
        comm->allreduce(comm, own, most, n, DT_I64, RED_MAX);
    return most;
}

/* ---- text --------------------------------------------------------------------------------------------------------------- */

static void print_rank(struct arena *a, int rank, const struct figures *f)
{
    printf("rank %d: compute %.3f ms, communication %.3f ms, %lld bytes sent per run; "
           "%.1f MiB resident (peak %.1f), weights %.3f MiB, activations %.3f MiB\n",
           rank, 1e3 * f->compute, 1e3 * f->comm, (long long)f->bytes, (double)f->resident / 1048576, (double)f->peak / 1048576,
           (double)f->weights / 1048576, (double)f->slab / 1048576);
    if (f->state)
        printf("rank %d: state %s, %s of it copied to grow\n", rank, units_bytes(a, (double)f->state), units_bytes(a, (double)f->moved));
}

/* The sum of the bytes of n ranks, and the times of the slowest. */
static struct figures figures_of(const struct figures *rank, int n)
{
    struct figures sum = {0};
    for (int r = 0; r < n; r++) {
        if (rank[r].compute > sum.compute)
            sum.compute = rank[r].compute;
        if (rank[r].comm > sum.comm)
            sum.comm = rank[r].comm;
        sum.bytes += rank[r].bytes;
        sum.slab += rank[r].slab;
        sum.weights += rank[r].weights;
        sum.state += rank[r].state;
    }
    return sum;
}

static void print_replica(const struct replicas *t, const struct batch_shard *d, int group, const struct figures *all)
{
    int n = t->process_group->size, first = group * n;
    const struct figures f = figures_of(&all[first], n);
    struct replica_range rows = replica_range_of(&t->shares, d->total, group);
    printf("replica %d: ranks %d to %d, %lld of %lld rows of '%s': compute %.3f ms, communication %.3f ms, "
           "%lld bytes sent per run; weights %.3f MiB, state %.1f MiB, activations %.3f MiB\n",
           group, first, first + n - 1, (long long)rows.count, (long long)d->total, d->symbol, 1e3 * f.compute, 1e3 * f.comm,
           (long long)f.bytes, (double)f.weights / 1048576, (double)f.state / 1048576, (double)f.slab / 1048576);
}

/* Prints the sizes in the form of --workload. */
static void print_sizes(const struct bindings *b)
{
    for (int i = 0; i < b->list.n; i++)
        printf("%s%s=%lld", i ? "," : "sizes: ", b->list.at[i].name, (long long)b->list.at[i].value);
    if (b->list.n)
        printf("\n");
}

static void print_text(struct arena *a, const struct statistics *s)
{
    print_sizes(s->sizes);
    for (int r = 0; r < s->replicas->all->size; r++)
        print_rank(a, r, &s->rank[r]);
    for (int i = 0; s->replicas->across && i < s->replicas->count; i++)
        print_replica(s->replicas, s->shard, i, s->rank);
    for (int i = 0; i < s->ncollective; i++) {
        const struct session_collective *c = &s->collective[i];
        printf("collective %d %s '%s': %lld bytes, %.3f ms", i + 1, c->op, c->name, (long long)(c->bytes / calls_of(c)),
               1e3 * c->seconds / (double)calls_of(c));
        if (c->behind > 0)
            printf(", and %.3f ms overlapped with compute", 1e3 * c->behind / (double)calls_of(c));
        printf("\n");
    }
}

/* ---- JSON --------------------------------------------------------------------------------------------------------------- */

static json_t *rank_object(const struct figures *f)
{
    return json_pack("{s:f, s:f, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "compute_seconds", f->compute, "communication_seconds", f->comm,
                     "sent_bytes", (json_int_t)f->bytes, "resident_bytes", (json_int_t)f->resident, "peak_resident_bytes",
                     (json_int_t)f->peak, "weight_bytes", (json_int_t)f->weights, "activation_bytes", (json_int_t)f->slab, "state_bytes",
                     (json_int_t)f->state, "state_moved_bytes", (json_int_t)f->moved);
}

static json_t *collective_object(const struct session_collective *c, int64_t payload)
{
    json_t *behind = c->behind > 0 ? json_real(c->behind / (double)calls_of(c)) : NULL;
    return json_pack("{s:o*, s:o*, s:I, s:I, s:I, s:o*, s:o*}", "op", json_string(c->op), "node", json_string(c->name), "calls",
                     (json_int_t)c->calls, "bytes", (json_int_t)payload, "sent_bytes", (json_int_t)(c->bytes / calls_of(c)), "seconds",
                     json_real(c->seconds / (double)calls_of(c)), "behind_seconds", behind);
}

static void write_json(struct arena *a, const struct statistics *s, const char *path)
{
    struct out out;
    json_t *ranks = json_array(), *collectives = json_array();
    for (int r = 0; r < s->replicas->all->size; r++)
        json_array_append_new(ranks, rank_object(&s->rank[r]));
    for (int i = 0; i < s->ncollective; i++)
        json_array_append_new(collectives, collective_object(&s->collective[i], s->payload[i]));
    json_t *root = json_pack("{s:o, s:i, s:o, s:o}", STATS_FIRST, json_sizes(s->sizes), "groups", s->replicas->count, "ranks", ranks,
                             "collectives", collectives);
    out_open_whole(a, &out, path);
    if (json_dumpf(root, out.file, JSON_INDENT(1)) != 0)
        out_fail(&out);
    fputc('\n', out.file);
    (void)out_close(&out);
    json_decref(root);
}

void stats_report(struct arena *a, const struct replicas *replicas, const struct batch_shard *shard, struct session *session, int nmore,
                  const struct session_collective *more, const char *path)
{
    const struct session_stats *s = session_stats(session);
    int n = s->ncollective + nmore;
    struct session_collective *all = NEWN(a, struct session_collective, n + 1);
    for (int i = 0; i < s->ncollective; i++)
        all[i] = s->collective[i];
    for (int i = 0; i < nmore; i++)
        all[s->ncollective + i] = more[i];
    struct statistics out = {session_bindings(session),
                             replicas,
                             shard,
                             gather_figures(a, replicas->all, s, nmore, more),
                             n,
                             all,
                             gather_payloads(a, replicas->all, n, all)};
    if (replicas->all->rank)
        return;
    if (path)
        write_json(a, &out, path);
    else
        print_text(a, &out);
}
