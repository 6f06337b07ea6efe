/* What all importers make: unique names of nodes, constants and copies. */
#include "onnx/read/read.h"
#include "op/op.h"

/* base, with a suffix if another node has that name. */
static char *import_unique_name(struct import *im, char *base)
{
    char *name = base;
    for (int i = 2; text_table_find(im->node_names, name); i++)
        name = arena_printf(im->arena, "%s_%d", base, i);
    text_table_add(im->tmp, &im->node_names, name, im);
    return name;
}

char *import_node_name(struct import *im, const struct scope *scope, const Onnx__NodeProto *node)
{
    const char *name = proto_node_name(im->tmp, proto_text_or(node->name, ""), node->op_type, node->n_output ? node->output[0] : "");
    return import_unique_name(im, arena_printf(im->arena, "%s%s", scope->prefix, name));
}

void import_constant(struct import *im, struct value *value, struct constant *c)
{
    value->constant = c;
    c->origin = value->name;
    value->type = (struct type){.dtype = c->dtype, .rank = c->rank};
    for (int i = 0; i < c->rank; i++)
        value->type.dim[i] = dim_int(im->alg, c->dim[i]);
}

void import_copy(struct import *im, const char *name, struct value *from, struct value *to)
{
    struct node *node = graph_node(im->graph, op_find("", "Identity"), import_unique_name(im, arena_printf(im->arena, "%s_copy", name)), 1,
                                   &from, 1);
    node_output(im->graph, node, 0, to);
    node->opset = FORM_OPSET;
    graph_append(im->graph, node);
}
