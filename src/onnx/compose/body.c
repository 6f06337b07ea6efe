/* The body of an attribute as a part of the graph around it: its nodes are read at the node's position, as for a function. */
#include "onnx/compose/compose.h"

#include <string.h>

static const char *body_name(const Onnx__ValueInfoProto *info)
{
    return proto_text_or(info->name, "");
}

static bool defines(const Onnx__GraphProto *body, const char *name)
{
    for (size_t i = 0; i < body->n_input; i++)
        if (strcmp(body_name(body->input[i]), name) == 0)
            return true;
    for (size_t i = 0; i < body->n_initializer; i++)
        if (strcmp(proto_text_or(body->initializer[i]->name, ""), name) == 0)
            return true;
    for (size_t i = 0; i < body->n_sparse_initializer; i++)
        if (body->sparse_initializer[i]->values && strcmp(proto_text_or(body->sparse_initializer[i]->values->name, ""), name) == 0)
            return true;
    for (size_t i = 0; i < body->n_node; i++)
        for (size_t k = 0; k < body->node[i]->n_output; k++)
            if (strcmp(body->node[i]->output[k], name) == 0)
                return true;
    return false;
}

/* A name of the graph around it means the same inside. */
static void bind_outer(struct composer *c, struct name_scope *inner, const Onnx__GraphProto *body, const char *name)
{
    if (*name && !defines(body, name) && !name_scope_knows(inner, name))
        name_scope_bind(c->im, inner, name, name_scope_read(c->im, c->scope, name, c->where));
}

static void bind_inputs(struct composer *c, struct name_scope *inner, const Onnx__GraphProto *body, const char *what, size_t n,
                        char *const *in)
{
    if (body->n_input != n)
        fail("%s: %s: %s has %zu inputs, expected %zu", c->im->path, c->where, what, body->n_input, n);
    for (size_t i = 0; i < n; i++)
        name_scope_bind(c->im, inner, body_name(body->input[i]), name_scope_read(c->im, c->scope, in[i], c->where));
    for (size_t i = 0; i < body->n_node; i++)
        for (size_t k = 0; k < body->node[i]->n_input; k++)
            bind_outer(c, inner, body, body->node[i]->input[k]);
    for (size_t i = 0; i < body->n_output; i++)
        bind_outer(c, inner, body, body_name(body->output[i]));
}

static void define_initializers(struct composer *c, struct name_scope *inner, const Onnx__GraphProto *body)
{
    for (size_t i = 0; i < body->n_initializer; i++) {
        const char *what = arena_printf(c->im->tmp, "initializer '%s'", proto_text_or(body->initializer[i]->name, ""));
        import_constant(c->im, name_scope_define(c->im, inner, proto_text_or(body->initializer[i]->name, ""), what),
                        tensor_constant(c->im, body->initializer[i], what));
    }
    sparse_initializers(c->im, inner, body);
}

void compose_body(struct composer *c, const char *attribute, size_t nin, char *const *in, size_t nout, char **out)
{
    const Onnx__AttributeProto *a = proto_attribute(c->node, attribute);
    if (!a || !a->g || a->g->n_output != nout)
        fail("%s: %s lacks its body '%s', or that has another number of results than %zu", c->im->path, c->where, attribute, nout);
    if (++c->im->depth > DEEPEST_BODY)
        fail("%s: %s: bodies are nested more than %d deep", c->im->path, c->where, DEEPEST_BODY);
    if (a->g->n_node >= MAX_INLINED || (c->im->inlined += 1 + (int)a->g->n_node) > MAX_INLINED)
        fail("%s: %s: its bodies have more than %d nodes when inlined", c->im->path, c->where, MAX_INLINED);
    struct name_scope inner = *c->scope;
    inner.prefix = arena_printf(c->im->tmp, "%s%s/%d/", c->scope->prefix, attribute, c->im->fresh++);
    inner.names = NULL;
    inner.outer = NULL;
    inner.caller = c->scope;
    bind_inputs(c, &inner, a->g, attribute, nin, in);
    define_initializers(c, &inner, a->g);
    for (size_t i = 0; i < a->g->n_node; i++)
        c->im->node(c->im, &inner, a->g->node[i]);
    for (size_t i = 0; i < nout; i++) {
        out[i] = name_scope_fresh(c->im, attribute);
        name_scope_bind(c->im, c->scope, out[i], name_scope_read(c->im, &inner, body_name(a->g->output[i]), c->where));
    }
    name_scope_close(c->im, &inner);
    c->im->depth--;
}
