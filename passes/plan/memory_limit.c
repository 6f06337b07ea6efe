/* memory_limit: finds a plan that keeps the limit of --memory, of weights, state, peak activations and blocks of collectives.
 *
 * Each resident byte of weights or state gets a price, a Lagrange multiplier. The pass raises it until the plan fits, then bisects. A
 * plan that is optimal at a price is the best of all plans that hold no more bytes (Everett, "Generalized Lagrange Multiplier Method",
 * 1963). So a trial at a lower price bounds the gap to the best plan within the limit. For this bound, activations and blocks are those
 * of the plan found; they have no price and are measured for every trial.
 * If no price helps, the pass tries more ranks, for the error message: it doubles their number, then bisects. */
#include "op/backward/backward.h"
#include "op/emit/emit.h"
#include "op/op.h"
#include "passes/pass.h"
#include "plan/cost/cost.h"
#include "plan/facts/facts.h"
#include "plan/input/input.h"
#include "plan/plan.h"
#include "plan/report/report.h"

#include <math.h>

enum {
    EXACT_RANKS = 16, /* above it, the global graph gives the estimate */
    BISECTIONS = 5,
    MOST_TRIALS = 16
};
#define PRICE_STEP 16.0
#define COARSE_FIRST 256.0 /* for many ranks, because each plan takes long */
#define COARSE_STEP 4096.0
#define MOST_PRICE 1048576.0 /* reads of a byte per step */
#define MOST_SECONDS 1e5     /* the most that all bytes may cost: sums of costs must not overflow */

struct trial {
    double price, held, objective, least;
    int64_t total;
    struct rank_use use;
    const char *weight, *value;
};
struct fitter {
    const struct compile *compile;
    int ranks, trials;
    struct trial trial[MOST_TRIALS];
};

/* Ranks hold shards of one size, or nearly. */
static bool alike(void *ranks, uint64_t digest)
{
    return (void)ranks, (void)digest, true;
}

struct graph *memory_graph_that_runs(struct arena *a, const struct graph *g)
{
    struct compile run = {.arena = a, .graph = graph_copy(a, g), .agree = alike};
    if (g->rank >= 0) {
        expand_nodes(run.graph, OP_INTERNAL);
        weight_cut(run.graph);
    }
    pass_run(&run, "fuse_kernels", "fuse_kernels", NULL);
    return run.graph;
}

/* Of the graph as it runs: fused nodes keep no values between them. */
void memory_estimate(const struct compile *c, const struct graph *g, int ranks, struct rank_use *out)
{
    struct arena *tmp = arena_new();
    plan_memory(memory_graph_that_runs(tmp, g), c->plan, ranks, out);
    for (int r = 0; r < ranks; r++) { /* the fused graph has values that this one has not */
        out[r].weight = out[r].weight < g->values.n ? out[r].weight : -1;
        out[r].value = out[r].value < g->values.n ? out[r].value : -1;
    }
    arena_free(tmp);
}

static struct trial outcome(const struct compile *c, struct arena *keep)
{
    const struct plan *p = c->plan;
    struct trial t = {.price = p->byte_price, .held = p->resident, .objective = (double)p->objective, .least = (double)p->least};
    for (int r = 0; r < c->graph->ranks; r++)
        if (memory_total(&p->use[r]) > t.total) {
            t.total = memory_total(&p->use[r]);
            t.use = p->use[r];
        }
    t.weight = t.use.weight >= 0 ? arena_strdup(keep, c->graph->values.at[t.use.weight]->name) : "";
    t.value = t.use.value >= 0 ? arena_strdup(keep, c->graph->values.at[t.use.value]->name) : "";
    return t;
}

static void measure_ranks(struct compile *c, bool exact)
{
    if (exact) {
        pass_run(c, "insert", "memory", NULL);
        return;
    }
    pass_run(c, "insert", "overlap", NULL);
    c->plan->use = NEWN(c->arena, struct rank_use, c->graph->ranks);
    memory_estimate(c, c->graph, c->graph->ranks, c->plan->use);
}

/* Plans a copy for `ranks` ranks at a price and returns what the fullest rank holds. */
static struct trial try_plan(const struct compile *original, int ranks, double price, bool exact)
{
    struct arena *tmp = arena_new();
    struct options options = *original->options;
    struct plan plan = {.ranks = ranks, .byte_price = price};
    if (ranks == options.ranks)
        plan.configuration = original->plan->configuration;
    options.ranks = ranks;
    struct compile c = keep_source_copy(original, tmp, &options, &plan);
    c.properties |= PROP_LIMITED; /* the trial's price is the limit */
    pass_run(&c, "weight_dtype", "choose", NULL);
    measure_ranks(&c, exact);
    struct trial t = outcome(&c, original->arena);
    explain("%d ranks at %g reads per byte and step: %lld bytes on the fullest, %.6g s", ranks, price, (long long)t.total, plan.seconds);
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
    return f->ranks <= EXACT_RANKS || f->ranks == f->compile->options->ranks;
}

static const struct trial *add_trial(struct fitter *f, double price)
{
    require(f->trials < MOST_TRIALS);
    f->trial[f->trials] = try_plan(f->compile, f->ranks, price, is_exact(f));
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
    const struct trial *t = add_trial(f, 0);
    double most = most_price(f, t);
    *below = 0;
    bool fine = is_exact(f);
    for (double price = fine ? 1 : COARSE_FIRST; !fits(f, t); price *= fine ? PRICE_STEP : COARSE_STEP) {
        if (t->price >= most || is_emitted(f->compile->options))
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
        if (fits(f, t))
            above = middle;
        else
            below = middle;
        if (fits(f, t) && t->objective < best->objective)
            best = t;
    }
    return best;
}

/* Seconds per step by which another plan within the limit may be faster than `best`. It is what the trials prove of plans that hold no
 * more weights and state than the limit leaves beside best's activations. */
static double gap_of(const struct fitter *f, const struct trial *best)
{
    const struct compile *c = f->compile;
    double steps = cost_steps(c->plan), room = best->held + (double)(c->options->memory - best->total), bound = 0;
    for (int i = 0; i < f->trials; i++) {
        const struct trial *t = &f->trial[i];
        double saved = steps * t->price * (t->held - room) / c->options->machine.memory_bandwidth;
        if (t->least * 1e-12 + saved > bound)
            bound = t->least * 1e-12 + saved;
    }
    double gap = (best->objective * 1e-12 - bound) / steps;
    return gap > 1e-12 ? gap : 0;
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

/* The smallest number of ranks that fits; 0 if none does up to PLAN_RANKS. *least: the last trial. */
static int smallest_ranks(const struct compile *c, struct trial *least)
{
    int below = c->options->ranks, fit = 0;
    while (!fit && below < PLAN_RANKS) {
        int n = 2 * below < PLAN_RANKS ? 2 * below : PLAN_RANKS;
        if (ranks_fit(c, n, least))
            fit = n;
        else
            below = n;
    }
    while (fit && fit - below > 1) {
        int n = below + (fit - below) / 2;
        struct trial t;
        if (ranks_fit(c, n, &t))
            fit = n;
        else
            below = n;
    }
    return fit;
}

static const char *largest_part(struct arena *a, const struct trial *t)
{
    if (t->use.weights >= t->use.state && t->use.weights >= t->use.peak)
        return arena_printf(a, "weights of %s, the largest of them '%s'", units_bytes(a, (double)t->use.weights), t->weight);
    if (t->use.state >= t->use.peak)
        return arena_printf(a, "state of %s", units_bytes(a, (double)t->use.state));
    const char *peak = units_bytes(a, (double)t->use.peak);
    return *t->value ? arena_printf(a, "activations of %s, the largest of them '%s'", peak, t->value)
                     : arena_printf(a, "activations of %s", peak);
}

/* The end of the error message. A plan file, or --state-from, may be for one number of ranks only. */
static const char *what_fits(const struct compile *c)
{
    struct trial last;
    if (c->options->plan_file || c->options->state_from)
        return "";
    int fit = smallest_ranks(c, &last);
    if (fit)
        return arena_printf(c->arena, "; %d ranks fit", fit);
    return arena_printf(c->arena, "; no number of ranks up to %d fits: with %d, one still needs %s, most of it %s", PLAN_RANKS, PLAN_RANKS,
                        units_bytes(c->arena, (double)last.total), largest_part(c->arena, &last));
}

static _Noreturn void fail_limit(const struct compile *c, const struct trial *t)
{
    struct arena *a = c->arena;
    int ranks = c->options->ranks;
    fail("%s: a limit of %s is %s too little for %d rank%s, where the fullest needs %s (weights %s, state %s, activations and blocks %s)%s",
         c->options->model, units_bytes(a, (double)c->options->memory), units_bytes(a, (double)(t->total - c->options->memory)), ranks,
         ranks == 1 ? "" : "s", units_bytes(a, (double)t->total), units_bytes(a, (double)t->use.weights),
         units_bytes(a, (double)t->use.state), units_bytes(a, (double)(t->use.peak + t->use.blocks)), what_fits(c));
}

static void recompute_both(struct compile *c)
{
    recompute_forward(c->graph);
    recompute_forward(c->source);
    diag_tell("%s: within %s the backward half computes the forward half again (--recompute full)", c->options->model,
              units_bytes(c->arena, (double)c->options->memory));
}

void pass_memory_limit(struct compile *c)
{
    if (!c->options->memory)
        return;
    struct fitter f = {.compile = c, .ranks = c->options->ranks};
    double below;
    const struct trial *best = raise_price(&f, &below);
    if (!best && c->options->train && c->options->recompute == RECOMPUTE_AUTO) {
        recompute_both(c);
        f.trials = 0;
        best = raise_price(&f, &below);
    }
    if (!best) {
        struct trial least = least_of(&f);
        fail_limit(c, &least);
    }
    best = bisect_price(&f, best, below);
    c->plan->byte_price = best->price;
    c->plan->memory_gap = gap_of(&f, best);
}
