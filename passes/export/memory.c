/* memory: what every rank, and one that ran the whole graph, would hold. Predicted on copies that are as tpc-run will have them: ops that
 * are not written to files are expanded, and then the pass fuse_kernels fuses, for fused nodes keep no values between them. */
#include "op/emit/emit.h"
#include "op/op.h"
#include "passes/pass.h"
#include "plan/cost/cost.h"
#include "plan/plan.h"

/* Returns in out[] what each of `ranks` ranks holds of g: one rank's graph, or the global one. */
void memory_estimate(const struct compile *c, const struct graph *g, int ranks, struct rank_use *out)
{
    struct arena *tmp = arena_new();
    struct compile run = {.arena = tmp, .graph = graph_copy(tmp, g)};
    if (g->rank >= 0)
        expand_nodes(run.graph, OP_INTERNAL);
    pass_run(&run, "fuse_kernels", "fuse_kernels", NULL);
    plan_memory(run.graph, c->plan, ranks, out);
    arena_free(tmp);
}

void pass_memory(struct compile *c)
{
    int ranks = c->graph->ranks;
    require(c->plan && c->source && c->rank_graphs);
    c->plan->use = NEWN(c->arena, struct rank_use, ranks);
    memory_estimate(c, c->source, 1, &c->plan->unsharded);
    for (int r = 0; r < ranks; r++)
        memory_estimate(c, c->rank_graphs[r], 1, &c->plan->use[r]);
}
