/* memory: what every rank, and one that ran the whole graph, would hold. Predicted on copies that went through the pass kernels, as
 * tpc-run's graph does: fused nodes keep no values between them. */
#include "passes/pass.h"
#include "plan/plan.h"

static struct rank_use use_of(const struct compile *c, const struct graph *g)
{
    struct arena *tmp = arena_new();
    struct compile run = {.arena = tmp, .graph = graph_copy(tmp, g)};
    pass_run(&run, "kernels", "kernels", NULL);
    struct rank_use use = plan_memory(run.graph, c->plan);
    arena_free(tmp);
    return use;
}

void pass_memory(struct compile *c)
{
    require(c->plan && c->source && c->rank_graphs);
    c->plan->unsharded = use_of(c, c->source);
    c->plan->use = NEWN(c->arena, struct rank_use, c->graph->ranks);
    for (int r = 0; r < c->graph->ranks; r++)
        c->plan->use[r] = use_of(c, c->rank_graphs[r]);
}
