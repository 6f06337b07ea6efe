/* Model-local functions, replaced by their bodies.
 *
 * A call opens a name scope in which parameters stand for the caller's values and results for the call's outputs. Attribute references are
 * resolved against the call, then against the function's defaults. A function may call others, but not itself. An op that has a row is not
 * replaced. */
#include "onnx/read/read.h"

#include <string.h>

#define MAX_CALLS 100

static const char *key(struct arena *arena, const char *domain, const char *name, const char *overload)
{
    return arena_printf(arena, "%s\n%s\n%s", proto_domain(domain), proto_text_or(name, ""), proto_text_or(overload, ""));
}

const Onnx__FunctionProto *inline_find(const struct import *im, const Onnx__NodeProto *node)
{
    if (!im->functions)
        return NULL;
    return text_table_find(im->functions, key(im->tmp, node->domain, node->op_type, node->overload));
}

void inline_collect(struct import *im)
{
    for (size_t i = 0; i < im->model->n_functions; i++) {
        const Onnx__FunctionProto *f = im->model->functions[i];
        const char *text = key(im->tmp, f->domain, f->name, f->overload);
        if (text_table_find(im->functions, text))
            fail("%s: function '%s' of domain '%s' is defined twice", im->path, proto_text_or(f->name, ""), proto_text_or(f->domain, ""));
        text_table_add(im->tmp, &im->functions, text, f);
    }
}

static void check_depth(const struct import *im, const struct name_scope *caller, const Onnx__FunctionProto *f)
{
    int depth = 0;
    for (const struct name_scope *at = caller; at; at = at->caller, depth++)
        if (at->function == f)
            fail("%s: function '%s' calls itself", im->path, proto_text_or(f->name, ""));
    if (depth > MAX_CALLS)
        fail("%s: function calls are nested more than %d deep", im->path, MAX_CALLS);
}

/* The call's attributes, then the defaults it leaves out. */
static void collect_arguments(struct import *im, struct name_scope *scope, const Onnx__NodeProto *call, const Onnx__FunctionProto *f)
{
    scope->argument = NEWN(im->tmp, Onnx__AttributeProto *, call->n_attribute + f->n_attribute_proto + 1);
    for (size_t i = 0; i < call->n_attribute; i++)
        scope->argument[scope->nargument++] = call->attribute[i];
    for (size_t i = 0; i < f->n_attribute_proto; i++)
        if (!proto_attribute(call, proto_text_or(f->attribute_proto[i]->name, "")))
            scope->argument[scope->nargument++] = f->attribute_proto[i];
}

static void bind_parameters(struct import *im, struct name_scope *caller, struct name_scope *scope, const Onnx__NodeProto *call,
                            const Onnx__FunctionProto *f, const char *where)
{
    if (call->n_input > f->n_input || call->n_output > f->n_output)
        fail("%s: %s has %zu operands and %zu results, its function has %zu and %zu", im->path, where, call->n_input, call->n_output,
             f->n_input, f->n_output);
    for (size_t i = 0; i < call->n_input; i++)
        if (*call->input[i])
            name_scope_bind(im, scope, f->input[i], name_scope_read(im, caller, call->input[i], where));
}

/* A result stands for the caller's output, which the body then defines. Except for a parameter, or a result given twice. */
static void bind_results(struct import *im, struct name_scope *caller, struct name_scope *scope, const Onnx__NodeProto *call,
                         const Onnx__FunctionProto *f, const char *where, bool *bound)
{
    for (size_t i = 0; i < call->n_output; i++) {
        if (!*call->output[i])
            continue;
        bound[i] = !name_scope_knows(scope, f->output[i]);
        if (bound[i])
            name_scope_promise(im, scope, f->output[i], name_scope_define(im, caller, call->output[i], where), where);
    }
}

static void return_results(struct import *im, struct name_scope *caller, struct name_scope *scope, const Onnx__NodeProto *call,
                           const Onnx__FunctionProto *f, const char *where, const bool *bound)
{
    for (size_t i = 0; i < call->n_output; i++) {
        if (!*call->output[i])
            continue;
        struct value *value = name_scope_find(scope, f->output[i]);
        if (!value)
            fail("%s: function '%s' does not produce its result '%s'", im->path, proto_text_or(f->name, ""), f->output[i]);
        if (!bound[i])
            import_copy(im, arena_printf(im->tmp, "%s%s", caller->prefix, call->output[i]), value,
                        name_scope_define(im, caller, call->output[i], where));
    }
}

void inline_call(struct import *im, struct name_scope *caller, const Onnx__NodeProto *call, const Onnx__FunctionProto *f)
{
    const char *where = proto_node_label(im->tmp, call);
    check_depth(im, caller, f);
    const char *name = import_node_name(im, caller, call);
    read_module(im, call, name);
    struct name_scope scope = {.prefix = arena_printf(im->tmp, "%s/", name),
                               .nopset = f->n_opset_import,
                               .opset = f->opset_import,
                               .function = f,
                               .call = call,
                               .caller = caller,
                               .graph = im->graph};
    collect_arguments(im, &scope, call, f);
    bind_parameters(im, caller, &scope, call, f, where);
    bool *bound = NEWN(im->tmp, bool, call->n_output + 1);
    bind_results(im, caller, &scope, call, f, where, bound);
    for (size_t i = 0; i < f->n_node; i++)
        im->node(im, &scope, f->node[i]);
    return_results(im, caller, &scope, call, f, where, bound);
    name_scope_close(im, &scope);
}
