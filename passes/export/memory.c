/* memory: predicts each rank's memory use, and that of one rank running the whole graph. Ranks whose graphs differ only in their rank
 * number use the same. */
#include "passes/pass.h"
#include "plan/cost/cost.h"
#include "plan/plan.h"

void pass_memory(struct compile *c)
{
    int ranks = c->graph->ranks;
    require(c->plan && c->source && c->rank_graphs);
    c->plan->use = NEWN(c->arena, struct rank_use, ranks);
    plan_memory_that_runs(c->source, c->plan, 1, &c->plan->unsharded);
    for (int r = 0; r < ranks; r++)
        if (c->alike[r] < r)
            c->plan->use[r] = c->plan->use[c->alike[r]];
        else
            plan_memory_that_runs(c->rank_graphs[r], c->plan, 1, &c->plan->use[r]);
}
