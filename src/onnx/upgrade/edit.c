/* Helpers of upgrades: attributes taken and added, operands set, helper nodes made. */
#include "onnx/upgrade/upgrade.h"

#include <string.h>

typedef Onnx__NodeProto proto;

Onnx__AttributeProto *upgrade_take(proto *node, const char *name)
{
    Onnx__AttributeProto *found = proto_attribute(node, name);
    size_t kept = 0;
    for (size_t i = 0; i < node->n_attribute; i++)
        if (node->attribute[i] != found)
            node->attribute[kept++] = node->attribute[i];
    node->n_attribute = kept;
    return found;
}

Onnx__AttributeProto *upgrade_remove(struct upgrade *s, const char *name, Onnx__AttributeProto__AttributeType type)
{
    Onnx__AttributeProto *a = upgrade_take(s->node, name);
    if (a && a->has_type && a->type != type)
        fail("%s: %s: attribute '%s' has the wrong type", s->im->path, s->where, name);
    return a;
}

static Onnx__AttributeProto *add_attribute(struct upgrade *s, const char *name, Onnx__AttributeProto__AttributeType type)
{
    Onnx__AttributeProto *a = proto_new_attribute(s->im->tmp, name, type),
                         **list = NEWN(s->im->tmp, Onnx__AttributeProto *, s->node->n_attribute + 1);
    for (size_t k = 0; k < s->node->n_attribute; k++)
        list[k] = s->node->attribute[k];
    list[s->node->n_attribute++] = a;
    s->node->attribute = list;
    return a;
}

void upgrade_add_int(struct upgrade *s, const char *name, int64_t i)
{
    Onnx__AttributeProto *a = add_attribute(s, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
    a->has_i = 1;
    a->i = i;
}

void upgrade_add_text(struct upgrade *s, const char *name, const char *text)
{
    Onnx__AttributeProto *a = add_attribute(s, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING);
    a->has_s = 1;
    a->s.len = strlen(text);
    a->s.data = (uint8_t *)arena_strdup(s->im->tmp, text);
}

void upgrade_add_float(struct upgrade *s, const char *name, float f)
{
    Onnx__AttributeProto *a = add_attribute(s, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);
    a->has_f = 1;
    a->f = f;
}

void upgrade_set_input(struct upgrade *s, size_t index, char *name)
{
    size_t n = s->node->n_input > index + 1 ? s->node->n_input : index + 1;
    char **list = NEWN(s->im->tmp, char *, n);
    for (size_t i = 0; i < n; i++)
        list[i] = i < s->node->n_input ? s->node->input[i] : arena_strdup(s->im->tmp, "");
    if (*list[index])
        fail("%s: %s has an operand that opset %d does not know", s->im->path, s->where, s->opset);
    list[index] = name;
    s->node->input = list;
    s->node->n_input = n;
}

char *upgrade_display_name(struct upgrade *s, const char *what)
{
    return arena_printf(s->im->tmp, "%s_%s", s->node->n_output && *s->node->output[0] ? s->node->output[0] : "result", what);
}

bool upgrade_ints_to_input(struct upgrade *s, const char *name, size_t index)
{
    Onnx__AttributeProto *a = upgrade_remove(s, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
    if (!a)
        return false;
    upgrade_set_input(s, index, name_scope_ints(s->im, s->scope, upgrade_display_name(s, name), a->n_ints, a->ints));
    return true;
}

void upgrade_withhold_results(struct upgrade *s, size_t first)
{
    for (size_t i = first; i < s->node->n_output; i++)
        if (*s->node->output[i])
            name_scope_withhold(s->im, s->scope, s->node->output[i],
                                arena_printf(s->im->tmp, "%s gives in training only, by opset %d", s->where, s->opset));
    if (s->node->n_output > first)
        s->node->n_output = first;
}

char *upgrade_helper(struct upgrade *s, const char *op, const char *suffix, size_t nin, char **in, const char *attr, int64_t value)
{
    proto *node = NEW(s->im->tmp, proto);
    onnx__node_proto__init(node);
    char *out = name_scope_fresh(s->im, upgrade_display_name(s, suffix)), **outputs = NEWN(s->im->tmp, char *, 1);
    outputs[0] = out;
    node->op_type = arena_strdup(s->im->tmp, op);
    node->name = arena_printf(s->im->tmp, "%s_%s", proto_text_or(s->node->name, ""), suffix);
    node->n_metadata_props = s->node->n_metadata_props;
    node->metadata_props = s->node->metadata_props;
    node->n_input = nin;
    node->input = in;
    node->n_output = 1;
    node->output = outputs;
    struct upgrade inner = *s;
    inner.node = node;
    if (attr)
        upgrade_add_int(&inner, attr, value);
    read_plain_node(s->im, s->scope, node, FORM_OPSET);
    return out;
}
