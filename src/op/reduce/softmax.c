/* softmax: rows along the axis are normalised independently, so all other dimensions are free; the axis itself is split by a lowering. */
#include "op/infer/infer.h"
#include "op/lower/lower.h"
#include "op/rule/rule.h"
#include "op/table/table.h"

/* ---- over a split axis: the largest element and the sum of exponentials are reduced over the ranks ---------------------------- */

/* x minus its largest element along the axis, the exponentials of that, and their sum. */
struct weighed {
    struct value *shifted, *e, *sum;
};

static struct weighed exponentials(struct lowering *l)
{
    const struct node *node = l->node;
    struct value *x = lower_float(l, "wide", node->in[0]);
    int axis = op_axis(l->g, node, attr_int(node, "axis"), x->type.rank);
    struct value *shifted = lower_binary(l, "Sub", "shifted", x, lower_reduce(l, "ReduceMax", "max", x, axis, axis + 1));
    struct value *e = lower_unary(l, "Exp", "exp", shifted);
    return (struct weighed){shifted, e, lower_reduce(l, "ReduceSum", "sum", e, axis, axis + 1)};
}

void lower_softmax(struct lowering *l)
{
    struct weighed w = exponentials(l);
    lower_result(l, 0, lower_cast(l, "narrow", lower_binary(l, "Div", "softmax", w.e, w.sum), l->node->out[0]->type.dtype));
}

void lower_logsoftmax(struct lowering *l)
{
    struct weighed w = exponentials(l);
    struct value *y = lower_binary(l, "Sub", "logsoftmax", w.shifted, lower_unary(l, "Log", "log", w.sum));
    lower_result(l, 0, lower_cast(l, "narrow", y, l->node->out[0]->type.dtype));
}
