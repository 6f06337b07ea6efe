/* control_flow: the cost of an If, Loop or Scan: the larger branch of an If, or the body of a Loop or Scan once per iteration, if their
 * number is known. Every rank runs all of it. */
#include "op/canon/canon.h"
#include "op/control/control.h"
#include "op/op.h"
#include "op/rule/rule.h"
#include "plan/cost/cost.h"
#include "plan/plan.h"
#include "plan/space/space.h"

#include <math.h>

/* The body as a space of its own, under the sizes of one workload. */
static struct space body_space(struct arena *tmp, struct space *s, const struct node *n, int k, int w)
{
    struct graph *body = control_typed_body(tmp, s->g, n, k).graph;
    struct plan *plan = NEW(tmp, struct plan);
    struct workload load = {.dims = plan_sizes_inside(tmp, n, k, body, &s->plan->workloads.at[w].dims), .weight = 1};
    struct space in = {
        .arena = tmp, .g = body, .options = s->options, .plan = plan, .ranks = 1, .weight = NEWN(tmp, bool, body->values.n + 1)};
    VEC_PUSH(tmp, &plan->workloads, load);
    for (int i = 0; i < body->nodes.n; i++)
        canon_node(body, body->nodes.at[i]);
    for (int i = 0; i < body->values.n; i++)
        in.weight[i] = body->values.at[i]->constant != NULL;
    cost_evaluate_types(&in);
    fused_find(&in, body);
    return in;
}

/* Shape arithmetic is gone when the body runs. */
static bool only_makes_sizes(const struct node *n)
{
    return n->nout > 0 && n->out[0] && n->out[0]->dims;
}

static double body_seconds(struct space *s, const struct node *n, int k, int w, int busy)
{
    struct arena *tmp = arena_new();
    struct space in = body_space(tmp, s, n, k, w);
    double seconds = 0;
    for (int i = 0; i < in.g->nodes.n; i++) {
        const struct node *each = in.g->nodes.at[i];
        const struct strategy replicated = {.in = NEWN(tmp, struct placement, each->nin + 1),
                                            .out = NEWN(tmp, struct placement, each->nout + 1)};
        bool product = each->op && (each->op->flags & OP_PRODUCT);
        if (!only_makes_sizes(each))
            seconds += cost_node_seconds(&in, each, product ? rule_of(in.g, each) : NULL, &replicated, 0, busy);
    }
    arena_free(tmp);
    return seconds;
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
        most = fmax(most, body_seconds(s, n, k, w, busy));
    return most * iterations(s, n, w) + s->options->machine.node_overhead;
}
