/* stage_addends: values that are only added to gradients of weights, such as the head's contribution to the gradient of a tied
 * embedding. */
#include "op/op.h"
#include "plan/stages/stages.h"

static bool is_gradient(const struct graph *g, const struct value *v)
{
    int output = graph_output_number(g, v);
    for (int i = 0; i < g->trained.n; i++)
        if (output >= 0 && g->trained.at[i].output == output)
            return true;
    return false;
}

static bool keeps_sums(const struct node *n, const struct value *operand)
{
    if (op_is_onnx(n, "Add"))
        return n->in[0] != n->in[1] && type_eq(&operand->type, &n->out[0]->type);
    return op_is_onnx(n, "Identity") || op_is_onnx(n, "Transpose") || op_is_onnx(n, "Reshape");
}

const bool *stage_addends(struct arena *a, const struct graph *g)
{
    const struct uses *uses = graph_uses(g, a);
    bool *is = NEWN(a, bool, g->values.n + 1);
    for (int i = g->nodes.n - 1; i >= 0; i--) {
        const struct node *n = g->nodes.at[i];
        for (int k = 0; k < n->nout; k++) {
            const struct value *v = n->out[k];
            if (!v || v->type.dtype != DT_F32)
                continue;
            bool gradient = is_gradient(g, v);
            is[v->id] = gradient || (uses[v->id].n > 0 && graph_output_number(g, v) < 0);
            for (int u = 0; u < uses[v->id].n; u++) {
                const struct node *reader = uses[v->id].at[u].node;
                is[v->id] = is[v->id] && (reader ? keeps_sums(reader, v) && is[reader->out[0]->id] : gradient);
            }
        }
    }
    return is;
}
