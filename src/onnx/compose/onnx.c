/* Compositions for ops of the standard. */
#include "onnx/compose/compose.h"

#include <string.h>

/* ---- reductions ---- */

static char *reduced(struct composer *c, const char *op, char *x, bool keep)
{
    char *in[2] = {x, compose_optional(c, 1)};
    Onnx__AttributeProto *attr[2] = {compose_int(c, "keepdims", keep),
                                     compose_int(c, "noop_with_empty_axes", compose_int_of(c->node, "noop_with_empty_axes", 0))};
    return compose_node_of(c, op, in[1] ? 2 : 1, in, 2, attr, 1, NULL);
}

static bool keeps(const struct composer *c)
{
    return compose_int_of(c->node, "keepdims", 1) != 0;
}

static void reduce_l1(struct composer *c)
{
    c->node->input[0] = compose_op(c, "Abs", compose_input(c, 0), NULL);
    compose_rename(c, "ReduceSum");
}

static void reduce_sum_square(struct composer *c)
{
    c->node->input[0] = compose_op(c, "Mul", compose_input(c, 0), compose_input(c, 0));
    compose_rename(c, "ReduceSum");
}

static void reduce_l2(struct composer *c)
{
    char *sum = reduced(c, "ReduceSum", compose_op(c, "Mul", compose_input(c, 0), compose_input(c, 0)), keeps(c));
    compose_become(c, "Sqrt", 1, &sum);
}

static void reduce_log_sum(struct composer *c)
{
    char *sum = reduced(c, "ReduceSum", compose_input(c, 0), keeps(c));
    compose_become(c, "Log", 1, &sum);
}

/* The largest element along the axes, or 0 where it is infinite: exp(x - shift) is 0, 1 .. or inf, and never that of inf - inf. */
static char *finite_shift(struct composer *c, char *x)
{
    char *max = reduced(c, "ReduceMax", x, true);
    char *choice[3] = {compose_op(c, "IsInf", max, NULL), compose_number_like(c, 0, max), max};
    return compose_node_of(c, "Where", 3, choice, 0, NULL, 1, NULL);
}

/* shift + log(sum(exp(x - shift))) */
static void reduce_log_sum_exp(struct composer *c)
{
    char *x = compose_input(c, 0), *axes = compose_optional(c, 1), *shift = finite_shift(c, x);
    char *sum = reduced(c, "ReduceSum", compose_op(c, "Exp", compose_op(c, "Sub", x, shift), NULL), true);
    char *both[2] = {compose_op(c, "Log", sum, NULL), shift};
    if (keeps(c)) {
        compose_become(c, "Add", 2, both);
        return;
    }
    char *in[2] = {compose_op(c, "Add", both[0], both[1]), axes};
    compose_become(c, "Squeeze", axes ? 2 : 1, in);
}

static void mean(struct composer *c)
{
    char *first = compose_input(c, 0), *sum = compose_node_of(c, "Sum", c->node->n_input, c->node->input, 0, NULL, 1, NULL);
    compose_become(c, "Div", 2, (char *[]){sum, compose_number_like(c, (double)c->node->n_input, first)});
}

/* x / norm, and 0 where the norm is. */
static void lp_normalization(struct composer *c)
{
    int64_t axis = compose_int_of(c->node, "axis", -1), p = compose_int_of(c->node, "p", 2);
    char *axes = name_scope_ints(c->im, c->scope, "axis", 1, &axis), *x = compose_input(c, 0);
    if (p != 1 && p != 2)
        return;
    char *norm = compose_op(c, "ReduceSum", p == 1 ? compose_op(c, "Abs", x, NULL) : compose_op(c, "Mul", x, x), axes);
    if (p == 2)
        norm = compose_op(c, "Sqrt", norm, NULL);
    char *choice[3] = {compose_cast(c, norm, ONNX__TENSOR_PROTO__DATA_TYPE__BOOL), norm, compose_number_like(c, 1, norm)};
    compose_become(c, "Div", 2, (char *[]){x, compose_node_of(c, "Where", 3, choice, 0, NULL, 1, NULL)});
}

/* d / (sqrt(mean(d d)) + 1e-9) with d = x - mean(x) */
static void mean_variance_normalization(struct composer *c)
{
    static const int64_t usual[3] = {0, 2, 3};
    const Onnx__AttributeProto *given = proto_attribute(c->node, "axes");
    char *axes = name_scope_ints(c->im, c->scope, "axes", given ? given->n_ints : 3, given ? given->ints : usual), *x = compose_input(c, 0);
    char *d = compose_op(c, "Sub", x, compose_op(c, "ReduceMean", x, axes));
    char *spread = compose_op(c, "Sqrt", compose_op(c, "ReduceMean", compose_op(c, "Mul", d, d), axes), NULL);
    compose_become(c, "Div", 2, (char *[]){d, compose_op(c, "Add", spread, compose_number_like(c, 1e-9, spread))});
}

/* 0, 1, .. below the size of dimension d of x. */
static char *counted(struct composer *c, char *x, int64_t d)
{
    Onnx__AttributeProto *which[2] = {compose_int(c, "start", d), compose_int(c, "end", d + 1)};
    int64_t zero = 0, one = 1;
    char *size = compose_node_of(c, "Shape", 1, &x, 2, which, 1, NULL), *axis = name_scope_ints(c->im, c->scope, "axis", 1, &zero);
    char *start = compose_op(c, "Squeeze", name_scope_ints(c->im, c->scope, "start", 1, &zero), axis);
    char *step = compose_op(c, "Squeeze", name_scope_ints(c->im, c->scope, "step", 1, &one), axis);
    return compose_node_of(c, "Range", 3, (char *[]){start, compose_op(c, "Squeeze", size, axis), step}, 0, NULL, 1, NULL);
}

/* Row + k = column, as the number 1. */
static void eye_like(struct composer *c)
{
    int64_t k = compose_int_of(c->node, "k", 0), one = 1, dtype = compose_int_of(c->node, "dtype", 0);
    char *x = compose_input(c, 0), *row = compose_op(c, "Unsqueeze", counted(c, x, 0), name_scope_ints(c->im, c->scope, "axis", 1, &one));
    char *same = compose_op(c, "Equal", compose_op(c, "Add", row, name_scope_ints(c->im, c->scope, "k", 1, &k)), counted(c, x, 1));
    Onnx__AttributeProto *to = compose_int(c, "to", dtype);
    if (dtype)
        compose_become_with(c, "Cast", 1, &same, 1, &to);
    else
        compose_become(c, "CastLike", 2, (char *[]){same, x});
}

/* ---- windows: a - b cos x + c cos 2x ---- */

static char *window_number(struct composer *c, double number)
{
    return name_scope_scalar(c->im, c->scope, "number", number);
}

static char *window_range(struct composer *c, char *size)
{
    int64_t zero = 0, one = 1;
    Onnx__AttributeProto *to = compose_int(c, "to", ONNX__TENSOR_PROTO__DATA_TYPE__INT64);
    char *scalar = compose_op(c, "Squeeze", compose_node_of(c, "Cast", 1, &size, 1, &to, 1, NULL), NULL);
    char *bounds[3] = {compose_op(c, "Squeeze", name_scope_ints(c->im, c->scope, "start", 1, &zero), NULL), scalar,
                       compose_op(c, "Squeeze", name_scope_ints(c->im, c->scope, "delta", 1, &one), NULL)};
    return compose_cast(c, compose_node_of(c, "Range", 3, bounds, 0, NULL, 1, NULL), ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT);
}

static void window(struct composer *c, double a, double b, double twice)
{
    const double turn = 2 * 3.14159265358979323846;
    char *size = compose_input(c, 0), *length = compose_cast(c, size, ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT);
    if (!compose_int_of(c->node, "periodic", 1))
        length = compose_op(c, "Sub", length, window_number(c, 1));
    char *x = compose_op(c, "Div", compose_op(c, "Mul", window_range(c, size), window_number(c, turn)), length);
    char *y = compose_op(c, "Sub", window_number(c, a), compose_op(c, "Mul", compose_op(c, "Cos", x, NULL), window_number(c, b)));
    if (twice > 0) {
        char *more = compose_op(c, "Cos", compose_op(c, "Mul", x, window_number(c, 2)), NULL);
        y = compose_op(c, "Add", y, compose_op(c, "Mul", more, window_number(c, twice)));
    }
    Onnx__AttributeProto *to = compose_int(c, "to", compose_int_of(c->node, "output_datatype", ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT));
    compose_become_with(c, "Cast", 1, &y, 1, &to);
}

static void hann_window(struct composer *c)
{
    window(c, 0.5, 0.5, 0);
}

static void hamming_window(struct composer *c)
{
    window(c, 25.0 / 46, 21.0 / 46, 0);
}

static void blackman_window(struct composer *c)
{
    window(c, 0.42, 0.5, 0.08);
}

#define WINDOW_OPS "Cast, Squeeze, Range, Mul, Sub, Div, Cos, Add"
const struct composition compose_list_onnx[] = {
    {"", "BlackmanWindow", 17, WINDOW_OPS, blackman_window},
    {"", "EyeLike", 9, "Shape, Squeeze, Range, Unsqueeze, Add, Equal, Cast, CastLike", eye_like},
    {"", "HammingWindow", 17, WINDOW_OPS, hamming_window},
    {"", "HannWindow", 17, WINDOW_OPS, hann_window},
    {"", "LpNormalization", 1, "Abs, Mul, ReduceSum, Sqrt, Cast, CastLike, Where, Div", lp_normalization},
    {"", "Mean", 8, "Sum, CastLike, Div", mean},
    {"", "MeanVarianceNormalization", 9, "ReduceMean, Sub, Mul, Sqrt, CastLike, Add, Div", mean_variance_normalization},
    {"", "ReduceL1", 18, "Abs, ReduceSum", reduce_l1},
    {"", "ReduceL2", 18, "Mul, ReduceSum, Sqrt", reduce_l2},
    {"", "ReduceLogSum", 18, "ReduceSum, Log", reduce_log_sum},
    {"", "ReduceLogSumExp", 18, "ReduceMax, IsInf, CastLike, Where, Sub, Exp, ReduceSum, Log, Add, Squeeze", reduce_log_sum_exp},
    {"", "ReduceSumSquare", 18, "Mul, ReduceSum", reduce_sum_square},
    {NULL, NULL, 0, NULL, NULL},
};
