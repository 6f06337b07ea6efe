/* causal_conv: CausalConvWithState: (b c !t)(c !o !k)(c)(b c !p) -> (b c !t)(b c !q), a depthwise convolution over a sequence and a state
 * of its last positions. */
#include "op/infer/infer.h"
#include "op/rule/rule.h"
#include "op/table/table.h"

#include <string.h>

static void check_activation(const struct graph *g, const struct node *node)
{
    const char *name = attr_string(node, "activation");
    if (strcmp(name, "none") != 0 && strcmp(name, "silu") != 0 && strcmp(name, "swish") != 0)
        fail("%s: attribute 'activation' is '%s', expected none, silu or swish", node_where(g, node), name);
}

void infer_causalconv(struct graph *g, struct node *node)
{
    op_need_rank(g, node, 0, 3, 3);
    op_need_rank(g, node, 1, 3, 3);
    const struct type *x = op_operand(g, node, 0), *w = op_operand(g, node, 1);
    check_activation(g, node);
    op_same_dim(g, node, x->dim[1], w->dim[0], "the channels of input and weight");
    op_same_dim(g, node, w->dim[1], dim_int(g->alg, 1), "the channels of a group and 1");
    const struct dim *state[3] = {x->dim[0], x->dim[1], dim_sub(g->alg, w->dim[2], dim_int(g->alg, 1))};
    for (int i = 1; i < node->nin; i++)
        if (node_operand(node, i))
            op_same_dtype(g, node, 0, i);
    if (node_operand(node, 2)) {
        op_need_rank(g, node, 2, 1, 1);
        op_same_dim(g, node, x->dim[1], op_operand(g, node, 2)->dim[0], "the channels of input and bias");
    }
    if (node_operand(node, 3)) {
        op_need_rank(g, node, 3, 3, 3);
        for (int d = 0; d < 3; d++)
            op_same_dim(g, node, state[d], op_operand(g, node, 3)->dim[d], "the dimensions of past_state");
    }
    op_result(g, node, 0, x->dtype, 3, x->dim);
    op_result(g, node, 1, x->dtype, 3, state);
}
