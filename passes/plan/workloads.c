/* workloads: the sizes to plan for, as --workload gives them or by the roles of the graph's symbols (src/plan/facts/workload.c). */
#include "passes/pass.h"
#include "plan/facts/facts.h"

void pass_workloads(struct compile *c)
{
    require(c->options && c->plan);
    plan_workloads(c->graph, c->options, c->plan);
}
