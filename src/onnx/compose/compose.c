/* Ops that are compositions of others: rewritten at load, so that existing rules and kernels apply.
 *
 * A node becomes the last op of the composition; the ones before are imported as helpers. A form that does not fit is left alone: the node
 * then has no row and is replicated. */
#include "onnx/compose/compose.h"

#include <string.h>

typedef Onnx__NodeProto proto;

/* ---- reading the node ---- */

bool compose_has(const proto *node, size_t i)
{
    return i < node->n_input && *node->input[i];
}

char *compose_input(struct composer *c, size_t i)
{
    if (!compose_has(c->node, i))
        fail("%s: %s lacks its operand %zu", c->im->path, c->where, i);
    return c->node->input[i];
}

char *compose_optional(struct composer *c, size_t i)
{
    return compose_has(c->node, i) ? c->node->input[i] : NULL;
}

bool compose_gives(const proto *node, size_t i)
{
    return i < node->n_output && *node->output[i];
}

int64_t compose_int_of(const proto *node, const char *name, int64_t otherwise)
{
    const Onnx__AttributeProto *a = proto_attribute(node, name);
    return a ? a->i : otherwise;
}

/* ---- making nodes ---- */

bool compose_lists(const char *ops, const char *op)
{
    size_t n = strlen(op);
    for (const char *at = ops; at; at = strchr(at, ' ')) {
        at += *at == ' ';
        if (strncmp(at, op, n) == 0 && (at[n] == ',' || !at[n]))
            return true;
    }
    return false;
}

/* --list-ops tells the user which ops a composition has, so each is in the table. */
static void check_listed(const struct composer *c, const char *op)
{
    if (!c->row->text && !compose_lists(c->row->of, op))
        bug("%s is composed of %s, and not of %s", c->row->op, c->row->of, op);
}

Onnx__AttributeProto *compose_int(struct composer *c, const char *name, int64_t i)
{
    Onnx__AttributeProto *a = proto_new_attribute(c->im->tmp, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
    a->has_i = 1;
    a->i = i;
    return a;
}

Onnx__AttributeProto *compose_truth(struct composer *c, const char *name, bool is)
{
    Onnx__AttributeProto *a = proto_new_attribute(c->im->tmp, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR);
    a->t = NEW(c->im->tmp, Onnx__TensorProto);
    onnx__tensor_proto__init(a->t);
    a->t->has_data_type = 1;
    a->t->data_type = ONNX__TENSOR_PROTO__DATA_TYPE__BOOL;
    a->t->n_int32_data = 1;
    a->t->int32_data = NEWN(c->im->tmp, int32_t, 1);
    a->t->int32_data[0] = is;
    return a;
}

Onnx__AttributeProto *compose_ints(struct composer *c, const char *name, size_t n, const int64_t *at)
{
    Onnx__AttributeProto *a = proto_new_attribute(c->im->tmp, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
    a->n_ints = n;
    a->ints = NEWN(c->im->tmp, int64_t, n + 1);
    memcpy(a->ints, at, n * sizeof *at);
    return a;
}

Onnx__AttributeProto *compose_string(struct composer *c, const char *name, const char *text)
{
    Onnx__AttributeProto *a = proto_new_attribute(c->im->tmp, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING);
    a->has_s = 1;
    a->s.len = strlen(text);
    a->s.data = (uint8_t *)arena_strdup(c->im->tmp, text);
    return a;
}

Onnx__AttributeProto *compose_float(struct composer *c, const char *name, float f)
{
    Onnx__AttributeProto *a = proto_new_attribute(c->im->tmp, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);
    a->has_f = 1;
    a->f = f;
    return a;
}

static void set_proto_attributes(struct composer *c, proto *node, size_t n, Onnx__AttributeProto *const *list)
{
    node->attribute = NEWN(c->im->tmp, Onnx__AttributeProto *, n + 1);
    node->n_attribute = 0;
    for (size_t i = 0; i < n; i++)
        if (list[i])
            node->attribute[node->n_attribute++] = list[i];
}

static void set_inputs(struct composer *c, proto *node, size_t n, char *const *in)
{
    node->input = NEWN(c->im->tmp, char *, n + 1);
    node->n_input = 0;
    for (size_t i = 0; i < n; i++)
        node->input[node->n_input++] = in[i] ? in[i] : arena_strdup(c->im->tmp, "");
}

char *compose_node_of(struct composer *c, const char *op, size_t nin, char *const *in, size_t nattr, Onnx__AttributeProto *const *attr,
                      size_t nout, char **more)
{
    proto *node = NEW(c->im->tmp, proto);
    onnx__node_proto__init(node);
    check_listed(c, op);
    node->op_type = arena_strdup(c->im->tmp, op);
    const char *base = compose_gives(c->node, 0) ? c->node->output[0] : "result";
    char **out = NEWN(c->im->tmp, char *, nout + 1);
    for (size_t i = 0; i < nout; i++)
        out[i] = name_scope_fresh(c->im, arena_printf(c->im->tmp, "%s_%s", (unsigned char)*base > 1 ? base : strchr(base, ':') + 1, op));
    node->name = arena_printf(c->im->tmp, "%s_%s", proto_text_or(c->node->name, ""), op);
    node->n_metadata_props = c->node->n_metadata_props;
    node->metadata_props = c->node->metadata_props;
    node->output = out;
    node->n_output = nout;
    set_inputs(c, node, nin, in);
    set_proto_attributes(c, node, nattr, attr);
    read_plain_node(c->im, c->scope, node, FORM_OPSET);
    for (size_t i = 1; i < nout; i++)
        more[i - 1] = out[i];
    return out[0];
}

char *compose_op(struct composer *c, const char *op, char *a, char *b)
{
    return compose_node_of(c, op, b ? 2 : 1, (char *[]){a, b}, 0, NULL, 1, NULL);
}

void compose_become(struct composer *c, const char *op, size_t nin, char *const *in)
{
    check_listed(c, op);
    c->node->op_type = arena_strdup(c->im->tmp, op);
    c->node->domain = NULL;
    set_inputs(c, c->node, nin, in);
    c->node->n_attribute = 0;
}

void compose_become_with(struct composer *c, const char *op, size_t nin, char *const *in, size_t nattr, Onnx__AttributeProto *const *attr)
{
    compose_become(c, op, nin, in);
    set_proto_attributes(c, c->node, nattr, attr);
}

void compose_also(struct composer *c, size_t result, const char *op, size_t nin, char *const *in)
{
    proto copy = *c->node;
    struct composer other = *c;
    other.node = &copy;
    if (compose_gives(c->node, result)) {
        compose_become(&other, op, nin, in);
        copy.name = arena_printf(c->im->tmp, "%s_%zu", proto_text_or(c->node->name, ""), result);
        copy.output = c->node->output + result;
        copy.n_output = 1;
        read_plain_node(c->im, c->scope, &copy, FORM_OPSET);
    }
    if (c->node->n_output > result)
        c->node->n_output = result;
}
