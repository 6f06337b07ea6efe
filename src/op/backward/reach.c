/* reach: the values to which gradients propagate. */
#include "op/backward/backward.h"
#include "op/op.h"

#include <string.h>

bool gradients_given(const struct node *n, int operand)
{
    const struct op_param *p = n->op && operand < n->op->nin ? &n->op->in[operand] : NULL;
    return (p && (p->given || p->size)) || op_is_onnx(n, "Sin") || op_is_onnx(n, "Cos");
}

bool *gradients_reach(const struct graph *g, int n, const struct value *const *root)
{
    bool *reaches = NEWN(g->arena, bool, g->values.n + 1);
    for (int i = 0; i < n; i++)
        reaches[root[i]->id] = true;
    for (int i = g->nodes.n - 1; i >= 0; i--) {
        const struct node *node = g->nodes.at[i];
        bool reached = false;
        for (int k = 0; k < node->nout; k++)
            reached |= node->out[k] && reaches[node->out[k]->id];
        for (int k = 0; reached && k < node->nin; k++)
            if (node->in[k] && !gradients_given(node, k) && !(node->op && strcmp(node->op->backward_name, "zero") == 0))
                reaches[node->in[k]->id] = true;
    }
    return reaches;
}
