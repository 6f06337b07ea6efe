/* Compositions of domain ai.onnx.ml: what exporters of small nets put before them. */
#include "onnx/compose/compose.h"
#include "onnx/onnx.h"

/* A list of numbers, one for each column or one for all; NULL: not given. */
static char *numbers(struct composer *c, const char *attribute)
{
    const Onnx__AttributeProto *a = proto_attribute(c->node, attribute);
    return a && a->n_floats ? name_scope_floats(c->im, c->scope, attribute, a->n_floats, a->floats) : NULL;
}

/* (X - offset) * scale in float32 */
static void scaler(struct composer *c)
{
    char *x = compose_cast(c, compose_input(c, 0), ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT), *offset = numbers(c, "offset"),
         *scale = numbers(c, "scale");
    if (offset)
        x = compose_op(c, "Sub", x, offset);
    compose_become(c, scale ? "Mul" : "Identity", scale ? 2 : 1, (char *[]){x, scale});
}

/* 1 where X is above the threshold, else 0 */
static void binarizer(struct composer *c)
{
    char *x = compose_input(c, 0), *threshold = compose_number_like(c, (double)compose_float_of(c->node, "threshold", 0), x);
    compose_become(c, "CastLike", 2, (char *[]){compose_op(c, "Greater", x, threshold), x});
}

/* Columns of X; a vector is one row. */
static void array_feature_extractor(struct composer *c)
{
    const struct value *v = compose_has(c->node, 0) ? name_scope_find(c->scope, c->node->input[0]) : NULL;
    int64_t all = -1, first = 0;
    if (!v || v->type.dtype == DT_NONE || v->type.rank < 1)
        return;
    char *x = compose_input(c, 0), *y = compose_op(c, "Reshape", compose_input(c, 1), name_scope_ints(c->im, c->scope, "all", 1, &all));
    if (v->type.rank == 1)
        x = compose_op(c, "Unsqueeze", x, name_scope_ints(c->im, c->scope, "row", 1, &first));
    Onnx__AttributeProto *last = compose_int(c, "axis", -1);
    compose_become_with(c, "Gather", 2, (char *[]){x, y}, 1, &last);
}

const struct composition compose_list_ml[] = {
    {"ai.onnx.ml", "ArrayFeatureExtractor", 1, "Reshape, Unsqueeze, Gather", array_feature_extractor},
    {"ai.onnx.ml", "Binarizer", 1, "CastLike, Greater", binarizer},
    {"ai.onnx.ml", "Scaler", 1, "Cast, Sub, Mul, Identity", scaler},
    {NULL, NULL, 0, NULL, NULL},
};
