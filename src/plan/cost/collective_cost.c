/* collective_cost: what a collective costs on a machine: hops, bytes on a rank's link and bytes that a rank adds up, and from these
 * seconds. calibrate.c fits the profile's constants to this model. */
#include "plan/cost/cost.h"
#include "plan/plan.h"

#include <math.h>

struct transfer collective_transfer(const struct machine *m, enum collective kind, double t, double n)
{
    double lg = log2(t), others = (t - 1) / t;
    struct transfer halves = {2 * lg, 2 * (t - 1) / t * n, n}, whole = {lg, lg * n, t * n};
    require(t >= 1 && n >= 0);
    switch (kind) {
    case COLL_ALLREDUCE: return collective_seconds(m, halves) < collective_seconds(m, whole) ? halves : whole;
    case COLL_ALLGATHER: return (struct transfer){lg, others * n, 0};
    case COLL_REDUCESCATTER: return (struct transfer){lg, others * n, n};
    default: return (struct transfer){lg, (t - 1) / (t * t) * n, 0}; /* what a rank sends is its own part, and of that what others hold */
    }
}

double collective_seconds(const struct machine *m, struct transfer x)
{
    require(x.hops >= 0 && x.bytes >= 0 && x.summed >= 0);
    return m->collective_overhead + x.hops * m->hop_latency + x.bytes / m->link_bandwidth + x.summed * m->reduce_seconds;
}
