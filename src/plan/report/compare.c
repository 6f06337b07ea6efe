/* compare: compares a plan with others of the same graph: predicted times, collectives by kind, weights of the fullest rank. */
#include "plan/cost/cost.h"
#include "plan/facts/facts.h"
#include "plan/plan.h"
#include "plan/report/report.h"

static struct kind_use *use_of(struct arena *a, struct kind_uses *all, enum collective kind, int workloads)
{
    for (int i = 0; i < all->list.n; i++)
        if (all->list.at[i].kind == kind)
            return &all->list.at[i];
    VEC_PUSH(a, &all->list, ((struct kind_use){kind, 0, NEWN(a, double, workloads + 1)}));
    return &all->list.at[all->list.n - 1];
}

struct kind_uses plan_kinds(struct arena *a, const struct graph *g, const struct plan *p)
{
    struct kind_uses all = {{NULL, 0, 0}};
    for (int i = 0; i < p->collectives.n; i++) {
        require(p->collectives.at[i].kind != COLL_NONE);
        struct kind_use *k = use_of(a, &all, p->collectives.at[i].kind, p->workloads.n);
        k->count++;
        for (int w = 0; w < p->workloads.n; w++)
            k->bytes[w] += (double)cost_payload(g, p->collectives.at[i].node, &p->workloads.at[w].dims, g->ranks);
    }
    return all;
}

struct compared plan_compared(struct arena *a, const char *name, const struct graph *g, const struct options *o, const struct plan *p)
{
    struct compared c = {
        .name = name, .seconds = plan_seconds(p), .step = NEWN(a, double, p->workloads.n + 1), .kinds = plan_kinds(a, g, p)};
    for (int w = 0; w < p->workloads.n; w++)
        c.step[w] = plan_step_seconds(&p->workloads.at[w]);
    c.fits = true;
    if (!p->use)
        return c;
    c.weights = memory_most(g->ranks, p->use).weights;
    c.fullest = memory_fullest(o, g->ranks, p->use);
    c.memory = memory_total(&p->use[c.fullest]);
    c.fits = !o->memory || c.memory <= limit_of(o, c.fullest);
    return c;
}

const char *compare_kinds(struct arena *a, const struct kind_uses *all, const char *none)
{
    const char *list = none;
    for (int i = 0; i < all->list.n; i++)
        list = arena_printf(a, "%s%s%d %s", i ? list : "", i ? ", " : "", all->list.at[i].count, collective_name(all->list.at[i].kind));
    return list;
}

static double bytes_of(const struct kind_uses *all, int workload)
{
    double sum = 0;
    for (int i = 0; i < all->list.n; i++)
        sum += all->list.at[i].bytes[workload];
    return sum;
}

/* chosen: seconds of the plan to compare with; 0: no speed is claimed. */
static void show_plan(FILE *f, struct arena *a, const struct compared *c, int workloads, double chosen)
{
    fprintf(f, "  %-21s", path_base(c->name));
    for (int w = 0; w < workloads; w++)
        fprintf(f, "%14s", chosen > 0 ? units_seconds(a, c->step[w]) : "none");
    fprintf(f, "%14s", chosen > 0 ? units_seconds(a, c->seconds) : "none");
    fprintf(f, "%8s", chosen > 0 ? arena_printf(a, "%.2f", c->seconds / chosen) : "");
    fprintf(f, "%14s\n", units_bytes(a, (double)c->weights));
    fprintf(f, "    %s", compare_kinds(a, &c->kinds, "no collectives"));
    for (int w = 0; w < workloads && c->kinds.list.n; w++)
        fprintf(f, "%s%s", w ? ", " : ": ", units_bytes(a, bytes_of(&c->kinds, w)));
    fputc('\n', f);
}

void compare_text(FILE *f, const struct graph *g, const struct options *o, const struct plan *p)
{
    if (p->compared.list.n == 0)
        return;
    struct arena *a = arena_new();
    struct compared own = plan_compared(a, "this plan", g, o, p);
    fprintf(f, "%-23s", "compared, per step");
    for (int w = 0; w < p->workloads.n; w++)
        fprintf(f, "%14s", arena_printf(a, "workload %d", w + 1));
    fprintf(f, "%14s%8s%14s\n", "weighted", "times", "weights");
    double chosen = p->missing.list.n ? 0 : own.seconds;
    show_plan(f, a, &own, p->workloads.n, chosen);
    for (int i = 0; i < p->compared.list.n; i++)
        show_plan(f, a, &p->compared.list.at[i], p->workloads.n, chosen);
    const struct choices *choices = differences_choices(a, g, p);
    if (chosen > 0 && !p->proven && p->lower_bound > 0)
        fprintf(f, "  %-*s%14s%8.2f\n", 21 + 14 * p->workloads.n,
                p->overlapped > 0 ? "best plan without overlap, at least" : "best plan, at least", units_seconds(a, p->lower_bound),
                p->lower_bound / p->seconds);
    for (int i = 0; i < p->compared.list.n; i++)
        differences_text(f, a, choices, path_base(p->compared.list.at[i].name), p->compared.list.at[i].choices);
    arena_free(a);
}
