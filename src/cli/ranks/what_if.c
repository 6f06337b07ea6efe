/* what_if: tpc-shard without --tp: a table of numbers of ranks, and the smallest number that suffices. */
#include "cli/shard.h"
#include "plan/facts/facts.h"
#include "plan/input/input.h"
#include "plan/report/report.h"
#include "run/comm/launch.h"

#include <math.h>
#include <string.h>

#define NEARLY 1.1 /* more ranks are not worth it for smaller savings */
#define LITTLE 1.3 /* speedup by twice the ranks: each does less than two thirds of its former work */

/* The compilation of one rank, and the tokens of its last workload: for a model with a past, of one step. 0: it reads none. */
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
    if (c->options->machine.machine_ranks < PLAN_RANKS)
        printf("%g rank%s on each machine: more that share one are slower than this table says\n", c->options->machine.machine_ranks,
               c->options->machine.machine_ranks > 1 ? "s" : "");
    report_workloads(stdout, p);
    if (p->workloads.n > 1)
        printf("speed-up: of the weighted step, to one rank; efficiency: per rank\n");
    printf("%-16s%14s", "ranks", "memory each");
    for (int w = 0; w < p->workloads.n; w++)
        printf("%14s", arena_printf(a, "workload %d", w + 1));
    if (t->tokens)
        printf("%12s", "tokens/s");
    printf("%10s%12s  %s\n", "speed-up", "efficiency", "collectives per step");
}

static void print_row(struct arena *a, const struct table *t, const struct compared *row, int ranks, double one)
{
    int n = t->of->plan->workloads.n;
    printf("%-16s%14s", arena_printf(a, "%d%s%s", ranks, *row->name ? ", " : "", row->name), units_bytes(a, (double)row->memory));
    for (int w = 0; w < n; w++)
        printf("%14s", units_seconds(a, row->step[w]));
    if (t->tokens)
        printf("%12s", row->step[n - 1] > 0 ? arena_printf(a, "%.4g", (double)t->tokens / row->step[n - 1]) : "");
    printf("%10.2f%10.0f %%  %s%s\n", one / row->seconds, 100 * one / row->seconds / ranks, compare_kinds(a, &row->kinds, "none"),
           row->fits ? "" : "; over --memory");
    streams_flush();
}

/* The best plan for a number of ranks. */
struct tried {
    int ranks;
    double seconds;
    int64_t memory, limit; /* of the fullest rank */
    bool fits;
    const char *option; /* " --sp=auto" or "" */
};
struct all_tried {
    VEC(struct tried) list;
    int fits;   /* the first that fits; n: none */
    int enough; /* the first that fits and takes at most NEARLY the fastest fitting time */
};

static struct tried tried_plan(const struct table *t, int ranks, const struct compared *plan, const char *option)
{
    return (struct tried){ranks, plan->seconds, plan->memory, limit_of(t->of->options, plan->fullest), plan->fits, option};
}

static struct tried try_ranks(struct arena *a, const struct table *t, int ranks, double one)
{
    struct compared plain = compare_ranks(t->of, ranks, SP_OFF);
    struct tried best = tried_plan(t, ranks, &plain, "");
    print_row(a, t, &plain, ranks, one > 0 ? one : plain.seconds);
    if (ranks == 1 || ranks > EXACT_RANKS) /* with many ranks one plan takes long enough */
        return best;
    struct compared other = compare_ranks(t->of, ranks, SP_AUTO);
    if (other.seconds >= plain.seconds && other.memory >= plain.memory)
        return best;
    print_row(a, t, &other, ranks, one);
    bool better = other.fits != plain.fits ? other.fits : other.seconds * (1 + PLAN_NEAR) < plain.seconds;
    return better ? tried_plan(t, ranks, &other, " --sp=auto") : best;
}

static void judge(struct all_tried *all)
{
    int n = all->list.n;
    const struct tried *at = all->list.at;
    double least = INFINITY;
    all->fits = 0;
    while (all->fits < n && !at[all->fits].fits)
        all->fits++;
    for (int i = all->fits; i < n; i++)
        if (at[i].fits)
            least = fmin(least, at[i].seconds);
    all->enough = all->fits;
    while (all->enough < n && (at[all->enough].seconds > NEARLY * least || !at[all->enough].fits))
        all->enough++;
}

/* Doubles the number until that stops helping, or the maximum. */
static void try_all(struct arena *a, const struct table *t, struct all_tried *all)
{
    enum { LEAST_TRIED = 5, WITHOUT_GAIN = 2 };
    int most = machine_most_ranks(&t->of->options->machine);
    bool done = false;
    for (int ranks = 1; ranks <= most && !done; ranks = ranks < most && 2 * ranks > most ? most : 2 * ranks) {
        struct tried one = try_ranks(a, t, ranks, all->list.n ? all->list.at[0].seconds : 0);
        VEC_PUSH(a, &all->list, one);
        judge(all);
        done = all->list.n >= LEAST_TRIED && all->enough + WITHOUT_GAIN < all->list.n;
    }
}

/* The effect of more ranks than `enough`. */
static const char *what_more_do(struct arena *a, const struct all_tried *all)
{
    const struct tried *t = &all->list.at[all->enough], *last = &all->list.at[all->list.n - 1];
    bool slower = true;
    for (const struct tried *more = t + 1; more <= last; more++)
        slower = slower && more->seconds > t->seconds;
    if (all->list.n == 1)
        return "no other number was tried: there is the speed of one rank";
    if (t == last && all->fits == all->enough)
        return arena_printf(a, "%d ranks are the most that were tried", t->ranks);
    if (t == last)
        return arena_printf(a, "%d ranks are the most that were tried, and faster than all others by a tenth", t->ranks);
    return arena_printf(a, "%d rank%s enough: up to %d, more %s", t->ranks, t->ranks == 1 ? " is" : "s are", last->ranks,
                        slower ? "are slower" : "save less than a tenth of the time");
}

/* Where a long tail of doublings with little gain begins. */
static void print_tail(const struct all_tried *all, double one)
{
    const struct tried *at = all->list.at;
    int from = all->enough;
    double most = 1;
    while (from > all->fits && at[from - 1].seconds < LITTLE * at[from].seconds) {
        most = fmax(most, at[from - 1].seconds / at[from].seconds);
        from--;
    }
    if (from + 1 < all->enough)
        printf("from %d rank%s on, each doubling makes a step at most %.2f times as fast: efficiency falls from %.0f %% to %.0f %%\n",
               at[from].ranks, at[from].ranks == 1 ? "" : "s", most, 100 * one / at[from].seconds / at[from].ranks,
               100 * one / at[all->enough].seconds / at[all->enough].ranks);
}

static void print_advice(struct arena *a, const struct all_tried *all, const char *given)
{
    if (all->fits == all->list.n) {
        const struct tried *last = &all->list.at[all->list.n - 1];
        fail("none of these numbers of ranks fits: a rank of %d still needs %s, and --memory allows %s", last->ranks,
             units_bytes(a, (double)last->memory), units_bytes(a, (double)last->limit));
    }
    if (all->fits)
        printf("%d ranks are the fewest of these numbers that fit into --memory\n", all->list.at[all->fits].ranks);
    printf("%s\n", what_more_do(a, all));
    print_tail(all, all->list.at[0].seconds);
    printf("next: %s %s --tp %d%s\n", launch_beside(a, "tpc-shard"), given, all->list.at[all->enough].ranks,
           all->list.at[all->enough].option);
}

void what_if_print(struct compile *c, const char *given)
{
    struct arena *a = c->arena;
    struct all_tried all = {.fits = 0};
    pass_run(c, "load", "keep_source", NULL); /* each row finds its own plan within the limit */
    const struct table t = {c, workload_tokens(c->source, &c->plan->workloads.at[c->plan->workloads.n - 1])};
    print_head(a, &t);
    try_all(a, &t, &all);
    if (given)
        print_advice(a, &all, given);
}
