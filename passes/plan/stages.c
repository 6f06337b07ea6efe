/* stages: cuts the canonical graph into stages of consecutive nodes and plans each for its own ranks (--pp).
 *
 * A plan of the whole graph on one stage's ranks gives the time of each node with its reshards. These times choose the cut. Then each stage
 * runs the passes from weight_dtype to memory as a separate model. */
#include "op/backward/backward.h"
#include "passes/pass.h"
#include "plan/constrain/config_stages.h"
#include "plan/cost/cost.h"
#include "plan/facts/facts.h"
#include "plan/input/input.h"

#include <math.h>
#include <string.h>

/* Ranks of one stage send to the next all at once, over the outermost level of the job. */
static double crossing_seconds(const struct machine *m, int ranks, double bytes)
{
    int level = 0;
    while (level + 1 < m->levels && m->level[level + 1].ranks < ranks)
        level++;
    return cost_link_seconds(&m->level[level], (struct transfer){.hops = 1, .bytes = bytes});
}

static double value_bytes(struct space *s, const struct value *v, int workload)
{
    return cost_local_elements(s, v, placement_replicated, workload, 0) * value_width(v);
}

struct priced {
    double *node, *crossing, *bytes, *held;
};

/* ranks: of all stages together. */
static void price_value(struct space *s, const struct value *v, int ranks, struct priced *to)
{
    const struct plan *p = s->plan;
    if (v->constant)
        to->held[v->id] = to->bytes[v->id] = (double)v->constant->bytes;
    const struct state *state = graph_state(s->g, v);
    for (int w = 0; state && state->past == v && w < p->workloads.n; w++)
        to->held[v->id] = fmax(to->held[v->id], value_bytes(s, v, w));
    if (v->constant || !v->producer || v->type.dtype == DT_NONE)
        return;
    for (int w = 0; w < p->workloads.n; w++) {
        double part = p->workloads.at[w].weight / cost_steps(p), bytes = value_bytes(s, v, w);
        to->bytes[v->id] += part * bytes;
        to->crossing[v->id] += part *
            (crossing_seconds(&s->options->machine, ranks, bytes) - crossing_seconds(&s->options->machine, ranks, 0));
    }
}

static struct stage_prices price_whole(struct arena *a, struct space *s, int stages)
{
    const struct graph *g = s->g;
    const struct plan *p = s->plan;
    struct priced to = {NEWN(a, double, g->nodes.n + 1), NEWN(a, double, g->values.n + 1), NEWN(a, double, g->values.n + 1),
                        NEWN(a, double, g->values.n + 1)};
    EACH (const struct step_part, part, p->step.list) {
        for (int w = 0; w < p->workloads.n; w++)
            to.node[part->node] += p->workloads.at[w].weight / cost_steps(p) * part->seconds[w];
    }
    for (int i = 0; i < g->values.n; i++)
        price_value(s, g->values.at[i], p->ranks * stages, &to);
    return (struct stage_prices){.node = to.node,
                                 .crossing = to.crossing,
                                 .message = crossing_seconds(&s->options->machine, p->ranks * stages, 0),
                                 .bytes = to.bytes,
                                 .held = to.held};
}

/* ---- the ranks of each stage ---- */

/* ranks: of all stages together, or of stage k. */
static void ranks_of_stage(struct options *o, int k)
{
    int first = o->ranks * k;
    o->machine.speeds = o->machine.speeds ? o->ranks : 0;
    o->machine.speed = o->machine.speeds ? o->machine.speed + first : NULL;
    o->machine.memories = o->machine.memories ? o->ranks : 0;
    o->machine.memory = o->machine.memories ? o->machine.memory + first : NULL;
    if (o->machine.memories)
        o->memory = machine_most_memory(&o->machine);
}

static const struct options *stage_options(struct arena *a, const struct options *o, int k)
{
    struct options *own = NEW(a, struct options);
    *own = *o;
    own->part = true;
    own->annotate = NULL;
    ranks_of_stage(own, k);
    return own;
}

/* Options for a plan of the whole graph with equal ranks. */
static const struct options *alike_options(struct arena *a, const struct options *o)
{
    struct options *alike = NEW(a, struct options);
    *alike = *o;
    alike->machine.speeds = alike->machine.memories = 0;
    return alike;
}

/* A stage has the total speed and memory of its ranks. */
static void price_stages(struct arena *a, const struct options *o, struct stage_prices *p)
{
    double *slower = NEWN(a, double, o->stages), *room = NEWN(a, double, o->stages);
    for (int k = 0; k < o->stages; k++) {
        double speed = 0;
        const struct options *own = stage_options(a, o, k);
        for (int r = 0; r < o->ranks; r++) {
            speed += own->machine.speeds ? own->machine.speed[r] : 1;
            room[k] += (double)limit_of(own, r);
        }
        slower[k] = o->ranks / speed;
    }
    p->slower = o->machine.speeds ? slower : NULL;
    p->room = o->memory ? room : NULL;
}

/* If speeds or memory differ: seconds of the slowest stage if all had equal work. */
static double equal_seconds(struct arena *a, const struct stage_plan *plan, const struct options *o)
{
    struct stage_prices alike = plan->prices;
    alike.slower = alike.room = NULL;
    const struct stage_cut cut = stage_cut_find(a, &plan->map, &alike, o->stages);
    double slowest = 0;
    for (int k = 0; k < o->stages; k++)
        slowest = fmax(slowest, cut.work[k] * (plan->prices.slower ? plan->prices.slower[k] : 1) + cut.seconds[k] - cut.work[k]);
    return slowest;
}

/* ---- estimates for other numbers of stages ---- */

/* The fraction of all weights and states that the fullest stage holds. */
static double fullest_part(const struct graph *g, const struct stage_prices *prices, const struct stage_cut *cut)
{
    double all = 0;
    for (int i = 0; i < g->values.n; i++)
        all += prices->held[i];
    return all > 0 ? cut->held / all : 1;
}

/* The next token goes back to the first stage. */
static void price_point(struct arena *a, const struct stage_map *map, struct space *s, struct grid_point *p)
{
    const struct stage_prices prices = price_whole(a, s, p->pp);
    const struct stage_cut cut = stage_cut_find(a, map, &prices, p->pp);
    p->text = p->pp > 1 ? prices.message : 0;
    p->slowest = 0;
    for (int k = 0; k < p->pp; k++) {
        p->text += cut.seconds[k];
        p->slowest = fmax(p->slowest, cut.seconds[k]);
    }
    p->memory = fullest_part(map->g, &prices, &cut);
}

void stages_price(const struct compile *first, int tp, int n, struct grid_point *at)
{
    struct arena *a = arena_new();
    struct options options = *first->options;
    options.ranks = tp;
    struct plan plan = {.ranks = tp};
    struct compile c = keep_source_copy(first, a, &options, &plan);
    c.properties |= PROP_LIMITED;
    pass_run(&c, "weight_dtype", "choose", NULL);
    struct stage_map map = stage_map_of(a, first->source);
    stage_map_join_kernels(&map, plan.space);
    for (int i = 0; i < n; i++)
        price_point(a, &map, plan.space, &at[i]);
    memory_measure(&c, false);
    const struct rank_use most = memory_most(tp, plan.use);
    for (int i = 0; i < n; i++)
        at[i].memory = at[i].memory * (double)(most.weights + most.state) + (double)(most.peak + most.blocks);
    arena_free(a);
}

/* ---- the stages ---- */

/* A stage's graph is its own source: the time and memory of one rank refer to it. */
static struct compile compile_stage(struct compile *c, const struct stage_plan *plan, int stage)
{
    struct compile one = keep_source_copy(c, c->arena, stage_options(c->arena, c->options, stage), NEW(c->arena, struct plan));
    one.graph = stage_graph(c->arena, &plan->map, &plan->cut, stage);
    one.source = graph_copy(c->arena, one.graph);
    one.plans_only = c->plans_only;
    one.properties |= PROP_STAGED;
    one.plan->ranks = c->options->ranks;
    one.part = arena_printf(c->arena, "stage %d on ", stage);
    if (c->plan->configuration)
        one.plan->configuration = config_stages_part(c->arena, c->plan->configuration, c->options->ranks, stage);
    pass_run(&one, "memory_limit", "choose", NULL);
    return one;
}

struct cutting {
    struct compile *c;
    struct stage_plan *plan;
};

static void cut_and_compile(void *cutting)
{
    struct compile *c = ((struct cutting *)cutting)->c;
    struct stage_plan *plan = ((struct cutting *)cutting)->plan;
    plan->cut = stage_cut_find(c->arena, &plan->map, &plan->prices, c->options->stages);
    c->stages = (struct staged){c->options->stages, NEWN(c->arena, struct compile, c->options->stages), plan};
    for (int i = 0; i < c->stages.n; i++)
        c->stages.at[i] = compile_stage(c, plan, i);
}

/* After all placements are chosen. */
static void finish_stages(struct compile *c)
{
    struct stage_plan *plan = c->stages.plan;
    struct stage_made *made = NEWN(c->arena, struct stage_made, c->stages.n);
    if (c->options->annotate)
        annotate_stages(c);
    for (int i = 0; i < c->stages.n; i++) {
        struct compile *one = &c->stages.at[i];
        pass_run(one, "explain", "memory", NULL);
        made[i] = (struct stage_made){one->options, one->source, one->graph, one->plan};
    }
    plan->made = made;
    plan->shared = stage_weights_find(c->arena, plan);
    plan->addend = stage_addends(c->arena, plan->map.g);
}

/* If the fastest cut has a stage whose activations exceed the memory limit, the cut with the least memory in its fullest stage may keep
 * it. */
static void cut_within_limit(struct cutting *all)
{
    if (!all->c->options->memory) {
        cut_and_compile(all);
        return;
    }
    const char *failure = diag_try(all->c->arena, cut_and_compile, all);
    if (!failure)
        return;
    explain("%s", failure);
    double *room = NEWN(all->c->arena, double, all->c->options->stages);
    double part = stage_cut_least_part(&all->plan->map, &all->plan->prices, all->c->options->stages);
    for (int k = 0; k < all->c->options->stages; k++)
        room[k] = part * all->plan->prices.room[k];
    all->plan->prices.room = room;
    cut_and_compile(all);
}

static void plan_and_cut(void *compile)
{
    struct compile *c = compile;
    struct plan *whole = NEW(c->arena, struct plan);
    struct stage_plan *plan = NEW(c->arena, struct stage_plan);
    const struct configuration *given = c->plan->configuration;
    whole->ranks = c->options->ranks;
    if (given)
        stage_given_order(c->source, given, whole->ranks, c->options->stages);
    struct compile priced = keep_source_copy(c, c->arena, alike_options(c->arena, c->options), whole);
    priced.properties |= PROP_LIMITED;
    pass_run(&priced, "weight_dtype", "choose", NULL);
    plan->map = stage_map_of(c->arena, c->source);
    const bool *parted = memcpy(NEWN(c->arena, bool, c->source->nodes.n + 1), plan->map.cut, (size_t)c->source->nodes.n + 1);
    stage_map_join_kernels(&plan->map, whole->space);
    if (given)
        stage_given_bound(&plan->map, c->arena, given, whole->ranks, c->options->stages, parted);
    plan->prices = price_whole(c->arena, whole->space, c->options->stages);
    price_stages(c->arena, c->options, &plan->prices);
    plan->equal = equal_seconds(c->arena, plan, c->options);
    plan->model = c->plan;
    plan->whole = whole;
    cut_within_limit(&(struct cutting){c, plan});
}

/* In training, recomputing the forward half in all stages if needed. */
static void choose_stages(struct compile *c)
{
    const struct options *o = c->options;
    if (o->memory && o->train && o->recompute == RECOMPUTE_AUTO) {
        const char *failure = diag_try(c->arena, plan_and_cut, c);
        if (!failure)
            return;
        explain("%s", failure);
        diag_tell("%s: to keep --memory the backward half computes the forward half again (--recompute full)", o->model);
        c->source = graph_copy(c->arena, c->source);
        recompute_forward(c->source);
    }
    plan_and_cut(c);
}

void pass_stages(struct compile *c)
{
    if (!c->options->stages)
        return;
    choose_stages(c);
    finish_stages(c);
}
