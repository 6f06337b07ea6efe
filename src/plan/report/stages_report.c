/* stages_report: the stages of a model on one screen: what each holds, receives and costs. */
#include "plan/cost/cost.h"
#include "plan/facts/facts.h"
#include "plan/input/input.h"
#include "plan/report/report.h"

#include <math.h>

/* Lists ranks, if they differ. */
static void show_ranks(FILE *f, struct arena *a, const struct stage_plan *p, const struct options *options)
{
    enum { MOST_RANKS = 32 };
    int n = options->ranks, all = n * p->cut.stages;
    bool speeds = machine_speeds_differ(&options->machine, all), limited = limits_differ(options, all);
    if (!speeds && !limited)
        return;
    fprintf(f, "%-11s%12s%s%14s%s\n", "rank", "stage", speeds ? "         speed" : "", "memory", limited ? "       at most" : "");
    for (int r = 0; r < all && r < MOST_RANKS; r++) {
        const struct rank_use *use = &p->made[r / n].plan->use[r % n];
        fprintf(f, "  %-9d%12d", r, r / n);
        if (speeds)
            fprintf(f, "%14.3g", options->machine.speed[r]);
        fprintf(f, "%14s", units_bytes(a, (double)memory_total(use)));
        if (limited)
            fprintf(f, "%14s", units_bytes(a, (double)limit_of(options, r)));
        fputc('\n', f);
    }
    if (all > MOST_RANKS)
        fprintf(f, "  and %d more\n", all - MOST_RANKS);
}

static void show_stage(FILE *f, struct arena *a, const struct stage_plan *p, int stage)
{
    const struct stage_made *made = &p->made[stage];
    const struct rank_use most = memory_most(made->global->ranks, made->plan->use);
    double bytes = stage_received_bytes(p, stage);
    fprintf(f, "  %-9d%12d%14s%14s%14s%14s%14s\n", stage, made->source->nodes.n, units_bytes(a, (double)most.weights),
            units_bytes(a, (double)memory_total(&most)), made->plan->missing.list.n ? "" : units_seconds(a, plan_seconds(made->plan)),
            bytes > 0 ? units_bytes(a, bytes) : "", bytes > 0 ? units_seconds(a, stage_receives(p, stage)) : "");
}

/* Microbatches follow each other at the pace of the slowest stage. */
static void show_training(FILE *f, struct arena *a, const struct stage_plan *p, double all, double slowest)
{
    int stages = p->cut.stages, many = 4 * stages;
    fprintf(f, "predicted time of a microbatch: %s, on 1 rank %s; %d take %s, of which a stage works %.0f %%\n", units_seconds(a, all),
            units_seconds(a, p->whole->unsharded_seconds), many, units_seconds(a, all + (many - 1) * slowest),
            100 * many * all / stages / (all + (many - 1) * slowest));
    fprintf(f, "memory is for --accumulate %d and more: stage k of %d holds the activations of %d - k microbatches\n", stages, stages,
            stages);
}

/* A text goes through all stages; as many texts as stages are in flight. */
static void show_step(FILE *f, struct arena *a, const struct stage_plan *p)
{
    double all = 0, slowest = 0, gained = 0;
    for (int i = 0; i < p->cut.stages; i++) {
        const struct plan *made = p->made[i].plan;
        double own = plan_seconds(made) + stage_receives(p, i);
        all += own;
        gained += made->fast_seconds > 0 ? made->seconds - made->fast_seconds : 0;
        slowest = own > slowest ? own : slowest;
        if (p->made[i].plan->missing.list.n)
            return;
    }
    if (p->map.g->trained.n) {
        show_training(f, a, p, all, slowest);
        return;
    }
    fprintf(f, "predicted step time, weighted: %s, on 1 rank %s; the slowest stage takes %s\n", units_seconds(a, all),
            units_seconds(a, p->whole->unsharded_seconds), units_seconds(a, slowest));
    report_fast(f, a, all, all - gained);
}

/* Both by the prices with which the cut was chosen. */
static void show_equal(FILE *f, const struct stage_plan *p)
{
    double slowest = 0;
    for (int k = 0; k < p->cut.stages; k++)
        slowest = fmax(slowest, p->cut.seconds[k]);
    if (p->prices.slower && slowest > 0)
        fprintf(f, "  cut as for equal ranks, the slowest stage takes %.2f times as long\n", p->equal / slowest);
}

static void show_empty(FILE *f, const struct stage_plan *p)
{
    int empty = 0;
    for (int i = 0; i < p->cut.stages; i++)
        empty += p->made[i].source->nodes.n == 0;
    if (empty)
        fprintf(f, "note: %d of %d stages %s empty: --pp %d does the same\n", empty, p->cut.stages, empty == 1 ? "is" : "are",
                p->cut.stages - empty);
}

static void show_missing(FILE *f, struct arena *a, const struct stage_plan *p)
{
    for (int i = 0; i < p->cut.stages; i++)
        if (p->made[i].plan->missing.list.n)
            fprintf(f, "tpc-run can't run stage %d: it has no kernel for %s\n", i, missing_kernels_text(a, &p->made[i].plan->missing));
}

static void show_kinds(FILE *f, struct arena *a, const struct stage_plan *p)
{
    for (int i = 0; i < p->cut.stages; i++) {
        const struct kind_uses kinds = plan_kinds(a, p->made[i].global, p->made[i].plan);
        fprintf(f, "collectives of stage %d: %s\n", i, compare_kinds(a, &kinds, "none"));
    }
}

void plan_report_stages(FILE *f, const struct options *options, const struct stage_plan *p)
{
    struct arena *a = arena_new();
    fprintf(f, "%s on %d ranks, %d stages of %d" REPORT_KIND "%s\n", options->model, p->cut.stages * options->ranks, p->cut.stages,
            options->ranks, options->machine.name);
    report_workloads(f, p->whole);
    report_trained(f, a, p->model);
    fprintf(f, "%-11s%12s%14s%14s%14s%14s%14s\n", "stage", "nodes", "weights", "memory", "step", "receives", "in");
    for (int i = 0; i < p->cut.stages; i++)
        show_stage(f, a, p, i);
    if (options->ranks > 1)
        show_kinds(f, a, p);
    show_ranks(f, a, p, options);
    show_step(f, a, p);
    show_equal(f, p);
    show_missing(f, a, p);
    show_empty(f, p);
    for (int k = 0; k < p->model->warnings.n; k++)
        fprintf(f, "note: %s\n", p->model->warnings.at[k]);
    for (int i = 0; i < p->cut.stages; i++)
        for (int k = 0; k < p->made[i].plan->warnings.n; k++)
            fprintf(f, "note: stage %d: %s\n", i, p->made[i].plan->warnings.at[k]);
    arena_free(a);
}
