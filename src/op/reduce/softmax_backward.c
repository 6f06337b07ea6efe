/* softmax_backward: gradients of Softmax and LogSoftmax. */
#include "op/backward/backward.h"
#include "op/infer/infer.h"
#include "op/op.h"
#include "op/table/table.h"

static int softmax_axis(const struct backward *b)
{
    return op_axis(b->l.g, b->l.node, attr_int(b->l.node, "axis"), b->l.node->in[0]->type.rank);
}

/* If the only reader of the probabilities is Where(IsNaN(p), 0, p), the gradient is zero where they are NaN: then they are guarded here,
 * too. */
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
