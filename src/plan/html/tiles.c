/* tiles: the four numbers that show whether this number of ranks pays off. */
#include "plan/cost/cost.h"
#include "plan/facts/facts.h"
#include "plan/html/html.h"
#include "plan/report/report.h"

#include <math.h>

static void begin_tile(const struct html_page *p, const char *title)
{
    fprintf(p->f, "<div class=tile><h3>%s</h3><b>", title);
}

static void speed_tile(const struct html_page *p)
{
    begin_tile(p, "Speed-up");
    if (!html_timed(p)) {
        fprintf(p->f, "unknown</b><p>tpc-run has no kernel for %s</div>\n", missing_kernels_text(p->arena, &p->plan->missing));
        return;
    }
    for (int w = 0; w < p->loads; w++) {
        const struct workload *load = &p->plan->workloads.at[w];
        html_load_begin(p, "span", "", w);
        fprintf(p->f, "%.2f×</span>", load->unsharded_seconds / plan_step_seconds(load));
    }
    fputs("</b><p>", p->f);
    for (int w = 0; w < p->loads; w++) {
        const struct workload *load = &p->plan->workloads.at[w];
        html_load_begin(p, "span", "", w);
        html_seconds(p, load->unsharded_seconds);
        fputs(" → ", p->f);
        html_seconds(p, plan_step_seconds(load));
        fputs(" a step</span>", p->f);
    }
    if (p->loads > 1)
        fprintf(p->f, "; %.2f× over all workloads", p->plan->unsharded_seconds / plan_seconds(p->plan));
    fputs("</div>\n", p->f);
}

static void memory_tile(const struct html_page *p)
{
    int most = memory_fullest(p->options, p->g->ranks, p->plan->use);
    begin_tile(p, limits_differ(p->options, p->g->ranks) ? "Rank nearest to its limit" : "Fullest rank");
    html_bytes(p, (double)memory_total(&p->plan->use[most]));
    fprintf(p->f, "</b><p>rank %d; unsharded ", most);
    html_bytes(p, (double)memory_total(&p->plan->unsharded));
    if (p->options->memory) {
        fputs("; limit ", p->f);
        html_bytes(p, (double)limit_of(p->options, most));
    }
    fputs("</div>\n", p->f);
}

static void sent_tile(const struct html_page *p)
{
    double *bytes = NEWN(p->arena, double, p->loads + 1), *seconds = NEWN(p->arena, double, p->loads + 1);
    for (int w = 0; w < p->loads; w++) {
        for (int i = 0; i < p->plan->collectives.n; i++)
            bytes[w] += (double)cost_payload(p->g, p->plan->collectives.at[i].node, &p->plan->workloads.at[w].dims, p->g->ranks);
        for (int i = 0; i < p->plan->step.list.n; i++)
            seconds[w] += html_part_sends(&p->plan->step.list.at[i]) ? p->plan->step.list.at[i].seconds[w] : 0;
    }
    begin_tile(p, "Communication");
    html_bytes_by(p, bytes);
    fprintf(p->f, "</b><p>put in by a rank; %d collective%s", p->plan->collectives.n, p->plan->collectives.n == 1 ? "" : "s");
    if (html_timed(p) && p->plan->collectives.n) {
        fputs(", ", p->f);
        for (int w = 0; w < p->loads; w++) {
            html_load_begin(p, "span", "", w);
            fprintf(p->f, "%.0f %% of the step</span>", 100 * seconds[w] / p->plan->workloads.at[w].seconds);
        }
    }
    fputs("</div>\n", p->f);
}

static void proof_tile(const struct html_page *p)
{
    const struct plan *plan = p->plan;
    begin_tile(p, "The plan is");
    if (plan->proven && plan->objective > plan->least)
        fprintf(p->f, "within %g %%</b><p>of the least time, proven, under this cost model", 100 * PLAN_NEAR);
    else if (plan->proven)
        fputs("optimal</b><p>proven, under this cost model", p->f);
    else if (plan->lower_bound > 0)
        fprintf(p->f, "within %.2g %%</b><p>of the best one, by a lower bound", 100 * (plan->seconds / plan->lower_bound - 1));
    else
        fputs("not proven</b><p>no bound is known", p->f);
    const char *first = report_first(p->arena, plan);
    if (first && fabs(plan->first_seconds / plan->seconds - 1) > 0.0005 && html_timed(p))
        fprintf(p->f, "; %s", first);
    fputs("</div>\n", p->f);
}

void html_tiles(const struct html_page *p)
{
    fputs("<section class=tiles>\n", p->f);
    speed_tile(p);
    memory_tile(p);
    sent_tile(p);
    proof_tile(p);
    fputs("</section>\n", p->f);
}
