/* Compositions for models with layers of linear attention, as ONNX Runtime's model builders write them: the ops that became the standard's
 * in opset 27, in ONNX Runtime's wider form, the gates and norm around them, and multimodal positions. */
#include "onnx/compose/compose.h"

#include <string.h>

static bool is_default(const Onnx__NodeProto *node, const char *name, int64_t otherwise)
{
    return compose_int_of(node, name, otherwise) == otherwise;
}

static char *sequence_last(struct composer *c, char *x)
{
    Onnx__AttributeProto *perm = compose_ints(c, "perm", 3, (int64_t[]){0, 2, 1});
    return x ? compose_node_of(c, "Transpose", 1, &x, 1, &perm, 1, NULL) : NULL;
}

/* One spatial dimension, no gaps between taps, one state. With channels last, results are transposed back: result 1 first. */
static void causal_conv(struct composer *c)
{
    static const char *const wider[] = {"state_window", "state_update_capacity", "state_length", "input_channel_offset", "input_channels"};
    for (size_t i = 0; i < sizeof wider / sizeof *wider; i++)
        if (!is_default(c->node, wider[i], 0))
            return;
    int64_t last = compose_int_of(c->node, "channels_last", 0);
    if (!is_default(c->node, "ndim", 1) || !is_default(c->node, "dilation", 1) || compose_gives(c->node, 2) ||
        (!is_default(c->node, "state_channels_last", -1) && !is_default(c->node, "state_channels_last", last)))
        return;
    Onnx__AttributeProto *activation = proto_attribute(c->node, "activation");
    char *in[4] = {compose_input(c, 0), compose_input(c, 1), compose_optional(c, 2), compose_optional(c, 3)}, *state, *y;
    if (!last) {
        compose_become_with(c, "CausalConvWithState", 4, in, 1, &activation);
        return;
    }
    in[0] = sequence_last(c, in[0]);
    in[3] = sequence_last(c, in[3]);
    y = sequence_last(c, compose_node_of(c, "CausalConvWithState", 4, in, 1, &activation, 2, &state));
    state = sequence_last(c, state);
    compose_also(c, 1, "Identity", 1, &state);
    compose_become(c, "Identity", 1, &y);
}

/* [B, T, heads D] with each head `times` in a row. */
static char *repeat_heads(struct composer *c, char *x, int64_t heads, int64_t times)
{
    char *apart[2] = {x, name_scope_ints(c->im, c->scope, "heads", 5, (int64_t[]){0, 0, heads, 1, -1})};
    char *repeated[2] = {compose_op(c, "Reshape", apart[0], apart[1]),
                         name_scope_ints(c->im, c->scope, "times", 5, (int64_t[]){1, 1, 1, times, 1})};
    return compose_op(c, "Reshape", compose_op(c, "Expand", repeated[0], repeated[1]),
                      name_scope_ints(c->im, c->scope, "packed", 3, (int64_t[]){0, 0, -1}));
}

/* Heads of values may share query and key heads, which the standard's op has not. */
static void linear_attention(struct composer *c)
{
    int64_t queries = compose_int_of(c->node, "q_num_heads", 0), values = compose_int_of(c->node, "kv_num_heads", 0);
    if (!is_default(c->node, "state_window", 0) || queries < 1 || values < 1)
        return;
    char *in[6];
    for (size_t i = 0; i < 6; i++)
        in[i] = i < 3 ? compose_input(c, i) : compose_optional(c, i);
    if (values > queries) {
        if (values % queries)
            fail("%s: %s has %lld heads of values, expected a multiple of %lld query heads", c->im->path, c->where, (long long)values,
                 (long long)queries);
        for (size_t i = 0; i < 2; i++)
            in[i] = repeat_heads(c, in[i], queries, values / queries);
        queries = values;
    }
    Onnx__AttributeProto *attr[5] = {compose_int(c, "q_num_heads", queries), compose_int(c, "kv_num_heads", values),
                                     proto_attribute(c->node, "scale"), proto_attribute(c->node, "update_rule"),
                                     proto_attribute(c->node, "chunk_size")};
    compose_become_with(c, "LinearAttention", 6, in, 5, attr);
}

/* decay_scale Softplus(a + dt_bias), in the type of the bias; Sigmoid(b) */
static void linear_attention_gate(struct composer *c)
{
    char *a = compose_input(c, 0), *bias = compose_input(c, 1);
    if (compose_gives(c->node, 1))
        compose_also(c, 1, "Sigmoid", 1, (char *[]){compose_input(c, 3)});
    char *open = compose_op(c, "Softplus", compose_op(c, "Add", compose_op(c, "CastLike", a, bias), bias), NULL);
    compose_become(c, "CastLike", 2, (char *[]){compose_op(c, "Mul", open, compose_input(c, 2)), a});
}

/* x over the root of the mean square of its group, one for each number of scale; times the scale and the gate's activation */
static void gated_rms_norm(struct composer *c)
{
    const Onnx__AttributeProto *a = proto_attribute(c->node, "activation");
    bool sigmoid = a && a->s.len == 7 && memcmp(a->s.data, "sigmoid", 7) == 0;
    bool silu = !a || (a->s.len == 4 && memcmp(a->s.data, "silu", 4) == 0) || (a->s.len == 5 && memcmp(a->s.data, "swish", 5) == 0);
    if (!sigmoid && !silu)
        return;
    Onnx__AttributeProto *attr[2] = {compose_int(c, "axis", -1), compose_float(c, "epsilon", compose_float_of(c->node, "epsilon", 1e-5f))};
    Onnx__AttributeProto *along = compose_int(c, "axis", 0);
    char *x = compose_input(c, 0), *scale = compose_input(c, 1), *gate = compose_input(c, 2);
    char *groups[2] = {name_scope_ints(c->im, c->scope, "groups", 1, (int64_t[]){-1}), compose_op(c, "Shape", scale, NULL)};
    char *rows[2] = {compose_op(c, "Reshape", x, compose_node_of(c, "Concat", 2, groups, 1, &along, 1, NULL)), scale};
    char *norm = compose_op(c, "Reshape", compose_node_of(c, "RMSNormalization", 2, rows, 2, attr, 1, NULL),
                            compose_op(c, "Shape", x, NULL));
    char *open = compose_op(c, "Sigmoid", gate, NULL);
    compose_become(c, "Mul", 2, (char *[]){norm, sigmoid ? open : compose_op(c, "Mul", gate, open)});
}

enum { STREAMS = 3, MOST_FREQUENCIES = 1 << 16 }; /* positions in time, height and width */

/* Which stream turns frequency j: in sections one after another, or taken in turns as far as each section goes. */
static size_t stream_of(const int64_t *section, bool turns, int64_t j)
{
    if (turns)
        return j % STREAMS && j < section[j % STREAMS] * STREAMS ? (size_t)(j % STREAMS) : 0;
    return j < section[0] ? 0 : j < section[0] + section[1] ? 1 : 2;
}

/* [3, 1, 1, frequencies]: 1 where a stream turns a frequency; NULL: no legal sections. */
static char *chosen_streams(struct composer *c)
{
    const Onnx__AttributeProto *section = proto_attribute(c->node, "mrope_section");
    int64_t n = 0;
    for (size_t i = 0; section && i < section->n_ints; i++) {
        if (section->ints[i] < 0 || section->ints[i] > MOST_FREQUENCIES)
            return NULL;
        n += section->ints[i];
    }
    if (!section || section->n_ints != STREAMS || n < 1)
        return NULL;
    float *mask = NEWN(c->im->tmp, float, (size_t)n *STREAMS);
    for (int64_t j = 0; j < n; j++)
        mask[stream_of(section->ints, compose_int_of(c->node, "mrope_layout", 0) != 0, j) * (size_t)n + (size_t)j] = 1;
    return compose_op(c, "Reshape", name_scope_floats(c->im, c->scope, "streams", (size_t)n * STREAMS, mask),
                      name_scope_ints(c->im, c->scope, "shape", 4, (int64_t[]){STREAMS, 1, 1, n}));
}

/* [batch, sequence, frequencies] of a table, by the stream of each frequency */
static char *turned(struct composer *c, char *table, char *streams)
{
    int64_t zero = 0;
    char *each = compose_op(c, "Gather", table, compose_input(c, 1));
    char *in[2] = {compose_op(c, "Mul", each, compose_op(c, "CastLike", streams, table)),
                   name_scope_ints(c->im, c->scope, "axis", 1, &zero)};
    Onnx__AttributeProto *keep = compose_int(c, "keepdims", 0);
    return compose_node_of(c, "ReduceSum", 2, in, 1, &keep, 1, NULL);
}

/* Multimodal positions [3, batch, sequence] (Qwen2-VL, arXiv:2409.12191): rotary embedding with cosines and sines of each token. */
static void mrotary(struct composer *c)
{
    char *streams = chosen_streams(c);
    if (!streams || !is_default(c->node, "is_packed_batching", 0) || proto_attribute(c->node, "scale"))
        return;
    Onnx__AttributeProto *attr[3] = {proto_attribute(c->node, "interleaved"), proto_attribute(c->node, "num_heads"),
                                     proto_attribute(c->node, "rotary_embedding_dim")};
    char *in[3] = {compose_input(c, 0), turned(c, compose_input(c, 2), streams), turned(c, compose_input(c, 3), streams)};
    compose_become_with(c, "RotaryEmbedding", 3, in, 3, attr);
}

const struct composition compose_list_linear_attention[] = {
    {"com.microsoft", "CausalConvWithState", 1, "Transpose, CausalConvWithState, Identity", causal_conv},
    {"com.microsoft", "GatedRMSNorm", 1, "Shape, Concat, Reshape, RMSNormalization, Sigmoid, Mul", gated_rms_norm},
    {"com.microsoft", "LinearAttention", 1, "Reshape, Expand, LinearAttention", linear_attention},
    {"com.microsoft", "LinearAttentionGate", 1, "Sigmoid, CastLike, Add, Softplus, Mul", linear_attention_gate},
    {"com.microsoft", "MRotaryEmbedding", 1, "Reshape, Gather, CastLike, Mul, ReduceSum, RotaryEmbedding", mrotary},
    {NULL, NULL, 0, NULL, NULL},
};
