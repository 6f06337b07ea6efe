/* Subgraphs: the graphs of If, Loop and Scan become graphs of the IR.
 *
 * A subgraph is a name scope inside the outer one. An outer name that it reads becomes one of its inputs, after the file's, and an operand
 * of the node: a capture. A constant that may be a weight moves outwards until it is in the main graph, and is captured from there. An
 * output that no node of the subgraph makes gets an Identity. */
#include "onnx/read/read.h"

static void define_initializers(struct import *im, struct name_scope *scope, const Onnx__GraphProto *g, const char *where)
{
    for (size_t i = 0; i < g->n_initializer; i++) {
        const char *name = proto_text_or(g->initializer[i]->name, "");
        struct value *value = name_scope_define(im, scope, name, where);
        import_constant(im, value, tensor_constant(im, g->initializer[i], arena_printf(im->tmp, "initializer '%s'", name)));
    }
    sparse_initializers(im, scope, g);
}

static void define_inputs(struct import *im, struct name_scope *scope, const Onnx__GraphProto *g, const char *where)
{
    for (size_t i = 0; i < g->n_input; i++) {
        struct value *value = name_scope_define(im, scope, proto_text_or(g->input[i]->name, ""), where);
        declared_check_tensor(im, g->input[i], where);
        (void)declared_type(im, g->input[i], &value->type);
        VEC_PUSH(im->arena, &im->graph->inputs, value);
    }
}

/* A body's names hide outer ones, even before they are defined. */
static void announce_results(struct import *im, struct name_scope *scope, const Onnx__GraphProto *g)
{
    for (size_t i = 0; i < g->n_node; i++)
        for (size_t k = 0; k < g->node[i]->n_output; k++)
            if (*g->node[i]->output[k])
                name_scope_announce(im, scope, g->node[i]->output[k]);
}

static struct value *copy_of(struct import *im, struct value *v)
{
    static const struct type unknown;
    struct value *copy = graph_value(im->graph, v->name, &unknown);
    import_copy(im, v->name, v, copy);
    return copy;
}

static void read_outputs(struct import *im, struct name_scope *scope, const Onnx__GraphProto *g, const char *where)
{
    struct graph *body = im->graph;
    for (size_t i = 0; i < g->n_output; i++) {
        declared_check_tensor(im, g->output[i], where);
        struct value *v = name_scope_read(im, scope, proto_text_or(g->output[i]->name, ""), where);
        graph_add_output(body, v->producer && !v->output ? v : copy_of(im, v));
    }
}

static void move_weights(struct import *im, struct name_scope *scope, const char *owner)
{
    struct graph *body = scope->graph, *around = scope->outer->graph;
    for (int i = 0; i < body->values.n; i++) {
        struct value *inside = body->values.at[i];
        if (!inside->constant || inside->constant->bytes < WEIGHT_BYTES)
            continue;
        struct value *moved = graph_value(around, arena_printf(im->arena, "%s/%s", owner, inside->name), NULL);
        moved->type = (struct type){.dtype = inside->constant->dtype, .rank = inside->constant->rank};
        for (int d = 0; d < moved->type.rank; d++)
            moved->type.dim[d] = dim_int(around->alg, inside->constant->dim[d]);
        moved->constant = inside->constant;
        moved->constant->origin = moved->name;
        inside->constant = NULL;
        name_scope_add_capture(im, scope, moved, inside);
    }
}

static struct graph *new_body(struct import *im, const char *name)
{
    struct graph *body = graph_new(im->arena, alg_new(im->arena), name);
    body->path = im->path;
    body->opset = im->graph->opset;
    return body;
}

static void import_graph(struct import *im, struct name_scope *scope, const Onnx__GraphProto *g, const char *where)
{
    announce_results(im, scope, g);
    define_initializers(im, scope, g, where);
    define_inputs(im, scope, g, where);
    for (size_t i = 0; i < g->n_node; i++)
        im->node(im, scope, g->node[i]);
    read_outputs(im, scope, g, where);
    name_scope_close(im, scope);
    graph_sort_read(im->graph);
}

static void append_operands(struct import *im, struct node *node, int n, struct value *const *captured)
{
    struct value **in = NEWN(im->arena, struct value *, node->nin + n + 1);
    for (int i = 0; i < node->nin + n; i++)
        in[i] = i < node->nin ? node->in[i] : captured[i - node->nin];
    node->in = in;
    node->nin += n;
}

static void import_body(struct import *im, struct name_scope *outer, const Onnx__GraphProto *g, struct node *node, struct attr *attr)
{
    struct graph *around = im->graph;
    struct name_scope scope = *outer;
    const char *where = arena_printf(im->tmp, "%s of node '%s' (%s)", attr->name, node->name, node->optype);
    if (++im->depth > DEEPEST_BODY)
        fail("%s: %s: bodies are nested more than %d deep", im->path, where, DEEPEST_BODY);
    attr->graph = scope.graph = new_body(im, attr->name);
    scope.prefix = "";
    scope.names = NULL;
    scope.outer = outer;
    scope.captured.n = scope.captured.cap = 0;
    im->graph = scope.graph;
    im->alg = im->graph->alg;
    import_graph(im, &scope, g, where);
    im->graph = around;
    im->alg = around->alg;
    im->depth--;
    move_weights(im, &scope, arena_printf(im->tmp, "%s/%s", node->name, attr->name));
    append_operands(im, node, scope.captured.n, scope.captured.at);
}

void read_bodies(struct import *im, struct name_scope *scope, const Onnx__NodeProto *from, struct node *node)
{
    while (node->nin < node->op->nin - 1)
        append_operands(im, node, 1, &(struct value *){NULL});
    for (int k = 0; k < node_bodies(node); k++) {
        const Onnx__AttributeProto *a = proto_attribute(from, node_body(node, k)->name);
        if (!a || !a->g)
            fail("%s: %s lacks its %s", im->path, proto_node_label(im->tmp, from), node_body(node, k)->name);
        import_body(im, scope, a->g, node, node_body(node, k));
    }
}
