/* memory_price: plans at byte prices; the cheapest that fits keeps --memory. See memory_limit.c. */
#include "passes/plan/memory_price.h"

#include "plan/cost/cost.h"
#include "plan/facts/facts.h"
#include "plan/input/input.h"
#include "plan/report/report.h"

#include <math.h>
#include <string.h>

enum { BISECTIONS = 5 };
#define PRICE_STEP 16.0
#define COARSE_FIRST 256.0 /* for many ranks, because each plan takes long */
#define COARSE_STEP 4096.0
#define MOST_PRICE 1048576.0 /* reads of a byte per step */
#define MOST_SECONDS 1e5     /* upper bound on the cost of all bytes, so that sums of costs do not overflow */

static struct trial outcome(const struct compile *c, struct arena *keep)
{
    const struct plan *p = c->plan;
    struct trial t = {p->byte_price, p->resident, (double)p->objective, (double)p->least, plan_seconds(p), .total = 0};
    struct rank_use *use = NEWN(keep, struct rank_use, c->graph->ranks);
    memcpy(use, p->use, (size_t)c->graph->ranks * sizeof *use);
    t.ranks_use = use;
    t.rank = memory_fullest(c->options, c->graph->ranks, p->use);
    t.use = p->use[t.rank];
    t.total = limit_weighed(c->options, t.rank, memory_total(&t.use), true);
    t.as = within_attempt(keep, p, t.total);
    t.weight = t.use.weight >= 0 ? arena_strdup(keep, c->graph->values.at[t.use.weight]->name) : "";
    t.value = t.use.value >= 0 ? arena_strdup(keep, c->graph->values.at[t.use.value]->name) : "";
    return t;
}

struct trial memory_try(const struct compile *original, struct plan plan, bool exact)
{
    struct arena *tmp = arena_new();
    struct options options = *original->options;
    const struct plan_room room = plan.room;
    int ranks = plan.ranks;
    if (ranks == options.ranks)
        plan.configuration = original->plan->configuration;
    options.ranks = ranks;
    struct compile c = keep_source_copy(original, tmp, &options, &plan);
    c.properties |= PROP_LIMITED; /* the trial's price is the limit */
    pass_run(&c, "weight_dtype", "choose", NULL);
    memory_measure(&c, exact);
    struct trial t = outcome(&c, original->arena);
    t.as.room = room.bytes ? room : t.as.room;
    explain("%d ranks, %g reads per byte and step, room for %lld: %lld bytes on the fullest, %lld counted, %.6g s", ranks, plan.byte_price,
            (long long)room.bytes, (long long)t.total, (long long)plan.counted, t.seconds);
    arena_free(tmp);
    return t;
}

bool memory_trial_fits(const struct fitter *f, const struct trial *t)
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
    f->trial[f->trials] = memory_try(f->compile, (struct plan){.ranks = f->ranks, .byte_price = price, .memory_share = f->share},
                                     is_exact(f));
    return &f->trial[f->trials++];
}

static double most_price(const struct fitter *f, const struct trial *unpriced)
{
    double steps = cost_steps(f->compile->plan), each = steps * unpriced->held / f->compile->options->machine.memory_bandwidth;
    return each * MOST_PRICE > MOST_SECONDS ? MOST_SECONDS / each : MOST_PRICE;
}

bool memory_is_emitted(const struct options *o)
{
    return o->plan_file && o->plan_file->emitted;
}

/* Unequal ranks divide weights and state by their free memory in a trial. */
static void share_room(struct fitter *f, const struct trial *t)
{
    const struct options *given = f->compile->options;
    struct options o = *given;
    struct rank_use alone = {0}, all = {0};
    o.ranks = f->ranks;
    if (!machine_speeds_differ(&o.machine, o.ranks) && !limits_differ(&o, o.ranks))
        return;
    plan_memory_that_runs(f->compile->graph, f->compile->plan, 1, &alone);
    for (int r = 0; r < o.ranks; r++) {
        all.weights += t->ranks_use[r].weights;
        all.state += t->ranks_use[r].state;
    }
    /* --weights may shrink the stored weights, and ranks may replicate some */
    double whole = fmin((double)alone.weights, (double)all.weights) + fmin((double)alone.state, (double)all.state), sum = 0;
    double *part = NEWN(f->compile->arena, double, o.ranks), *other = NEWN(f->compile->arena, double, o.ranks);
    for (int r = 0; r < o.ranks; r++)
        sum += part[r] = f->share ? (double)f->share[r] : o.machine.speeds ? o.machine.speed[r] : 1;
    for (int r = 0; r < o.ranks; r++)
        other[r] = fmax(0, (double)memory_total(&t->ranks_use[r]) - part[r] / sum * whole);
    f->share = limit_shares(f->compile->arena, &o, whole, other);
}

static const struct trial *try_prices(struct fitter *f, double *below)
{
    const struct compile *c = f->compile;
    const struct trial *t = add_trial(f, 0);
    double most = most_price(f, t);
    bool fine = is_exact(f);
    *below = 0;
    if (memory_trial_fits(f, t))
        return t;
    if (memory_is_emitted(c->options))
        return NULL;
    share_room(f, t);
    f->hopeless = memory_least(c->graph, c->plan, c->options, f->ranks) > c->options->memory;
    if (f->hopeless) {
        (void)add_trial(f, most); /* the plan with the least memory, for the caller */
        return NULL;
    }
    for (double price = fine ? 1 : COARSE_FIRST; !memory_trial_fits(f, t); price *= fine ? PRICE_STEP : COARSE_STEP) {
        if (t->price >= most)
            return NULL;
        *below = t->price;
        t = add_trial(f, price < most ? price : most);
    }
    return t;
}

const struct trial *memory_raise_price(struct fitter *f, double *below)
{
    f->trials = 0;
    const struct trial *best = try_prices(f, below);
    if (best || !f->share || f->hopeless)
        return best;
    share_room(f, &f->trial[f->trials - 1]);
    f->trials = 0;
    return try_prices(f, below);
}

const struct trial *memory_bisect_price(struct fitter *f, const struct trial *best, double below)
{
    double above = best->price;
    for (int i = 0; i < BISECTIONS && above > 0; i++) {
        double middle = below > 0 ? sqrt(below * above) : above / PRICE_STEP;
        const struct trial *t = add_trial(f, middle);
        *(memory_trial_fits(f, t) ? &above : &below) = middle;
        if (memory_trial_fits(f, t) && t->objective < best->objective)
            best = t;
    }
    return best;
}

double memory_bound(const struct fitter *f)
{
    const struct compile *c = f->compile;
    if (machine_speeds_differ(&c->options->machine, f->ranks) || limits_differ(c->options, f->ranks))
        return 0;
    double steps = cost_steps(c->plan), room = (double)c->options->memory, bound = 0;
    for (int i = 0; i < f->trials; i++) {
        const struct trial *t = &f->trial[i];
        double saved = steps * t->price * (t->held - room) / c->options->machine.memory_bandwidth;
        bound = fmax(bound, t->least + 1e12 * saved);
    }
    return bound;
}

struct trial memory_least_trial(const struct fitter *f)
{
    const struct trial *least = &f->trial[0];
    for (int i = 1; i < f->trials; i++)
        if (f->trial[i].total < least->total)
            least = &f->trial[i];
    return *least;
}

void memory_measure(struct compile *c, bool exact)
{
    if (exact) {
        pass_run(c, "insert", "memory", NULL);
        return;
    }
    pass_run(c, "insert", "overlap", NULL);
    c->plan->use = NEWN(c->arena, struct rank_use, c->graph->ranks);
    plan_memory_that_runs(c->graph, c->plan, c->graph->ranks, c->plan->use);
}
