/* partial_sums: which nodes of a rank file make partial sums, and how the summed dimension is split. tpc-run adds such values in the order
 * of their indices, and under --deterministic completes a sum where it is made. Nodes that only forward partial sums have no note. */
#include "ir/rank_meta.h"
#include "op/op.h"
#include "op/rule/rule.h"
#include "plan/apply/apply.h"

#include <string.h>

static bool is_partial_sum(const struct value *v)
{
    return v && v->placed && v->place.kind == PLACE_P && v->place.op == RED_SUM;
}

/* The split of the factor that the node sums over, from the first operand; NULL: it sums over none. */
static const struct split *summed(struct graph *g, const struct node *n)
{
    const struct value *x = node_operand(n, 0);
    const struct rule *r = x && x->placed && x->place.kind == PLACE_S ? rule_of(g, n) : NULL;
    const struct rule_dim *d = r ? &r->in[0].dim[x->place.dim] : NULL;
    for (int i = 0; d && d->n == 1 && i < d->part[0].n; i++)
        if (r->factor[d->part[0].factor[i]].red == RED_SUM)
            return split_divide(g->alg, x->place.split, rule_sizes(g, r, d->part[0].factor, 0, i),
                                rule_sizes(g, r, d->part[0].factor, i + 1, d->part[0].n));
    return NULL;
}

/* Whether the node's sharded dimension becomes one sum per rank. Only the lowering of CumSum makes such a node. */
static bool sums_apart(const struct node *n)
{
    return n->on_ranks && op_is_onnx(n, "ReduceSum") && dtype_is_float(n->in[0]->type.dtype);
}

/* The weight of a mixture whose split it sums over: the width of the experts or the experts themselves. */
static const struct value *split_weight(const struct node *n)
{
    for (int i = 1; n->op && n->op->flags & OP_ROUTES && i < n->nin; i++)
        if (n->in[i] && n->in[i]->placed && n->in[i]->place.kind == PLACE_S)
            return n->in[i];
    return NULL;
}

static struct rank_sum partial_sum_of(struct graph *g, const struct node *n)
{
    if (n->nout == 0 || !is_partial_sum(n->out[0]))
        return (struct rank_sum){.kind = sums_apart(n) ? RANK_SUM_EACH : RANK_SUM_NONE};
    const struct split *s = summed(g, n);
    if (s)
        return (struct rank_sum){RANK_SUM_SPLIT, n->in[0]->place.dim, s};
    const struct value *weight = split_weight(n);
    if (weight)
        return (struct rank_sum){RANK_SUM_SPLIT, weight->place.dim, weight->place.split};
    for (int i = 0; i < n->nin; i++)
        if (is_partial_sum(n->in[i]))
            return (struct rank_sum){.kind = RANK_SUM_NONE};
    return (struct rank_sum){.kind = op_is_tpc(n, "Term") ? RANK_SUM_TERM : RANK_SUM_ONCE};
}

void plan_note_partial_sums(struct graph *to, struct graph *global)
{
    int count = 0;
    for (int i = 0; i < global->nodes.n; i++) {
        const struct node *n = global->nodes.at[i];
        const struct rank_sum sum = partial_sum_of(global, n);
        if (sum.kind == RANK_SUM_NONE)
            continue;
        require(sum.kind != RANK_SUM_SPLIT || sum.split->ranks == global->ranks);
        rank_meta_set_sum(to, n->name, &sum);
        count++;
    }
    rank_meta_set_sum_count(to, count);
}
