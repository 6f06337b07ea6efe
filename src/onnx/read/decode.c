/* Attributes: decoded once by the op's row; those of ops without a row stay AttributeProto bytes.
 *
 * Every attribute of the row is present in the node, in the row's order, at its default where the file omits it. An unknown name, another
 * type or a missing required attribute is a failure. */
#include "ir/rank_meta.h"
#include "onnx/read/read.h"
#include "op/op.h"

#include <string.h>

typedef Onnx__AttributeProto proto;

static const char *kind_text(int type)
{
    const ProtobufCEnumValue *value = protobuf_c_enum_descriptor_get_value(&onnx__attribute_proto__attribute_type__descriptor, type);
    return value ? value->name : "an unknown type";
}

/* Attributes that have no default and must be given. */
static bool is_required(const struct op *op, const struct op_attr *a)
{
    static const char *const required[][2] = {
        {"Cast", "to"},       {"Concat", "axis"},   {"GroupQueryAttention", "num_heads"}, {"GroupQueryAttention", "kv_num_heads"},
        {"MatMulNBits", "K"}, {"MatMulNBits", "N"}, {"MatMulNBits", "block_size"},
    };
    for (size_t i = 0; i < sizeof required / sizeof *required; i++)
        if (strcmp(op->name, required[i][0]) == 0 && strcmp(a->name, required[i][1]) == 0)
            return true;
    return (op->flags & OP_COLLECTIVE) && !a->has_default && a->kind != ATTR_DIMS && strcmp(a->name, "extent_of") != 0;
}

static int proto_type(enum attr_kind kind)
{
    switch (kind) {
    case ATTR_INT: return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
    case ATTR_FLOAT: return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT;
    case ATTR_STRING: return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING;
    case ATTR_INTS: return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS;
    case ATTR_FLOATS: return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS;
    case ATTR_STRINGS: return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS;
    case ATTR_TENSOR: return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR;
    case ATTR_GRAPH: return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH;
    default: bug("attribute kind %d is not read from files", (int)kind);
    }
}

static const int64_t *copy_ints(struct arena *arena, const proto *p)
{
    int64_t *out = NEWN(arena, int64_t, p->n_ints + 1);
    if (p->n_ints)
        memcpy(out, p->ints, p->n_ints * sizeof *out);
    return out;
}

static const double *copy_floats(struct arena *arena, const proto *p)
{
    double *out = NEWN(arena, double, p->n_floats + 1);
    for (size_t i = 0; i < p->n_floats; i++)
        out[i] = (double)p->floats[i];
    return out;
}

static const char *const *copy_strings(struct arena *arena, const proto *p)
{
    const char **out = NEWN(arena, const char *, p->n_strings + 1);
    for (size_t i = 0; i < p->n_strings; i++)
        out[i] = arena_strndup(arena, (const char *)p->strings[i].data, p->strings[i].len);
    return out;
}

static void check_strings(const struct import *im, const char *where, const proto *p)
{
    for (size_t i = 0; i < p->n_strings; i++) {
        const char *fault = string_fault((const char *)p->strings[i].data, p->strings[i].len);
        if (fault)
            fail("%s: %s: attribute '%s': string %zu %s", im->path, where, p->name, i, fault);
    }
}

static int count_of(const struct import *im, const char *where, const proto *p, size_t n)
{
    if (n > 65536)
        fail("%s: %s: attribute '%s' has %zu entries, at most 65536 are handled", im->path, where, p->name, n);
    return (int)n;
}

static void read_tensor(struct import *im, const char *where, const proto *p, struct attr *out)
{
    if (!p->t)
        fail("%s: %s: attribute '%s' has no tensor", im->path, where, p->name);
    out->tensor = tensor_constant(im, p->t, arena_printf(im->tmp, "%s: attribute '%s'", where, p->name));
}

static void read_value(struct import *im, const char *where, const proto *p, struct attr *out)
{
    switch (out->kind) {
    case ATTR_INT: out->i = p->i; break;
    case ATTR_FLOAT: out->f = (double)p->f; break;
    case ATTR_STRING: out->s = arena_strndup(im->arena, (const char *)p->s.data, p->s.len); break;
    case ATTR_INTS:
        out->n = count_of(im, where, p, p->n_ints);
        out->ints = copy_ints(im->arena, p);
        break;
    case ATTR_FLOATS:
        out->n = count_of(im, where, p, p->n_floats);
        out->floats = copy_floats(im->arena, p);
        break;
    case ATTR_STRINGS:
        out->n = count_of(im, where, p, p->n_strings);
        check_strings(im, where, p);
        out->strings = copy_strings(im->arena, p);
        break;
    case ATTR_TENSOR: read_tensor(im, where, p, out); break;
    case ATTR_GRAPH: break; /* read_bodies reads it */
    default: bug("attribute '%s' of kind %d is not read from files", p->name, (int)out->kind);
    }
    out->set = true;
}

/* Old writers omit the type; then the field that is set decides. */
int decode_found_type(const proto *p)
{
    if (p->has_type && p->type != ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__UNDEFINED)
        return (int)p->type;
    if (p->has_i)
        return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
    if (p->has_f)
        return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT;
    if (p->has_s)
        return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING;
    if (p->t)
        return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR;
    if (p->g)
        return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH;
    if (p->n_ints)
        return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS;
    if (p->n_floats)
        return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS;
    if (p->n_strings)
        return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS;
    return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__UNDEFINED;
}

static void read_attribute(struct import *im, const char *where, const proto *p, struct node *node)
{
    for (int i = 0; i < node->op->nattr; i++) {
        const struct op_attr *known = &node->op->attr[i];
        if (strcmp(known->name, p->name) || known->kind == ATTR_DIMS || known->noted)
            continue;
        int expected = proto_type(known->kind), found = decode_found_type(p);
        if (found != expected)
            fail("%s: %s: attribute '%s' is %s, expected %s", im->path, where, p->name, kind_text(found), kind_text(expected));
        read_value(im, where, p, &node->attr[i]);
        return;
    }
    fail("%s: %s: attribute '%s' is not known for %s", im->path, where, p->name, node->op->name);
}

/* The attribute that the row keeps in the node's metadata. */
static void read_note(const struct import *im, const char *where, const Onnx__StringStringEntryProto *entry, struct node *node)
{
    const char *key = proto_text_or(entry->key, ""), *text = proto_text_or(entry->value, "");
    if (strncmp(key, RANK_META_NOTE, strlen(RANK_META_NOTE)))
        return;
    for (int i = 0; i < node->nattr; i++) {
        struct attr *a = &node->attr[i];
        if (!node->op->attr[i].noted || strcmp(a->name, key + strlen(RANK_META_NOTE)))
            continue;
        if (a->kind == ATTR_INT && !i64_parse(text, 0, INT64_MAX, &a->i))
            fail("%s: %s: metadata '%s' is '%s', expected an integer of 0 or more", im->path, where, key, text);
        a->s = a->kind == ATTR_STRING ? arena_strdup(im->arena, text) : NULL;
        a->set = true;
    }
}

static void set_defaults(struct node *node)
{
    for (int i = 0; i < node->nattr; i++) {
        const struct op_attr *known = &node->op->attr[i];
        node->attr[i] = known->value;
        node->attr[i].name = known->name;
        node->attr[i].kind = known->kind;
        node->attr[i].set = known->has_default;
    }
}

static void check_names(const struct import *im, const char *where, const Onnx__NodeProto *from)
{
    struct text_table *seen = NULL;
    for (size_t i = 0; i < from->n_attribute; i++) {
        const char *name = from->attribute[i]->name;
        if (!name || !*name)
            fail("%s: %s has an attribute without a name", im->path, where);
        if (text_table_find(seen, name))
            fail("%s: %s has attribute '%s' twice", im->path, where, name);
        text_table_add(im->tmp, &seen, name, name);
    }
}

void decode_attributes(struct import *im, const Onnx__NodeProto *from, struct node *node)
{
    const char *where = proto_node_label(im->tmp, from);
    node->nattr = node->op->nattr;
    node->attr = NEWN(im->arena, struct attr, node->nattr);
    set_defaults(node);
    check_names(im, where, from);
    for (size_t i = 0; i < from->n_attribute; i++)
        read_attribute(im, where, from->attribute[i], node);
    for (size_t i = 0; i < from->n_metadata_props; i++)
        read_note(im, where, from->metadata_props[i], node);
    for (int i = 0; i < node->nattr; i++)
        if (!node->attr[i].set && is_required(node->op, &node->op->attr[i]))
            fail("%s: %s lacks its attribute '%s'", im->path, where, node->attr[i].name);
}

/* ---- ops without a row ---- */

struct raw_subgraph {
    const struct raw_subgraph *outer;
    const Onnx__GraphProto *graph;
    struct text_table *defined; /* the names that the graph defines */
    const char *where;
    struct import *im;
    const struct name_scope *scope;
};

static void note_defined(struct raw_subgraph *in)
{
    const Onnx__GraphProto *g = in->graph;
    for (size_t i = 0; i < g->n_input; i++)
        text_table_add(in->im->tmp, &in->defined, proto_text_or(g->input[i]->name, ""), g);
    for (size_t i = 0; i < g->n_initializer; i++)
        text_table_add(in->im->tmp, &in->defined, proto_text_or(g->initializer[i]->name, ""), g);
    for (size_t i = 0; i < g->n_node; i++)
        for (size_t k = 0; k < g->node[i]->n_output; k++)
            text_table_add(in->im->tmp, &in->defined, g->node[i]->output[k], g);
}

static void check_use(const struct raw_subgraph *in, const char *name)
{
    for (const struct raw_subgraph *at = in; at; at = at->outer)
        if (!*name || text_table_find(at->defined, name))
            return;
    fail("%s: %s has a subgraph that uses '%s' from outside, which tpc does not handle", in->im->path, in->where, name);
}

static void check_subgraph(struct raw_subgraph *);

static void check_tensor(const struct raw_subgraph *in, const Onnx__TensorProto *t)
{
    if (t->has_data_location && t->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL)
        fail("%s: %s has external data in an attribute, which is not handled for this op", in->im->path, in->where);
}

static void check_attribute(const struct raw_subgraph *in, const proto *p)
{
    if (p->ref_attr_name && *p->ref_attr_name)
        fail("%s: %s has a subgraph that uses the function attribute '%s', which tpc does not handle", in->im->path, in->where,
             p->ref_attr_name);
    if (p->t)
        check_tensor(in, p->t);
    for (size_t i = 0; i < p->n_tensors; i++)
        check_tensor(in, p->tensors[i]);
    struct raw_subgraph next = *in;
    next.outer = in->graph ? in : NULL;
    for (size_t i = 0; i < p->n_graphs + 1; i++) {
        next.graph = i < p->n_graphs ? p->graphs[i] : p->g;
        if (next.graph)
            check_subgraph(&next);
    }
}

static void check_inner_node(const struct raw_subgraph *in, const Onnx__NodeProto *node)
{
    const char *domain = proto_domain(node->domain), *type = proto_text_or(node->op_type, "");
    if (inline_find(in->im, node))
        fail("%s: %s has a subgraph that calls function '%s', which tpc does not handle", in->im->path, in->where, type);
    int opset = name_scope_opset(in->im, in->scope, domain, in->where);
    int since = *domain ? 0 : in->im->form_changed(type, opset);
    if (since)
        fail("%s: %s has a subgraph with %s in the form of opset %d; export the model with opset %d or later", in->im->path, in->where,
             type, opset, since);
    for (size_t i = 0; i < node->n_input; i++)
        check_use(in, node->input[i]);
    for (size_t i = 0; i < node->n_attribute; i++)
        check_attribute(in, node->attribute[i]);
}

static void check_subgraph(struct raw_subgraph *in)
{
    in->defined = NULL;
    note_defined(in);
    for (size_t i = 0; i < in->graph->n_initializer; i++)
        check_tensor(in, in->graph->initializer[i]);
    for (size_t i = 0; i < in->graph->n_node; i++)
        check_inner_node(in, in->graph->node[i]);
    for (size_t i = 0; i < in->graph->n_output; i++)
        check_use(in, proto_text_or(in->graph->output[i]->name, ""));
}

static void keep_raw(struct import *im, const proto *p, struct attr *out)
{
    size_t bytes = onnx__attribute_proto__get_packed_size(p);
    uint8_t *packed = arena_alloc(im->arena, bytes);
    onnx__attribute_proto__pack(p, packed);
    *out = (struct attr){.name = arena_strdup(im->arena, p->name), .kind = ATTR_RAW, .set = true, .n = (int)bytes, .raw = packed};
}

void decode_raw(struct import *im, const struct name_scope *scope, const Onnx__NodeProto *from, struct node *node)
{
    struct raw_subgraph in = {.where = proto_node_label(im->tmp, from), .im = im, .scope = scope};
    node->nattr = (int)from->n_attribute;
    node->attr = NEWN(im->arena, struct attr, node->nattr);
    check_names(im, in.where, from);
    for (size_t i = 0; i < from->n_attribute; i++) {
        check_attribute(&in, from->attribute[i]);
        keep_raw(im, from->attribute[i], &node->attr[i]);
    }
}
