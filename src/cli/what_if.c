/* what_if: tpc-shard without --tp: a table of numbers of ranks, and the smallest that is enough. */
#include "cli/shard.h"
#include "plan/facts/facts.h"
#include "plan/report/report.h"

#include <string.h>

#define NEARLY 1.1 /* more ranks are not worth it where they save less */

/* The compilation of one rank, and the tokens of its last workload: of a model with a past, one step. 0: it reads none. */
struct table {
    const struct compile *of;
    int64_t tokens;
};

static void print_head(struct arena *a, const struct table *t)
{
    const struct compile *c = t->of;
    const struct plan *p = c->plan;
    bool assumed = strcmp(c->options->machine.name, "reference") == 0;
    printf("%s, machine %s%s\n", c->options->model, c->options->machine.name,
           assumed ? ", which is no real one (tpc-run --calibrate measures yours)" : "");
    if (c->options->machine.machine_ranks < compare_tried[COMPARE_TRIED - 1])
        printf("%g rank%s on each machine: ranks that share one are slower\n", c->options->machine.machine_ranks,
               c->options->machine.machine_ranks > 1 ? "s" : "");
    report_workloads(stdout, p);
    printf("%-16s%14s", "ranks", "memory each");
    for (int w = 0; w < p->workloads.n; w++)
        printf("%14s", arena_printf(a, "workload %d", w + 1));
    if (t->tokens)
        printf("%12s", "tokens/s");
    printf("%10s  %s\n", "speed-up", "collectives per step");
}

static void print_row(struct arena *a, const struct table *t, const struct compared *row, int ranks, double one)
{
    int n = t->of->plan->workloads.n;
    printf("%-16s%14s", arena_printf(a, "%d%s%s", ranks, *row->name ? ", " : "", row->name), units_bytes(a, (double)row->memory));
    for (int w = 0; w < n; w++)
        printf("%14s", units_seconds(a, row->step[w]));
    if (t->tokens)
        printf("%12s", row->step[n - 1] > 0 ? arena_printf(a, "%.4g", (double)t->tokens / row->step[n - 1]) : "");
    printf("%10.2f  %s\n", one / row->seconds, compare_kinds(a, &row->kinds, "none"));
    streams_flush();
}

/* The best of a number of ranks. */
struct tried {
    double seconds;
    int64_t memory;
    const char *option; /* " --sp=auto" or "" */
};

static struct tried try_ranks(struct arena *a, const struct table *t, int ranks, double one)
{
    struct compared plain = compare_ranks(t->of, ranks, SP_OFF);
    struct tried best = {plain.seconds, plain.memory, ""};
    print_row(a, t, &plain, ranks, one > 0 ? one : plain.seconds);
    if (ranks == 1)
        return best;
    struct compared other = compare_ranks(t->of, ranks, SP_AUTO);
    if (other.seconds >= plain.seconds && other.memory >= plain.memory)
        return best;
    print_row(a, t, &other, ranks, one);
    return other.seconds < plain.seconds ? (struct tried){other.seconds, other.memory, " --sp=auto"} : best;
}

static bool fits(int64_t limit, const struct tried *t)
{
    return !limit || t->memory <= limit;
}

static void print_advice(struct arena *a, const struct tried *t, const char *given, int64_t limit)
{
    double least = t[0].seconds;
    int enough = 0, first = 0;
    for (int i = 1; i < COMPARE_TRIED; i++)
        least = t[i].seconds < least ? t[i].seconds : least;
    while (first < COMPARE_TRIED && !fits(limit, &t[first]))
        first++;
    if (first == COMPARE_TRIED)
        fail("a rank of %d still needs %s by its fastest plan, and --memory allows %s", compare_tried[COMPARE_TRIED - 1],
             units_bytes(a, (double)t[COMPARE_TRIED - 1].memory), units_bytes(a, (double)limit));
    if (first)
        printf("--memory needs %d ranks by these plans\n", compare_tried[first]);
    for (enough = first; enough + 1 < COMPARE_TRIED && t[enough].seconds > NEARLY * least;)
        enough++;
    int n = compare_tried[enough];
    bool slower = true;
    for (int i = enough + 1; i < COMPARE_TRIED; i++)
        slower = slower && t[i].seconds > t[enough].seconds;
    printf("%d rank%s enough: more %s\n", n, n == 1 ? " is" : "s are",
           slower && enough + 1 < COMPARE_TRIED ? "are slower" : "save less than a tenth of the time");
    printf("next: tpc-shard %s --tp %d%s\n", given, n, t[enough].option);
}

void what_if_print(struct compile *c, const char *given, int64_t limit)
{
    struct arena *a = c->arena;
    struct tried tried[COMPARE_TRIED];
    pass_run(c, "load", "memory_limit", NULL);
    const struct table t = {c, workload_tokens(c->source, &c->plan->workloads.at[c->plan->workloads.n - 1])};
    print_head(a, &t);
    for (int i = 0; i < COMPARE_TRIED; i++)
        tried[i] = try_ranks(a, &t, compare_tried[i], i ? tried[0].seconds : 0);
    if (given)
        print_advice(a, tried, given, limit);
}
