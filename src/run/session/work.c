/* work: the work of a step, from the sizes of its operands and results: operations of products, two per multiply-add, and bytes. */
#include "op/op.h"
#include "run/session/session.h"

#include <string.h>

static double elements(const struct tensor *t)
{
    return (double)tensor_elements(t);
}

/* Both products, with all keys: a kernel may skip masked ones. */
static double fused_attention(const struct graph *g, const struct session_step *step)
{
    const int64_t *first;
    require(attr_ints(g, step->node, "rows_first", &first) == 4);
    return 2 * (double)step->in[1].dim[first[1] ? 1 : 2] * (elements(&step->in[0]) + elements(&step->out[0]));
}

/* Keys include past ones if the keys are a result. */
static double attention(const struct session_step *step)
{
    const struct tensor *keys = step->node->nout > 1 && step->out[1].rank == 4 ? &step->out[1] : &step->in[1];
    return keys->rank < 2 ? 0 : 4 * elements(&step->out[0]) * (double)keys->dim[keys->rank - 2];
}

/* Every filter tap applies to every element of the result; for a transpose, of the operand. */
static double convolution(const struct session_step *step)
{
    bool transposed = op_is_onnx(step->node, "ConvTranspose") || op_is_tpc(step->node, "ChannelsLastConvTranspose");
    const struct tensor *w = &step->in[1], *at = &(transposed ? step->in : step->out)[0];
    return w->rank && w->dim[0] ? 2 * elements(at) * elements(w) / (double)w->dim[0] : 0;
}

static double product(const struct session_step *step)
{
    const struct tensor *a = &step->in[0];
    bool turned = op_is_onnx(step->node, "Gemm") && attr_int(step->node, "transA");
    return a->rank ? 2 * elements(&step->out[0]) * (double)a->dim[turned ? 0 : a->rank - 1] : 0;
}

double work_operations(const struct session *s, const struct session_step *step)
{
    const struct node *n = step->node;
    unsigned flags = n->op->flags;
    if (op_is_tpc(n, "FusedAttention"))
        return fused_attention(s->graph, step);
    if (!(flags & OP_PRODUCT) || (flags & OP_ROUTES) || !n->out[0])
        return 0;
    if (flags & OP_RECURS)
        return 2 * (double)(step->in[0].dim[0] * step->in[0].dim[1]) * (elements(&step->in[1]) + elements(&step->in[2]));
    return flags & OP_APPENDS ? attention(step) : attr_find(n, "kernel_shape") ? convolution(step) : product(step);
}

double work_bytes(const struct session_step *step)
{
    const struct node *n = step->node;
    unsigned flags = n->op->flags;
    bool lookup = flags & OP_SEEDS && !(flags & OP_PRODUCT); /* reads rows, not the whole table */
    double bytes = 0;
    if (flags & (OP_VIEW | OP_IN_PLACE) || (n->out[0] && tensor_elements(&step->out[0]) == 0))
        return 0;
    for (int k = 0; k < n->nin; k++)
        if (n->in[k] && !(lookup && k == 0))
            bytes += (double)tensor_bytes(&step->in[k]);
    for (int k = 0; k < n->nout; k++)
        if (n->out[k])
            bytes += (double)tensor_bytes(&step->out[k]) * (lookup ? 2 : 1);
    return bytes;
}
