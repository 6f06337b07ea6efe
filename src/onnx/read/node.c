/* One node of the file: attribute references are resolved, functions inlined, old and composed forms rewritten. */
#include "onnx/read/read.h"
#include "op/op.h"

#include <string.h>

/* ---- attribute references of function bodies ---- */

static Onnx__AttributeProto *argument(const struct scope *scope, const char *name)
{
    for (size_t i = 0; i < scope->nargument; i++)
        if (strcmp(proto_text_or(scope->argument[i]->name, ""), name) == 0)
            return scope->argument[i];
    return NULL;
}

static bool is_parameter(const Onnx__FunctionProto *f, const char *name)
{
    for (size_t i = 0; i < f->n_attribute; i++)
        if (strcmp(f->attribute[i], name) == 0)
            return true;
    for (size_t i = 0; i < f->n_attribute_proto; i++)
        if (strcmp(proto_text_or(f->attribute_proto[i]->name, ""), name) == 0)
            return true;
    return false;
}

/* The attribute a reference stands for, under its own name; NULL: the call leaves it out. */
static Onnx__AttributeProto *resolve(struct import *im, const struct scope *scope, const Onnx__NodeProto *node, Onnx__AttributeProto *a)
{
    if (!a->ref_attr_name || !*a->ref_attr_name)
        return a;
    if (!scope->function || !is_parameter(scope->function, a->ref_attr_name))
        fail("%s: %s refers to attribute '%s', which its function does not have", im->path, proto_node_label(im->tmp, node),
             a->ref_attr_name);
    const Onnx__AttributeProto *given = argument(scope, a->ref_attr_name);
    if (!given)
        return NULL;
    Onnx__AttributeProto *copy = NEW(im->tmp, Onnx__AttributeProto);
    *copy = *given;
    copy->name = a->name;
    copy->ref_attr_name = NULL;
    return copy;
}

/* A shallow copy whose attributes hold no reference. */
static Onnx__NodeProto *resolve_attributes(struct import *im, const struct scope *scope, const Onnx__NodeProto *node)
{
    Onnx__NodeProto *copy = NEW(im->tmp, Onnx__NodeProto);
    *copy = *node;
    copy->attribute = NEWN(im->tmp, Onnx__AttributeProto *, node->n_attribute + 1);
    copy->n_attribute = 0;
    for (size_t i = 0; i < node->n_attribute; i++) {
        Onnx__AttributeProto *a = resolve(im, scope, node, node->attribute[i]);
        if (a)
            copy->attribute[copy->n_attribute++] = a;
    }
    return copy;
}

/* An operand for which a call gives nothing is absent in the body of its function, too. */
static void drop_absent(struct import *im, const struct scope *scope, Onnx__NodeProto *node)
{
    char **in = NEWN(im->tmp, char *, node->n_input + 1);
    for (size_t i = 0; i < node->n_input; i++)
        in[i] = *node->input[i] && scope_lacks(scope, node->input[i]) ? arena_strdup(im->tmp, "") : node->input[i];
    node->input = in;
}

/* Names that begin with a control character are ours. */
static void check_names(struct import *im, const Onnx__NodeProto *node, size_t n, char **list)
{
    for (size_t i = 0; i < n && node != im->own; i++)
        if (*list[i] && (unsigned char)*list[i] < ' ')
            fail("%s: a node (%s) has an operand or result whose name begins with a control character", im->path, node->op_type);
}

void read_node(struct import *im, struct scope *scope, const Onnx__NodeProto *from)
{
    if (!from->op_type || !*from->op_type)
        fail("%s: %s has no op_type", im->path, proto_node_label(im->tmp, from));
    if (scope->function && ++im->inlined > MAX_INLINED)
        fail("%s: its functions have more than %d nodes when inlined", im->path, MAX_INLINED);
    check_names(im, from, from->n_input, from->input);
    check_names(im, from, from->n_output, from->output);
    if (!scope->caller && !scope->outer)
        read_shardings(im, from);
    const char *domain = proto_domain(from->domain);
    const Onnx__FunctionProto *function = op_find(domain, from->op_type) ? NULL : inline_find(im, from);
    Onnx__NodeProto *node = resolve_attributes(im, scope, from);
    drop_absent(im, scope, node);
    if (function) {
        inline_call(im, scope, node, function);
        return;
    }
    int opset = scope_opset(im, scope, domain, proto_node_label(im->tmp, from));
    if (!*domain && opset > NEWEST_OPSET)
        fail("%s: %s is of opset %d, tpc knows opsets up to %d", im->path, proto_node_label(im->tmp, from), opset, NEWEST_OPSET);
    upgrade_node(im, scope, node, opset);
    compose_node(im, scope, node);
    read_plain_node(im, scope, node, opset);
}
