/* memory: predicts what every rank holds while it runs, and what one rank would hold that runs the whole graph. It works on copies in
 * the form that tpc-run will have: internal ops are expanded and nodes fused, because fused nodes keep no values between them. */
#include "op/emit/emit.h"
#include "op/op.h"
#include "passes/pass.h"
#include "plan/cost/cost.h"
#include "plan/plan.h"

/* out[r]: the bytes that rank r holds of g, the graph of one rank or the global one. */
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
