/* keep_source: keeps a copy of the canonical graph. Memory and time are compared with it, other plans start from it, and plan.json names
 * its values. */
#include "passes/pass.h"

struct compile keep_source_copy(const struct compile *first, struct arena *arena, const struct options *options, struct plan *plan)
{
    struct compile c = *first;
    for (int i = 0; i < first->plan->workloads.n; i++) /* choose writes its predictions there */
        VEC_PUSH(arena, &plan->workloads, first->plan->workloads.at[i]);
    c.arena = arena;
    c.options = options;
    c.plan = plan;
    c.graph = graph_copy(arena, first->source);
    c.plans_only = true;
    return c;
}

void pass_keep_source(struct compile *c)
{
    c->source = graph_copy(c->arena, c->graph);
}
