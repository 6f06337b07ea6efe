/* Compositions for ops on quantised integers with scales: dequantise, compute with real numbers, quantise again. Products of integers stay
 * products of integers, whose results are scaled. */
#include "onnx/compose/compose.h"

#include <string.h>

/* Operands i, i + 1, i + 2 are integers, their scale and maybe their zero point; axis: of scales, where there are several. */
static char *dequantized(struct composer *c, size_t i, int64_t axis)
{
    Onnx__AttributeProto *along = compose_int(c, "axis", axis);
    return compose_node_of(c, "DequantizeLinear", 3, (char *[]){compose_input(c, i), compose_input(c, i + 1), compose_optional(c, i + 2)},
                           1, &along, 1, NULL);
}

/* The node becomes the quantisation of x by operands i and i + 1. */
static void become_quantized(struct composer *c, char *x, size_t i)
{
    compose_become(c, "QuantizeLinear", 3, (char *[]){x, compose_input(c, i), compose_optional(c, i + 1)});
}

static void qlinear_matmul(struct composer *c)
{
    become_quantized(c, compose_op(c, "MatMul", dequantized(c, 0, -2), dequantized(c, 3, -1)), 6);
}

static size_t window_attributes(const struct composer *c, Onnx__AttributeProto **out)
{
    static const char *const kept[] = {"auto_pad", "ceil_mode", "count_include_pad", "dilations", "group", "kernel_shape",
                                       "pads",     "strides"};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        out[i] = proto_attribute(c->node, kept[i]);
    return sizeof kept / sizeof *kept;
}

/* The bias is in units of both scales. */
static void qlinear_conv(struct composer *c)
{
    Onnx__AttributeProto *attr[8], *axis = compose_int(c, "axis", 0);
    size_t n = window_attributes(c, attr);
    char *in[3] = {dequantized(c, 0, 1), dequantized(c, 3, 0), NULL};
    if (compose_has(c->node, 8)) {
        char *bias[2] = {compose_input(c, 8), compose_op(c, "Mul", compose_input(c, 1), compose_input(c, 4))};
        in[2] = compose_node_of(c, "DequantizeLinear", 2, bias, 1, &axis, 1, NULL);
    }
    become_quantized(c, compose_node_of(c, "Conv", 3, in, n, attr, 1, NULL), 6);
}

/* alpha a b + c: the third matrix is in units of alpha and both scales. Without a scale of its own the result is real. */
static void qgemm(struct composer *c)
{
    bool transposed = compose_int_of(c->node, "transB", 0) != 0;
    Onnx__AttributeProto *attr[3] = {compose_float(c, "alpha", compose_float_of(c->node, "alpha", 1)),
                                     compose_int(c, "transA", compose_int_of(c->node, "transA", 0)), compose_int(c, "transB", transposed)};
    Onnx__AttributeProto *axis = compose_int(c, "axis", -1);
    char *in[3] = {dequantized(c, 0, -1), dequantized(c, 3, transposed ? 0 : 1), NULL};
    if (compose_has(c->node, 6)) {
        char *unit = compose_op(c, "Mul", compose_input(c, 1), compose_input(c, 4));
        char *bias[2] = {compose_input(c, 6), compose_op(c, "Mul", unit, compose_number_like(c, (double)attr[0]->f, unit))};
        in[2] = compose_node_of(c, "DequantizeLinear", 2, bias, 1, &axis, 1, NULL);
    }
    if (compose_has(c->node, 7))
        become_quantized(c, compose_node_of(c, "Gemm", 3, in, 3, attr, 1, NULL), 7);
    else
        compose_become_with(c, "Gemm", 3, in, 3, attr);
}

/* Differences from the zero points are whole numbers, and their sums exact up to 2^24. */
static char *centred(struct composer *c, size_t i, size_t zero, int64_t axis)
{
    Onnx__AttributeProto *along = compose_int(c, "axis", axis);
    char *one = name_scope_scalar(c->im, c->scope, "one", 1), *zeros = compose_optional(c, zero);
    if (zeros)
        one = compose_node_of(c, "Expand", 2, (char *[]){one, compose_op(c, "Shape", zeros, NULL)}, 0, NULL, 1, NULL);
    return compose_node_of(c, "DequantizeLinear", 3, (char *[]){compose_input(c, i), one, zeros}, 1, &along, 1, NULL);
}

static void conv_integer(struct composer *c)
{
    Onnx__AttributeProto *attr[8], *to = compose_int(c, "to", ONNX__TENSOR_PROTO__DATA_TYPE__INT32);
    size_t n = window_attributes(c, attr);
    char *y = compose_node_of(c, "Conv", 2, (char *[]){centred(c, 0, 2, 1), centred(c, 1, 3, 0)}, n, attr, 1, NULL);
    compose_become_with(c, "Cast", 1, &y, 1, &to);
}

/* a b scaled, plus the bias */
static void scaled_product(struct composer *c, char *const *in, char *scale_a, char *scale_b, char *bias)
{
    char *y = compose_cast(c, compose_node_of(c, "MatMulInteger", 4, in, 0, NULL, 1, NULL), ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT);
    char *both[2] = {y, compose_op(c, "Mul", scale_a, scale_b)};
    if (bias)
        both[0] = compose_op(c, "Mul", both[0], both[1]);
    compose_become(c, bias ? "Add" : "Mul", 2, bias ? (char *[]){both[0], bias} : both);
}

static void dynamic_quantize_matmul(struct composer *c)
{
    char *more[2], *a = compose_input(c, 0), *q = compose_node_of(c, "DynamicQuantizeLinear", 1, &a, 0, NULL, 3, more);
    scaled_product(c, (char *[]){q, compose_input(c, 1), more[1], compose_optional(c, 3)}, more[0], compose_input(c, 2),
                   compose_optional(c, 4));
}

static void matmul_integer_to_float(struct composer *c)
{
    char *in[4] = {compose_input(c, 0), compose_input(c, 1), compose_optional(c, 4), compose_optional(c, 5)};
    scaled_product(c, in, compose_input(c, 2), compose_input(c, 3), compose_optional(c, 6));
}

/* ---- QLinear ops of one or two operands: the op behind the prefix ---- */

static const char *plain_op(const struct composer *c)
{
    return c->node->op_type + strlen("QLinear");
}

static void qlinear_pair(struct composer *c)
{
    become_quantized(c, compose_op(c, plain_op(c), dequantized(c, 0, 1), dequantized(c, 3, 1)), 6);
}

static void qlinear_unary(struct composer *c)
{
    Onnx__AttributeProto *attr[10];
    size_t n = window_attributes(c, attr);
    attr[n++] = proto_attribute(c->node, "alpha");
    attr[n++] = proto_attribute(c->node, "axis");
    if (compose_int_of(c->node, "channels_last", 0) || (strcmp(plain_op(c), "Softmax") == 0 && compose_int_of(c->node, "opset", 13) < 13))
        return;
    char *x = dequantized(c, 0, 1);
    become_quantized(c, compose_node_of(c, plain_op(c), 1, &x, n, attr, 1, NULL), 3);
}

/* The result's scale and zero point come first. */
static void qlinear_concat(struct composer *c)
{
    size_t n = c->node->n_input / 3;
    char **part = NEWN(c->im->tmp, char *, n + 1);
    Onnx__AttributeProto *axis = proto_attribute(c->node, "axis");
    if (c->node->n_input != 3 * n + 2)
        fail("%s: %s has %zu operands, expected three for each part and two", c->im->path, c->where, c->node->n_input);
    for (size_t i = 0; i < n; i++)
        part[i] = dequantized(c, 2 + 3 * i, 1);
    become_quantized(c, compose_node_of(c, "Concat", n, part, 1, &axis, 1, NULL), 0);
}

const struct composition compose_list_integers[] = {
    {"", "ConvInteger", 10, "Shape, Expand, DequantizeLinear, Conv, Cast", conv_integer},
    {"", "QLinearConv", 10, "DequantizeLinear, Mul, Conv, QuantizeLinear", qlinear_conv},
    {"", "QLinearMatMul", 10, "DequantizeLinear, MatMul, QuantizeLinear", qlinear_matmul},
    {"com.microsoft", "DynamicQuantizeMatMul", 1, "DynamicQuantizeLinear, MatMulInteger, Cast, Mul, Add", dynamic_quantize_matmul},
    {"com.microsoft", "MatMulIntegerToFloat", 1, "MatMulInteger, Cast, Mul, Add", matmul_integer_to_float},
    {"com.microsoft", "QGemm", 1, "DequantizeLinear, Mul, CastLike, Gemm, QuantizeLinear", qgemm},
    {"com.microsoft", "QLinearAdd", 1, "DequantizeLinear, Add, QuantizeLinear", qlinear_pair},
    {"com.microsoft", "QLinearAveragePool", 1, "DequantizeLinear, AveragePool, QuantizeLinear", qlinear_unary},
    {"com.microsoft", "QLinearConcat", 1, "DequantizeLinear, Concat, QuantizeLinear", qlinear_concat},
    {"com.microsoft", "QLinearGlobalAveragePool", 1, "DequantizeLinear, GlobalAveragePool, QuantizeLinear", qlinear_unary},
    {"com.microsoft", "QLinearLeakyRelu", 1, "DequantizeLinear, LeakyRelu, QuantizeLinear", qlinear_unary},
    {"com.microsoft", "QLinearMul", 1, "DequantizeLinear, Mul, QuantizeLinear", qlinear_pair},
    {"com.microsoft", "QLinearSigmoid", 1, "DequantizeLinear, Sigmoid, QuantizeLinear", qlinear_unary},
    {"com.microsoft", "QLinearSoftmax", 1, "DequantizeLinear, Softmax, QuantizeLinear", qlinear_unary},
    {NULL, NULL, 0, NULL, NULL},
};
