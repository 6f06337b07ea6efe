/* collective_cost: what a collective costs on a machine: hops, bytes on a rank's link and bytes that a rank adds up, and from these
 * seconds. A byte takes as long as messages of that size say, for some fit a cache and some do not: between two sizes of the profile by the
 * logarithm. calibrate.c fits the profile's constants to this model. */
#include "plan/cost/cost.h"
#include "plan/plan.h"

#include <math.h>

enum wire collective_wire(const struct machine *m, enum dtype dtype, struct placement from, double ranks)
{
    return ranks > m->machine_ranks && dtype == DT_F32 && from.kind == PLACE_P && from.op == RED_SUM ? m->wire : WIRE_F32;
}

/* floats: bytes of float32 that a rank encodes and decodes. */
static struct transfer shortened(const struct machine *m, enum wire wire, struct transfer x, double floats)
{
    x.bytes *= (double)sum_wire_bytes(wire, SUM_WIRE_BLOCK) / (double)sum_wire_bytes(WIRE_F32, SUM_WIRE_BLOCK);
    x.coding = wire == WIRE_F32 ? 0 : floats * (wire == WIRE_BF16 ? m->bf16_seconds : m->q8_seconds);
    return x;
}

struct transfer collective_transfer(const struct machine *m, enum collective kind, enum wire wire, double t, double n)
{
    double lg = log2(t), others = (t - 1) / t;
    struct transfer halves = shortened(m, wire, (struct transfer){2 * lg, 2 * (t - 1) / t * n, n, 0}, (3 + 1 / t) * n);
    struct transfer whole = shortened(m, wire, (struct transfer){lg, lg * n, t * n, 0}, (1 + t) * n);
    require(t >= 1 && n >= 0);
    switch (kind) {
    case COLL_ALLREDUCE: return collective_seconds(m, halves) < collective_seconds(m, whole) ? halves : whole;
    case COLL_ALLGATHER: return (struct transfer){lg, others * n, 0, 0};
    case COLL_REDUCESCATTER: return shortened(m, wire, (struct transfer){lg, others * n, n, 0}, 2 * n);
    default:
        return (struct transfer){lg, (t - 1) / (t * t) * n, 0, 0}; /* what a rank sends is its own part, and of that what others hold */
    }
}

void collective_link_shares(struct transfer x, double *weight)
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

double collective_seconds(const struct machine *m, struct transfer x)
{
    double weight[LINK_SIZES + 1], slowdown = 0;
    require(x.hops >= 0 && x.bytes >= 0 && x.summed >= 0 && x.coding >= 0);
    collective_link_shares(x, weight);
    for (int k = 0; k <= LINK_SIZES; k++)
        slowdown += weight[k] * (k < LINK_SIZES ? m->link_slowdown[k] : 1);
    double sent = x.hops * m->hop_latency + slowdown * x.bytes / m->link_bandwidth;
    return m->collective_overhead + sent + x.summed * m->reduce_seconds + x.coding;
}
