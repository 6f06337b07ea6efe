/* memory: predicts what every rank holds while it runs, and what one rank would hold that runs the whole graph. */
#include "passes/pass.h"
#include "plan/plan.h"

void pass_memory(struct compile *c)
{
    int ranks = c->graph->ranks;
    require(c->plan && c->source && c->rank_graphs);
    c->plan->use = NEWN(c->arena, struct rank_use, ranks);
    memory_estimate(c, c->source, 1, &c->plan->unsharded);
    for (int r = 0; r < ranks; r++)
        memory_estimate(c, c->rank_graphs[r], 1, &c->plan->use[r]);
}
