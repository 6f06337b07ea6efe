/* Compositions for ops that ONNX Runtime's optimiser and model builders write. */
#include "onnx/compose/compose.h"

#include <string.h>

static char *biased(struct composer *c)
{
    return compose_has(c->node, 1) ? compose_op(c, "Add", compose_input(c, 0), c->node->input[1]) : compose_input(c, 0);
}

static void fast_gelu(struct composer *c)
{
    char *x = biased(c);
    Onnx__AttributeProto *tanh = compose_string(c, "approximate", "tanh");
    compose_become_with(c, "Gelu", 1, &x, 1, &tanh);
}

static void exact_gelu(struct composer *c)
{
    char *x = biased(c);
    compose_become(c, "Gelu", 1, &x);
}

/* LayerNormalization(input + skip + bias); result 3 is the sum. */
static void skip_layer_norm(struct composer *c)
{
    char *a = compose_input(c, 0), *b = compose_input(c, 1), *in[3] = {NULL, compose_input(c, 2), compose_optional(c, 3)};
    if (compose_has(c->node, 4))
        a = compose_op(c, "Add", a, c->node->input[4]);
    in[0] = compose_op(c, "Add", a, b);
    compose_also(c, 3, "Identity", 1, in);
    Onnx__AttributeProto *attr[2] = {compose_int(c, "axis", -1), compose_float(c, "epsilon", compose_float_of(c->node, "epsilon", 1e-12f))};
    compose_become_with(c, "LayerNormalization", 3, in, 2, attr);
}

/* The first rows of the table, one for each place of ids [batch, sequence]. */
static char *first_positions(struct composer *c, char *table, char *ids)
{
    int64_t zero = 0;
    Onnx__AttributeProto *which[2] = {compose_int(c, "start", 1), compose_int(c, "end", 2)};
    char *in[4] = {table, name_scope_ints(c->im, c->scope, "start", 1, &zero), compose_node_of(c, "Shape", 1, &ids, 2, which, 1, NULL),
                   NULL};
    in[3] = in[1];
    return compose_node_of(c, "Slice", 4, in, 0, NULL, 1, NULL);
}

/* LayerNormalization of the sum of two or three embeddings; result 1 counts what the mask keeps (0 without one), result 2 is the sum. */
static void embed_layer_norm(struct composer *c)
{
    int64_t one = 1;
    Onnx__AttributeProto *keep = compose_int(c, "keepdims", 0);
    char *ids = compose_input(c, 0), *segments = compose_optional(c, 1), *places = compose_optional(c, 8);
    char *position = places ? compose_op(c, "Gather", compose_input(c, 3), places) : first_positions(c, compose_input(c, 3), ids);
    char *sum = compose_op(c, "Add", compose_op(c, "Gather", compose_input(c, 2), ids), position);
    if (segments)
        sum = compose_op(c, "Add", sum, compose_op(c, "Gather", compose_input(c, 4), segments));
    char *in[3] = {sum, compose_input(c, 5), compose_input(c, 6)};
    compose_also(c, 2, "Identity", 1, &sum);
    char *count[2] = {compose_has(c->node, 7) ? c->node->input[7] : compose_op(c, "Sub", ids, ids),
                      name_scope_ints(c->im, c->scope, "axis", 1, &one)};
    char *kept = compose_node_of(c, "ReduceSum", 2, count, 1, &keep, 1, NULL);
    compose_also(c, 1, "Identity", 1, &kept);
    Onnx__AttributeProto *attr[2] = {compose_int(c, "axis", -1), compose_float(c, "epsilon", compose_float_of(c->node, "epsilon", 1e-12f))};
    compose_become_with(c, "LayerNormalization", 3, in, 2, attr);
}

/* Operands in another order; positions are required. */
static void rotary(struct composer *c)
{
    if (compose_int_of(c->node, "is_packed_batching", 0) || proto_attribute(c->node, "scale"))
        return;
    Onnx__AttributeProto *attr[3] = {compose_int(c, "interleaved", compose_int_of(c->node, "interleaved", 0)),
                                     compose_int(c, "num_heads", compose_int_of(c->node, "num_heads", 0)),
                                     compose_int(c, "rotary_embedding_dim", compose_int_of(c->node, "rotary_embedding_dim", 0))};
    compose_become_with(c, "RotaryEmbedding", 4,
                        (char *[]){compose_input(c, 0), compose_input(c, 2), compose_input(c, 3), compose_input(c, 1)}, 3, attr);
}

/* alpha a b, either transposed in its last two dimensions. */
static void fused_matmul(struct composer *c)
{
    bool ta = compose_int_of(c->node, "transA", 0) != 0, tb = compose_int_of(c->node, "transB", 0) != 0;
    float alpha = compose_float_of(c->node, "alpha", 1);
    if (compose_int_of(c->node, "transBatchA", 0) || compose_int_of(c->node, "transBatchB", 0))
        return;
    char *in[2] = {compose_input(c, 0), compose_input(c, 1)};
    if (alpha < 1 || alpha > 1)
        in[0] = compose_op(c, "Mul", in[0], compose_number_like(c, (double)alpha, in[0]));
    Onnx__AttributeProto *equation = compose_string(c, "equation",
                                                    arena_printf(c->im->tmp, "...%s,...%s->...mn", ta ? "km" : "mk", tb ? "nk" : "kn"));
    compose_become_with(c, "Einsum", 2, in, 1, &equation);
}

/* The activation of a fused op, with its parameters as attributes. */
static void activate(struct composer *c, const char *activation, size_t n, const float *parameter, char *x)
{
    static const struct {
        const char *op, *name[2];
    } known[] = {{"Relu", {NULL, NULL}},
                 {"Tanh", {NULL, NULL}},
                 {"Sigmoid", {NULL, NULL}},
                 {"LeakyRelu", {"alpha", NULL}},
                 {"Elu", {"alpha", NULL}},
                 {"ThresholdedRelu", {"alpha", NULL}},
                 {"HardSigmoid", {"alpha", "beta"}}};
    Onnx__AttributeProto *attr[2] = {NULL, NULL};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].op, activation) == 0) {
            for (size_t k = 0; k < n && k < 2; k++)
                if (known[i].name[k])
                    attr[k] = compose_float(c, known[i].name[k], parameter[k]);
            compose_become_with(c, activation, 1, &x, 2, attr);
            return;
        }
    if (strcmp(activation, "Clip") || n != 2)
        fail("%s: %s has activation '%s', which tpc does not handle", c->im->path, c->where, activation);
    compose_become(c, "Clip", 3,
                   (char *[]){x, name_scope_scalar(c->im, c->scope, "min", (double)parameter[0]),
                              name_scope_scalar(c->im, c->scope, "max", (double)parameter[1])});
}

static const char *attribute_text(struct composer *c, const char *name)
{
    const Onnx__AttributeProto *a = proto_attribute(c->node, name);
    return a && a->has_s ? arena_strndup(c->im->tmp, (const char *)a->s.data, a->s.len) : "";
}

static void fused_gemm(struct composer *c)
{
    static const char *const parameters[2] = {"activation_alpha", "activation_beta"};
    float parameter[2] = {0, 0};
    size_t n = 0;
    while (n < 2 && proto_attribute(c->node, parameters[n])) {
        parameter[n] = compose_float_of(c->node, parameters[n], 0);
        n++;
    }
    Onnx__AttributeProto *attr[4] = {
        compose_float(c, "alpha", compose_float_of(c->node, "alpha", 1)), compose_float(c, "beta", compose_float_of(c->node, "beta", 1)),
        compose_int(c, "transA", compose_int_of(c->node, "transA", 0)), compose_int(c, "transB", compose_int_of(c->node, "transB", 0))};
    char *y = compose_node_of(c, "Gemm", 3, (char *[]){compose_input(c, 0), compose_input(c, 1), compose_optional(c, 2)}, 4, attr, 1, NULL);
    activate(c, attribute_text(c, "activation"), n, parameter, y);
}

/* activation(Conv(X, W, B) + Z) */
static void fused_conv(struct composer *c)
{
    static const char *const kept[] = {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"};
    Onnx__AttributeProto *attr[6], *parameters = proto_attribute(c->node, "activation_params");
    for (size_t i = 0; i < 6; i++)
        attr[i] = proto_attribute(c->node, kept[i]);
    char *y = compose_node_of(c, "Conv", 3, (char *[]){compose_input(c, 0), compose_input(c, 1), compose_optional(c, 2)}, 6, attr, 1, NULL);
    if (compose_has(c->node, 3))
        y = compose_op(c, "Add", y, c->node->input[3]);
    if (*attribute_text(c, "activation"))
        activate(c, attribute_text(c, "activation"), parameters ? parameters->n_floats : 0, parameters ? parameters->floats : NULL, y);
    else
        compose_become(c, "Identity", 1, &y);
}

#define ACTIVATIONS "Clip, Elu, HardSigmoid, LeakyRelu, Relu, Sigmoid, Tanh, ThresholdedRelu" /* see activate */

const struct composition compose_list_microsoft[] = {
    {"com.microsoft", "BiasGelu", 1, "Add, Gelu", exact_gelu},
    {"com.microsoft", "EmbedLayerNormalization", 1, "Shape, Slice, Gather, Add, Sub, ReduceSum, Identity, LayerNormalization",
     embed_layer_norm},
    {"com.microsoft", "FastGelu", 1, "Add, Gelu", fast_gelu},
    {"com.microsoft", "FusedConv", 1, "Conv, Add, Identity, " ACTIVATIONS, fused_conv},
    {"com.microsoft", "FusedGemm", 1, "Gemm, " ACTIVATIONS, fused_gemm},
    {"com.microsoft", "FusedMatMul", 1, "CastLike, Mul, Einsum", fused_matmul},
    {"com.microsoft", "Gelu", 1, "Add, Gelu", exact_gelu},
    {"com.microsoft", "RotaryEmbedding", 1, "RotaryEmbedding", rotary},
    {"com.microsoft", "SkipLayerNormalization", 1, "Add, Identity, LayerNormalization", skip_layer_norm},
    {"com.microsoft", "TransposeMatMul", 1, "CastLike, Mul, Einsum", fused_matmul},
    {NULL, NULL, 0, NULL, NULL},
};
