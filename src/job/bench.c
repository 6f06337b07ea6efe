/* bench: runs a model on made-up inputs of its planned sizes, and prints times: for a model alone a line per workload, with --bench a
 * table. */
#include "ir/rank_meta.h"
#include "job/io/io.h"
#include "job/job.h"
#include "job/timing/timing.h"

#include <string.h>

enum { MOST_RUNS = 10, BENCH_RUNS = 5 };

/* Times of the runs of one workload. */
struct times {
    double first, least, sum; /* least and sum: of those after the first, if there are any */
    VEC(double) later;        /* each of these */
};

/* Runs as many times as requested; else, for a model alone, up to ten times within a second. Rank 0 decides for all. */
static bool goes_on(struct comm *all, const struct job_options *o, const struct times *t)
{
    bool more = o->bench ? t->later.n < bench_runs(o)
        : o->repeat > 1  ? t->later.n + 1 < o->repeat
                         : t->later.n + 1 < MOST_RUNS && t->first + t->sum < 1;
    comm_from_first(all, "number of runs", &more, sizeof more);
    return more;
}

static struct times time_runs(struct arena *a, struct comm *all, struct session *s, const struct job_options *o, const struct tensor *in,
                              struct tensor *out, bool runs)
{
    struct times t = {.first = job_timed_run(all, s, in, out, runs)};
    for (session_reset_stats(s); goes_on(all, o, &t);) {
        double seconds = job_timed_run(all, s, in, out, runs);
        t.least = t.later.n == 0 || seconds < t.least ? seconds : t.least;
        t.sum += seconds;
        VEC_PUSH(a, &t.later, seconds);
    }
    return t;
}

static const char *sizes_text(struct arena *a, const struct bindings *sizes)
{
    const char *text = "";
    for (int i = 0; i < sizes->list.n; i++)
        text = arena_printf(a, "%s%s%s=%lld", text, i ? "," : "", sizes->list.at[i].name, (long long)sizes->list.at[i].value);
    return *text ? text : "static sizes";
}

static void print_times(struct arena *a, const struct bindings *sizes, const struct times *t, int64_t tokens)
{
    int n = t->later.n;
    double each = n ? t->sum / n : t->first;
    printf("%s\n  first run %.3f ms", sizes_text(a, sizes), 1e3 * t->first);
    if (n)
        printf(", then %.3f ms (least %.3f, %d run%s)", 1e3 * each, 1e3 * t->least, n, n == 1 ? "" : "s");
    double rate = (double)(tokens ? tokens : 1) / each;
    printf(": %.*f %s/s\n", rate < 100 ? 1 : 0, rate, tokens ? "tokens" : "runs");
}

/* One workload; false: the plan has no more. */
static bool run_workload(struct arena *a, const struct replicas *r, struct session *s, struct graph *g, const struct job_options *o,
                         struct bench_table *table, int number)
{
    struct bindings sizes;
    if (!rank_meta_workload(g, number, &sizes) && number > 1)
        return false;
    struct job_options made = *o;
    made.random = true;
    made.workload = number;
    struct tensor *in = job_inputs(a, r->all, s, g, &made), *out = NEWN(a, struct tensor, g->outputs.n);
    int64_t tokens = job_count_tokens(a, g, in);
    struct batch_shard rows = replica_shard_batch(r, g, s, in);
    replica_take_rows(a, &rows, g, s, in);
    struct times t = time_runs(a, r->all, s, o, in, out, replica_runs(r, &rows));
    if (o->bench)
        bench_table_add(table, &(struct bench_test){sizes_text(a, session_bindings(s)), tokens, t.later.n, t.later.at});
    else if (r->all->rank == 0)
        print_times(a, &sizes, &t, tokens);
    job_tell_times(a, r->all, s, o->paths.text.at[0], o);
    streams_flush();
    return true;
}

int64_t bench_runs(const struct job_options *o)
{
    return o->repeat > 1 ? o->repeat : BENCH_RUNS;
}

void bench_warn(const struct comm *all, const struct job_options *o)
{
    int cores = cores_of_machine();
    if (all->rank == 0 && all->local_size > cores)
        fprintf(o->bench ? stderr : stdout, "%d ranks share %d cores: they take turns\n", all->local_size, cores);
}

void bench_run(struct arena *a, const struct replicas *r, struct session *s, struct graph *g, const struct job_options *o, int threads)
{
    if (r->all->rank == 0 && !o->bench)
        printf("inputs are made up, because none is given\n");
    bench_warn(r->all, o);
    struct bench_table *table = o->bench ? bench_table_new(a, r->all, o, threads) : NULL;
    for (int number = 1; run_workload(a, r, s, g, o, table, number); number++)
        ;
    bench_table_end(table);
}
