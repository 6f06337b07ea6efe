/* Gradients of reductions, running sums, softmax and norms. */
#include "op/backward/backward.h"
#include "op/infer/infer.h"
#include "op/op.h"
#include "op/table/table.h"

#include <string.h>

/* ---- reductions ----------------------------------------------------------------------------------------------------------------- */

/* Which dimensions of the operand are reduced: in canonical form attribute axes tells, without one all are. */
static void reduced_axes(const struct backward *b, bool *reduced)
{
    const struct node *node = b->l.node;
    int rank = node->in[0]->type.rank;
    const struct dim *const *axes = NULL;
    int n = op_size_operand(b->l.g, node, 1, "axes", &axes);
    for (int d = 0; d < rank; d++)
        reduced[d] = n <= 0 && attr_int(node, "noop_with_empty_axes") == 0;
    for (int i = 0; i < n; i++)
        reduced[op_axis(b->l.g, node, axes[i]->k, rank)] = true;
}

/* A result of the reduction with ones for the dimensions that are gone. */
static struct value *as_kept(struct backward *b, struct value *y)
{
    bool reduced[MAX_RANK];
    struct type type = b->l.node->in[0]->type;
    reduced_axes(b, reduced);
    for (int d = 0; d < type.rank; d++)
        if (reduced[d])
            type.dim[d] = dim_int(b->l.g->alg, 1);
    return back_reshape(b, y, &type);
}

void backward_reducesum(struct backward *b)
{
    back_to(b, 0, as_kept(b, back_dy(b)));
}

void backward_reducemean(struct backward *b)
{
    bool reduced[MAX_RANK];
    const struct type *type = &b->l.node->in[0]->type;
    const struct dim *count = dim_int(b->l.g->alg, 1);
    reduced_axes(b, reduced);
    for (int d = 0; d < type->rank; d++)
        if (reduced[d])
            count = dim_mul(b->l.g->alg, count, type->dim[d]);
    struct value *n = lower_cast(&b->l, "count.narrow", lower_size(&b->l, "count", count, DT_F32), type->dtype);
    back_to(b, 0, back_binary(b, "Div", as_kept(b, back_dy(b)), n));
}

/* In equal parts to all that are the largest, or the least. */
void backward_reduceextreme(struct backward *b)
{
    bool reduced[MAX_RANK];
    struct value *x = back_operand(b, 0), *is = back_binary(b, "Equal", x, as_kept(b, b->l.node->out[0]));
    struct value *count = lower_cast(&b->l, "count", is, x->type.dtype);
    reduced_axes(b, reduced);
    for (int d = 0; d < x->type.rank; d++)
        if (reduced[d])
            count = back_sum(b, count, d, d + 1, true);
    struct value *each = back_expand(b, back_binary(b, "Div", as_kept(b, back_dy(b)), count), &x->type);
    back_to(b, 0, back_chosen(b, is, each));
}

void backward_cumsum(struct backward *b)
{
    const struct node *node = b->l.node;
    struct value *dy = back_dy(b);
    struct node *sum = back_node(b, "CumSum", 1, &dy);
    const struct dim **axis;
    int n = attr_dims(node, "axis", &axis);
    attr_set_dims(b->l.g, sum, "axis", n, axis);
    attr_set_int(sum, "exclusive", attr_int(node, "exclusive"));
    attr_set_int(sum, "reverse", !attr_int(node, "reverse"));
    back_to(b, 0, back_infer(b, sum));
}

/* ---- softmax -------------------------------------------------------------------------------------------------------------------- */

static int softmax_axis(const struct backward *b)
{
    return op_axis(b->l.g, b->l.node, attr_int(b->l.node, "axis"), b->l.node->in[0]->type.rank);
}

/* Where all that reads the probabilities is Where(IsNaN(p), 0, p), the gradient is zero where they are NaN: so are they here. */
static struct value *guarded(struct backward *b)
{
    struct value *y = b->l.node->out[0];
    const struct node *guard = back_dy(b)->producer;
    bool guards = op_is_onnx(guard, "Where") && op_is_onnx(guard->in[0]->producer, "IsNaN") && guard->in[0]->producer->in[0] == y;
    return guards ? lower_where(&b->l, "Where", guard->in[0], back_number(b, y, 0), y) : y;
}

/* y (g - sum(g y)) */
void backward_softmax(struct backward *b)
{
    struct value *y = guarded(b), *weighed = back_binary(b, "Mul", back_dy(b), y);
    int axis = softmax_axis(b);
    struct value *sum = back_sum(b, weighed, axis, axis + 1, true);
    back_to(b, 0, back_binary(b, "Sub", weighed, back_binary(b, "Mul", y, sum)));
}

/* g - softmax sum(g) */
void backward_logsoftmax(struct backward *b)
{
    int axis = softmax_axis(b);
    struct value *sum = back_sum(b, back_dy(b), axis, axis + 1, true);
    back_to(b, 0, back_binary(b, "Sub", back_dy(b), back_binary(b, "Mul", back_unary(b, "Exp", b->l.node->out[0]), sum)));
}

/* ---- norms ---------------------------------------------------------------------------------------------------------------------- */

/* The gradient of the normalised operand; a second result: addends of the scale's gradient. */
static struct node *norm_grad(struct backward *b, struct value *const *in, int results)
{
    static const struct type untyped = {.dtype = DT_NONE};
    struct graph *g = b->l.g;
    struct node *node = graph_node(g, op_find("tpc", "NormGrad"), arena_printf(g->arena, "%s/NormGrad", b->l.name), 3, in, results);
    for (int i = 0; i < results; i++)
        node_output(g, node, i, graph_value(g, node->name, &untyped));
    VEC_PUSH(g->arena, &b->l.nodes, node);
    return node;
}

/* Gradients of scale and bias, by their operands; what x contributes is returned, NULL: only results beside the first one are used. The
 * scale may broadcast. */
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

void backward_layernorm(struct backward *b)
{
    norm_of_operand(b, true);
}

void backward_rmsnorm(struct backward *b)
{
    norm_of_operand(b, false);
}

/* The sum of up to three operands is normalised, and may be a result of its own. */
void backward_skiprmsnorm(struct backward *b)
{
    static const int terms[] = {0, 1, 3};
    const struct node *node = b->l.node;
    struct value *sum = back_binary(b, "Add", node->in[0], node->in[1]);
    if (back_operand(b, 3))
        sum = back_binary(b, "Add", sum, node->in[3]);
    struct value *dx = norm_gradient(b, lower_float(&b->l, "wide", sum), sum->type.rank - 1, false, 2, -1);
    struct value *own = node->nout > 3 && node->out[3] ? b->dy[3] : NULL;
    if (own)
        dx = dx ? back_binary(b, "Add", dx, lower_float(&b->l, "sum", own)) : own;
    for (size_t i = 0; i < sizeof terms / sizeof *terms; i++)
        if (dx && back_wants(b, terms[i]))
            back_to(b, terms[i], dx);
}
