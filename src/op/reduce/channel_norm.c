/* channel_norm: norms with statistics per channel, dimension 1. BatchNormalization scales each channel by given statistics: (b c
 * h..)(c)(c)(c)(c) -> (b c h..). InstanceNormalization and GroupNormalization compute them over the spatial dimensions, which are never
 * split: (b c !h..), (b (g !c) !h..). */
#include "op/infer/infer.h"
#include "op/rule/rule.h"
#include "op/table/table.h"

void infer_channelnorm(struct graph *g, struct node *node)
{
    op_need_rank(g, node, 0, 2, MAX_RANK);
    const struct type *x = op_operand(g, node, 0);
    for (int i = 1; i < node->nin; i++) {
        op_need_rank(g, node, i, 1, 1);
        op_same_dim(g, node, x->dim[1], op_operand(g, node, i)->dim[0], "the channels of the operands");
    }
    op_result(g, node, 0, x->dtype, x->rank, x->dim);
}

void infer_batchnorm(struct graph *g, struct node *node)
{
    if (attr_int(node, "training_mode"))
        fail("%s: training_mode is 1, expected a model exported for inference", node_where(g, node));
    infer_channelnorm(g, node);
}

void infer_groupnorm(struct graph *g, struct node *node)
{
    infer_channelnorm(g, node);
    int64_t groups = attr_is_set(node, "num_groups") ? attr_int(node, "num_groups") : -1;
    const struct dim *channels = node->in[0]->type.dim[1], *count = dim_int(g->alg, groups);
    bool whole = groups > 0 ? dim_quotient(g->alg, channels, count) != NULL : groups == 0 && dim_equals(channels, 0);
    if (!whole && groups > 0 && channels->kind != DIM_INT)
        op_same_dim(g, node, channels, dim_mul(g->alg, count, dim_div(g->alg, channels, count)), "the channels and those of all groups");
    else if (!whole)
        fail("%s: %s channels do not form %lld groups", node_where(g, node), dim_str(g->arena, channels), (long long)groups);
}
