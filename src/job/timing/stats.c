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
    json_t *collectives;        /* means of rank 0's calls; of stages, of the first rank of each */
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

/* Of calls: the mean. stage -1: there are none. */
static json_t *collective_object(const struct session_collective *c, int64_t payload, int stage)
{
    json_t *behind = c->behind > 0 ? json_real(c->behind / (double)calls_of(c)) : NULL;
    return json_pack("{s:o*, s:o*, s:o*, s:I, s:I, s:I, s:o*, s:o*}", "stage", stage < 0 ? NULL : json_integer(stage), "op",
                     json_string(c->op), "node", json_string(c->name), "calls", (json_int_t)c->calls, "bytes", (json_int_t)payload,
                     "sent_bytes", (json_int_t)(c->bytes / calls_of(c)), "seconds", json_real(c->seconds / (double)calls_of(c)),
                     "behind_seconds", behind);
}

/* A stage leaves out what it has not called: the picking of tokens, which only one stage does, or what no other stage sends it. */
static json_t *own_collectives(int n, const struct session_collective *at, const int64_t *payload, int stage)
{
    json_t *all = json_array();
    for (int i = 0; i < n; i++)
        if (stage < 0 || at[i].calls)
            json_array_append_new(all, collective_object(&at[i], payload[i], stage));
    return all;
}

/* On rank 0 those of all stages, from their first ranks; of the first replica. */
static json_t *gather_stages(struct arena *a, const struct replicas *r, const struct pipeline *p, json_t *own)
{
    bool tells = r->index == 0 && pipeline_stage(p)->rank == 0;
    const char *text = json_dump(a, own, JSON_COMPACT);
    int64_t *bytes, at = 0;
    const char *texts = comm_gather_texts(r->all, a, "statistics of stages", tells ? text : "", &bytes);
    json_t *all = json_array();
    for (int i = 0; r->all->rank == 0 && i < r->all->size; at += bytes[i++]) {
        json_t *part = bytes[i] ? json_loadb(texts + at, (size_t)bytes[i], 0, NULL) : NULL;
        json_array_extend(all, part);
        json_decref(part);
    }
    json_decref(own);
    return all;
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

static double number_of(const json_t *c, const char *key)
{
    return json_number_value(json_object_get(c, key));
}

static void print_collective(size_t number, const json_t *c)
{
    const json_t *stage = json_object_get(c, "stage");
    if (stage)
        printf("stage %d ", (int)json_integer_value(stage));
    printf("collective %zu %s '%s': %.0f bytes, %.3f ms", number + 1, json_string_value(json_object_get(c, "op")),
           json_string_value(json_object_get(c, "node")), number_of(c, "sent_bytes"), 1e3 * number_of(c, "seconds"));
    if (number_of(c, "behind_seconds") > 0)
        printf(", and %.3f ms overlapped with compute", 1e3 * number_of(c, "behind_seconds"));
    printf("\n");
}

static void print_text(struct arena *a, const struct statistics *s)
{
    print_sizes(s->sizes);
    for (int r = 0; r < s->replicas->all->size; r++)
        print_rank(a, r, &s->rank[r]);
    for (int i = 0; s->replicas->across && i < s->replicas->count; i++)
        print_replica(s->replicas, s->shard, i, s->rank);
    for (size_t i = 0; i < json_array_size(s->collectives); i++)
        print_collective(i, json_array_get(s->collectives, i));
}

/* ---- JSON --------------------------------------------------------------------------------------------------------------- */

static json_t *rank_object(const struct figures *f)
{
    return json_pack("{s:f, s:f, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "compute_seconds", f->compute, "communication_seconds", f->comm,
                     "sent_bytes", (json_int_t)f->bytes, "resident_bytes", (json_int_t)f->resident, "peak_resident_bytes",
                     (json_int_t)f->peak, "weight_bytes", (json_int_t)f->weights, "activation_bytes", (json_int_t)f->slab, "state_bytes",
                     (json_int_t)f->state, "state_moved_bytes", (json_int_t)f->moved);
}

static void write_json(struct arena *a, const struct statistics *s, const char *path)
{
    struct out out;
    json_t *ranks = json_array();
    for (int r = 0; r < s->replicas->all->size; r++)
        json_array_append_new(ranks, rank_object(&s->rank[r]));
    json_t *root = json_pack("{s:o, s:i, s:o, s:O}", STATS_FIRST, json_sizes(s->sizes), "groups", s->replicas->count, "ranks", ranks,
                             "collectives", s->collectives);
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
    const struct pipeline *p = session_pipeline(session);
    const int64_t *payload = gather_payloads(a, p ? pipeline_stage(p) : replicas->all, n, all);
    json_t *own = own_collectives(n, all, payload, p ? pipeline_number(p) : -1);
    struct statistics out = {session_bindings(session), replicas, shard, gather_figures(a, replicas->all, s, nmore, more),
                             p ? gather_stages(a, replicas, p, own) : own};
    if (replicas->all->rank == 0 && path)
        write_json(a, &out, path);
    else if (replicas->all->rank == 0)
        print_text(a, &out);
    json_decref(out.collectives);
}
