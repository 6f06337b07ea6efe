/* collective_cost: what a collective costs on a machine, as it runs (run/comm): in one exchange, or within machines and between them
 * (run/comm/machines.c). The cost of an exchange is its hops, the bytes on a rank's link and the bytes that a rank adds up. The time per
 * byte depends on the message size (caches); between two sizes of the profile it is interpolated over the logarithm. calibrate.c fits the
 * constants of a link to this model. */
#include "plan/cost/cost.h"
#include "plan/plan.h"

#include <math.h>

enum wire collective_wire(const struct machine *m, enum dtype dtype, struct placement from, double ranks)
{
    return ranks > m->machine_ranks && dtype == DT_F32 && from.kind == PLACE_P && from.op == RED_SUM ? m->wire : WIRE_F32;
}

/* ---- one exchange over one link --------------------------------------------------------------------------------------------------- */

/* The transfer with coded messages; coded: bytes of float32 that a rank encodes and decodes. */
static struct transfer shortened(struct coding by, struct transfer x, double coded)
{
    x.bytes *= (double)sum_wire_bytes(by.wire, SUM_WIRE_BLOCK) / (double)sum_wire_bytes(WIRE_F32, SUM_WIRE_BLOCK);
    x.coding = by.seconds * coded;
    return x;
}

struct transfer cost_link_transfer(const struct link *link, enum collective kind, struct coding by, double t, double n)
{
    double lg = log2(t), others = (t - 1) / t;
    struct transfer halves = shortened(by, (struct transfer){2 * lg, 2 * others * n, n, 0}, (3 + 1 / t) * n);
    struct transfer whole = shortened(by, (struct transfer){lg, lg * n, t * n, 0}, (1 + t) * n);
    require(t >= 1 && n >= 0);
    switch (kind) {
    case COLL_ALLREDUCE: return cost_link_seconds(link, halves) < cost_link_seconds(link, whole) ? halves : whole;
    case COLL_ALLGATHER: return (struct transfer){lg, others * n, 0, 0};
    case COLL_REDUCESCATTER: return shortened(by, (struct transfer){lg, others * n, n, 0}, 2 * n);
    default: return (struct transfer){lg, others / t * n, 0, 0}; /* a rank sends the share of its own part that others need */
    }
}

void cost_link_size_shares(struct transfer x, double *weight)
{
    double at = x.hops > 0 ? log2(x.bytes / x.hops / LINK_LEAST) / log2(LINK_GROWTH) : 0;
    int k = at > 0 ? (int)fmin(at, LINK_SIZES) : 0;
    for (int i = 0; i <= LINK_SIZES; i++)
        weight[i] = 0;
    double part = k < LINK_SIZES ? fmax(at, 0) - k : 0;
    weight[k] = 1 - part;
    if (k < LINK_SIZES)
        weight[k + 1] = part;
}

double cost_link_seconds(const struct link *link, struct transfer x)
{
    double weight[LINK_SIZES + 1], slowdown = 0;
    require(x.hops >= 0 && x.bytes >= 0 && x.summed >= 0 && x.coding >= 0);
    cost_link_size_shares(x, weight);
    for (int k = 0; k <= LINK_SIZES; k++)
        slowdown += weight[k] * (k < LINK_SIZES ? link->slowdown[k] : 1);
    return link->overhead + x.hops * link->latency + slowdown * x.bytes / link->bandwidth + x.summed * link->reduce_seconds + x.coding;
}

/* ---- over levels ------------------------------------------------------------------------------------------------------------------ */

/* Bandwidth of a rank on this level's link while all ranks send. */
static double bandwidth_of(const struct link *link)
{
    return fmin(link->bandwidth, link->unit_bandwidth / link->ranks);
}

/* The share of a rank's bytes and hops that cross a level, where it sends as much to each of `all` ranks except its `own`. */
struct level_share {
    double bytes, hops;
};
static struct level_share share_of_level(const struct machine *m, int level, double own, double all)
{
    double from = fmax(m->level[level].ranks, own), to = level + 1 < m->levels ? fmin(m->level[level + 1].ranks, all) : all;
    return to > from ? (struct level_share){(to - from) / (all - own), log2(to / from) / log2(all / own)} : (struct level_share){0, 0};
}

/* The link as seen by groups of ranks: `own` of the ranks are no partners, because they are this rank or its machine. */
static struct link link_over(const struct machine *m, double own, double all)
{
    int top = 0;
    while (top + 1 < m->levels && m->level[top + 1].ranks < all)
        top++;
    if (top == 0 || m->level[top].ranks <= own) {
        struct link one = m->level[top];
        one.bandwidth = bandwidth_of(&one);
        return one;
    }
    struct link over = m->level[top];
    double seconds[LINK_SIZES + 1] = {0}, whole = 0; /* per byte; of all shares */
    over.latency = 0;
    for (int l = 0; l <= top; l++) {
        struct level_share share = share_of_level(m, l, own, all);
        over.latency += share.hops * m->level[l].latency;
        whole += share.bytes;
        for (int k = 0; k <= LINK_SIZES; k++)
            seconds[k] += share.bytes * (k < LINK_SIZES ? m->level[l].slowdown[k] : 1) / bandwidth_of(&m->level[l]);
    }
    require(fabs(whole - 1) < 1e-6 && seconds[LINK_SIZES] > 0); /* a rank's bytes cross the levels, each once */
    over.bandwidth = 1 / seconds[LINK_SIZES];
    for (int k = 0; k < LINK_SIZES; k++)
        over.slowdown[k] = seconds[k] * over.bandwidth;
    return over;
}

static double one_exchange(const struct link *link, enum collective kind, struct coding by, double t, double n)
{
    return cost_link_seconds(link, cost_link_transfer(link, kind, by, t, n));
}

double collective_overhead(const struct machine *m, double ranks)
{
    return link_over(m, 1, ranks).overhead;
}

/* An AllReduce within machines, then between them. */
static double allreduce_over(const struct link *within, const struct link *between, struct coding by, double here, double machines,
                             double n)
{
    struct coding none = {0};
    double parts = one_exchange(within, COLL_REDUCESCATTER, none, here, n) + one_exchange(between, COLL_ALLREDUCE, by, machines, n / here) +
        one_exchange(within, COLL_ALLGATHER, none, here, n);
    double all = one_exchange(within, COLL_ALLREDUCE, none, here, n) + one_exchange(between, COLL_ALLREDUCE, by, machines, n);
    return fmin(parts, all);
}

static bool runs_by_machine(const struct machine *m, const struct sent *x)
{
    bool parts = x->kind == COLL_ALLGATHER || ((x->kind == COLL_ALLREDUCE || x->kind == COLL_REDUCESCATTER) && !x->at_once);
    return parts && m->levels > 1 && m->machine_ranks > 1 && x->ranks > m->machine_ranks && fmod(x->ranks, m->machine_ranks) == 0;
}

static struct coding coding_of(const struct machine *m, enum wire wire)
{
    return (struct coding){wire, wire == WIRE_F32 ? 0 : wire == WIRE_BF16 ? m->bf16_seconds : m->q8_seconds};
}

double collective_seconds(const struct machine *m, const struct sent *x)
{
    struct coding by = coding_of(m, x->wire), none = {0};
    if (!runs_by_machine(m, x)) {
        struct link link = link_over(m, 1, x->ranks);
        struct transfer sent = cost_link_transfer(&link, x->kind, by, x->ranks, x->bytes);
        if (x->moves)
            sent.bytes = x->moved;
        return cost_link_seconds(&link, sent);
    }
    double here = m->machine_ranks, machines = x->ranks / here;
    struct link within = link_over(m, 1, here), between = link_over(m, here, x->ranks);
    if (x->kind == COLL_ALLREDUCE)
        return allreduce_over(&within, &between, by, here, machines, x->bytes);
    return machines * one_exchange(&within, x->kind, none, here, x->bytes / machines) +
        one_exchange(&between, x->kind, by, machines, x->bytes / here);
}
