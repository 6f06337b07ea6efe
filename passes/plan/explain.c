/* explain: prints why the node, tensor or weight of --explain has its placement (src/plan/report/explain.c). */
#include "passes/pass.h"
#include "plan/report/report.h"

void pass_explain(struct compile *c)
{
    if (c->options->explain)
        plan_explain(stdout, c->plan->space, c->options->explain);
}
