/* Helpers of all importers: unique names of nodes, constants and copies. */
#include "onnx/read/read.h"
#include "op/op.h"

/* base, with a suffix if another node has that name. The index has the last suffix that was tried for a name. */
static char *import_unique_name(struct import *im, char *base)
{
    char *name = base;
    struct name_index *names = &im->node_names;
    int suffix = name_index_find(names, base);
    while (name_index_find(names, name) >= 0)
        name = arena_printf(im->arena, "%s_%d", base, ++suffix);
    if (name != base)
        name_index_put(im->tmp, names, base, suffix);
    name_index_put(im->tmp, names, name, 1);
    return name;
}

char *import_node_name(struct import *im, const struct name_scope *scope, const Onnx__NodeProto *node)
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
