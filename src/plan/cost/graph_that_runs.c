/* graph_that_runs: a graph as a rank runs it: tpc-run's lowering applied to a copy. Options of a run do not affect plans: docs/calibrate.md
 * says why. */
#include "lower/lower.h"
#include "op/emit/emit.h"
#include "op/op.h"
#include "plan/cost/cost.h"
#include "plan/facts/facts.h"

/* Ranks hold shards of (nearly) one size. */
static bool alike(void *ranks, uint64_t digest)
{
    return (void)ranks, (void)digest, true;
}

struct graph *cost_graph_that_runs(struct arena *a, const struct graph *g)
{
    struct graph *runs = graph_copy(a, g);
    if (g->rank >= 0) {
        expand_nodes(runs, OP_INTERNAL);
        weight_cut(runs);
    }
    lower_graph(runs, &(struct lower_options){.agree = alike});
    return runs;
}
