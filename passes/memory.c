/* memory: what every rank, and one that ran the whole graph, would hold. Predicted on copies that are as tpc-run will have them: ops that
 * are not written to files are expanded, and then the pass kernels fuses, for fused nodes keep no values between them. Before localize,
 * where one tries many numbers of ranks, the global graph has to do; it may fuse what a rank can not, where key heads are repeated
 * unevenly. */
#include "passes/pass.h"
#include "plan/plan.h"

static void predict(const struct compile *c, const struct graph *g, int ranks, struct rank_use *out)
{
    struct arena *tmp = arena_new();
    struct compile run = {.arena = tmp, .graph = graph_copy(tmp, g)};
    if (g->rank >= 0)
        expand_nodes(run.graph, OP_INTERNAL);
    pass_run(&run, "kernels", "kernels", NULL);
    plan_memory(run.graph, c->plan, ranks, out);
    arena_free(tmp);
}

void pass_memory(struct compile *c)
{
    int ranks = c->graph->ranks;
    require(c->plan && c->source);
    c->plan->use = NEWN(c->arena, struct rank_use, ranks);
    predict(c, c->source, 1, &c->plan->unsharded);
    if (!c->rank_graphs)
        predict(c, c->graph, ranks, c->plan->use);
    for (int r = 0; c->rank_graphs && r < ranks; r++)
        predict(c, c->rank_graphs[r], 1, &c->plan->use[r]);
}
