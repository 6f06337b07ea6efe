/* fuse_weights: products and lookups read a weight in its stored type.
 *
 * Cast(w) to f32 of a constant w in f16 or bf16, or of an input, such as a weight in training: MatMul, Gemm and Conv that read it as their
 * weight, experts that read it as their matrices, and Gather that reads it as its table, read w itself. Their kernels widen each number
 * exactly as Cast does, so the result is the same. A Cast without other readers is removed.
 *
 * DequantizeLinear of constants that only convolutions read, as weights or biases, becomes a constant that is decoded when it is packed.
 * The filter of an integer convolution stays integer. */
#include "lower/lower.h"
#include "op/infer/infer.h"
#include "op/op.h"

#include <string.h>

static struct value *half_weight(const struct node *n)
{
    struct value *w = n->op && !*n->domain && strcmp(n->optype, "Cast") == 0 ? n->in[0] : NULL;
    bool half = w && !w->producer && (w->type.dtype == DT_F16 || w->type.dtype == DT_BF16);
    return half && n->out[0]->type.dtype == DT_F32 ? w : NULL;
}

/* The matrices of experts. */
static bool is_experts(const struct use *u)
{
    return u->node && u->node->op && u->node->op->flags & OP_ROUTES && u->index > 1 && u->node->in[u->index]->type.rank == 3;
}

static bool widens(const struct use *u)
{
    static const struct {
        const char *name;
        int operand;
    } readers[] = {{"MatMul", 1}, {"Gemm", 1}, {"Conv", 1}, {"Gather", 0}};
    for (size_t i = 0; u->node && u->node->op && !*u->node->domain && i < sizeof readers / sizeof *readers; i++)
        if (strcmp(u->node->optype, readers[i].name) == 0 && u->index == readers[i].operand)
            return true;
    return is_experts(u);
}

static bool is_filter(const struct use *u)
{
    return u->node && u->index > 0 && (op_is_onnx(u->node, "Conv") || op_is_onnx(u->node, "ConvTranspose"));
}

static bool only_filters(const struct uses *u, bool integer_convs)
{
    for (int i = 0; i < u->n; i++)
        if (!is_filter(&u->at[i]) || (integer_convs && u->at[i].index == 1 && fuse_integer_conv_is(u->at[i].node)))
            return false;
    return true;
}

static void decode_filters(struct graph *g, const struct uses *uses, bool integer_convs)
{
    int kept = 0;
    for (int i = 0; i < g->nodes.n; i++) {
        struct node *n = g->nodes.at[i];
        if (!op_is_onnx(n, "DequantizeLinear") || !only_filters(&uses[n->out[0]->id], integer_convs) || !op_evaluate_later(g, n))
            g->nodes.at[kept++] = n;
    }
    g->nodes.n = kept;
}

void fuse_weights(struct graph *g, bool integer_convs)
{
    struct arena *tmp = arena_new();
    const struct uses *uses = graph_uses(g, tmp);
    for (int i = 0; i < g->nodes.n; i++) {
        struct value *w = half_weight(g->nodes.at[i]);
        const struct uses *u = w ? &uses[g->nodes.at[i]->out[0]->id] : NULL;
        for (int k = 0; u && k < u->n; k++)
            if (widens(&u->at[k]))
                u->at[k].node->in[u->at[k].index] = w;
    }
    decode_filters(g, uses, integer_convs);
    arena_free(tmp);
    graph_prune(g);
}
