/* Accessors of protobuf messages: texts, domains, attributes and the names that messages give to nodes. */
#include "onnx/message/message.h"

#include <string.h>

const char *proto_text_or(const char *text, const char *otherwise)
{
    return text ? text : otherwise;
}

const char *proto_domain(const char *domain)
{
    return !domain || strcmp(domain, "ai.onnx") == 0 ? "" : domain;
}

Onnx__AttributeProto *proto_attribute(const Onnx__NodeProto *node, const char *name)
{
    for (size_t i = 0; i < node->n_attribute; i++)
        if (strcmp(proto_text_or(node->attribute[i]->name, ""), name) == 0)
            return node->attribute[i];
    return NULL;
}

Onnx__AttributeProto *proto_new_attribute(struct arena *arena, const char *name, Onnx__AttributeProto__AttributeType type)
{
    Onnx__AttributeProto *a = NEW(arena, Onnx__AttributeProto);
    onnx__attribute_proto__init(a);
    a->name = arena_strdup(arena, name);
    a->has_type = 1;
    a->type = type;
    return a;
}

bool proto_is_external(const Onnx__TensorProto *t)
{
    return t->has_data_location && t->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
}

const char *proto_data_type_name(struct arena *arena, int data_type)
{
    const ProtobufCEnumValue *value = protobuf_c_enum_descriptor_get_value(&onnx__tensor_proto__data_type__descriptor, data_type);
    return value ? value->name : arena_printf(arena, "number %d", data_type);
}

const char *proto_node_label(struct arena *arena, const Onnx__NodeProto *node)
{
    const char *name = proto_text_or(node->name, "");
    if (!*name && node->n_output)
        name = node->output[0];
    return arena_printf(arena, "node '%s' (%s)", name, proto_text_or(node->op_type, ""));
}

char *proto_node_name(struct arena *arena, const char *own, const char *op_type, const char *out)
{
    return *own ? arena_strdup(arena, own) : arena_printf(arena, "%s_%s", op_type, (unsigned char)*out > 1 ? out : "node");
}
