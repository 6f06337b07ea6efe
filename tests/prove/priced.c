/* priced: what the planner predicts of a plan, and what the graph costs that runs by it. The planner prices the model's graph, fused, and
 * adds what each reshard costs that ends a kernel. Here reshards are nodes, what they leave is fused, and the price is the sum over the
 * kernels. */
#include "plan/cost/cost.h"
#include "plan/plan.h"
#include "plan/space/space.h"
#include "tests/prove/private.h"

#include <math.h>

static bool is_weight(const struct space *model, int nvalues, const struct value *v)
{
    while (v->producer && explicit_is_reshard(v->producer))
        v = v->producer->in[0];
    return v->id < nvalues && model->weight[v->id];
}

void prove_price(struct compile *c, int nvalues, double most)
{
    struct space *model = c->plan->space, *s = explicit_space(model, c->graph, c->plan, c->graph->ranks);
    for (int i = 0; i < c->graph->values.n; i++)
        s->weight[i] = is_weight(model, nvalues, c->graph->values.at[i]);
    fused_find(s, cost_graph_that_runs(c->arena, c->graph));
    for (int w = 0; w < c->plan->workloads.n; w++) {
        double predicted = c->plan->workloads.at[w].seconds, runs = explicit_seconds(s, w, c->graph->ranks);
        if (fabs(predicted - runs) > most * runs)
            fail("workload %d is predicted to take %.3f us, the kernels that run add up to %.3f", w, 1e6 * predicted, 1e6 * runs);
    }
}

void prove_objective(const struct plan *plan)
{
    double predicted = 0;
    for (int w = 0; w < plan->workloads.n; w++)
        predicted += plan->workloads.at[w].weight * plan->workloads.at[w].seconds;
    if (fabs(plan_objective(plan) - predicted) > 1e-6 * predicted)
        fail("the solver's plan costs %.3f us, predicted are %.3f", 1e6 * plan_objective(plan), 1e6 * predicted);
}
