/* Compositions for ops in training form. */
#include "onnx/compose/compose.h"

/* Elements that are kept: those whose number, drawn, is not below the ratio, and all where mode does not hold. */
static char *kept_elements(struct composer *c, char *x, char *ratio, char *mode)
{
    const Onnx__AttributeProto *given = proto_attribute(c->node, "seed");
    Onnx__AttributeProto *attr[2] = {compose_int(c, "dtype", ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT),
                                     given ? compose_float(c, "seed", (float)given->i) : NULL};
    char *drawn = compose_node_of(c, "RandomUniformLike", 1, &x, 2, attr, 1, NULL);
    return compose_op(c, "Or", compose_op(c, "GreaterOrEqual", drawn, ratio), compose_op(c, "Not", mode, NULL));
}

/* In training x / (1 - ratio) where an element is kept, else 0. */
static void dropout_of_training(struct composer *c)
{
    char *x = compose_input(c, 0), *mode = compose_input(c, 2), *one = name_scope_scalar(c->im, c->scope, "one", 1);
    char *ratio = compose_optional(c, 1) ? compose_cast(c, compose_input(c, 1), ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT)
                                         : name_scope_scalar(c->im, c->scope, "ratio", 0.5);
    char *keep = kept_elements(c, x, ratio, mode);
    char *scale[3] = {mode, compose_op(c, "Reciprocal", compose_op(c, "Sub", one, ratio), NULL), one};
    char *times = compose_op(c, "CastLike", compose_node_of(c, "Where", 3, scale, 0, NULL, 1, NULL), x);
    char *choice[3] = {keep, compose_op(c, "Mul", x, times), compose_number_like(c, 0, x)};
    compose_also(c, 1, "Identity", 1, &keep);
    compose_become(c, "Where", 3, choice);
}

/* The mask of an inference keeps everything. */
static void dropout(struct composer *c)
{
    if (compose_has(c->node, 2)) {
        dropout_of_training(c);
        return;
    }
    if (c->node->n_input != 1 || !compose_gives(c->node, 1))
        return;
    char *x = compose_input(c, 0),
         *keep = compose_cast(c, name_scope_scalar(c->im, c->scope, "keep", 1), ONNX__TENSOR_PROTO__DATA_TYPE__BOOL);
    compose_also(c, 1, "Expand", 2, (char *[]){keep, compose_op(c, "Shape", x, NULL)});
    compose_become(c, "Identity", 1, &x);
}

/* All dimensions of x but 1. */
static char *all_but_channels(struct composer *c, char *x)
{
    int64_t none = 0;
    char *limit[3] = {compose_cast(c, name_scope_scalar(c->im, c->scope, "start", 2), ONNX__TENSOR_PROTO__DATA_TYPE__INT64),
                      compose_op(c, "Size", compose_op(c, "Shape", x, NULL), NULL),
                      compose_cast(c, name_scope_scalar(c->im, c->scope, "step", 1), ONNX__TENSOR_PROTO__DATA_TYPE__INT64)};
    char *both[2] = {name_scope_ints(c->im, c->scope, "batch", 1, &none), compose_node_of(c, "Range", 3, limit, 0, NULL, 1, NULL)};
    Onnx__AttributeProto *axis = compose_int(c, "axis", 0);
    return compose_node_of(c, "Concat", 2, both, 1, &axis, 1, NULL);
}

/* The mean of x for each channel. flat: without the other dimensions. */
static char *channel_mean(struct composer *c, char *x, bool flat)
{
    Onnx__AttributeProto *keep = compose_int(c, "keepdims", !flat);
    return compose_node_of(c, "ReduceMean", 2, (char *[]){x, all_but_channels(c, x)}, 1, &keep, 1, NULL);
}

/* before * momentum + now * (1 - momentum) */
static void also_running(struct composer *c, size_t result, char *before, char *now)
{
    double momentum = (double)compose_float_of(c->node, "momentum", 0.9f);
    char *old = compose_op(c, "Mul", before, compose_number_like(c, momentum, before));
    char *new = compose_op(c, "Mul", now, compose_number_like(c, 1 - momentum, now));
    compose_also(c, result, "Add", 2, (char *[]){old, compose_op(c, "CastLike", new, before)});
}

/* By the statistics of this batch. Results 1 and 2 are the running ones, 3 and 4 those of the batch. */
static void batch_normalization(struct composer *c)
{
    if (!compose_int_of(c->node, "training_mode", 0))
        return;
    char *x = compose_input(c, 0), *d = compose_op(c, "Sub", x, channel_mean(c, x, false));
    char *mean = channel_mean(c, x, true), *var = channel_mean(c, compose_op(c, "Mul", d, d), true);
    char *in[5] = {x, compose_input(c, 1), compose_input(c, 2), mean, var};
    Onnx__AttributeProto *epsilon = compose_float(c, "epsilon", compose_float_of(c->node, "epsilon", 1e-5f));
    compose_also(c, 4, "Identity", 1, &var);
    compose_also(c, 3, "Identity", 1, &mean);
    also_running(c, 2, compose_input(c, 4), var);
    also_running(c, 1, compose_input(c, 3), mean);
    compose_become_with(c, "BatchNormalization", 5, in, 1, &epsilon);
}

const struct composition compose_list_training[] = {
    {"", "BatchNormalization", 15, "Shape, Size, Cast, Range, Concat, ReduceMean, Sub, Mul, CastLike, Add, Identity, BatchNormalization",
     batch_normalization},
    {"", "Dropout", 13, "RandomUniformLike, GreaterOrEqual, Not, Or, Sub, Reciprocal, CastLike, Mul, Where, Shape, Cast, Expand, Identity",
     dropout},
    {NULL, NULL, 0, NULL, NULL},
};
