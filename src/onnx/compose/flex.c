/* FlexAttention: products, Softmax, and between them what its bodies make of scores and probabilities. */
#include "onnx/compose/compose.h"

/* The type of an operand as far as the file tells; false: not at all. */
static bool operand_type(struct composer *c, size_t i, struct type *out)
{
    const struct value *v = name_scope_find(c->scope, compose_input(c, i));
    const Onnx__ValueInfoProto *info = text_table_find(c->im->declared, c->node->input[i]);
    if (v && v->type.dtype != DT_NONE) {
        *out = v->type;
        return true;
    }
    return info && declared_type(c->im, info, out);
}

/* K or V with each head as often as there are query heads for it. */
static char *heads_repeated(struct composer *c, char *x, int64_t heads, int64_t queries)
{
    int64_t *index = NEWN(c->im->tmp, int64_t, queries);
    Onnx__AttributeProto *axis = compose_int(c, "axis", 1);
    if (heads == queries)
        return x;
    for (int64_t i = 0; i < queries; i++)
        index[i] = i / (queries / heads);
    char *in[2] = {x, name_scope_ints(c->im, c->scope, "heads", (size_t)queries, index)};
    return compose_node_of(c, "Gather", 2, in, 1, &axis, 1, NULL);
}

static char *transposed_keys(struct composer *c, char *k)
{
    Onnx__AttributeProto *perm = compose_ints(c, "perm", 4, (int64_t[]){0, 1, 3, 2});
    return compose_node_of(c, "Transpose", 1, &k, 1, &perm, 1, NULL);
}

/* 1 / sqrt(size of a head), of x's type, where the attribute is not given. */
static char *scale_of(struct composer *c, char *q, char *x)
{
    Onnx__AttributeProto *last = compose_int(c, "start", 3);
    if (proto_attribute(c->node, "scale"))
        return compose_number_like(c, (double)compose_float_of(c->node, "scale", 1), x);
    char *size = compose_node_of(c, "Shape", 1, &q, 1, &last, 1, NULL);
    return compose_op(c, "Reciprocal", compose_op(c, "Sqrt", compose_op(c, "CastLike", size, x), NULL), NULL);
}

static char *modified(struct composer *c, const char *body, char *x)
{
    char *y = x;
    if (proto_attribute(c->node, body))
        compose_body(c, body, 1, &x, 1, &y);
    return y;
}

static void flex_attention(struct composer *c)
{
    struct type q, k;
    int64_t queries = 0, heads = 0;
    char *in[3] = {compose_input(c, 0), compose_input(c, 1), compose_input(c, 2)};
    if (!operand_type(c, 0, &q) || !operand_type(c, 1, &k) || q.rank != 4 || k.rank != 4)
        return;
    bool counted = dim_is_int(q.dim[1], &queries) && dim_is_int(k.dim[1], &heads);
    if (!counted && q.dim[1] != k.dim[1])
        return;
    if (counted && (heads < 1 || queries % heads || queries > INT16_MAX))
        fail("%s: %s has %lld query heads for %lld heads of keys", c->im->path, c->where, (long long)queries, (long long)heads);
    int64_t own = q.dtype == DT_F64 ? ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE : ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT;
    char *scores = compose_op(c, "MatMul", in[0], transposed_keys(c, heads_repeated(c, in[1], heads, queries)));
    scores = compose_cast(c, scores, compose_int_of(c->node, "softmax_precision", own));
    scores = modified(c, "score_mod", compose_op(c, "Mul", scores, scale_of(c, in[0], scores)));
    Onnx__AttributeProto *axis = compose_int(c, "axis", -1);
    char *shares = modified(c, "prob_mod", compose_node_of(c, "Softmax", 1, &scores, 1, &axis, 1, NULL));
    compose_become(c, "MatMul", 2, (char *[]){compose_op(c, "CastLike", shares, in[2]), heads_repeated(c, in[2], heads, queries)});
}

const struct composition compose_list_flex[] = {
    {"ai.onnx.preview", "FlexAttention", 1, "Gather, Transpose, MatMul, Cast, CastLike, Shape, Sqrt, Reciprocal, Mul, Softmax",
     flex_attention},
    {NULL, NULL, 0, NULL, NULL},
};
