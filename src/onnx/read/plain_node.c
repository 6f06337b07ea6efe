/* One node whose form matches its row: its operands, attributes, subgraphs and results. */
#include "onnx/read/read.h"
#include "op/op.h"

#include <string.h>

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

static struct constant *strings_constant(struct import *im, const char *where, int rank, size_t n, const ProtobufCBinaryData *text)
{
    int64_t *number = NEWN(im->tmp, int64_t, n + 1);
    for (size_t i = 0; i < n; i++)
        number[i] = tensor_string(&text[i], im->path, where, i);
    return vector_constant(im, DT_STRING, rank, n, number);
}

static struct constant *read_constant(struct import *im, const char *where, const Onnx__AttributeProto *a)
{
    const char *name = proto_text_or(a->name, "");
    if (strcmp(name, "value") == 0 && a->t)
        return tensor_constant(im, a->t, arena_printf(im->tmp, "the value of %s", where));
    if (strcmp(name, "sparse_value") == 0 && a->sparse_tensor)
        return sparse_constant(im, a->sparse_tensor, arena_printf(im->tmp, "the value of %s", where));
    if (strcmp(name, "value_int") == 0)
        return vector_constant(im, DT_I64, 0, 1, &a->i);
    if (strcmp(name, "value_float") == 0)
        return vector_constant(im, DT_F32, 0, 1, &a->f);
    if (strcmp(name, "value_ints") == 0)
        return vector_constant(im, DT_I64, 1, a->n_ints, a->ints);
    if (strcmp(name, "value_floats") == 0)
        return vector_constant(im, DT_F32, 1, a->n_floats, a->floats);
    if (strcmp(name, "value_string") == 0)
        return strings_constant(im, where, 0, 1, &a->s);
    if (strcmp(name, "value_strings") == 0)
        return strings_constant(im, where, 1, a->n_strings, a->strings);
    fail("%s: %s gives its value as '%s', which tpc does not handle", im->path, where, name);
}

static void constant_node(struct import *im, struct name_scope *scope, const Onnx__NodeProto *node)
{
    const char *where = proto_node_label(im->tmp, node);
    if (node->n_attribute != 1)
        fail("%s: %s has %zu attributes, expected one value", im->path, where, node->n_attribute);
    if (node->n_output != 1 || !*node->output[0])
        fail("%s: %s has %zu outputs, expected 1", im->path, where, node->n_output);
    struct value *value = name_scope_define(im, scope, node->output[0], where);
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

static void read_operands(struct import *im, struct name_scope *scope, const Onnx__NodeProto *from, struct node *node, const char *where)
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
            node->in[i] = name_scope_read(im, scope, from->input[i], where);
}

/* The file declares the results of an op without a row. */
static void declare(struct import *im, struct value *value)
{
    const Onnx__ValueInfoProto *info = text_table_find(im->declared, value->name);
    struct type type;
    if (info && declared_type(im, info, &type))
        value->type = type;
}

/* A result that the op always has gets a value even if the file does not name it. */
static struct value *unnamed_result(struct import *im, const struct node *node, size_t i)
{
    static const struct type unknown;
    if (!node->op || node->op->out[(int)i < node->op->nout ? (int)i : node->op->nout - 1].optional)
        return NULL;
    return graph_value(im->graph, arena_printf(im->arena, "%s_unused%zu", node->name, i), &unknown);
}

static void define_results(struct import *im, struct name_scope *scope, const Onnx__NodeProto *from, struct node *node, const char *where)
{
    size_t n = trimmed(from->n_output, from->output);
    check_count(im, where, "results", n, node->op ? node->op->min_out : 0, node->op ? node->op->max_out : -1);
    node->nout = (int)n;
    node->out = NEWN(im->arena, struct value *, n + 1);
    for (size_t i = 0; i < n; i++) {
        struct value *value = *from->output[i] ? name_scope_define(im, scope, from->output[i], where) : unnamed_result(im, node, i);
        node->out[i] = value;
        if (!value)
            continue;
        value->producer = node;
        value->index = (int)i;
        if (!node->op)
            declare(im, value);
    }
}

void read_plain_node(struct import *im, struct name_scope *scope, const Onnx__NodeProto *from, int opset)
{
    const char *domain = proto_domain(from->domain), *where = proto_node_label(im->tmp, from);
    if (!*domain && strcmp(from->op_type, "Constant") == 0) {
        constant_node(im, scope, from);
        return;
    }
    struct node *node = NEW(im->arena, struct node);
    node->op = op_find(domain, from->op_type);
    node->optype = arena_strdup(im->arena, from->op_type);
    node->domain = arena_strdup(im->arena, domain);
    node->name = import_node_name(im, scope, from);
    read_module(im, from, node->name);
    node->opset = opset;
    read_operands(im, scope, from, node, where);
    bool bodies = node->op && op_has_bodies(node->op);
    if (!bodies && value_any_untyped(node->nin, node->in))
        node->op = NULL;
    if (node->op)
        decode_attributes(im, from, node);
    else
        decode_raw(im, scope, from, node);
    if (bodies)
        read_bodies(im, scope, from, node);
    define_results(im, scope, from, node, where);
    graph_append(im->graph, node);
}
