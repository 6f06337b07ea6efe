/* memory_limit: finds a plan that keeps the limit of --memory, of weights, state, peak activations and blocks of collectives.
 *
 * Each resident byte of weights or state gets a price, a Lagrange multiplier. The pass raises it until the plan fits, then bisects. A
 * plan that is optimal at a price is the best of all plans that hold no more bytes (Everett, "Generalized Lagrange Multiplier Method",
 * 1963). So a trial at a lower price bounds the gap to the best plan within the limit. Activations and blocks have no price and are
 * measured for every trial. For the bound they count nothing: another plan may have next to none.
 * From the plan at the best price on, limits over time lead to better ones (src/plan/solve/within.c).
 * If no price helps, the pass tries more ranks, for the error message: it doubles their number, then bisects. */

#include "op/backward/backward.h"
#include "passes/pass.h"
#include "plan/cost/cost.h"
#include "plan/facts/facts.h"
#include "plan/input/input.h"
#include "plan/plan.h"
#include "plan/report/report.h"
#include "plan/solve/solve.h"

#include <math.h>
enum { BISECTIONS = 5, MOST_TRIALS = 16 };
#define PRICE_STEP 16.0
#define COARSE_FIRST 256.0 /* for many ranks, because each plan takes long */
#define COARSE_STEP 4096.0
#define MOST_PRICE 1048576.0 /* reads of a byte per step */
#define MOST_SECONDS 1e5     /* the most that all bytes may cost: sums of costs must not overflow */

struct trial {
    double price, held, objective, least, seconds;
    int64_t total; /* of the fullest rank, as its use */
    struct rank_use use;
    const char *weight, *value;
    struct attempt as; /* for limits over time */
};
struct fitter {
    const struct compile *compile;
    int ranks, trials;
    bool tells; /* for many ranks the global graph tells what they hold */
    struct trial trial[MOST_TRIALS];
};

static struct trial outcome(const struct compile *c, struct arena *keep)
{
    const struct plan *p = c->plan;
    struct trial t = {p->byte_price, p->resident, (double)p->objective, (double)p->least, plan_seconds(p), .total = 0};
    for (int r = 0; r < c->graph->ranks; r++)
        if (memory_total(&p->use[r]) > t.total) {
            t.total = memory_total(&p->use[r]);
            t.use = p->use[r];
        }
    t.as = within_attempt(keep, p, t.total);
    t.weight = t.use.weight >= 0 ? arena_strdup(keep, c->graph->values.at[t.use.weight]->name) : "";
    t.value = t.use.value >= 0 ? arena_strdup(keep, c->graph->values.at[t.use.value]->name) : "";
    return t;
}

/* Plans a copy for `ranks` ranks at a price and returns what the fullest rank holds. */
static struct trial try_plan(const struct compile *original, int ranks, double price, struct plan_room room, bool exact)
{
    struct arena *tmp = arena_new();
    struct options options = *original->options;
    struct plan plan = {.ranks = ranks, .byte_price = price, .room = room};
    if (ranks == options.ranks)
        plan.configuration = original->plan->configuration;
    options.ranks = ranks;
    struct compile c = keep_source_copy(original, tmp, &options, &plan);
    c.properties |= PROP_LIMITED; /* the trial's price is the limit */
    pass_run(&c, "weight_dtype", "choose", NULL);
    compare_memory(&c, exact);
    struct trial t = outcome(&c, original->arena);
    t.as.room = room.bytes ? room : t.as.room;
    explain("%d ranks, %g reads per byte and step, room for %lld: %lld bytes on the fullest, %lld counted, %.6g s", ranks, price,
            (long long)room.bytes, (long long)t.total, (long long)plan.counted, t.seconds);
    arena_free(tmp);
    return t;
}

static bool fits(const struct fitter *f, const struct trial *t)
{
    return t->total <= f->compile->options->memory;
}

/* ---- the price ------------------------------------------------------------------------------------------------------------------ */

/* Trials for few ranks, or for the number of --tp, are measured exactly. */
static bool is_exact(const struct fitter *f)
{
    return f->ranks <= EXACT_RANKS || (!f->tells && f->ranks == f->compile->options->ranks);
}

static const struct trial *add_trial(struct fitter *f, double price)
{
    require(f->trials < MOST_TRIALS);
    f->trial[f->trials] = try_plan(f->compile, f->ranks, price, (struct plan_room){0}, is_exact(f));
    return &f->trial[f->trials++];
}

static double most_price(const struct fitter *f, const struct trial *unpriced)
{
    double steps = cost_steps(f->compile->plan), each = steps * unpriced->held / f->compile->options->machine.memory_bandwidth;
    return each * MOST_PRICE > MOST_SECONDS ? MOST_SECONDS / each : MOST_PRICE;
}

/* A replayed plan is fixed: prices change nothing. */
static bool is_emitted(const struct options *o)
{
    return o->plan_file && o->plan_file->emitted;
}

/* Raises the price until the plan fits; NULL if it never does. *below: the last price at which it did not fit. */
static const struct trial *raise_price(struct fitter *f, double *below)
{
    const struct compile *c = f->compile;
    const struct trial *t = add_trial(f, 0);
    double most = most_price(f, t);
    *below = 0;
    bool fine = is_exact(f);
    if (!fits(f, t) && !is_emitted(c->options) && memory_least(c->graph, c->plan, c->options, f->ranks) > c->options->memory) {
        (void)add_trial(f, most); /* the least, for who asks */
        return NULL;
    }
    for (double price = fine ? 1 : COARSE_FIRST; !fits(f, t); price *= fine ? PRICE_STEP : COARSE_STEP) {
        if (t->price >= most || is_emitted(c->options))
            return NULL;
        *below = t->price;
        t = add_trial(f, price < most ? price : most);
    }
    return t;
}

static const struct trial *bisect_price(struct fitter *f, const struct trial *best, double below)
{
    double above = best->price;
    for (int i = 0; i < BISECTIONS && above > 0; i++) {
        double middle = below > 0 ? sqrt(below * above) : above / PRICE_STEP;
        const struct trial *t = add_trial(f, middle);
        *(fits(f, t) ? &above : &below) = middle;
        if (fits(f, t) && t->objective < best->objective)
            best = t;
    }
    return best;
}

/* Picoseconds that no plan whose weights and state alone are within the limit is below, by what the trials prove. */
static double bound_by_prices(const struct fitter *f)
{
    const struct compile *c = f->compile;
    double steps = cost_steps(c->plan), room = (double)c->options->memory, bound = 0;
    for (int i = 0; i < f->trials; i++) {
        const struct trial *t = &f->trial[i];
        double saved = steps * t->price * (t->held - room) / c->options->machine.memory_bandwidth;
        bound = fmax(bound, t->least + 1e12 * saved);
    }
    return bound;
}

static struct attempt try_within(void *data, const struct plan_room *room)
{
    return try_plan(((const struct fitter *)data)->compile, ((const struct fitter *)data)->ranks, 1, *room, true).as;
}

static struct trial least_of(const struct fitter *f)
{
    const struct trial *least = &f->trial[0];
    for (int i = 1; i < f->trials; i++)
        if (f->trial[i].total < least->total)
            least = &f->trial[i];
    return *least;
}

/* ---- more ranks ------------------------------------------------------------------------------------------------------------------ */

/* True if a price makes a plan for `ranks` ranks fit. *least: the trial with the fewest bytes. */
static bool ranks_fit(const struct compile *c, int ranks, struct trial *least)
{
    struct fitter f = {.compile = c, .ranks = ranks};
    double below;
    bool fit = raise_price(&f, &below) != NULL;
    *least = least_of(&f);
    return fit;
}

/* The smallest number of ranks that fits; 0 if none does up to the most that may be. *least: the last trial. */
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
    if (c->options->plan_file || c->options->state_from || c->options->ranks >= most)
        return "";
    if ((fit = smallest_ranks(c, &last)) > 0)
        return arena_printf(c->arena, "; %d ranks fit", fit);
    return arena_printf(c->arena, "; no number of ranks up to %d fits: with %d, one still needs %s, most of it %s", most, most,
                        units_bytes(c->arena, (double)last.total), units_largest(c->arena, &last.use, last.weight, last.value));
}

static _Noreturn void fail_limit(const struct compile *c, struct trial t)
{
    struct arena *a = c->arena;
    int ranks = c->options->ranks;
    fail("%s: a limit of %s is %s too little for %d rank%s, where the fullest needs %s (weights %s, state %s, activations and blocks %s)%s",
         c->options->model, units_bytes(a, (double)c->options->memory), units_bytes(a, (double)(t.total - c->options->memory)), ranks,
         ranks == 1 ? "" : "s", units_bytes(a, (double)t.total), units_bytes(a, (double)t.use.weights), units_bytes(a, (double)t.use.state),
         units_bytes(a, (double)(t.use.peak + t.use.blocks)), what_fits(c));
}

/* Of training, if need be with the forward half computed again, as other compilations of the same source are not. */
static const struct trial *find_price(struct fitter *f, struct compile *c, double *below)
{
    const struct trial *best = raise_price(f, below);
    if (best || !c->options->train || c->options->recompute != RECOMPUTE_AUTO)
        return best;
    c->source = graph_copy(c->arena, c->source);
    recompute_forward(c->graph);
    recompute_forward(c->source);
    f->trials = 0;
    if (!f->tells)
        diag_tell("%s: within %s the backward half computes the forward half again (--recompute full)", c->options->model,
                  units_bytes(c->arena, (double)c->options->memory));
    return raise_price(f, below);
}

/* Of --sp=auto without a limit, to activations of one rank: they have no price, and a reshard inside a kernel stores what it never did. */
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
    if (c->options->sp != SP_AUTO || c->options->ranks == 1 || c->options->memory || is_emitted(c->options))
        return;
    plan_memory_that_runs(c->graph, c->plan, 1, &alone);
    struct trial t = try_plan(c, c->options->ranks, 0, (struct plan_room){0}, c->options->ranks <= EXACT_RANKS);
    if (t.use.peak > MOST_GROWTH * alone.peak)
        keep_sequences_whole(c,
                             arena_printf(c->arena, "a rank would hold %s of activations, and one alone has %s (--memory allows more)",
                                          units_bytes(c->arena, (double)t.use.peak), units_bytes(c->arena, (double)alone.peak)));
}

bool memory_price(struct compile *c)
{
    struct fitter f = {.compile = c, .ranks = c->options->ranks, .tells = true};
    double below;
    const struct trial *best = find_price(&f, c, &below);
    c->plan->byte_price = best ? bisect_price(&f, best, below)->price : least_of(&f).price;
    return best != NULL;
}

void pass_memory_limit(struct compile *c)
{
    check_sequences(c);
    if (!c->options->memory)
        return;
    struct fitter f = {.compile = c, .ranks = c->options->ranks};
    double below;
    const struct trial *best = find_price(&f, c, &below);
    if (!best && c->options->sp == SP_AUTO && !is_emitted(c->options)) {
        keep_sequences_whole(c, "no such plan fits into --memory");
        f.trials = 0;
        best = raise_price(&f, &below);
    }
    if (!best)
        fail_limit(c, least_of(&f));
    best = bisect_price(&f, best, below);
    c->plan->byte_price = best->price;
    if (best->price > 0) { /* the plan without a limit is proven by itself */
        double bound = bound_by_prices(&f);
        struct attempt within = within_limit(&(struct within_search){c->arena, c->options->memory, try_within, &f}, &best->as, &bound);
        c->plan->room = within.within ? within.room : (struct plan_room){0};
        c->plan->fitting = (int64_t)fmin(bound, within.objective);
    }
    if (!fits(&f, &f.trial[0])) {
        c->plan->fastest_seconds = f.trial[0].seconds;
        c->plan->fastest_total = f.trial[0].total;
    }
}
