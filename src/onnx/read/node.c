/* One node of the file to one node of the IR, or to a constant. */
#include "onnx/private.h"

#include <string.h>

const char *node_label(struct import *im, const Onnx__NodeProto *node)
{
    const char *name = text_or(node->name, "");
    if (!*name && node->n_output)
        name = node->output[0];
    return arena_printf(im->tmp, "node '%s' (%s)", name, text_or(node->op_type, ""));
}

/* A name no other node has. */
char *unique_name(struct import *im, char *base)
{
    char *name = base;
    for (int i = 2; keyed_find(im->node_names, name); i++)
        name = arena_printf(im->arena, "%s_%d", base, i);
    keyed_add(im->tmp, &im->node_names, name, im);
    return name;
}

char *node_file_name(struct arena *arena, const char *own, const char *op_type, const char *out)
{
    return *own ? arena_strdup(arena, own) : arena_printf(arena, "%s_%s", op_type, (unsigned char)*out > 1 ? out : "node");
}

char *unique_node_name(struct import *im, const struct scope *scope, const Onnx__NodeProto *node)
{
    const char *name = node_file_name(im->tmp, text_or(node->name, ""), node->op_type, node->n_output ? node->output[0] : "");
    return unique_name(im, arena_printf(im->arena, "%s%s", scope->prefix, name));
}

/* ---- attribute references of function bodies ---- */

static Onnx__AttributeProto *argument(const struct scope *scope, const char *name)
{
    for (size_t i = 0; i < scope->nargument; i++)
        if (!strcmp(text_or(scope->argument[i]->name, ""), name))
            return scope->argument[i];
    return NULL;
}

static bool is_parameter(const Onnx__FunctionProto *f, const char *name)
{
    for (size_t i = 0; i < f->n_attribute; i++)
        if (!strcmp(f->attribute[i], name))
            return true;
    for (size_t i = 0; i < f->n_attribute_proto; i++)
        if (!strcmp(text_or(f->attribute_proto[i]->name, ""), name))
            return true;
    return false;
}

/* The attribute a reference stands for, under its own name; NULL: the call leaves it out. */
static Onnx__AttributeProto *resolve(struct import *im, const struct scope *scope, const Onnx__NodeProto *node, Onnx__AttributeProto *a)
{
    if (!a->ref_attr_name || !*a->ref_attr_name)
        return a;
    if (!scope->function || !is_parameter(scope->function, a->ref_attr_name))
        fail("%s: %s refers to attribute '%s', which its function does not have", im->path, node_label(im, node), a->ref_attr_name);
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

/* ---- Constant nodes ---- */

static struct constant *vector_constant(struct import *im, enum dtype dtype, int rank, size_t n, const void *data)
{
    struct constant *c = NEW(im->arena, struct constant);
    size_t bytes = n * dtype_size(dtype);
    void *copy = arena_alloc(im->arena, bytes ? bytes : 1);
    if (bytes)
        memcpy(copy, data, bytes);
    *c = (struct constant){.dtype = dtype, .rank = rank, .dim = {rank ? (int64_t)n : 0}, .bytes = (int64_t)bytes, .data = copy};
    return c;
}

static struct constant *read_constant(struct import *im, const char *where, const Onnx__AttributeProto *a)
{
    const char *name = text_or(a->name, "");
    if (!strcmp(name, "value") && a->t)
        return tensor_constant(im, a->t, arena_printf(im->tmp, "the value of %s", where));
    if (!strcmp(name, "value_int"))
        return vector_constant(im, DT_I64, 0, 1, &a->i);
    if (!strcmp(name, "value_float"))
        return vector_constant(im, DT_F32, 0, 1, &a->f);
    if (!strcmp(name, "value_ints"))
        return vector_constant(im, DT_I64, 1, a->n_ints, a->ints);
    if (!strcmp(name, "value_floats"))
        return vector_constant(im, DT_F32, 1, a->n_floats, a->floats);
    fail("%s: %s gives its value as '%s', which tpc does not handle", im->path, where, name);
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
    struct node *node = graph_node(im->graph, op_find("", "Identity"), unique_name(im, arena_printf(im->arena, "%s_copy", name)), 1, &from,
                                   1);
    node_output(im->graph, node, 0, to);
    node->opset = FORM_OPSET;
    graph_append(im->graph, node);
}

static void constant_node(struct import *im, struct scope *scope, const Onnx__NodeProto *node)
{
    const char *where = node_label(im, node);
    if (node->n_attribute != 1)
        fail("%s: %s has %zu attributes, expected one value", im->path, where, node->n_attribute);
    if (node->n_output != 1 || !*node->output[0])
        fail("%s: %s has %zu outputs, expected 1", im->path, where, node->n_output);
    struct value *value = scope_define(im, scope, node->output[0], where);
    import_constant(im, value, read_constant(im, where, node->attribute[0]));
}

/* ---- other nodes ---- */

static size_t trimmed(size_t n, char **list)
{
    while (n && !*list[n - 1])
        n--;
    return n;
}

static void check_count(const struct import *im, const char *where, const char *what, size_t n, int min, int max)
{
    if (n > 65535 || (int)n < min || (max >= 0 && (int)n > max))
        fail(max < 0          ? "%s: %s has %zu %s, expected %d or more"
                 : min == max ? "%s: %s has %zu %s, expected %d"
                              : "%s: %s has %zu %s, expected %d to %d",
             im->path, where, n, what, min, max);
}

static void check_operands(const struct import *im, const char *where, const struct op *op, size_t n, char **in)
{
    check_count(im, where, "operands", n, op->min_in, op->max_in);
    for (size_t i = 0; i < n; i++) {
        int at = (int)i < op->nin ? (int)i : op->nin - 1;
        if (!*in[i] && !op->in[at].optional)
            fail("%s: %s lacks its operand '%s'", im->path, where, op->in[at].name);
    }
}

static void read_operands(struct import *im, struct scope *scope, const Onnx__NodeProto *from, struct node *node, const char *where)
{
    size_t n = trimmed(from->n_input, from->input);
    if (node->op)
        check_operands(im, where, node->op, n, from->input);
    else
        check_count(im, where, "operands", n, 0, -1);
    node->nin = (int)n;
    node->in = NEWN(im->arena, struct value *, n + 1);
    for (size_t i = 0; i < n; i++)
        if (*from->input[i])
            node->in[i] = scope_read(im, scope, from->input[i], where);
}

/* What an op without a row produces is what the file declares. */
static void declare(struct import *im, struct value *value)
{
    const Onnx__ValueInfoProto *info = keyed_find(im->declared, value->name);
    struct type type;
    if (info && declared_type(im, info, &type))
        value->type = type;
}

/* A result that the op always has gets a value even where the file gives it no name. */
static struct value *unnamed_result(struct import *im, const struct node *node, size_t i)
{
    static const struct type unknown;
    if (!node->op || node->op->out[(int)i < node->op->nout ? (int)i : node->op->nout - 1].optional)
        return NULL;
    return graph_value(im->graph, arena_printf(im->arena, "%s_unused%zu", node->name, i), &unknown);
}

static void define_results(struct import *im, struct scope *scope, const Onnx__NodeProto *from, struct node *node, const char *where)
{
    size_t n = trimmed(from->n_output, from->output);
    check_count(im, where, "results", n, node->op ? node->op->min_out : 0, node->op ? node->op->max_out : -1);
    node->nout = (int)n;
    node->out = NEWN(im->arena, struct value *, n + 1);
    for (size_t i = 0; i < n; i++) {
        struct value *value = *from->output[i] ? scope_define(im, scope, from->output[i], where) : unnamed_result(im, node, i);
        node->out[i] = value;
        if (!value)
            continue;
        value->producer = node;
        value->index = (int)i;
        if (!node->op)
            declare(im, value);
    }
}

void import_plain(struct import *im, struct scope *scope, const Onnx__NodeProto *from, int opset)
{
    const char *domain = plain_domain(from->domain), *where = node_label(im, from);
    if (!*domain && !strcmp(from->op_type, "Constant")) {
        constant_node(im, scope, from);
        return;
    }
    struct node *node = NEW(im->arena, struct node);
    node->op = op_find(domain, from->op_type);
    node->optype = arena_strdup(im->arena, from->op_type);
    node->domain = arena_strdup(im->arena, domain);
    node->name = unique_node_name(im, scope, from);
    import_module(im, from, node->name);
    node->opset = opset;
    read_operands(im, scope, from, node, where);
    bool bodies = node->op && op_has_bodies(node->op);
    if (!bodies && operands_untyped(node->nin, node->in))
        node->op = NULL;
    if (node->op)
        decode_attributes(im, from, node);
    else
        raw_attributes(im, scope, from, node);
    if (bodies)
        import_bodies(im, scope, from, node);
    define_results(im, scope, from, node, where);
    graph_append(im->graph, node);
}

/* Names that begin with a control character are ours. */
static void check_names(struct import *im, const Onnx__NodeProto *node, size_t n, char **list)
{
    for (size_t i = 0; i < n; i++)
        if (*list[i] && (unsigned char)*list[i] < ' ')
            fail("%s: a node (%s) has an operand or result whose name begins with a control character", im->path, node->op_type);
}

void import_node(struct import *im, struct scope *scope, const Onnx__NodeProto *from)
{
    if (!from->op_type || !*from->op_type)
        fail("%s: %s has no op_type", im->path, node_label(im, from));
    if (scope->function && ++im->inlined > MAX_INLINED)
        fail("%s: its functions have more than %d nodes when inlined", im->path, MAX_INLINED);
    check_names(im, from, from->n_input, from->input);
    check_names(im, from, from->n_output, from->output);
    if (!scope->caller && !scope->outer)
        import_shardings(im, from);
    const char *domain = plain_domain(from->domain);
    const Onnx__FunctionProto *function = op_find(domain, from->op_type) ? NULL : function_find(im, from);
    Onnx__NodeProto *node = resolve_attributes(im, scope, from);
    drop_absent(im, scope, node);
    if (function) {
        inline_call(im, scope, node, function);
        return;
    }
    int opset = scope_opset(im, scope, domain, node_label(im, from));
    if (!*domain && opset < OLDEST_OPSET)
        fail("%s: %s is of opset %d, expected %d or later", im->path, node_label(im, from), opset, OLDEST_OPSET);
    if (!*domain && opset > NEWEST_OPSET)
        fail("%s: %s is of opset %d, tpc knows opsets up to %d", im->path, node_label(im, from), opset, NEWEST_OPSET);
    upgrade_node(im, scope, node, opset);
    compose_node(im, scope, node);
    import_plain(im, scope, node, opset);
}
