/* activation_backward: gradients of functions of one operand, in terms of the result if that is simpler. */
#include "op/backward/backward.h"
#include "op/table/table.h"

#include <string.h>

/* ---- powers, exponentials, circles -------------------------------------------------------------------------------------------- */

BACK_TEXT(abs, "dy * Sign(x)")
BACK_TEXT(exp, "dy * y")
BACK_TEXT(log, "dy / x")
BACK_TEXT(sqrt, "dy * 0.5 / y")
BACK_TEXT(reciprocal, "dy * -(y * y)")
BACK_TEXT(sin, "dy * Cos(x)")
BACK_TEXT(cos, "dy * -Sin(x)")
BACK_TEXT(tan, "dy * (y * y + 1)")
BACK_TEXT(sinh, "dy * Cosh(x)")
BACK_TEXT(cosh, "dy * Sinh(x)")
BACK_TEXT(asin, "dy * Reciprocal(Sqrt(1 - x * x))")
BACK_TEXT(acos, "dy * -Reciprocal(Sqrt(1 - x * x))")
BACK_TEXT(atan, "dy * Reciprocal(x * x + 1)")
BACK_TEXT(asinh, "dy * Reciprocal(Sqrt(x * x + 1))")
BACK_TEXT(acosh, "dy * Reciprocal(Sqrt(x * x - 1))")
BACK_TEXT(atanh, "dy * Reciprocal(1 - x * x)")

/* ---- activations ----------------------------------------------------------------------------------------------------------------- */

BACK_TEXT(relu, "y > 0 ? dy : 0")
BACK_TEXT(tanh, "dy * (1 - y * y)")
BACK_TEXT(sigmoid, "dy * (y * (1 - y))")
BACK_TEXT(softplus, "dy * Sigmoid(x)")
/* 2 / sqrt(pi) */
BACK_TEXT(erf, "dy * (Exp(-(x * x)) * 1.1283791670955126)")
BACK_TEXT(swish, "z = x * @alpha; s = Sigmoid(z); dy * (s * (z * (1 - s) + 1))")
BACK_TEXT(mish, "t = Tanh(Softplus(x)); slope = Sigmoid(x) * (1 - t * t); dy * (t + x * slope)")
BACK_TEXT(hardsigmoid, "And(y > 0, y < 1) ? dy * @alpha : 0")
BACK_TEXT(hardswish, "dy * (x > 3 ? 1 : x > -3 ? x * 0.33333333333333333 + 0.5 : 0)")
BACK_TEXT(elu, "dy * (x > 0 ? 1 : y + @alpha)")
BACK_TEXT(celu, "dy * (x > 0 ? 1 : Exp(x * (1 / @alpha)))")
BACK_TEXT(selu, "dy * (x > 0 ? @gamma : y + @gamma * @alpha)")
BACK_TEXT(leakyrelu, "dy * (x > 0 ? 1 : @alpha)")
BACK_TEXT(thresholdedrelu, "dy * (x > @alpha ? 1 : 0)")
BACK_TEXT(softsign, "s = Abs(x) + 1; dy * Reciprocal(s * s)")
BACK_TEXT(shrink, "Abs(x) > @lambd ? dy : 0")

/* P(x) + x p(x), of the normal distribution; or (1 + t)/2 + x/2 (1 - t t) u', of t = tanh(u) and u = k (x + c x x x), k = sqrt(2/pi). */
void backward_gelu(struct backward *b)
{
    bool tanh_form = strcmp(attr_string(b->l.node, "approximate"), "tanh") == 0;
    back_formula(b,
                 tanh_form ? "xx = x * x; t = Tanh(x * (xx * 0.044715 + 1) * 0.79788456080286536);"
                             "du = (xx * 0.134145 + 1) * 0.79788456080286536; tail = x * (1 - t * t) * du; dy * ((t + 1 + tail) * 0.5)"
                           : "share = (Erf(x * 0.70710678118654752) + 1) * 0.5; bell = Exp(x * x * -0.5);"
                             "dy * (share + x * bell * 0.39894228040143268)");
}
