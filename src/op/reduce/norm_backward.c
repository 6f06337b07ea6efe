/* norm_backward: gradients of norms over the last dimensions: LayerNormalization, RMSNormalization and its form with sums. */
#include "op/backward/backward.h"
#include "op/infer/infer.h"
#include "op/op.h"
#include "op/table/table.h"

/* The gradient of the normalised operand; second result: addends of the scale's gradient. */
static struct node *norm_grad(struct backward *b, struct value *const *in, int results)
{
    struct graph *g = b->l.g;
    struct node *node = graph_node(g, op_find("tpc", "NormGrad"), arena_printf(g->arena, "%s/NormGrad", b->l.name), 3, in, results);
    for (int i = 0; i < results; i++)
        node_output(g, node, i, graph_value(g, node->name, NULL));
    VEC_PUSH(g->arena, &b->l.nodes, node);
    return node;
}

/* Sets gradients of scale and bias; returns the gradient of x, NULL: only results other than the first are used. The scale may
 * broadcast. */
static struct value *norm_gradient(struct backward *b, struct value *x, int axis, bool centred, int scale, int bias)
{
    const struct node *node = b->l.node;
    for (int i = 1; i < node->nout && i < 3; i++)
        if (node->out[i] && b->dy[i])
            fail("%s: no gradient passes '%s', a statistic of the norm", node_where(b->l.g, node), node->out[i]->name);
    if (!b->dy[0])
        return NULL;
    struct value *dy = lower_cast(&b->l, "wide", b->dy[0], x->type.dtype),
                 *factor = lower_cast(&b->l, "scale", node->in[scale], x->type.dtype);
    struct node *made = norm_grad(b, (struct value *[]){x, factor, dy}, back_wants(b, scale) ? 2 : 1);
    attr_set_int(made, "axis", axis);
    attr_set_int(made, "centred", centred);
    *node_attr(made, "epsilon") = *node_attr(node, "epsilon");
    op_infer(b->l.g, made);
    if (back_wants(b, scale))
        back_to(b, scale, made->out[1]);
    if (back_wants(b, bias))
        back_to(b, bias, dy);
    return made->out[0];
}

static void norm_of_operand(struct backward *b, bool centred)
{
    const struct node *node = b->l.node;
    struct value *x = lower_float(&b->l, "wide", node->in[0]);
    struct value *dx = norm_gradient(b, x, op_axis(b->l.g, node, attr_int(node, "axis"), x->type.rank), centred, 1, 2);
    if (dx)
        back_to(b, 0, dx);
}

BACK_IS(layernorm, norm_of_operand(b, true))
BACK_IS(rmsnorm, norm_of_operand(b, false))

/* The sum of up to three operands is normalised, and may be a result of its own. */
void backward_skiprmsnorm(struct backward *b)
{
    static const int addends[] = {0, 1, 3};
    const struct node *node = b->l.node;
    struct value *sum = back_binary(b, "Add", node->in[0], node->in[1]);
    if (back_operand(b, 3))
        sum = back_binary(b, "Add", sum, node->in[3]);
    struct value *dx = norm_gradient(b, lower_float(&b->l, "wide", sum), sum->type.rank - 1, false, 2, -1);
    struct value *own = node_result(node, 3) ? b->dy[3] : NULL;
    if (own)
        dx = dx ? back_binary(b, "Add", dx, lower_float(&b->l, "sum", own)) : own;
    for (size_t i = 0; i < sizeof addends / sizeof *addends; i++)
        if (dx && back_wants(b, addends[i]))
            back_to(b, addends[i], dx);
}
