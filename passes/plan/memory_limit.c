/* memory_limit: finds a plan whose weights, state, peak activations and collective blocks keep within --memory.
 *
 * Each resident byte of weights or state gets a price, a Lagrange multiplier. The pass raises it until the plan fits, then bisects. A plan
 * that is optimal at a price is the best of all plans that hold no more bytes (Everett, "Generalized Lagrange Multiplier Method", 1963). So
 * a trial at a lower price bounds the gap to the best plan within the limit. Activations and blocks have no price and are measured for
 * every trial. The bound counts them as 0, because another plan may have almost none. Starting at the plan with the best price, limits over
 * time find better ones (src/plan/solve/within.c). Trials: memory_price.c. If no price helps, it tries more ranks, for the error message:
 * it doubles their number, then bisects. */

#include "op/backward/backward.h"
#include "passes/pass.h"
#include "passes/plan/memory_price.h"
#include "plan/cost/cost.h"
#include "plan/facts/facts.h"
#include "plan/input/input.h"
#include "plan/report/report.h"

#include <math.h>

static struct attempt try_within(void *data, const struct plan_room *room)
{
    const struct fitter *f = data;
    return memory_try(f->compile, (struct plan){.ranks = f->ranks, .byte_price = 1, .memory_share = f->share, .room = *room}, true).as;
}

/* ---- more ranks ------------------------------------------------------------------------------------------------------------------ */

/* True if a price makes a plan for `ranks` ranks fit. *least: the trial with the fewest bytes. */
static bool ranks_fit(const struct compile *c, int ranks, struct trial *least)
{
    struct fitter f = {.compile = c, .ranks = ranks};
    double below;
    bool fit = memory_raise_price(&f, &below) != NULL;
    *least = memory_least_trial(&f);
    return fit;
}

/* The smallest number of ranks that fits; 0 if none does up to the maximum. *least: the last trial. */
static int smallest_ranks(const struct compile *c, struct trial *least)
{
    int below = c->options->ranks, fit = 0, most = machine_most_ranks(&c->options->machine);
    while (!fit && below < most) {
        int n = 2 * below < most ? 2 * below : most;
        if (ranks_fit(c, n, least))
            fit = n;
        else
            below = n;
    }
    while (fit && fit - below > 1) {
        int n = below + (fit - below) / 2;
        struct trial t;
        *(ranks_fit(c, n, &t) ? &fit : &below) = n;
    }
    return fit;
}

/* The end of the error message. A plan file, or --state-from, may be for one number of ranks only. */
static const char *what_fits(const struct compile *c)
{
    struct trial last;
    int most = machine_most_ranks(&c->options->machine), fit = 0;
    if (c->options->solver_first)
        return "; --solver exact may find a plan that fits";
    if (c->options->plan_file || c->options->state_from || c->options->ranks >= most)
        return "";
    if ((fit = smallest_ranks(c, &last)) > 0)
        return arena_printf(c->arena, "; %d ranks fit", fit);
    return arena_printf(c->arena, "; no number of ranks up to %d fits: with %d, one still needs %s, most of it %s", most, most,
                        units_bytes(c->arena, (double)memory_total(&last.use)),
                        units_largest(c->arena, &last.use, last.weight, last.value));
}

/* "4 GiB is 1 GiB too little for 2 ranks, where the fullest", "2 GiB is 1 GiB too little for rank 1 of 2, which",
 * or "4 GiB is 1 GiB too little for stage 1 on 2 ranks, where the fullest" */
static const char *too_little(const struct compile *c, const struct trial *t)
{
    struct arena *a = c->arena;
    int ranks = c->options->ranks;
    int64_t limit = limit_of(c->options, t->rank);
    const char *less = arena_printf(a, "%s is %s too little for %s", units_bytes(a, (double)limit),
                                    units_bytes(a, (double)(memory_total(&t->use) - limit)), c->part ? c->part : "");
    return limits_differ(c->options, ranks) ? arena_printf(a, "%srank %d of %d, which", less, t->rank, ranks)
                                            : arena_printf(a, "%s%d rank%s, where the fullest", less, ranks, ranks == 1 ? "" : "s");
}

/* For ranks with limits of their own, which may have too little memory in total. */
static const char *all_limits(const struct compile *c, bool hopeless)
{
    struct rank_use alone = {0};
    double all = 0;
    if (!hopeless || !limits_differ(c->options, c->options->ranks))
        return "";
    plan_memory_that_runs(c->graph, c->plan, 1, &alone);
    for (int r = 0; r < c->options->ranks; r++)
        all += (double)limit_of(c->options, r);
    return arena_printf(c->arena, "; all may hold %s, and weights and state alone are %s", units_bytes(c->arena, all),
                        units_bytes(c->arena, (double)(alone.weights + alone.state)));
}

static _Noreturn void fail_limit(const struct compile *c, struct trial t, bool hopeless)
{
    struct arena *a = c->arena;
    fail("%s: a limit of %s needs %s (weights %s, state %s, activations and blocks %s)%s%s%s", c->options->model, too_little(c, &t),
         units_bytes(a, (double)memory_total(&t.use)), units_bytes(a, (double)t.use.weights), units_bytes(a, (double)t.use.state),
         units_bytes(a, (double)(t.use.peak + t.use.blocks)), all_limits(c, hopeless), what_fits(c),
         c->part ? "; a cut counts weights and state only: one by annotations (pipeline_stage) may fit" : "");
}

/* In training, recomputing the forward half if needed; other compilations of the same source do not. */
static const struct trial *find_price(struct fitter *f, struct compile *c, double *below)
{
    const struct trial *best = memory_raise_price(f, below);
    if (best || f->recomputed || c->part || !c->options->train || c->options->recompute != RECOMPUTE_AUTO)
        return best;
    f->recomputed = true;
    c->source = graph_copy(c->arena, c->source);
    recompute_forward(c->graph);
    recompute_forward(c->source);
    if (!f->tells)
        diag_tell("%s: to keep --memory the backward half computes the forward half again (--recompute full)", c->options->model);
    return memory_raise_price(f, below);
}

/* The limit of --sp=auto without --memory, relative to one rank's activations: they have no price, and a reshard inside a fused kernel
 * stores intermediate values. */
#define MOST_GROWTH 2
static void keep_sequences_whole(struct compile *c, const char *why)
{
    struct options *whole = NEW(c->arena, struct options);
    *whole = *c->options;
    whole->sp = SP_OFF;
    c->options = whole;
    VEC_PUSH(c->arena, &c->plan->warnings, arena_printf(c->arena, "--sp=auto splits no sequence: %s", why));
}

static void check_sequences(struct compile *c)
{
    struct rank_use alone = {0};
    if (c->options->sp != SP_AUTO || c->options->ranks == 1 || c->options->memory || memory_is_emitted(c->options) ||
        c->options->random_seed)
        return;
    plan_memory_that_runs(c->graph, c->plan, 1, &alone);
    struct trial t = memory_try(c, (struct plan){.ranks = c->options->ranks}, c->options->ranks <= EXACT_RANKS);
    if (t.use.peak > MOST_GROWTH * alone.peak)
        keep_sequences_whole(c,
                             arena_printf(c->arena, "a rank would hold %s of activations, and one alone has %s (--memory allows more)",
                                          units_bytes(c->arena, (double)t.use.peak), units_bytes(c->arena, (double)alone.peak)));
}

/* Limits over time, starting at a trial: a better plan, or one that fits if the trial does not; false: none found. */
static bool keep_limits(struct fitter *f, struct compile *c, const struct trial *from)
{
    double bound = memory_bound(f);
    struct attempt within = within_limit(&(struct within_search){c->arena, c->options->memory, try_within, f}, &from->as, &bound);
    c->plan->room = within.within ? within.room : (struct plan_room){0};
    c->plan->fitting = (int64_t)fmin(bound, within.objective);
    return within.within;
}

/* For when no price is high enough. */
static bool find_within(struct fitter *f, struct compile *c)
{
    struct trial least = memory_least_trial(f);
    if (f->hopeless || memory_is_emitted(c->options) || c->options->solver_first)
        return false;
    c->plan->byte_price = fmax(1, least.price);
    return keep_limits(f, c, &least);
}

/* The best plan within the limits, by prices and then by limits over time; false: none found. */
static bool find_plan(struct fitter *f, struct compile *c)
{
    double below;
    bool small = !f->tells || f->ranks <= EXACT_RANKS;
    const struct trial *best = find_price(f, c, &below);
    bool within = !best && small && find_within(f, c);
    c->plan->memory_share = f->share;
    if (!best)
        return within;
    best = memory_bisect_price(f, best, below);
    c->plan->byte_price = best->price;
    if (best->price > 0 && small) /* the plan without a limit is proven separately */
        (void)keep_limits(f, c, best);
    return true;
}

bool memory_price(struct compile *c)
{
    struct fitter f = {.compile = c, .ranks = c->options->ranks, .tells = true};
    bool found = find_plan(&f, c);
    if (!found) {
        c->plan->byte_price = memory_least_trial(&f).price;
        c->plan->fitting = 0; /* of plans that fit, as this one does not */
    }
    return found;
}

void pass_memory_limit(struct compile *c)
{
    check_sequences(c);
    if (!c->options->memory)
        return;
    struct fitter f = {.compile = c, .ranks = c->options->ranks};
    if (memory_is_emitted(c->options))
        f.share = c->options->plan_file->emitted->memory_share;
    bool found = find_plan(&f, c);
    if (!found && c->options->sp == SP_AUTO && !memory_is_emitted(c->options)) {
        keep_sequences_whole(c, "no such plan fits into --memory");
        found = find_plan(&f, c);
    }
    if (!found)
        fail_limit(c, memory_least_trial(&f), f.hopeless);
    if (!memory_trial_fits(&f, &f.trial[0])) {
        c->plan->fastest_seconds = f.trial[0].seconds;
        c->plan->fastest_total = memory_total(&f.trial[0].use);
    }
}
