/* bench: a model alone: runs it on made-up inputs of the sizes that it was planned for, and prints the times. */
#include "ir/rank_meta.h"
#include "job/job.h"

#include <string.h>
#include <unistd.h>

enum { MOST_RUNS = 10 };

/* Of the runs at one workload. */
struct times {
    int runs;
    double first, least, sum; /* least and sum: of those after the first, if there are more */
};

/* As many runs as asked for, else up to ten within a second. Rank 0 decides for all. */
static bool goes_on(struct comm *all, const struct job_options *o, const struct times *t)
{
    bool more = o->repeat > 1 ? t->runs < o->repeat : t->runs < MOST_RUNS && t->first + t->sum < 1;
    all->id = 0;
    all->name = "number of runs";
    all->broadcast(all, &more, sizeof more, 0);
    return more;
}

static struct times time_runs(struct comm *all, struct session *s, const struct job_options *o, const struct tensor *in, struct tensor *out,
                              bool runs)
{
    struct times t = {1, job_timed_run(all, s, in, out, runs), 0, 0};
    for (session_reset_stats(s); goes_on(all, o, &t); t.runs++) {
        double seconds = job_timed_run(all, s, in, out, runs);
        t.least = t.runs == 1 || seconds < t.least ? seconds : t.least;
        t.sum += seconds;
    }
    t.least = t.runs == 1 ? t.first : t.least;
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
    double each = t->runs > 1 ? t->sum / (t->runs - 1) : t->first;
    printf("%s\n  first run %.3f ms", sizes_text(a, sizes), 1e3 * t->first);
    if (t->runs > 1)
        printf(", then %.3f ms (least %.3f, %d run%s)", 1e3 * each, 1e3 * t->least, t->runs - 1, t->runs == 2 ? "" : "s");
    double rate = (double)(tokens ? tokens : 1) / each;
    printf(": %.*f %s/s\n", rate < 100 ? 1 : 0, rate, tokens ? "tokens" : "runs");
}

/* One workload; false: the plan has no more. */
static bool run_workload(struct arena *a, const struct replicas *r, struct session *s, struct graph *g, const struct job_options *o,
                         int number)
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
    struct times t = time_runs(r->all, s, o, in, out, replica_runs(r, &rows));
    if (r->all->rank == 0)
        print_times(a, &sizes, &t, tokens);
    job_tell_times(a, r->all, s, o->paths.text.at[0], o);
    streams_flush();
    return true;
}

void bench_run(struct arena *a, const struct replicas *r, struct session *s, struct graph *g, const struct job_options *o)
{
    if (r->all->rank == 0)
        printf("inputs are made up, because none is given\n");
    if (r->all->rank == 0 && r->all->local_size > sysconf(_SC_NPROCESSORS_ONLN))
        printf("%d ranks share %ld cores: they take turns\n", r->all->local_size, sysconf(_SC_NPROCESSORS_ONLN));
    for (int number = 1; run_workload(a, r, s, g, o, number); number++)
        ;
}
