/* Types that a file declares for values. */
#include "onnx/read/read.h"

/* A dimension without a value or name in the file, or with a negative value, is a symbol of its own. */
static const struct dim *declared_dim(struct import *im, const Onnx__TensorShapeProto__Dimension *d, const char *name, size_t axis)
{
    const struct dim *dim = NULL;
    if (d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE && d->dim_value >= 0)
        dim = dim_int(im->alg, d->dim_value);
    if (d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM)
        dim = dim_param_parse(im->alg, proto_text_or(d->dim_param, ""));
    return dim ? dim : dim_sym(im->alg, arena_printf(im->arena, "%s_%zu", name, axis), 1);
}

bool declared_type(struct import *im, const Onnx__ValueInfoProto *info, struct type *out)
{
    const Onnx__TypeProto *type = info->type;
    if (!type || type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE || !type->tensor_type->shape)
        return false;
    const Onnx__TensorShapeProto *shape = type->tensor_type->shape;
    const char *name = proto_text_or(info->name, "");
    if (shape->n_dim > MAX_RANK)
        fail("%s: '%s' has %zu dimensions, at most %d are handled", im->path, name, shape->n_dim, MAX_RANK);
    *out = (struct type){.dtype = (enum dtype)type->tensor_type->elem_type, .rank = (int)shape->n_dim};
    if (!dtype_size(out->dtype))
        fail("%s: '%s' has data type %s, which tpc does not handle", im->path, name,
             proto_data_type_name(im->tmp, type->tensor_type->elem_type));
    for (size_t i = 0; i < shape->n_dim; i++)
        out->dim[i] = declared_dim(im, shape->dim[i], name, i);
    return true;
}

const char *declared_kind(const Onnx__TypeProto *type)
{
    switch (type ? (int)type->value_case : 0) {
    case ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE: return "a tensor of unknown rank";
    case ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE: return "a sequence";
    case ONNX__TYPE_PROTO__VALUE_MAP_TYPE: return "a map";
    case ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE: return "an optional";
    case ONNX__TYPE_PROTO__VALUE_SPARSE_TENSOR_TYPE: return "a sparse tensor";
    default: return "of no known type";
    }
}

void declared_check_tensor(const struct import *im, const Onnx__ValueInfoProto *info, const char *where)
{
    int kind = info->type ? (int)info->type->value_case : 0;
    if (kind && kind != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
        fail("%s: %s: '%s' is %s, expected a tensor", im->path, where, proto_text_or(info->name, ""), declared_kind(info->type));
}
