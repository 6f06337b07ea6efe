/* Gradients of functions of one operand: the result's times the slope, which is written with the result where that is simpler. */
#include "op/backward/backward.h"
#include "op/table/table.h"

#include <math.h>
#include <string.h>

static void slope(struct backward *b, struct value *by)
{
    back_to(b, 0, back_binary(b, "Mul", back_dy(b), by));
}

static struct value *operand(const struct backward *b)
{
    return back_operand(b, 0);
}

static struct value *result(const struct backward *b)
{
    return b->l.node->out[0];
}

static struct value *square(struct backward *b, struct value *x)
{
    return back_binary(b, "Mul", x, x);
}

static struct value *one_less(struct backward *b, struct value *x)
{
    return back_binary(b, "Sub", back_number(b, x, 1), x);
}

static struct value *one_more(struct backward *b, struct value *x)
{
    return back_with(b, "Add", x, 1);
}

static double parameter(const struct backward *b, const char *name)
{
    return attr_float(b->l.node, name);
}

/* The slope where x > at, and below: a number, or a value. */
static void pieces(struct backward *b, double at, double above, struct value *below)
{
    struct value *x = operand(b);
    slope(b, lower_where(&b->l, "Where", back_with(b, "Greater", x, at), back_number(b, x, above), below));
}

/* ---- powers, exponentials, circles -------------------------------------------------------------------------------------------- */

void backward_abs(struct backward *b)
{
    slope(b, back_unary(b, "Sign", operand(b)));
}

void backward_exp(struct backward *b)
{
    slope(b, result(b));
}

void backward_log(struct backward *b)
{
    back_to(b, 0, back_binary(b, "Div", back_dy(b), operand(b)));
}

void backward_sqrt(struct backward *b)
{
    back_to(b, 0, back_binary(b, "Div", back_with(b, "Mul", back_dy(b), 0.5), result(b)));
}

void backward_reciprocal(struct backward *b)
{
    slope(b, back_unary(b, "Neg", square(b, result(b))));
}

void backward_sin(struct backward *b)
{
    slope(b, back_unary(b, "Cos", operand(b)));
}

void backward_cos(struct backward *b)
{
    slope(b, back_unary(b, "Neg", back_unary(b, "Sin", operand(b))));
}

void backward_tan(struct backward *b)
{
    slope(b, one_more(b, square(b, result(b))));
}

void backward_sinh(struct backward *b)
{
    slope(b, back_unary(b, "Cosh", operand(b)));
}

void backward_cosh(struct backward *b)
{
    slope(b, back_unary(b, "Sinh", operand(b)));
}

/* 1 / sqrt(1 - x x), or of the other signs. */
static struct value *inverse_root(struct backward *b, struct value *x)
{
    return back_unary(b, "Reciprocal", back_unary(b, "Sqrt", x));
}

void backward_asin(struct backward *b)
{
    slope(b, inverse_root(b, one_less(b, square(b, operand(b)))));
}

void backward_acos(struct backward *b)
{
    slope(b, back_unary(b, "Neg", inverse_root(b, one_less(b, square(b, operand(b))))));
}

void backward_atan(struct backward *b)
{
    slope(b, back_unary(b, "Reciprocal", one_more(b, square(b, operand(b)))));
}

void backward_asinh(struct backward *b)
{
    slope(b, inverse_root(b, one_more(b, square(b, operand(b)))));
}

void backward_acosh(struct backward *b)
{
    slope(b, inverse_root(b, back_with(b, "Sub", square(b, operand(b)), 1)));
}

void backward_atanh(struct backward *b)
{
    slope(b, back_unary(b, "Reciprocal", one_less(b, square(b, operand(b)))));
}

/* ---- activations ----------------------------------------------------------------------------------------------------------------- */

void backward_relu(struct backward *b)
{
    back_to(b, 0, back_chosen(b, back_with(b, "Greater", result(b), 0), back_dy(b)));
}

void backward_tanh(struct backward *b)
{
    slope(b, one_less(b, square(b, result(b))));
}

void backward_sigmoid(struct backward *b)
{
    slope(b, back_binary(b, "Mul", result(b), one_less(b, result(b))));
}

void backward_softplus(struct backward *b)
{
    slope(b, back_unary(b, "Sigmoid", operand(b)));
}

void backward_erf(struct backward *b)
{
    struct value *bell = back_unary(b, "Exp", back_unary(b, "Neg", square(b, operand(b))));
    slope(b, back_with(b, "Mul", bell, 2 / sqrt(M_PI)));
}

/* P(x) + x p(x), of the normal distribution. */
static struct value *slope_of_gelu(struct backward *b, struct value *x)
{
    struct value *share = back_with(b, "Mul", one_more(b, back_unary(b, "Erf", back_with(b, "Mul", x, sqrt(0.5)))), 0.5);
    struct value *bell = back_unary(b, "Exp", back_with(b, "Mul", square(b, x), -0.5));
    return back_binary(b, "Add", share, back_with(b, "Mul", back_binary(b, "Mul", x, bell), 1 / sqrt(2 * M_PI)));
}

/* (1 + t)/2 + x/2 (1 - t t) u', of t = tanh(u) and u = k (x + c x x x). */
static struct value *slope_of_gelu_tanh(struct backward *b, struct value *x)
{
    const double k = sqrt(2 / M_PI), c = 0.044715;
    struct value *xx = square(b, x), *u = back_binary(b, "Mul", x, one_more(b, back_with(b, "Mul", xx, c)));
    struct value *t = back_unary(b, "Tanh", back_with(b, "Mul", u, k));
    struct value *inner = back_with(b, "Mul", one_more(b, back_with(b, "Mul", xx, 3 * c)), k);
    struct value *tail = back_binary(b, "Mul", back_binary(b, "Mul", x, one_less(b, square(b, t))), inner);
    return back_with(b, "Mul", back_binary(b, "Add", one_more(b, t), tail), 0.5);
}

void backward_gelu(struct backward *b)
{
    bool tanh_form = strcmp(attr_string(b->l.node, "approximate"), "tanh") == 0;
    slope(b, tanh_form ? slope_of_gelu_tanh(b, operand(b)) : slope_of_gelu(b, operand(b)));
}

/* s (1 + a x (1 - s)), of s = sigmoid(a x). */
void backward_swish(struct backward *b)
{
    struct value *x = back_with(b, "Mul", operand(b), parameter(b, "alpha")), *s = back_unary(b, "Sigmoid", x);
    slope(b, back_binary(b, "Mul", s, one_more(b, back_binary(b, "Mul", x, one_less(b, s)))));
}

/* t + x s (1 - t t), of t = tanh(softplus(x)) and s = sigmoid(x). */
void backward_mish(struct backward *b)
{
    struct value *x = operand(b), *t = back_unary(b, "Tanh", back_unary(b, "Softplus", x));
    struct value *tail = back_binary(b, "Mul", back_unary(b, "Sigmoid", x), one_less(b, square(b, t)));
    slope(b, back_binary(b, "Add", t, back_binary(b, "Mul", x, tail)));
}

void backward_hardsigmoid(struct backward *b)
{
    struct value *y = result(b), *inside = back_binary(b, "And", back_with(b, "Greater", y, 0), back_with(b, "Less", y, 1));
    back_to(b, 0, back_chosen(b, inside, back_with(b, "Mul", back_dy(b), parameter(b, "alpha"))));
}

void backward_hardswish(struct backward *b)
{
    struct value *x = operand(b), *ramp = back_with(b, "Add", back_with(b, "Mul", x, 1.0 / 3), 0.5);
    pieces(b, 3, 1, back_chosen(b, back_with(b, "Greater", x, -3), ramp));
}

void backward_elu(struct backward *b)
{
    pieces(b, 0, 1, back_with(b, "Add", result(b), parameter(b, "alpha")));
}

void backward_celu(struct backward *b)
{
    pieces(b, 0, 1, back_unary(b, "Exp", back_with(b, "Mul", operand(b), 1 / parameter(b, "alpha"))));
}

void backward_selu(struct backward *b)
{
    double gamma = parameter(b, "gamma");
    pieces(b, 0, gamma, back_with(b, "Add", result(b), gamma * parameter(b, "alpha")));
}

void backward_leakyrelu(struct backward *b)
{
    pieces(b, 0, 1, back_number(b, operand(b), parameter(b, "alpha")));
}

void backward_thresholdedrelu(struct backward *b)
{
    pieces(b, parameter(b, "alpha"), 1, back_number(b, operand(b), 0));
}

void backward_softsign(struct backward *b)
{
    slope(b, back_unary(b, "Reciprocal", square(b, one_more(b, back_unary(b, "Abs", operand(b))))));
}

void backward_shrink(struct backward *b)
{
    back_to(b, 0, back_chosen(b, back_with(b, "Greater", back_unary(b, "Abs", operand(b)), parameter(b, "lambd")), back_dy(b)));
}
