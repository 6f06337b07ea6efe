/* step_time: seconds of a step of the chosen plan. The solver's costs are sums over the workloads; here each workload has its own. */
#include "plan/cost/cost.h"
#include "plan/cost/work.h"
#include "plan/plan.h"
#include "plan/space/space.h"

#include <math.h>

double cost_step_seconds(struct space *s, int node)
{
    const struct node *n = s->g->nodes.at[node];
    return (double)cost_of_strategy(s, n, s->rule[node], n->strategy) * 1e-12 / cost_steps(s->plan);
}

static double move_seconds(struct space *s, const struct value *v, struct placement from, struct placement to, int w)
{
    struct reshard_path path = reshard_find(s, v, from, to);
    if (!path.has_via)
        return cost_reshard_seconds(s, v, from, to, w);
    return cost_reshard_seconds(s, v, from, path.via, w) + cost_reshard_seconds(s, v, path.via, to, w);
}

static void add_moves(struct space *s, const struct value *v)
{
    struct arena *tmp = arena_new();
    struct reshards r = reshard_chosen(s, tmp, v);
    for (int w = 0; w < s->plan->workloads.n; w++) {
        double *seconds = &s->plan->workloads.at[w].seconds;
        *seconds += r.list.n > 0 ? cost_cut_seconds(s, v, v->place, false, w) : 0;
        for (int i = 0; i < r.list.n; i++) {
            const struct reshard *m = &r.list.at[i];
            *seconds += move_seconds(s, v, m->parent < 0 ? v->place : r.list.at[m->parent].place, m->place, w);
            *seconds += cost_cut_seconds(s, v, m->place, true, w);
        }
    }
    arena_free(tmp);
}

static void add_node(struct space *s, int i)
{
    const struct node *n = s->g->nodes.at[i];
    const struct strategies *all = &s->offered[i];
    for (int w = 0; w < s->plan->workloads.n; w++) {
        struct workload *load = &s->plan->workloads.at[w];
        load->seconds += cost_node_seconds(s, n, s->rule[i], n->strategy, w, s->ranks);
        load->unsharded_seconds += cost_node_seconds(s, n, s->rule[i], all->list.at[all->list.n - 1], w, 1);
    }
}

void plan_predict(struct space *s)
{
    struct plan *p = s->plan;
    p->seconds = p->unsharded_seconds = 0;
    for (int w = 0; w < p->workloads.n; w++)
        p->workloads.at[w].seconds = p->workloads.at[w].unsharded_seconds = 0;
    for (int i = 0; i < s->g->nodes.n; i++)
        add_node(s, i);
    for (int i = 0; i < s->g->values.n; i++)
        if (s->uses[i].list.n && s->g->values.at[i]->placed)
            add_moves(s, s->g->values.at[i]);
    for (int w = 0; w < p->workloads.n; w++) {
        const struct workload *load = &p->workloads.at[w];
        p->seconds += load->weight * load->seconds / cost_steps(p);
        p->unsharded_seconds += load->weight * load->unsharded_seconds / cost_steps(p);
    }
    require(p->seconds >= 0 && p->unsharded_seconds >= 0);
}

/* ---- products in bf16 ------------------------------------------------------------------------------------------------------------- */

static double compute_seconds(struct space *s)
{
    double sum = 0;
    for (int w = 0; w < s->plan->workloads.n; w++)
        for (int i = 0; i < s->g->nodes.n; i++)
            sum += s->plan->workloads.at[w].weight / cost_steps(s->plan) *
                cost_node_seconds(s, s->g->nodes.at[i], s->rule[i], s->g->nodes.at[i]->strategy, w, s->ranks);
    return sum;
}

/* Products with weights in bf16 round to it anyway, and so do the other products of such a graph. */
static bool stores_bf16(const struct graph *g)
{
    for (int i = 0; i < g->values.n; i++)
        if (g->values.at[i]->constant && g->values.at[i]->type.rank > 1 && value_storage(g->values.at[i]) == DT_BF16)
            return true;
    return false;
}

void plan_predict_fast(struct space *s)
{
    const struct options *own = s->options;
    struct options with = *own;
    if (own->machine.bf16_speed <= 1 || stores_bf16(s->g))
        return;
    double before = compute_seconds(s);
    with.machine.fast = true;
    s->options = &with;
    s->plan->fast_seconds = fmax(s->plan->seconds - (before - compute_seconds(s)), 0); /* sums round */
    s->options = own;
}

/* ---- what each rank computes, where ranks are of unequal speed -------------------------------------------------------------- */

static void add_to_ranks(struct space *s, const struct node *n, const struct rule *rule, int w, double times, double *seconds)
{
    const struct strategy *st = n->strategy;
    price_each_rank(&(struct work_at){s, n, rule, st, w, 0}, times, seconds);
    for (int i = 0; st->body && i < st->body->g->nodes.n; i++) {
        const struct node *part = st->body->g->nodes.at[i];
        if (!explicit_is_reshard(part))
            add_to_ranks(st->body, part, st->body->rule[i], w, times, seconds);
    }
}

void plan_note_rank_times(struct space *s)
{
    struct plan *p = s->plan;
    double sum = 0;
    if (!shares_are_unequal(s))
        return;
    p->rank_time = NEWN(s->arena, struct rank_time, s->ranks);
    double *seconds = NEWN(s->arena, double, s->ranks);
    for (int w = 0; w < p->workloads.n; w++)
        for (int i = 0; i < s->g->nodes.n; i++)
            add_to_ranks(s, s->g->nodes.at[i], s->rule[i], w, p->workloads.at[w].weight / cost_steps(p), seconds);
    for (int r = 0; r < s->ranks; r++)
        sum += seconds[r] * price_speed(s, r, s->ranks);
    for (int r = 0; r < s->ranks; r++)
        p->rank_time[r] = (struct rank_time){price_speed(s, r, s->ranks), sum > 0 ? seconds[r] * price_speed(s, r, s->ranks) / sum : 0,
                                             seconds[r]};
}
