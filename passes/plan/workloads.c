/* workloads: sets the sizes to plan for, from --workload or from the roles of the symbols (src/plan/facts/workload.c). */
#include "passes/pass.h"
#include "plan/facts/facts.h"

/* -v: what inference assumed about the symbols; a workload must agree with it. */
static void explain_assumptions(const struct graph *g)
{
    const struct equation *eq;
    int n = alg_equations(g->alg, &eq);
    for (int i = 0; i < n; i++)
        explain("assumed: %s = %s (%s)", dim_str(g->arena, eq[i].left), dim_str(g->arena, eq[i].right), eq[i].why);
}

void pass_workloads(struct compile *c)
{
    require(c->options && c->plan);
    explain_assumptions(c->graph);
    if (!c->options->workload.n)
        explain("assumed: the usual sizes of these inputs (--workload takes others)");
    plan_workloads(c->graph, c->options, c->plan);
    plan_note_empty(c->graph, c->plan);
    plan_note_long(c->graph, c->options, c->plan);
    plan_note_machine(c->graph, c->options, c->plan);
}
