/* choose: finds the best plan of a graph under its constraints: builds the space, applies the constraints, runs the solver, and prices the
 * choice. */
#include "plan/constrain/constrain.h"
#include "plan/cost/cost.h"
#include "plan/input/input.h"
#include "plan/plan.h"
#include "plan/solve/solve.h"
#include "plan/space/space.h"

#include <math.h>
#include <string.h>

static _Noreturn void refuse_constraints(struct space *s)
{
    enum { DEAR = 1 << 30 }; /* no plan then has more unrequested communication than it must; 2^50 ps are about 19 minutes */
    if (s->limits.unrequested) {
        s->limits.unrequested = (int64_t)DEAR << 20;
        if (solve_space(s) < COST_NEVER)
            strict_blame(s);
    }
    constrain_blame(s);
    fail("%s: no plan satisfies every constraint", graph_file(s->g));
}

static int variables(const struct problem *p)
{
    int n = 0;
    for (int i = 0; i < p->size.n; i++)
        n += p->size.at[i] > 1;
    return n;
}

/* Records what is known of the optimum: no plan costs less than `least`; under --memory, no plan that fits costs less than plan->fitting.
 * The plan of an emitted folder is not searched: its record holds as long as the plan costs what the record says. */
static void judge(struct space *s, int64_t least)
{
    const struct emitted *e = s->options->plan_file ? s->options->plan_file->emitted : NULL;
    struct plan *p = s->plan;
    bool limited = p->byte_price > 0;
    int64_t bound_on_all = limited ? p->fitting : least;
    double bound = p->objective > 0 && bound_on_all > 0 ? (double)bound_on_all / (double)p->objective * p->seconds : 0;
    p->least = limited && p->fitting > 0 ? p->fitting : least;
    p->proven = e ? e->proven && replay_holds(s) : (double)p->objective <= (1 + PLAN_NEAR) * (double)bound_on_all;
    p->memory_gap = limited && p->objective > p->fitting ? (double)(p->objective - p->fitting) * 1e-12 / cost_steps(p) : 0;
    require(e || bound <= p->seconds * (1 + 1e-6)); /* no bound is above what a plan takes */
    p->lower_bound = e ? replay_holds(s) * e->lower_bound : bound > 0 ? bound : 0;
    if (p->room.bytes && p->room.bytes < s->options->memory) /* the limit was tighter than --memory: not every plan that fits was
                                                              * compared */
        p->near.more = fmax(p->near.more, 1);
    if (e && e->memory) {
        p->byte_price = e->byte_price;
        p->memory_gap = e->memory_gap;
    }
}

/* Records strategies and placements for plan.json: insert and fuse change the nodes later. */
static void note_choice(struct space *s)
{
    struct plan *p = s->plan;
    require(!p->nodes.list.n && !p->read_places.list.n);
    for (int i = 0; i < s->g->nodes.n; i++)
        VEC_PUSH(s->arena, &p->nodes.list,
                 ((struct named){s->g->nodes.at[i]->name, strategy_str(s->arena, s->g->nodes.at[i], s->g->nodes.at[i]->strategy)}));
    for (int i = 0; i < s->g->values.n; i++)
        if (s->chosen.read[i])
            VEC_PUSH(s->arena, &p->read_places.list,
                     ((struct named){s->g->values.at[i]->name, placement_str(s->arena, *s->chosen.read[i])}));
}

/* Whether the plan is searched: neither a plan file nor a test's seed fixes it. */
static bool is_searched(const struct options *o)
{
    return !(o->plan_file && o->plan_file->emitted) && !o->random_seed;
}

/* Records the time per step and the resident bytes of the first assignment that fits; leaves 0 if the constraints allow none. Does not
 * change the space. */
static void note_first(struct space *s)
{
    size_t bytes = sizeof *s->strategies * (size_t)s->g->nodes.n;
    struct strategies *kept = arena_alloc(s->arena, bytes + 1);
    struct plan_room room = s->plan->room;
    memcpy(kept, s->strategies, bytes);
    s->plan->room.bytes = 0;
    greedy_assign(s);
    struct choice_problem e = encode_space(s, s->arena);
    struct solution first = encode_solve(&e);
    if (first.cost < COST_NEVER) {
        encode_place_values(&e, first.value);
        plan_predict(s);
        s->plan->first_seconds = s->plan->seconds;
        s->plan->first_resident = encode_resident(&e, first.value).bytes;
    }
    memcpy(s->strategies, kept, bytes);
    s->plan->room = room;
}

/* Takes the first assignment that fits instead of the best. */
static void settle_for_first(struct space *s, struct choice_problem *e, struct solution *best)
{
    greedy_assign(s);
    *e = encode_space(s, s->arena);
    *best = encode_solve(e);
    if (best->cost >= COST_NEVER)
        fail("%s: --solver first finds no plan, --solver exact does", graph_file(s->g));
}

/* Solves with limits over time; if that finds no plan, with the byte price alone. */
static struct choice_problem solve_plan(struct space *s, struct solution *best)
{
    struct choice_problem e = encode_space(s, s->arena);
    *best = encode_solve(&e);
    if (best->cost < COST_NEVER || !s->plan->room.bytes)
        return e;
    s->plan->room.bytes = 0;
    e = encode_space(s, s->arena);
    *best = encode_solve(&e);
    return e;
}

void plan_choose(struct space *s)
{
    require(s->ranks == s->g->ranks && s->plan->workloads.n > 0);
    if (s->options->plan_file && s->options->plan_file->emitted)
        s->plan->near.collective_price = s->options->plan_file->emitted->collective_price;
    cost_prepare(s);
    constrain_all(s);
    struct solution exact, best;
    struct choice_problem e = solve_plan(s, &exact);
    bool searched = is_searched(s->options) && s->ranks > 1;
    best = exact;
    if (exact.cost >= COST_NEVER)
        refuse_constraints(s);
    explain("solver: %d variables, %d tables, largest %lld entries", variables(e.p), e.p->tables.n, (long long)exact.largest_table);
    if (searched && s->options->solver_first)
        settle_for_first(s, &e, &best);
    else if (searched) {
        note_first(s);
        choose_near(&e, &best);
    }
    encode_place_values(&e, best.value);
    room_note(&e, best.value);
    struct resident resident = encode_resident(&e, best.value);
    int64_t cost = best.cost - resident.nearness - s->plan->near.collective_price * encode_collectives(s);
    require(best.cost < COST_NEVER && (s->plan->near.searched ? cost : best.cost) >= exact.bound); /* none is below the bound */
    s->plan->objective = cost - resident.memory;
    require(s->plan->objective >= 0 && resident.bytes >= 0);
    s->plan->resident = resident.bytes;
    plan_predict(s);
    plan_predict_fast(s);
    plan_note_rank_times(s);
    judge(s, exact.bound - (s->plan->near.searched ? resident.memory : best.cost - s->plan->objective));
    note_choice(s);
    if (s->options->strict == STRICT_WARN)
        strict_warn(s);
    if (s->options->sp == SP_AUTO && s->ranks > 1)
        sequence_note_chosen(s);
}

struct space *plan_space(struct arena *a, struct graph *g, const struct options *options, struct plan *plan)
{
    struct space *s = space_new(a, g, options, plan);
    if (constrain_seed(s))
        space_spread(s);
    plan->space = s;
    return s;
}
