/* explicit: the space of a graph with reshards as nodes, whose nodes and values are placed: the lowering of a node, a body of control flow,
 * or a whole model after the pass insert. Its plan is fixed; the space only prices it. */
#include "op/op.h"
#include "op/rule/rule.h"
#include "plan/cost/cost.h"
#include "plan/cost/work.h"
#include "plan/space/space.h"

bool explicit_is_reshard(const struct node *n)
{
    return (n->op && (n->op->flags & OP_COLLECTIVE)) || op_is_tpc(n, "Shard") || op_is_tpc(n, "Term");
}

struct space *explicit_space(struct space *model, struct graph *g, struct plan *plan, int ranks)
{
    struct space *s = NEW(model->arena, struct space);
    *s = (struct space){.arena = model->arena, .g = g, .options = model->options, .plan = plan, .ranks = ranks};
    s->weight = NEWN(s->arena, bool, g->values.n + 1);
    s->rule = NEWN(s->arena, struct rule *, g->nodes.n + 1);
    for (int i = 0; i < g->nodes.n; i++)
        s->rule[i] = explicit_is_reshard(g->nodes.at[i]) || !g->nodes.at[i]->op ? NULL : rule_of(g, g->nodes.at[i]);
    cost_evaluate_types(s);
    return s;
}

double explicit_seconds(struct space *s, int workload, int busy)
{
    double seconds = 0;
    require(workload >= 0 && workload < s->plan->workloads.n);
    for (int i = 0; i < s->g->nodes.n; i++) {
        const struct node *n = s->g->nodes.at[i];
        bool travels = op_is_tpc(n, "Dispatch") || op_is_tpc(n, "Combine");
        seconds += travels           ? routing_travel_seconds(&s->options->machine, n, &s->plan->workloads.at[workload].dims, s->ranks)
            : explicit_is_reshard(n) ? cost_reshard_seconds(s, n->in[0], n->in[0]->place, n->out[0]->place, workload)
                                     : cost_node_seconds(s, n, s->rule[i], n->strategy, workload, busy);
    }
    return seconds;
}
