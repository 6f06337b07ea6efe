/* report: the plan on one screen, to decide whether N ranks pay off. */
#include "plan/report/report.h"

#include "op/prices.h"
#include "plan/cost/cost.h"
#include "plan/facts/facts.h"
#include "plan/input/input.h"
#include "plan/plan.h"

#include <math.h>
#include <string.h>

static void show_memory(FILE *f, struct arena *a, const struct graph *g, const struct options *options, const struct plan *p)
{
    if (!p->use)
        return;
    struct rank_use most = memory_most(g->ranks, p->use);
    fprintf(f, "%-28s %12s %12s\n", "memory (fullest rank)", "per rank", "unsharded");
    fprintf(f, "  %-26s %12s %12s\n", "weights", units_bytes(a, (double)most.weights), units_bytes(a, (double)p->unsharded.weights));
    if (p->unsharded.state > 0)
        fprintf(f, "  %-26s %12s %12s\n", g->trained.n ? "gradients and moments" : "state", units_bytes(a, (double)most.state),
                units_bytes(a, (double)p->unsharded.state));
    fprintf(f, "  %-26s %12s %12s\n", "activations, peak", units_bytes(a, (double)(most.peak + most.blocks)),
            units_bytes(a, (double)p->unsharded.peak));
    if (options->weights)
        fprintf(f, "  weights of ranks are stored as %s, the unsharded model's as they are\n", weight_type_name(options->weights));
}

/* "1.2 of 4.9 M" */
static const char *count_text(struct arena *a, double part, double all)
{
    static const char *const unit[] = {"", " k", " M", " G"};
    int k = all < 1e4 ? 0 : all < 1e6 ? 1 : all < 1e9 ? 2 : 3;
    double scale = k == 0 ? 1 : k == 1 ? 1e3 : k == 2 ? 1e6 : 1e9;
    return k ? arena_printf(a, "%.3g of %.3g%s", part / scale, all / scale, unit[k]) : arena_printf(a, "%.0f of %.0f", part, all);
}

static void show_limit(FILE *f, struct arena *a, const struct graph *g, const struct options *options, const struct plan *p)
{
    if (!options->memory || !p->use)
        return;
    int fullest = memory_fullest(options, g->ranks, p->use);
    const char *all = limits_differ(options, g->ranks) ? arena_printf(a, "nearest its limit, rank %d", fullest) : "all";
    fprintf(f, "  %-26s %12s  of at most %s\n", all, units_bytes(a, (double)memory_total(&p->use[fullest])),
            units_bytes(a, (double)limit_of(options, fullest)));
}

static void show_kind(FILE *f, struct arena *a, const struct kind_use *k, int workloads)
{
    fprintf(f, "  %4d %-16s", k->count, collective_name(k->kind));
    for (int w = 0; w < workloads; w++)
        fprintf(f, "%14s", units_bytes(a, k->bytes[w]));
    fputc('\n', f);
}

static void show_head(FILE *f, struct arena *a, const struct plan *p, const char *what)
{
    fprintf(f, "%-23s", what);
    for (int w = 0; w < p->workloads.n; w++)
        fprintf(f, "%14s", arena_printf(a, "workload %d", w + 1));
}

static void show_collectives(FILE *f, struct arena *a, const struct graph *g, const struct plan *p)
{
    if (p->collectives.n == 0) {
        fprintf(f, "collectives per step: none\n");
        return;
    }
    show_head(f, a, p, "collectives per step");
    fputc('\n', f);
    struct kind_uses kinds = plan_kinds(a, g, p);
    for (int i = 0; i < kinds.list.n; i++)
        show_kind(f, a, &kinds.list.at[i], p->workloads.n);
}

void report_workloads(FILE *f, const struct plan *p)
{
    for (int w = 0; w < p->workloads.n; w++) {
        const struct workload *at = &p->workloads.at[w];
        fprintf(f, "workload %d: %s (weight %g%s%s%s)\n", w + 1, *at->text ? at->text : "static sizes", at->weight, at->assumed ? "; " : "",
                at->assumed ? at->assumed : "", at->assumed ? " assumed" : "");
    }
}

/* Ends a row with the average over the workloads, if there are several. */
static void end_with(FILE *f, const struct plan *p, const char *average)
{
    if (p->workloads.n > 1)
        fprintf(f, "%14s", average);
    fputc('\n', f);
}

static void show_times(FILE *f, struct arena *a, const struct plan *p, const char *who, bool unsharded)
{
    fprintf(f, "  %-21s", who);
    for (int w = 0; w < p->workloads.n; w++)
        fprintf(f, "%14s", units_seconds(a, unsharded ? p->workloads.at[w].unsharded_seconds : plan_step_seconds(&p->workloads.at[w])));
    end_with(f, p, units_seconds(a, unsharded ? p->unsharded_seconds : plan_seconds(p)));
}

/* The time without overlap; nothing if overlap saves nothing. */
static void show_overlap(FILE *f, struct arena *a, const struct plan *p)
{
    bool some = false;
    for (int w = 0; w < p->workloads.n; w++)
        some |= p->workloads.at[w].overlapped > 0;
    if (!some)
        return;
    fprintf(f, "  %-21s", "  without overlap");
    for (int w = 0; w < p->workloads.n; w++)
        fprintf(f, "%14s", units_seconds(a, p->workloads.at[w].seconds));
    end_with(f, p, units_seconds(a, p->seconds));
}

static const char *times_as_fast(struct arena *a, double one, double all)
{
    return all > 0 ? arena_printf(a, "%.2f", one / all) : "";
}

static void show_speed_up(FILE *f, struct arena *a, const struct plan *p)
{
    fprintf(f, "  %-21s", "speed-up");
    for (int w = 0; w < p->workloads.n; w++)
        fprintf(f, "%14s", times_as_fast(a, p->workloads.at[w].unsharded_seconds, plan_step_seconds(&p->workloads.at[w])));
    end_with(f, p, times_as_fast(a, p->unsharded_seconds, plan_seconds(p)));
}

void report_fast(FILE *f, struct arena *a, double seconds, double fast)
{
    double times = fast > 0 ? fast / seconds : 1;
    if (times <= 1 / PRICE_TOLD)
        fprintf(
            f,
            "tpc-run --fast is predicted to take %.2f of this time, %s a step: products in bf16, results off by about 0.02 of their size, "
            "of mixtures by more (docs/precision.md)\n",
            times, units_seconds(a, fast));
}

/* "workload 2", or "workloads 1 and 3"; NULL: all ranks are faster in every workload. */
static const char *slower_at(struct arena *a, const struct plan *p)
{
    const char *list = NULL;
    int n = 0;
    for (int w = p->workloads.n - 1; w >= 0; w--) {
        if (plan_step_seconds(&p->workloads.at[w]) <= p->workloads.at[w].unsharded_seconds)
            continue;
        list = n == 0 ? arena_printf(a, "%d", w + 1) : arena_printf(a, "%d%s%s", w + 1, n == 1 ? " and " : ", ", list);
        n++;
    }
    return list ? arena_printf(a, "workload%s %s", n > 1 ? "s" : "", list) : NULL;
}

/* Whether nothing is split: every rank does the whole work. */
static bool splits_nothing(const struct plan *p)
{
    bool same = p->collectives.n == 0;
    for (int w = 0; w < p->workloads.n; w++)
        same &= p->workloads.at[w].seconds == p->workloads.at[w].unsharded_seconds;
    return same;
}

/* The links of the levels that this many ranks use. */
static const char *links_text(struct arena *a, const struct machine *m, int ranks)
{
    const char *text = arena_printf(a, "%s and %s between ranks", units_rate(a, m->level[0].bandwidth),
                                    units_delay(a, m->level[0].latency));
    for (int i = 1; i < m->levels && m->level[i].ranks < ranks; i++) {
        const struct link *link = &m->level[i];
        text = arena_printf(a, "%s, %s and %s out of each %s%g", text, units_rate(a, link->unit_bandwidth), units_delay(a, link->latency),
                            link->ranks == m->machine_ranks ? "machine of " : "", link->ranks);
    }
    return text;
}

/* The machines for which times are predicted. */
static void show_machines(FILE *f, struct arena *a, const struct machine *m, int ranks)
{
    int machines = (int)ceil(ranks / m->machine_ranks);
    fprintf(f, "  on %s%s of %s, %s%s%s%s\n", machines > 1 ? arena_printf(a, "%d ", machines) : "one ",
            machines > 1 ? "machines" : "machine", units_rate(a, m->machine_memory_bandwidth), links_text(a, m, ranks),
            m->wire == WIRE_F32 ? "" : ", sums in ", m->wire == WIRE_F32 ? "" : sum_wire_name(m->wire),
            strcmp(m->name, "reference") == 0 ? " (tpc-run --calibrate measures yours)" : "");
    if (machine_origins(a, m))
        fprintf(f, "  numbers of the machine: %s\n", machine_origins(a, m));
}

static void show_time(FILE *f, struct arena *a, const struct graph *g, const struct machine *machine, const struct plan *p)
{
    const char *slower = slower_at(a, p);
    if (p->missing.list.n) {
        fprintf(f, "predicted step time: none, for tpc-run can't run this plan: it has no kernel for %s\n",
                missing_kernels_text(a, &p->missing));
        return;
    }
    show_head(f, a, p, "predicted step time");
    end_with(f, p, "weighted");
    show_times(f, a, p, "1 rank", true);
    if (g->ranks == 1)
        return;
    show_times(f, a, p, arena_printf(a, "%d ranks", g->ranks), false);
    show_overlap(f, a, p);
    show_speed_up(f, a, p);
    show_machines(f, a, machine, g->ranks);
    if (slower)
        fprintf(f, "%d ranks are slower than one at %s: communication costs more than the divided work saves.\n", g->ranks, slower);
    if (splits_nothing(p))
        fprintf(f, "%d ranks are as fast as one: nothing is split at these sizes (--workload gives others).\n", g->ranks);
}

/* Compares with plans of equal shares. */
static void show_equal(FILE *f, struct arena *a, const struct plan *p)
{
    const struct compared *equal = p->equal;
    if (equal && !equal->fits)
        fprintf(f, "  equal shares do not fit: rank %d would hold %s\n", equal->fullest, units_bytes(a, (double)equal->memory));
    else if (equal)
        fprintf(f, "  equal shares take %.2f times as long: %s\n", equal->seconds / plan_seconds(p), units_seconds(a, equal->seconds));
}

/* Lists ranks, if they differ. */
static void show_ranks(FILE *f, struct arena *a, const struct graph *g, const struct options *options, const struct plan *p)
{
    enum { MOST_RANKS = 32 };
    bool limited = limits_differ(options, g->ranks);
    if (!p->rank_time || p->missing.list.n)
        return;
    fprintf(f, "%-23s%14s%14s%14s%14s%s\n", "rank", "speed", "share", "computes", "memory", limited ? "       at most" : "");
    for (int r = 0; r < g->ranks && r < MOST_RANKS; r++) {
        const struct rank_time *t = &p->rank_time[r];
        fprintf(f, "  %-21d%14s%14s%14s%14s", r, arena_printf(a, "%.3g", t->speed), arena_printf(a, "%.3g %%", 100 * t->share),
                units_seconds(a, t->seconds), p->use ? units_bytes(a, (double)memory_total(&p->use[r])) : "");
        fprintf(f, "%*s\n", limited ? 14 : 0, limited ? units_bytes(a, (double)limit_of(options, r)) : "");
    }
    if (g->ranks > MOST_RANKS)
        fprintf(f, "  and %d more\n", g->ranks - MOST_RANKS);
    show_equal(f, a, p);
}

static void show_replicated(FILE *f, const struct plan *p)
{
    enum { MOST_REPLICATED = 8 };
    if (p->replicated.n == 0)
        return;
    fprintf(f, "replicated (%d):\n", p->nreplicated);
    for (int i = 0; i < p->replicated.n && i < MOST_REPLICATED; i++)
        fprintf(f, "  %s\n", p->replicated.at[i]);
    if (p->replicated.n > MOST_REPLICATED)
        fprintf(f, "  and nodes of %d more ops\n", p->replicated.n - MOST_REPLICATED);
    if (p->repeated_seconds > p->seconds / 2 && !p->missing.list.n)
        fprintf(f, "%.0f%% of the predicted step is work that every rank repeats.\n", 100 * p->repeated_seconds / p->seconds);
}

static const char *percent(struct arena *a, double part)
{
    return arena_printf(a, part < 0.1 ? "%.2g" : "%.0f", 100 * part);
}

const char *report_first(struct arena *a, const struct plan *p)
{
    double times = p->first_seconds / p->seconds, more = (p->first_resident - p->resident) / p->ranks;
    bool limited = p->byte_price > 0;
    if (p->first_seconds <= 0 || p->missing.list.n)
        return NULL;
    const char *first = arena_printf(a, "the first assignment %s takes %.3f times as long%s",
                                     limited ? "without a limit on memory" : "that fits", times,
                                     p->overlapped > 0 ? " without overlap" : "");
    if (times > 0.9995 || more <= 0 || !limited)
        return first;
    return arena_printf(a, "%s, and holds %s more per rank: the plan is %.2g %% slower to hold less (--memory)", first,
                        units_bytes(a, more), 100 * (1 / times - 1));
}

/* Other plans that are nearly as fast: a hundredth of the bytes counts as one collective. */
static const char *near_text(const struct plan *p)
{
    if (!p->near.searched)
        return "";
    if (p->near.more < 1)
        return "; none as fast has fewer collectives, or holds 1 % less";
    return "; another as fast may have fewer collectives, or hold less";
}

/* The fastest plan, if --memory excludes it. */
static void show_fastest(FILE *f, struct arena *a, const struct plan *p)
{
    double times = p->fastest_seconds > 0 ? plan_seconds(p) / p->fastest_seconds : 0;
    const char *held = units_bytes(a, (double)p->fastest_total), *takes = units_seconds(a, p->fastest_seconds);
    if (times > 1)
        fprintf(
            f,
            "the limit on memory rules out the fastest plan: this one takes %.3f times as long as its %s a step; it holds %s on a rank\n",
            times, takes, held);
    else if (times > 0)
        fprintf(f, "the limit on memory costs no time: the plan that it rules out takes %s a step, and holds %s on a rank\n", takes, held);
}

static void show_proof(FILE *f, struct arena *a, const struct plan *p)
{
    if (p->proven && p->objective <= p->least)
        fprintf(f, "the plan takes the least time under this cost model, proven%s\n", near_text(p));
    else if (p->proven)
        fprintf(f, "the plan is within %g %% of the least time, proven%s\n", 100 * PLAN_NEAR, near_text(p));
    else if (p->lower_bound > 0)
        fprintf(f, "not proven optimal: at most %s %% above the best plan\n", percent(a, p->seconds / p->lower_bound - 1));
    else
        fprintf(f, "not proven optimal, and no bound is known\n");
    show_fastest(f, a, p);
    const char *first = report_first(a, p);
    if (first)
        fprintf(f, "%s\n", first);
}

void report_trained(FILE *f, struct arena *a, const struct plan *p)
{
    if (p->trainable.weights)
        fprintf(f, "trains %d of %d weights, %s numbers\n", p->trained.weights, p->trainable.weights,
                count_text(a, p->trained.numbers, p->trainable.numbers));
}

void plan_report(FILE *f, const struct graph *g, const struct options *options, const struct plan *p)
{
    struct arena *a = arena_new();
    fprintf(f, "%s on %d rank%s" REPORT_KIND "%s\n", options->model, g->ranks, g->ranks == 1 ? "" : "s", options->machine.name);
    report_workloads(f, p);
    if (p->sequence)
        fprintf(f, "sequence split: %s\n", p->sequence);
    report_trained(f, a, p);
    show_memory(f, a, g, options, p);
    show_limit(f, a, g, options, p);
    show_collectives(f, a, g, p);
    show_time(f, a, g, &options->machine, p);
    if (!p->missing.list.n)
        report_fast(f, a, p->seconds, p->fast_seconds);
    show_ranks(f, a, g, options, p);
    compare_text(f, g, options, p);
    show_replicated(f, p);
    show_proof(f, a, p);
    for (int i = 0; i < p->warnings.n; i++)
        fprintf(f, "note: %s\n", p->warnings.at[i]);
    arena_free(a);
}
