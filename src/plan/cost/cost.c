/* cost: predicted time of the slowest rank, in picoseconds, summed over the weighted workloads.
 *
 *     node             its work (work.c) at the prices of the machine (price.c)
 *     AllGather, ReduceScatter    g + lg t a + (t-1)/t n/B        AllReduce  g + min(2 lg t a + 2 (t-1)/t n/B, lg t (a + n/B))
 *     AllToAll, Redistribute      g + lg t a + (t-1)/t^2 n/B, of ranges (a halo) what is missing
 *     recurrent net    an AllGather of its hidden units at each step, where they are split
 *
 * and c for every byte of the addends that a rank sums: n in a ReduceScatter and the first form of AllReduce, t n in the second. n: bytes
 * of the global value. transition_seconds adds the cost of a dimension that is not the leading one. Ranks of one machine share its F, and
 * its M for weights and state, which come from memory; activations are mostly in a rank's own cache. fused.c finds the nodes that run as
 * one kernel; collective_cost.c prices collectives. Costs are integers, so sums do not depend on their order and every machine finds the
 * same plan. */
#include "plan/cost/cost.h"

#include "op/op.h"
#include "op/recurrent/recurrent.h"
#include "op/rule/rule.h"
#include "plan/cost/work.h"
#include "plan/facts/facts.h"
#include "plan/input/input.h"
#include "plan/plan.h"
#include "plan/space/space.h"

#include <math.h>
#include <string.h>

double cost_steps(const struct plan *p)
{
    double steps = 0;
    for (int i = 0; i < p->workloads.n; i++)
        steps += p->workloads.at[i].weight;
    require(steps > 0);
    return steps;
}

double plan_objective(const struct plan *p)
{
    return (double)p->objective * 1e-12;
}

static int64_t picoseconds(double seconds)
{
    double ps = seconds * 1e12;
    require(seconds >= 0); /* NaN fails, too */
    return ps < 1e18 ? (int64_t)llround(ps) : COST_NEVER / 1024;
}

void cost_evaluate_types(struct space *s)
{
    int w = s->plan->workloads.n;
    s->sizes.extent = arena_array(s->arena, (size_t)(s->g->values.n * w + 1), sizeof *s->sizes.extent);
    for (int i = 0; i < s->g->values.n; i++)
        for (int k = 0; k < w; k++)
            for (int d = 0; d < s->g->values.at[i]->type.rank; d++) {
                int64_t *at = &s->sizes.extent[i * w + k][d];
                if (!dim_eval(s->g->values.at[i]->type.dim[d], &s->plan->workloads.at[k].dims, at) || *at < 0)
                    *at = 1; /* a data-dependent size */
            }
    routing_find_chances(s);
}

static int dealt_expert(struct space *s, const struct value *v, const struct split *q, int w);

/* Marks the value's expert if a candidate split assigns it to one rank. */
static void note_dealt(struct space *s, const struct value *v)
{
    for (int d = 0; s->experts.of && s->experts.of[v->id] >= 0 && d < v->type.rank; d++)
        for (int k = 0; k < s->candidates[v->id][d].list.n; k++)
            if (dealt_expert(s, v, s->candidates[v->id][d].list.at[k].split, 0) >= 0)
                s->experts.list.at[s->experts.of[v->id]].dealt = true;
}

void cost_prepare(struct space *s)
{
    cost_evaluate_types(s);
    fused_find(s, cost_graph_that_runs(s->arena, s->g));
    fused_find_alone(s);
    for (int i = 0; i < s->g->values.n; i++)
        note_dealt(s, s->g->values.at[i]);
    for (int i = 0; i < s->g->nodes.n; i++)
        for (int k = 0; k < s->offered[i].list.n; k++) {
            struct strategy *st = s->offered[i].list.at[k];
            if (st->lowered)
                st->body = lowering_space(s, s->g->nodes.at[i], st);
        }
}

/* The fraction of a dimension that rank r holds by a split, under workload w. */
double cost_fraction(struct space *s, const struct split *q, int w, int r)
{
    require(q->ranks == s->ranks && r < s->ranks && w < s->plan->workloads.n);
    if (q->id >= s->sizes.nfraction) {
        double **more = NEWN(s->arena, double *, q->id + 64);
        for (int i = 0; i < s->sizes.nfraction; i++)
            more[i] = s->sizes.fraction[i];
        s->sizes.fraction = more;
        s->sizes.nfraction = q->id + 64;
    }
    if (!s->sizes.fraction[q->id]) {
        int loads = s->plan->workloads.n;
        double *f = NEWN(s->arena, double, 2 * loads * s->ranks + 1);
        for (int k = 0; k < loads; k++) {
            for (int i = 0; i < s->ranks; i++) {
                int64_t local, size;
                const struct bindings *b = &s->plan->workloads.at[k].dims;
                bool known = dim_eval(split_extent(s->g->alg, q, i), b, &local) && dim_eval(split_size(s->g->alg, q), b, &size) && size > 0;
                require(!known || (local >= 0 && local <= size));
                f[k * s->ranks + i] = known ? (double)local / (double)size : 1;
            }
            for (int i = s->ranks - 1, at = k * s->ranks, next = s->ranks; i >= 0; i--) {
                next = i + 1 < s->ranks && f[at + i] != f[at + i + 1] ? i + 1 : next;
                f[loads * s->ranks + at + i] = next;
            }
        }
        s->sizes.fraction[q->id] = f;
    }
    return s->sizes.fraction[q->id][w * s->ranks + r];
}

int cost_next_rank(struct space *s, const struct split *q, int w, int r)
{
    (void)cost_fraction(s, q, w, r);
    return (int)s->sizes.fraction[q->id][(s->plan->workloads.n + w) * s->ranks + r];
}

/* The expert of a value, if this split assigns it to one rank; else -1. */
static int dealt_expert(struct space *s, const struct value *v, const struct split *q, int w)
{
    int expert = s->experts.of ? s->experts.of[v->id] : -1, working = 0;
    for (int r = 0, next; expert >= 0 && r < s->ranks; r = next) {
        next = cost_next_rank(s, q, w, r);
        working += cost_fraction(s, q, w, r) > 0 ? next - r : 0;
    }
    return working == 1 && s->ranks > 1 ? expert : -1;
}

double cost_part(struct space *s, const struct value *v, const struct split *q, int w, int r)
{
    int expert = dealt_expert(s, v, q, w);
    return expert >= 0 ? routing_dealt(s, expert, w) : cost_fraction(s, q, w, r);
}

static double global_elements(const struct space *s, const struct value *v, int w)
{
    double n = 1;
    for (int d = 0; d < v->type.rank; d++)
        n *= (double)s->sizes.extent[v->id * s->plan->workloads.n + w][d];
    return n;
}

double cost_local_elements(struct space *s, const struct value *v, struct placement p, int w, int r)
{
    return global_elements(s, v, w) * (p.kind == PLACE_S ? cost_part(s, v, p.split, w, r) : 1);
}

double cost_local_size(struct space *s, const struct value *v, struct placement p, int dim, int w, int r)
{
    double size = (double)s->sizes.extent[v->id * s->plan->workloads.n + w][dim];
    return size * (p.kind == PLACE_S && p.dim == dim ? cost_part(s, v, p.split, w, r) : 1);
}

/* The resident bytes of the fullest rank times the number of ranks, weighted as in src/plan/facts/limits.c. */
static double weighed_most(struct space *s, const struct value *v, struct placement p, int w)
{
    double most = 0;
    for (int r = 0; r < s->ranks; r++)
        most = fmax(most, limit_weight(s->options, r) * cost_local_elements(s, v, p, w, r));
    return most * value_width(v);
}

static double most_bytes(struct space *s, const struct value *v, struct placement p, int w)
{
    double most = 0;
    if (limits_differ(s->options, s->ranks))
        return weighed_most(s, v, p, w);
    int ranks = p.kind == PLACE_S ? s->ranks : 1, expert = p.kind == PLACE_S ? dealt_expert(s, v, p.split, w) : -1;
    if (expert >= 0)
        return global_elements(s, v, w) * experts_dealt_share(s, expert) * value_width(v);
    for (int r = 0; r < ranks; r = p.kind == PLACE_S ? cost_next_rank(s, p.split, w, r) : ranks)
        most = fmax(most, cost_local_elements(s, v, p, w, r));
    return most * value_width(v);
}

/* Seconds of the slowest rank to move its part of the value this many times. */
static double slowest_pass(struct space *s, const struct value *v, struct placement p, double times, int w)
{
    double most = 0;
    for (int r = 0, next; r < s->ranks; r = next) {
        double bytes = times * value_width(v) * cost_local_elements(s, v, p, w, r);
        next = price_next_speed(s, r);
        next = p.kind == PLACE_S && cost_next_rank(s, p.split, w, r) < next ? cost_next_rank(s, p.split, w, r) : next;
        most = fmax(most, price_of_pass(&s->options->machine, bytes) / price_speed(s, r, s->ranks));
    }
    return most;
}

/* ---- communication ------------------------------------------------------------------------------------------------------- */

/* What a collective moves: bytes of the global value, and the number of indices in the dimensions before the one that it joins or
 * splits. */
struct moved {
    double bytes, outer;
    enum dtype dtype;
};

static double part_moved(const struct split *from, const struct split *to, const struct bindings *dims)
{
    struct arena *tmp = arena_new();
    double part = split_moved(tmp, from, to, dims);
    arena_free(tmp);
    return part;
}

/* Blocks of a dimension that is not the first are not contiguous: AllGather and ReduceScatter along it also copy the global value once in
 * memory. A leading dimension (a sequence at batch 1) needs no such copy. */
static double transition_seconds(const struct machine *m, const struct bindings *dims, int ranks, struct placement from,
                                 struct placement to, struct moved x)
{
    enum collective by = placement_transition(from, to).by;
    double part = by == COLL_REDISTRIBUTE ? part_moved(from.split, to.split, dims) : -1;
    struct sent sent = {.kind = by,
                        .wire = collective_wire(m, x.dtype, from, ranks),
                        .at_once = dtype_is_half(x.dtype),
                        .ranks = ranks,
                        .bytes = x.bytes,
                        .moves = part >= 0,
                        .moved = part * x.bytes};
    bool packs = x.outer > 1 && (by == COLL_ALLGATHER || by == COLL_REDUCESCATTER);
    return collective_seconds(m, &sent) + (packs ? price_of_pass(m, 2 * x.bytes) + ranks * x.outer * m->row_seconds : 0);
}

/* The product of the dimensions that precede this one in memory. */
static double outer_indices(const struct space *s, const struct value *v, int dim, int w)
{
    const int64_t *size = s->sizes.extent[v->id * s->plan->workloads.n + w];
    bool last = s->fused.last[v->id];
    double outer = 1;
    for (int d = 0; d < v->type.rank; d++)
        if (last && d * dim > 0 ? dim == 1 ? d != 1 : d != 1 && d < dim : d < dim)
            outer *= (double)size[d];
    return outer;
}

double cost_reshard_seconds(struct space *s, const struct value *v, struct placement from, struct placement to, int w)
{
    const struct machine *m = &s->options->machine;
    struct placement parted = from.kind == PLACE_S ? from : to;
    require(placement_transition(from, to).possible && !placement_eq(from, to));
    if (!placement_transition(from, to).by)
        return to.kind == PLACE_P ? 0 : slowest_pass(s, v, to, 2, w);
    struct moved x = {global_elements(s, v, w) * (double)dtype_size(v->type.dtype),
                      parted.kind == PLACE_S ? outer_indices(s, v, parted.dim, w) : 1, v->type.dtype};
    return transition_seconds(m, &s->plan->workloads.at[w].dims, s->ranks, from, to, x) + routing_wait(s, v, w);
}

/* The time of a recurrent net's messages between its steps; 0 if none. */
static double exchange_seconds(const struct machine *m, const struct graph *g, const struct node *n, const struct bindings *dims, int ranks)
{
    struct recurrent_exchange x;
    int64_t times, rows, units;
    if (!recurrent_exchanges(g, n, &x))
        return 0;
    if (!dim_eval(x.times, dims, &times) || !dim_eval(x.rows, dims, &rows) || !dim_eval(split_size(g->alg, x.units), dims, &units))
        times = rows = units = 1; /* a data-dependent size */
    double bytes = (double)rows * (double)units * sizeof(float);
    return (double)times * collective_seconds(m, &(struct sent){.kind = COLL_ALLGATHER, .ranks = ranks, .bytes = bytes});
}

double cost_collective_seconds(const struct machine *m, const struct graph *g, const struct node *n, const struct bindings *dims, int ranks)
{
    if (n->op->flags & OP_RECURS)
        return exchange_seconds(m, g, n, dims, ranks);
    if (op_is_tpc(n, "Dispatch") || op_is_tpc(n, "Combine"))
        return routing_travel_seconds(m, n, dims, ranks);
    const struct value *v = n->in[0];
    struct placement from = v->place, to = n->out[0]->place, parted = from.kind == PLACE_S ? from : to;
    struct moved x = {(double)dtype_size(v->type.dtype), 1, v->type.dtype};
    for (int d = 0; d < v->type.rank; d++) {
        int64_t size;
        if (!dim_eval(v->type.dim[d], dims, &size) || size < 0)
            size = 1; /* a data-dependent size */
        x.outer *= parted.kind == PLACE_S && d < parted.dim ? (double)size : 1;
        x.bytes *= (double)size;
    }
    return placement_transition(from, to).by
        ? transition_seconds(m, dims, ranks, from, to, x)
        : collective_seconds(m, &(struct sent){.kind = COLL_BROADCAST, .ranks = ranks, .bytes = x.bytes});
}

/* Whether the value is read or written by a kernel that may end early. A kernel that runs whole or not at all is priced apart
 * (fused_find_alone). */
static bool ends_kernel(const struct space *s, const struct value *v)
{
    return s->fused.inner[v->id] && !s->fused.whole[v->id];
}

/* The cost of resharding an inner value: its kernel ends there, the value is stored, and another kernel reads it. */
double cost_cut_seconds(struct space *s, const struct value *v, struct placement place, bool reads, int w)
{
    const struct machine *m = &s->options->machine;
    return ends_kernel(s, v) ? slowest_pass(s, v, place, 1, w) + reads * m->node_overhead : 0;
}

int64_t cost_of_cut(struct space *s, const struct value *v, struct placement place, bool reads)
{
    double seconds = 0;
    for (int w = 0; ends_kernel(s, v) && w < s->plan->workloads.n; w++)
        seconds += s->plan->workloads.at[w].weight * cost_cut_seconds(s, v, place, reads, w);
    return picoseconds(seconds);
}

/* The price of the collectives, plus one picosecond per step, so that ties go to fewer steps. */
int64_t cost_of_reshard(struct space *s, const struct value *v, struct placement from, struct placement to)
{
    double seconds = 0;
    for (int w = 0; w < s->plan->workloads.n; w++)
        seconds += s->plan->workloads.at[w].weight * cost_reshard_seconds(s, v, from, to, w);
    return picoseconds(seconds) + 1 + (placement_transition(from, to).by ? s->plan->near.collective_price : 0);
}

/* ---- nodes ----------------------------------------------------------------------------------------------------------------- */

int64_t cost_of_strategy(struct space *s, const struct node *n, const struct rule *rule, const struct strategy *st)
{
    double seconds = 0;
    for (int w = 0; w < s->plan->workloads.n; w++)
        seconds += s->plan->workloads.at[w].weight * cost_node_seconds(s, n, rule, st, w, s->ranks);
    return picoseconds(seconds);
}

static double held_bytes(struct space *s, const struct value *v, struct placement p)
{
    double most = 0;
    for (int w = 0; w < s->plan->workloads.n; w++)
        most = fmax(most, most_bytes(s, v, p, w));
    return most;
}

int cost_trained(const struct value *weight)
{
    enum { KEPT = 3 };
    size_t size = dtype_size(value_storage(weight));
    return size < sizeof(float) ? (KEPT + 1) * (int)(sizeof(float) / size) : KEPT;
}

int cost_copies(const struct graph *g, const struct value *weight)
{
    for (int i = 0; i < g->trained.n; i++)
        if (g->trained.at[i].weight == weight)
            return 1 + cost_trained(weight);
    return 1;
}

double cost_resident_bytes(struct space *s, const struct value *v, struct placement p)
{
    return cost_copies(s->g, v) * held_bytes(s, v, p);
}

static int64_t price_bytes(struct space *s, double bytes, double price)
{
    return picoseconds(cost_steps(s->plan) * price * bytes / s->options->machine.memory_bandwidth);
}

int64_t cost_of_memory(struct space *s, const struct value *v, struct placement p)
{
    return price_bytes(s, cost_resident_bytes(s, v, p), s->plan->room.bytes ? 0 : s->plan->byte_price);
}

int64_t cost_of_nearness(struct space *s, const struct value *v, struct placement p)
{
    return price_bytes(s, cost_resident_bytes(s, v, p), s->plan->near.byte_price);
}
