/* elementwise_backward: gradients of elementwise arithmetic. A broadcast operand gets the sum (back_to). */
#include "op/backward/backward.h"
#include "op/infer/infer.h"
#include "op/table/table.h"

#include <math.h>

void backward_add(struct backward *b)
{
    for (int i = 0; i < b->l.node->nin; i++)
        back_to(b, i, back_dy(b));
}

BACK_TEXT(sub, "dy | -dy")
BACK_TEXT(neg, "-dy")
BACK_TEXT(mul, "dy * z | dy * x")
BACK_TEXT(div, "part = dy / z; part | -(part * y)")
/* The remainder of a truncated division is a - n b with an integer n. */
BACK_TEXT(mod, "dy | -(dy * Round((x - y) / z))")

/* ---- powers ------------------------------------------------------------------------------------------------------------------ */

/* n x^(n-1); zero if n is 0, for any x. */
static struct value *slope_of_power(struct backward *b, struct value *x, struct value *exponent)
{
    double n;
    if (op_constant_number(exponent, &n)) {
        if (n == 0)
            return back_with(b, "Mul", x, 0);
        struct value *rest = n == 2 ? x : n == 3 ? back_binary(b, "Mul", x, x) : back_with(b, "Pow", x, n - 1);
        return back_with(b, "Mul", rest, n);
    }
    struct value *wide = lower_cast(&b->l, "exponent", exponent, x->type.dtype);
    struct value *slope = back_binary(b, "Mul", wide, back_binary(b, "Pow", x, back_with(b, "Sub", wide, 1)));
    return back_chosen(b, back_unary(b, "Not", back_with(b, "Equal", wide, 0)), slope);
}

void backward_pow(struct backward *b)
{
    struct value *x = back_operand(b, 0), *y = b->l.node->out[0];
    if (back_wants(b, 0))
        back_to(b, 0, back_binary(b, "Mul", back_dy(b), slope_of_power(b, x, back_operand(b, 1))));
    if (!back_wants(b, 1))
        return;
    struct value *log = back_chosen(b, back_with(b, "Greater", x, 0), back_unary(b, "Log", x));
    back_to(b, 1, back_binary(b, "Mul", back_dy(b), back_binary(b, "Mul", y, log)));
}

/* ---- choices ----------------------------------------------------------------------------------------------------------------- */

/* In equal parts to the operands that equal the result. */
static void to_equals(struct backward *b)
{
    const struct node *node = b->l.node;
    struct value *y = node->out[0], *count = NULL;
    for (int i = 0; i < node->nin; i++) {
        struct value *is = lower_cast(&b->l, "is", back_binary(b, "Equal", node->in[i], y), y->type.dtype);
        count = count ? back_binary(b, "Add", count, is) : is;
    }
    struct value *each = back_binary(b, "Div", back_dy(b), count);
    for (int i = 0; i < node->nin; i++)
        if (back_wants(b, i))
            back_to(b, i, back_chosen(b, back_binary(b, "Equal", node->in[i], y), each));
}

void backward_extreme(struct backward *b)
{
    to_equals(b);
}

void backward_where(struct backward *b)
{
    struct value *condition = back_operand(b, 0);
    if (back_wants(b, 1))
        back_to(b, 1, back_chosen(b, condition, back_dy(b)));
    if (back_wants(b, 2))
        back_to(b, 2, lower_where(&b->l, "Where", condition, back_number(b, back_dy(b), 0), back_dy(b)));
}

/* The bounds belong to the inside. */
void backward_clip(struct backward *b)
{
    static const char *const outside[] = {NULL, "Less", "Greater"};
    struct value *x = back_operand(b, 0), *inside = back_dy(b);
    for (int i = 1; i <= 2; i++) {
        if (!back_operand(b, i))
            continue;
        struct value *out = back_binary(b, outside[i], x, back_operand(b, i));
        inside = back_chosen(b, back_unary(b, "Not", out), inside);
        if (back_wants(b, i))
            back_to(b, i, back_chosen(b, out, back_dy(b)));
    }
    back_to(b, 0, inside);
}

void backward_prelu(struct backward *b)
{
    struct value *x = back_operand(b, 0), *below = back_with(b, "Less", x, 0), *dy = back_dy(b);
    back_to(b, 0, lower_where(&b->l, "Where", below, back_binary(b, "Mul", dy, back_operand(b, 1)), dy));
    if (back_wants(b, 1))
        back_to(b, 1, back_chosen(b, below, back_binary(b, "Mul", dy, x)));
}

/* Rounding to other floats is treated as the identity. */
BACK_TEXT(cast, "dy")
