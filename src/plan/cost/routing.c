/* routing: the cost of routing rows to a few of many experts. Each row goes to k different experts, all equally likely.
 *
 *     every rank has a part of every expert     rows * k of all of its experts, of which 1 - (1 - k/E)^rows get rows
 *     every rank has e experts of E             the slowest rank counts: the expected largest of what ranks have
 *
 * The rows of a rank's experts are modelled as a Poisson variable of mean rows * k * e/E: the fixed total over ranks and the smaller
 * variance of a binomial nearly cancel. The number of its experts that get rows is binomial over e trials. All ranks wait for the slowest,
 * so an even split by experts takes longer than a split by width, most of all with few rows.
 *
 * If each expert has nodes of its own, its cost is multiplied by the probability that it gets rows. If such experts are assigned to ranks,
 * each costs its part of the slowest rank's time for all of them: the ranks work in parallel and wait at the sum. */
#include "op/analysis/analysis.h"
#include "op/product/product.h"
#include "plan/cost/cost.h"
#include "plan/cost/work.h"
#include "plan/space/space.h"

#include <math.h>

/* ---- the largest of several counts ------------------------------------------------------------------------------------------------- */

/* Above this variance a count is approximated by a normal distribution. */
#define NORMAL 100

/* The probability that a count is at most x, for all x. */
struct distribution {
    double mean, trials, below;
};

static double probability(const struct distribution *d, double x)
{
    if (isinf(d->trials))
        return exp(x * log(d->mean) - d->mean - lgamma(x + 1));
    double p = d->mean / d->trials, ways = lgamma(d->trials + 1) - lgamma(x + 1) - lgamma(d->trials - x + 1);
    return exp(ways + x * log(p) + (d->trials - x) * log(1 - p));
}

double routing_largest(double mean, double trials, int numbers)
{
    double variance = isinf(trials) ? mean : mean * (1 - mean / trials), far = 8 * sqrt(variance) + 16;
    double lo = floor(fmax(mean - far, 0)), hi = fmin(mean + far, trials - 1), largest = lo;
    struct distribution d = {.mean = mean, .trials = trials};
    if (mean <= 0 || mean >= trials)
        return fmin(fmax(mean, 0), trials);
    double step = variance > NORMAL ? sqrt(variance) / 16 : 1;
    for (double x = lo; x <= hi; x += step) { /* the sum of the probabilities that it is above x */
        d.below = variance > NORMAL ? 0.5 * erfc((mean - x - step / 2) / sqrt(2 * variance)) : d.below + probability(&d, x);
        largest += step * (1 - pow(fmin(d.below, 1), numbers));
    }
    require(largest >= 0); /* NaN fails, too */
    return largest;
}

/* ---- what a rank has ---------------------------------------------------------------------------------------------------------------- */

/* Ranks that hold experts. */
static int working_ranks(struct space *s, struct placement weight, int w)
{
    int working = 0;
    for (int r = 0; r < s->ranks; r++)
        working += cost_fraction(s, weight.split, w, r) > 0;
    return working;
}

struct routing routing_of(const struct work_at *at)
{
    struct space *s = at->s;
    const struct node *n = at->node;
    int w = at->workload, loads = s->plan->workloads.n;
    const int64_t *x = s->sizes.extent[n->in[0]->id * loads + w], *weight = s->sizes.extent[n->in[FIRST_WEIGHT]->id * loads + w];
    struct placement place = at->st->in[FIRST_WEIGHT];
    bool split = place.kind == PLACE_S && place.dim == 0;
    double experts = fmax((double)weight[0], 1), k = fmin((double)moe_chosen(n), experts),
           rows = cost_local_elements(s, n->in[0], at->st->in[0], w, at->rank) / fmax((double)x[n->in[0]->type.rank - 1], 1),
           share = split ? cost_fraction(s, place.split, w, at->rank) : 1, held = experts * share,
           met = held * (1 - pow(1 - k / experts, rows));
    if (!split || held == 0)
        return (struct routing){held, met, rows * k * share};
    int ranks = working_ranks(s, place, w);
    double most = routing_largest(rows * k * share, INFINITY, ranks);
    return (struct routing){held, routing_largest(met, held, ranks), fmin(most, rows * fmin(k, held))};
}

double routing_met(struct routing t)
{
    return t.held > 0 ? t.met / t.held : 0;
}

/* ---- experts as nodes of their own -------------------------------------------------------------------------------------------------- */

/* By symbol: the symbols that count rows of an expert; their probabilities by workload. */
struct chances {
    struct name_index index;
    VEC(double) list;
    VEC(int) found; /* values: the indices of the rows, which are always computed */
};

static double size_at(const struct space *s, const struct dim *d, int workload)
{
    int64_t size;
    return dim_eval(d, &s->plan->workloads.at[workload].dims, &size) && size > 0 ? (double)size : 0;
}

static void add_chances(const struct space *s, struct chances *all, const struct node *n, const struct routes *r)
{
    const struct type *t = &n->out[0]->type;
    VEC_PUSH(s->arena, &all->found, n->out[0]->id);
    for (int d = 0; d < t->rank; d++) {
        if (t->dim[d]->kind != DIM_SYM || name_index_find(&all->index, t->dim[d]->name) >= 0)
            continue;
        name_index_put(s->arena, &all->index, t->dim[d]->name, all->list.n);
        for (int w = 0; w < s->plan->workloads.n; w++) {
            double share = fmin(size_at(s, r->rows, w) / fmax(size_at(s, r->compared, w), 1), 1);
            VEC_PUSH(s->arena, &all->list, 1 - pow(1 - share, size_at(s, r->entries, w)));
        }
    }
}

static bool is_taken_off(const struct dim *term)
{
    int64_t times;
    return (term->kind == DIM_MUL && dim_is_int(term->arg[0], &times) ? times : term->lo) < 0;
}

/* The probability that a size is not 0. A row that goes to some of a few classes goes to few others: the probabilities of a sum add up. */
static double chance_of(const struct chances *all, const struct dim *d, int w)
{
    int at = d->kind == DIM_SYM ? name_index_find(&all->index, d->name) : -1;
    bool sums = d->kind == DIM_ADD;
    double least = at >= 0 ? all->list.at[at + w] : 1, sum = 0;
    for (int i = 0; i < d->n; i++) {
        double chance = chance_of(all, d->arg[i], w);
        sums = sums && !is_taken_off(d->arg[i]);
        sum += chance;
        least = fmin(least, chance);
    }
    return sums ? fmin(sum, 1) : least;
}

static void note_chances(struct space *s, const struct chances *all, const struct value *v, const struct dim *d)
{
    int loads = s->plan->workloads.n;
    for (int w = 0; dim_has_data(d) && w < loads; w++)
        s->sizes.chance[v->id * loads + w] = fmin(s->sizes.chance[v->id * loads + w], chance_of(all, d, w));
}

void routing_find_chances(struct space *s)
{
    struct chances all = {.found = {NULL, 0, 0}};
    struct routes r;
    int entries = s->g->values.n * s->plan->workloads.n;
    for (int i = 0; i < s->g->nodes.n; i++)
        if (op_routes_rows(s->g, s->g->nodes.at[i], &r))
            add_chances(s, &all, s->g->nodes.at[i], &r);
    if (all.list.n == 0)
        return;
    s->sizes.chance = NEWN(s->arena, double, entries + 1);
    for (int i = 0; i < entries; i++)
        s->sizes.chance[i] = 1;
    for (int i = 0; i < s->g->values.n; i++)
        for (int d = 0; d < s->g->values.at[i]->type.rank; d++)
            note_chances(s, &all, s->g->values.at[i], s->g->values.at[i]->type.dim[d]);
    for (int i = 0; i < entries; i++)
        require(s->sizes.chance[i] >= 0 && s->sizes.chance[i] <= 1);
    EACH (const int, id, all.found) {
        for (int w = 0; w < s->plan->workloads.n; w++)
            s->sizes.chance[*id * s->plan->workloads.n + w] = 1;
    }
}

double routing_chance(const struct space *s, const struct node *n, int workload)
{
    const struct value *v = n->nout > 0 ? n->out[0] : NULL;
    if (!s->sizes.chance || !v)
        return 1;
    return s->sizes.chance[v->id * s->plan->workloads.n + workload];
}

/* ---- experts that are dealt to ranks ------------------------------------------------------------------------------------------------ */

static double dealt_part(struct space *s, int expert, int w)
{
    const struct space_expert *x = &s->experts.list.at[expert];
    double share = fmin(size_at(s, x->rows.rows, w) / fmax(size_at(s, x->rows.compared, w), 1), 1),
           entries = size_at(s, x->rows.entries, w), chance = 1 - pow(1 - share, entries), rows = entries * share,
           held = experts_dealt_share(s, expert) * x->mates;
    int ranks = x->mates < s->ranks ? x->mates : s->ranks;
    double met = routing_largest(held * chance, held, ranks) / fmax(x->mates * chance, 1e-9),
           most = routing_largest(held * rows, INFINITY, ranks) / fmax(x->mates * rows, 1e-9);
    return fmin(fmax(met, most), 1);
}

double routing_dealt(struct space *s, int expert, int workload)
{
    int loads = s->plan->workloads.n, entries = s->experts.list.n * loads;
    if (!s->sizes.dealt) {
        s->sizes.dealt = NEWN(s->arena, double, entries + 1);
        for (int i = 0; i < entries; i++)
            s->sizes.dealt[i] = -1;
    }
    double *part = &s->sizes.dealt[expert * loads + workload];
    if (*part < 0)
        *part = dealt_part(s, expert, workload);
    return *part;
}

double routing_wait(struct space *s, const struct value *v, int workload)
{
    int expert = s->experts.of ? s->experts.of[v->id] : -1;
    if (expert < 0 || !s->experts.list.at[expert].dealt)
        return 0;
    const struct space_expert *x = &s->experts.list.at[expert];
    double rows = size_at(s, x->rows.entries, workload) * size_at(s, x->rows.rows, workload) /
        fmax(size_at(s, x->rows.compared, workload), 1);
    const struct machine *m = &s->options->machine;
    return (1 - routing_dealt(s, expert, workload)) *
        fmax(2 * rows * x->numbers / m->flops, fmin(rows, 1) * x->bytes / m->memory_bandwidth);
}

/* ---- rows that travel to their experts ---------------------------------------------------------------------------------------------- */

static double size_under(const struct dim *d, const struct bindings *dims)
{
    int64_t size;
    return dim_eval(d, dims, &size) && size > 0 ? (double)size : 1;
}

/* A row travels to a rank if one of its k experts is there. The rank that gets most rows counts. It packs and places the rows that it sends
 * and receives, and writes zeros for the other rows. */
double routing_travel_seconds(const struct machine *m, const struct node *n, const struct bindings *dims, int ranks)
{
    const struct type *x = &n->in[0]->type;
    int64_t chosen = moe_most_nonzero(n->in[1]);
    double rows = 1, experts = size_under(n->in[1]->type.dim[1], dims), k = chosen >= 0 ? fmin((double)chosen, experts) : experts,
           bytes = (double)dtype_size(x->dtype) * size_under(x->dim[x->rank - 1], dims);
    for (int d = 0; d < x->rank - 1; d++)
        rows *= size_under(x->dim[d], dims);
    double others = rows * (ranks - 1) / ranks, goes = 1 - pow(1 - fmin(k / experts, 1), fmax(experts / ranks, 1)),
           most = fmin(routing_largest(others * goes, INFINITY, ranks), others);
    struct sent sent = {.kind = COLL_ALLTOALL, .ranks = ranks, .bytes = rows * bytes, .moves = true, .moved = most * bytes};
    return collective_seconds(m, &sent) + price_of_pass(m, (rows + 2 * most) * bytes);
}
