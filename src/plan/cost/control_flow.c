/* control_flow: the cost of an If, Loop or Scan: the larger branch of an If; the body of a Loop or Scan times the number of iterations, if
 * that is known. Every rank runs all of it. */
#include "lower/lower.h"
#include "op/control/control.h"
#include "op/op.h"
#include "plan/cost/cost.h"
#include "plan/plan.h"
#include "plan/space/space.h"

#include <math.h>

/* A plan with the sizes of the body under each workload. */
static struct plan *plan_inside(struct space *s, const struct node *n, int k, const struct graph *body)
{
    struct plan *plan = NEW(s->arena, struct plan);
    for (int w = 0; w < s->plan->workloads.n; w++) {
        struct workload load = {.dims = plan_sizes_inside(s->arena, n, k, body, &s->plan->workloads.at[w].dims), .weight = 1};
        VEC_PUSH(s->arena, &plan->workloads, load);
    }
    return plan;
}

/* The space of the body on one rank, fused as it runs. */
static struct space *body_space(struct space *s, const struct node *n, int k)
{
    struct graph *body = lower_body(s->arena, s->g, n, k);
    struct space *in = explicit_space(s, body, plan_inside(s, n, k, body), 1);
    for (int i = 0; i < body->nodes.n; i++) {
        struct strategy *replicated = NEW(s->arena, struct strategy);
        *replicated = strategy_replicated(s->arena, body->nodes.at[i], in->rule[i]);
        body->nodes.at[i]->strategy = replicated;
    }
    in->weight = weight_marks(s->arena, body, in->rule);
    fused_find(in, cost_graph_that_runs(s->arena, body));
    return in;
}

/* The spaces of all bodies, built once: every strategy of the node asks for them. */
static struct space **bodies_of(struct space *s, const struct node *n)
{
    for (int i = 0; i < s->bodies.n; i++)
        if (s->bodies.at[i].node == n)
            return s->bodies.at[i].body;
    struct space **body = NEWN(s->arena, struct space *, node_bodies(n));
    for (int k = 0; k < node_bodies(n); k++)
        body[k] = body_space(s, n, k);
    VEC_PUSH(s->arena, &s->bodies, ((struct space_bodies){n, body}));
    return body;
}

static double iterations(struct space *s, const struct node *n, int w)
{
    const struct dim *count = control_iterations(s->g, n);
    int64_t k;
    return count && dim_eval(count, &s->plan->workloads.at[w].dims, &k) && k > 0 ? (double)k : 1;
}

double control_flow_seconds(struct space *s, const struct node *n, int w, int busy)
{
    double most = 0;
    for (int k = 0; k < node_bodies(n); k++)
        most = fmax(most, explicit_seconds(bodies_of(s, n)[k], w, busy));
    return most * iterations(s, n, w) + s->options->machine.node_overhead;
}
