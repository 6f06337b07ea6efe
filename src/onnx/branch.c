/* If: both branches are imported where the node stands, each node under a guard; the shapes pass keeps the branch that is taken.
 *
 * A branch is a scope of its own that sees the names around it. The node itself becomes tpc::If, whose operands are the condition, then
 * the results of either branch. */
#include <string.h>

#include "onnx/private.h"

static void define_initializers(struct import *im, struct scope *scope, const Onnx__GraphProto *g, const char *where)
{
    for (size_t i = 0; i < g->n_initializer; i++) {
        const char *name = text_or(g->initializer[i]->name, "");
        struct value *value = scope_define(im, scope, name, where);
        import_constant(im, value, tensor_constant(im, g->initializer[i], arena_printf(im->tmp, "initializer '%s'", name)));
    }
}

/* Names a branch defines hide those around it, also before they are defined. */
static void announce_results(struct import *im, struct scope *scope, const Onnx__GraphProto *g)
{
    for (size_t i = 0; i < g->n_node; i++)
        for (size_t k = 0; k < g->node[i]->n_output; k++)
            if (*g->node[i]->output[k]) scope_announce(im, scope, g->node[i]->output[k]);
}

static void import_branch(struct import *im, struct scope *outer, const Onnx__GraphProto *g, struct guard *guard, const char *where, struct value **results)
{
    struct scope scope = *outer;
    scope.prefix = arena_printf(im->tmp, "%s%s/%s/", outer->prefix, guard->node, guard->when ? "then" : "else");
    scope.names = NULL;
    scope.outer = outer;
    if (g->n_input) fail("%s: %s has a branch with %zu inputs, expected none", im->path, where, g->n_input);
    const struct guard *before = im->guard;
    im->guard = guard;
    announce_results(im, &scope, g);
    define_initializers(im, &scope, g, where);
    for (size_t i = 0; i < g->n_node; i++) import_node(im, &scope, g->node[i]);
    for (size_t i = 0; i < g->n_output; i++) results[i] = scope_read(im, &scope, text_or(g->output[i]->name, ""), where);
    scope_close(im, &scope);
    im->guard = before;
}

static const Onnx__GraphProto *branch_of(const struct import *im, const Onnx__NodeProto *node, const char *name, const char *where)
{
    const Onnx__AttributeProto *a = find_attribute(node, name);
    if (!a || !a->g) fail("%s: %s lacks its %s", im->path, where, name);
    if (a->g->n_output != node->n_output) fail("%s: %s has %zu results but its %s has %zu", im->path, where, node->n_output, name, a->g->n_output);
    return a->g;
}

void import_if(struct import *im, struct scope *scope, const Onnx__NodeProto *from)
{
    const char *where = node_label(im, from);
    if (from->n_input != 1) fail("%s: %s has %zu operands, expected 1", im->path, where, from->n_input);
    const Onnx__GraphProto *branch[2] = { branch_of(im, from, "then_branch", where), branch_of(im, from, "else_branch", where) };
    size_t n = from->n_output;
    char *name = unique_node_name(im, scope, from);
    struct value **in = NEWN(im->arena, struct value *, 2 * n + 1);
    in[0] = scope_read(im, scope, from->input[0], where);
    for (int k = 0; k < 2; k++) {
        struct guard *guard = NEW(im->arena, struct guard);
        *guard = (struct guard){ .condition = in[0], .when = k == 0, .node = name, .outer = im->guard };
        import_branch(im, scope, branch[k], guard, where, in + 1 + (size_t)k * n);
    }
    struct node *node = graph_node(im->graph, op_find("tpc", "If"), name, (int)(2 * n + 1), in, (int)n);
    for (size_t i = 0; i < n; i++)
        if (*from->output[i]) node_output(im->graph, node, (int)i, scope_define(im, scope, from->output[i], where));
    node->opset = FORM_OPSET;
    node->guard = im->guard;
    graph_append(im->graph, node);
}
